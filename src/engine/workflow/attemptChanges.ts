/** Reads from git what an attempt has changed: for the reviewer, for the guard, and for the commands that a card allows. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PlanCheck } from '../../protocol/plan.ts';
import type { Git } from './git.ts';
import { type FileChange, isGuarded, isTest, tamperings } from './tamper.ts';

/** In characters. A reviewer reads the rest in the files. */
const longestDiff = 80_000;
/** Texts that are looked at. In bytes. */
const longestText = 512 * 1024;

const plainly = ['--no-ext-diff', '--no-textconv', '--no-color', '-M'];

/** Returns the difference as text, cut if it is very long. */
export async function diffText(git: Git, parent: string, commit: string): Promise<string> {
  const range = ['--end-of-options', parent, commit];
  const whole = await git.read(['diff', ...plainly, ...range]);
  if (whole.length <= longestDiff) return whole;
  const files = await git.read(['diff', ...plainly, '--stat=200', ...range]);
  return `${files}\n\n${whole.slice(0, longestDiff)}\n[Cut here: the difference has ${whole.length} characters. Read the other files themselves.]`;
}

/** Returns the files that differ between two commits, with the texts of those that the guard looks into. */
export async function readChanges(
  git: Git,
  parent: string,
  commit: string,
  checks: readonly PlanCheck[],
): Promise<FileChange[]> {
  const raw = await git.read([
    'diff',
    '--raw',
    '-z',
    '-M',
    '--no-abbrev',
    '--end-of-options',
    parent,
    commit,
  ]);
  const fields = raw.split('\0');
  const changes: FileChange[] = [];
  for (let at = 0; at < fields.length - 1; ) {
    const [, , old = '', next = '', letter = ''] = (fields[at++] ?? '').slice(1).split(' ');
    const first = fields[at++] ?? '';
    const isMoved = /^[RC]/.test(letter);
    const path = isMoved ? (fields[at++] ?? '') : first;
    const status = statuses[letter.charAt(0)] ?? 'changed';
    const isRead = isGuarded(path, checks) || isGuarded(first, checks);
    const [before, after] = isRead ? [await textOf(git, old), await textOf(git, next)] : [];
    changes.push({
      ...{ path, status },
      ...(letter.startsWith('R') && { from: first }),
      ...(before !== undefined && { before }),
      ...(after !== undefined && { after }),
    });
  }
  return changes;
}

const statuses: Readonly<Record<string, FileChange['status']>> = {
  A: 'added',
  C: 'added',
  D: 'deleted',
  R: 'renamed',
};

/** Returns the text of a blob; undefined if there is none, or if it is binary or too long. */
async function textOf(git: Git, blob: string): Promise<string | undefined> {
  if (/^0*$/.test(blob)) return undefined;
  const { stdout: size, code } = await git.run(['cat-file', '-s', blob], { allow: [1, 128] });
  if (code !== 0 || Number(size) > longestText) return undefined;
  const { stdout, code: failed } = await git.run(['cat-file', 'blob', blob], { allow: [1, 128] });
  return failed !== 0 || stdout.includes('\0') ? undefined : stdout;
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
    const shown = await git.run(['cat-file', 'blob', `${parent}:${path}`], { allow: [1, 128] });
    const before = shown.code === 0 ? shown.stdout : undefined;
    if (before === after) continue;
    if (install && manifests.includes(path)) return path;
    const status = after === undefined ? 'deleted' : before === undefined ? 'added' : 'changed';
    const change: FileChange = {
      ...{ path, status },
      ...(before !== undefined && { before }),
      ...(after !== undefined && { after }),
    };
    const found = tamperings([change], { checks: [check], protect: [], hadTests: false });
    if (found.some(({ kind }) => kind === 'check-script')) return path;
  }
  return undefined;
}
