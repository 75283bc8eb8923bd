/** Draws the score by room and the breaks that nothing noticed. */
import { roomOf } from '../importRules.ts';
import { shortName } from '../map.ts';
import type { Break } from './breaks.ts';
import type { Outcome, Tried } from './tryBreaks.ts';

const columns = ['noticed', 'timed out', 'survived', 'not covered', 'equivalent'] as const;

/** Returns one line for each room and one for all. The score leaves out the files that no test loads, and what changes nothing. */
export function drawTable(tried: readonly Tried[]): string {
  const rooms = new Map<string, Tried[]>();
  for (const one of tried) {
    const name = shortName(roomOf(one.one.file));
    rooms.set(name, [...(rooms.get(name) ?? []), one]);
  }
  const rows = [...rooms].sort(([one], [other]) => one.localeCompare(other));
  const head = ['room'.padEnd(18), 'score', ...columns].join('  ');
  return [head, ...[...rows, ['all', tried] as const].map(([name, some]) => drawRow(name, some))].join('\n');
}

function drawRow(name: string, tried: readonly Tried[]): string {
  const counted = columns.map(outcome => `${countOf(tried, outcome)}`.padStart(outcome.length));
  return [name.padEnd(18), scoreOf(tried).padStart(5), ...counted].join('  ');
}

function scoreOf(tried: readonly Tried[]): string {
  const noticed = countOf(tried, 'noticed') + countOf(tried, 'timed out');
  const all = noticed + countOf(tried, 'survived');
  return all === 0 ? '-' : `${Math.round((100 * noticed) / all)} %`;
}

const countOf = (tried: readonly Tried[], outcome: Outcome): number =>
  tried.filter(one => one.outcome === outcome).length;

/** Returns the breaks that survived, in the order of their files, and the files that no test loads. */
export function drawSurvivors(tried: readonly Tried[]): string {
  const of = (outcome: Outcome): Tried[] =>
    tried
      .filter(one => one.outcome === outcome)
      .sort(({ one }, { one: other }) => one.file.localeCompare(other.file) || one.start - other.start);
  const unreached = new Set(of('not covered').map(({ one }) => one.file));
  return [
    ...of('survived').map(
      ({ one, tests }) => `survived${tests === 0 ? ' (no test executes it)' : ''}: ${lineOf(one)}`,
    ),
    ...[...unreached].map(file => `not covered by a test that runs from the sources: ${file}`),
    '',
  ].join('\n');
}

export const lineOf = ({ file, line, kind, before, after }: Break): string =>
  `${file}:${line} ${kind}\n  - ${before}\n  + ${after}`;
