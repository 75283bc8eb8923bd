#!/usr/bin/env node
/** The command line's entrance: from arguments to an exit code. */
import module from 'node:module';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

// Compiled code is kept, which saves a tenth of each start; Node 20 cannot do this yet. In the user's own folder, since whoever writes
// there decides what runs.
const cacheDir = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
if (isAbsolute(cacheDir)) module.enableCompileCache?.(join(cacheDir, 'telos'));

// A defect of ours may hold anything in its message, a key too.
process.on('uncaughtException', error => {
  void import('./crash.ts').then(({ lastWords }) => {
    process.stderr.write(`${lastWords(error)}\n`, () => process.exit(1));
  });
});

// Only now, so that the rest comes from there.
const { runCommandLine } = await import('./commands.ts');
const exitCode = await runCommandLine(process.argv.slice(2), new URL('../package.json', import.meta.url));
// What could not be written may have set another one.
process.exitCode ||= exitCode;
// What was written leaves first; then nothing that is still open (a kept-alive connection) holds the process up.
// An error of writing is told in between.
process.stdout.write('', () => setImmediate(() => process.exit()));
