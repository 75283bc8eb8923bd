/** Commands that do not want to end: in every shape of process, ended by the clock and by cancelling, and one that prints for ever. */
import { setTimeout as delay } from 'node:timers/promises';
import { createCommandTool } from '../../src/engine/tools/command.ts';
import type { ToolContext } from '../../src/engine/tools/tool.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import type { Figure } from './figure.ts';
import { canSeeProcesses, processesWith } from './processTable.ts';

/** Placeholder for the number by which a shape's processes are known. */
const shapes: readonly { name: string; command: string }[] = [
  { name: 'plain', command: 'sleep WORD' },
  { name: '&', command: 'sleep WORD & sleep WORD' },
  { name: 'nohup', command: 'nohup sleep WORD >/dev/null 2>&1 & sleep WORD' },
  { name: 'trap TERM', command: 'trap "" TERM; (trap "" TERM; sleep WORD) & while :; do sleep WORD; done' },
  { name: 'setsid', command: 'setsid sh -c "trap \'\' TERM; sleep WORD; sleep WORD" & sleep WORD' },
  { name: 'double fork', command: '(setsid sh -c "setsid sleep WORD & sleep WORD &" &) ; sleep WORD' },
];
const ends = ['timeout', 'cancel'] as const;
const leftLimitMs = 5_000;
const cancelLimitMs = 500;

/** Every shape ended in both ways, all at once. */
export async function processShapeFigures(): Promise<Figure[]> {
  const name = 'process shapes by timeout and by cancel';
  const limit = 'none left after 5 s';
  if (!canSeeProcesses)
    return [{ name, limit, value: 'processes are counted in /proc, which is not here', met: undefined }];
  const folder = tempFolder();
  const problems: string[] = [];
  let slowest = 0;
  let slowestCancel = 0;
  try {
    let word = 91_000 + (process.pid % 800) * 10;
    const each = shapes.flatMap(shape => ends.map(end => ({ ...shape, end, word: String(word++) })));
    await Promise.all(
      each.map(async one => {
        const { stopped, answered, gone } = await endOne(one, folder.path);
        if (gone === undefined) problems.push(`${one.name} by ${one.end} left something`);
        else slowest = Math.max(slowest, gone - stopped);
        if (one.end === 'cancel') slowestCancel = Math.max(slowestCancel, answered - stopped);
      }),
    );
  } finally {
    folder.remove();
  }
  return [
    {
      name,
      value: `${problems.length} of ${shapes.length * ends.length} left something${problems[0] ? ` (${problems.join('; ')})` : ''}; the slowest was gone after ${Math.round(slowest)} ms, cancelled ones were answered after ${Math.round(slowestCancel)} ms (wanted are about ${cancelLimitMs})`,
      limit,
      met: problems.length === 0,
    },
  ];
}

interface Ended {
  stopped: number;
  answered: number;
  gone: number | undefined;
}

async function endOne(
  { command, end, word }: { command: string; end: (typeof ends)[number]; word: string },
  folder: string,
): Promise<Ended> {
  const stop = new AbortController();
  const timeoutMs = end === 'timeout' ? 1_000 : 60_000;
  const started = performance.now();
  const result = createCommandTool({ timeoutMs })
    .execute({ command: command.replaceAll('WORD', word) }, contextIn(folder, stop.signal))
    .catch(() => undefined);
  await delay(1_000 - (performance.now() - started));
  const stopped = performance.now();
  const seen = processesWith('cmdline', word).length;
  if (end === 'cancel') {
    if (seen === 0) throw new Error(`The command of '${word}' did not start.`);
    stop.abort();
  }
  await result;
  const answered = performance.now();
  while (performance.now() - stopped < leftLimitMs) {
    if (processesWith('cmdline', word).length === 0) return { stopped, answered, gone: performance.now() };
    await delay(50);
  }
  for (const { pid } of processesWith('cmdline', word)) process.kill(pid, 'SIGKILL');
  return { stopped, answered, gone: undefined };
}

/** `yes` as fast as it can, and a slower one that the clock has to end; both by the tool as every run has it. */
export async function endlessOutputFigures(): Promise<Figure[]> {
  const folder = tempFolder();
  const run = async (command: string): Promise<{ seconds: number; last: string }> => {
    const started = performance.now();
    const context = contextIn(folder.path, new AbortController().signal);
    const { content } = await createCommandTool().execute({ command }, context);
    return { seconds: (performance.now() - started) / 1000, last: content.split('\n').at(-1) ?? '' };
  };
  try {
    const [fast, slow] = await Promise.all([
      run('yes'),
      run('yes | while read -r y; do echo $y; sleep 0.2; done'),
    ]);
    const figure = (name: string, { seconds, last }: typeof fast): Figure => ({
      name,
      value: `stopped after ${seconds.toFixed(2)} s: ${last}`,
      limit: 'stopped by 61 s',
      met: seconds <= 61 && last.startsWith('['),
    });
    return [figure('`yes` for ever', fast), figure('a slow `yes` for ever', slow)];
  } finally {
    folder.remove();
  }
}

function contextIn(folder: string, signal: AbortSignal): ToolContext {
  return {
    workingDir: folder,
    packDir: folder,
    skillDir: folder,
    commandDir: folder,
    env: { PATH: process.env['PATH'] ?? '', HOME: folder },
    signal,
  };
}
