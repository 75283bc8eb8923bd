#!/usr/bin/env node
/** Starts the command line: from arguments to an exit code. */
// The message of a defect may contain anything, even a key.
process.on('uncaughtException', error => {
  void import('./lastWords.ts')
    .then(({ lastWords }) => lastWords(error))
    .then(words => process.stderr.write(`${words}\n`, () => process.exit(1)));
});

// Imported only now, so that a defect of it is said as one.
const { runCommandLine } = await import('./commandLine.ts');
const packageFile = new URL('../package.json', import.meta.url);
const exitCode = await runCommandLine(process.argv.slice(2), packageFile, process);
// A failed write may already have set another exit code.
process.exitCode ||= exitCode;
// Written output is flushed first. Then nothing that is still open (a kept-alive connection) holds the process up. A write
// error is reported in between.
process.stdout.write('', () => setImmediate(() => process.exit()));
