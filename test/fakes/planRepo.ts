/** A small real project in git with a plan, for attempts at its stories with recorded steps: real files, processes and commits. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, loadConfig } from '../../src/engine/config.ts';
import type { Human, StreamEvent } from '../../src/engine/core/ports.ts';
import { denyAll } from '../../src/engine/human.ts';
import { Telos } from '../../src/engine/telos.ts';
import { LocalSlots } from '../../src/plans/attempt.ts';
import type { AttemptCall, AttemptParts } from '../../src/plans/attemptScene.ts';
import { Git } from '../../src/plans/git.ts';
import { Journal } from '../../src/plans/journal.ts';
import { PlanBudget } from '../../src/plans/planBudget.ts';
import { PlanFolder } from '../../src/plans/planFolder.ts';
import { defaultSettings, type PlanSettings } from '../../src/plans/planSettings.ts';
import { foldPlan, type PlanState } from '../../src/plans/planState.ts';
import { printPrd } from '../../src/plans/prdFile.ts';
import { Projection } from '../../src/plans/projection.ts';
import { Slots } from '../../src/plans/slots.ts';
import type { JournalLine, PlanEvent, Story } from '../../src/protocol/plan.ts';
import { copyRepo } from './repoCopy.ts';
import { calls, done, says } from './scriptedProvider.ts';
import { type TempFolder, tempFolder } from './tempFolder.ts';

/** One call of a tool in a recorded step: its name and its input. Calls of one turn are a list. */
export type RecordedCall = readonly [name: string, input: Readonly<Record<string, unknown>>];
export type RecordedStep = readonly (RecordedCall | readonly RecordedCall[])[];

export const writes = (path: string, content: string): RecordedCall => ['write_file', { path, content }];
export const approves = (summary = 'It is all there.', items?: number[]): RecordedCall => [
  'approve',
  { summary, ...(items && { items }) },
];
export const denies = (reason: string): RecordedCall => ['deny', { reason }];

const usual = {
  'package.json': JSON.stringify({ name: 'shop', type: 'module', scripts: { test: 'node --test' } }),
  'src/add.js': 'export const add = (a, b) => a + b;\n',
  'test/add.test.js':
    "import assert from 'node:assert/strict';\nimport test from 'node:test';\nimport { add } from '../src/add.js';\ntest('adds', () => { assert.equal(add(1, 2), 3); });\n",
  '.gitignore': 'out/\n',
};

export class PlanRepo {
  readonly root: TempFolder;
  readonly repo: string;
  readonly folder: PlanFolder;
  readonly journal: Journal;
  readonly settings: PlanSettings;
  readonly git: Git;
  readonly config: Config;
  readonly base: string;
  #stories: Story[] = [];
  #parts: AttemptParts;

