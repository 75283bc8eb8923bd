/** Orders as an attacker writes them who may push to the remote and write to the database. */
import { execFileSync } from 'node:child_process';
import { suiteKeys } from '../../src/fleet/sealed.ts';
import { boundLines, digestOf } from '../../src/plans/planCard.ts';
import { defaultSettings } from '../../src/plans/planSettings.ts';
import { parsePrd } from '../../src/plans/prdFile.ts';
import { storyText } from '../plan/planWorld.ts';
import type { PlanFleet } from './planFleet.ts';

/** An entry of a tree: its mode, its name, and its text or the commit that it names. */
export type Entry = readonly [mode: string, name: string, text: string];

export interface ForgedOrder {
  /** The row's input. */
  order: Record<string, unknown>;
  /** What an owner must have accepted. */
  digest: string;
}

/** Pushes an order for the story US-001 that is made for a commit with these files. `more` is put into its file. */
export function forgeOrder(
  { daemon }: PlanFleet,
  name: string,
  url: string,
  files: readonly Entry[],
  more: Record<string, unknown> = {},
): ForgedOrder {
  const git = (input: string, ...args: readonly string[]): string =>
    execFileSync('git', ['-c', 'user.name=Eve', '-c', 'user.email=eve@example.com', ...args], {
      cwd: daemon.folder(name),
      encoding: 'utf8',
      input,
    }).trim();
  const treeOf = (entries: readonly Entry[]): string => {
    const lines = entries.map(([mode, path, text]) => {
      const kind = mode === '160000' ? 'commit' : mode === '040000' ? 'tree' : 'blob';
      const id = kind === 'blob' ? git(text, 'hash-object', '-w', '--stdin') : text;
      return `${mode} ${kind} ${id}\t${path}\0`;
    });
    return git(lines.join(''), 'mktree', '-z', '--missing');
  };
  const commitOf = (tree: string, ...parents: readonly string[]): string =>
    git('', 'commit-tree', tree, '-m', 'x', ...parents.flatMap(parent => ['-p', parent]));
  const inner = files.filter(([, path]) => path.startsWith('.git/'));
  const nested: Entry[] =
    inner.length > 0
      ? [['040000', '.git', treeOf(inner.map(([mode, path, text]) => [mode, path.slice(5), text]))]]
      : [];
  const parent = commitOf(treeOf([...files.filter(one => !inner.includes(one)), ...nested]));
  const text = storyText({
    id: 'US-001',
    touches: ['US-001/**'],
    checks: { there: 'test -f US-001/work.txt' },
  });
  const settings = { ...defaultSettings('site'), ...(more['settings'] as object | undefined) };
  const prd = { path: 'prds/US-001.md', text };
  const { story } = parsePrd(prd.path, text);
  const card = boundLines(settings, [story], []);
  const started = {
    type: 'attempt_started',
    story: 'US-001',
    item: 1,
    attempt: 1,
    slot: 1,
    parent,
    role: 'coder',
  };
  const journal = [{ seq: 1, ts: new Date().toISOString(), ...started }];
  const file = {
    format: 'telos-story',
    proof: 'x',
    base: parent,
    parent,
    limits: {},
    settings,
    prd,
    roles: [],
    card,
    journal,
    ...more,
  };
  const commit = commitOf(treeOf([['100644', 'order.json', JSON.stringify(file)]]), parent);
  git('', 'update-ref', 'refs/telos/site/orders/US-001-a1-1', commit);
  const order = {
    format: 'telos-story-order',
    repository: url,
    plan: 'site',
    story: 'US-001',
    attempt: 1,
    number: 1,
    commit,
    replyTo: suiteKeys().publicKey,
  };
  return { order, digest: digestOf(file.card as string[]) };
}
