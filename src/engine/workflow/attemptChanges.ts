/** Reads from git what an attempt has changed: for the reviewer, for the guard, and for the commands that a card allows. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PlanCheck } from '../../protocol/plan.ts';
import type { Git } from './git.ts';
import type { ChangedFile } from './gitDifference.ts';
import { type FileChange, isGuarded, isTest, tamperings } from './tamper.ts';

/** In characters. A reviewer reads the rest in the files. */
const longestDiff = 80_000;
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
  return `${files}\n\n${patch.slice(0, longestDiff)}\n[Cut here: the difference has ${patch.length} characters. Read the other files themselves.]`;
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
export async function hasTests(git: Git, commit: string): Promise<boolean> {
  const names = await git.read([
    'ls-tree',
    '-r',
    '-z',
    '--name-only',
    '--full-tree',
    '--end-of-options',
    commit,
  ]);
  return names.split('\0').some(isTest);
}

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
    const after = await readFile(join(dir, path), 'utf8').catch(() => undefined);
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
