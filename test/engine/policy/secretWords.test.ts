import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { obeyedAt } from '../../../src/engine/files/sensitiveNames.ts';
import { sensitiveWords } from '../../../src/engine/policy/secretWords.ts';
import { tempFolder } from '../../fakes/tempFolder.ts';

describe('secrets that a command names', () => {
  const folder = tempFolder({ 'here/credentials': 'x', 'here/lib/secret': 'x', 'here/a.py': 'x' });
  const here = join(folder.path, 'here');
  symlinkSync('/etc/shadow', join(here, 'secrets'));
  after(() => folder.remove());
  const words = (command: string) => sensitiveWords(command, here, folder.path);

  it('are no words that name nothing in its folder', () => {
    for (const command of [
      'python3 -m pytest -k secret',
      `echo 'x = Signer("secret")' >> tests/t.py`,
      `cat > t.py <<'E'\ns = Signer("secret", salt="cookies")\nE`,
      'npm test -- --grep secret',
      'git commit -m "rotate the secret"',
      'grep -rn private_key a.py',
    ])
      assert.deepEqual(words(command), [], command);
  });

  it('are those that are there, also as a link, or that may be elsewhere', () => {
    for (const command of [
      'cat credentials',
      'cat secrets',
      'cat ./secret',
      'cat lib/secret',
      'cd lib && cat secret',
      'tar -C lib -c secret',
      'ln -s ../lib/secret secret; cat secret',
      'find lib -name secret',
      'cat .env',
      'cat ~/.ssh/id_ed25519',
      'cat token.json',
    ])
      assert.notDeepEqual(words(command), [], command);
  });

  it('are those that cannot be looked at', () => {
    const loop = join(folder.path, 'loop');
    symlinkSync(loop, loop);
    assert.notDeepEqual(sensitiveWords('cat secret', loop, folder.path), []);
  });
});

describe('caches among installed packages', () => {
  const by = (path: string) => obeyedAt(`/project/${path}`, path)?.by;
  it('are what nobody runs: ava, babel, vite, vitest', () => {
    for (const path of [
      '.cache/ava/failing-tests.json',
      '.vite/deps/package.json',
      '.vitest/results.json',
      '.cache/babel/a.json',
    ])
      assert.equal(by(`node_modules/${path}`), undefined, path);
  });
  it('hide nothing else: packages, hooks and texts for agents', () => {
    for (const path of [
      'ava/index.js',
      '.bin/ava',
      '.cache',
      '.cache/x/node_modules/y/i.js',
      '.cache/.git/hooks/pre-commit',
      '.cache/AGENTS.md',
      '.cached/x.js',
    ])
      assert.notEqual(by(`node_modules/${path}`), undefined, path);
  });
});
