#!/usr/bin/env node
/**
 * Starts the command line: from arguments to an exit code. An old Node must read this file to say that it is too
 * old, so it imports nothing at its start.
 */
// The message of a defect may contain anything, even a key.
process.on('uncaughtException', error => {
  void import('./lastWords.ts')
    .then(({ lastWords }) => lastWords(error))
    .then(words => process.stderr.write(`${words}\n`, () => process.exit(1)));
});

async function start(): Promise<void> {
  // Imported only now, so that a defect of it is said as one.
  const { runCommandLine } = await import('./commandLine.ts');
  const packageFile = new URL('../package.json', import.meta.url);
  const exitCode = await runCommandLine(process.argv.slice(2), packageFile, process);
  // A failed write may already have set another exit code.
  process.exitCode = process.exitCode || exitCode;
  // Written output is flushed first. Then nothing that is still open (a kept-alive connection) holds the process up. A write
  // error is reported in between.
  process.stdout.write('', () => setImmediate(() => process.exit()));
}

const { node } = process.versions;
if (Number(node.split('.')[0]) >= 20) void start();
else {
  process.exitCode = 1;
  process.stderr.write(
    `Telos needs Node 20 or later, and this is Node ${node}. Get it from https://nodejs.org.\n`,
  );
}
