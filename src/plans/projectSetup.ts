/**
 * Finds what a new work tree of a project lacks: packages that its lock files name, submodules, and files of the user that git ignores. What
 * is found is only proposed: plan.json and the permissions of the plan list it, for the user to approve.
 */

import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import { readText, shellWord } from '@telos/engine/files';
import type { Git } from './git.ts';
import type { PlanFolder } from './planFolder.ts';
import type { SlotSettings } from './planSettings.ts';
import { jsonFields } from './setupChanges.ts';

export interface ProjectSetup {
  setup: string[];
  slot: Pick<SlotSettings, 'copy' | 'keep'>;
}

/** How packages come into a folder, by a file there. The first of a family that is there counts. */
interface Installer {
  family: 'node' | 'python' | 'go' | 'rust';
  file: string;
  commands: (folder: Folder) => readonly string[];
  keep: readonly string[];
}

interface Folder {
  /** Relative to the repository; empty for its top. */
  path: string;
  /** Names of the files there that git has. */
  names: ReadonlySet<string>;
  fields: { readonly [key: string]: unknown };
}

const modules = ['node_modules'];
const venv = ['.venv'];
const isWindows = process.platform === 'win32';
const inVenv = isWindows ? '.venv\\Scripts\\python' : '.venv/bin/python';
const makeVenv = `${isWindows ? 'python' : 'python3'} -m venv .venv`;

const installers: readonly Installer[] = [
  {
    family: 'node',
    file: 'pnpm-lock.yaml',
    commands: () => ['pnpm install --frozen-lockfile'],
    keep: modules,
  },
  { family: 'node', file: 'yarn.lock', commands: yarnInstall, keep: modules },
  { family: 'node', file: 'bun.lock', commands: () => ['bun install --frozen-lockfile'], keep: modules },
  { family: 'node', file: 'bun.lockb', commands: () => ['bun install --frozen-lockfile'], keep: modules },
  { family: 'node', file: 'package-lock.json', commands: () => ['npm ci'], keep: modules },
  { family: 'node', file: 'npm-shrinkwrap.json', commands: () => ['npm ci'], keep: modules },
  { family: 'node', file: 'package.json', commands: withoutLock, keep: modules },
  { family: 'python', file: 'uv.lock', commands: () => ['uv sync --frozen'], keep: venv },
  {
    family: 'python',
    file: 'poetry.lock',
    commands: () => [`${variable('POETRY_VIRTUALENVS_IN_PROJECT')}poetry install --no-interaction`],
    keep: venv,
  },
  {
    family: 'python',
    file: 'Pipfile.lock',
    commands: () => [`${variable('PIPENV_VENV_IN_PROJECT')}pipenv sync --dev`],
    keep: venv,
  },
  { family: 'python', file: 'requirements.txt', commands: pipInstall, keep: venv },
  {
    family: 'go',
    file: 'go.sum',
    commands: ({ names }) => (names.has('go.mod') ? ['go mod download'] : []),
    keep: [],
  },
  { family: 'rust', file: 'Cargo.lock', commands: () => ['cargo fetch --locked'], keep: ['target'] },
];

const variable = (name: string): string => (isWindows ? `set "${name}=1" && ` : `${name}=1 `);

/** Yarn since 2 has another option for the same. */
function yarnInstall({ names, fields }: Folder): string[] {
  const manager = String(fields['packageManager'] ?? '');
  const isOld = !names.has('.yarnrc.yml') && !/^yarn@(?:[2-9]|\d{2})/.test(manager);
  return [isOld ? 'yarn install --frozen-lockfile' : 'yarn install --immutable'];
}

/** A project without a lock file that needs packages gets those that are the newest today. */
function withoutLock({ fields }: Folder): string[] {
  const needs = ['dependencies', 'devDependencies', 'optionalDependencies'].some(
    key => Object.keys({ ...(fields[key] as object | undefined) }).length > 0,
  );
  if (!needs) return [];
  const [, manager = 'npm'] = /^(pnpm|yarn|bun)@/.exec(String(fields['packageManager'] ?? '')) ?? [];
  return [manager === 'npm' ? 'npm install --no-package-lock' : `${manager} install`];
}

