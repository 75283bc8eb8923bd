/** What the words of a command say about its dangers, and what is refused whatever anyone answers. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dangerOf, shownDangers } from '../../../src/engine/policy/danger.ts';
import { describeDanger } from '../../../src/protocol/describe.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

interface Case {
  command: string;
  /** The sentences, worst first; `refused` for a command that no answer allows. Empty for a calm one. */
  danger: string[];
}

const cases: Case[] = JSON.parse(
  readFileSync(new URL('../../fixtures/dangers.json', import.meta.url), 'utf8'),
);

describe('danger of a command', () => {
  let folder: TempFolder;
  const said = (command: string): string[] => {
    const work = join(folder.path, 'home/work');
    const { dangers, destroys } = dangerOf(command, {
      folder: work,
      workingDir: work,
      home: join(folder.path, 'home'),
    });
    return destroys === undefined ? dangers.map(danger => describeDanger(danger)) : ['refused'];
  };
  beforeEach(() => {
    folder = tempFolder({ 'home/work/build/x.o': '', 'home/other/a.txt': '' });
  });
  afterEach(() => folder.remove());

  it('is named for each command of the table, and everyday ones stay calm', () => {
    assert.ok(cases.length >= 60);
    const wrong = cases.flatMap(({ command, danger }) => {
      const now = said(command);
      return now.join('\n') === danger.join('\n') ? [] : [{ command, now, danger }];
    });
    assert.deepEqual(wrong, []);
  });

  it('is seen in what git is told to run by its settings', () => {
    for (const setting of ['alias.x=!rm -rf /', 'core.pager=rm -rf /', 'alias.x=!git clean -fdx; rm -rf /'])
      assert.deepEqual(said(`git -c '${setting}' x`), ['refused'], setting);
    assert.deepEqual(said("git -c 'alias.x=reset --hard' x"), said('git reset --hard'));
    assert.deepEqual(said("git -c 'user.name=rm' commit -m 'rm -rf /'"), []);
  });

  it('is seen behind each way to quote the name of a program', () => {
    for (const rm of ['rm', '"rm"', "'rm'", '$"rm"', "$'rm'", "$'\\x72m'", 'r""m', '\\rm'])
      assert.deepEqual(said(`${rm} -rf /`), ['refused'], rm);
  });

  it('follows the links of a path, and not the link that is deleted itself', () => {
    symlinkSync(join(folder.path, 'home/other'), join(folder.path, 'home/work/link'));
    assert.deepEqual(said('rm link'), []);
    assert.deepEqual(said('rm link/a.txt'), ['Deletes link/a.txt, outside the working folder']);
    assert.deepEqual(said('rm -r link/'), ['Deletes link/, outside the working folder']);
  });

  it('takes a line that is too long to be read for dangerous', () => {
    assert.deepEqual(said(`${'true;'.repeat(3000)}rm -rf /`), ['Is too long to be checked']);
  });

  it('leaves calm what npx finds installed, in the folder or above it, and names what it would fetch', () => {
    mkdirSync(join(folder.path, 'home/work/node_modules/.bin'), { recursive: true });
    mkdirSync(join(folder.path, 'home/work/node_modules/@a/b'), { recursive: true });
    writeFileSync(join(folder.path, 'home/work/node_modules/.bin/tsc'), '');
    for (const command of ['npx tsc', 'npx -y tsc -p .', 'cd build && npx tsc', 'npm exec tsc', 'bunx @a/b'])
      assert.deepEqual(said(command), [], command);
    for (const command of ['npx tsc@5', 'npx -p cowsay tsc', 'npx cowsay', 'npx a/b', 'npx', 'npx "$TOOL"'])
      assert.deepEqual(said(command), ['Runs what it downloads'], command);
  });

  it('finds what is destroyed behind any number of words', () => {
    const many = (word: string): string => Array.from({ length: 300 }, (_, at) => `${word}${at}`).join(' ');
    assert.deepEqual(said(`env ${many('A=')} rm -rf ~`), ['refused']);
    assert.deepEqual(said(`env ${many('-u A')} rm -rf ~`), ['refused']);
    assert.deepEqual(said(`nice ${many('x')} rm -rf ~`), ['refused']);
    const cut = dangerOf(`nice ${'x '.repeat(5000)} rm -rf ~/other`, {
      folder: '/w',
      workingDir: '/w',
      home: '/h',
    });
    assert.ok(cut.dangers.some(({ kind }) => kind === 'unread'));
    assert.deepEqual(said(`nice ${'x '.repeat(5000)} rm -rf ~`), ['refused']);
  });

  it('names each danger for a decision, and shows a person few: those that decided first, and each kind before another of one', () => {
    const around = { folder: '/w', workingDir: '/w', home: '/h' };
    const { dangers } = dangerOf(`rm -rf a b c ${'d'.repeat(80)}; npm publish; git stash clear`, around);
    assert.equal(dangers.length, 6);
    const shown = (...decisive: string[]): string[] =>
      shownDangers(dangers, ({ kind }) => decisive.includes(kind)).map(({ kind }) => kind);
    assert.deepEqual(shown(), ['deletes-folder', 'discards', 'publishes']);
    assert.deepEqual(shown('publishes'), ['publishes', 'deletes-folder', 'discards']);
    const long = dangers.filter(({ values }) => values.some(value => value.startsWith('dd')));
    assert.deepEqual(shownDangers(long, () => true)[0]?.values, [`${'d'.repeat(60)}…`]);
  });
});