  private constructor(
    root: TempFolder,
    folder: PlanFolder,
    journal: Journal,
    settings: PlanSettings,
    base: string,
    slots: Slots,
    git: Git,
    config: Config,
  ) {
    this.root = root;
    this.repo = folder.repo;
    this.folder = folder;
    this.journal = journal;
    this.settings = settings;
    this.base = base;
    this.git = git;
    this.config = config;
    this.#parts = {
      folder,
      journal,
      git,
      slots,
      settings,
      base,
      runs: Telos.open(config),
      human: denyAll,
      isUnattended: true,
      state: () => this.state,
      atBase: new Map(),
      hadTests: true,
      roles: [],
      env: { TELOS_PLAN_RUNNER: 'test' },
      budget: new PlanBudget(
        () => settings.limits,
        () => this.state,
      ),
    };
  }

  static async make(
    stories: readonly Partial<Story>[],
    more: Partial<PlanSettings> = {},
    files: Record<string, string> = {},
  ): Promise<PlanRepo> {
    const root = tempFolder({ 'home/.k': '', 'play/.k': '' });
    const repo = join(root.path, 'repo');
    const base = copyRepo(repo, { ...usual, ...files }, { name: 'Ann', email: 'ann@example.com' });
    const folder = await PlanFolder.create(repo, 'shop', 'Build a shop');
    const settings = { ...defaultSettings('shop'), ...more };
    const env = {
      PATH: process.env['PATH'],
      HOME: join(root.path, 'home'),
      XDG_CACHE_HOME: join(root.path, 'cache'),
    };
    const config = loadConfig({
      env: {
        ...env,
        TELOS_DATA_DIR: join(root.path, 'data'),
        TELOS_CONFIG_DIR: join(root.path, 'config'),
        TELOS_PROVIDER: 'replay',
        TELOS_REPLAY_FILE: join(root.path, 'play'),
      },
      home: join(root.path, 'home'),
      cwd: repo,
    });
    const git = new Git(repo, env);
    const slots = await Slots.open(folder, git, settings, env);
    const journal = await Journal.open(folder.journal);
    const plan = new PlanRepo(root, folder, journal, settings, base, slots, git, config);
    for (const [at, story] of stories.entries()) await plan.addStory(at + 1, story);
    await plan.project();
    return plan;
  }

  async addStory(number: number, more: Partial<Story>): Promise<void> {
    const id = `US-00${number}`;
    const story: Story = {
      ...{
        id,
        title: `Story ${number}`,
        prd: `prds/0${number}-story.md`,
        role: 'coder',
        dependsOn: [],
        touches: [],
      },
      ...{
        checks: [{ name: 'there', command: 'ls src' }],
        items: [{ number: 1, text: 'It works', ticked: false }],
      },
      ...more,
    };
    await this.folder.write(story.prd, printPrd(story));
  }

  get parts(): AttemptParts {
    return this.#parts;
  }

  /** Changes what the following attempts work with. */
  with(more: Partial<AttemptParts>): void {
    this.#parts = { ...this.#parts, ...more };
  }

  get state(): PlanState {
    return foldPlan(this.journal.lines, this.#stories);
  }

  async project(): Promise<PlanState> {
    const { stories, state } = await new Projection(this.folder, this.journal).project();
    this.#stories = stories;
    return state;
  }

  /** Records the turns of a step. Each is followed by the results of its calls, and the last by some words. */
  record(key: string, turns: RecordedStep, words = 'Done.'): void {
    const header = { format: 'telos-recording', version: 1, agent: 'telos', skill: '', request: '' };
    const lines: object[] = [{ ...header, provider: 'x', model: 'recorded', recordedAt: '2026-01-01' }];
    let results: null[] = [];
    for (const [at, turn] of turns.entries()) {
      const list = (Array.isArray(turn[0]) ? turn : [turn]) as readonly RecordedCall[];
      const events: StreamEvent[] = list.map(([name, input], index) => calls(`c${at}-${index}`, name, input));
      lines.push({ results, events: [...events, done('tool_use')] });
      results = list.map(() => null);
    }
    lines.push({ results, events: [says(words), done()] });
    writeFileSync(
      join(this.root.path, 'play', `${key}.jsonl`),
      lines.map(line => JSON.stringify(line)).join('\n'),
    );
  }

  /** Runs the next attempt at a story, and brings the files in line. Returns how it ended. */
  async attempt(
    id: string,
    more: Partial<AttemptCall> = {},
    signal = new AbortController().signal,
  ): Promise<string> {
    const story = this.state.story(id);
    if (!story) throw new Error(`There is no ${id}.`);
    const attempt = story.open ? story.open.attempt : story.attempts + 1;
    try {
      await this.attempts.run({ story, attempt, slot: 0, ...more }, signal);
    } finally {
      await this.project();
    }
    return this.last('attempt_ended')?.status ?? '';
  }

  #attempts: LocalSlots | undefined;
  get attempts(): LocalSlots {
    this.#attempts ??= new LocalSlots(this.#parts);
    return this.#attempts;
  }

  /** Attempts from here on are those of another runner. */
  restart(): void {
    this.#attempts = undefined;
  }

  events<Type extends PlanEvent['type']>(type: Type): Extract<JournalLine, { type: Type }>[] {
    return this.journal.lines.filter(line => line.type === type) as Extract<JournalLine, { type: Type }>[];
  }

  last<Type extends PlanEvent['type']>(type: Type): Extract<JournalLine, { type: Type }> | undefined {
    return this.events(type).at(-1);
  }

  /** Returns the text of a file on the plan's branch; undefined if it is not there. */
  onBranch(path: string): string | undefined {
    try {
      return run(this.repo, 'git', 'show', `${this.settings.branch}:${path}`);
    } catch {
      return undefined;
    }
  }

  shell(...words: string[]): string {
    return run(this.repo, ...words);
  }

  read(path: string): string {
    return readFileSync(this.folder.path(...path.split('/')), 'utf8');
  }

  human(human: Human): void {
    this.with({ human, isUnattended: false });
    this.restart();
  }

  async remove(): Promise<void> {
    await this.journal.close();
    this.root.remove();
  }
}

function run(cwd: string, program = '', ...args: string[]): string {
  return execFileSync(program, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trimEnd();
}
