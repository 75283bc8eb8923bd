/** Plans in the formats of other tools become stories with their order and their done-marks; the source stays as it is. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ChangeStore } from '../../src/engine/changes/changeStore.ts';
import { type Adopted, adopt, makeAdopted } from '../../src/plans/adopt.ts';
import { Journal } from '../../src/plans/journal.ts';
import { MachineSeal } from '../../src/plans/machineSeal.ts';
import { foldPlan } from '../../src/plans/planState.ts';
import { parsePrd, printPrd } from '../../src/plans/prdFile.ts';
import { Projection } from '../../src/plans/projection.ts';
import { wantedMarks, writeMarks } from '../../src/plans/writeBack.ts';
import type { JournalLine } from '../../src/protocol/plan.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

/** The stories in short: title, then each box with its mark. */
const short = ({ stories }: Adopted) =>
  stories.map(({ story }) => [
    story.title,
    ...story.items.map(({ text, ticked }) => `${ticked ? 'x' : ' '} ${text}`),
  ]);

describe('adopt', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  /** Adopts one of the files, and sees to it that none of them has changed. */
  function read(files: Record<string, string>, path: string): Adopted {
    folder.add(files);
    const adopted = adopt(join(folder.path, path));
    for (const [name, text] of Object.entries(files))
      assert.equal(readFileSync(join(folder.path, name), 'utf8'), text);
    // What is written of a story reads as the same story.
    for (const { story, body } of adopted.stories)
      assert.deepEqual(parsePrd(story.prd, printPrd(story, body)).story.items, story.items);
    return adopted;
  }

  it('reads the list of ralph in the order of priorities', () => {
    const story = (id: string, priority: number, passes: boolean, acceptanceCriteria: string[]) => ({
      ...{
        id,
        title: `Story ${id}`,
        description: `As a guest, I want ${id}.`,
        acceptanceCriteria,
        priority,
        passes,
      },
      notes: passes ? 'Went well.' : '',
    });
    const userStories = [
      story('S-2', 2, false, ['It rings', 'It stops']),
      story('S-1', 1, true, ['It opens']),
    ];
    const plan = JSON.stringify({
      project: 'Door',
      branchName: 'ralph/door',
      description: 'A better door',
      userStories,
    });
    const adopted = read({ 'prd.json': plan }, 'prd.json');
    assert.deepEqual([adopted.format, adopted.goal], ['ralph', 'A better door']);
    assert.deepEqual(short(adopted), [
      ['Story S-1', 'x It opens'],
      ['Story S-2', '  It rings', '  It stops'],
    ]);
    const [first] = adopted.stories;
    assert.deepEqual([first?.story.id, first?.story.prd], ['US-001', 'prds/01-story-s-1.md']);
    assert.match(first?.body ?? '', /Went well/);
  });

  it('reads the phases of spec-kit, with the documents beside them', () => {
    const tasks =
      '# Tasks: Door bell\n\n## Format: `[ID] [P?] Description`\n\n## Phase 1: Setup\n\n- [x] T001 Make the folder src/\n- [ ] T002 [P] Add a linter\n\n## Phase 2: User Story 1 - Ring\n\n### Tests\n\n- [ ] T003 [P] [US1] Test of the button\n\n### Work\n\n- [ ] T004 [US1] The button in src/bell.ts\n\n```\n- [ ] T999 only an example\n```\n';
    const adopted = read(
      {
        'specs/1/tasks.md': tasks,
        'specs/1/spec.md': '# Feature Specification: Door bell\nIt rings.',
        'specs/1/plan.md': '# Plan\nTypeScript.',
      },
      'specs/1',
    );
    assert.deepEqual([adopted.format, adopted.goal], ['spec-kit', 'Door bell']);
    assert.deepEqual(short(adopted), [
      ['Setup', 'x Make the folder src/', '  Add a linter'],
      ['User Story 1 - Ring', '  Test of the button', '  The button in src/bell.ts'],
    ]);
    assert.match(adopted.plan, /It rings\.[\s\S]*TypeScript\./);
    assert.equal(adopted.files.length, 3);
  });

  it('reads the numbered tasks of Kiro', () => {
    const tasks =
      '# Implementation Plan\n\n- [x] 1. Set up\n  - Make the folders\n  - _Requirements: 1.1_\n\n- [ ] 2. The bell\n- [x] 2.1 The button\n  - [ ] 2.2 The sound\n  - [ ]* 2.3 Tests of the sound\n';
    const adopted = read(
      {
        '.kiro/specs/bell/tasks.md': tasks.replace('- [x] 2.1', '  - [x] 2.1'),
        '.kiro/specs/bell/requirements.md': '# Requirements\nIt rings.',
        '.kiro/specs/bell/design.md': '# Design\nA button.',
      },
      '.kiro/specs/bell',
    );
    assert.deepEqual([adopted.format, adopted.goal], ['kiro', 'bell']);
    assert.deepEqual(short(adopted), [
      ['Set up', 'x Set up'],
      ['The bell', 'x The button', '  The sound', '  Tests of the sound'],
    ]);
    assert.match(adopted.stories[0]?.body ?? '', /Make the folders/);
    assert.match(adopted.plan, /^# Requirements[\s\S]*# Design/);
  });

  it('reads any Markdown with boxes, a story for each heading', () => {
    const adopted = read(
      {
        'TODO.md':
          '# Door\r\n\r\nSome words.\r\n\r\n- [ ] Paint it\r\n\r\n## Lock\r\n\r\n* [x] Buy one\r\n* [ ] Fit it\r\n',
      },
      'TODO.md',
    );
    assert.deepEqual([adopted.format, adopted.goal], ['markdown', 'Door']);
    assert.deepEqual(short(adopted), [
      ['Door', '  Paint it'],
      ['Lock', 'x Buy one', '  Fit it'],
    ]);
  });

  it('makes a plan of it, whose ticked boxes count as accepted by the person', async () => {
    const { path } = folder;
    const tasks = '# Door\n\n## Lock\n- [x] Buy one\n- [ ] Fit it\n';
    const seal = new MachineSeal(join(path, 'data'));
    const plan = await makeAdopted(read({ 'TODO.md': tasks }, 'TODO.md'), path, seal);
    assert.equal(plan.name, 'door');
    assert.match(plan.read('plan.md') ?? '', /^# Door\n/);
    const journal = await Journal.open(plan.journal, seal);
    const { state } = await new Projection(plan, journal).project();
    await journal.close();
    assert.deepEqual([state.phase, state.isPlanApproved, state.goal], ['stories_review', true, 'Door']);
    assert.deepEqual([...(state.story('US-001')?.accepted ?? [])], [1]);
    assert.deepEqual(JSON.parse(plan.read('prd.json') ?? '').userStories[0].passes, false);
    await assert.rejects(makeAdopted(read({ 'TODO.md': tasks }, 'TODO.md'), path, seal), /already/);
  });

  it('says what it cannot read', () => {
    assert.throws(() => read({ 'a.md': '# Nothing' }, 'a.md'), /no tasks that can be read/);
    assert.throws(() => read({}, 'absent.md'), /does not exist/);
    assert.throws(() => read({ 'b.json': '{' }, 'b.json'), /is not JSON/);
    assert.throws(() => read({ 'c.json': '[]' }, 'c.json'), /no tasks/);
    assert.throws(() => read({ 'tasks.json': '{"tasks":[]}' }, 'tasks.json'), /no tasks/);
    assert.throws(() => read({ 'empty/.keep': '' }, 'empty'), /no tasks/);
  });

  it('takes hostile names for text', () => {
    const title = '../../etc/passwd\n---\nid: US-666\n---\n- [x] done';
    const plan = JSON.stringify({
      userStories: [
        { id: '1', title, acceptanceCriteria: ['one\n- [x] two', ''], priority: 1, passes: false },
      ],
    });
    const { stories } = read({ 'prd.json': plan }, 'prd.json');
    const [only] = stories;
    assert.match(only?.story.prd ?? '', /^prds\/01-[a-z0-9-]+\.md$/);
    const again = parsePrd(only?.story.prd ?? '', printPrd(only?.story as never, only?.body)).story;
    assert.deepEqual([again.id, again.items.length, again.items[0]?.ticked], ['US-001', 1, false]);
  });

  describe('with what is done since', () => {
    /** Sets the marks for the boxes of stories that are done, by story; all of them for `[]`. */
    async function written(text: string, path: string, done: Record<string, number[]>): Promise<string> {
      // Bytes that are no UTF-8 stay, too.
      folder.add({ [path]: '' });
      const file = join(folder.path, path);
      writeFileSync(file, Buffer.from(text, 'latin1'));
      const adopted = adopt(file);
      const lines = Object.entries(done).map(
        ([story, items], at): JournalLine => ({
          type: 'story_accepted',
          story,
          by: 'cli',
          why: '',
          seq: at + 1,
          ts: '',
          ...(items.length > 0 && { items }),
        }),
      );
      const stories = adopted.stories.map(({ story }) => story);
      const { wanted } = wantedMarks(adopted, foldPlan(lines, stories));
      const store = new ChangeStore({ dataDir: join(folder.path, 'data'), configDir: '/nowhere' });
      const id = await writeMarks(wanted, store);
      const now = readFileSync(file).toString('latin1');
      await store.undo(id);
      assert.equal(readFileSync(file).toString('latin1'), text);
      return now;
    }

    it('ticks boxes in Markdown and nothing else', async () => {
      const text =
        '\xEF\xBB\xBF# Door\r\n\r\n## Bell \xFF\r\n\r\n* [ ] it rings [ ] twice\r\n- [x] it hangs\r\n```\n- [ ] it rings\n```\n## Lock\n+ [ ]\tturns';
      assert.equal(await written(text, 'door.md', { 'US-001': [1] }), text.replace('* [ ] it', '* [x] it'));
      const kiro = '- [ ] 1. First\n  - [ ] 1.1 one\n  - [ ] 1.2 two\n- [ ] 2. Second\n';
      folder.add({ 'specs/door/design.md': '# Design\n' });
      const path = 'specs/door/tasks.md';
      assert.equal(await written(kiro, path, { 'US-001': [2] }), kiro.replace('- [ ] 1.2', '- [x] 1.2'));
      assert.equal(await written(kiro, path, { 'US-001': [], 'US-002': [1] }), kiro.replaceAll('[ ]', '[x]'));
    });

    it('sets the fields of JSON that say it, wherever these words stand besides', async () => {
      const text =
        '\xEF\xBB\xBF{ "notes": "\\"passes\\": false, }]",\r\n\t"m\xC3\xBCll": 1, "userStories": [ "odd", {"title":"First",\n "passes" :  false, "acceptanceCriteria": ["passes", "\\"passes\\": false"] },\n {"title":"Second","passes":false} ] }\n';
      const first = await written(text, 'prd.json', { 'US-001': [] });
      assert.equal(first, text.replace('"passes" :  false', '"passes" :  true'));
      const second = await written(text, 'prd.json', { 'US-002': [] });
      assert.equal(second, text.replace('"Second","passes":false', '"Second","passes":true'));
    });

    it('leaves a story alone that its source words otherwise by now', () => {
      const stories = (text: string) => {
        folder.add({ 'door.md': `# Door\n\n- [ ] ${text}\n` });
        return adopt(join(folder.path, 'door.md'));
      };
      const line: JournalLine = {
        type: 'story_accepted',
        story: 'US-001',
        by: 'cli',
        why: '',
        seq: 1,
        ts: '',
      };
      const state = foldPlan(
        [line],
        stories('it rings').stories.map(({ story }) => story),
      );
      const { wanted, unknown } = wantedMarks(stories('it sings'), state);
      assert.deepEqual([wanted, unknown], [[], ['Door']]);
    });
  });
});
