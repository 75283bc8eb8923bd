/** Choosing from numbered lists. */
import { chooseAndRun } from '../../../src/cli/interactiveCommand.ts';
import type { Terminal } from '../../../src/cli/terminal.ts';
import { pick } from '../../../src/cli/terminalHuman.ts';
import { Telos } from '../../../src/engine/telos.ts';
import { startAnthropicServer } from '../../fakes/anthropicServer.ts';
import { strings } from '../caseFile.ts';
import type { CaseWorld } from '../caseWorld.ts';
import type { Operations } from '../operations.ts';

export const pickingOperations: Operations = {
  pick: async ({ given, when }) => ({
    choice: pick(String(when['input']), strings(given['choices'])) ?? null,
  }),

  async interactive({ given }, world) {
    const agents = strings(given['agents']);
    for (const agent of agents)
      for (const skill of ['one', 'two'])
        world.write({
          [`@skills/${agent}/skills/${skill}-${agent}/SKILL.md`]: '---\ndescription: D\n---\nB',
        });
    const run = await answering(['2', '1', 'y'], world);
    const dry = await answering(['2', '1', 'd', 'q'], world);
    const none = await answering(['2', '1', 'q'], world);
    const [first = '', second = ''] = agents;
    const numbered = [`1. ${first} `, `2. ${second} `, `1. one-${second} `, `2. two-${second} `];
    const places = numbered.map(line => run.shown.indexOf(line));
    const inTurn = places.every((place, index) => place > (places[index - 1] ?? -1));
    return {
      shows: inTurn ? 'numbered agent list, then numbered skill list of the chosen agent' : run.shown,
      confirm: {
        y: run.asked === 1 ? 'execute' : run,
        d: dry.asked === 0 && dry.shown.includes('Would run') ? 'dry run' : dry,
        q: none.asked === 0 && !none.shown.includes('Would run') ? 'quit' : none,
      },
    };
  },
};

/** What is shown to a person who gives these answers, and how often the model was asked. */
async function answering(answers: string[], world: CaseWorld): Promise<{ shown: string; asked: number }> {
  const server = await startAnthropicServer({ turns: [{ text: ['done'] }] });
  const same = (text: string): string => text;
  let shown = '';
  const show = (text: string): void => {
    shown += `${text}\n`;
  };
  const terminal: Terminal = {
    out: show,
    say: show,
    endLine: () => {},
    flush: () => {},
    canAsk: true,
    surroundings: process,
    outWidth: undefined,
    sayWidth: 80,
    style: { dim: same, bold: same, red: same, yellow: same },
  };
  const env = { TELOS_PROVIDER: 'anthropic', ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: server.url };
  try {
    await chooseAndRun(Telos.open(world.loadConfig(env)), {}, terminal, async () => answers.shift());
    return { shown, asked: server.requests.length };
  } finally {
    await server.close();
  }
}
