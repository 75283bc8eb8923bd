/** The roles of the long work keep what their recorded evals show, without a key; a role that is told something else is stale. */
import assert from 'node:assert/strict';
import type { Provider } from '../../src/engine/core/ports.ts';
import { readRecording } from '../../src/engine/providers/recordingFile.ts';
import { strictReplay } from '../../src/evals/strictReplay.ts';
import { evalsOf, recordingOf, roleNames, runRole } from '../samples/roleRuns.ts';

const again = 'Record them anew: node test/samples/recordRoles.ts';

describe('the roles of the long work', () => {
  for (const role of roleNames)
    it(`pass their evals without a key: ${role}`, async () => {
      const evals = evalsOf(role);
      assert.ok(evals.length >= 2);
      for (const sandbox of ['off', 'auto'])
        for (const one of evals) {
          let replay: ReturnType<typeof strictReplay> | undefined;
          const recording = readRecording(recordingOf(role, one));
          const { end, graded } = await runRole(
            role,
            one,
            home => {
              replay = strictReplay(recording, { home });
              return replay.provider;
            },
            { sandbox },
          );
          const said = JSON.stringify([replay?.stale(), end.error, graded]);
          assert.equal(replay?.stale(), undefined, `${role} ${one.id} ${sandbox}: ${said}. ${again}`);
          assert.ok(
            graded.every(({ passed }) => passed),
            `${role} ${one.id} ${sandbox}: ${said}`,
          );
        }
    });

  it('are stale when a role is told something else', async () => {
    for (const role of roleNames) {
      const [one] = evalsOf(role);
      assert.ok(one);
      const recording = readRecording(recordingOf(role, one));
      let replay: ReturnType<typeof strictReplay> | undefined;
      await runRole(role, one, home => {
        const strict = strictReplay(recording, { home });
        replay = strict;
        const told: Provider = {
          ...strict.provider,
          streamCompletion: (request, signal) =>
            strict.provider.streamCompletion({ ...request, system: `${request.system} Be brief.` }, signal),
        };
        return told;
      });
      assert.deepEqual(replay?.stale(), { reason: 'instructions', turn: 1 }, role);
    }
  });
});
