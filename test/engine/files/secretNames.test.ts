/** What is known for a secret by its name alone: by one table, for the policy and for everything that searches. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { folded, isSensitive } from '../../../src/engine/files/sensitiveNames.ts';
import { parseReadOnlyCommand } from '../../../src/engine/policy/readOnlyCommand.ts';
import { runReadOnly } from '../../../src/engine/tools/readOnlyShell.ts';
import { findRipgrep, searchFilesTool } from '../../../src/engine/tools/search.ts';
import { type TemporaryRun, temporaryRun } from '../tools/temporaryRun.ts';

const known = JSON.parse(
  readFileSync(new URL('../../fixtures/knownNames.json', import.meta.url), 'utf8'),
) as Record<'secrets' | 'ordinary', string[]>;

describe('names of secrets', () => {
  for (const path of known.secrets)
    it(`holds ${JSON.stringify(path)} for one`, () => assert.ok(isSensitive(`/home/me/${path}`)));
  for (const path of known.ordinary)
    it(`holds ${JSON.stringify(path)} for none`, () => assert.ok(!isSensitive(`/home/me/${path}`)));

  it('are told however a file system lets them be spelt', () => {
    const spellings = [
      '.ENV',
      '.e\u200bnv',
      '.env.',
      '.env ',
      '.env. .',
      '.env::$DATA',
      '.ENV:x:$data',
      '.env/',
    ];
    const others = ['.\uff45nv', '.en\u{e0100}v', '.\u017f\u017fh/config', '.\u00dfh/config', '.SSH\\config'];
    const more = ['ID_RSA', 'prod.Env', 'Server.PEM...', 'secrets.\u034fyaml', 'token.json::$DATA'];
    for (const path of [...spellings, ...others, ...more])
      assert.ok(isSensitive(`/home/me/${path}`), JSON.stringify(path));
    assert.equal(folded('/A/b. ./C::$DATA'), '/a/b/c');
  });

  it('are told in a time that grows with the length of the name alone', () => {
    assert.equal(isSensitive(`${'. '.repeat(200_000)}x`), false);
    assert.equal(isSensitive(`.env${'. '.repeat(200_000)}`), true);
    const begun = process.cpuUsage();
    for (const part of [
      'firebase-adminsdk',
      'secret',
      ':',
      '::$a',
      '.',
      '/',
      '/.config',
      'appdata/',
      '1password',
    ])
      isSensitive(`${part.repeat(400_000 / part.length)}x`);
    assert.ok(process.cpuUsage(begun).user < 10_000_000, 'far from the square of the length');
  });

  it('are known in the copies that systems make', () => {
    const copies = [
      'id_rsa (1)',
      'id_rsa copy',
      'id_rsa - Copy',
      'Credentials copy 2.json',
      'secrets (2).yaml',
    ];
    for (const name of copies) assert.equal(isSensitive(`/w/${name}`), true, name);
    for (const name of ['notes (1).md', 'photo copy.png', 'keys (a).md'])
      assert.equal(isSensitive(`/w/${name}`), false, name);
  });
});

describe('a search', () => {
  let run: TemporaryRun;
  let ordinary: string[];

  before(() => {
    run = temporaryRun();
    const beside = [
      'secrets/garden.md',
      'token/readme.md',
      'a [b]/{c}.md',
      'x/config.json',
      'y/.docker/config.json',
    ];
    const files = [...known.ordinary, ...known.secrets.map(path => path.replace(/[ /]+$/, '')), ...beside];
    // A name can be a folder of another one's path.
    for (const [index, path] of files.entries()) run.put(`work/${index}/${path}`, 'needle\n');
    const all = files.map((path, index) => `${index}/${path}`);
    ordinary = all.filter(path => !isSensitive(path)).sort();
    assert.ok(ordinary.length >= known.ordinary.length + 4 && ordinary.length < all.length - 100);
  });
  after(() => run.remove());

  const found = (content: string): string[] =>
    content
      .split('\n')
      .map(line => line.replace(/^\.\//, '').replace(/:.*$/, ''))
      .filter(line => line !== '')
      .sort();

  it('of the file tools passes by just the files that the policy asks about', async () => {
    const seen: string[] = [];
    for (const path of ordinary.map(each => each.split('/')[0]!)) {
      const result = await searchFilesTool.execute({ pattern: 'needle', path }, run.context);
      seen.push(...found(result.content).filter(line => !line.startsWith('No line')));
    }
    assert.deepEqual(seen.sort(), ordinary);
    const whole = await searchFilesTool.execute({ pattern: 'needle' }, run.context);
    assert.deepEqual(
      found(whole.content).filter(path => !ordinary.includes(path)),
      [],
    );
  });

  const programs = ['grep -rl needle .', ...(findRipgrep(temporaryEnv()) ? ['rg --hidden -l needle .'] : [])];
  for (const line of programs)
    it(`by ${line.split(' ')[0]} does so too, from wherever it begins`, async () => {
      const scope = { roots: [run.work], cwd: run.work, home: run.home };
      const verdict = await parseReadOnlyCommand(line, scope);
      assert.ok(verdict.allowed);
      const outcome = await runReadOnly(verdict.command, { ...run.context, ...temporaryEnv() }, 30_000);
      assert.ok('content' in outcome, JSON.stringify(outcome));
      const seen = found(outcome.content);
      assert.deepEqual(
        seen.filter(path => isSensitive(path)),
        [],
      );
      // The program is given names: what is called as a secret that lies in the same search is left out with it.
      const called = new Set(['secrets', 'credentials', 'gh', 'op', 'config.json']);
      const missed = ordinary.filter(path => !seen.includes(path));
      assert.deepEqual(
        missed.filter(path => !path.split('/').some(part => called.has(part))),
        [],
      );
      // Below a folder whose own name is half of a secret place.
      const inside = join(run.work, 'half', '.config');
      run.put('work/half/.config/gh/hosts.yml', 'needle\n');
      run.put('work/half/.config/app/plain.yml', 'needle\n');
      const below = await parseReadOnlyCommand(line, { ...scope, cwd: inside });
      assert.ok(below.allowed);
      const shown = await runReadOnly(below.command, { ...run.context, ...temporaryEnv() }, 30_000);
      assert.deepEqual('content' in shown && found(shown.content), ['app/plain.yml']);
    });
});

function temporaryEnv(): { env: Record<string, string> } {
  return { env: { PATH: process.env['PATH'] ?? '' } };
}
