/** Keeps the schedules of a person, one file for each, so that two windows and the scheduler never overwrite each other's. */

import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentCard } from '@telos/protocol/agentCard';
import type { RunOutcome, SkillRef } from '@telos/protocol/run';
import { sentence } from '@telos/protocol/text';
import { reasonOf, TelosError } from '../core/errors.ts';
import { createWhole, makeOwnFolders, writeOwn } from '../files/atomicWrite.ts';
import type { ProcessIdentity } from '../files/liveProcess.ts';
import { errorCode } from '../files/paths.ts';
import { lockFile, readSettings } from '../files/settingsFile.ts';
import { parseRule } from './rule.ts';

/** What carries a schedule: the system's scheduler, or with `none` Telos itself while the editor or the bot is open. */
const clockKinds = ['systemd', 'cron', 'launchd', 'task-scheduler', 'none'] as const;
export type ClockKind = (typeof clockKinds)[number];

/** Whether a time at which the machine was off is made up for once, or left out. */
const missedChoices = ['once', 'skip'] as const;
export type Missed = (typeof missedChoices)[number];

/** The latest time that was taken up. */
export interface LastTime {
  /** The time of the rule, or of the call by hand. ISO 8601, like all times here. */
  dueAt: string;
  startedAt: string;
  /** Process that runs it, and what tells it from a later one with its pid. */
  pid: number;
  owner?: Omit<ProcessIdentity, 'pid'>;
  /** Missing while it runs, or if it was killed. */
  endedAt?: string;
  runId?: string;
  /** `blocked`: it did not begin because of `obstacle`. `skipped`: the machine was off, and missed times are left out. */
  outcome?: RunOutcome | 'blocked' | 'skipped' | 'interrupted';
  /** Its folder or its skill is missing, or the agent's files have changed without an acceptance. */
  obstacle?: 'folder' | 'skill' | 'changed';
  /** Of the error with which it ended. */
  message?: string;
  /** What it asked while no one was there, without secrets. */
  needs?: readonly string[];
  /** The person has opened this run. */
  isSeen?: boolean;
}

export interface Schedule {
  version: 1;
  /** Letters, digits and hyphens. Also the name of its file and of its entry in the scheduler. */
  id: string;
  request: string;
  /** The skill that the request meant when it was scheduled. */
  skill: SkillRef;
  /** The rule as the person wrote it. */
  at: string;
  /** The folder of the call. Absolute. */
  cwd: string;
  /** Digest of the agent's files at that time. */
  digest: string;
  missed: Missed;
  clock: ClockKind;
  /** Limit of each run in US dollars. */
  maxCost?: string;
  /** Times before it do not count: when it was added or resumed. */
  since: string;
  isPaused?: boolean;
  /** It paused itself, after `failures` in a row. */
  hasGivenUp?: boolean;
  /** Times in a row that did not end well. */
  failures: number;
  last?: LastTime;
}

/** True if a person should look: it asked something, or paused itself, and they have not opened it since. */
export const needsPerson = ({ last, hasGivenUp }: Schedule): boolean =>
  last?.isSeen !== true && (last?.needs !== undefined || hasGivenUp === true);

/** Returns the schedule as it runs again from now on. Changed files of its agent count once they are accepted. */
export function resumed(
  { isPaused: _, hasGivenUp: _too, ...schedule }: Schedule,
  { state, digest }: Pick<AgentCard, 'state' | 'digest'>,
): Schedule {
  const since = new Date().toISOString();
  return { ...schedule, ...(state === 'reviewed' && { digest }), since, failures: 0 };
}

/** In characters. */
const longestId = 40;
const longestRequest = 4000;

export const schedulesFolder = (dataDir: string): string => join(dataDir, 'schedules');

const isId = (text: string): boolean =>
  /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(text) && text.length <= longestId + 4;

export class Schedules {
  readonly #folder: string;

  constructor(dataDir: string) {
    this.#folder = schedulesFolder(dataDir);
  }

