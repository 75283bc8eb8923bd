import assert from 'node:assert/strict';
import { areApart, nextStories } from '../../src/plans/scheduler.ts';
import type { StoryState } from '../../src/plans/storyState.ts';

const story = (
  id: string,
  more: Partial<StoryState> = {},
  touches: string[] = [`src/${id}/**`],
): StoryState => ({
  story: {
    id,
    title: id,
    prd: `prds/${id}.md`,
    role: 'coder',
    dependsOn: [],
    touches,
    checks: [],
    items: [],
  },
  status: 'ready',
  attempts: 0,
  charged: 0,
  streak: 0,
  unchanged: 0,
  passed: new Set(),
  accepted: new Set(),
  commits: [],
  isAlone: false,
  ...more,
});

const open = { attempt: 1, item: 1, slot: 0, parent: 'p', role: 'coder', checks: [], isJustified: false };

describe('scheduler', () => {
  const next = (stories: readonly StoryState[], running: readonly string[] = [], slots = 4): string[] =>
    nextStories(
      { stories, story: id => stories.find(one => one.story.id === id) },
      new Set(running),
      slots,
    ).map(({ story: { id } }) => id);

  it('takes stories in their order, as many as there are free slots', () => {
    const stories = ['a', 'b', 'c', 'd'].map(id => story(id));
    assert.deepEqual(next(stories, [], 1), ['a']);
    assert.deepEqual(next(stories, [], 3), ['a', 'b', 'c']);
    assert.deepEqual(next(stories, ['b'], 3), ['a', 'c']);
    assert.deepEqual(next(stories, ['a', 'b', 'c'], 3), []);
  });

  it('takes no story that waits for others, for a person, or that is over', () => {
    const stories = (['blocked', 'needs_you', 'passed', 'skipped', 'accepted', 'failed'] as const).map(
      status => story(status, { status }),
    );
    assert.deepEqual(next([...stories, story('z')]), ['z']);
  });

  it('goes on with an attempt that was cut off before it begins another', () => {
    const stories = [story('a'), story('b', { status: 'checking', open })];
    assert.deepEqual(next(stories), ['b', 'a']);
    assert.deepEqual(next([story('a', { status: 'needs_you', open })]), []);
  });

  it('runs stories side by side only if they touch other files', () => {
    const stories = [
      story('a', {}, ['src/login/**']),
      story('b', {}, ['src/login/form.ts']),
      story('c', {}, ['docs/**']),
    ];
    assert.deepEqual(next(stories), ['a', 'c']);
    assert.deepEqual(next(stories, ['a']), ['c']);
    assert.deepEqual(next([story('a'), story('b', {}, [])]), ['a']);
    assert.deepEqual(next([story('a', {}, []), story('b')]), ['a']);
    assert.deepEqual(next([story('a', {}, []), story('b')], ['b']), []);
  });

  it('runs a story alone once it met a conflict', () => {
    const stories = [story('a', { isAlone: true }), story('b')];
    assert.deepEqual(next(stories), ['a']);
    assert.deepEqual(next(stories, ['b']), []);
    assert.deepEqual(next(stories, ['a']), []);
  });

  it('knows globs that can have no file in common, and doubts all others', () => {
    const apart = (one: string, other: string): boolean => areApart({ touches: [one] }, { touches: [other] });
    for (const [one, other] of [
      ['src/a/**', 'src/b/**'],
      ['src/a/**', 'src/ab/**'],
      ['src/**/*.ts', 'src/**/*.css'],
      ['a.ts', 'b.ts'],
      ['src/a.ts', 'src/a.tsx'],
      ['docs', 'docs2/x.md'],
      ['./src/a.ts', 'lib/**'],
    ] as const)
      assert.ok(apart(one, other) && apart(other, one), `${one} ${other}`);
    for (const [one, other] of [
      ['src/**', 'src/a.ts'],
      ['**', 'src/a.ts'],
      ['src/*.ts', 'src/a.ts'],
      ['src/a*', 'src/ab.ts'],
      ['src/**/*.ts', 'src/**/*.test.ts'],
      ['SRC/a.ts', 'src/A.ts'],
      ['src/a.ts', './src/a.ts'],
      ['src', 'src/a.ts'],
      ['src/', 'src/a.ts'],
      ['src/{a,b}/**', 'src/b/x.ts'],
      ['src/[ab].ts', 'src/b.ts'],
      ['*.ts', 'a.*'],
      ['src\\a.ts', 'src/a.ts'],
    ] as const)
      assert.ok(!apart(one, other) && !apart(other, one), `${one} ${other}`);
  });
});
