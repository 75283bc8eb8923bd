/** Records the evals of the roles of the long work anew. Needed when what a role is told has changed: their test says so. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Provider } from '../../src/engine/core/ports.ts';
import { evalsOf, recordingOf, roleNames, roleTurns, runRole } from './roleRuns.ts';

const folder = mkdtempSync(join(tmpdir(), 'telos-roles-'));
try {
  for (const role of roleNames)
    for (const one of evalsOf(role)) {
      const turns = roleTurns[role][String(one.id)] ?? [];
      const provider: Provider = {
        name: 'eval',
        model: 'a scripted model',
        async *streamCompletion({ messages }) {
          yield* turns[messages.filter(message => message.role === 'assistant').length] ?? [];
        },
      };
      const { end, graded } = await runRole(role, one, () => provider, { recordTo: folder });
      const [first = '', ...rest] = readFileSync(join(folder, `${one.id}.jsonl`), 'utf8').split('\n');
      const { folder: _here, ...anywhere } = JSON.parse(first);
      const file = recordingOf(role, one);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, [JSON.stringify(anywhere), ...rest].join('\n'));
      console.log(
        role,
        one.id,
        end.outcome,
        end.error ?? '',
        graded.filter(({ passed }) => !passed),
      );
    }
} finally {
  rmSync(folder, { recursive: true });
}
