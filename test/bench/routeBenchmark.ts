/** Measures routing without a model on sentences whose skill is known. */

import { basename, dirname, join } from 'node:path';
import { TelosError } from '../../src/engine/core/errors.ts';
import { readText } from '../../src/engine/files/regularFile.ts';
import { Router } from '../../src/engine/routing/route.ts';
import type { Match } from '../../src/engine/routing/routeName.ts';
import { SearchIndex } from '../../src/engine/routing/searchIndex.ts';
import { TaughtLines } from '../../src/engine/routing/teaching.ts';
import type { FileAgent } from '../../src/engine/skills/discover.ts';
import { openSkill, skillFileIn } from '../../src/engine/skills/skillFile.ts';
import type { SkillRef } from '../../src/protocol/run.ts';

export interface RouteBenchmarkOptions {
  /**
   * File of JSON lines `{utterance, expected_path, candidates_dir, also_ok?}`: the sentence, the skill that is meant, the pack to
   * search.
   */
  pairsFile: string;
  /** File of JSON `{packs: {<pack>: ["<owner>/<folder>", ...]}}`. */
  packsFile: string;
  /** Folder that contains the packs' entries. */
  corpusDir: string;
  /** File of JSON lines `{utterance, candidates_dir}`: sentences that no skill of the pack fits. */
  negativesFile?: string;
  /** Data folder with the requests that skills of the same text were taught. Without it they know their own words only. */
  dataDir?: string;
}

/** Figures of one measurement. Shares are from 0 to 1. */
export interface RouteFigures {
  /** Number of sentences that mean a skill. */
  n: number;
  /** Share of sentences whose skill is first in the ranking, and share whose skill is among the first three. */
  top1: number;
  top3: number;
  /** Share of sentences whose skill would run, and share whose skill would run or be among the choices offered. */
  right: number;
  offered: number;
  /** Share of sentences for which another skill would run, and share for which none would. */
  wrong: number;
  abstained: number;
  /** Share of the negatives for which any skill would run. 0 without negatives. */
  negativesFired: number;
  /** Mean time of one decision after indexing, in milliseconds. */
  msPerRoute: number;
}

export interface RouteBenchmark {
  overall: RouteFigures;
  packs: Record<string, RouteFigures>;
}

interface Pair {
  utterance: string;
  pack: string;
  /** Entries that count as right. Empty for a negative. */
  right: readonly string[];
}

interface Tally {
  pairs: number;
  top1: number;
  top3: number;
  right: number;
  offered: number;
  wrong: number;
  abstained: number;
  negatives: number;
  fired: number;
  ms: number;
}

/** Runs the benchmark. Throws TelosError `config` if a file is not in the format or an entry has no skill file. */
export async function runRouteBenchmark(
  options: RouteBenchmarkOptions,
  signal: AbortSignal = new AbortController().signal,
): Promise<RouteBenchmark> {
  const packs = readPacks(options.packsFile);
  const pairs = readPairs(options.pairsFile, true);
  const negatives = options.negativesFile ? readPairs(options.negativesFile, false) : [];
  const sum = newTally();
  const figures: Record<string, RouteFigures> = {};
  for (const [name, entries] of packs) {
    const ofPack = [...pairs, ...negatives].filter(pair => pair.pack === name);
    const tally = await measurePack(entries, ofPack, options, signal);
    figures[name] = figuresOf(tally);
    for (const key of Object.keys(sum) as (keyof Tally)[]) sum[key] += tally[key];
  }
  const lost = [...pairs, ...negatives].find(pair => !packs.has(pair.pack));
  if (lost) throw new TelosError('config', `There is no pack '${lost.pack}' in ${options.packsFile}.`);
  return { overall: figuresOf(sum), packs: figures };
}

interface Pack {
  agents: readonly FileAgent[];
  index: SearchIndex;
  router: Router;
}

async function openPack(
  entries: readonly string[],
  { corpusDir, dataDir }: Pick<RouteBenchmarkOptions, 'corpusDir' | 'dataDir'>,
): Promise<Pack> {
  const agents = entries.map(entry => openEntry(corpusDir, entry));
  const index = await SearchIndex.build(
    agents,
    undefined,
    dataDir === undefined ? undefined : new TaughtLines(dataDir),
  );
  const router = new Router({
    mode: 'local',
    provider: async () => undefined,
    index: async () => index,
  });
  return { agents, index, router };
}

