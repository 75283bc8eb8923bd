/** Repositories, files and checks in a bad state: one sentence each, and nothing is lost. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  agreeable,
  once,
  type PlanWorld,
  planWorld,
  type StepModel,
  type StoryText,
  storyText,
  writes,
} from './planWorld.ts';

const one: StoryText = { id: 'US-001', title: 'Hours', touches: ['src/hours.js'] };
const works: StepModel = { ...agreeable, coder: once(writes({ 'src/hours.js': '7\n' })) };

describe('bad input of a plan', function () {
  this.timeout(120_000);
  let world: PlanWorld;
  afterEach(() => world.close());

  /** Says what `telos plan doctor` says of a folder. */
  const doctor = async (folder: string, env: Record<string, string> = {}) => {
    const { code, stdout, stderr } = await world.home.run(['plan', 'doctor', '--cwd', folder], {
      env,
    });
    assert.equal(stderr, '');
    return { code, lines: stdout.trim().split('\n') };
  };
  const folderWith = (name: string): string => {
    const folder = join(world.home.folder.path, name);
    mkdirSync(folder, { recursive: true });
    return folder;
  };
  const run = (...more: readonly string[]) => world.plan('run', 'site', '--unattended', ...more);

  it('says in one sentence what of a repository hinders plans', async () => {
    world = await planWorld([], {});
    const bin = folderWith('bin');
    symlinkSync(process.execPath, join(bin, 'node'));
    const noGit = await doctor(world.repo, { PATH: bin });
    assert.deepEqual([noGit.code, noGit.lines.length], [1, 1]);
    assert.match(noGit.lines[0] ?? '', /^Stops plans: .*git/);
    writeFileSync(
      join(bin, 'git'),
      '#!/bin/sh\ncase "$*" in *version*) echo git version 2.20.1 ;; *) exit 128 ;; esac\n',
    );
    chmodSync(join(bin, 'git'), 0o755);
    assert.deepEqual((await doctor(world.repo, { PATH: bin })).lines, [
      'Stops plans: This is git 2.20.1; plans need 2.38 or later. Install a newer git.',
    ]);
    const none = await doctor(folderWith('none'));
    assert.deepEqual([none.code, none.lines.length], [1, 1]);
    assert.match(none.lines[0] ?? '', /is not in a git repository\. Make one with "git init"/);
    const empty = folderWith('empty');
    execFileSync('git', ['init', '--quiet', empty]);
    assert.match(
      (await doctor(empty)).lines.join(),
      /^Stops plans: The repository has no commits[^\n,]*, [^\n]*first commit\.$/,
    );
    const [shallow, modules] = [folderWith('shallow'), folderWith('modules')];
    world.git('commit', '--quiet', '--allow-empty', '--message', 'second');
    execFileSync('git', ['clone', '--quiet', '--depth', '1', `file://${world.repo}`, shallow]);
    const clone = await doctor(shallow);
    assert.deepEqual([clone.code, clone.lines.length], [0, 1]);
    assert.match(clone.lines[0] ?? '', /^Note: The clone is shallow/);
    execFileSync('git', ['clone', '--quiet', world.repo, modules]);
    const tip = world.git('rev-parse', 'HEAD').trim();
    execFileSync('git', ['update-index', '--add', '--cacheinfo', `160000,${tip},lib`], { cwd: modules });
    assert.match((await doctor(modules)).lines.join(), /^Note: The repository has submodules/);
    assert.deepEqual((await doctor(world.repo)).lines, ['Nothing prevents plans here.']);
  });

  it('passes stories in a shallow clone with submodules, and leaves both as they are', async () => {
    world = await planWorld([one], works);
    const tip = world.git('rev-parse', 'HEAD').trim();
    writeFileSync(join(world.repo, '.gitmodules'), '[submodule "lib"]\n\tpath = lib\n\turl = ../lib\n');
    world.git('update-index', '--add', '--cacheinfo', `160000,${tip},lib`);
    world.git('add', '.gitmodules');
    world.git('commit', '--quiet', '--message', 'A library');
    writeFileSync(join(world.repo, '.git/shallow'), world.git('rev-parse', 'HEAD'));
    assert.equal(world.git('rev-parse', '--is-shallow-repository').trim(), 'true');
    assert.equal((await world.plan('approve', 'site', '--card', '--yes')).code, 0);
    const before = world.checkout();
    const { code, stderr } = await run();
    assert.equal(code, 0, stderr);
    assert.match(stderr, /submodules/);
    assert.match(stderr, /shallow/);
    assert.equal(world.checkout(), before);
    assert.equal(world.git('diff', '--name-only', 'main', 'telos/site').trim(), 'src/hours.js');
  });

  it('is not a success to check a story that has no check, nor one whose check fails', async () => {
    const none = { ...one, id: 'US-002', title: 'Nothing', checks: {} };
    const red = { ...one, id: 'US-003', title: 'Red', checks: { red: 'exit 4' } };
    const green = { ...one, id: 'US-004', title: 'Green', checks: { green: 'exit 0' } };
    world = await planWorld([none, red, green], works);
    const bare = await world.plan('check', 'US-002');
    assert.deepEqual([bare.code, bare.stderr], [1, 'US-002 has no check, so nothing was run.\n']);
    assert.equal((await world.plan('check', 'US-003')).code, 1);
    assert.equal((await world.plan('check', 'US-004')).code, 0);
  });

  it('runs nothing where there is no git, and keeps the plan', async () => {
    world = await planWorld([one], works);
    const bin = folderWith('bin');
    symlinkSync(process.execPath, join(bin, 'node'));
    const { code, stderr } = await world.home.run(['plan', 'run', 'site', '--cwd', world.repo], {
      env: { PATH: bin },
    });
    assert.equal(code, 1);
    assert.match(stderr, /git/);
    assert.equal(stderr.trim().split('\n').length, 1, stderr);
    assert.ok(existsSync(join(world.repo, '.telos/plans/site/prds/01-story.md')));
  });

  it('names stories that wait for each other, and builds the others', async () => {
    world = await planWorld(
      [one, { id: 'US-002', dependsOn: ['US-003'] }, { id: 'US-003', dependsOn: ['US-002'] }],
      works,
    );
    const { code, stderr } = await run();
    assert.equal(code, 1);
    assert.match(stderr, /US-002, US-003 wait for each other/);
    assert.equal(world.git('show', 'telos/site:src/hours.js'), '7\n');
  });

  it('says which story has no criteria, and which waits for one that is not there', async () => {
    world = await planWorld(
      [
        { ...one, criteria: [] },
        { id: 'US-002', dependsOn: ['US-009'] },
        { id: 'US-003', checks: { own: 'no-such-program --all || exit 3' }, touches: ['src/c.js'] },
      ],
      { ...works, 'US-003 coder': once(writes({ 'src/c.js': '1\n' })) },
    );
    const { stdout } = await world.plan('show', 'site');
    assert.match(stdout, /US-001 has no criteria\. Add boxes/);
    assert.match(stdout, /US-002 depends on US-009, which is not there/);
    const { code, stderr } = await run();
    assert.match(stderr, /Note: US-001 has no criteria/);
    assert.notEqual(code, 0);
    assert.match(
      JSON.stringify(world.journal().find(({ type }) => type === 'preflight')),
      /no-such-program: (?:command )?not found/,
    );
    assert.match(world.file('progress.txt'), /no-such-program|not found/);
  });

  it('cuts what a check prints, and ends one that never does', async () => {
    world = await planWorld(
      [
        {
          ...one,
          checks: {
            loud: `node -e "process.stdout.write('x'.repeat(5e6)); process.exitCode = require('node:fs').existsSync('src/hours.js') ? 0 : 1"`,
          },
        },
        { id: 'US-002', touches: ['src/b.js'] },
      ],
      { ...works, 'US-002 coder': once(writes({ 'src/b.js': '1\n' })) },
    );
    const file = join(world.repo, '.telos/plans/site/prds/02-story.md');
    writeFileSync(
      file,
      storyText({ id: 'US-002', touches: ['src/b.js'] }).replace(
        / {2}- \{name.*/,
        '  - {name: hangs, command: "sleep 600", timeout_s: 1}',
      ),
    );
    await world.plan('approve', 'site', '--card', '--yes');
    world.set({ maxAttempts: 1 });
    const { code, stderr } = await run();
    assert.equal(code, 1, stderr);
    assert.match(stderr, /US-001 passed/);
    const [loud] = world.journal().filter(({ type, name }) => type === 'check_ended' && name === 'loud');
    assert.ok(String(loud?.['output']).length < 10_000);
    assert.match(world.file('progress.txt'), /"hangs" did not end by itself/);
  });

  it('loses nothing when plan files are edited, deleted or broken, or the branch is taken back', async () => {
    world = await planWorld([one, { id: 'US-002', touches: ['src/b.js'] }], {
      ...works,
      coder: (turn, attempt, { body }) =>
        turn > 0
          ? { text: ['.'] }
          : writes({
              [JSON.stringify(body.messages[0]).includes('story US-002') ? 'src/b.js' : 'src/hours.js']:
                `${attempt}\n`,
            }),
    });
    assert.equal((await run()).code, 0);
    const folder = join(world.repo, '.telos/plans/site');
    // Its branch by a commit.
    world.git('update-ref', 'refs/heads/telos/site', 'telos/site~1');
    const back = await run();
    assert.equal(back.code, 0, back.stderr);
    assert.match(back.stderr, /US-00\d is open again: its commit \w+ is not on telos\/site any more/);
    // What can be made anew.
    for (const name of ['prd.json', 'progress.txt', 'projection.json'])
      rmSync(join(folder, name), { force: true });
    // A file that nobody can read as a plan.
    writeFileSync(join(folder, 'prds/03-odd.md'), Buffer.from([0xff, 0xfe, 0x00, 0x2d, 0x5b, 0x00]));
    writeFileSync(
      join(folder, 'prds/02-story.md'),
      `${readFileSync(join(folder, 'prds/02-story.md'), 'utf8')}- [ ] 2. More\n`,
    );
    const { code, stderr } = await run();
    assert.ok(code === 0 || code === 1 || code === 3, stderr);
    assert.equal(JSON.parse(world.file('prd.json')).userStories[0].passes, true);
    // Settings that are no settings.
    writeFileSync(join(folder, 'plan.json'), '{"parallel": "many"');
    const wrong = await run();
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /plan\.json cannot be used: it is not JSON/);
    assert.equal(wrong.stderr.trim().split('\n').length, 1, wrong.stderr);
  });

  it('goes on with a clock that was put back, and counts no time twice', async () => {
    world = await planWorld([one, { id: 'US-002', touches: ['src/b.js'] }], {
      ...works,
      'US-002 coder': once(writes({ 'src/b.js': '1\n' })),
    });
    assert.equal((await run('--only', 'US-001')).code, 1);
    const hour = 3_600_000;
    await world.rewrite(
      world
        .journal()
        .map(line => ({ ...line, ts: new Date(Date.parse(String(line['ts'])) + hour).toISOString() })),
    );
    const { code, stderr } = await run('--max-minutes', '5');
    assert.equal(code, 0, stderr);
  });
});
