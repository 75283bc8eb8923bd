/** Tries a proposed edit of a skill: the same requests and evals with the text as it is, and with the text as it would be. */

import { cp, mkdir, mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative, sep } from 'node:path';
import { type FileAgent, openSkill } from '@telos/engine/skills';
import type { EvalCase } from './evalFile.ts';
import type { EvaluatedSkill } from './evalWorld.ts';
import type { Defect, Proposal } from './proposal.ts';
import { type EvalResult, hasPassed, problemsOf } from './runEval.ts';
import { type LiveOptions, liveSuite, replaySuite } from './runSuite.ts';
import { runTriggers, type TriggerOptions, type TriggerResult } from './runTriggers.ts';
import { type LocalParts, localSlots } from './slots.ts';
import { readTriggers, refuseLinkOut } from './triggerFile.ts';

/** One request or eval with both texts. Undefined where nothing is known: it was not run, or did not end. */
export interface Tried {
  kind: 'request' | 'eval';
  name: string;
  /** In its file, from 1. */
  line: number;
  before: boolean | undefined;
  after: boolean | undefined;
  /** What is wrong with the new text, a line each. */
  problems: readonly string[];
}

/** A copy of the skill with the proposed text, in a temporary folder. Its agent is the same, with the same accepted card. */
export interface ProposedSkill {
  one: EvaluatedSkill;
  remove(): Promise<void>;
}

/** Returns a copy without what Git keeps. Throws errors of the file system. */
export async function copyProposed(
  { agent, skill }: EvaluatedSkill,
  { after }: Proposal,
): Promise<ProposedSkill> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'telos-proposal-')));
  const dir = join(root, basename(skill.dir));
  const isOfGit = (path: string): boolean => relative(skill.dir, path).split(sep)[0] === '.git';
  await cp(skill.dir, dir, {
    recursive: true,
    verbatimSymlinks: true,
    filter: path => !isOfGit(path),
  });
  const file = join(dir, basename(skill.file));
  // A link would lead the text back to where it came from.
  await rm(file, { force: true });
  await writeFile(file, after);
  const copy = openSkill(file, skill.source, skill.id);
  const skills = agent.skills.map(each => (each.file === skill.file ? copy : each));
  return {
    one: { agent: { ...agent, skills }, skill: copy },
    remove: () => rm(root, { recursive: true, force: true }),
  };
}

/** Returns the requests of the skill's trigger.json with both texts. `all` are the agents that compete. Throws as `runTriggers` does. */
export async function tryTriggers(
  one: EvaluatedSkill,
  proposed: EvaluatedSkill,
  all: readonly FileAgent[],
  options: TriggerOptions,
  signal: AbortSignal,
): Promise<Tried[]> {
  const triggers = readTriggers(one.skill.dir) ?? [];
  if (triggers.length === 0) return [];
  const others = (agent: FileAgent): readonly FileAgent[] =>
    all.map(each => (each.name === agent.name ? agent : each));
  const resultsOf = async (each: EvaluatedSkill): Promise<readonly TriggerResult[]> => {
    const measured = [{ ...each, triggers }];
    for await (const { results } of runTriggers(measured, () => others(each.agent), options, signal))
      return results;
    return [];
  };
  const before = await resultsOf(one);
  const after = await resultsOf(proposed);
  return triggers.map(({ query, line }, index) => ({
    kind: 'request',
    name: query,
    line,
    before: before[index]?.passed,
    after: after[index]?.passed,
    problems: [],
  }));
}

/** Returns the evals of which it is known from their recordings whether they pass as the skill is. */
export async function knownBefore(
  one: EvaluatedSkill,
  evals: readonly EvalCase[],
  parts: LocalParts,
  signal: AbortSignal,
): Promise<Map<EvalCase, boolean>> {
  const results: EvalResult[] = [];
  for await (const result of replaySuite([{ one, evals }], localSlots(parts), signal)) results.push(result);
  return passedAmong(results);
}

/** Returns which evals pass. Left out is one of which a run says nothing. */
function passedAmong(results: readonly EvalResult[]): Map<EvalCase, boolean> {
  const own = results.filter(({ configuration }) => configuration === 'with_skill');
  const unknown = new Set(own.flatMap(one => (one.status === 'graded' ? [] : [one.eval])));
  const passed = new Map<EvalCase, boolean>();
  for (const result of own)
    if (!unknown.has(result.eval))
      passed.set(result.eval, (passed.get(result.eval) ?? true) && hasPassed(result));
  return passed;
}

