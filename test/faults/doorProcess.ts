/**
 * What a window does, in a process of its own: `node doorProcess.ts <name> <rounds> <home> <url>`. Begins when its parent says so, and tells it
 * what went wrong.
 */
import { once } from 'node:events';
import { join } from 'node:path';
import { loadConfig } from '../../src/engine/config.ts';
import type { Human } from '../../src/engine/core/ports.ts';
import { listPermissions, revokePermission } from '../../src/engine/policy/grants.ts';
import { RunHistory } from '../../src/engine/records/runHistory.ts';
import { Telos } from '../../src/engine/telos.ts';
import { revokedCommand, roundsOf, titleOf } from './doorsWorld.ts';

const [name = '', rounds = '0', home = '', url = ''] = process.argv.slice(2);
const config = loadConfig({
  env: {
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    TELOS_SKILLS_DIR: join(home, 'skills'),
    TELOS_CONFIG_DIR: join(home, 'config'),
    TELOS_DATA_DIR: join(home, 'data'),
    TELOS_ROUTING_MODE: 'name',
    TELOS_SANDBOX: 'off',
    ANTHROPIC_API_KEY: 'key-for-tests-0123456789',
    ANTHROPIC_BASE_URL: url,
  },
  home,
  cwd: join(home, 'work'),
});
const telos = Telos.open(config);
const history = new RunHistory(config.dataDir);
const person: Human = {
  approve: async ({ scopes }) => ({ allow: true, scope: scopes.at(-1) ?? 'once' }),
  ask: async questions => questions.map(() => ''),
};
const problems: string[] = [];
process.send?.('ready');
await once(process, 'message');
for (const key of roundsOf({ name, isWindow: true, rounds: Number(rounds) })) {
  const parts: Readonly<Record<string, () => Promise<unknown>>> = {
    run: async () => history.rename(await run(key), titleOf(key)),
    review: async () => telos.acceptCard(await telos.agentCard(`own-${key}`)),
    install: () => telos.install(join(home, 'sources', `pack-${key}`)),
    'install the same': () => telos.install(join(home, 'sources/same')),
    'install again': async () => {
      const source = join(home, 'sources', `told-${key}`);
      return telos.install(source, { agreed: (await telos.planInstall(source)).token });
    },
    uninstall: () => telos.uninstall(`old-${key}`),
    revoke: () => revoke(revokedCommand(key)),
  };
  await Promise.all(
    Object.entries(parts).map(async ([part, act]) => {
      try {
        await act();
      } catch (error) {
        problems.push(`${part} of ${key}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }),
  );
}
process.send?.(problems, () => process.disconnect());

/** The run's id. */
async function run(key: string): Promise<string> {
  let runId = '';
  const request = { text: `round ${key}`, skill: { agent: 'kairos', skill: 'kickoff' } };
  for await (const event of telos.run(request, person, new AbortController().signal)) {
    if (event.type === 'run_start') runId = event.runId;
    if (event.type === 'notice' && event.level === 'warning')
      problems.push(`${key} was told: ${event.message}`);
    if (event.type === 'tool_end' && event.result.isError) problems.push(`${key}: ${event.result.content}`);
    if (event.type === 'run_end' && event.error) problems.push(`${key}: ${event.error.message}`);
  }
  return runId;
}

async function revoke(command: string): Promise<void> {
  const { permissions } = await listPermissions(config);
  const found = permissions.find(one => one.kind === 'rule' && one.rule.command === command);
  if (!found) throw new Error('there is no such rule');
  // Another window may have taken out a rule above it meanwhile; a person then looks again.
  if (!(await revokePermission(found, config))) await revoke(command);
}