async function measurePack(
  entries: readonly string[],
  pairs: readonly Pair[],
  options: RouteBenchmarkOptions,
  signal: AbortSignal,
): Promise<Tally> {
  const { agents, index, router } = await openPack(entries, options);
  const tally = newTally();
  for (const { utterance, right } of pairs) {
    const isRight = (ref: SkillRef): boolean => right.includes(`${ref.agent}/${ref.skill}`);
    const start = performance.now();
    const result = await router.route({ text: utterance, all: agents, signal });
    tally.ms += performance.now() - start;
    const chosen = result.skill && { agent: result.agent.name, skill: result.skill.id };
    if (right.length === 0) {
      tally.negatives++;
      if (chosen) tally.fired++;
      continue;
    }
    const ranking = index
      .rank(utterance, 3)
      .map(({ agent, skill }) => ({ agent: agent.name, skill: skill.id }));
    // A skill chosen by name or by a model comes before the index's ranking, as for a person's request.
    const first = chosen && result.reason.rule !== 'index' ? [chosen, ...ranking] : ranking;
    tally.pairs++;
    if (first.slice(0, 1).some(isRight)) tally.top1++;
    if (first.slice(0, 3).some(isRight)) tally.top3++;
    if (!chosen) tally.abstained++;
    else if (isRight(chosen)) tally.right++;
    else tally.wrong++;
    if (chosen ? isRight(chosen) : !result.skill && result.choices.some(isRight)) tally.offered++;
  }
  return tally;
}

export interface ConversationBenchmarkOptions
  extends Pick<RouteBenchmarkOptions, 'packsFile' | 'corpusDir' | 'dataDir'> {
  /**
   * File of JSON lines `{pack, firstSkill, second, expect: "switch" | "stay" | "either", skill?}`: the skill that runs, the next
   * message, and what should come of it.
   */
  conversationsFile: string;
}

/** Shares of the lines that should switch, that should stay, and of all. A chip that names the right skill counts as switched. */
export interface ConversationFigures {
  n: number;
  switched: number;
  byChip: number;
  stayed: number;
  /** Share of all lines whose run would be another skill's than it should. */
  wrongSwitch: number;
  msPerRoute: number;
}

/** Measures the second message of conversations. Throws TelosError `config` if a file is not in the format. */
export async function runConversationBenchmark(
  options: ConversationBenchmarkOptions,
  signal: AbortSignal = new AbortController().signal,
): Promise<{ overall: ConversationFigures }> {
  const lines = readConversations(options.conversationsFile);
  const packs = readPacks(options.packsFile);
  const count = { switch: 0, stay: 0, either: 0, switched: 0, byChip: 0, stayed: 0, wrong: 0, ms: 0 };
  for (const name of new Set(lines.map(({ pack }) => pack))) {
    const entries = packs.get(name);
    if (!entries) throw new TelosError('config', `There is no pack '${name}' in ${options.packsFile}.`);
    const { agents, router } = await openPack(entries, options);
    for (const { firstSkill, second, expect, skill } of lines.filter(({ pack }) => pack === name)) {
      const running = runningIn(agents, firstSkill);
      if (!running) throw new TelosError('config', `There is no skill '${firstSkill}' in pack '${name}'.`);
      const start = performance.now();
      const result = await router.next(running, { text: second, all: agents, signal });
      count.ms += performance.now() - start;
      const to = result.skill ? pathOf({ agent: result.agent.name, skill: result.skill.id }) : firstSkill;
      const chip = result.skill ? result.reason.alsoFits : undefined;
      count[expect]++;
      if (expect === 'switch' && to === skill) count.switched++;
      if (expect === 'switch' && to === firstSkill && chip && pathOf(chip) === skill) count.byChip++;
      if (expect === 'stay' && to === firstSkill) count.stayed++;
      if (to !== firstSkill && to !== skill) count.wrong++;
    }
  }
  const of = (part: number, whole: number): number => (whole ? part / whole : 0);
  const n = lines.length;
  return {
    overall: {
      n,
      switched: of(count.switched + count.byChip, count.switch),
      byChip: of(count.byChip, count.switch),
      stayed: of(count.stayed, count.stay),
      wrongSwitch: of(count.wrong, n),
      msPerRoute: of(count.ms, n),
    },
  };
}

function runningIn(agents: readonly FileAgent[], path: string): Match | undefined {
  // Several entries of one owner are agents of one name.
  const agent = agents.find(
    ({ name, skills }) => skills[0] && pathOf({ agent: name, skill: skills[0].id }) === path,
  );
  const [skill] = agent?.skills ?? [];
  return agent && skill && { agent, skill, reason: { rule: 'chosen' } };
}

