#!/usr/bin/env node
/** The command line's entrance: from arguments to an exit code. */
import process from 'node:process';
import { runCommandLine } from './commandLine.ts';

process.exitCode = await runCommandLine(process.argv.slice(2), new URL('../package.json', import.meta.url));
// What was written leaves first; then nothing that is still open (a kept-alive connection) holds the process up.
process.stdout.write('', () => process.exit());