function pipInstall({ names }: Folder): string[] {
  const files = [...names].filter(name =>
    /^(?:dev-|test-)?requirements(?:[-_](?:dev|test|tests))?\.txt$/.test(name),
  );
  return [
    makeVenv,
    `${inVenv} -m pip install ${files
      .sort()
      .map(name => `-r ${name}`)
      .join(' ')}`,
  ];
}

/** Folders besides the top that have packages of their own. More than these are found by nobody who reads a list. */
const mostFolders = 4;
const mostCopied = 50;
/** Folders whose lock files are no part of what is built here. */
const noProject =
  /(?:^|\/)(?:node_modules|vendor|third_party|fixtures?|__fixtures__|examples?|samples?|testdata|tests?)(?:\/|$)/i;

/** Returns what a work tree of the repository needs, as far as its files say it. Empty where it needs nothing. */
export async function detectSetup(git: Git): Promise<ProjectSetup> {
  const [folders, copy, submodules] = await Promise.all([
    foldersOf(git),
    copiedFiles(git),
    hasSubmodules(git),
  ]);
  const setup = submodules ? ['git submodule update --init --recursive'] : [];
  const keep = new Set<string>();
  for (const folder of folders) {
    for (const family of ['node', 'python', 'go', 'rust'] as const) {
      const found = installers.find(one => one.family === family && folder.names.has(one.file));
      const own = found ? found.commands(folder).map(line => asInstalled(line, folder, git)) : undefined;
      const commands = own ?? (await otherPython(family, folder, git.dir));
      if (commands.length === 0) continue;
      for (const name of found?.keep ?? venv) keep.add(name);
      setup.push(
        ...commands.map(command =>
          folder.path === '' ? command : `cd ${shellWord(folder.path)} && ${command}`,
        ),
      );
    }
  }
  return { setup, slot: { copy, keep: [...keep] } };
}

/**
 * Returns the command so that a new work tree can run it: a package manager that the project itself brings stands in its node_modules, which
 * a new work tree does not have yet.
 */
function asInstalled(command: string, { path, fields }: Folder, git: Git): string {
  const [, manager = ''] = /^(pnpm|yarn|bun) /.exec(command) ?? [];
  if (manager === '' || git.finds(manager)) return command;
  const needs = { ...(fields['dependencies'] as object), ...(fields['devDependencies'] as object) };
  const wanted = (needs as Record<string, unknown>)[manager];
  const there = existsSync(join(git.dir, path, 'node_modules', '.bin', manager));
  if (!there && wanted === undefined) return command;
  const text = textOf(join(git.dir, path, 'node_modules', manager, 'package.json')) ?? '{}';
  const { version } = jsonFields(text) as { version?: unknown };
  const [, exact] = /^[\^~]?(\d+\.\d+\.\d+)$/.exec(String(version ?? wanted)) ?? [];
  return `npx -y ${manager}${exact === undefined ? '' : `@${exact}`}${command.slice(manager.length)}`;
}

function textOf(file: string): string | undefined {
  try {
    return readText(file, 512 * 1024);
  } catch {
    return undefined;
  }
}

/** A Python project without a list of packages gets an environment of its own if the user has made one. */
async function otherPython(
  family: Installer['family'],
  { path, names }: Folder,
  dir: string,
): Promise<string[]> {
  const isProject = names.has('pyproject.toml') || names.has('setup.py');
  if (family !== 'python' || !isProject || !existsSync(join(dir, path, '.venv'))) return [];
  return [makeVenv, `${inVenv} -m pip install -e .`];
}

