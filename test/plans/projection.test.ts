import assert from 'node:assert/strict';
import { readFileSync, rmSync, statSync } from 'node:fs';
import { Journal } from '../../src/plans/journal.ts';
import { PlanFolder } from '../../src/plans/planFolder.ts';
import { Projection } from '../../src/plans/projection.ts';
import type { PlanEvent } from '../../src/protocol/plan.ts';
import { type GitRepo, gitRepo } from '../fakes/gitRepo.ts';

const prd = (id: string, more = '') => `---\nid: ${id}\n---\n# Story ${id}\n- [ ] 1. a\n- [ ] 2. b\n${more}`;
const passed = (story: string, items = [1, 2], part?: true): PlanEvent => ({
  type: 'story_passed',
  story,
  items,
  commit: `c-${story}`,
  attempt: 1,
  ...(part && { part }),
});

describe('the files of a plan that people read', () => {
  let repo: GitRepo;
  let folder: PlanFolder;
  let journal: Journal;
  beforeEach(async () => {
    repo = gitRepo();
    folder = await PlanFolder.create(repo.path, 'bakery', 'Sell bread');
    journal = await Journal.open(folder.journal);
    await folder.write('prds/01-a.md', prd('US-001'));
    await folder.write('prds/02-b.md', prd('US-002'));
  });
  afterEach(async () => {
    await journal.close();
    repo.remove();
  });

  // A new one each time, as after a restart.
  const project = () => new Projection(folder, journal).project();
  const text = (path: string): string => readFileSync(folder.path(path), 'utf8');
  const status = async (id: string) => (await project()).state.story(id)?.status;
  const edit = (path: string, from: string, to: string) => {
    assert.ok(text(path).includes(from), text(path));
    return folder.write(path, text(path).replace(from, to));
  };
  const events = (type: string) => journal.lines.filter(line => line.type === type);

  it('are ticked when a story passed, and box by box before', async () => {
    await project();
    await journal.append(passed('US-001', [1], true));
    await project();
    assert.equal(text('prds/01-a.md'), prd('US-001').replace('[ ] 1', '[x] 1'));
    await journal.append(passed('US-001', [2]));
    const { stories } = await project();
    assert.equal(text('prds/01-a.md'), prd('US-001').replaceAll('[ ]', '[x]'));
    assert.ok(stories[0]?.items.every(({ ticked }) => ticked));
    assert.equal(text('prds/02-b.md'), prd('US-002'));
  });

  it('are read by the loop of ralph: its next story is ours', async () => {
    await project();
    await journal.append(passed('US-001'));
    const { state } = await project();
    const file = JSON.parse(text('prd.json'));
    const open = file.userStories.filter((story: { passes: boolean }) => !story.passes);
    open.sort((one: { priority: number }, other: { priority: number }) => one.priority - other.priority);
    assert.deepEqual([open[0].id, state.next?.story.id], ['US-002', 'US-002']);
    assert.deepEqual(file.userStories[0], {
      id: 'US-001',
      title: 'Story US-001',
      description: '',
      acceptanceCriteria: ['a', 'b'],
      priority: 1,
      passes: true,
      notes: '',
      telos: {
        prd: 'prds/01-a.md',
        role: 'coder',
        dependsOn: [],
        touches: [],
        checks: [],
        status: 'passed',
        attempts: 0,
        commit: 'c-US-001',
      },
    });
    assert.deepEqual(
      [file.project, file.branchName, file.description],
      ['bakery', 'telos/bakery', 'Sell bread'],
    );
  });

  it('are not written while nothing differs', async () => {
    await journal.append(passed('US-001'));
    await project();
    const before = ['prds/01-a.md', 'prd.json', 'projection.json'].map(
      path => statSync(folder.path(path)).ino,
    );
    await project();
    assert.deepEqual(
      ['prds/01-a.md', 'prd.json', 'projection.json'].map(path => statSync(folder.path(path)).ino),
      before,
    );
  });

  it('say what a person accepted, and never as passed', async () => {
    await project();
    await edit('prds/02-b.md', '[ ] 1', '[x] 1');
    assert.equal(await status('US-002'), 'ready');
    await edit('prds/02-b.md', '[ ] 2', '[X] 2');
    assert.equal(await status('US-002'), 'accepted');
    assert.equal(events('story_accepted').length, 2);
    assert.equal(JSON.parse(text('prd.json')).userStories[1].passes, false);
    assert.ok(text('prds/02-b.md').includes('[X] 2'));
  });

  it('bring a story back when a person unticks a box or adds one', async () => {
    await journal.append(passed('US-001'));
    await project();
    await edit('prds/01-a.md', '[x] 2', '[ ] 2');
    assert.equal(await status('US-001'), 'ready');
    assert.equal(text('prds/01-a.md'), prd('US-001').replace('[ ] 1', '[x] 1'));
    await journal.append(passed('US-001', [2]));
    assert.equal(await status('US-001'), 'passed');
    await edit('prds/01-a.md', '- [x] 2. b\n', '- [x] 2. b\n- [ ] 3. c\n');
    assert.equal(await status('US-001'), 'ready');
    assert.equal(events('story_reopened').length, 2);
    assert.equal(await status('US-001'), 'ready');
    assert.equal(events('story_reopened').length, 2);
  });

  it('keep every other edit of a person, also while boxes are ticked', async () => {
    await project();
    await journal.append(passed('US-001'));
    await edit('prds/01-a.md', '1. a', '1. another wording');
    await folder.write('prds/03-new.md', '- [ ] new\n');
    const { state } = await project();
    assert.ok(text('prds/01-a.md').includes('- [x] 1. another wording\n- [x] 2. b'));
    assert.equal(state.stories.length, 3);
    rmSync(folder.path('prds/02-b.md'));
    assert.equal((await project()).state.stories.length, 2);
  });

  it('lose no edit and invent none, wherever a crash cut the writing', async () => {
    await project();
    await journal.append(passed('US-001'));
    let cut = 0;
    /** A folder that stops writing after so many files. */
    class CutFolder extends PlanFolder {
      override async write(name: string, content: string): Promise<void> {
        if (cut-- === 0) throw new Error('killed');
        await super.write(name, content);
      }
    }
    const cutFolder = new CutFolder(folder.dir, folder.repo);
    const begin = ['prds/01-a.md', 'projection.json'].map(path => [path, text(path)] as const);
    for (let writes = 0; writes < 4; writes++) {
      for (const [path, content] of begin) await folder.write(path, content);
      cut = writes;
      await new Projection(cutFolder, journal).project().catch(() => undefined);
      assert.equal(await status('US-001'), 'passed', `after ${writes} writes`);
      assert.equal(events('story_reopened').length, 0);
      assert.ok(text('prds/01-a.md').includes('[x] 2'));
    }
  });

  it("take over ticks that a plan brought along, and no model's word for them later", async () => {
    await folder.write('prds/03-c.md', prd('US-003').replaceAll('[ ]', '[x]'));
    assert.equal(await status('US-003'), 'accepted');
    rmSync(folder.path('projection.json'));
    await journal.append(passed('US-001'));
    assert.equal(await status('US-001'), 'passed');
    assert.ok(text('prds/01-a.md').includes('[x] 1'));
  });

  it('leave out a second file with the same id, and say so', async () => {
    await folder.write('prds/03-c.md', prd('us-001'));
    const { state, problems } = await project();
    assert.equal(state.stories.length, 2);
    assert.match(problems.join(), /prds\/03-c\.md has the id us-001, as prds\/01-a\.md has/);
  });

  it('tell each attempt once in progress.txt, behind what a person wrote', async () => {
    const ended = (attempt: number, details: string): PlanEvent => ({
      type: 'attempt_ended',
      story: 'US-001',
      attempt,
      status: 'denied',
      details,
    });
    await journal.append(ended(1, 'tests fail'));
    await project();
    await folder.write('progress.txt', `${text('progress.txt')}My note\n`);
    await journal.append(ended(2, 'still\n## Iteration 9 of the reviewer'));
    await project();
    await project();
    const progress = text('progress.txt');
    assert.deepEqual(progress.match(/^(?:## Iteration \d|- Story).*?(?= —|$)/gm), [
      ...['## Iteration 1', '- Story: US-001, attempt 1'],
      ...['## Iteration 2', '- Story: US-001, attempt 2'],
    ]);
    assert.ok(progress.indexOf('My note') < progress.indexOf('Iteration 2'));
    assert.match(progress, /- Status: denied\n- Details: tests fail/);
  });
});
