/** Writes results of evals with the names that skill-creator's viewer and scripts read, and ours in a file beside them. */

import { existsSync, readdirSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import { describeFileError, isSensitive, obeyedAt, writeWhole } from '@telos/engine/files';
import { skillDigest } from '@telos/engine/skills';
import type { SkillRef } from '@telos/protocol/run';
import { sentence } from '@telos/protocol/text';
import { figuresOf, type SuiteFigures } from './benchmark.ts';
import { type Configuration, configurations, type EvaluatedSkill } from './evalWorld.ts';
import { type EvalResult, hasPassed } from './runEval.ts';
import { parsed, textOf } from './triggerFile.ts';

/** What came of the evals of one skill. */
export interface SkillResults {
  one: EvaluatedSkill;
  results: readonly EvalResult[];
  /** Where the results are kept. */
  folder: string;
  /** Where the earlier version is from, in words, if one has run too. */
  earlier?: string | undefined;
}

/** Returns benchmark.json: its field names are those of skill-creator, exactly. */
function benchmarkOf({ skill }: EvaluatedSkill, results: readonly EvalResult[], now: Date) {
  const graded = results.filter(({ status }) => status === 'graded');
  const models = [...new Set(graded.map(({ model }) => model))];
  const idOf = idsOf(graded);
  return {
    metadata: {
      skill_name: skill.name,
      skill_path: skill.dir,
      executor_model: models.join(', '),
      analyzer_model: '',
      timestamp: now.toISOString().replace(/\.\d+Z$/, 'Z'),
      evals_run: [...new Set(graded.map(result => idOf(result.eval)))],
      runs_per_configuration: Math.max(0, ...graded.map(({ run }) => run)),
    },
    runs: numbered(graded).map(([result, run_number]) => ({
      eval_id: idOf(result.eval),
      eval_name: result.eval.name ?? String(result.eval.id),
      configuration: result.configuration,
      run_number,
      result: { ...summaryOf(result), ...useOf(result) },
      expectations: expectationsOf(result),
      notes: notesOf(result),
    })),
    run_summary: summariesOf(graded),
    notes: figuresOf(graded).saysNothing.map(
      text => `"${text}" passes in both configurations, so it says nothing of the skill.`,
    ),
  };
}

/** Returns the id of an eval for the files of others, whose scripts sort ids and stop where numbers and texts are mixed. */
function idsOf(results: readonly EvalResult[]): (one: EvalResult['eval']) => string | number {
  const areNumbers = results.every(({ eval: { id } }) => typeof id === 'number');
  return ({ id }) => (areNumbers ? id : String(id));
}

/** Returns the results with the numbers of their runs, counted over all models. */
function numbered(results: readonly EvalResult[]): [EvalResult, number][] {
  const counts = new Map<string, number>();
  return results.map(result => {
    const key = JSON.stringify([result.eval.id, result.configuration]);
    const number = (counts.get(key) ?? 0) + 1;
    counts.set(key, number);
    return [result, number];
  });
}

function summaryOf({ graded, denials }: EvalResult) {
  const passed = graded.filter(one => one.passed === true).length;
  const total = graded.length + denials.length;
  return { pass_rate: total === 0 ? 1 : rounded(passed / total), passed, failed: total - passed, total };
}

const useOf = ({ durationMs, tokens, toolCalls, denials }: EvalResult) => ({
  time_seconds: rounded(durationMs / 1000),
  tokens,
  tool_calls: toolCalls,
  errors: denials.length,
});

/** A refused call is an expectation that was not met. */
const expectationsOf = ({ graded, denials }: EvalResult) => [
  ...graded.map(({ text, passed, evidence }) => ({
    text,
    passed: passed === true,
    evidence: passed === undefined ? `not graded: ${evidence}` : evidence,
  })),
  ...denials.map(({ tool, rule }) => ({
    text: `${tool} is allowed`,
    passed: false,
    evidence: `refused by the rule ${rule}`,
  })),
];

const notesOf = ({ model }: EvalResult): string[] => [`model: ${model}`];

function summariesOf(results: readonly EvalResult[]) {
  const columns = configurations.flatMap(name => {
    const own = results.filter(({ configuration }) => configuration === name);
    if (own.length === 0) return [];
    const stats = {
      pass_rate: statsOf(own.map(result => summaryOf(result).pass_rate)),
      time_seconds: statsOf(own.map(({ durationMs }) => durationMs / 1000)),
      tokens: statsOf(own.map(({ tokens }) => tokens)),
    };
    return [[name, stats] as const];
  });
  const found = Object.fromEntries(columns) as Partial<Record<Configuration, (typeof columns)[0][1]>>;
  const other = found.without_skill ?? found.old_skill;
  const change = (of: 'pass_rate' | 'time_seconds' | 'tokens', digits: number): string => {
    const difference = (found.with_skill?.[of].mean ?? 0) - (other?.[of].mean ?? 0);
    return `${difference < 0 ? '-' : '+'}${Math.abs(difference).toFixed(digits)}`;
  };
  const delta = {
    pass_rate: change('pass_rate', 2),
    time_seconds: change('time_seconds', 1),
    tokens: change('tokens', 0),
  };
  return { ...found, delta };
}

function statsOf(values: readonly number[]) {
  const mean = values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const stddev = values.length > 1 ? Math.sqrt(squares / (values.length - 1)) : 0;
  const [min, max] = [Math.min(...values), Math.max(...values)];
  return { mean: rounded(mean), stddev: rounded(stddev), min: rounded(min), max: rounded(max) };
}

const rounded = (value: number): number => Math.round(value * 10_000) / 10_000;

/**
 * Writes the results of one skill into their folder: benchmark.json, telos.json, and grading.json and timing.json of each run. Returns a
 * sentence for each file of a run that could not be kept. Throws errors of the file system.
 */
export async function writeResults(
  { one, results, folder, earlier }: SkillResults,
  now: Date,
): Promise<string[]> {
  const left: string[] = [];
  const write = async (path: string, value: unknown): Promise<void> => {
    await mkdir(join(folder, path, '..'), { recursive: true });
    await writeWhole(join(folder, path), `${JSON.stringify(value, null, 2)}\n`);
  };
  const graded = results.filter(({ status }) => status === 'graded');
  const evals = [...new Set(graded.map(result => result.eval))];
  const idOf = idsOf(graded);
  for (const [index, one] of evals.entries()) {
    const { id, name, prompt, expectations } = one;
    const own = graded.filter(result => result.eval === one).map(({ configuration }) => configuration);
    // The script that adds up looks for it with the eval, the viewer beside the runs.
    for (const folder of ['', ...new Set(own)])
      await write(join(`eval-${index + 1}`, folder, 'eval_metadata.json'), {
        eval_id: idOf(one),
        eval_name: name ?? String(id),
        prompt,
        assertions: expectations,
      });
  }
  for (const [result, number] of numbered(graded)) {
    const run = `eval-${evals.indexOf(result.eval) + 1}/${result.configuration}/run-${number}`;
    await write(`${run}/grading.json`, gradingOf(result));
    await write(`${run}/timing.json`, timingOf(result));
    await mkdir(join(folder, run, 'outputs'), { recursive: true });
    left.push(...(await keepOutputs(join(folder, run, 'outputs'), result)));
    await writeWhole(join(folder, run, 'transcript.md'), `${result.transcript}\n`);
  }
  const stored: StoredResults = {
    format: 'telos-evals',
    version: 1,
    agent: one.agent.name,
    skill: one.skill.id,
    skillDigest: await skillDigest(one.skill.dir),
    recordedAt: now.toISOString(),
    ...(earlier !== undefined && { earlier }),
    figures: figuresOf(results),
    runs: results.map(storedRun),
  };
  await write('telos.json', stored);
  // Last, since its presence says that the folder is whole.
  await write('benchmark.json', benchmarkOf(one, results, now));
  return left;
}

/** Writes the files of a run. Returns a sentence for each that could not be kept: no name of theirs may lose the other results. */
async function keepOutputs(folder: string, { outputs }: EvalResult): Promise<string[]> {
  const left: string[] = [];
  for (const [path, bytes] of outputs) {
    const file = join(folder, keptName(path));
    try {
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, bytes, { mode: 0o600, flag: 'wx' });
    } catch (error) {
      left.push(`A file of a run is left out. ${describeFileError(error, file)}`);
    }
  }
  return left;
}

