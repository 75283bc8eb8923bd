/** Runs one eval once: from its recording, or with a model, and then judges what it has come to. */

import { existsSync } from 'node:fs';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { shellWord } from '@telos/engine/files';
import {
  type FrontendProviders,
  type Provider,
  type RecordedEval,
  type Recording,
  type RunTape,
  readRecording,
} from '@telos/engine/providers';
import { denyAll, type Human } from '@telos/engine/run';
import { type FileAgent, skillDigest } from '@telos/engine/skills';
import type { RunEvent, SkillRef } from '@telos/protocol/run';
import { applyCheck, type Graded, type RunFacts } from './checks.ts';
import { type EvalCase, inputsDigest } from './evalFile.ts';
import { type Configuration, type EvaluatedSkill, type EvalWorld, openWorld } from './evalWorld.ts';
import type { Judge } from './judge.ts';
import { recordedUse, type Stale, type StrictReplay, staleText, strictReplay } from './strictReplay.ts';
import { lastWords, outputsOf, transcriptOf, writtenFiles } from './transcript.ts';

/** The request of an eval, as the engine takes it. */
export interface EvalRequest {
  text: string;
  skill: SkillRef;
  withoutContextFiles: true;
  recordTo?: string;
  recordedEval?: RecordedEval;
  tape?: RunTape;
}

/** Opens an engine on the configuration of one run, with its agent and its model alone. */
export type OpenEngine = (
  config: Config,
  parts: { agents: readonly FileAgent[]; providers: FrontendProviders },
) => { run(request: EvalRequest, human: Human, signal: AbortSignal): AsyncIterable<RunEvent> };

/** One run of an eval. */
export interface EvalRun {
  one: EvaluatedSkill;
  /** The version that runs in the configuration `old_skill`. */
  earlier?: EvaluatedSkill | undefined;
  eval: EvalCase;
  configuration: Configuration;
  /** Counts from 1. */
  run: number;
  model: string;
}

/** Returns the version of the skill that runs. */
const running = ({ one, earlier, configuration }: EvalRun): EvaluatedSkill =>
  (configuration === 'old_skill' && earlier) || one;

/** A call that would have needed a yes, or that the rules refuse. */
export interface Denial {
  tool: string;
  rule: string;
}

export interface EvalResult extends EvalRun {
  /** `stale`: nothing is known, as the recording no longer fits. `unfinished`: a model or the budget failed, which is no result. */
  status: 'graded' | 'stale' | 'unfinished';
  stale?: Stale;
  /** Why it is unfinished. */
  error?: { code: string; message: string };
  /** Checks first, then expectations. Empty unless it is graded. */
  graded: readonly Graded[];
  denials: readonly Denial[];
  outcome: string;
  tokens: number;
  cost: number | undefined;
  toolCalls: number;
  /** How long it took when it was recorded, in milliseconds. */
  durationMs: number;
  calls: ReadonlyMap<string, number>;
  changed: readonly string[];
  /** Files that the run has written, by path, as far as they are small. */
  outputs: ReadonlyMap<string, Buffer>;
  /** All that the run has said, called, read and written, for a judge and a report. */
  transcript: string;
  /** The worker that has made the run. Undefined if this machine has. */
  worker?: string;
}

/** Returns what is wrong with a run that has not passed, a line each. */
export function problemsOf({
  status,
  stale,
  error,
  outcome,
  graded,
  denials,
}: Pick<EvalResult, 'status' | 'stale' | 'error' | 'outcome' | 'graded' | 'denials'>): string[] {
  if (stale) return [`is stale: ${staleText(stale)}`];
  if (status === 'unfinished') return [`did not end: ${error?.message ?? outcome}`];
  return [
    ...graded
      .filter(({ passed }) => passed !== true)
      .map(({ text, passed, evidence }) => `${passed === false ? '' : 'not graded: '}${text} (${evidence})`),
    ...denials.map(({ tool, rule }) => `${tool} was refused by the rule ${rule}`),
  ];
}

/** Returns true if everything that is expected has passed and nothing was refused. */
export const hasPassed = ({ status, graded, denials }: EvalResult): boolean =>
  status === 'graded' && denials.length === 0 && graded.every(({ passed }) => passed === true);

export interface RunParts {
  config: Config;
  open: OpenEngine;
  judge: Judge;
}

