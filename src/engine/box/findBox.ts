/** Finds the box of the operating system in which commands can run here, by starting it once, or says why none works. */

import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, readlinkSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { hostname, release } from 'node:os';
import { join } from 'node:path';
import { writeOwn } from '../files/atomicWrite.ts';
import { readText } from '../files/regularFile.ts';
import { findProgram, isOfRuns, type ProgramPlaces, pathIn } from '../tools/programPath.ts';
import { inSpaces } from './keptSpaces.ts';
import { canAskKernel, launched } from './kernelCalls.ts';
import { carriesLayers } from './layer.ts';
import { filterFor } from './systemCalls.ts';

/** `mend` is the exact command that makes it work, if there is one. */
export type BoxFinding =
  | { works: true; kind: 'bubblewrap'; program: string; features: BubblewrapFeatures }
  | { works: true; kind: 'seatbelt'; program: string }
  | { works: false; why: string; mend?: string };

/** What this bubblewrap can do beyond the oldest version that is used. */
export interface BubblewrapFeatures {
  /** It closes the door to further user namespaces itself. The filter of system calls does so as well. */
  disablesUserNamespaces: boolean;
  /** It takes open files in place of paths, which cannot be swapped. */
  bindsDescriptors: boolean;
  /** What starts it in a network which other commands are in, and serves them. Null if none does: then each command has its own. */
  perl: string | null;
  /** Whether a command can have a layer to write into. */
  layers: boolean;
}

/** The namespaces and rights of every command. Its network is its own, or that of its conversation. */
export const isolation: readonly string[] = [
  ...['--unshare-user', '--unshare-ipc', '--unshare-pid', '--unshare-uts', '--unshare-cgroup-try'],
  ...['--new-session', '--cap-drop', 'ALL', '--hostname', 'box'],
];
export const ownNetwork = '--unshare-net';
/** In the namespaces that a conversation keeps, the user of this process has the number 0. A command has its own. */
export const ownIds: readonly string[] = [
  ...['--uid', String(process.getuid?.() ?? 0)],
  ...['--gid', String(process.getgid?.() ?? 0)],
];

/** In milliseconds. A start takes about ten. */
const patience = 5000;
const seatbelt = '/usr/bin/sandbox-exec';

/** By program and data folder: a kernel does not change its mind while a process lives. */
const known = new Map<string, Promise<BoxFinding>>();

/**
 * Returns the box that works here. It was really started, with all of its namespaces: by this process, or by an earlier one on the
 * same machine, whose finding is kept in `dataDir`. Never throws. `places` tell which programs of its name a run could have put there.
 */
export async function findBox(places: ProgramPlaces, dataDir?: string): Promise<BoxFinding> {
  if (process.platform === 'win32')
    return { works: false, why: 'Windows has no sandbox for commands. In WSL there is one.' };
  const before = dataDir === undefined ? undefined : remembered(places, dataDir);
  if (before) return before;
  const program = process.platform === 'darwin' ? seatbelt : findProgram('bwrap', places);
  if (process.platform !== 'linux' && process.platform !== 'darwin')
    return { works: false, why: `There is no sandbox for commands on ${process.platform}.` };
  if (program === undefined || !isThere(program)) return missing();
  const key = JSON.stringify([program, dataDir]);
  const found =
    known.get(key) ??
    (process.platform === 'darwin' ? trySeatbelt() : tryBubblewrap(program, places, dataDir));
  known.set(key, found);
  if (dataDir !== undefined) await keepFound(dataDir, places, await found).catch(() => undefined);
  return found;
}

/** Forgets what was found, for the next process too: a box that was found before could not be made. Never throws. */
export async function forgetBox(dataDir: string): Promise<void> {
  known.clear();
  await rm(foundFile(dataDir), { force: true }).catch(() => undefined);
}

const foundFile = (dataDir: string): string => join(dataDir, 'box', 'found.json');

/** What an earlier process found with this PATH. */
interface Found {
  path: string;
  program: string;
  state: string;
  features: BubblewrapFeatures;
}