/**
 * Returns the name under which a file of a run is kept. What programs or agents obey, such as .git/config, has a name that nothing obeys:
 * the folder may lie in a project, and whoever can write to the database of the workers can forge a result.
 */
function keptName(path: string): string {
  const isObeyed = obeyedAt(path, path) !== undefined || isSensitive(path);
  return isObeyed ? `kept-${path.replace(/[^\w.-]+/g, '_').slice(-150)}.kept` : path;
}

function gradingOf(result: EvalResult) {
  const { calls, toolCalls, transcript, denials } = result;
  return {
    expectations: expectationsOf(result),
    summary: summaryOf(result),
    execution_metrics: {
      tool_calls: Object.fromEntries(calls),
      total_tool_calls: toolCalls,
      errors_encountered: denials.length,
      transcript_chars: transcript.length,
    },
  };
}

const timingOf = ({ tokens, durationMs }: EvalResult) => ({
  total_tokens: tokens,
  duration_ms: durationMs,
  total_duration_seconds: durationMs / 1000,
});

/** One run in telos.json. */
export interface StoredRun
  extends Pick<
    EvalResult,
    | 'configuration'
    | 'model'
    | 'run'
    | 'status'
    | 'stale'
    | 'error'
    | 'outcome'
    | 'tokens'
    | 'cost'
    | 'durationMs'
    | 'denials'
    | 'graded'
    | 'worker'
  > {
  eval: string | number;
  name: string;
  /** The line of the eval in its file. */
  line: number;
  passed: boolean;
}

