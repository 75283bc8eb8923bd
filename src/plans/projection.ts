/**
 * Keeps the files that people and other tools read as the journal says: ticks of the stories, `prd.json` and `progress.txt`. What a
 * person changed in a story's file since the last time is theirs: it is taken into the journal first, and never overwritten.
 */

import { createHash } from 'node:crypto';
import { jsonLine } from '@telos/engine/files';
import type { PlanEvent, Story } from '@telos/protocol/plan';
import type { Journal } from './journal.ts';
import type { PlanFolder, StoryFile } from './planFolder.ts';
import { foldPlan, type PlanState } from './planState.ts';
import { type ParsedStory, parsePrd, tick } from './prdFile.ts';
import { type ProgressEntry, progressOf, withProgress } from './progress.ts';
import { openItems, type StoryState } from './storyState.ts';

export interface Projected {
  state: PlanState;
  stories: Story[];
  /** What the story files say that cannot be used. */
  problems: string[];
}

/** How a story's file was left: its bytes and the numbers of its ticked boxes. */
interface Left {
  hash: string;
  ticks: number[];
}

/** By path. */
type LeftFiles = Record<string, Left>;

interface PrdFile extends ParsedStory, StoryFile {
  /** As it is now. */
  left: Left;
}

export class Projection {
  readonly #folder: PlanFolder;
  readonly #journal: Pick<Journal, 'lines' | 'append'>;
  #parsed = new Map<string, PrdFile>();
  #recordText = '';
  #record: LeftFiles | undefined;
  #writing: Promise<boolean> = Promise.resolve(false);

  constructor(folder: PlanFolder, journal: Pick<Journal, 'lines' | 'append'>) {
    this.#folder = folder;
    this.#journal = journal;
  }