const pathOf = ({ agent, skill }: SkillRef): string => `${agent}/${skill}`;

/** Opens an entry as an agent with one skill. It is named after the entry's folders, so that equal names of two owners differ. */
function openEntry(corpusDir: string, entry: string): FileAgent {
  const dir = join(corpusDir, entry);
  const file = skillFileIn(dir);
  if (!file) throw new TelosError('config', `There is no SKILL.md in ${dir}, which a pack names.`);
  return {
    name: dirname(entry),
    description: '',
    skills: [openSkill(file, 'user', basename(entry))],
    packDir: dir,
    skillsDir: dir,
    workingDir: dir,
    source: 'user',
    diagnostics: [],
  };
}

const newTally = (): Tally => ({
  pairs: 0,
  top1: 0,
  top3: 0,
  right: 0,
  offered: 0,
  wrong: 0,
  abstained: 0,
  negatives: 0,
  fired: 0,
  ms: 0,
});

function figuresOf(tally: Tally): RouteFigures {
  const share = (count: number, of: number): number => (of ? count / of : 0);
  return {
    n: tally.pairs,
    top1: share(tally.top1, tally.pairs),
    top3: share(tally.top3, tally.pairs),
    right: share(tally.right, tally.pairs),
    offered: share(tally.offered, tally.pairs),
    wrong: share(tally.wrong, tally.pairs),
    abstained: share(tally.abstained, tally.pairs),
    negativesFired: share(tally.fired, tally.negatives),
    msPerRoute: share(tally.ms, tally.pairs + tally.negatives),
  };
}

function readPacks(file: string): Map<string, readonly string[]> {
  const { packs } = record(parseJson(benchmarkText(file), file));
  const entries = Object.entries(record(packs)).map(([name, list]): [string, string[]] => [
    name,
    strings(list),
  ]);
  if (entries.length === 0)
    throw new TelosError(
      'config',
      `${file} has no packs; wanted is {"packs": {"<pack>": ["<owner>/<folder>"]}}.`,
    );
  return new Map(entries);
}

function readPairs(file: string, isPositive: boolean): Pair[] {
  const pairs: Pair[] = [];
  for (const [index, line] of benchmarkText(file).split('\n').entries()) {
    if (!line.trim()) continue;
    const place = `${file}, line ${index + 1}`;
    const { utterance, candidates_dir, expected_path, also_ok } = record(parseJson(line, place));
    if (
      typeof utterance !== 'string' ||
      typeof candidates_dir !== 'string' ||
      (isPositive && typeof expected_path !== 'string')
    ) {
      const wanted = isPositive
        ? 'utterance, candidates_dir and expected_path'
        : 'utterance and candidates_dir';
      throw new TelosError('config', `${place}: wanted are ${wanted}, each a string.`);
    }
    pairs.push({
      utterance,
      pack: candidates_dir,
      right: isPositive ? [String(expected_path), ...strings(also_ok)] : [],
    });
  }
  return pairs;
}

interface ConversationLine {
  pack: string;
  firstSkill: string;
  second: string;
  expect: 'switch' | 'stay' | 'either';
  skill?: string;
}

function readConversations(file: string): ConversationLine[] {
  const lines: ConversationLine[] = [];
  for (const [index, line] of benchmarkText(file).split('\n').entries()) {
    if (!line.trim()) continue;
    const place = `${file}, line ${index + 1}`;
    const { pack, firstSkill, second, expect, skill } = record(parseJson(line, place));
    if (
      typeof pack !== 'string' ||
      typeof firstSkill !== 'string' ||
      typeof second !== 'string' ||
      (expect !== 'switch' && expect !== 'stay' && expect !== 'either') ||
      (expect === 'switch' && typeof skill !== 'string')
    )
      throw new TelosError(
        'config',
        `${place}: wanted are pack, firstSkill, second, expect (switch, stay or either), and skill for a switch.`,
      );
    lines.push({ pack, firstSkill, second, expect, ...(typeof skill === 'string' && { skill }) });
  }
  return lines;
}

function benchmarkText(file: string): string {
  try {
    return readText(file);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new TelosError('config', `The benchmark's file cannot be read: ${message}`, { cause: error });
  }
}

function parseJson(text: string, place: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new TelosError('config', `${place} is not JSON.`, { cause: error });
  }
}

const record = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};

const strings = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter(item => typeof item === 'string') : [];
