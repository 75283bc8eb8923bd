/**
 * One of several windows on the same folders: `node stateProcess.ts <home> <skills> <work> <name> <count>`. Begins when its input ends; accepts the cards of its own
 * agents, and answers its own commands with a lasting yes, in turn.
 */
import { once } from 'node:events';
import { loadConfig } from '../../src/engine/config.ts';
import { Telos } from '../../src/engine/telos.ts';
import { calls, done, says, scriptedProvider } from '../fakes/scriptedProvider.ts';

const [home = '', skills = '', work = '', name = '', count = '0'] = process.argv.slice(2);
const env = {
  PATH: process.env['PATH'],
  HOME: home,
  TELOS_SKILLS_DIR: skills,
  TELOS_PROVIDER: 'brought',
  TELOS_SANDBOX: 'off',
};
const config = loadConfig({ env, home, cwd: work });
process.stdin.resume();
console.log('ready');
await once(process.stdin, 'end');
for (let number = 0; number < Number(count); number += 2) {
  const agent = `${name}-${number}`;
  const turn = [calls('c', 'run_command', { command: `true ${agent}` }), done('tool_use')];
  const provider = scriptedProvider([turn, [says('done'), done()]]);
  const brought = { model: async () => 'm', create: async () => provider };
  const telos = Telos.open(config, { providers: { brought } });
  await telos.acceptCard(await telos.agentCard(agent));
  const always = { allow: true, scope: 'always' } as const;
  const human = { approve: async () => always, ask: async () => [] };
  const request = { text: 'go', skill: { agent, skill: 'one' } };
  for await (const _event of telos.run(request, human, new AbortController().signal));
}
