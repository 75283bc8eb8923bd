#!/usr/bin/env node
/** Starts the command line: from arguments to an exit code. */
import module from 'node:module';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

// Keeps compiled code, which saves a tenth of each start; Node 20 cannot do this yet. It is kept in the user's own folder,
// since whoever can write there decides what runs.
const cacheDir = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
if (isAbsolute(cacheDir)) module.enableCompileCache?.(join(cacheDir, 'telos'));

// The message of a defect may contain anything, even a key.
process.on('uncaughtException', error => {
  void import('./lastWords.ts')
    .then(({ lastWords }) => lastWords(error))
    .then(words => process.stderr.write(`${words}\n`, () => process.exit(1)));
});

// Imported only now, so that the rest uses the compile cache.
const { runCommandLine } = await import('./commandLine.ts');
const exitCode = await runCommandLine(process.argv.slice(2), new URL('../package.json', import.meta.url));
// A failed write may already have set another exit code.
process.exitCode ||= exitCode;
// Written output is flushed first. Then nothing that is still open (a kept-alive connection) holds the process up. A write
// error is reported in between.
process.stdout.write('', () => setImmediate(() => process.exit()));
