/**
 * Provides the tree *Plans* for the workspace's folders. Follows the files of the plans, no matter who runs them, and sums up in the status
 * bar and on the view's badge what they have come to.
 */

import { type FSWatcher, lstatSync, watch } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { projectFoldersAt } from '@telos/engine/skills';
import { type MachineSeal, readRunner } from '@telos/plans/run';
import { lookAt, PlanFolder } from '@telos/plans/state';
import type { Usage } from '@telos/protocol/run';
import { addedUsage } from '@telos/protocol/usage';
import * as vscode from 'vscode';
import { describeError, plainLabel } from '../base/labels.ts';
import {
  costLabel,
  counted,
  type PlanNode,
  type PlansNode,
  planItem,
  type QuestionNode,
  questionItem,
  type StoryNode,
  storyItem,
  waitingIn,
  waitingLabel,
} from './planItem.ts';

export type { PlansNode } from './planItem.ts';

/** A runner notes several facts a second. In milliseconds. */
const settleTime = 150;
/** A runner that was killed reports nothing. In milliseconds. */
const aliveInterval = 3_000;

export class PlansTree implements vscode.Disposable {
  readonly #view: vscode.TreeView<PlansNode>;
  readonly #changed: vscode.EventEmitter<void>;
  readonly #log: vscode.LogOutputChannel;
  readonly #seal: () => Promise<MachineSeal>;
  readonly #looked = new vscode.EventEmitter<void>();
  readonly #status = vscode.window.createStatusBarItem('telos.plans', vscode.StatusBarAlignment.Right, 99);
  readonly #subscriptions: vscode.Disposable;
  /** By the path of its folder. */
  readonly #folders = new Map<string, PlanFolder>();
  /** Names by repository that have changed since they were looked at. */
  readonly #stale = new Set<string>();
  /** By the path of the folder, with the folder that was there when the watch began. */
  readonly #watchers = new Map<string, { watcher: FSWatcher; inode: bigint | undefined }>();
  #plans: readonly PlanNode[] = [];
  /** True once the editor has rows, or knows that there are none. */
  #isShown = false;
  /** What the rows show, as text. */
  #drawn: string | undefined;
  #reading: Promise<void> = Promise.resolve();
  #settling: NodeJS.Timeout | undefined;
  #alive: NodeJS.Timeout | undefined;
  #isOver = false;
  #looks = 0;

  /** Fires when the plans have been read again. */
  readonly onDidLook = this.#looked.event;