/** telos.json: what skill-creator's files have no place for. */
export interface StoredResults {
  format: 'telos-evals';
  version: 1;
  agent: string;
  skill: string;
  /** Digest of the skill's folder without its evals. */
  skillDigest: string;
  recordedAt: string;
  /** Where the earlier version is from, in words. Missing if none has run. */
  earlier?: string;
  figures: SuiteFigures;
  runs: readonly StoredRun[];
}

function storedRun(result: EvalResult): StoredRun {
  const { configuration, model, run, status, stale, error, outcome } = result;
  const { tokens, cost, durationMs, denials, graded, worker, eval: known } = result;
  return {
    eval: known.id,
    name: known.name ?? String(known.id),
    line: known.line,
    configuration,
    model,
    run,
    status,
    outcome,
    tokens,
    cost,
    durationMs,
    denials,
    graded,
    passed: hasPassed(result),
    ...(stale && { stale }),
    ...(error && { error }),
    ...(worker !== undefined && { worker }),
  };
}

const plain = (text: string): string => text.replace(/[^\w.-]+/g, '-');

/** Returns the folder's name of a skill's results. */
export const resultsName = ({ agent, skill }: SkillRef): string => plain(`${agent}.${skill}`);

/** Returns the folder in which the results of a skill lie, each in one of its own. A card covers what is in a pack. */
export const resultsPlace = (dataDir: string, one: SkillRef): string =>
  join(dataDir, 'evals', resultsName(one));

/** Returns the newest results of a skill. Undefined if there are none. Throws TelosError `config` if they cannot be read. */
export function latestResults(dataDir: string, one: SkillRef): StoredResults | undefined {
  const place = resultsPlace(dataDir, one);
  const names = existsSync(place) ? readdirSync(place).sort().reverse() : [];
  const newest = names.find(name => existsSync(join(place, name, 'telos.json')));
  return newest === undefined ? undefined : readResults(join(place, newest));
}

/** Returns the results of a folder. Throws TelosError `config` if it has none that can be read. */
export function readResults(folder: string): StoredResults {
  const file = join(folder, 'telos.json');
  const content = parsed(textOf(file), file) as Partial<StoredResults> | null;
  if (content?.format !== 'telos-evals' || content.version !== 1 || !Array.isArray(content.runs))
    throw new TelosError('config', [
      sentence('{0} has no results of evals that this version of Telos can read.', file),
    ]);
  return content as StoredResults;
}