/** Searching it and starting it would take a part of every start of Telos. */
function remembered(places: ProgramPlaces, dataDir: string): BoxFinding | undefined {
  try {
    const { path, program, state, features } = JSON.parse(textOf(foundFile(dataDir))) as Partial<Found>;
    const { disablesUserNamespaces, bindsDescriptors, perl, layers } = features ?? {};
    if (typeof program !== 'string' || path !== (pathIn(places.env) ?? '')) return undefined;
    if (typeof disablesUserNamespaces !== 'boolean' || typeof bindsDescriptors !== 'boolean')
      return undefined;
    const isUsable = (each: unknown): boolean =>
      each === null || (typeof each === 'string' && isThere(each) && !isOfRuns(each, places));
    if (perl === undefined || !isUsable(perl)) return undefined;
    if (typeof layers !== 'boolean' || (layers && perl === null)) return undefined;
    if (state !== machineState(program) || isOfRuns(program, places)) return undefined;
    return {
      works: true,
      kind: 'bubblewrap',
      program,
      features: { disablesUserNamespaces, bindsDescriptors, perl, layers },
    };
  } catch {
    return undefined;
  }
}

/** Only what works is kept, so that a box that was mended is found at once. */
async function keepFound(dataDir: string, places: ProgramPlaces, finding: BoxFinding): Promise<void> {
  if (!finding.works || finding.kind !== 'bubblewrap') return;
  const { program, features } = finding;
  if (!features.layers && findProgram('perl', places) === undefined) return;
  const found: Found = { path: pathIn(places.env) ?? '', program, state: machineState(program), features };
  await writeOwn(foundFile(dataDir), `${JSON.stringify(found)}\n`);
}

/** Returns what decides if bubblewrap works: the program, the machine, who calls, and the rules of the kernel. */
function machineState(program: string): string {
  const file = statSync(program, { bigint: true, throwIfNoEntry: false });
  const rules = ['kernel/unprivileged_userns_clone', 'kernel/apparmor_restrict_unprivileged_userns'];
  const limits = [...rules, 'user/max_user_namespaces', 'user/max_net_namespaces'];
  const filter = /^Seccomp.*$/gm;
  return JSON.stringify([
    ...[
      program,
      [file?.ino, file?.size, file?.mtimeNs, file?.ctimeNs].join(),
      hostname(),
      release(),
      process.getuid?.() ?? 0,
      namespaceOf('user'),
      namespaceOf('mnt'),
    ],
    ...limits.map(name => textOf(`/proc/sys/${name}`).trim()),
    textOf('/proc/self/status').match(filter) ?? [],
    textOf('/proc/self/attr/current').trim(),
  ]);
}

function namespaceOf(kind: string): string {
  try {
    return readlinkSync(`/proc/self/ns/${kind}`);
  } catch {
    return '';
  }
}

