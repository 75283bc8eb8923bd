import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Git, runnerMark } from '../../src/plans/git.ts';
import { commitStory, integrate } from '../../src/plans/integrate.ts';
import { Journal } from '../../src/plans/journal.ts';
import { PlanFolder } from '../../src/plans/planFolder.ts';
import { foldPlan } from '../../src/plans/planState.ts';
import { parsePrd } from '../../src/plans/prdFile.ts';
import { attemptRef, recover } from '../../src/plans/recover.ts';
import type { Runner } from '../../src/plans/runnerLock.ts';
import { Slots } from '../../src/plans/slots.ts';
import type { PlanEvent } from '../../src/protocol/plan.ts';
import { type GitRepo, gitRepo } from '../fakes/gitRepo.ts';
import { skipBecause } from '../skipBecause.ts';

const branch = 'telos/bakery';

describe('taking a plan over from a runner that was killed', () => {
  let repo: GitRepo;
  let folder: PlanFolder;
  let git: Git;
  let slots: Slots;
  let journal: Journal;
  let base: string;
  beforeEach(async () => {
    repo = gitRepo({ 'a.txt': 'a\n', '.gitignore': '.telos\n' });
    folder = await PlanFolder.create(repo.path, 'bakery', 'g');
    git = new Git(repo.path, repo.env);
    slots = await Slots.open(folder, git, await folder.settings(), repo.env);
    journal = await Journal.open(folder.journal);
    base = repo.git('rev-parse', 'HEAD');
    for (const id of ['US-001', 'US-002'])
      await folder.write(`prds/${id}.md`, `---\nid: ${id}\n---\n- [ ] 1. a\n- [ ] 2. b\n`);
    await journal.append({ type: 'runner_started', base, branch, slots: 1, limits: {}, pid: 1 });
  });
  afterEach(async () => {
    await journal.close();
    repo.remove();
  });

  const takeOver = (previous?: Runner, mark = 'mark-of-nobody') =>
    recover({ folder, lock: { previous, mark, away: () => 0 }, git, slots, journal, branch });
  const state = (id: string) =>
    foldPlan(
      journal.lines,
      folder.readPrds().map(({ path, text }) => parsePrd(path, text).story),
    ).story(id);
  const started = (attempt = 1): PlanEvent => ({
    type: 'attempt_started',
    story: 'US-001',
    item: 1,
    attempt,
    slot: 1,
    parent: base,
    role: 'coder',
  });
  const worked: PlanEvent = {
    type: 'step_ended',
    key: 'US-001.a1.coder',
    step: 'coder',
    story: 'US-001',
    runId: 'r',
    outcome: 'completed',
  };

  /** A story on the branch, whether the journal knows it or not. */
  async function put(story: string, items = [1, 2], isPart = false): Promise<string> {
    const parent = (await git.tip(branch)) ?? base;
    repo.git('checkout', '-q', '--detach', parent);
    const tree = repo.git('rev-parse', `${repo.commit('x', { [`${story}-${items}.txt`]: story })}^{tree}`);
    repo.git('checkout', '-q', 'main');
    const words = { plan: 'bakery', story, title: story, attempt: 1, items, isPart, checks: [], review: '' };
    const commit = await commitStory(git, { ...words, tree, parent });
    await integrate(git, { plan: 'bakery', story, base, branch, commit, parent, known: new Set() });
    return commit;
  }

  async function workIn(files: Readonly<Record<string, string>>): Promise<string> {
    const slot = await slots.openSlot(1, base);
    for (const [name, text] of Object.entries(files)) writeFileSync(join(slot.dir, name), text);
    return slot.dir;
  }

  it('has nothing to do after a runner that ended', async () => {
    assert.deepEqual(await takeOver(), []);
    assert.equal(journal.lines.at(-1)?.type, 'runner_started');
  });

  it('keeps the work of an attempt that was cut off, and charges nothing', async () => {
    await workIn({ 'half.txt': 'half' });
    await journal.append(started());
    const what = await takeOver();
    assert.match(
      what.join(),
      /US-001, attempt 1: It was cut off; its work is kept in attempts\/US-001\.a1\.patch/,
    );
    assert.match(readFileSync(folder.path('attempts/US-001.a1.patch'), 'utf8'), /\+half/);
    assert.equal(repo.git('show', `${attemptRef('bakery', 'US-001', 1)}:half.txt`), 'half');
    assert.deepEqual([state('US-001')?.status, state('US-001')?.charged], ['ready', 0]);
    assert.deepEqual(await takeOver(), []);
  });

  it('keeps work that was done before anything else can use its work tree, and goes on behind it', async () => {
    const dir = await workIn({ 'done.txt': 'done' });
    await journal.append(started());
    await journal.append(worked);
    assert.deepEqual(await takeOver(), ['US-001 goes on where its attempt 1 was cut off.']);
    const { snapshot } = state('US-001')?.open ?? {};
    assert.equal(repo.git('show', `${snapshot?.commit}:done.txt`), 'done');
    assert.equal(repo.git('rev-parse', attemptRef('bakery', 'US-001', 1)), snapshot?.commit);
    rmSync(dir, { recursive: true });
    assert.deepEqual(await takeOver(), ['US-001 goes on where its attempt 1 was cut off.']);
    assert.deepEqual([state('US-001')?.status, state('US-001')?.open?.snapshot], ['checking', snapshot]);
  });

  it('does not ask again for work that changed no file', async () => {
    await workIn({});
    await journal.append(started());
    await journal.append(worked);
    await takeOver();
    assert.deepEqual([state('US-001')?.lastStatus, state('US-001')?.charged], ['no-change', 1]);
  });

  it('finds on the branch what the journal does not say, and ends its attempt', async () => {
    await journal.append(started());
    const commit = await put('US-001');
    const what = await takeOver();
    assert.match(what.join(), /US-001 was on the branch already/);
    assert.deepEqual([state('US-001')?.status, state('US-001')?.commit], ['passed', commit]);
    assert.deepEqual(
      journal.lines.slice(-2).map(({ type }) => type),
      ['attempt_ended', 'recovered'],
    );
    assert.deepEqual(await takeOver(), []);
  });

  it('finds a part, after which the story goes on', async () => {
    await journal.append(started());
    await put('US-001', [1], true);
    await takeOver();
    assert.deepEqual([state('US-001')?.status, [...(state('US-001')?.passed ?? [])]], ['ready', [1]]);
    assert.equal(state('US-001')?.lastStatus, 'approved-partial');
  });

  it('opens again what a person took off the branch, and nothing else', async () => {
    const [one, two] = [await put('US-001'), await put('US-002')];
    for (const [story, commit] of [
      ['US-001', one],
      ['US-002', two],
    ] as const)
      await journal.append({ type: 'story_passed', story, items: [1, 2], commit });
    repo.git('update-ref', `refs/heads/${branch}`, one);
    const what = await takeOver();
    assert.match(what.join(), /US-002 is open again: its commit \w{10} is not on telos\/bakery any more/);
    assert.deepEqual([state('US-001')?.status, state('US-002')?.status], ['passed', 'ready']);
    assert.deepEqual(await takeOver(), []);
  });

  it('knows a story again whose commit a person rewrote', async () => {
    const one = await put('US-001');
    await journal.append({ type: 'story_passed', story: 'US-001', items: [1, 2], commit: one });
    repo.git('checkout', '-q', branch);
    repo.git('commit', '-q', '--amend', '--no-edit', '--date', '2020-01-01T00:00:00Z');
    repo.git('checkout', '-q', 'main');
    await takeOver();
    assert.deepEqual(
      [state('US-001')?.status, state('US-001')?.commit],
      ['passed', repo.git('rev-parse', branch)],
    );
    assert.deepEqual(await takeOver(), []);
  });

  it('goes back to the last whole commit when a power cut tore the branch', async () => {
    const [one, two] = [await put('US-001'), await put('US-002')];
    await journal.append({ type: 'story_passed', story: 'US-001', items: [1, 2], commit: one });
    await journal.append({ type: 'story_passed', story: 'US-002', items: [1, 2], commit: two });
    const loose = join(repo.path, '.git/refs/heads', branch);
    const tears = [
      () => rmSync(join(repo.path, '.git/objects', two.slice(0, 2), two.slice(2))),
      () => writeFileSync(loose, '\0'.repeat(41)),
      () => writeFileSync(loose, ''),
    ];
    for (const tear of tears) {
      tear();
      assert.match((await takeOver()).join(), /does not have whole, so it is back at/);
      assert.equal(repo.git('rev-parse', branch), one);
      assert.deepEqual([state('US-001')?.status, state('US-002')?.status], ['passed', 'ready']);
    }
  });

  it('removes the locks of a killed git, those of the plan alone', async () => {
    const slot = await slots.openSlot(1, base);
    await git.run(['update-ref', attemptRef('bakery', 'US-001', 1), base]);
    const own = [
      join(slot.admin, 'index.lock'),
      join(slot.admin, 'telos-index.lock'),
      join(slot.admin, 'HEAD.lock'),
      join(repo.path, '.git/refs/heads', `${branch}.lock`),
      join(repo.path, '.git/refs/telos/bakery/US-001/a1.lock'),
    ];
    const others = [join(repo.path, '.git/index.lock'), join(repo.path, '.git/refs/heads/main.lock')];
    mkdirSync(join(repo.path, '.git/refs/heads/telos'), { recursive: true });
    for (const path of [...own, ...others]) writeFileSync(path, '');
    await takeOver();
    assert.deepEqual([...own, ...others].map(existsSync), [
      ...own.map(() => false),
      ...others.map(() => true),
    ]);
  });

  it('keeps what somebody left in a work tree', async () => {
    await workIn({ 'mine.txt': 'mine' });
    const what = await takeOver();
    const [, ref = ''] = /is kept as (\S+)\./.exec(what.join()) ?? [];
    assert.equal(repo.git('show', `${ref}:mine.txt`), 'mine');
    assert.deepEqual(await takeOver(), []);
  });

  it('ends what the killed runner left running, and nothing else', async function () {
    // Only Linux shows the environment of a process.
    if (process.platform !== 'linux') return skipBecause(this, 'only on Linux');
    const mark = `mark-${process.pid}`;
    const start = (value: string, script: string) =>
      spawn('/bin/sh', ['-c', script], {
        env: { ...repo.env, [runnerMark]: value },
        detached: true,
        stdio: 'ignore',
      });
    const [left, stubborn, other] = [
      start(mark, 'sleep 60'),
      start(mark, 'trap "" TERM; while :; do sleep 0.2; done'),
      start('another', 'sleep 60'),
    ];
    const ended = Promise.all([once(left, 'exit'), once(stubborn, 'exit')]);
    const runner = { pid: 1, boot: '', namespace: '', started: '', mark, door: 'cli', since: '' };
    const what = await takeOver(runner, mark);
    await ended;
    assert.match(what.join(), /Ended \d+ processes that the last runner left/);
    assert.equal(other.exitCode, null);
    other.kill('SIGKILL');
  });
});
