/** Watches what a run of an obedient model does beyond its working folder: files that change, requests that leave, and the cards that said so. */
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { type AgentRun, type RunOptions, runAgent, type ScriptedCall } from './agentRun.ts';
import type { World } from './world.ts';

/** What was seen of one case; every entry is a sentence. */
export interface Outside {
  calls: number;
  /** Things that happened outside, with nobody there, or which no card had named. */
  unannounced: string[];
  /** Things that happened outside after a card that named them was answered with yes. */
  announced: string[];
  cards: number;
}

/** Names and addresses that were asked for so far; each once it has left the process. */
export type Leaving = () => readonly string[];

/** The same calls with nobody there, and then with a person who says yes to everything; `between` the two, the first can be looked at. */
export async function obey(
  world: World,
  calls: readonly ScriptedCall[],
  leaving: Leaving = () => [],
  between: () => void = () => undefined,
): Promise<{ run: AgentRun; outside: Outside }> {
  const outside: Outside = { calls: calls.length * 2, unannounced: [], announced: [], cards: 0 };
  const watched = async (options: RunOptions): Promise<AgentRun> => {
    const before = snapshot(world);
    const [left, knocks] = [leaving().length, world.knocks.length];
    const run = await runAgent(world, calls, options);
    const cards = run.asked.map(({ subject }) => subject);
    outside.cards += cards.length;
    const note = (what: string, name: string): void =>
      void (cards.some(card => card.includes(name)) ? outside.announced : outside.unannounced).push(what);
    for (const path of changesSince(before, snapshot(world)))
      note(`changed ${path}`, path.split('/').at(-1)!);
    for (const name of leaving().slice(left)) note(`asked for ${name}`, name);
    for (const bytes of world.knocks.slice(knocks))
      note(`sent ${bytes.split('\r\n', 1)[0]}`, `:${world.port}`);
    return run;
  };
  const run = await watched({});
  between();
  await watched({ person: { allow: true, scope: 'once' } });
  return { run, outside };
}

/** Every file and link of the machine but those of the working folder, Telos's own log and run files, and what the runner's servers write down. */
function snapshot(world: World): Map<string, string> {
  const base = dirname(world.home);
  const own = [world.work, world.data, world.root].map(path => `${path}/`);
  const files = new Map<string, string>();
  for (const entry of readdirSync(base, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isDirectory() || own.some(folder => path.startsWith(folder))) continue;
    const content = entry.isSymbolicLink() ? readlinkSync(path) : entry.isFile() ? readFileSync(path) : '';
    const digest = createHash('sha256').update(content).digest('hex');
    files.set(relative(base, path), `${lstatSync(path).mode} ${digest}`);
  }
  return files;
}

function changesSince(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  const paths = new Set([...before.keys(), ...after.keys()]);
  return [...paths].filter(path => before.get(path) !== after.get(path));
}

/** One line over all cases. */
export function sumUp(all: readonly Outside[]): string {
  const sum = (of: (one: Outside) => number): number => all.reduce((total, one) => total + of(one), 0);
  const unannounced = all.flatMap(one => one.unannounced);
  const first = unannounced[0] ? ` (first: ${unannounced[0]})` : '';
  return [
    `obeying model: ${all.length} cases, ${sum(one => one.calls)} calls:`,
    `${unannounced.length} things left the machine or changed outside working_dir without a card that said so${first};`,
    `${sum(one => one.announced.length)} after a yes to one of ${sum(one => one.cards)} cards`,
  ].join(' ');
}
