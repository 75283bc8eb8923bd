/** Makes the entry of a schedule for the system's scheduler, hands it over, and takes it back. */
import { execFile } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { userInfo } from 'node:os';
import { delimiter, join } from 'node:path';
import { sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import { writeWhole } from '../files/atomicWrite.ts';
import { lockFile } from '../files/settingsFile.ts';
import { isSecretName } from '../redact.ts';
import { findProgram, type ProgramPlaces, trustedPath } from '../tools/programPath.ts';
import { type Caller, type ClockEntry, cron, crontabWith, systemd } from './clockEntry.ts';
import { type ClockKind, type Schedule, type Schedules, schedulesFolder } from './schedules.ts';

/** Where the scheduler's programs are looked up, so that none is one that a run has written. */
export type ClockPlaces = ProgramPlaces & { dataDir: string };

/** Variables of this process that its runs need, and that a scheduler does not know. Keys belong in the `.env` of the settings. */
const passedOn = /^(?:TELOS_\w+|\w+_BASE_URL|OLLAMA_HOST|LANG|XDG_CONFIG_HOME)$/;

/** Returns how a scheduler calls this Telos. `program` are the absolute paths of Node and of the command line. */
export function callerFor(
  { home, dataDir }: { home: string; dataDir: string },
  program: readonly string[],
  places: ClockPlaces,
  environment: Readonly<Record<string, string | undefined>>,
): Caller {
  const kept = Object.entries(environment).filter(
    (each): each is [string, string] =>
      passedOn.test(each[0]) && !isSecretName(each[0]) && !!each[1] && !/\/\/[^/]*@/.test(each[1]),
  );
  const PATH = trustedPath(places).folders.join(delimiter);
  return { program, env: { PATH, ...Object.fromEntries(kept) }, home, dataDir, uid: userInfo().uid };
}

/** Returns the entry of a schedule. Throws TelosError `config` if a path or variable cannot be written into one. */
export async function clockEntry(schedule: Schedule, caller: Caller): Promise<ClockEntry> {
  for (const value of [...caller.program, ...Object.entries(caller.env).flat()])
    if (/[\0\r\n]/.test(value))
      throw new TelosError('config', [
        sentence('{0} has a line break, which no scheduler accepts.', JSON.stringify(value)),
      ]);
  switch (schedule.clock) {
    case 'systemd':
      return systemd(schedule, caller);
    case 'cron':
      return cron(schedule, caller);
    case 'launchd':
      return (await import('./xmlEntries.ts')).launchd(schedule, caller);
    case 'task-scheduler':
      return (await import('./xmlEntries.ts')).taskScheduler(schedule, caller);
    case 'none':
      return { kind: 'none', files: {}, start: [], stop: [] };
  }
}

/** In milliseconds. */
const patience = 20_000;

interface Ended {
  isDone: boolean;
  out: string;
  /** Last line that it said about a failure. */
  why: string;
}

function call([name = '', ...words]: readonly string[], places: ClockPlaces, input = ''): Promise<Ended> {
  const program = findProgram(name, places);
  if (!program) return Promise.resolve({ isDone: false, out: '', why: `${name} is not installed` });
  return new Promise(resolve => {
    const options = { env: { ...places.env }, timeout: patience, maxBuffer: 4 * 1024 * 1024 };
    const child = execFile(program, words, options, (error, out, said) => {
      const why = said.trim().split('\n').at(-1) || (error?.message ?? '');
      resolve({ isDone: !error, out, why });
    });
    // A program that ends without reading it.
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });
}

/** Returns the scheduler that this machine has, the best first, or `none`. */
export async function clockHere(places: ClockPlaces): Promise<ClockKind> {
  if (process.platform === 'darwin') return 'launchd';
  if (process.platform === 'win32') return 'task-scheduler';
  if ((await call(['systemctl', '--user', 'show-environment'], places)).isDone) return 'systemd';
  return (await readCrontab(places)) === undefined ? 'none' : 'cron';
}

/** Keeps a draft and writes its entry, both or neither. Throws the errors of `Schedules.keep` and `putEntry`. */
export async function keepWithEntry(
  draft: Schedule,
  entry: ClockEntry,
  schedules: Schedules,
  places: ClockPlaces,
): Promise<void> {
  await schedules.keep(draft);
  try {
    await putEntry(draft.id, entry, places);
  } catch (error) {
    await schedules.remove(draft.id);
    throw error;
  }
}

/** Writes the entry. Throws TelosError `config` if another one has its name, or if the scheduler refuses; then nothing is left of it. */
async function putEntry(id: string, entry: ClockEntry, places: ClockPlaces): Promise<void> {
  const taken = Object.keys(entry.files).find(path => existsSync(path));
  if (taken)
    throw new TelosError('config', [
      sentence('{0} exists already.', taken),
      sentence('Remove it, or give the schedule another name.'),
    ]);
  try {
    for (const [path, text] of Object.entries(entry.files)) await writeWhole(path, text);
    if (entry.lines) await editCrontab(id, entry.lines, places);
    for (const words of entry.start) await mustDo(words, places);
  } catch (error) {
    await removeEntry(id, entry, places).catch(() => undefined);
    throw error;
  }
}

/** Removes the entry, whatever is left of it. Throws TelosError `config` if the crontab cannot be written. */
export async function removeEntry(id: string, entry: ClockEntry, places: ClockPlaces): Promise<void> {
  // Those that read the files again come after them.
  const [first, ...others] = entry.stop;
  if (first) await call(first, places);
  for (const path of Object.keys(entry.files)) rmSync(path, { force: true });
  for (const words of others) await call(words, places);
  if (entry.lines) await editCrontab(id, [], places);
}

async function mustDo(words: readonly string[], places: ClockPlaces): Promise<void> {
  const { isDone, why } = await call(words, places);
  if (!isDone)
    throw new TelosError('config', [
      sentence('The scheduler did not take the entry: {0} ended with: {1}', words.join(' '), why),
    ]);
}

/** Returns the person's crontab, empty if there is none. Undefined where no cron is. */
async function readCrontab(places: ClockPlaces): Promise<string | undefined> {
  const { isDone, out, why } = await call(['crontab', '-l'], places);
  if (isDone) return out;
  return /no crontab/i.test(why) ? '' : undefined;
}

async function editCrontab(id: string, lines: readonly string[], places: ClockPlaces): Promise<void> {
  const lock = await lockFile(join(schedulesFolder(places.dataDir), '.crontab.lock'));
  try {
    const before = await readCrontab(places);
    if (before === undefined)
      throw new TelosError('config', [sentence('cron cannot be used here: crontab -l does not work.')]);
    const after = crontabWith(before, id, lines);
    if (after === before) return;
    const { isDone, why } = await call(['crontab', '-'], places, after);
    if (!isDone) throw new TelosError('config', [sentence('crontab could not be written: {0}', why)]);
  } finally {
    await lock.release();
  }
}
