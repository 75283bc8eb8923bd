/** Starts the process that runs a plan for an editor. */
process.on('uncaughtException', error => {
  void import('./lastWords.ts')
    .then(({ lastWords }) => lastWords(error))
    .then(words => process.stdout.write(`${JSON.stringify({ error: words })}\n`, () => process.exit(1)));
});
// No one may read any more what it says.
process.stdout.on('error', () => undefined);

const { runOrdered } = await import('./planRunner.ts');
const said = await runOrdered();
process.stdout.write(`${said}\n`, () => setImmediate(() => process.exit()));
