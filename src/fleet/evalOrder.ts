/** What a suite asks of a worker, and what it gets back: names and digests there, a sealed result here. Never a path, a command or a text. */

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { TelosError } from '@telos/engine/errors';
import { readRegularFile } from '@telos/engine/files';
import { FileDigests, readAgentFiles } from '@telos/engine/policy';
import { isKnown, priceOf } from '@telos/engine/providers';
import { type FileAgent, hasFilesAround, skillDigest } from '@telos/engine/skills';
import {
  type Configuration,
  configurations,
  type EvalCase,
  type EvalJob,
  type EvalModel,
  type EvalResult,
  type EvaluatedSkill,
  inputsDigest,
  judgeFileOf,
  type SuiteTerms,
} from '@telos/evals/suite';
import { beginningOf, endOf } from '@telos/protocol/text';
import { mostSealed, seal } from './sealed.ts';

/** All of it is public: the database holds it as it is. */
export interface EvalOrder {
  format: 'telos-eval-order';
  agent: string;
  skill: string;
  /** Of the skill's folder without its evals, and of the pack around it. */
  skillDigest: string;
  packDigest: string;
  /** The id of the eval, and the digest of what it starts from and expects. */
  eval: string;
  evalDigest: string;
  configuration: Configuration;
  run: number;
  /** `provider:model`, or what a recording says. */
  model: string;
  judge?: string;
  /** In US dollars. */
  maxCost?: number;
  /** Digest of the recording that is played. */
  recording?: string;
  /** The key that the result is sealed for. */
  replyTo: string;
}

/** Returns a model that is named as `provider:model` and whose key is with the workers, for its price alone. Undefined for any other name. */
export function modelElsewhere(wanted: string | undefined): EvalModel | undefined {
  const [, name = '', model = ''] = /^([\w-]+):(.+)$/s.exec(wanted ?? '') ?? [];
  if (!isKnown(name)) return undefined;
  return {
    provider: {
      name,
      model,
      // biome-ignore lint/correctness/useYield: It never answers.
      async *streamCompletion() {
        throw new TelosError('config', 'This model answers on workers only.');
      },
    },
    priceOf: tokens => priceOf(name, model, tokens),
  };
}

const sha256 = (text: string | Buffer): string => createHash('sha256').update(text).digest('hex');

/** Returns the digest of what an eval starts from and what it expects. Throws errors of the file system. */
export const evalDigest = async (one: EvalCase): Promise<string> =>
  sha256(JSON.stringify([await inputsDigest(one), one.expectedOutput, one.expectations, one.checks]));

/** Returns the digest of a recording with what its judge has said. Throws errors of the file system. */
export function recordingDigest(file: string): string {
  const judged = judgeFileOf(file);
  const contents = [file, ...(existsSync(judged) ? [judged] : [])].map(path => sha256(readRegularFile(path)));
  return sha256(contents.join('\n'));
}

/** Returns the digest of the pack around a skill, without evals and what Git keeps. Empty if nothing around the skill counts. */
export async function packDigest(agent: FileAgent): Promise<string> {
  if (agent.isForeign && !hasFilesAround(agent.packDir)) return '';
  const { files } = await readAgentFiles(agent, new FileDigests());
  const lines = [...files]
    .filter(([label]) => !/(?:^|\/)(?:evals|\.git)\//.test(label))
    .map(([label, { sha256: digest }]) => `${JSON.stringify(label)}:${digest}`);
  return sha256(lines.sort().join('\n'));
}

/** Digests of one suite: a skill is read once for all of its runs. */
export class SuiteDigests {
  readonly #known = new Map<unknown, Promise<string>>();

  /** Returns what is asked of a worker for one job. Throws errors of the file system. */
  async orderFor({ run, from }: EvalJob, terms: SuiteTerms, replyTo: string): Promise<EvalOrder> {
    const { one, eval: each, configuration } = run;
    const { judge, maxCost } = terms;
    const answers = 'answers' in from ? from.answers.provider : undefined;
    return {
      format: 'telos-eval-order',
      agent: one.agent.name,
      skill: one.skill.id,
      skillDigest: await this.#once(one.skill, () => skillDigest(one.skill.dir)),
      packDigest: await this.#once(one.agent, () => packDigest(one.agent)),
      eval: String(each.id),
      evalDigest: await this.#once(each, () => evalDigest(each)),
      configuration,
      run: run.run,
      model: answers ? `${answers.name}:${answers.model}` : run.model,
      ...(answers && judge && { judge: `${judge.provider.name}:${judge.provider.model}` }),
      ...(maxCost !== undefined && { maxCost }),
      ...('recording' in from && { recording: recordingDigest(from.recording) }),
      replyTo,
    };
  }

  #once(of: EvaluatedSkill['skill'] | FileAgent | EvalCase, make: () => Promise<string>): Promise<string> {
    const known = this.#known.get(of) ?? make();
    this.#known.set(of, known);
    return known;
  }
}

const isName = (value: unknown): value is string =>
  typeof value === 'string' && value.length > 0 && value.length <= 300;
const isDigest = (value: unknown): value is string =>
  typeof value === 'string' && /^[\da-f]{64}$/.test(value);