/** Plays a recording. Throws TelosError `config` if it cannot be read, and the abort reason on abort. */
export async function replayEval(
  run: EvalRun,
  file: string,
  parts: RunParts,
  signal: AbortSignal,
): Promise<EvalResult> {
  const recording = readRecording(file);
  const old = await outdated(recording, run);
  if (old) return { ...nothing(run), status: 'stale', stale: old };
  return inWorld(run, parts.config, async world => {
    const replay = strictReplay(recording, {
      home: world.home,
      pack: world.agent.packDir,
    });
    const done = await carryOut(run, world, replay.provider, { tape: replay.tape }, parts, signal);
    return finish({ ...done, ...recordedUse(recording), ...timeOf(recording) }, world, parts, signal, replay);
  });
}

/** Runs with a model, and records the run in a file. Throws the abort reason on abort. */
export async function liveEval(
  run: EvalRun,
  provider: Provider,
  recordTo: string,
  parts: RunParts,
  signal: AbortSignal,
): Promise<EvalResult> {
  return inWorld(run, parts.config, async world => {
    const inputs = await inputsDigest(run.eval);
    const {
      eval: { id },
      configuration,
    } = run;
    const recordedEval = { id: String(id), configuration, run: run.run, inputs };
    const done = await carryOut(run, world, provider, { recordTo, recordedEval }, parts, signal);
    // A model that has failed at once leaves none.
    const use = existsSync(recordTo) ? recordedUse(readRecording(recordTo)) : {};
    return finish({ ...done, ...use }, world, parts, signal);
  });
}

async function inWorld(
  run: EvalRun,
  config: Config,
  work: (world: EvalWorld) => Promise<EvalResult>,
): Promise<EvalResult> {
  const { missing } = run.eval;
  if (missing) {
    const message = `${missing.join(', ')} is not in the skill's folder. Put it there, or take it out of "files".`;
    return { ...nothing(run), error: { code: 'config', message } };
  }
  const world = await openWorld(running(run), run.eval.files, run.configuration, config);
  try {
    return await work(world);
  } finally {
    await world.remove();
  }
}

/** Returns why a recording cannot answer for this skill and this eval, without playing it. */
async function outdated({ header }: Recording, run: EvalRun): Promise<Stale | undefined> {
  if (header.version !== 2 || !header.eval) return { reason: 'format' };
  if (header.eval.inputs !== (await inputsDigest(run.eval))) return { reason: 'inputs' };
  // Without the skill, nothing of it counts.
  if (run.configuration === 'without_skill') return undefined;
  return header.skillDigest === (await skillDigest(running(run).skill.dir)) ? undefined : { reason: 'skill' };
}

/** Returns how long the run took when it was recorded. */
const timeOf = ({ header }: Recording): Pick<EvalResult, 'durationMs'> => ({
  durationMs: header.eval?.durationMs ?? 0,
});

/** Returns a result that says nothing yet. */
export const nothing = (run: EvalRun): EvalResult => ({
  ...run,
  status: 'unfinished',
  graded: [],
  denials: [],
  outcome: '',
  tokens: 0,
  cost: undefined,
  toolCalls: 0,
  durationMs: 0,
  calls: new Map(),
  changed: [],
  outputs: new Map(),
  transcript: '',
});

type Done = EvalResult & { answer: string };

async function carryOut(
  run: EvalRun,
  world: EvalWorld,
  provider: Provider,
  how: Pick<EvalRequest, 'tape' | 'recordTo' | 'recordedEval'>,
  { open }: RunParts,
  signal: AbortSignal,
): Promise<Done> {
  const providers = { eval: { model: async () => provider.model, create: async () => provider } };
  const engine = open(world.config, { agents: [world.agent], providers });
  const skill = { agent: world.agent.name, skill: world.skill.id };
  const request: EvalRequest = { text: run.eval.prompt, skill, withoutContextFiles: true, ...how };
  const calls = new Map<string, number>();
  const denials: Denial[] = [];
  const done: Done = { ...nothing(run), answer: '', calls };
  for await (const event of engine.run(request, denyAll, signal)) {
    if (event.type === 'tool_start') calls.set(event.call.name, (calls.get(event.call.name) ?? 0) + 1);
    if (event.type === 'approval_request')
      denials.push({ tool: event.request.tool, rule: event.request.rule });
    // What was asked about was refused: by the person who is not there, also when it was recorded.
    if (event.type === 'tool_end' && isRefused(event, denials))
      denials.push({ tool: event.name, rule: event.policy?.rule ?? '' });
    if (event.type === 'run_end') {
      const { outcome, durationMs, toolCalls, messages, error } = event;
      Object.assign(done, { outcome, durationMs, toolCalls, ...(error && { error }) });
      done.answer = lastWords(messages);
      done.transcript = transcriptOf(messages);
    }
  }
  signal.throwIfAborted();
  return { ...done, denials, changed: await world.changed() };
}

