/**
 * Registers the view *Plans*. The tree loads when someone looks at it, or before all else where a workspace has plans: a plan that runs
 * is then in the status bar at once. What can be done with plans loads after they were shown.
 */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { importMachineSeal } from '@telos/plans/run';
import * as vscode from 'vscode';
import type { ChatStage } from '../base/chatWork.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import type { PlanHost, Plans, PlanVerb } from './planActions.ts';
import type { PlansNode } from './planItem.ts';
import type { PlansTree } from './plansTree.ts';

const hasPlans = (): boolean =>
  (vscode.workspace.workspaceFolders ?? []).some(
    ({ uri }) => uri.scheme === 'file' && existsSync(join(uri.fsPath, '.telos', 'plans')),
  );

const loadTree = () => import('./plansTree.ts');

// Loads while VS Code still prepares what it hands to `activate`. An error is shown when the tree is wanted.
if (hasPlans()) loadTree().catch(() => undefined);

export class PlansView implements vscode.Disposable {
  readonly #current: CurrentTelos;
  readonly #host: PlanHost;
  readonly #restoring: vscode.Disposable;
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #view: vscode.TreeView<PlansNode>;
  readonly #watcher = vscode.workspace.createFileSystemWatcher(
    '**/.telos/plans/*/journal.jsonl',
    false,
    true,
  );
  #tree: Promise<PlansTree> | undefined;
  #plans: Promise<Plans> | undefined;

  constructor(current: CurrentTelos, host: PlanHost) {
    this.#current = current;
    this.#host = host;
    this.#restoring = vscode.window.registerWebviewPanelSerializer('telos.planPage', {
      deserializeWebviewPanel: async (panel, kept: unknown) => {
        await (await this.#showTree()).children();
        (await (await this.#load()).actions.pages()).restore(panel, kept);
      },
    });
    this.#view = vscode.window.createTreeView<PlansNode>('telos.plans', {
      showCollapseAll: true,
      treeDataProvider: {
        onDidChangeTreeData: this.#changed.event,
        getChildren: async node => (await this.#showTree()).children(node),
        getTreeItem: async node => (await this.#showTree()).item(node),
      },
    });
    this.#watcher.onDidCreate(() => this.#showTree());
    if (hasPlans()) void this.#showTree();
  }

  /** Carries out a command on a plan, or on a part of one. */
  async act(verb: PlanVerb, given: unknown): Promise<void> {
    await (await this.#load()).actions.act(verb, given);
  }

  /** Adds what the person has written about a line of plan.md. */
  async comment(reply: vscode.CommentReply): Promise<void> {
    (await this.#load()).comments.add(reply);
  }

  /** Resolves a thread on plan.md. */
  async resolveComment(thread: vscode.CommentThread): Promise<void> {
    (await this.#load()).comments.resolve(thread);
  }

  /** Begins a plan in a chat. See `PlanActions.begin`. */
  async begin(goal: string, stage: ChatStage): Promise<string> {
    return (await this.#load()).actions.begin(goal, stage);
  }

  /** Ends the plans that run in this window. What they have done is kept. */
  async end(): Promise<void> {
    await (await this.#plans)?.actions.end();
  }

  dispose(): void {
    vscode.Disposable.from(this.#changed, this.#view, this.#watcher, this.#restoring).dispose();
    void this.#plans?.then(plans => plans.dispose());
    void this.#tree?.then(tree => tree.dispose());
  }

  #showTree(): Promise<PlansTree> {
    this.#tree ??= loadTree().then(({ PlansTree }) => {
      this.#watcher.dispose();
      const tree = new PlansTree(
        this.#view,
        this.#changed,
        this.#host.log,
        async () =>
          new (await importMachineSeal()).MachineSeal((await this.#current.openTelos()).config.dataDir),
      );
      const shown = tree.onDidLook(() => {
        if (tree.plans.length === 0) return;
        shown.dispose();
        void this.#load();
      });
      return tree;
    });
    return this.#tree;
  }

  async #load(): Promise<Plans> {
    const tree = await this.#showTree();
    this.#plans ??= import('./planActions.ts').then(({ openPlans }) =>
      openPlans(this.#current, this.#host, tree),
    );
    return this.#plans;
  }
}
