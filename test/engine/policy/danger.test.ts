/** What the words of a command say about its dangers, and what is refused whatever anyone answers. */
import assert from 'node:assert/strict';
import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { dangerOf } from '../../../src/engine/policy/danger.ts';
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

  it('follows the links of a path, and not the link that is deleted itself', () => {
    symlinkSync(join(folder.path, 'home/other'), join(folder.path, 'home/work/link'));
    assert.deepEqual(said('rm link'), []);
    assert.deepEqual(said('rm link/a.txt'), ['Deletes link/a.txt, outside the working folder']);
    assert.deepEqual(said('rm -r link/'), ['Deletes link/, outside the working folder']);
  });

  it('takes a line that is too long to be read for dangerous', () => {
    assert.deepEqual(said(`${'true;'.repeat(3000)}rm -rf /`), ['Is too long to be checked']);
  });
});