const isRefused = (
  { name, policy }: Extract<RunEvent, { type: 'tool_end' }>,
  known: readonly Denial[],
): boolean =>
  policy?.action === 'deny' ||
  (policy?.action === 'ask' && !known.some(({ tool, rule }) => tool === name && rule === policy.rule));

async function finish(
  done: Done,
  world: EvalWorld,
  parts: RunParts,
  signal: AbortSignal,
  replay?: StrictReplay,
): Promise<EvalResult> {
  const stale = replay?.stale();
  if (stale) return { ...nothing(done), status: 'stale', stale };
  // A model that cannot be reached says nothing about a skill.
  if (done.error && ['auth', 'rate_limit', 'provider', 'budget', 'config'].includes(done.error.code))
    return { ...done, status: 'unfinished' };
  const { checks, expectations } = done.eval;
  const facts: RunFacts = { ...done, workDir: world.workDir };
  const graded: Graded[] = [];
  for (const check of checks)
    graded.push(await applyCheck(check, facts, words => checkCommand(words, done, world, parts, signal)));
  const covered = new Set(checks.map(({ covers }) => covers));
  const open = expectations.filter(text => !covered.has(text));
  const asksOutcome = checks.some(check => 'outcome' in check);
  if (done.outcome !== 'completed' && !asksOutcome)
    graded.push({ text: 'the run is completed', passed: false, evidence: `outcome: ${done.outcome}` });
  const transcript = `${done.transcript}${await writtenFiles(world.workDir, done.changed)}`;
  const { answer: _answer, ...known } = done;
  const result = { ...known, outputs: await outputsOf(world.workDir, done.changed) };
  // What expects nothing has shown nothing.
  if (checks.length + expectations.length === 0)
    graded.push({ text: 'the eval expects something', passed: undefined, evidence: 'It has no checks.' });
  if (open.length === 0) return { ...result, status: 'graded', graded, transcript };
  try {
    const judged = await parts.judge(open, { ...done, transcript }, world, signal);
    if (judged.stale) return { ...nothing(done), status: 'stale', stale: judged.stale };
    return { ...result, status: 'graded', graded: [...graded, ...judged.graded], transcript };
  } catch (error) {
    if (signal.aborted || !(error instanceof TelosError)) throw error;
    return { ...result, status: 'unfinished', error: error.runError };
  }
}

/** Has the engine decide on a command of a check and run it, as on any command. Returns why it failed. */
async function checkCommand(
  words: readonly string[],
  run: EvalRun,
  world: EvalWorld,
  { open }: RunParts,
  signal: AbortSignal,
): Promise<string | undefined> {
  const command = [...words, world.workDir].map(shellWord).join(' ');
  let isFirst = true;
  const caller: Provider = {
    name: 'check',
    model: 'check',
    recording: { model: 'check', recordedAt: '' },
    async *streamCompletion() {
      if (isFirst)
        yield { type: 'tool_call', call: { id: 'check', name: 'run_command', input: { command } } };
      yield { type: 'done', stopReason: isFirst ? 'tool_use' : 'end_turn' };
      isFirst = false;
    },
  };
  const providers = { eval: { model: async () => 'check', create: async () => caller } };
  // The skill's card covers the command, whichever configuration has run.
  const agent: FileAgent = { ...run.one.agent, workingDir: world.workDir };
  const request: EvalRequest = {
    text: 'check',
    skill: { agent: agent.name, skill: run.one.skill.id },
    withoutContextFiles: true,
  };
  let problem: string | undefined = 'The command was not run.';
  // A check may read the evals that it belongs to.
  const config: Config = { ...world.config, hiddenDirs: [] };
  for await (const event of open(config, { agents: [agent], providers }).run(request, denyAll, signal))
    if (event.type === 'tool_end')
      problem = event.result.isError
        ? `${event.policy && event.policy.action !== 'allow' ? `${event.policy.rule}: ` : ''}${event.result.content}`
        : undefined;
  return problem;
}
