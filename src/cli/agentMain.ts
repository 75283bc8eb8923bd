#!/usr/bin/env node
/** Starts `telos-agent`: the long work, step by step, for programs and scripts. */
process.on('uncaughtException', error => {
  void import('./lastWords.ts')
    .then(({ lastWords }) => lastWords(error))
    .then(words => process.stderr.write(`${words}\n`, () => process.exit(1)));
});

const { runAgentLine } = await import('./agentCommand.ts');
const exitCode = await runAgentLine(process.argv.slice(2));
process.exitCode ||= exitCode;
process.stdout.write('', () => setImmediate(() => process.exit()));