function isThere(program: string): boolean {
  try {
    accessSync(program, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function missing(): BoxFinding {
  if (process.platform === 'darwin') return { works: false, why: `${seatbelt} is missing.` };
  return {
    works: false,
    why: 'bubblewrap is not installed.',
    mend: installCommand(textOf('/etc/os-release')),
  };
}

/** Returns how a distribution installs bubblewrap. `release` is the text of its os-release. */
export function installCommand(release: string): string {
  const names = [...release.matchAll(/^ID(?:_LIKE)?="?([^"\n]*)/gm)].flatMap(([, value = '']) =>
    value.split(/\s+/),
  );
  const [, install = 'sudo apt install'] =
    installers.find(([distributions]) => names.some(name => distributions.includes(name))) ?? [];
  return `${install} bubblewrap`;
}

const installers: readonly (readonly [readonly string[], string])[] = [
  [['debian', 'ubuntu'], 'sudo apt install'],
  [['fedora', 'rhel', 'centos'], 'sudo dnf install'],
  [['arch'], 'sudo pacman -S'],
  [['suse', 'opensuse', 'sles'], 'sudo zypper install'],
  [['alpine'], 'sudo apk add'],
  [['nixos'], 'nix-env -iA nixos.bubblewrap #'],
];

async function trySeatbelt(): Promise<BoxFinding> {
  const error = await errorOf(seatbelt, ['-p', '(version 1)(allow default)', '/usr/bin/true']);
  if (error === undefined) return { works: true, kind: 'seatbelt', program: seatbelt };
  return { works: false, why: `The sandbox of macOS could not be started: ${error.replace(/\.$/, '')}.` };
}

async function tryBubblewrap(
  program: string,
  places: ProgramPlaces,
  dataDir: string | undefined,
): Promise<BoxFinding> {
  if (!filterFor(process.arch))
    return { works: false, why: `The sandbox has no filter of system calls for ${process.arch}.` };
  const view = ['--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', '--', '/bin/sh', '-c', ':'];
  const start = (more: readonly string[]) => errorOf(program, [...isolation, ownNetwork, ...more, ...view]);
  const [first, help] = await Promise.all([start(['--disable-userns']), helpOf(program)]);
  const disablesUserNamespaces = help.includes('--disable-userns');
  const error = first === undefined || disablesUserNamespaces ? first : await start([]);
  if (error !== undefined) return { works: false, ...reasonOf(error, program, textOf, existsSync) };
  const inSpace = [...isolation, ...ownIds, ...(disablesUserNamespaces ? ['--disable-userns'] : [])];
  const perl = canAskKernel ? findProgram('perl', places) : undefined;
  const programs = perl !== undefined && { bubblewrap: program, perl };
  const joins = async (spaces: readonly string[], more: readonly string[]): Promise<boolean> => {
    const entering = launched(perl ?? '', spaces, 3, [program, ...inSpace, ...more])();
    return (await errorOf(entering.program, entering.args)) === undefined;
  };
  const isShared =
    programs &&
    (await inSpaces(programs, spaces => joins(spaces.files({ network: true, mounts: false }), view)));
  const change = ['/bin/sh', '-c', 'cd "$0" && rm -r old && mkdir old'];
  const layered = (spaces: readonly string[], folder: string): Promise<boolean> =>
    joins(spaces, [ownNetwork, ...view.slice(0, 3), '--bind', folder, folder, '--', ...change, folder]);
  const features = {
    disablesUserNamespaces,
    bindsDescriptors: help.includes('--ro-bind-fd'),
    perl: (isShared && perl) || null,
    layers: isShared && (await carriesLayers(programs, dataDir, layered)),
  };
  return { works: true, kind: 'bubblewrap', program, features };
}

const helpOf = (program: string): Promise<string> =>
  new Promise(done => {
    execFile(program, ['--help'], { timeout: patience }, (_error, help) => done(help));
  });

/** Returns what the program says if it fails, in one line; undefined if it does not. */
function errorOf(program: string, args: readonly string[]): Promise<string | undefined> {
  const options = { timeout: patience, env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' }, cwd: '/' };
  return new Promise(done => {
    execFile(program, args, options, (error, _stdout, stderr) => {
      if (!error) return done(undefined);
      const said = stderr.trim().split('\n')[0];
      done(
        said || (error.killed ? `it did not end within ${patience / 1000} s` : error.message.split('\n')[0]),
      );
    });
  });
}

/**
 * Returns why bubblewrap does not start, and what mends it. `read` returns the text of a file, empty if it is missing. Exported for
 * its test: one machine has one reason.
 */
export function reasonOf(
  error: string,
  program: string,
  read: (path: string) => string,
  exists: (path: string) => boolean,
): { why: string; mend?: string } {
  const switchOf = (name: string): string => read(`/proc/sys/${name}`).trim();
  if (switchOf('kernel/apparmor_restrict_unprivileged_userns') === '1')
    return { why: 'AppArmor does not let bubblewrap make user namespaces.', mend: profileCommand(program) };
  if (switchOf('kernel/unprivileged_userns_clone') === '0')
    return {
      why: 'The kernel lets only administrators make user namespaces.',
      mend: 'echo kernel.unprivileged_userns_clone=1 | sudo tee /etc/sysctl.d/50-user-namespaces.conf && sudo sysctl --system',
    };
  if (switchOf('user/max_user_namespaces') === '0')
    return {
      why: 'The kernel allows no user namespaces.',
      mend: 'echo user.max_user_namespaces=15000 | sudo tee /etc/sysctl.d/50-user-namespaces.conf && sudo sysctl --system',
    };
  if (['/.dockerenv', '/run/.containerenv'].some(exists))
    return {
      why: `This container does not let bubblewrap start (${error}).`,
      mend: 'docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined …',
    };
  return { why: `bubblewrap could not be started: ${error.replace(/\.$/, '')}.` };
}

/** Returns a command that gives bubblewrap an AppArmor profile in which it may make user namespaces. */
const profileCommand = (
  program: string,
): string => `sudo tee /etc/apparmor.d/bwrap <<'END' && sudo apparmor_parser -r /etc/apparmor.d/bwrap
abi <abi/4.0>,
include <tunables/global>
profile bwrap ${program} flags=(unconfined) {
  userns,
}
END`;

function textOf(path: string): string {
  try {
    return readText(path);
  } catch {
    return '';
  }
}