  constructor(
    view: vscode.TreeView<PlansNode>,
    changed: vscode.EventEmitter<void>,
    log: vscode.LogOutputChannel,
    seal: () => Promise<MachineSeal>,
  ) {
    this.#view = view;
    this.#seal = seal;
    this.#changed = changed;
    this.#log = log;
    this.#status.name = vscode.l10n.t('Telos Plans');
    this.#status.command = 'telos.plans.focus';
    this.#subscriptions = vscode.Disposable.from(
      this.#looked,
      this.#status,
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.refresh()),
    );
    void this.refresh();
  }

  /** All plans of the workspace, as they were read last. */
  get plans(): readonly PlanNode[] {
    return this.#plans;
  }

  async children(node?: PlansNode): Promise<PlansNode[]> {
    if (!node) {
      await this.#reading;
      this.#isShown = true;
      return [...this.#plans];
    }
    return node.kind === 'plan' ? rowsOf(node) : [];
  }

  /** Returns a row as it was read last: the editor keeps the one that it has drawn. */
  newest(node: PlansNode): PlansNode {
    const { folder } = node.kind === 'plan' ? node : node.plan;
    const plan = this.#plans.find(one => one.folder.dir === folder.dir);
    if (!plan) return node;
    if (node.kind === 'plan') return plan;
    const { id } = this.item(node);
    return rowsOf(plan).find(one => this.item(one).id === id) ?? node;
  }

  item(node: PlansNode): vscode.TreeItem {
    if (node.kind === 'plan') return planItem(node);
    return node.kind === 'story' ? storyItem(node) : questionItem(node);
  }

  /** Reads the plan again, or all plans. */
  async refresh(dir?: string): Promise<void> {
    if (dir === undefined) for (const { folder } of this.#plans) this.#stale.add(folder.dir);
    else this.#stale.add(dir);
    await this.#read();
  }

  dispose(): void {
    clearTimeout(this.#settling);
    clearInterval(this.#alive);
    this.#settling = this.#alive = undefined;
    this.#isOver = true;
    for (const { watcher } of this.#watchers.values()) watcher.close();
    this.#subscriptions.dispose();
  }

  /** The top folders of the repositories that the workspace's folders lie in. */
  get repos(): readonly string[] {
    const folders = (vscode.workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === 'file');
    const tops = folders.map(
      ({ uri }) => projectFoldersAt({ cwd: uri.fsPath, home: homedir() }).at(-1) ?? uri.fsPath,
    );
    return [...new Set(tops)];
  }

  /**
   * Watches the folders in which something can change: those of the plans and of their stories, and above them the first that is
   * there. The editor's own watcher does not report what is made in a new folder at once.
   */
  #follow(): void {
    const wanted = new Map<string, (name: string) => void>();
    for (const repo of this.repos) {
      const above = [join(repo, '.telos', 'plans'), join(repo, '.telos'), repo].find(isFolder);
      if (above) wanted.set(above, name => this.#heardAbove(above === repo && name !== '.telos'));
    }
    for (const { folder } of this.#plans) {
      wanted.set(folder.dir, name => this.#heard(folder, name));
      if (isFolder(folder.path('prds'))) wanted.set(folder.path('prds'), () => this.#heard(folder, ''));
    }
    // A folder that was removed and made again has the same path, and its watch hears nothing any more.
    for (const [dir, { watcher, inode }] of this.#watchers)
      if (!wanted.has(dir) || inodeOf(dir) !== inode) {
        watcher.close();
        this.#watchers.delete(dir);
      }
    for (const [dir, hear] of wanted) if (!this.#watchers.has(dir)) this.#watch(dir, hear);
  }

  #watch(dir: string, hear: (name: string) => void): void {
    if (this.#isOver) return;
    try {
      const inode = inodeOf(dir);
      const watcher = watch(dir, (_event, name) => hear(name ?? ''));
      watcher.on('error', () => {
        watcher.close();
        this.#watchers.delete(dir);
        this.#soon();
      });
      this.#watchers.set(dir, { watcher, inode });
      // What has changed between the last look and the watch is heard by no one.
      this.#stale.add(dir);
      this.#soon();
    } catch (error) {
      this.#log.warn(`The plans in ${dir} cannot be followed: ${describeError(error)}`);
    }
  }

  #heardAbove(isOther: boolean): void {
    if (!isOther) this.#soon();
  }

  /** A runner touches its lock every two seconds, and writes outputs and patches that no row shows. */
  #heard(folder: PlanFolder, name: string): void {
    if (/^(?:attempts|checks|inbox|projection\.json|\..*)$/.test(name)) return;
    if (/^runner\.\d+\.lock$/.test(name)) {
      this.#lookForRunners();
      return;
    }
    this.#stale.add(folder.dir);
    this.#soon();
  }

  #soon(): void {
    this.#settling ??= setTimeout(() => {
      this.#settling = undefined;
      void this.#read();
    }, settleTime);
  }

  /** Reads what is stale, one reading after the other. */
  #read(): Promise<void> {
    this.#reading = this.#reading
      .then(() => this.#readNow())
      .catch(error => this.#log.error('The plans could not be read.', error));
    return this.#reading;
  }

  async #readNow(): Promise<void> {
    const stale = new Set(this.#stale);
    this.#stale.clear();
    const known = new Map(this.#plans.map(node => [node.folder.dir, node]));
    const nodes: PlanNode[] = [];
    for (const repo of this.repos)
      for (const name of PlanFolder.list(repo)) {
        const dir = join(repo, '.telos', 'plans', name);
        const old = known.get(dir);
        nodes.push(old && !stale.has(dir) ? old : await this.#look(repo, name, dir));
      }
    if (this.#isOver) return;
    this.#plans = nodes;
    this.#follow();
    this.#draw();
    this.#looked.fire();
    this.#sumUp();
    // For those who measure the start of a window.
    if (this.#looks++ === 0) performance.mark('telos.plans.shown');
  }

  /**
   * The editor takes all rows away to redraw them, and with them what a click on one of them meant. The first ones it asks for itself; to
   * be called then makes it ask twice.
   */
  #draw(): void {
    const rows = this.#plans.flatMap(node => [node, ...rowsOf(node)]);
    const drawn = JSON.stringify(rows.map(row => ({ ...this.item(row), command: undefined })));
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    if (this.#isShown) this.#changed.fire();
  }

  async #look(repo: string, name: string, dir: string): Promise<PlanNode> {
    const folder = this.#folders.get(dir) ?? new PlanFolder(dir, repo, await this.#seal());
    this.#folders.set(dir, folder);
    try {
      // Refuses a plan that is reached through a link.
      PlanFolder.open(repo, name);
      return { kind: 'plan', folder, look: await lookAt(folder), isLive: readRunner(folder) !== undefined };
    } catch (error) {
      return { kind: 'plan', folder, problem: describeError(error), isLive: false };
    }
  }

  #lookForRunners(): void {
    for (const { folder, isLive } of this.#plans) {
      let now = false;
      try {
        now = readRunner(folder) !== undefined;
      } catch {
        // The plan was deleted meanwhile, which is heard by itself.
      }
      if (now !== isLive) void this.refresh(folder.dir);
    }
  }

  #sumUp(): void {
    const live = this.#plans.filter(({ isLive }) => isLive);
    const waiting = this.#plans.reduce((sum, node) => sum + waitingIn(node), 0);
    this.#view.badge =
      waiting > 0
        ? { value: waiting, tooltip: vscode.l10n.t('Plans: {0}', waitingLabel(waiting)) }
        : undefined;
    void vscode.commands.executeCommand('setContext', 'telos.hasPlans', this.#plans.length > 0);
    const shown = live.length > 0 ? live : this.#plans.filter(node => waitingIn(node) > 0);
    this.#drawStatus(shown, live.length > 0);
    if (live.length > 0) this.#alive ??= setInterval(() => this.#lookForRunners(), aliveInterval);
    else {
      clearInterval(this.#alive);
      this.#alive = undefined;
    }
  }

  #drawStatus(shown: readonly PlanNode[], isLive: boolean): void {
    if (shown.length === 0) {
      this.#status.hide();
      return;
    }
    const counts = shown.map(counted);
    const [done, all] = [sum(counts.map(count => count.done)), sum(counts.map(count => count.all))];
    const cost = costLabel(
      shown.reduce<Usage | undefined>(
        (total, { look }) => (look?.state.usage ? addedUsage(total, look.state.usage) : total),
        undefined,
      ),
    );
    const waiting = sum(shown.map(waitingIn));
    const facts = [all > 0 ? `${done}/${all}` : '', cost, waitingLabel(waiting)].filter(Boolean);
    const icon = waiting > 0 ? '$(bell-dot)' : isLive ? '$(loading~spin)' : '$(checklist)';
    const names = shown.map(({ folder }) => plainLabel(folder.name)).join(', ');
    this.#status.text = `${icon} ${facts.join(' · ') || names}`;
    this.#status.tooltip = vscode.l10n.t('Telos Plans: {0}', names);
    this.#status.backgroundColor =
      waiting > 0 ? new vscode.ThemeColor('statusBarItem.warningBackground') : undefined;
    this.#status.accessibilityInformation = {
      label: [vscode.l10n.t('Telos Plans: {0}', names), ...facts].join(', '),
      role: 'button',
    };
    this.#status.show();
  }
}

/** The rows below a plan. */
function rowsOf(plan: PlanNode): (StoryNode | QuestionNode)[] {
  const { questions = [], stories = [] } = plan.look?.state ?? {};
  return [
    ...questions.map(question => ({ kind: 'question' as const, plan, question })),
    ...stories.map(state => ({ kind: 'story' as const, plan, state })),
  ];
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

const isFolder = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** Returns which folder is at a path. Undefined if there is none. */
const inodeOf = (path: string): bigint | undefined =>
  lstatSync(path, { throwIfNoEntry: false, bigint: true })?.ino;
