/** Registers the view *Plans*. What fills it loads when somebody looks at it, or at the start where a workspace has plans. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import * as vscode from 'vscode';
import type { ChatStage } from '../base/chatWork.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import type { PlanHost, Plans, PlanVerb } from './planActions.ts';
import type { PlansNode } from './planItem.ts';

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
  #plans: Promise<Plans> | undefined;

  constructor(current: CurrentTelos, host: PlanHost) {
    this.#current = current;
    this.#host = host;
    this.#restoring = vscode.window.registerWebviewPanelSerializer('telos.planPage', {
      deserializeWebviewPanel: async (panel, kept: unknown) => {
        const { actions, tree } = await this.#load();
        await tree.children();
        (await actions.pages()).restore(panel, kept);
      },
    });
    this.#view = vscode.window.createTreeView<PlansNode>('telos.plans', {
      showCollapseAll: true,
      treeDataProvider: {
        onDidChangeTreeData: this.#changed.event,
        getChildren: async node => (await this.#load()).tree.children(node),
        getTreeItem: async node => (await this.#load()).tree.item(node),
      },
    });
    this.#watcher.onDidCreate(() => this.#load());
    const folders = vscode.workspace.workspaceFolders ?? [];
    if (folders.some(({ uri }) => uri.scheme === 'file' && existsSync(join(uri.fsPath, '.telos', 'plans'))))
      void this.#load();
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
  }

  #load(): Promise<Plans> {
    this.#plans ??= import('./planActions.ts').then(({ openPlans }) => {
      this.#watcher.dispose();
      return openPlans(this.#current, this.#host, this.#view, this.#changed);
    });
    return this.#plans;
  }
}