  /** Returns the schedules by name, and a sentence for each file that cannot be read. Throws errors of the file system. */
  list(): { schedules: Schedule[]; problems: string[] } {
    const problems: string[] = [];
    const schedules = this.#ids().flatMap(id => {
      try {
        return [this.get(id)];
      } catch (error) {
        problems.push(reasonOf(error));
        return [];
      }
    });
    return { schedules, problems };
  }

  /** Returns the schedule. Throws TelosError `config` if there is none of this name, or if its file cannot be read. */
  get(id: string): Schedule {
    const read = this.find(id);
    if (read) return read;
    const known = this.#ids().join(', ');
    throw new TelosError(
      'config',
      known
        ? [sentence("There is no schedule '{0}'.", id), sentence('Your schedules: {0}', known)]
        : [sentence('Nothing is scheduled.')],
    );
  }

  /** Returns the schedule, or undefined if there is none of this name. Throws TelosError `config` if its file cannot be read. */
  find(id: string): Schedule | undefined {
    return isId(id) ? this.#read(id) : undefined;
  }

  /** Returns a new schedule under a free name made of its request. Nothing is kept yet. */
  draft(made: Omit<Schedule, 'version' | 'id' | 'failures'>): Schedule {
    const taken = new Set(this.#ids());
    const name = idFrom(made.request);
    let id = name;
    for (let count = 2; taken.has(id); count++) id = `${name}-${count}`;
    return { version: 1, id, ...made, failures: 0 };
  }

  /** Keeps a draft. Throws TelosError `config` if its name was taken meanwhile. */
  async keep(draft: Schedule): Promise<void> {
    makeOwnFolders(this.#folder);
    if (!(await createWhole(this.#file(draft.id), text(draft))))
      throw new TelosError('config', [
        sentence("There is a schedule '{0}' already.", draft.id),
        sentence('Add it again.'),
      ]);
  }

  /**
   * Replaces the schedule with the result of `change`, which another process cannot come between. Undefined leaves it as it is.
   * Returns what is kept then. Throws the errors of `get`.
   */
  async change(id: string, change: (schedule: Schedule) => Schedule | undefined): Promise<Schedule> {
    this.get(id);
    const lock = await lockFile(`${this.#file(id)}.lock`);
    try {
      const before = this.get(id);
      const after = change(before);
      if (after) await writeOwn(this.#file(id), text(after), lock.isOurs);
      return after ?? before;
    } finally {
      await lock.release();
    }
  }

  /** Deletes the schedule. Its entry in the scheduler must be removed before. Throws the errors of `get`. */
  async remove(id: string): Promise<void> {
    this.get(id);
    rmSync(this.#file(id), { force: true });
  }

  #file(id: string): string {
    return join(this.#folder, `${id}.json`);
  }

  #ids(): string[] {
    try {
      const names = readdirSync(this.#folder).filter(name => name.endsWith('.json'));
      return names
        .map(name => name.slice(0, -'.json'.length))
        .filter(isId)
        .sort();
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return [];
      throw error;
    }
  }

  #read(id: string): Schedule | undefined {
    let found: unknown;
    try {
      found = JSON.parse(readSettings(this.#file(id)));
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return undefined;
      throw unreadable(this.#file(id), reasonOf(error));
    }
    const problem = problemOf(found, id);
    if (problem !== undefined) throw unreadable(this.#file(id), problem);
    return found as Schedule;
  }
}

const text = (schedule: Schedule): string => `${JSON.stringify(schedule, null, 2)}\n`;

const unreadable = (file: string, why: string): TelosError =>
  new TelosError('config', [
    sentence('{0} could not be read: {1}.', file, why.replace(/\.$/, '')),
    sentence('Delete it, and add the schedule again.'),
  ]);

/** Returns why a file's content is not a schedule, or undefined if it is one. */
function problemOf(found: unknown, id: string): string | undefined {
  if (typeof found !== 'object' || found === null) return 'it is not an object';
  const fields = found as Record<string, unknown>;
  if (fields['version'] !== 1) return 'a later version of Telos has written it';
  if (fields['id'] !== id) return `its id is not '${id}'`;
  for (const name of ['request', 'at', 'cwd', 'digest', 'since'])
    if (typeof fields[name] !== 'string') return `'${name}' is not text`;
  const skill = fields['skill'] as Partial<SkillRef> | null | undefined;
  if (typeof skill?.agent !== 'string' || typeof skill.skill !== 'string')
    return "'skill' does not name an agent and a skill";
  if (!clockKinds.includes(fields['clock'] as ClockKind))
    return `'clock' must be one of ${clockKinds.join(', ')}`;
  if (!missedChoices.includes(fields['missed'] as Missed))
    return `'missed' must be ${missedChoices.join(' or ')}`;
  if (!Number.isSafeInteger(fields['failures'])) return "'failures' is not a number";
  try {
    parseRule(fields['at'] as string);
    return undefined;
  } catch (error) {
    return reasonOf(error);
  }
}

/** Returns a name of letters, digits and hyphens. */
function idFrom(words: string): string {
  const plain = words
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-');
  const cut = plain.slice(0, longestId).replace(/^-+|-+$/g, '');
  return cut || 'schedule';
}

/** Throws TelosError `config` if the words cannot be scheduled. */
export function checkRequest(words: string): void {
  if (words.trim() === '')
    throw new TelosError('config', [sentence('Say what is to run, for example: "run daily kickoff".')]);
  if (words.length > longestRequest)
    throw new TelosError('config', [
      sentence('The request is longer than {0} characters.', longestRequest),
      sentence('Put the details in a skill.'),
    ]);
}
