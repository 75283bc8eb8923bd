/**
 * Records the sample's runs and its evals anew, with the model of sampleRuns.ts. Needed when what Telos sends a model has changed: the
 * test of the sample's evals says so.
 */
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Provider, StreamEvent } from '../../src/engine/core/ports.ts';
import { allowAll } from '../../src/engine/human.ts';
import { readRecording } from '../../src/engine/providers/recordingFile.ts';
import { discoverAgents } from '../../src/engine/skills/discover.ts';
import { Telos } from '../../src/engine/telos.ts';
import { readEvals } from '../../src/evals/evalFile.ts';
import { liveSuite } from '../../src/evals/runSuite.ts';
import { localSlots } from '../../src/evals/slots.ts';
import { openMachine } from '../harness/machine.ts';
import { sampleRuns } from './sampleRuns.ts';

const demo = fileURLToPath(new URL('../../media/demo/', import.meta.url));
const { signal } = new AbortController();
const machine = openMachine({
  files: {
    // The week's number is asked for with a command that only looks.
    'config/policy.toml': '[[allow]]\nagent = "kairos"\ntool = "run_command"\nargv = ["date", "*"]\n',
  },
  folders: { skills: join(demo, 'skills') },
});
const config = machine.loadConfig();

/** Says the turns one after the other, each conversation from its beginning. */
const scripted = (turns: readonly StreamEvent[][]): Provider => ({
  name: 'demo',
  model: 'a scripted demo',
  async *streamCompletion({ messages }) {
    yield* turns[messages.filter(({ role }) => role === 'assistant').length] ?? [];
  },
});

try {
  cpSync(join(demo, 'workspace'), config.cwd, { recursive: true });
  const [agent] = discoverAgents(config);
  for (const skill of agent?.skills ?? []) {
    if (!agent) break;
    const own = join(skill.dir, 'recording.jsonl');
    const hasOwn = sampleRuns[skill.id]?.[1] === undefined;
    const turns = hasOwn ? readRecording(own).turns.map(({ events }) => events) : [];
    if (hasOwn) await recordSample(own, turns, { agent: agent.name, skill: skill.id });
    for (const each of readEvals(skill.dir) ?? []) {
      const model = {
        provider: scripted(sampleRuns[skill.id]?.[String(each.id)] ?? turns),
        priceOf: () => 0,
      };
      const options = { models: [model], judge: undefined, runs: 1, withBaseline: false, maxCost: undefined };
      const suite = [{ one: { agent, skill }, evals: [each] }];
      const slots = localSlots({ config, open: Telos.open.bind(Telos) });
      for await (const { status, graded, denials, error } of liveSuite(
        suite,
        { ...options, keeps: true },
        slots,
        signal,
      ))
        console.log(
          skill.id,
          each.id,
          status,
          error ?? '',
          graded.filter(({ passed }) => !passed),
          denials,
        );
    }
  }
} finally {
  machine.remove();
}

/** Records the run that the sample plays, so that it plays in any folder with the same files. */
async function recordSample(
  file: string,
  turns: readonly StreamEvent[][],
  skill: { agent: string; skill: string },
): Promise<void> {
  const { request } = readRecording(file).header;
  const provider = scripted(turns);
  const providers = { demo: { model: async () => provider.model, create: async () => provider } };
  const recordTo = join(machine.root, `${skill.skill}.jsonl`);
  const telos = Telos.open({ ...config, provider: 'demo' }, { providers });
  const asked = { text: request, skill, recordTo, withoutContextFiles: true };
  for await (const event of telos.run(asked, allowAll, signal))
    if (event.type === 'run_end') console.log(skill.skill, event.outcome, event.error ?? '');
  const { header, turns: recorded } = readRecording(recordTo);
  const { folder: _here, ...anywhere } = header;
  for (const [index, { events }] of recorded.entries()) {
    const calls = events.flatMap(event => (event.type === 'tool_call' ? [event.call] : []));
    const results = recorded[index + 1]?.results;
    // A date is never the same again.
    for (const [place, { name }] of calls.entries())
      if (results && name === 'run_command') results[place] = null;
  }
  const lines = [anywhere, ...recorded].map(line => JSON.stringify(line));
  writeFileSync(file, `${lines.join('\n')}\n`);
}
