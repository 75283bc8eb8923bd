/**
 * Finds what the user asks for again and again without a skill: runs whose requests and tools are alike. Works on stored runs of this
 * machine alone, asks no model and writes nothing but what the user declined.
 */

import { join } from 'node:path';
import type { Config } from '@telos/engine/config';
import { readText, writeOwn } from '@telos/engine/files';
import { RunHistory, type RunSummary, type StoredRun } from '@telos/engine/records';
import { commonStems, type RequestWords, requestWords, sameDeed, shareOf } from './habitWords.ts';

/** Runs that are alike. */
export interface Habit {
  /** For a skill of it: letters, digits and hyphens. */
  name: string;
  /** The stems that all of its requests have. They tell it from other habits. */
  stems: readonly string[];
  /** The latest first. A request that was only said again in its conversation is not counted. */
  runs: readonly RunSummary[];
}

/** How often something is done before it counts as a habit. */
export const fewestRuns = 3;
/** Runs that are compared: the latest ones without a skill. */
const mostRuns = 400;
/** Runs that a skill is written from. */
const mostUsed = 5;
/** Share of each request that all of them have in common: where tools did the work, and where words alone did. */
const leastShared = 0.5;
const leastSharedOfWords = 0.6;
/** Words that say what it is about and that all of them have. */
const fewestTelling = 2;
/** Share of their tools that two runs have in common. */
const leastTools = 0.34;

/** Doors at which the user asks in person. */
const doors: ReadonlySet<RunSummary['door']> = new Set(['acp', 'chat', 'cli', 'discord', 'editor']);

/** Looks change nothing and reach nothing, so they say little about the work. */
const looks = new Set([
  'read_file',
  'list_directory',
  'search_files',
  'glob',
  'use_skill',
  'ask_user',
  'todo',
]);

const isAnswered = ({ door, skill, outcome, isAside, plan }: RunSummary): boolean =>
  doors.has(door) && skill === '' && outcome === 'completed' && !isAside && plan === undefined;

/** A run with what likeness needs of it. */
interface Known {
  run: RunSummary;
  words: RequestWords;
}

/**
 * Returns the habit that the run has just made one, or made one again: it is the third, sixth or ninth of its kind. Undefined if it has
 * not, or the user declined it. Throws errors of the file system.
 */
export async function newHabit(runId: string, config: Config): Promise<Habit | undefined> {
  const history = new RunHistory(config.dataDir);
  const runs = (await history.shown()).filter(isAnswered).slice(0, mostRuns);
  const own = runs.find(run => run.runId === runId);
  if (!own || runs.some(run => run.startedAt < own.startedAt && isSaidAgain(own, run))) return undefined;
  const habit = await habitOf(own, runs, history);
  if (!habit || habit.runs.length % fewestRuns !== 0) return undefined;
  const said = habit.stems.join(' ');
  return declined(config).some(stems => stems.join(' ') === said) ? undefined : habit;
}

/** Returns the habits among the latest runs, each once, the latest first. Throws errors of the file system. */
export async function habitsIn(config: Config): Promise<Habit[]> {
  const history = new RunHistory(config.dataDir);
  const runs = (await history.shown()).filter(isAnswered).slice(0, mostRuns);
  const habits: Habit[] = [];
  const taken = new Set<string>();
  for (const run of runs) {
    if (taken.has(run.runId)) continue;
    const habit = await habitOf(run, runs, history);
    if (!habit) continue;
    for (const { runId } of habit.runs) taken.add(runId);
    habits.push(habit);
  }
  return habits;
}

/** Returns the latest runs without a skill as one habit, because the user says that they are. Undefined if there are none. */
export async function latestAsHabit(count: number, config: Config): Promise<Habit | undefined> {
  const runs = (await new RunHistory(config.dataDir).shown()).filter(isAnswered);
  const used = runs
    .filter(run => !runs.some(other => other.startedAt < run.startedAt && isSaidAgain(run, other)))
    .slice(0, count);
  if (used.length === 0) return undefined;
  const words = await Promise.all(used.map(({ request }) => requestWords(request)));
  return habitFrom(used, words);
}

/** Returns the habit that a run belongs to. */
async function habitOf(
  own: RunSummary,
  runs: readonly RunSummary[],
  history: RunHistory,
): Promise<Habit | undefined> {
  const self: Known = { run: own, words: await requestWords(own.request) };
  if (self.words.telling.size === 0) return undefined;
  const others: { known: Known; shared: number }[] = [];
  // The first of its conversation says it best; those after it correct its answer.
  for (const run of runs.toReversed()) {
    const alike = [self, ...others.map(({ known }) => known)];
    if (run === own || alike.some(known => isSaidAgain(run, known.run))) continue;
    const words = await requestWords(run.request);
    const shared = likeness(self.words, words);
    if (shared >= leastShared && sameDeed(self.words, words)) others.push({ known: { run, words }, shared });
  }
  if (others.length + 1 < fewestRuns) return undefined;
  const tools = await toolsOf(await history.read(own.runId));
  const members: Known[] = [self];
  for (const { known } of others.sort((a, b) => b.shared - a.shared)) {
    const its = await toolsOf(await history.read(known.run.runId));
    if (isSameWork(tools, its, self.words, known.words) && staysTogether([...members, known], tools))
      members.push(known);
  }
  if (members.length < fewestRuns) return undefined;
  const sorted = members.sort((a, b) => (a.run.startedAt < b.run.startedAt ? 1 : -1));
  return habitFrom(
    sorted.map(({ run }) => run),
    sorted.map(({ words }) => words),
  );
}

