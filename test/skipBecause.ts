/** Skips the test that runs. The reason is added to its title, so that the summary of a run prints it. */
export function skipBecause(context: Mocha.Context, why: string): never {
  if (context.test) context.test.title += ` (not tried: ${why})`;
  return context.skip();
}