/** Returns the top of the repository, and the folders below that have a lock file of their own. */
async function foldersOf(git: Git): Promise<Folder[]> {
  const named = [...new Set(installers.map(({ file }) => file))];
  const more = ['.yarnrc.yml', 'pyproject.toml', 'setup.py', 'go.mod', '*requirements*.txt'];
  const globs = [...named, ...more].flatMap(name => [
    `:(top,glob)${name}`,
    `:(top,glob)*/${name}`,
    `:(top,glob)*/*/${name}`,
  ]);
  const listed = (await git.read(['ls-files', '-z', '--', ...globs])).split('\0').filter(Boolean);
  const names = new Map<string, Set<string>>([['', new Set()]]);
  for (const path of listed) {
    const folder = path.slice(0, Math.max(0, path.lastIndexOf('/')));
    names.set(folder, (names.get(folder) ?? new Set()).add(basename(path)));
  }
  const locks = new Set(named.filter(name => name !== 'package.json'));
  const below = [...names.keys()].filter(
    path =>
      path !== '' && !noProject.test(path) && [...(names.get(path) ?? [])].some(name => locks.has(name)),
  );
  const wanted = ['', ...below.sort().slice(0, mostFolders)];
  return Promise.all(
    wanted.map(async path => ({
      path,
      names: names.get(path) ?? new Set(),
      fields: jsonFields(
        (await git.text(`HEAD:${path === '' ? '' : `${path}/`}package.json`, 512 * 1024)) ?? '',
      ) as Folder['fields'],
    })),
  );
}

/** Returns the files that git ignores and a project reads as it runs: `.env` and its like, and those that `.worktreeinclude` names. */
async function copiedFiles(git: Git): Promise<string[]> {
  const ignored = async (...args: string[]): Promise<string[]> => {
    const listed = await git.read(['ls-files', '-z', '--others', '--ignored', ...args]);
    return listed.split('\0').filter(path => path !== '' && !path.endsWith('/'));
  };
  const places = ['', '*/', '*/*/'].map(folder => `:(top,glob)${folder}.env*`);
  const own = (await ignored('--exclude-standard', '--', ...places)).filter(path =>
    isEnvironment(basename(path)),
  );
  const list = join(git.dir, '.worktreeinclude');
  const named = existsSync(list) ? await ignored(`--exclude-from=${list}`, '--directory') : [];
  const both =
    named.length > 0
      ? new Set(
          await ignored(
            '--exclude-standard',
            '--',
            ...named.slice(0, mostCopied).map(path => `:(top,literal)${path}`),
          ),
        )
      : new Set();
  const paths = [...own, ...named.filter(path => both.has(path))];
  return [...new Set(paths)]
    .filter(path => !/(?:^|\/)node_modules\//.test(path))
    .sort()
    .slice(0, mostCopied);
}

const isEnvironment = (name: string): boolean =>
  /^\.env(?:\.[\w.-]+)?$/.test(name) && !/\.(?:example|sample|template|dist|sw[a-p]|bak|orig)$/.test(name);

const hasSubmodules = async (git: Git): Promise<boolean> =>
  (await git.text('HEAD:.gitmodules', 512 * 1024)) !== undefined &&
  /^160000 /m.test(await git.read(['ls-files', '-s', '--', ':(top)']));

/**
 * Writes the proposed setup to plan.json if it has none yet. Returns the proposal; undefined if there is none, or if the
 * repository cannot be read, which its run says.
 */
export async function proposeSetup(folder: PlanFolder, git: Git): Promise<ProjectSetup | undefined> {
  try {
    const settings = await folder.settings();
    const { copy, keep, link } = settings.slot;
    if (settings.setup.length + copy.length + keep.length + link.length > 0) return undefined;
    const { setup, slot } = await detectSetup(git);
    if (setup.length + slot.copy.length === 0) return undefined;
    await folder.saveSettings({ ...settings, setup, slot: { ...settings.slot, ...slot } });
    return { setup, slot };
  } catch (error) {
    if (error instanceof TelosError) return undefined;
    throw error;
  }
}