/** Returns the share that two requests have in common, of the one that has less of it. */
function likeness(one: RequestWords, other: RequestWords): number {
  const common = commonStems([one, other]);
  return Math.min(shareOf(one, common), shareOf(other, common));
}

/** Whether the requests of all of them still have enough in common. Where tools show the same work, fewer words do. */
function staysTogether(members: readonly Known[], tools: ReadonlySet<string>): boolean {
  const words = members.map(one => one.words);
  const common = commonStems(words);
  const shared = Math.min(...words.map(each => shareOf(each, common)));
  const telling = common.filter(form => words[0]?.telling.has(form)).length;
  if (tools.size === 0) return telling >= fewestTelling && shared >= leastSharedOfWords;
  const isNearlySame = shared === 1 || (shared >= leastSharedOfWords && common.length > fewestTelling);
  return shared >= leastShared && (telling >= fewestTelling || (telling > 0 && isNearlySame));
}

/** Whether both did their work with like tools; without any, whether both were asked for work and not for an answer. */
function isSameWork(
  one: ReadonlySet<string>,
  other: ReadonlySet<string>,
  ...words: readonly [RequestWords, RequestWords]
): boolean {
  if (one.size === 0 && other.size === 0) return words.every(({ isQuestion }) => !isQuestion);
  const common = [...one].filter(tool => other.has(tool)).length;
  return common > 0 && common / (one.size + other.size - common) >= leastTools;
}

/** Returns the tools that did the work of a run, commands by their first program, such as `run_command git log`. */
async function toolsOf({ events }: StoredRun): Promise<ReadonlySet<string>> {
  const calls = events.flatMap(event => (event.type === 'tool_start' ? [event.call] : []));
  return new Set(
    calls.flatMap(({ name, input }) => {
      if (looks.has(name)) return [];
      if (name === 'edit_file') return ['write_file'];
      return name === 'run_command' ? [`run_command ${programIn(String(input['command'] ?? ''))}`] : [name];
    }),
  );
}

/** Returns the program that a command starts, with its first word where that says what is done. */
export function programIn(command: string): string {
  const words = command.replace(/^\s*(?:cd\s+\S+\s*(?:&&|;)\s*)?(?:\w+=\S*\s+)*/, '').split(/\s+/);
  const [program = '', next = ''] = words;
  return /^[a-z][a-z-]*$/.test(next) ? `${program} ${next}` : program;
}

/** Whether two requests of one conversation mean the same thing, which was only said again or in more words. */
function isSaidAgain(one: RunSummary, other: RunSummary): boolean {
  if (one === other || one.conversation !== other.conversation) return false;
  const [first, second] = [one, other].map(
    ({ request }) => new Set(request.toLowerCase().match(/[\p{L}\p{N}][^\s,;:!?]*/gu)),
  ) as [Set<string>, Set<string>];
  const isWithin = (inner: Set<string>, outer: Set<string>): boolean =>
    [...inner].every(word => outer.has(word));
  return isWithin(first, second) || isWithin(second, first);
}

function habitFrom(runs: readonly RunSummary[], words: readonly RequestWords[]): Habit {
  const stems = commonStems(words);
  const [newest] = words;
  const spelled = [...(newest?.spelled ?? [])];
  const common = spelled.filter(([form]) => stems.includes(form));
  const telling = common.filter(([form]) => newest?.telling.has(form));
  const named = telling.length > 1 ? telling : common.length > 0 ? common : spelled;
  return { name: nameOf(named.map(([, word]) => word)), stems: stems.sort(), runs };
}

function nameOf(words: readonly string[]): string {
  const plain = words
    .map(word =>
      word
        .normalize('NFKD')
        .replace(/[^a-z0-9]+/gi, '')
        .toLowerCase(),
    )
    .filter(word => word !== '');
  return plain.slice(0, 3).join('-').slice(0, 48).replace(/-+$/, '') || 'habit';
}

/** Returns the runs of a habit that a skill is written from. */
export const usedRuns = ({ runs }: Habit): readonly RunSummary[] => runs.slice(0, mostUsed);

const declinedFile = ({ dataDir }: Pick<Config, 'dataDir'>): string => join(dataDir, 'habits.json');

function declined(config: Pick<Config, 'dataDir'>): string[][] {
  try {
    const { declined: all } = JSON.parse(readText(declinedFile(config))) as { declined?: unknown };
    return Array.isArray(all) ? all.filter(Array.isArray).map(stems => stems.map(String)) : [];
  } catch {
    return [];
  }
}

/** Keeps that the user wants no skill of this habit. Only words that its requests share are kept. Throws errors of the file system. */
export async function declineHabit({ stems }: Habit, config: Config): Promise<void> {
  const all = [...declined(config), [...stems]].slice(-200);
  await writeOwn(declinedFile(config), `${JSON.stringify({ declined: all })}\n`);
}
