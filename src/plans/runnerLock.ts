/**
 * Lets one runner at a time work on a plan. Each runner has a file with a number that grows, and the highest is the one that works:
 * who takes over makes the next, which succeeds for one alone. No one moves or deletes a file that could be another's present one.
 */

import { randomUUID } from 'node:crypto';
import { lstatSync, readdirSync } from 'node:fs';
import { rm, utimes } from 'node:fs/promises';
import {
  createWhole,
  isStillRunning,
  jsonLine,
  type ProcessIdentity,
  readText,
  thisProcess,
  writeWhole,
} from '@telos/engine/files';
import type { PlanFolder } from './planFolder.ts';

/** The runner that works on a plan, or the last one that did. */
export interface Runner extends ProcessIdentity {
  /** What everything that it starts has in its environment as `TELOS_PLAN_RUNNER`. */
  mark: string;
  /** Where it was started: `cli`, `editor` and the like. */
  door: string;
  /** ISO 8601. */
  since: string;
  /** It has ended by itself. */
  ended?: true;
}

/** In milliseconds. A runner on another machine that has not beaten for `patience` is dead; one on this machine was asleep. */
const beatInterval = 2_000;
const patience = 10_000;
/** In milliseconds. A beat that lies further ahead is none. */
const largestSetBack = 24 * 3_600_000;

export interface RunnerLock {
  mark: string;
  /** Who held the plan before, if it did not end by itself. */
  previous: Runner | undefined;
  /** Aborts once another runner has the plan, or the file is gone. Nothing may be written then. */
  lost: AbortSignal;
  /**
   * Returns for how long nothing worked on the plan since it was asked last, in milliseconds: the machine slept, or the runner before
   * was killed. 0 if something did.
   */
  away(): number;
  /** Looks at the disk. Ask right before a step that cannot be taken back. */
  isOurs(): boolean;
  release(): Promise<void>;
}

export type TakenRunner = { kind: 'taken'; lock: RunnerLock } | { kind: 'busy'; runner: Runner };

/** Takes the plan for this process. Throws the error of the file system if its folder cannot be written. */
export async function takeRunner(folder: PlanFolder, door: string): Promise<TakenRunner> {
  for (;;) {
    const present = latest(folder);
    if (present && isAlive(present)) return { kind: 'busy', runner: present.runner };
    const number = (present?.number ?? 0) + 1;
    if (present && number > highest) {
      // Nobody has counted as far as that: it came along with the folder.
      await removeLock(folder, present.number);
      continue;
    }
    const previous = present?.runner.ended ? undefined : present?.runner;
    // A mark goes on until a runner ends by itself: one that is killed while it takes over has not ended what the one before left.
    const mark = previous?.mark || randomUUID();
    const runner: Runner = { ...thisProcess(), mark, door, since: new Date().toISOString() };
    if (!(await createWhole(fileOf(folder, number), `${JSON.stringify(runner)}\n`))) continue;
    // The file of this number may have been deleted when a higher one was made meanwhile.
    if (numbersIn(folder).at(-1) !== number) {
      await removeLock(folder, number);
      continue;
    }
    for (const lower of numbersIn(folder)) if (lower < number) await removeLock(folder, lower);
    return { kind: 'taken', lock: hold(folder, number, runner, previous && present) };
  }
}

/** Returns the runner that works on the plan now, or undefined if none does. */
export function readRunner(folder: PlanFolder): Runner | undefined {
  const present = latest(folder);
  return present && isAlive(present) ? present.runner : undefined;
}

const fileOf = (folder: PlanFolder, number: number): string => folder.path(`runner.${number}.lock`);

/** The largest number of a runner: it has nine digits. */
const highest = 999_999_999;

function numbersIn(folder: PlanFolder): number[] {
  const shape = /^runner\.([1-9]\d{0,8})\.lock$/;
  const numbers = readdirSync(folder.dir).flatMap(name => shape.exec(name)?.[1] ?? []);
  return numbers.map(Number).sort((one, other) => one - other);
}

/** What came along with the folder may be a folder too. */
const removeLock = (folder: PlanFolder, number: number): Promise<void> =>
  rm(fileOf(folder, number), { force: true, recursive: true });

interface Found {
  number: number;
  runner: Runner;
  /** Time of its last beat. */
  beatAt: number;
}

const mostBytes = 64 * 1024;

/** A file that says nothing readable belongs to no one, nor does a link. */
const unknown: Runner = {
  pid: 0,
  boot: '',
  namespace: '',
  started: '',
  mark: '',
  door: '',
  since: '',
  ended: true,
};

function latest(folder: PlanFolder): Found | undefined {
  for (;;) {
    const number = numbersIn(folder).at(-1);
    if (number === undefined) return undefined;
    try {
      const file = fileOf(folder, number);
      const stats = lstatSync(file);
      const isReadable = stats.isFile() && stats.size <= mostBytes;
      const runner = isReadable ? jsonLine(readText(file, mostBytes), asRunner) : undefined;
      return { number, runner: runner ?? unknown, beatAt: stats.mtimeMs };
    } catch (error) {
      // Its successor has just deleted it.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
}

function asRunner(value: unknown): Runner | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const fields = value as Record<string, unknown>;
  const texts = ['boot', 'namespace', 'started', 'mark', 'door', 'since'];
  const isRunner = Number.isInteger(fields['pid']) && texts.every(key => typeof fields[key] === 'string');
  // All that carries the mark is ended, so one that came with the folder must not be a part of another's.
  const isMarked = isRunner && (fields['mark'] === '' || /^[\da-f-]{36}$/.test(String(fields['mark'])));
  return isMarked ? (value as Runner) : undefined;
}

function isAlive({ runner, beatAt }: Found): boolean {
  if (runner.ended) return false;
  // A process of this machine is known for sure. Elsewhere only the beat says it; a clock that was put back counts as a beat.
  const age = Date.now() - beatAt;
  return isStillRunning(runner) ?? (age < patience && age > -largestSetBack);
}

/** `previous` is the runner that did not end by itself. */
function hold(folder: PlanFolder, number: number, runner: Runner, previous: Found | undefined): RunnerLock {
  const file = fileOf(folder, number);
  const text = `${JSON.stringify(runner)}\n`;
  const lost = new AbortController();
  const isOurs = (): boolean => {
    try {
      return numbersIn(folder).at(-1) === number && readText(file) === text;
    } catch {
      return false;
    }
  };
  let away = 0;
  let beatAt = previous?.beatAt ?? Date.now();
  const notice = (now: number): void => {
    const missed = now - beatAt - beatInterval;
    if (missed > patience) away += missed;
    beatAt = now;
  };
  notice(Date.now());
  const beat = setInterval(() => {
    const now = new Date();
    notice(now.getTime());
    if (isOurs()) void utimes(file, now, now).catch(() => undefined);
    else lost.abort();
  }, beatInterval).unref();
  return {
    mark: runner.mark,
    previous: previous?.runner,
    away() {
      notice(Date.now());
      const message = away;
      away = 0;
      return message;
    },
    lost: lost.signal,
    isOurs,
    async release() {
      clearInterval(beat);
      // It stays, so that the numbers grow for ever.
      if (isOurs()) await writeWhole(file, `${JSON.stringify({ ...runner, ended: true })}\n`, isOurs);
    },
  };
}
