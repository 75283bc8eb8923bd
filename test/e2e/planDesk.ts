/** A real VS Code on a small project whose plans are played from a recording, and what tests look for in its view *Plans*. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Locator } from 'playwright-core';
import { eventually } from '../eventually.ts';
import { type EditorSession, openEditorSession } from '../vscode/editorSession.ts';
import { root } from '../vscode/paths.ts';
import { runCommand, type Workbench } from '../vscode/workbench.ts';
import { testVariables, type World } from '../vscode/world.ts';

const demo = join(root, 'media', 'plan-demo');
const recorded = { TELOS_PROVIDER: 'replay', TELOS_REPLAY_FILE: join(demo, 'model') };

export class PlanDesk {
  readonly session: EditorSession;
  readonly world: World;
  readonly workbench: Workbench;

  private constructor(session: EditorSession) {
    this.session = session;
    this.world = session.world;
    this.workbench = session.workbench;
  }

  /** Opens the window with the view *Plans* in front. */
  static async open(): Promise<PlanDesk> {
    const session = await openEditorSession({
      model: { turns: [] },
      skills: {},
      variables: recorded,
      prepare: ({ workspace, dir }) => {
        rmSync(workspace, { recursive: true, force: true });
        cpSync(join(demo, 'project'), workspace, { recursive: true });
        gitIn(workspace, dir, 'init', '--quiet', '--initial-branch=main');
        gitIn(workspace, dir, 'add', '--all');
        gitIn(workspace, dir, 'commit', '--quiet', '--message', 'A small bakery');
      },
    });
    const desk = new PlanDesk(session);
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
    return { cwd: this.world.workspace, env: { ...testVariables(this.world), ...recorded } };
  }

  /** What somebody types in a terminal. An exit code of 3 says that a person is needed. */
  async telos(...args: readonly string[]): Promise<void> {
    const cli = join(root, 'dist', 'cli.js');
    const done = promisify(execFile)(process.execPath, [cli, 'plan', ...args], this.terminal);
    await done.catch(error => assert.equal(error.code, 3, error.stderr));
  }

  /** The path of a file of a plan. */
  file(plan: string, name: string): string {
    return join(this.world.workspace, '.telos', 'plans', plan, name);
  }

  /** As its models were recorded. */
  inParallel(name: string): void {
    const file = this.file(name, 'plan.json');
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), parallel: 2 }));
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

  get widget(): Locator {
    return this.workbench.page.locator('.quick-input-widget');
  }

  picked(label: string): Locator {
    return this.widget.locator('.monaco-list-row', { hasText: label }).first();
  }

  async type(text: string): Promise<void> {
    await this.widget.locator('input[type="text"]').fill(text);
    await this.workbench.page.keyboard.press('Enter');
  }

  get tree(): Locator {
    const { page } = this.workbench;
    return page.locator('.pane', { has: page.locator('.pane-header', { hasText: 'Plans' }) });
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

  /** A button of a row. A tree that is drawn anew takes the button away from under the pointer. */
  async press(target: Locator, action: string): Promise<void> {
    const button = target.locator(`.action-label[aria-label^="${action}"]`).first();
    await eventually(async () => {
      await target.hover({ timeout: 2_000 });
      await button.click({ timeout: 2_000 });
    }, 60_000);
  }

  status(text: string): Locator {
    return this.workbench.page.locator('.statusbar-item[id$="telos.plans"]', { hasText: text });
  }

  lens(title: string): Locator {
    return this.workbench.page.locator('.codelens-decoration a', { hasText: title }).first();
  }
}

function gitIn(folder: string, home: string, ...args: readonly string[]): string {
  return execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', ...args], {
    ...{ cwd: folder, encoding: 'utf8' },
    env: { PATH: process.env['PATH'] ?? '', HOME: home },
  });
}
