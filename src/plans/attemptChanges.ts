/** Reads from git what an attempt has changed: for the reviewer, for the guard, and for the commands that a card allows. */

import { join } from 'node:path';
import { basename, dirname } from 'node:path/posix';
import { loadText, obeyedAt } from '@telos/engine/files';
import type { PlanCheck } from '@telos/protocol/plan';
import { beginningOf } from '@telos/protocol/text';
import type { Git } from './git.ts';
import type { ChangedFile } from './gitDifference.ts';
import type { PlanSettings } from './planSettings.ts';
import {
  type FileChange,
  installScripts,
  isRunByName,
  namedPaths,
  type SetupRun,
  scriptsIn,
} from './setupChanges.ts';
import type { Slot } from './slots.ts';
import { isGuarded, isTest, tamperings } from './tamper.ts';

/** In characters. A reviewer reads the rest in the files. */
export const longestDiff = 80_000;
/** Texts that are looked at. In bytes. */
const longestText = 512 * 1024;

/** Returns the difference as text, cut if it is very long. */
export async function diffText(git: Git, parent: string, commit: string): Promise<string> {
  const { patch } = await git.difference(parent, commit);
  if (patch.length <= longestDiff) return patch.trimEnd();
  const files = await git.read([
    'diff',
    '--no-ext-diff',
    '--no-color',
    '-M',
    '--stat=200',
    '--end-of-options',
    parent,
    commit,
  ]);
  return `${files}\n\n${beginningOf(patch, longestDiff)}\n[Cut here: the difference has ${patch.length} characters. Read the other files themselves.]`;
}

/** Returns the files that differ between two commits, with the texts of those that the guard looks into. */
export async function readChanges(
  git: Git,
  parent: string,
  commit: string,
  checks: readonly PlanCheck[],
): Promise<FileChange[]> {
  const { files } = await git.difference(parent, commit);
  const changes: FileChange[] = [];
  for (const { path, from, letter, before: old, after: next } of files) {
    const isRead = isGuarded(path, checks) || (from !== undefined && isGuarded(from, checks));
    const [before, after] = isRead ? [await textOf(git, old), await textOf(git, next)] : [];
    changes.push({
      path,
      status: statuses[letter] ?? 'changed',
      ...(letter === 'R' && from !== undefined && { from }),
      ...(before !== undefined && { before }),
      ...(after !== undefined && { after }),
    });
  }
  return changes;
}

const statuses: Readonly<Record<ChangedFile['letter'], FileChange['status']>> = {
  A: 'added',
  C: 'added',
  D: 'deleted',
  R: 'renamed',
};

/** Returns the text of a blob; undefined if there is none, or if it is binary or too long. */
async function textOf(git: Git, blob: string): Promise<string | undefined> {
  const text = /^0*$/.test(blob) ? undefined : await git.text(blob, longestText);
  return text?.includes('\0') ? undefined : text;
}

/** Returns true if the commit has tests. */
export const hasTests = async (git: Git, commit: string): Promise<boolean> =>
  (await pathsOf(git, commit)).some(isTest);

async function pathsOf(git: Git, commit: string): Promise<string[]> {
  const names = await git.read([
    'ls-tree',
    '-r',
    '-z',
    '--name-only',
    '--full-tree',
    '--end-of-options',
    commit,
  ]);
  return names.split('\0').filter(Boolean);
}

/** Scripts of a setup that are followed, and bytes of each. */
const mostScripts = 100;
const longestScript = 64 * 1024;

/** Returns what setup commands run of the files of a commit: what they name, and what the scripts among that name in turn. */
export async function setupRun(
  git: Git,
  commit: string,
  setup: readonly string[],
): Promise<SetupRun | undefined> {
  if (setup.length === 0) return undefined;
  const scripts = scriptsIn((await git.text(`${commit}:package.json`, longestText)) ?? '');
  const lines = [...setup, ...installScripts(setup, scripts).map(name => scripts[name] ?? '')];
  const there = new Set(await pathsOf(git, commit));
  const names = new Set(lines.flatMap(line => namedPaths(line)));
  const waiting = [...names];
  const read = new Set<string>();
  for (let path = waiting.shift(); path !== undefined && read.size < mostScripts; path = waiting.shift()) {
    if (read.has(path) || !there.has(path) || !isRunByName(path)) continue;
    read.add(path);
    const text = await git.text(`${commit}:${path}`, longestScript);
    if (text === undefined || text.includes('\0')) continue;
    lines.push(text);
    // What a script names elsewhere may be what it is about: only what lies beside it, or among scripts, is a part of it.
    const parts = namedPaths(text, dirname(path)).filter(one => isPartOf(one, path));
    for (const one of parts) names.add(one);
    waiting.push(...parts);
  }
  return { lines, names };
}

const isPartOf = (path: string, script: string): boolean =>
  dirname(path) === dirname(script) ||
  /(?:^|\/)(?:scripts?|ci|tools?|hack|setup|bin)\/|\.(?:sh|bash|zsh|fish|ps1)$/.test(path);

