/** Runs the evals of skills for `telos eval`: from recordings, or with models, and prints and keeps what they have come to. */

import { readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { Telos } from '@telos/engine/telos';
import { resultsName, resultsPlace, type SkillResults, writeResults } from '@telos/evals/report';
import {
  asInstalled,
  type EvalModel,
  type EvalResult,
  type EvaluatedSkill,
  expectedCost,
  hasPassed,
  judgeBeside,
  type LiveOptions,
  liveSuite,
  localSlots,
  type OpenEngine,
  plannedRuns,
  readEvals,
  replaySuite,
  type SkillEvals,
  type Slots,
} from '@telos/evals/suite';
import {
  importDatabaseAddress,
  importDbos,
  importEvalOrder,
  importFleetDatabase,
  importRemoteSlots,
} from '@telos/fleet/executors';
import { counted } from '@telos/protocol/text';
import type { KnownSkill } from './evalBaseline.ts';
import { evalLines, exitCodes } from './evalTable.ts';
import { type Surroundings, typedPath } from './surroundings.ts';
import type { Terminal } from './terminal.ts';
import { agrees } from './terminalHuman.ts';
import { terminalLine, terminalText } from './terminalText.ts';

/** Options of `telos eval` for runs. `baseline` is `none`, `previous`, or a folder with another version. */
export interface EvalRunOptions {
  record?: boolean;
  live?: boolean;
  runs?: number;
  models?: string;
  baseline?: string;
  judge?: string;
  maxCost?: string;
  output?: string;
  yes?: boolean;
  json?: boolean;
  ci?: boolean;
  /** The address of a database, or true for the one of the environment. */
  workers?: string | true;
  label?: string;
  wait?: boolean;
  /** Of Telos. */
  version?: string;
}

/** Returns the skills that have evals. Those of `fresh` are not installed. Throws TelosError `config` if the evals of one cannot be read. */
export const withEvals = (
  chosen: readonly EvaluatedSkill[],
  fresh: EvaluatedSkill['agent'] | undefined,
): SkillEvals[] =>
  chosen.flatMap(each => {
    const evals = readEvals(each.skill.dir);
    if (!evals || evals.length === 0) return [];
    return [{ one: each.agent === fresh ? asInstalled(each) : each, evals }];
  });

/** Returns the results of all skills, and the exit code. Throws the errors of `replaySuite`, `liveSuite` and `previousVersion`. */
export async function runEvals(
  all: readonly SkillEvals[],
  config: Config,
  options: EvalRunOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<{ code: number; skills: SkillResults[] }> {
  if (options.record && options.workers !== undefined)
    throw new TelosError(
      'config',
      '--record keeps recordings, which workers do not send back. Use --live with --workers.',
    );
  const { baseline, workers } = options;
  // A worker runs the skill as its owner has it, and has no other version of it.
  if (workers !== undefined && baseline !== undefined && baseline !== 'none')
    throw new TelosError(
      'config',
      'Workers run a skill as it is installed with them, and no earlier version. Leave out --workers or --baseline.',
    );
  if (baseline === undefined || baseline === 'none' || all.length === 0)
    return runAll(
      all.map(evals => ({ evals })),
      config,
      options,
      terminal,
      signal,
    );
  const { withEarlier } = await import('./evalBaseline.ts');
  const known = await withEarlier(all, baseline, config, terminal, signal);
  try {
    return await runAll(known, config, options, terminal, signal);
  } finally {
    for (const { version } of known) await version?.dispose();
  }
}

async function runAll(
  known: readonly KnownSkill[],
  config: Config,
  options: EvalRunOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<{ code: number; skills: SkillResults[] }> {
  const all = known.map(({ evals }) => evals);
  const live = options.record || options.live ? await liveOptions(config, options) : undefined;
  if (live && !(await goesOn(all, live, options, terminal))) return { code: exitCodes.usage, skills: [] };
  const open: OpenEngine = (own, parts) => Telos.open(own, parts);
  const fleet = options.workers === undefined ? undefined : await fleetOf(options, config, terminal, signal);
  const slots = fleet?.slots ?? localSlots({ config, open });
  const running = live ? liveSuite(all, live, slots, signal) : replaySuite(all, slots, signal);
  const call = { startedAt: new Date(), surroundings: terminal.surroundings };
  const results: EvalResult[] = [];
  const resultsOf = (): SkillResults[] =>
    known.flatMap(({ evals: { one }, version }) => {
      const own = results.filter(result => result.one === one);
      const folder = folderOf(one, config, options, call);
      return own.length > 0 ? [{ one, results: own, folder, earlier: version?.from }] : [];
    });
  try {
    for await (const result of running) {
      results.push(result);
      if (live) terminal.say(terminalText(`${results.length}: ${progressText(result)}`));
    }
  } finally {
    // What is done is kept, also if the rest is stopped.
    for (const left of await keepAll(resultsOf(), options)) terminal.say(terminalText(left));
    await fleet?.close();
  }
  const skills = resultsOf();
  if (!options.json && !options.ci)
    for (const each of skills) terminal.out(evalLines(each, options, terminal));
  return { code: codeOf(results), skills };
}

/** Returns the exit code. A budget that ended it comes before a failure, and that before what is stale. */
function codeOf(results: readonly EvalResult[]): number {
  if (results.some(({ error, status }) => status === 'unfinished' && error?.code === 'budget'))
    return exitCodes.budget;
  // Without the skill, nothing need pass.
  const mine = results.filter(({ configuration }) => configuration === 'with_skill');
  if (results.some(({ status }) => status === 'unfinished')) return exitCodes.failed;
  if (mine.some(result => result.status === 'graded' && !hasPassed(result))) return exitCodes.failed;
  return results.some(({ status }) => status === 'stale') ? exitCodes.stale : exitCodes.passed;
}

const progressText = (result: EvalResult): string =>
  `${result.one.skill.id} ${result.eval.id} ${result.configuration} ${result.model} ${
    result.status === 'graded' ? (hasPassed(result) ? 'passed' : 'failed') : result.status
  }${result.worker === undefined ? '' : ` on ${result.worker}`}`;

/** Returns the slots of the workers. Throws TelosError `config` if their database cannot be used. */
async function fleetOf(
  { workers, label, version = '', wait: waits = false }: EvalRunOptions,
  config: Config,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<{ slots: Slots; close(): Promise<void> }> {
  const [{ databaseAddress, databaseVariable }, { loadDbos }, { FleetDatabase }, { remoteSlots }] =
    await Promise.all([importDatabaseAddress(), importDbos(), importFleetDatabase(), importRemoteSlots()]);
  const address = databaseAddress(workers === true ? config.env[databaseVariable] : workers);
  await loadDbos(config.dataDir);
  // Other programs can read the arguments of this one.
  process.title = 'telos eval';
  const log = (line: string): void => terminal.say(terminalLine(line));
  const database = await FleetDatabase.open(address, log, signal);
  return { slots: remoteSlots({ database, version, label, waits, log }), close: () => database.close() };
}

/** Returns what `--record` and `--live` need. Throws TelosError `config` if a model cannot be had. */
async function liveOptions(config: Config, options: EvalRunOptions): Promise<LiveOptions> {
  const { maxCost, ...budget } = config.budget;
  const telos = Telos.open({ ...config, budget });
  const elsewhereOf = async (wanted: string | undefined): Promise<EvalModel | undefined> =>
    options.workers === undefined ? undefined : (await importEvalOrder()).modelElsewhere(wanted);
  const modelOf = async (wanted: string | undefined): Promise<EvalModel> => {
    const elsewhere = await elsewhereOf(wanted);
    if (elsewhere) return elsewhere;
    const model = await telos.asideModel(wanted);
    if (model) return model;
    throw new TelosError(
      'config',
      options.workers === undefined
        ? 'A recording answers, so there is no model to run evals with. Set one up.'
        : 'Name the models as provider:model, with --models and --judge (or --judge none). Their keys are with the workers.',
    );
  };
  const wanted = options.models?.split(',').map(name => name.trim()) ?? [undefined];
  const models: EvalModel[] = [];
  for (const name of wanted) models.push(await modelOf(name));
  const judge = options.judge ?? judgeBeside(models);
  const [first] = models;
  const isElsewhere = options.workers !== undefined && judge !== undefined && !judge.includes(':');
  const judging = isElsewhere && first ? `${first.provider.name}:${judge}` : judge;
  const runs = options.runs ?? 3;
  return {
    models,
    judge: judge === 'none' ? undefined : await modelOf(judging),
    runs,
    withBaseline: options.baseline !== 'none',
    maxCost: options.maxCost === undefined ? maxCost : Number(options.maxCost),
    keeps: options.record === true,
  };
}

/** Returns true if the runs shall be made: `--yes`, or a person who has read what they cost. */
async function goesOn(
  all: readonly SkillEvals[],
  live: LiveOptions,
  { yes }: EvalRunOptions,
  terminal: Terminal,
): Promise<boolean> {
  if (yes) return true;
  const runs = plannedRuns(all, live);
  const cost = expectedCost(runs, all);
  const price =
    cost === 'unknown' ? 'at a price that is not known' : `about $${cost.toFixed(2)} at list prices`;
  const about = `${counted(runs.length, 'run')} of ${counted(
    all.reduce((total, { evals }) => total + evals.length, 0),
    'eval',
  )} with ${live.models.map(({ provider }) => provider.model).join(', ')}, ${price}.`;
  const alone = `${about} Nothing was run. Use --yes to go on without being asked.`;
  return agrees(terminalText(about), 'Go on?', terminalText(alone), terminal);
}

/** Returns the folder of a skill's results: below the one that is named, or one of the data folder. */
function folderOf(
  { agent, skill }: EvaluatedSkill,
  config: Config,
  { output }: EvalRunOptions,
  { startedAt, surroundings }: { startedAt: Date; surroundings: Surroundings },
): string {
  const one = { agent: agent.name, skill: skill.id };
  return output === undefined
    ? join(resultsPlace(config.dataDir, one), startedAt.toISOString().replace(/[:.]/g, '-'))
    : join(typedPath(output, surroundings), resultsName(one));
}

/** Older results of a skill than these are removed. */
const mostKept = 20;

/** Returns sentences about files that could not be kept. */
async function keepAll(all: readonly SkillResults[], options: EvalRunOptions): Promise<string[]> {
  const left: string[] = [];
  for (const each of all) {
    const { folder } = each;
    // A folder that is named has the results of this call alone.
    for (const name of namesIn(folder).filter(isOfResults)) await rm(join(folder, name), { recursive: true });
    left.push(...(await writeResults(each, new Date())));
    if (options.output !== undefined) continue;
    const old = namesIn(join(folder, '..')).sort().slice(0, -mostKept);
    for (const name of old) await rm(join(folder, '..', name), { recursive: true, force: true });
  }
  return left;
}

const isOfResults = (name: string): boolean => /^(?:eval-\d+|benchmark\.json|telos\.json)$/.test(name);

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