/**
 * Runs with a model the evals that are not `known`, as the skill is, and all of them as it would be. The recordings of these stay with the
 * copy. Throws the errors of `liveSuite`.
 */
export async function tryEvals(
  one: EvaluatedSkill,
  proposed: EvaluatedSkill,
  evals: readonly EvalCase[],
  known: ReadonlyMap<EvalCase, boolean>,
  options: Omit<LiveOptions, 'keeps' | 'withBaseline'>,
  parts: LocalParts,
  signal: AbortSignal,
): Promise<Tried[]> {
  const run = async (each: EvaluatedSkill, some: readonly EvalCase[], keeps: boolean) => {
    const results: EvalResult[] = [];
    const how = { ...options, keeps, withBaseline: false };
    for await (const result of liveSuite([{ one: each, evals: some }], how, localSlots(parts), signal))
      results.push(result);
    return results;
  };
  const open = evals.filter(each => !known.has(each));
  const before = new Map([...known, ...passedAmong(await run(one, open, false))]);
  const results = await run(proposed, evals, true);
  const after = passedAmong(results);
  return evals.map(each => ({
    kind: 'eval',
    name: each.name ?? each.prompt,
    line: each.line,
    before: before.get(each),
    after: after.get(each),
    problems: results
      .filter(result => result.eval === each && !hasPassed(result))
      .flatMap(result => problemsOf(result)),
  }));
}

/** Returns how many pass with each text, of those that are known with both, and what passes with the old text alone. */
export function compared(tried: readonly Tried[]): {
  n: number;
  before: number;
  after: number;
  worse: readonly Tried[];
} {
  const both = tried.filter(({ before, after }) => before !== undefined && after !== undefined);
  return {
    n: both.length,
    before: both.filter(({ before }) => before).length,
    after: both.filter(({ after }) => after).length,
    worse: both.filter(({ before, after }) => before && !after),
  };
}

/** Takes the recordings that were made with the proposed text into the skill, once that has it. Throws errors of the file system. */
export async function keepRecordings(one: EvaluatedSkill, { one: { skill } }: ProposedSkill): Promise<void> {
  const from = join(skill.dir, 'evals', 'recordings');
  const to = join(one.skill.dir, 'evals', 'recordings');
  const names = await readdir(from).catch(() => []);
  if (names.length > 0) await mkdir(to, { recursive: true });
  for (const name of names) {
    refuseLinkOut(one.skill.dir, dirname(join(to, name)));
    await cp(join(from, name), join(to, name));
  }
}

/** Skills beside the tested one whose names the model gets. */
const mostNeighbours = 5;

/**
 * Returns what is wrong with the routing of a skill's requests, for `proposalRequest`. Undefined if all of them pass, or it has none.
 * Throws as `runTriggers` does.
 */
export async function routingDefect(
  one: EvaluatedSkill,
  all: readonly FileAgent[],
  options: TriggerOptions,
  signal: AbortSignal,
): Promise<Defect | undefined> {
  const triggers = readTriggers(one.skill.dir) ?? [];
  for await (const { results } of runTriggers([{ ...one, triggers }], () => all, options, signal)) {
    const failed = results.filter(({ passed }) => !passed);
    if (failed.length === 0) return undefined;
    const refs = failed.flatMap(({ ran, lead, offered }) => [ran ?? lead?.skill, ...offered]);
    const near = all.flatMap(agent =>
      agent.skills.filter(
        skill =>
          skill.id !== one.skill.id && refs.some(ref => ref?.agent === agent.name && ref.skill === skill.id),
      ),
    );
    return {
      ...{
        part: 'description',
        triggers,
        failures: failed.filter(({ split }) => split !== 'validation').map(failureText),
      },
      neighbours: near.slice(0, mostNeighbours).map(({ id, description }) => ({ name: id, description })),
    };
  }
  return undefined;
}

function failureText({ query, shouldTrigger, ran, lead }: TriggerResult): string {
  const wanted = shouldTrigger ? 'should run it' : 'should not run it';
  const did = ran ? `runs ${ran.skill}` : 'runs no skill';
  const words = lead && lead.words.length > 0 ? `, which alone has: ${lead.words.join(', ')}` : '';
  return `- "${query}" ${wanted}, and ${did}${words}`;
}
