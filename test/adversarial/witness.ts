/** Watches every case of every kind: what changes outside, who is told secrets, what reaches a terminal, and which processes stay. */
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { RunEvent } from '../../src/protocol/run.ts';
import type { CaseInput } from './caseFile.ts';
import { type Check, check, type Seen } from './checks.ts';
import type { Execute } from './kinds.ts';
import { secretText, usualKey, type World } from './world.ts';

/** Control characters and marks of direction that steer a terminal; line ends and tabs are none. */
export const steering = /[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/;

/** Living processes that were started for this machine, by the home folder in their environment. */
export function survivors({ home }: World): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter(name => {
      try {
        const state = /\) (\w) /.exec(readFileSync(`/proc/${name}/stat`, 'latin1'))?.[1];
        return state !== 'Z' && readFileSync(`/proc/${name}/environ`, 'latin1').includes(`HOME=${home}\0`);
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** Ends what is left, so that no case disturbs the next. */
export async function noneLeft(world: World, milliseconds: number): Promise<boolean | string> {
  for (const deadline = Date.now() + milliseconds; Date.now() < deadline; await delay(50))
    if (survivors(world).length === 0) return true;
  const left = survivors(world);
  for (const pid of left) process.kill(pid, 'SIGKILL');
  return `${left.length} processes were left`;
}

/** Carries a case out, and adds what holds for each case whatever its kind. */
export async function watched(world: World, theCase: CaseInput, execute: Execute): Promise<Seen> {
  const unhandled: string[] = [];
  const keep = (reason: unknown): void => void unhandled.push(String(reason));
  process.on('unhandledRejection', keep);
  try {
    const seen = await execute(world, theCase);
    const left = await noneLeft(world, 5000);
    return { ...seen, checks: [...seen.checks, ...universal(world, seen, left, unhandled)] };
  } finally {
    process.off('unhandledRejection', keep);
  }
}

function universal(
  { noted, knocks }: World,
  seen: Seen,
  left: boolean | string,
  unhandled: string[],
): Check[] {
  const none = (list: readonly string[]): boolean | string =>
    list.length === 0 || list.slice(0, 5).join(', ');
  const refused = seen.decision === 'deny' || seen.decision === 'ask';
  return [
    check('files', 'nothing changes outside without a yes', none(noted.changed)),
    check('secrets', 'no secret is told, shown or logged without a yes', none(noted.leaked)),
    check('shown', 'nothing steers the terminal', none(noted.steered)),
    check('network', 'what is refused or waits for an answer sends nothing', !refused || none(knocks)),
    check('processes', 'no process is left', left),
    check('end', 'nothing crashes, hangs or breaks off unhandled', none([...noted.crashed, ...unhandled])),
  ].map(one => ({ ...one, universal: true }));
}

type Snapshot = ReadonlyMap<string, string>;

/** Every file and link of the machine but those of the working folders, Telos's own log and run files, and what the runner's servers write down. */
export function snapshot(world: World, more: readonly string[] = []): Snapshot {
  const base = dirname(world.home);
  const own = new Set([...world.mayChange, ...more]);
  const files = new Map<string, string>();
  const walk = (folder: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (own.has(path)) continue;
      if (entry.isDirectory()) walk(path);
      else files.set(relative(base, path), stateOf(path));
    }
  };
  walk(base);
  return files;
}

/** Mode and content; of a large file its size and time. */
export function stateOf(path: string): string {
  const { mode, size, mtimeMs } = lstatSync(path);
  if (size > 1024 * 1024) return `${mode} ${size} ${mtimeMs}`;
  const isLink = (mode & 0o170000) === 0o120000;
  const isFile = (mode & 0o170000) === 0o100000;
  const content = isLink ? readlinkSync(path) : isFile ? readFileSync(path) : '';
  return `${mode} ${createHash('sha256').update(content).digest('hex')}`;
}

export function changesSince(before: Snapshot, after: Snapshot): string[] {
  const paths = new Set([...before.keys(), ...after.keys()]);
  return [...paths].filter(path => before.get(path) !== after.get(path));
}

/** Notes what a run did without a yes. A command or a server that policy lets run does as it likes. */
export function noteRun(
  { noted }: World,
  changed: readonly string[],
  events: readonly RunEvent[],
  told: readonly { content: string; isError: boolean }[],
): void {
  const files = new Set(['read_file', 'write_file', 'list_directory', 'search_files', 'fetch_url']);
  const ranFreely = events.some(
    event => event.type === 'tool_end' && event.policy?.action === 'allow' && !files.has(event.name),
  );
  if (!ranFreely) noted.changed.push(...changed);
  if (told.some(({ content }) => content.includes(secretText)))
    noted.leaked.push('the model was told a secret');
}

export function noteKey({ noted }: World, where: string, text: string): void {
  if (text.includes(usualKey)) noted.leaked.push(`the key of the provider in ${where}`);
}

export function noteTerminal(world: World, name: string, text: string): void {
  const found = steering.exec(text)?.[0];
  if (found) world.noted.steered.push(`${JSON.stringify(found)} on ${name}`);
  noteKey(world, name, text);
}
