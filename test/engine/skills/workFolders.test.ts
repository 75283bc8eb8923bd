import assert from 'node:assert/strict';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ownFolderNames, type WantedWork } from '../../../src/engine/skills/workFolders.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('ownFolderNames', () => {
  let root: TempFolder;
  beforeEach(() => {
    root = tempFolder();
  });
  afterEach(() => root.remove());

  const pack = (packFolder: string, name = packFolder): WantedWork => ({
    name,
    packFolder,
    packDir: `/skills/${packFolder}`,
  });
  const named = (name: string): WantedWork => ({ name, packDir: `/elsewhere/${name}` });
  const namesOf = (...agents: WantedWork[]): string[] => {
    const names = ownFolderNames(agents, root.path);
    return agents.map(agent => names.get(agent) ?? '');
  };
  /** As a file system sees them for which neither case nor the form of letters counts. */
  const differ = (names: readonly string[]): void => {
    const seen = new Set(names.map(name => name.normalize('NFKC').toLowerCase()));
    assert.equal(seen.size, names.length, names.join());
  };

  it('leaves ordinary names as they are', () => {
    assert.deepEqual(
      namesOf(pack('kairos'), pack('Daily Notes'), named('vault'), pack('hn-pack', 'hackernews')),
      ['kairos', 'Daily Notes', 'vault', 'hn-pack'],
    );
  });

  it('gives no two the same, also where case or the form of letters does not count', () => {
    const rows = [
      [pack('kairos'), pack('Kairos'), pack('KAIROS')],
      [pack('caf\u00e9'), pack('cafe\u0301')],
      [named('daily:notes'), named('daily-notes'), pack('daily-notes')],
      [named('..'), named('-')],
      [pack('personal', 'friendly'), named('personal')],
    ];
    for (const agents of rows) {
      const names = namesOf(...agents);
      differ(names);
      // In whatever order they are found, each keeps what is its own by then.
      for (const name of names) mkdirSync(join(root.path, name));
      assert.deepEqual(namesOf(...[...agents].reverse()).reverse(), names);
      for (const name of names) rmSync(join(root.path, name), { recursive: true });
    }
    assert.equal(namesOf(pack('personal', 'friendly'), named('personal'))[1], 'personal');
  });

  it('leaves a folder that is there to whom it is called after', () => {
    mkdirSync(join(root.path, 'Kairos'));
    assert.equal(namesOf(pack('kairos'), pack('Kairos'))[1], 'Kairos');
    const [longer = ''] = namesOf(pack('kairos'), pack('Kairos'));
    mkdirSync(join(root.path, longer));
    assert.deepEqual(namesOf(pack('kairos')), [longer]);
    // An agent does not get it by its name.
    const both = namesOf(pack(longer), pack('kairos'));
    assert.equal(both[1], longer);
    differ(both);
  });

  it('tells an agent of one project from its namesakes in another and at home', () => {
    const ofProject = (packDir: string): WantedWork => ({ name: 'helper', packDir, ofProject: true });
    const names = namesOf(ofProject('/a/skills'), ofProject('/b/skills'), pack('helper'));
    differ(names);
    assert.equal(names[2], 'helper');
    assert.equal(namesOf(ofProject('/b/skills'))[0], names[1]);
  });
});