  /** Takes over what a person changed, then writes what differs. Throws TelosError `config` if a file cannot be read or written. */
  async project(): Promise<Projected> {
    const projected = await this.begin();
    if (!(await this.written())) return projected;
    const stories = this.#readFiles().files.map(({ story }) => story);
    return { ...projected, state: foldPlan(this.#journal.lines, stories), stories };
  }

  /**
   * Takes over what a person changed, and begins to write what differs: no one has to wait for files that can be made again. What went
   * wrong with that is thrown by the next call, or by `written`.
   */
  async begin(): Promise<Projected> {
    await this.written();
    this.#record ??= this.#readRecord();
    const { files, problems } = this.#readFiles();
    const stories = files.map(({ story }) => story);
    const before = foldPlan(this.#journal.lines, stories);
    // First the journal: after a crash in between, the same edit is found again.
    const edits = files.flatMap(file =>
      editsOf(file, before.story(file.story.id), this.#record?.[file.path]),
    );
    for (const edit of edits) await this.#journal.append(edit);
    const state = edits.length > 0 ? foldPlan(this.#journal.lines, stories) : before;
    this.#writing = this.#writeAll(files, state);
    this.#writing.catch(() => undefined);
    return { state, stories, problems };
  }

  /** Resolves when all is written, with true if a box changed. Throws TelosError `config` if a file could not be written. */
  written(): Promise<boolean> {
    const writing = this.#writing;
    this.#writing = Promise.resolve(false);
    return writing;
  }

  async #writeAll(files: readonly PrdFile[], state: PlanState): Promise<boolean> {
    const entries = progressOf(this.#journal.lines);
    const [isTicked] = await Promise.all([
      this.#tick(files, state),
      this.#prdJson(state).then(text => this.#write('prd.json', text, { again: true })),
      this.#addProgress(entries),
    ]);
    return isTicked;
  }

  #readFiles(): { files: PrdFile[]; problems: string[] } {
    const ids = new Map<string, string>();
    const problems: string[] = [];
    const before = this.#parsed;
    this.#parsed = new Map();
    const files = this.#folder.readPrds().flatMap(file => {
      const { path } = file;
      const known = before.get(path);
      const parsed = known?.text === file.text ? known : parsedFile(file);
      this.#parsed.set(path, parsed);
      problems.push(...parsed.problems);
      const id = parsed.story.id.toLowerCase();
      const other = ids.get(id);
      if (other !== undefined) {
        problems.push(
          `${path} has the id ${parsed.story.id}, as ${other} has, so it is left out. Give it another id.`,
        );
        return [];
      }
      ids.set(id, path);
      return [parsed];
    });
    return { files, problems };
  }

  /** Returns whether a box changed. */
  async #tick(files: readonly PrdFile[], state: PlanState): Promise<boolean> {
    const changed = files.flatMap(file => {
      const story = state.story(file.story.id);
      const text = story ? tickedText(file, story) : file.text;
      return text === file.text ? [] : [{ ...file, next: text }];
    });
    const left = new Map(files.map(file => [file.path, file.left]));
    for (const { path, text, next } of changed) {
      // An editor may have saved it meanwhile. Then it is recognized the next time.
      if (this.#folder.read(...path.split('/')) !== text) continue;
      await this.#folder.write(path, next);
      left.set(path, leftOf(next, parsePrd(path, next).story));
    }
    // Behind the files: were it before them, a crash in between would look as if a person had taken the ticks away.
    await this.#note(Object.fromEntries(left));
    return changed.length > 0;
  }

  async #addProgress(entries: readonly ProgressEntry[]): Promise<void> {
    if (entries.length === 0) return;
    const progress = this.#folder.read('progress.txt') ?? '';
    await this.#write('progress.txt', withProgress(progress, entries));
  }

  async #prdJson(state: PlanState): Promise<string> {
    const settings = await this.#folder.settings().catch(() => undefined);
    const branch = state.branch ?? settings?.branch ?? `telos/${this.#folder.name}`;
    return printPrdJson(this.#folder.name, branch, state);
  }

  /** Writes a file that only the engine writes, if it differs. */
  async #write(name: string, text: string, how?: { again: boolean }): Promise<void> {
    if (text !== this.#folder.read(name)) await this.#folder.write(name, text, how);
  }

  async #note(record: LeftFiles): Promise<void> {
    const text = `${JSON.stringify(record)}\n`;
    if (this.#recordText === text) return;
    await this.#folder.write('projection.json', text, { again: true });
    this.#recordText = text;
    this.#record = record;
  }

  #readRecord(): LeftFiles {
    this.#recordText = this.#folder.read('projection.json') ?? '{}';
    return jsonLine(this.#recordText, value => (isRecord(value) ? value : undefined)) ?? {};
  }
}

function isRecord(value: unknown): value is LeftFiles {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.values(value).every(
    left => typeof left?.hash === 'string' && Array.isArray(left.ticks) && left.ticks.every(Number.isInteger),
  );
}

function parsedFile({ path, text }: StoryFile): PrdFile {
  const parsed = parsePrd(path, text);
  return { ...parsed, path, text, left: leftOf(text, parsed.story) };
}

const leftOf = (text: string, { items }: Story): Left => ({
  hash: createHash('sha256').update(text).digest('hex'),
  ticks: items.filter(({ ticked }) => ticked).map(({ number }) => number),
});

/** Returns what a person changed in the file since it was left. */
function editsOf(file: PrdFile, state: StoryState | undefined, left: Left | undefined): PlanEvent[] {
  const { id, items } = file.story;
  if (!state || left?.hash === file.left.hash) return [];
  const isClosed = (number: number): boolean => state.passed.has(number) || state.accepted.has(number);
  const ticked = items.filter(
    item => item.ticked && !isClosed(item.number) && !left?.ticks.includes(item.number),
  );
  // Of a file that was never left no one knows whether a box lost its tick or never had it.
  const unticked = items.filter(
    item => !item.ticked && isClosed(item.number) && left?.ticks.includes(item.number),
  );
  const isNew = state.commit !== undefined && unticked.length === 0;
  const added = isNew
    ? openItems(state).filter(item => !ticked.some(({ number }) => number === item.number))
    : [];
  const event = (
    type: 'story_reopened' | 'story_accepted',
    numbers: readonly { number: number }[],
    why: string,
  ) =>
    numbers.length === 0
      ? []
      : [{ type, story: id, items: numbers.map(({ number }) => number), why, by: 'file' as const }];
  return [
    ...event('story_accepted', ticked, `checked off in ${file.path}`),
    ...event('story_reopened', unticked, `unchecked in ${file.path}`),
    ...event('story_reopened', added, `${file.path} has new check boxes`),
  ];
}

/** Ticks what is closed and unticks what is not. A file is looked into only for a box that is to change: there are many, and often. */
function tickedText({ text, story }: PrdFile, state: StoryState): string {
  const isWhole = state.status === 'accepted' || state.status === 'passed';
  return story.items.reduce((before, { number, ticked }) => {
    const isClosed = isWhole || state.passed.has(number) || state.accepted.has(number);
    return ticked === isClosed ? before : tick(before, number, isClosed);
  }, text);
}

/**
 * Returns the text of `prd.json` in the format of ralph, so that his loop and his tools read a plan of ours unchanged. Its stories have
 * the order in which they are worked on as their priority.
 */
function printPrdJson(project: string, branch: string, state: PlanState): string {
  // The parts of a story that was split stand for it.
  const whole = state.stories.filter(({ into }) => !into);
  const userStories = whole.map((story, index) => storyEntry(story, index + 1));
  const file = { project, branchName: branch, description: state.goal, userStories };
  return `${JSON.stringify(file, undefined, 2)}\n`;
}

function storyEntry(state: StoryState, priority: number) {
  const { story, status, attempts, commit } = state;
  return {
    id: story.id,
    title: story.title,
    description: story.description ?? '',
    acceptanceCriteria: story.items.map(({ text }) => text),
    priority,
    // Only what is on the branch. What a person accepted is theirs to answer for.
    passes: status === 'passed',
    notes: notesOf(state),
    telos: {
      prd: story.prd,
      role: story.role,
      dependsOn: story.dependsOn,
      touches: story.touches,
      checks: story.checks.map(({ name }) => name),
      // What is under way is the journal's to say: a file that changed with each step would never be still.
      status: settled.has(status) ? status : 'ready',
      attempts,
      commit: commit ?? null,
    },
  };
}

const settled: ReadonlySet<StoryState['status']> = new Set([
  'blocked',
  'passed',
  'accepted',
  'skipped',
  'failed',
  'needs_you',
]);

function notesOf({ streak, lastDenial, why }: StoryState): string {
  const denied = streak > 0 && lastDenial !== undefined ? [`denied ${streak}×: ${lastDenial}`] : [];
  return [...denied, ...(why === undefined ? [] : [why])].join(' ');
}
