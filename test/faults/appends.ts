/** Several processes that write to one log, and that name one run, at the same moment: every line must be there, whole. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { logPath, readLog } from '../../src/engine/records/logFile.ts';
import { parseLine, runPath } from '../../src/engine/records/runFile.ts';
import { RunHistory } from '../../src/engine/records/runHistory.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import type { Extent, Figure } from './figure.ts';

const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

export async function appendFigures(extent: Extent): Promise<Figure[]> {
  const [processes, linesEach] = extent === 'whole' ? [8, 20] : [4, 5];
  return [await records(processes, linesEach), await names(processes, linesEach)];
}

/** So many processes with the same arguments behind a name of their own; true when all ended well. They have loaded all they need, and start together. */
async function together(program: string, processes: number, args: readonly string[]): Promise<boolean> {
  const children = Array.from({ length: processes }, (_, index) =>
    spawn(process.execPath, [script(program), `p${index}`, ...args], { stdio: ['pipe', 'pipe', 'inherit'] }),
  );
  const exits = children.map(child => once(child, 'exit'));
  await Promise.all(children.map(child => once(child.stdout, 'data')));
  for (const child of children) child.stdin.end();
  return (await Promise.all(exits)).every(([code]) => code === 0);
}

async function records(processes: number, recordsEach: number): Promise<Figure> {
  const recordBytes = 2_000_000;
  const folder = tempFolder();
  const file = logPath(folder.path);
  try {
    const isWell = await together('appendProcess.ts', processes, [
      file,
      String(recordsEach),
      String(recordBytes),
    ]);
    const { records, skipped } = await readLog(file);
    const whole = new Set(
      records.flatMap(record =>
        record.event === 'skill_end' && String(record.messages[0]?.content).length === recordBytes
          ? [record.run_id]
          : [],
      ),
    );
    const wanted = processes * recordsEach;
    return {
      name: `${processes} processes that append ${recordsEach} records of 2 MB`,
      value: `${whole.size} of ${wanted} parse, ${skipped} lines do not`,
      limit: 'all of them',
      met: whole.size === wanted && skipped === 0 && isWell,
    };
  } finally {
    folder.remove();
  }
}

async function names(processes: number, namesEach: number): Promise<Figure> {
  const runId = 'run-1';
  const header = {
    type: 'run',
    version: 1,
    runId,
    conversation: runId,
    door: 'cli',
    startedAt: '2026-01-01T00:00:00Z',
  };
  const end = { type: 'run_end', outcome: 'completed', rounds: 1, toolCalls: 0, durationMs: 1, messages: [] };
  const folder = tempFolder({
    // Its last line is whole but for the line feed.
    [`runs/${runId}.jsonl`]: `${JSON.stringify({ ...header, request: 'go', pid: 1 })}\n${JSON.stringify(end)}`,
  });
  try {
    const isWell = await together('nameProcess.ts', processes, [folder.path, runId, String(namesEach)]);
    const lines = readFileSync(runPath(folder.path, runId) ?? '', 'utf8')
      .trimEnd()
      .split('\n')
      .map(parseLine);
    const titles = new Set(lines.map(line => (line?.type === 'title' ? line.title : undefined)));
    const wanted = processes * namesEach;
    const { summary, skippedLines } = await new RunHistory(folder.path).read(runId);
    return {
      name: `${processes} processes that give one run ${namesEach} names`,
      value: `${titles.size - 1} of ${wanted} are in its file, ${skippedLines} lines cannot be read; it is shown as ${summary.outcome}, named ${summary.title}`,
      limit: 'all of them, and the run as it was',
      met:
        titles.size - 1 === wanted &&
        skippedLines === 0 &&
        isWell &&
        summary.outcome === 'completed' &&
        titles.has(summary.title),
    };
  } finally {
    folder.remove();
  }
}
