/** Tests commands that may only read: which are accepted, which word refuses others, and how an accepted one is run. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import {
  parseReadOnlyCommand,
  type ReadOnlyScope,
  type ReadOnlyVerdict,
} from '../../../src/engine/policy/readOnlyCommand.ts';
import { type TemporaryRun, temporaryRun } from '../tools/temporaryRun.ts';

/** Id, decision and line. `$ROOT` and `$OUT` are folders; one line abbreviates a long one. */
const lines: readonly [string, 'allow' | 'deny', string][] = JSON.parse(
  readFileSync(new URL('../../fixtures/readOnlyCommands.json', import.meta.url), 'utf8'),
);

describe('parseReadOnlyCommand', () => {
  let run: TemporaryRun;
  let scope: ReadOnlyScope;
  const parse = (line: string, more: Partial<ReadOnlyScope> = {}): Promise<ReadOnlyVerdict> =>
    parseReadOnlyCommand(line, { ...scope, ...more });
  const refusal = async (line: string, more: Partial<ReadOnlyScope> = {}): Promise<string> => {
    const verdict = await parse(line, more);
    return verdict.allowed ? 'it is allowed' : verdict.reason;
  };

  before(() => {
    run = temporaryRun();
    scope = { roots: [run.work], cwd: run.work, home: run.home, protectedDirs: [join(run.root, 'telos')] };
    run.put('work/a.txt', 'alpha\nbeta\n');
    run.put('work/skills/one.md', 'alpha\n');
    run.put('work/.env', 'KEY=1\n');
    run.put('outside/other.txt', 'SECRET\n');
    symlinkSync(join(run.outside, 'other.txt'), join(run.work, 'link.txt'));
    symlinkSync(run.outside, join(run.work, 'outlink'));
    symlinkSync(join(run.work, 'skills'), join(run.work, 'inlink'));
  });
  after(() => run.remove());

  for (const [id, decision, written] of lines) {
    it(`${decision === 'allow' ? 'accepts' : 'refuses'} ${id}: ${JSON.stringify(written)}`, async () => {
      const line = written
        .replaceAll('$ROOT', run.work)
        .replaceAll('$OUT', run.outside)
        .replace('{{repeat:x:200000}}', 'x'.repeat(200_000));
      const verdict = await parse(line);
      assert.equal(verdict.allowed, decision === 'allow', verdict.allowed ? 'accepted' : verdict.reason);
      if (!verdict.allowed) assert.ok(verdict.reason.length < 1000 && verdict.reason.length > 10);
    });
  }

  it('says that an empty line is empty, and how many lines may be read', async () => {
    for (const line of ['', '  ']) assert.match(await refusal(line), /empty/i);
    for (const line of ['head -n 3 a.txt', 'head -3 a.txt', 'tail -n +2 a.txt', 'tail --lines=2 a.txt'])
      assert.equal(await refusal(line), 'it is allowed', line);
    for (const line of ['head -n +3 a.txt', 'head -n x a.txt', 'tail -n 1k a.txt', 'head -n -3 a.txt'])
      assert.match(await refusal(line), /-n /, line);
  });

  it('names the word at fault', async () => {
    assert.match(await refusal("find . -name a.txt -exec id '{}' +"), /"-exec"/);
    assert.match(await refusal('rg -nz alpha a.txt'), /"-z in -nz"/);
    assert.match(await refusal('cat a.txt | sh'), /"\|"/);
    assert.match(await refusal('cat a.txt outlink/other.txt'), /"outlink\/other.txt" leads out/);
    assert.match(await refusal('ls\u0000'), /\\u0000/);
    assert.match(await refusal('sort a.txt'), /"sort".*pwd, ls/);
  });

  it('refuses every flag that is not listed, abbreviations and joined forms of them included', async () => {
    const forbidden = [
      ...[
        'rg --pre=x a',
        'rg --pr x a',
        'rg -Lf x a',
        'rg --search-zip a',
        'rg --ignore-file=x a',
        'rg -uz a',
      ],
      ...[
        'grep -f a.txt a.txt',
        'grep -nf a.txt a.txt',
        'grep -R alpha .',
        'grep --fil=a.txt a.txt',
        'ls -L',
      ],
      ...['find . -fprintf x y', 'find . -name x -fprint0 y', "find . '(' -delete ')'", 'find -D exec .'],
      ...['find . -newer link.txt', 'tail --pid=1 a.txt', 'head -c 5 a.txt', 'cat -v a.txt', 'cat'],
      ...['sed -n 1p a.txt a.txt', 'sed -ni 1p a.txt', 'sed -n 1,2w a.txt', 'sed --expression=1p a.txt'],
    ];
    for (const line of forbidden) assert.equal((await parse(line)).allowed, false, line);
  });

  it('gives programs their words so that none can become another flag', async () => {
    const argv = async (line: string): Promise<readonly string[]> => {
      const verdict = await parse(line);
      assert.ok(verdict.allowed, line);
      return verdict.command.argv;
    };
    const searched = await argv('rg -nA3 --glob *.md alpha'.replace('*.md', "'*.md'"));
    assert.deepEqual(searched.slice(0, 4), ['--no-config', '-n', '-A3', '--glob=*.md']);
    assert.deepEqual(searched.slice(-2), ['--', 'alpha']);
    assert.ok(searched.indexOf('--iglob=!.env*') > searched.indexOf('--glob=*.md'));
    assert.deepEqual(await argv('grep -- -v a.txt'), ['--', '-v', 'a.txt']);
    assert.ok((await argv('grep -r alpha')).includes('--exclude=.[eE][nN][vV]*'));
    assert.deepEqual(await argv('ls -l inlink'), ['-l', '--', join(run.work, 'skills')]);
    assert.deepEqual(await argv("find -maxdepth 1 -name '*.md'"), ['.', '-maxdepth', '1', '-name', '*.md']);
  });

  it('lets nothing be looked at outside the roots, and nothing at all without one', async () => {
    assert.equal((await parse('ls', { roots: [] })).allowed, false);
    assert.equal((await parse('ls', { cwd: run.outside })).allowed, false);
    assert.equal((await parse(`ls ${run.outside}`, { roots: [run.work, run.outside] })).allowed, true);
    assert.equal((await parse('cat link.txt', { roots: [run.work, run.outside] })).allowed, true);
    assert.equal((await parse(`cat ${run.work}-evil/a.txt`)).allowed, false);
  });

  it('hands programs the path that was checked where a way goes back up from a link', async () => {
    mkdirSync(join(run.outside, 'deep'), { recursive: true });
    symlinkSync(join(run.outside, 'deep'), join(run.work, 'deeplink'));
    for (const line of [
      'ls deeplink/..',
      'grep -r SECRET deeplink/../',
      'find ./deeplink/..',
      'rg a deeplink/x/../..',
    ]) {
      const verdict = await parse(line);
      assert.ok(verdict.allowed, line);
      assert.ok(verdict.command.argv.includes(run.work), `${line}: ${verdict.command.argv.join(' ')}`);
      const ways = [...verdict.command.argv, ...(verdict.command.searched ?? [])];
      assert.ok(!ways.some(word => word.includes('deeplink')), ways.join(' '));
    }
    const verdict = await parse('ls ../work/skills', { cwd: join(run.work) });
    assert.ok(verdict.allowed && verdict.command.argv.includes('../work/skills'));
  });

  it('refuses files of secrets and those of Telos itself', async () => {
    assert.match(await refusal('cat .env'), /secrets/);
    const all = { roots: [run.root] };
    assert.match(await refusal('cat ../telos/policy.toml', all), /belongs to Telos/);
    assert.match(await refusal('grep -r key ..', all), /lie below/);
    assert.match(await refusal('rg key ..', all), /lie below/);
    assert.match(await refusal('rg key', { ...all, cwd: run.root }), /lie below/);
    assert.match(await refusal('rg key', { cwd: run.outside }), /leads out/);
    const pack = join(run.root, 'telos', 'agents', 'one');
    assert.equal((await parse('ls', { roots: [pack], cwd: pack })).allowed, true);
  });

  it('refuses a very long line at once', async () => {
    assert.match(await refusal(`cat ${'a '.repeat(100_000)}`), /200,?004 characters/);
  });
});
