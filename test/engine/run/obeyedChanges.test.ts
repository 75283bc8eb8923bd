/** What a command writes into files that others run or obey reaches the folder only after a yes. */
import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { ChangeStore } from '../../../src/engine/changes/changeStore.ts';
import type { Human } from '../../../src/engine/core/ports.ts';
import { denyAll } from '../../../src/engine/human.ts';
import type { ApprovalRequest } from '../../../src/protocol/run.ts';
import { skipBecause } from '../../skipBecause.ts';
import { type TemporaryRun, temporaryRun } from '../tools/temporaryRun.ts';
import { type Landed, layered, layeredBox, runId } from './layered.ts';

describe('what others obey', function () {
  this.timeout(30_000);
  let run: TemporaryRun;
  let store: ChangeStore;
  let asked: ApprovalRequest[];
  let finding: Awaited<ReturnType<typeof layeredBox>>;

  before(async function () {
    finding = await layeredBox();
    if (!finding) return skipBecause(this, 'no layer works here');
  });

  beforeEach(() => {
    run = temporaryRun();
    store = new ChangeStore({ dataDir: join(run.root, 'data'), configDir: join(run.root, 'config') });
    asked = [];
  });
  afterEach(() => run.remove());

  const inWork = (path: string): string => join(run.work, path);
  const text = (path: string): string => readFileSync(inWork(path), 'utf8');
  const saying = (allow: boolean, meanwhile: () => void = () => undefined): Human => ({
    ...denyAll,
    approve: async request => {
      asked.push(request);
      meanwhile();
      return allow ? { allow, scope: 'once' } : { allow, reason: 'no' };
    },
  });

  const boxed = (
    script: string,
    human: Human = denyAll,
    path = process.env['PATH'] ?? '',
  ): Promise<Landed> => {
    assert.ok(finding);
    return layered(script, run, store, finding, { human, path });
  };

  it('asks nothing about a package.json that has nothing to run and nothing to fetch', async () => {
    assert.deepEqual((await boxed('npm init -y > /dev/null; mkdir part; cp package.json part/')).notes, []);
    assert.match(text('package.json'), /"version": "1\.0\.0"/);
    const kept = async (json: object | string, path = 'new/package.json'): Promise<boolean> => {
      const content = typeof json === 'string' ? json : JSON.stringify(json);
      await boxed(`mkdir -p ${dirname(path)}; cat > ${path} <<'END'\n${content}\nEND`);
      const isThere = existsSync(inWork(path));
      rmSync(inWork(path), { force: true });
      return isThere;
    };
    assert.equal(await kept({ name: 'a', keywords: [], license: 'ISC' }), true);
    for (const more of [
      { scripts: { test: 'node x.js' } },
      { scripts: { test: 'echo "Error: no test specified" && exit 1; touch x' } },
      { scripts: { postinstall: 'echo "Error: no test specified" && exit 1' } },
      { dependencies: { 'left-of': '1' } },
      { bin: 'x.js' },
      { workspaces: ['x'] },
      { packageManager: 'x@1' },
    ])
      assert.equal(await kept({ name: 'a', ...more }), false, JSON.stringify(more));
    assert.equal(await kept('{"name":"a","__proto__":{"scripts":{"test":"x"}}}'), false);
    assert.equal(await kept('{"name":'), false);
    assert.equal(await kept({ name: 'a' }, 'node_modules/a/package.json'), false);
    run.put('work/package.json', '{"name":"b"}');
    await boxed('echo \'{"name":"a"}\' > package.json');
    assert.equal(text('package.json'), '{"name":"b"}', 'one that was there');
  });

  it('keeps nothing that nobody agreed to, tells the model, and leaves the rest', async () => {
    run.put('work/package.json', '{}\r\n');
    chmodSync(inWork('package.json'), 0o640);
    run.put('work/Makefile', 'all:\n');
    const { changedFiles, notes } = await boxed(
      'mkdir .vscode; echo {} > .vscode/tasks.json; echo x > package.json; chmod 600 package.json; rm Makefile; echo 1 > result.txt',
    );
    assert.deepEqual(changedFiles, [inWork('result.txt')]);
    assert.equal(existsSync(inWork('.vscode')), false);
    assert.equal(text('package.json'), '{}\r\n');
    assert.equal(statSync(inWork('package.json')).mode & 0o7777, 0o640);
    assert.equal(text('Makefile'), 'all:\n');
    assert.match(notes.join(), /\.vscode\/tasks\.json, Makefile, package\.json was not kept: .*Denied/);
    const { files } = await store.of(runId);
    assert.deepEqual(
      files.map(({ path }) => path),
      [inWork('result.txt')],
    );
  });

  it('asks about a new file of variables, which the programs of a project read', async () => {
    await boxed('echo NODE_OPTIONS=--require=./x > .env; echo A=1 > .env.example', saying(false));
    assert.match(
      asked[0]?.reason ?? '',
      /^The command made \.env, which the programs of the project run or obey/,
    );
    assert.equal(existsSync(inWork('.env')), false);
    assert.equal(text('.env.example'), 'A=1\n');
  });

  it('names the first few files of many, to the person and to the model', async () => {
    const many = Array.from({ length: 7 }, (_, at) => `part${at}`);
    const { notes } = await boxed(many.map(name => `mkdir ${name}; echo all: > ${name}/Makefile`).join('; '));
    const named = many.slice(0, 5).map(name => `${name}/Makefile`);
    assert.ok(
      notes.join().includes(`What the command did to ${named.join(', ')} (+2) was not kept`),
      notes.join(),
    );
    assert.ok(many.every(name => !existsSync(inWork(`${name}/Makefile`))));
  });

  it('asks one question, and what the person keeps is as the command left it, and can be undone', async () => {
    run.put('work/Makefile', 'old\n');
    const before = Buffer.from([0xff, 0, 13, 10]);
    const seen: boolean[] = [];
    const human = saying(true, () =>
      seen.push(existsSync(inWork('.vscode/tasks.json')), text('Makefile') === 'old\n'),
    );
    const { changedFiles, notes } = await boxed(
      "mkdir .vscode; printf '\\377\\000\\r\\n' > .vscode/tasks.json; chmod 755 .vscode/tasks.json; echo new > Makefile",
      human,
    );
    assert.deepEqual(seen, [false, true], 'nothing is there while the question is open');
    assert.equal(asked.length, 1);
    assert.match(
      asked[0]?.reason ?? '',
      /^The command changed files that .*editors.* run or obey: \.vscode\/tasks\.json, Makefile\. Keep/,
    );
    assert.deepEqual(asked[0]?.scopes, ['once']);
    assert.ok(readFileSync(inWork('.vscode/tasks.json')).equals(before));
    assert.equal(statSync(inWork('.vscode/tasks.json')).mode & 0o7777, 0o755);
    assert.equal(text('Makefile'), 'new\n');
    assert.deepEqual(notes, []);
    assert.equal(changedFiles.length, 2);
    await store.undo(runId);
    assert.equal(text('Makefile'), 'old\n');
    assert.equal(existsSync(inWork('.vscode')), false);
  });

  it('is not fooled by renames, links, other spellings and folders that look like repositories', async () => {
    run.put('work/.vscode/settings.json', '{}');
    run.put('outside/hooks', 'x');
    const { notes } = await boxed(`
      mv .vscode other; mkdir .vscode; echo evil > .vscode/settings.json; mv other/settings.json kept.json
      mkdir -p sub/.VSCode/.git/refs sub/.VSCode/.git/objects; echo 'ref: refs/heads/m' > sub/.VSCode/.git/HEAD; echo evil > sub/.VSCode/tasks.json
      mkdir -p bare/objects bare/refs; echo 'ref: refs/heads/m' > bare/HEAD; printf '[core]\\n\\tfsmonitor = evil\\n' > bare/config
      ln -s /nowhere .envrc; ln -s ../outside .github`);
    assert.equal(text('.vscode/settings.json'), '{}');
    assert.equal(text('kept.json'), '{}');
    for (const path of ['sub/.VSCode/tasks.json', 'bare/HEAD', '.envrc', '.github'])
      assert.throws(() => readFileSync(inWork(path)), path);
    assert.match(notes.join(), /not kept/);
    assert.equal(asked.length, 0);
  });

  it('leaves a plain repository alone, and keeps no settings and hooks that start programs', async () => {
    const plain = await boxed(
      `
      git init -q .; git config user.name n; git config user.email e@example.org; git remote add origin https://example.org/r.git
      echo a > a; git add a; git commit -qm one; git branch other; git init -q nested`,
      saying(false),
    );
    assert.deepEqual(plain.notes, []);
    assert.equal(asked.length, 0);
    const config = text('.git/config');
    for (const script of [
      'git config core.fsmonitor "touch ran"',
      "printf '[pager]\\n\\tlog = evil\\n' >> .git/config",
      "printf '[credential]\\n\\thelper = !evil\\n' >> .git/config",
      'printf \'[remote "x"]\\n\\turl = ext::evil\\n\' >> .git/config',
      "printf '[core]\\n\\tbare = false \\\\\\n' >> .git/config",
      ...['ext":":evil', '"ext::evil"', 'e"x"t":":evil', '"-evil"', '"a\\\\t:"', 'a # ":', 'ext://evil'].map(
        url => `printf '%b' '[remote "x"]\\n\\turl = ${url}\\n' >> .git/config`,
      ),
      'echo evil > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit',
      'mv .git/hooks .git/old; mkdir .git/hooks; echo evil > .git/hooks/post-checkout',
      'mv .git .g; mkdir .git; cp -r .g/objects .g/refs .g/HEAD .git; echo "[core]" > .git/config; echo "  fsmonitor = evil" >> .git/config',
      'rm .git/config',
      'rm -rf nested/.git; ln -s ../.git nested/.git',
      'echo /elsewhere/objects > .git/objects/info/alternates',
      'echo "gitdir: /elsewhere" > nested/sub.txt; mkdir -p sub; mv nested/sub.txt sub/.git',
      'mkdir -p .git/modules/a/b/hooks; echo x > .git/modules/a/b/HEAD; echo evil > .git/modules/a/b/hooks/pre-commit',
    ]) {
      const { notes, said } = await boxed(script);
      assert.match(notes.join(), /was not kept: .*Git/, script);
      assert.match(said, /^Not kept, since no one said yes to it: .*\(.*Git\)\.$/, script);
      assert.equal(text('.git/config'), config, script);
      for (const path of [
        '.git/hooks/pre-commit',
        '.git/hooks/post-checkout',
        '.git/objects/info/alternates',
        'sub/.git',
      ])
        assert.equal(existsSync(inWork(path)), false, `${script}: ${path}`);
      rmSync(inWork('.git/old'), { recursive: true, force: true });
      if (existsSync(inWork('.g'))) {
        rmSync(inWork('.git'), { recursive: true });
        renameSync(inWork('.g'), inWork('.git'));
      }
    }
  });

  it('keeps no line that starts a program of what a rebase has still to do, and its other lines', async () => {
    await boxed(`
      git init -q .; git config user.name n; git config user.email e@example.org
      for i in 1 2 3; do echo $i > a; git add a; git commit -qm $i; done`);
    const begins = await boxed(`
      GIT_SEQUENCE_EDITOR="sed -i '1s/^pick/break\\npick/'" git rebase -qi HEAD~2; cat .git/rebase-merge/git-rebase-todo`);
    assert.deepEqual(begins.notes, []);
    const list = text('.git/rebase-merge/git-rebase-todo');
    assert.match(list, /^pick/m);
    const { notes } = await boxed('sed -i "1i exec touch ran" .git/rebase-merge/git-rebase-todo');
    assert.match(notes.join(), /git-rebase-todo was not kept: Git/);
    assert.equal(text('.git/rebase-merge/git-rebase-todo'), list);
    assert.deepEqual((await boxed('git rebase --continue')).notes, []);
    assert.equal(asked.length, 0);
    assert.ok(!existsSync(inWork('.git/rebase-merge')));
  });

  it('keeps no programs that a command puts on the PATH, and asks about nothing that a build makes elsewhere', async () => {
    run.put('work/bin/old', '#!/bin/sh\n');
    run.put('work/tools/git', '#!/bin/sh\n');
    chmodSync(inWork('tools/git'), 0o755);
    symlinkSync(inWork('real'), join(run.root, 'away'));
    run.put('work/real/kept', '');
    const path = [
      inWork('bin'),
      inWork('later'),
      inWork('part/bin'),
      join(run.root, 'away'),
      process.env['PATH'] ?? '',
    ].join(':');
    const reasons: string[] = [];
    const no: Human = {
      ...denyAll,
      approve: async ({ reason }) => {
        reasons.push(reason);
        return { allow: false, reason: 'no' };
      },
    };
    for (const [script, planted] of [
      ["printf '#!/bin/sh\\n' > bin/git; chmod 755 bin/git", 'bin/git'],
      ['chmod +x bin/old', 'bin/old'],
      ['ln -s /bin/true bin/ls', 'bin/ls'],
      ['mkdir later; cp tools/git later/ssh', 'later/ssh'],
      ['ln -s tools later', 'later'],
      ['mkdir more; ln -s more part', 'part'],
      ['cp tools/git real/npm', 'real/npm'],
    ] as const) {
      reasons.length = 0;
      const { notes } = await boxed(script, no, path);
      assert.match(notes.join(), new RegExp(`to ${planted} was not kept`), script);
      assert.match(reasons.join(), /is on your PATH: a script that is written there can be run/, script);
      const left = existsSync(inWork(planted)) ? statSync(inWork(planted)).mode & 0o111 : 0;
      assert.equal(left, 0, script);
    }
    reasons.length = 0;
    const calm =
      'mkdir -p node_modules/.bin out; cp tools/git node_modules/.bin/tsc; cp tools/git out/app; echo x >> tools/git; echo data > bin/table; rm -r node_modules';
    assert.deepEqual((await boxed(calm, no, path)).notes, []);
    assert.deepEqual(reasons, []);
    assert.deepEqual((await boxed('cp tools/git bin/mine', saying(true), path)).notes, []);
    assert.ok(statSync(inWork('bin/mine')).mode & 0o100);
  });

  it('keeps nothing of a large file that others obey, and undoes one that was kept', async () => {
    run.put('work/Makefile', 'old\n');
    const large = 'truncate -s 300M';
    const script = `printf 'touch ran\\n' > .envrc; ${large} .envrc; ${large} Makefile; echo 1 > package.json`;
    const { notes, said } = await boxed(script);
    assert.equal(existsSync(inWork('.envrc')), false);
    assert.equal(text('Makefile'), 'old\n');
    assert.match(notes.join(), /(?=.*\.envrc)(?=.*Makefile)(?=.*package\.json).*was not kept/);
    assert.match(said, /^Not kept, .*Makefile, package\.json\. /);
    assert.deepEqual((await boxed(script, saying(true))).notes, []);
    assert.equal(statSync(inWork('.envrc')).size, 300 * 1024 ** 2);
    assert.equal((await store.undo(runId, { others: true })).outcome, 'undone');
    assert.equal(existsSync(inWork('.envrc')), false);
    assert.equal(text('Makefile'), 'old\n');
  });

  it('keeps the old bytes of a file that became large, and says what is too large to be known again', async () => {
    run.put('work/notes', 'old');
    await boxed('truncate -s 1100M notes');
    assert.equal(String(await store.before(runId, inWork('notes'))), 'old', 'its old bytes are kept');
    rmSync(inWork('notes'));
    const huge = await boxed('truncate -s 3000G huge; echo 1 > small');
    assert.match(huge.said, /huge \(3,221,225,472,000 bytes\) is too large to be known again/);
    assert.equal(statSync(inWork('huge')).size, 3000 * 1024 ** 3);
    assert.equal((await store.undo(runId, { others: true })).outcome, 'undone');
  });

  it('does not follow a link that comes in between, and says what it could not put back', async () => {
    run.put('work/.vscode/tasks.json', 'old');
    run.put('outside/tasks.json', 'not ours');
    const human = saying(true, () => {
      rmSync(inWork('.vscode'), { recursive: true });
      symlinkSync(join(run.root, 'outside'), inWork('.vscode'));
    });
    const { said } = await boxed('echo new > .vscode/tasks.json', human);
    assert.equal(readFileSync(join(run.root, 'outside/tasks.json'), 'utf8'), 'not ours');
    assert.match(said, /Not all that the command did was kept: .*\.vscode goes through/);
    assert.equal(dirname(inWork('x')), run.work);
    writeFileSync(inWork('x'), '');
  });
});
