import assert from 'node:assert/strict';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readRecording } from '../../src/engine/providers/recordingFile.ts';
import { discoverAgents } from '../../src/engine/skills/discover.ts';
import { skillDigest } from '../../src/engine/skills/skillDigest.ts';
import { Telos } from '../../src/engine/telos.ts';
import { readEvals } from '../../src/evals/evalFile.ts';
import { asInstalled } from '../../src/evals/evalWorld.ts';
import { hasPassed } from '../../src/evals/runEval.ts';
import { replaySuite } from '../../src/evals/runSuite.ts';
import { localSlots } from '../../src/evals/slots.ts';
import { readTriggers } from '../../src/evals/triggerFile.ts';
import { openMachine } from '../harness/machine.ts';

const skills = fileURLToPath(new URL('../../media/demo/skills', import.meta.url));
const again = 'Record them anew: node test/samples/recordSamples.ts';

describe('the skills that ship with Telos', () => {
  const machine = openMachine({ folders: { skills } });
  after(() => machine.remove());
  const [agent] = discoverAgents(machine.loadConfig());

  for (const skill of agent?.skills ?? [])
    it(`pass their evals without a key: ${skill.id}`, async () => {
      assert.ok(agent);
      const triggers = readTriggers(skill.dir) ?? [];
      for (const wanted of [true, false])
        assert.ok(triggers.filter(({ shouldTrigger }) => shouldTrigger === wanted).length >= 8);
      const evals = readEvals(skill.dir) ?? [];
      assert.ok(evals.length >= 2);
      // With a box and without one, installed and from a checkout, the same is sent to a model.
      for (const TELOS_SANDBOX of ['off', 'auto'])
        for (const one of [
          { agent, skill },
          asInstalled({ agent: { ...agent, name: 'elsewhere' }, skill }),
        ]) {
          const slots = localSlots({
            config: machine.loadConfig({ TELOS_SANDBOX }),
            open: Telos.open.bind(Telos),
          });
          const { signal } = new AbortController();
          for await (const result of replaySuite([{ one, evals }], slots, signal)) {
            const said = JSON.stringify([result.stale, result.error, result.graded, result.denials]);
            assert.ok(hasPassed(result), `${skill.id} ${result.eval.id}: ${said}. ${again}`);
          }
        }
    });

  it('bring recordings that were made with what they say now', async () => {
    for (const id of ['kickoff', 'weekly-summary']) {
      const dir = join(skills, 'kairos/skills', id);
      const { header } = readRecording(join(dir, 'recording.jsonl'));
      assert.deepEqual([header.version, header.skillDigest], [2, await skillDigest(dir)], again);
    }
  });
});
