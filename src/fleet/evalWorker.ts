/** Does one order: finds it among what this machine's owner has installed and accepted, runs it as a local slot does, and seals the result. */

import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { lockName } from '@telos/engine/files';
import { mapStrings, openReviews, redactor, secretsIn } from '@telos/engine/policy';
import { discoverAgents, type FileAgent, isKeptBeside, lockedPack, skillDigest } from '@telos/engine/skills';
import {
  type EvalCase,
  type EvalJob,
  type EvalModel,
  type EvalResult,
  type EvaluatedSkill,
  type LocalParts,
  readEval,
  recordedRuns,
  runJob,
  SuiteBudget,
} from '@telos/evals/suite';
import { beginningOf } from '@telos/protocol/text';
import {
  carriedOf,
  type EvalAnswer,
  type EvalOrder,
  evalDigest,
  packDigest,
  readOrder,
  recordingDigest,
  sealResult,
} from './evalOrder.ts';

/** Why a worker does not do a job, in one sentence. */
class Refusal extends Error {}

export interface WorkerParts extends LocalParts {
  /** Returns a model by `provider:model` with the owner's own key, within the owner's budget of a day. Undefined if a recording answers. */
  model(name: string): Promise<EvalModel | undefined>;
  /** Says an unexpected error, on this machine alone. */
  failed(error: unknown): void;
}

/** Returns the answer to an order, of which nothing is believed. Throws the abort reason on abort. */
export async function answerOrder(
  given: unknown,
  parts: WorkerParts,
  signal: AbortSignal,
): Promise<EvalAnswer> {
  const redact = redactor(secretsIn(parts.config.env)).text;
  try {
    const order = readOrder(given);
    if (!order) throw new Refusal('The job is not one that this version of Telos knows.');
    const own = await ownJob(order, parts.config);
    const { result, spent } = await doJob(order, own, parts, signal);
    return { sealed: sealResult(mapStrings(carriedOf(result, spent), redact), order.replyTo) };
  } catch (error) {
    signal.throwIfAborted();
    const isOurs = error instanceof Refusal || error instanceof TelosError;
    if (!isOurs) parts.failed(error);
    // What the system says of a file names a path of this machine.
    const why = isOurs ? error.message : 'The run failed there; the worker says why on its own terminal.';
    return { refused: beginningOf(redact(why), 500) };
  }
}

async function doJob(
  order: EvalOrder,
  { one, eval: each, recording }: OwnJob,
  parts: WorkerParts,
  signal: AbortSignal,
): Promise<{ result: EvalResult; spent: number }> {
  const modelNamed = async (name: string): Promise<EvalModel> => {
    const model = await parts.model(name);
    if (model) return model;
    throw new Refusal('This worker plays a recording in place of a model.');
  };
  const answers = recording === undefined ? await modelNamed(order.model) : undefined;
  const judge = order.judge === undefined || !answers ? undefined : await modelNamed(order.judge);
  const model = answers?.provider.model ?? order.model;
  const run = { one, eval: each, configuration: order.configuration, run: order.run, model };
  const from: EvalJob['from'] = answers ? { answers, runs: order.run } : { recording: recording ?? '' };
  const budget = new SuiteBudget(order.maxCost);
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'telos-job-')));
  try {
    const file = join(folder, 'run.jsonl');
    const result = await runJob(
      { place: 0, run, from },
      { ...parts, budget, judge, keeps: false, file },
      signal,
    );
    // The owner's limit, and a key that is refused here, say nothing of other workers.
    const { error } = result;
    const isOwn = error?.code === 'auth' || (error?.code === 'budget' && !budget.isReached);
    if (result.status === 'unfinished' && isOwn) throw new Refusal(error.message);
    return { result, spent: budget.spent };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface OwnJob {
  one: EvaluatedSkill;
  eval: EvalCase;
  /** The recording that is played. Undefined if a model answers. */
  recording: string | undefined;
}

/** Returns the job in this machine's own files. Throws Refusal if there is anything else than was asked for, or no one has accepted it. */
async function ownJob(order: EvalOrder, config: Config): Promise<OwnJob> {
  const one = await ownSkill(order, config);
  await refuseUnaccepted(one.agent, config);
  const each = readEval(one.skill.dir, order.eval);
  const name = `The skill ${order.skill} (${order.agent})`;
  if (!each || (await evalDigest(each)) !== order.evalDigest)
    throw new Refusal(`${name} has no eval ${order.eval} here, or another one.`);
  if (order.recording === undefined) return { one, eval: each, recording: undefined };
  const recorded = recordedRuns(one, [each]).find(
    ({ run, file }) =>
      run.configuration === order.configuration &&
      run.run === order.run &&
      run.model === order.model &&
      recordingDigest(file) === order.recording,
  );
  if (!recorded) throw new Refusal(`${name} does not have this recording of its eval ${order.eval} here.`);
  return { one, eval: each, recording: recorded.file };
}

/** Returns the skill with the very files that were asked for. The agent may have another name here. */
async function ownSkill(order: EvalOrder, config: Config): Promise<EvaluatedSkill> {
  const named = discoverAgents(config).flatMap(agent =>
    agent.skills
      .filter(({ id, isDisabled }) => id === order.skill && !isDisabled)
      .map(skill => ({ agent, skill })),
  );
  if (named.length === 0)
    throw new Refusal(`The skill ${order.skill} (${order.agent}) is not installed here.`);
  const isMeant = ({ agent }: EvaluatedSkill): number => (agent.name === order.agent ? 0 : 1);
  for (const one of named.sort((a, b) => isMeant(a) - isMeant(b))) {
    if ((await skillDigest(one.skill.dir)) !== order.skillDigest) continue;
    if ((await packDigest(one.agent)) === order.packDigest) return one;
  }
  throw new Refusal(
    `The skill ${order.skill} (${order.agent}) has other files here. Install the same version of its pack.`,
  );
}

/** Throws Refusal unless the owner has accepted the agent's card, or installed the pack, and no byte has changed since. */
async function refuseUnaccepted(agent: FileAgent, config: Config): Promise<void> {
  const { state, files } = await openReviews(config).stateOf(agent);
  if (state === 'reviewed') return;
  const { packDir } = agent;
  const locked = lockedPack(join(dirname(packDir), lockName), basename(packDir));
  const there = [...files.files].filter(([path]) => !isKeptBeside(path));
  const isAsInstalled =
    locked !== undefined &&
    !files.tooLarge &&
    there.length === Object.keys(locked.files).length &&
    there.every(([path, { sha256 }]) => locked.files[path]?.slice(7, 71) === sha256);
  if (isAsInstalled) return;
  throw new Refusal(
    state === 'changed'
      ? `The files of the agent ${agent.name} have changed since the owner of this worker accepted them.`
      : `The owner of this worker has not accepted the agent ${agent.name}.`,
  );
}