/** What of a package.json decides on the packages that are installed. */
const packageFields =
  /^(?:\w*[dD]ependencies|overrides|resolutions|workspaces|pnpm|packageManager|allowScripts)$/;
const lockFile =
  /(?:^|\/)(?:package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?)$/;

/** Returns the file of a commit that has package managers of JavaScript install others than at `base`; undefined if none does. */
export async function otherPackages(git: Git, base: string, commit: string): Promise<string | undefined> {
  const { files } = await git.difference(base, commit);
  for (const { path, from, before, after } of files) {
    if ([path, from].some(one => one !== undefined && lockFile.test(one))) return path;
    if (basename(path) !== 'package.json') continue;
    const [old, now] = [await textOf(git, before), await textOf(git, after)].map(fieldsFor);
    if (old === undefined || old !== now) return path;
  }
  return undefined;
}

function fieldsFor(text: string | undefined): string | undefined {
  try {
    const fields = Object.entries(JSON.parse(text ?? '{}') as object);
    return JSON.stringify(fields.filter(([name]) => packageFields.test(name)));
  } catch {
    return undefined;
  }
}

/**
 * Removes the installed packages that a slot keeps, before its setup runs. Checks have run the work of models there: a program among
 * them may be theirs, and the setup would start it outside of the box.
 */
export async function removePackages(
  { git }: Slot,
  { slot: { keep, link, copy } }: PlanSettings,
): Promise<void> {
  const installed = keep.filter(path => obeyedAt(`${path}/file`, `${path}/file`)?.by === 'package managers');
  if (installed.length === 0) return;
  const others = [...keep.filter(path => !installed.includes(path)), ...link, ...copy];
  // A name without a folder is kept wherever it is.
  const pattern = (path: string): string =>
    `${path.includes('/') ? '/' : ''}${path.replace(/[*?[\]\\!#]/g, '\\$&')}`;
  await git.run(['clean', '-ffdxq', ...others.flatMap(path => ['-e', pattern(path)])]);
}

/** Has the package managers of JavaScript run no scripts of what they install. Yarn knows two names for it, and bun none. */
export const withoutScripts = {
  npm_config_ignore_scripts: 'true',
  YARN_IGNORE_SCRIPTS: 'true',
  YARN_ENABLE_SCRIPTS: 'false',
} as const;

/** Programs that install what a project names, and run what that brings. */
const installs =
  /\b(?:npm|pnpm|yarn|bun)\s+(?:ci|i|install|add)\b|\byarn\s*$|\b(?:pip3?|uv|poetry|pipenv)\b.*\b(?:install|sync)\b|\bbundle(?:\s+install)?\s*$|\bcomposer\s+install\b|\b(?:cargo|go|mvn|gradle)\b/;
const manifests = [
  ...[
    'package.json',
    'package-lock.json',
    'npm-shrinkwrap.json',
    'yarn.lock',
    'pnpm-lock.yaml',
    '.npmrc',
    '.yarnrc.yml',
  ],
  ...['requirements.txt', 'pyproject.toml', 'poetry.lock', 'uv.lock', 'setup.py', 'Pipfile', 'Pipfile.lock'],
  ...[
    'Gemfile',
    'Gemfile.lock',
    'composer.json',
    'composer.lock',
    'go.mod',
    'Cargo.toml',
    'build.rs',
    'pom.xml',
  ],
];
const ruleFiles = [
  'package.json',
  'Makefile',
  'makefile',
  'GNUmakefile',
  'Justfile',
  'justfile',
  'Taskfile.yml',
  'Rakefile',
];

/**
 * Returns the file that makes a command of the card do something else than it did at `parent`; undefined if none does. What a test
 * or a program of the project does by itself cannot be seen by that.
 */
export async function changedMeaning(
  git: Git,
  dir: string,
  parent: string,
  command: string,
): Promise<string | undefined> {
  const check: PlanCheck = { name: 'command', command };
  const named = command.split(/[\s;&|<>()'"`=]+/).filter(word => /^(?:\.\/)?[\w-][\w./-]*$/.test(word));
  const install = installs.test(command);
  const files = new Set([
    ...ruleFiles,
    ...(install ? manifests : []),
    ...named.map(word => word.replace(/^\.\//, '')),
  ]);
  for (const path of files) {
    const after = await loadText(join(dir, path)).catch(() => undefined);
    const before = await git.text(`${parent}:${path}`);
    if (before === after) continue;
    if (install && manifests.includes(path)) return path;
    const status = after === undefined ? 'deleted' : before === undefined ? 'added' : 'changed';
    const change: FileChange = {
      path,
      status,
      ...(before !== undefined && { before }),
      ...(after !== undefined && { after }),
    };
    const found = tamperings([change], { checks: [check], protect: [], hadTests: false });
    if (found.some(({ kind }) => kind === 'check-script')) return path;
  }
  return undefined;
}
