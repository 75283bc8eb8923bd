/** Several processes that write to one log at the same moment: every record must be there, whole. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { logPath, readLog } from '../../src/engine/logFile.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import type { Extent, Figure } from './figure.ts';

const program = fileURLToPath(new URL('appendProcess.ts', import.meta.url));

export async function appendFigures(extent: Extent): Promise<Figure[]> {
  const [processes, recordsEach] = extent === 'whole' ? [8, 20] : [4, 5];
  const recordBytes = 2_000_000;
  const folder = tempFolder();
  const file = logPath(folder.path);
  try {
    const children = Array.from({ length: processes }, (_, index) =>
      spawn(process.execPath, [program, file, `p${index}`, String(recordsEach), String(recordBytes)], {
        stdio: ['pipe', 'pipe', 'inherit'],
      }),
    );
    const exits = children.map(child => once(child, 'exit'));
    // They have loaded all they need, and start together.
    await Promise.all(children.map(child => once(child.stdout, 'data')));
    for (const child of children) child.stdin.end();
    const codes = (await Promise.all(exits)).map(([code]) => code as number);
    const { records, skipped } = await readLog(file);
    const whole = new Set(
      records.flatMap(record =>
        record.event === 'skill_end' && String(record.messages[0]?.content).length === recordBytes
          ? [record.run_id]
          : [],
      ),
    );
    const wanted = processes * recordsEach;
    return [
      {
        name: `${processes} processes that append ${recordsEach} records of 2 MB`,
        value: `${whole.size} of ${wanted} parse, ${skipped} lines do not`,
        limit: 'all of them',
        met: whole.size === wanted && skipped === 0 && codes.every(code => code === 0),
      },
    ];
  } finally {
    folder.remove();
  }
}
