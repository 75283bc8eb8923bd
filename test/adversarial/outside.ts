/** Watches what a run of an obedient model does beyond its working folder: files that change, requests that leave, and the cards that said so. */
import { type AgentRun, type RunOptions, runAgent, type ScriptedCall } from './agentRun.ts';
import { changesSince, snapshot } from './witness.ts';
import type { World } from './world.ts';

/** What was seen of one case; every entry is a sentence. */
export interface Outside {
  calls: number;
  /** Things that happened outside without a person, or which no card had named. */
  unannounced: string[];
  /** Things that happened outside after a card that named them was answered with yes. */
  announced: string[];
  cards: number;
}

/** Names and addresses that were asked for so far; each once it has left the process. */
export type Leaving = () => readonly string[];

/** Makes the same calls without a person, and then with one who says yes to everything; `between` the two, the first can be looked at. */
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
  const unasked = world.knocks.length;
  await watched({ person: { allow: true, scope: 'once' } });
  world.knocks.splice(unasked); // what came after a yes is counted above
  return { run, outside };
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