/** Returns the order, or undefined if what is in the row is none. */
export function readOrder(given: unknown): EvalOrder | undefined {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return undefined;
  const order = given as Partial<Record<keyof EvalOrder, unknown>>;
  const { format, agent, skill, configuration, run, model, judge, maxCost, recording, replyTo } = order;
  const isWhole =
    format === 'telos-eval-order' &&
    [agent, skill, order.eval, model].every(isName) &&
    [order.skillDigest, order.evalDigest].every(isDigest) &&
    (order.packDigest === '' || isDigest(order.packDigest)) &&
    configurations.some(known => known === configuration) &&
    Number.isInteger(run) &&
    (judge === undefined || isName(judge)) &&
    (maxCost === undefined || (typeof maxCost === 'number' && maxCost >= 0)) &&
    (recording === undefined || isDigest(recording)) &&
    typeof replyTo === 'string' &&
    /^[\w+/]{43}=$/.test(replyTo);
  return isWhole ? (order as EvalOrder) : undefined;
}

/** What a worker writes into the database: a sealed result, or the sentence that says why it refuses. */
export type EvalAnswer = { sealed: string } | { refused: string };

/** A result without what the suite knows itself. */
type Carried = Omit<
  EvalResult,
  'one' | 'eval' | 'configuration' | 'run' | 'model' | 'calls' | 'outputs' | 'worker'
> & {
  calls: [string, number][];
  /** Files by path, in base64. */
  outputs: [string, string][];
  /** In US dollars, with the judge. */
  spent: number;
};

/** Returns what of a result goes to the suite. */
export function carriedOf(result: EvalResult, spent: number): Carried {
  const {
    one: _one,
    eval: _eval,
    configuration: _with,
    run: _run,
    model: _model,
    worker: _by,
    ...rest
  } = result;
  const outputs = [...result.outputs].map(([path, bytes]): [string, string] => [
    path,
    bytes.toString('base64'),
  ]);
  return { ...rest, calls: [...result.calls], outputs, spent };
}

const cut = '\n\n[…]\n\n';

/** Returns the result for the suite with this key. Files that do not fit are left out, and the middle of a transcript that does not. */
export function sealResult(carried: Carried, replyTo: string): string {
  const whole = seal(carried, replyTo);
  if (whole.length <= mostSealed - 1_024) return whole;
  for (let most = 4_000_000; ; most = Math.floor(most / 2)) {
    const { transcript, graded } = carried;
    const shorter = transcript.length > most;
    const half = Math.floor(most / 2);
    const fitted = shorter ? beginningOf(transcript, half) + cut + endOf(transcript, half) : transcript;
    const evidence = graded.map(each => ({
      ...each,
      evidence: beginningOf(each.evidence, Math.max(most, 200)),
    }));
    const sealed = seal({ ...carried, outputs: [], transcript: fitted, graded: evidence }, replyTo);
    if (sealed.length <= mostSealed - 1_024 || most < 1_000) return sealed;
  }
}

/** Returns the result of a job, or undefined if what was in the seal is none. */
export function readResult(
  given: unknown,
  { run }: EvalJob,
  worker: string,
): { result: EvalResult; spent: number } | undefined {
  if (typeof given !== 'object' || given === null) return undefined;
  const { calls, outputs, spent, ...rest } = given as Carried;
  const { status, graded, denials, outcome, tokens, cost, toolCalls, durationMs, changed, transcript } = rest;
  const { stale, error } = rest;
  const numbers = [spent, tokens, toolCalls, durationMs, ...(cost === undefined ? [] : [cost])];
  const texts = [outcome, transcript, ...(Array.isArray(changed) ? changed : [undefined])];
  const isWhole =
    ['graded', 'stale', 'unfinished'].includes(status) &&
    numbers.every(value => Number.isFinite(value) && value >= 0) &&
    texts.every(value => typeof value === 'string') &&
    Array.isArray(graded) &&
    graded.every(one => typeof one?.text === 'string' && typeof one.evidence === 'string') &&
    Array.isArray(denials) &&
    denials.every(one => typeof one?.tool === 'string' && typeof one.rule === 'string') &&
    (status !== 'stale' || typeof stale?.reason === 'string') &&
    (error === undefined || (typeof error?.code === 'string' && typeof error.message === 'string')) &&
    Array.isArray(calls) &&
    calls.every(pair => Array.isArray(pair) && typeof pair[0] === 'string' && Number.isInteger(pair[1])) &&
    Array.isArray(outputs) &&
    outputs.every(pair => Array.isArray(pair) && isBelow(pair[0]) && typeof pair[1] === 'string');
  if (!isWhole) return undefined;
  const files = outputs.map(([path, text]): [string, Buffer] => [path, Buffer.from(text, 'base64')]);
  return {
    result: { ...rest, ...run, cost, calls: new Map(calls), outputs: new Map(files), worker },
    spent,
  };
}

/** Whether a path stays below the folder of the results on every system. */
const isBelow = (path: unknown): boolean =>
  typeof path === 'string' &&
  !/[:\0]/.test(path) &&
  path.split(/[\\/]/).every(part => part !== '' && part !== '.' && part !== '..');
