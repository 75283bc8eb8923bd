/** Another conversation of the same person in the same folder, whose box nobody else may reach. */
import { runCli } from '../cliRun.ts';
import type { World } from '../world.ts';

/** Resolves with what ends it, once its command runs in the background. */
export async function otherConversation(
  world: World,
  command: string,
  env: Readonly<Record<string, string>>,
): Promise<() => Promise<void>> {
  let [runs, release]: (() => void)[] = [];
  const running = new Promise<void>(resolve => {
    runs = resolve;
  });
  const over = new Promise<void>(resolve => {
    release = resolve;
  });
  const input = { command, cwd: world.work, background: true };
  const run = runCli(
    world,
    ['--json', 'two'],
    (_request, index) => {
      if (index === 0) return { toolCalls: [{ id: 'toolu_other', name: 'run_command', input }] };
      runs?.();
      return { text: ['done'], hold: { behind: 'message_start', until: over } };
    },
    // What Telos keeps for its own start is no attempt's doing.
    { env: { ...env, NODE_DISABLE_COMPILE_CACHE: '1' } },
  );
  await Promise.race([running, run]);
  return async () => {
    release?.();
    await run;
  };
}
