/** A real VS Code on a small project whose plans are played from a recording, and what tests look for in its view *Plans*. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Locator } from 'playwright-core';
import { callCli } from '../cli/cliProcess.ts';
import { eventually } from '../eventually.ts';
import { type StoryText, storyText } from '../plan/planWorld.ts';
import { type EditorSession, type EditorSessionOptions, openEditorSession } from '../vscode/editorSession.ts';
import { root } from '../vscode/paths.ts';
import { runCommand, type Workbench } from '../vscode/workbench.ts';
import { testVariables, type World } from '../vscode/world.ts';

const demo = join(root, 'media', 'plan-demo');
const recorded = { TELOS_PROVIDER: 'replay', TELOS_REPLAY_FILE: join(demo, 'model') };

/** A line of a journal, as somebody reads it who knows only that it is JSON. */
export interface JournalRow {
  type: string;
  [key: string]: unknown;
}

export class PlanDesk {
  readonly session: EditorSession;
  readonly world: World;
  readonly workbench: Workbench;
  /** Of the view. */
  title = 'Plans';
  readonly #variables: Readonly<Record<string, string>>;

  constructor(
    session: EditorSession,
    variables: Readonly<Record<string, string>> = {},
    workbench: Workbench = session.workbench,
  ) {
    this.session = session;
    this.#variables = variables;
    this.world = session.world;
    this.workbench = workbench;
  }

  /** Opens the window with the view *Plans* in front. */
  static async open(more: Partial<EditorSessionOptions> = {}): Promise<PlanDesk> {
    const variables = more.variables ?? recorded;
    const session = await openEditorSession({
      model: { turns: [] },
      skills: {},
      ...more,
      variables,
      prepare: async world => {
        const { workspace, dir } = world;
        rmSync(workspace, { recursive: true, force: true });
        cpSync(join(demo, 'project'), workspace, { recursive: true });
        gitIn(workspace, dir, 'init', '--quiet', '--initial-branch=main');
        gitIn(workspace, dir, 'add', '--all');
        gitIn(workspace, dir, 'commit', '--quiet', '--message', 'A small bakery');
        await more.prepare?.(world);
      },
    });
    const desk = new PlanDesk(session, variables);
    await runCommand(desk.workbench.page, 'Focus on Plans View');
    return desk;
  }

  close(): Promise<void> {
    return this.session.close();
  }

  /** What a person does with git in the project. */
  git(...args: readonly string[]): string {
    return gitIn(this.world.workspace, this.world.dir, ...args).trim();
  }

