#!/usr/bin/env node
/** Starts `telos-agent`: the long work, step by step, for programs and scripts. It imports nothing at its start, as `main.ts`. */
process.on('uncaughtException', error => {
  void import('./lastWords.ts')
    .then(({ lastWords }) => lastWords(error))
    .then(words => process.stderr.write(`${words}\n`, () => process.exit(1)));
});

async function start(): Promise<void> {
  const { runAgentLine } = await import('./agentCommand.ts');
  const exitCode = await runAgentLine(process.argv.slice(2));
  process.exitCode = process.exitCode || exitCode;
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
