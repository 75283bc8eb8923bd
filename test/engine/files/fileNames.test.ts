/** What is run or obeyed later is known by its name, whoever obeys it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import {
  isSensitive,
  mayMean,
  obeyedAt,
  secretFolderNames,
  whatObeys,
} from '../../../src/engine/files/sensitiveNames.ts';

const known = JSON.parse(
  readFileSync(new URL('../../fixtures/knownNames.json', import.meta.url), 'utf8'),
) as Record<'obeyed' | 'notObeyed', string[]>;

describe('whatObeys', () => {
  for (const path of known.obeyed)
    it(`knows ${JSON.stringify(path)}`, () => assert.ok(whatObeys(`/project/${path}`, path)));
  for (const path of known.notObeyed)
    it(`lets ${JSON.stringify(path)} be`, () => assert.equal(whatObeys(`/project/${path}`, path), undefined));

  it('knows them however a file system lets them be spelt', () => {
    for (const path of [
      'PACKAGE.json',
      'Makefile.',
      'agents.md::$DATA',
      '.g\u200dit/config',
      '.\uff47it/config',
      'GIT~1/config',
    ])
      assert.ok(whatObeys(`/project/${path}`, path), path);
  });

  it('passes over no name that means something by itself', () => {
    const places = [...known.obeyed, ...secretFolderNames].flatMap(path => path.split('/')).filter(Boolean);
    const names = places.map(place => place.replace(/\[!?([^\]]).*?\]/g, '$1').replace(/[*?]/g, 'x'));
    for (const plain of names)
      for (const name of [
        plain,
        plain.toUpperCase(),
        `${plain}.bak`,
        `${plain}~`,
        `${plain} copy`,
        `${plain}. `,
      ])
        if (isSensitive(`/${name}`) || obeyedAt(`/${name}`, `/${name}`)) assert.ok(mayMean(name), name);
    assert.deepEqual(['index.ts', 'f123.txt', 'README.md'].filter(mayMean), []);
  });

  it('says who obeys', () => {
    assert.deepEqual(obeyedAt('/w/AGENTS.md', 'AGENTS.md'), { kind: 'agent', by: 'agents' });
    assert.equal(obeyedAt('/w/Makefile', 'Makefile')?.by, 'builds, tests and linters');
  });

  it('takes a folder that the user works in for no alarm by itself', () => {
    assert.equal(whatObeys('/home/me/.obsidian/notes/a.md', 'notes/a.md'), undefined);
    assert.ok(whatObeys('/home/me/.git/notes/a.md', 'notes/a.md'));
  });

  it('takes a time that grows with the length of the path alone', () => {
    const begun = process.cpuUsage();
    for (const part of ['hooks/', '.config/', 'appdata/', 'a.config.', 'docker-compose'])
      whatObeys(part.repeat(400_000 / part.length), part.repeat(400_000 / part.length));
    assert.ok(process.cpuUsage(begun).user < 20_000_000);
  });
});