  /** Where and as whom a terminal works. */
  get terminal(): { cwd: string; env: NodeJS.ProcessEnv } {
    return { cwd: this.world.workspace, env: { ...testVariables(this.world), ...this.#variables } };
  }

  /** The same project in another window, with the view *Plans* in front. */
  async beside(): Promise<PlanDesk> {
    const { session } = this;
    const desk = new PlanDesk(session, this.#variables, await session.openWindow());
    await runCommand(desk.workbench.page, 'Focus on Plans View');
    return desk;
  }

  /** What somebody types in a terminal, called in this process; returns what it prints. An exit code of 3 says that a person is needed. */
  async telos(...args: readonly string[]): Promise<string> {
    const { cwd, env } = this.terminal;
    const { code, stdout, stderr } = await callCli(cwd, env, ['plan', ...args]);
    assert.ok(code === 0 || code === 3, `${code}: ${stderr}`);
    return stdout;
  }

  /** The path of a file of a plan. */
  file(plan: string, name: string): string {
    return join(this.world.workspace, '.telos', 'plans', plan, name);
  }

  /** As its models were recorded. */
  inParallel(name: string): void {
    this.set(name, { parallel: 2 });
  }

  /** Makes a plan up to its accepted card. */
  async makeReady(name: string): Promise<void> {
    await this.telos('new', 'Give the bakery a discount', '--name', name, '--no-more-questions');
    await this.telos('write', name);
    this.inParallel(name);
    await this.telos('approve', name, '--plan', '--yes');
    await this.telos('split', name);
    await this.telos('approve', name, '--card', '--yes');
  }

  /** Makes a plan of these stories, and accepts its card. */
  async makeOf(name: string, stories: readonly StoryText[], settings: object = {}): Promise<void> {
    await this.telos('new', 'A better bakery', '--name', name, '--no-more-questions');
    for (const story of stories) {
      const file = this.file(name, `prds/${story.id}.md`);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, storyText(story));
    }
    this.set(name, settings);
    await this.telos('approve', name, '--card', '--yes');
  }

  /** Changes plan.json. */
  set(name: string, more: object): void {
    const file = this.file(name, 'plan.json');
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), ...more }));
  }

  /** What has happened to a plan so far. */
  journal(name: string): JournalRow[] {
    return readFileSync(this.file(name, 'journal.jsonl'), 'utf8')
      .split('\n')
      .filter(Boolean)
      .map(line => JSON.parse(line));
  }

  get widget(): Locator {
    return this.workbench.page.locator('.quick-input-widget');
  }

  picked(label: string): Locator {
    return this.widget.locator('.monaco-list-row', { hasText: label }).first();
  }

  /** Sends a form from one of its fields, again if the key came before the form took answers, until the plan has this row. */
  async sends(field: Locator, row: string): Promise<void> {
    await eventually(async () => {
      if (await field.isVisible()) await field.press('Enter', { timeout: 2_000 });
      await this.row(row).waitFor({ timeout: 5_000 });
    }, 60_000);
  }

  async type(text: string): Promise<void> {
    await this.widget.locator('input[type="text"]').fill(text);
    await this.workbench.page.keyboard.press('Enter');
  }

  get tree(): Locator {
    const { page } = this.workbench;
    return page.locator('.pane', { has: page.locator('.pane-header', { hasText: this.title }) });
  }

  /** The row whose label begins so. */
  row(start: string): Locator {
    return this.tree.locator(`.monaco-list-row[aria-label^="${start}"]`);
  }

  /** Folds the stories of a plan: the rows of a small view are not all drawn. */
  async fold(start: string): Promise<void> {
    await eventually(async () => {
      const plan = this.row(start);
      if ((await plan.getAttribute('aria-expanded')) === 'true')
        await plan.locator('.monaco-tl-twistie').click({ timeout: 2_000 });
      assert.equal(await plan.getAttribute('aria-expanded'), 'false');
    }, 60_000);
  }

  /** Presses a button of a row until what it opens is there. */
  async press(target: Locator, action: string, opened?: Locator): Promise<void> {
    const button = target.locator(`.action-label[aria-label^="${action}"]`).first();
    await this.#click(target, button, opened);
  }

  /** Clicks a row until what it opens is there. */
  async open(row: Locator, opened: Locator): Promise<void> {
    await this.#click(row, row, opened);
  }

  /** A tree that is drawn anew takes what is clicked away from under the pointer, also in the middle of a click. */
  async #click(row: Locator, target: Locator, opened: Locator | undefined): Promise<void> {
    await eventually(async () => {
      await row.hover({ timeout: 2_000 });
      await target.click({ timeout: 2_000 });
      await opened?.first().waitFor({ timeout: 15_000 });
    }, 90_000);
  }

  status(text: string): Locator {
    return this.workbench.page.locator('.statusbar-item[id$="telos.plans"]', { hasText: text });
  }

  /** What can be done above a line of the file whose path ends so. */
  lens(title: string, file = '.md'): Locator {
    const editor = this.workbench.page.locator(`.monaco-editor[data-uri$="${file}"]`);
    return editor.locator('.codelens-decoration a', { hasText: title }).first();
  }
}

function gitIn(folder: string, home: string, ...args: readonly string[]): string {
  return execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', ...args], {
    cwd: folder,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] ?? '', HOME: home },
  });
}
