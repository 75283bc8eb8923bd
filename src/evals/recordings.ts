/** Finds and keeps the recordings of a skill's evals: `evals/recordings/<eval>.<configuration>.<model>.<run>.jsonl`. */

import { readdirSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readText, writeWhole } from '@telos/engine/files';
import { readRecording } from '@telos/engine/providers';
import type { EvalCase } from './evalFile.ts';
import { type Configuration, configurations, type EvaluatedSkill } from './evalWorld.ts';
import type { EvalRun } from './runEval.ts';
import { refuseLinkOut } from './triggerFile.ts';

export interface RecordedRun {
  file: string;
  run: EvalRun;
}

const folderOf = (skillDir: string): string => join(skillDir, 'evals', 'recordings');

const plain = (text: string): string => text.replace(/[^\w.-]+/g, '-').slice(0, 80);

/** Returns the name of a run's recording without its ending. */
const nameOf = ({ eval: { id }, configuration, model, run }: EvalRun): string =>
  [plain(String(id)), configuration, plain(model), run].join('.');

/** Returns the file with what a judge has said of a recorded run. */
export const judgeFileOf = (recording: string): string => recording.replace(/\.jsonl$/, '.judge.jsonl');

/**
 * Returns the recorded runs of a skill's evals, in the order of the evals. A recording of an eval that is gone is left out. Throws
 * TelosError `config` if one cannot be read.
 */
export function recordedRuns(one: EvaluatedSkill, evals: readonly EvalCase[]): RecordedRun[] {
  const folder = folderOf(one.skill.dir);
  const found = namesIn(folder).flatMap(name => {
    const file = join(folder, name);
    for (const place of [file, judgeFileOf(file)]) refuseLinkOut(one.skill.dir, place);
    const { header } = readRecording(file);
    const known = evals.find(({ id }) => String(id) === header.eval?.id);
    const configuration = configurations.find(each => each === header.eval?.configuration);
    if (!known || !configuration || !header.eval) return [];
    const {
      model,
      eval: { run },
    } = header;
    return [{ file, run: { one, eval: known, configuration, model, run } }];
  });
  const place = ({ run }: RecordedRun): string =>
    [
      String(evals.indexOf(run.eval)).padStart(5, '0'),
      run.model,
      configurations.indexOf(run.configuration),
      String(run.run).padStart(5, '0'),
    ].join(' ');
  return found.sort((a, b) => (place(a) < place(b) ? -1 : 1));
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter(name => name.endsWith('.jsonl') && !name.endsWith('.judge.jsonl'));
  } catch {
    return [];
  }
}

/** Keeps a run that has ended, with what the judge has said of it. Throws errors of the file system. */
export async function keepRecording(
  run: EvalRun,
  recorded: { file: string; judged: string },
  durationMs: number,
): Promise<void> {
  const { dir } = run.one.skill;
  const target = join(folderOf(dir), `${nameOf(run)}.jsonl`);
  // A pack must not choose where a recording is written.
  for (const place of [folderOf(dir), target, judgeFileOf(target)]) refuseLinkOut(dir, place);
  await mkdir(folderOf(dir), { recursive: true });
  const [first = '', ...turns] = readText(recorded.file).split('\n');
  const header = JSON.parse(first);
  header.eval = { ...header.eval, durationMs };
  await writeWhole(target, [JSON.stringify(header), ...turns].join('\n'));
  const judged = textOf(recorded.judged);
  if (judged === undefined) await rm(judgeFileOf(target), { force: true });
  else await writeWhole(judgeFileOf(target), judged);
}

function textOf(file: string): string | undefined {
  try {
    return readText(file);
  } catch {
    return undefined;
  }
}

/** Removes recordings of an eval with a number that is not run any more. Throws errors of the file system. */
export async function forgetRuns(
  one: EvaluatedSkill,
  evalCase: EvalCase,
  made: { configuration: Configuration; model: string; runs: number },
): Promise<void> {
  for (const { file, run } of recordedRuns(one, [evalCase])) {
    if (run.configuration !== made.configuration || run.model !== made.model || run.run <= made.runs)
      continue;
    await rm(file, { force: true });
    await rm(judgeFileOf(file), { force: true });
  }
}
