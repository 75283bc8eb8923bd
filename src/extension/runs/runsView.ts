/** Shows the view *Runs*. Keeps its tree up to date while it is visible, and registers the commands of its menus. */

import { type FSWatcher, mkdirSync, watch } from 'node:fs';
import * as vscode from 'vscode';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { plainLabel } from '../base/labels.ts';
import type { StoredConversations } from '../chat/storedConversations.ts';
import type { RunActions } from './runActions.ts';
import { type ConversationNode, documentScheme, type RunNode } from './runItem.ts';
import { type RunsNode, RunsTree } from './runsTree.ts';

/** A run writes many times a second. In milliseconds. */
const settleTime = 300;
/** Shown times age, and a killed process reports nothing. In milliseconds. */
const lookInterval = 10_000;

/** Watches the folder of runs while the view is open, for runs of this process and of others. */
class RunsWatch implements vscode.Disposable {
  readonly #current: CurrentTelos;
  readonly #tree: RunsTree;
  readonly #log: vscode.LogOutputChannel;
  #folder: string | undefined;
  #watcher: FSWatcher | undefined;
  #settling: NodeJS.Timeout | undefined;
  #looking: NodeJS.Timeout | undefined;

  constructor(current: CurrentTelos, tree: RunsTree, log: vscode.LogOutputChannel) {
    this.#current = current;
    this.#tree = tree;
    this.#log = log;
  }

  async start(): Promise<void> {
    this.#looking ??= setInterval(() => void this.#tree.refresh(), lookInterval);
    const [{ config }, { runsFolder }] = await Promise.all([
      this.#current.openTelos(),
      import('../../engine/records/runFile.ts'),
    ]);
    const folder = runsFolder(config.dataDir);
    if (!this.#looking || (this.#watcher && folder === this.#folder)) return;
    this.#watcher?.close();
    this.#folder = folder;
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      this.#watcher = watch(folder, () => this.#soon());
      this.#watcher.on('error', error => {
        this.#log.warn(`The folder of runs cannot be followed any more: ${error.message}`);
        this.#watcher?.close();
        this.#watcher = undefined;
      });
    } catch (error) {
      this.#log.warn(`The folder of runs cannot be followed, so the view is a few seconds behind: ${error}`);
    }
    await this.#tree.refresh();
  }

  stop(): void {
    clearTimeout(this.#settling);
    clearInterval(this.#looking);
    this.#watcher?.close();
    this.#settling = this.#looking = this.#watcher = undefined;
  }

  dispose(): void {
    this.stop();
  }

  #soon(): void {
    this.#settling ??= setTimeout(() => {
      this.#settling = undefined;
      void this.#tree.refresh();
    }, settleTime);
  }
}

export function registerRunsView(
  current: CurrentTelos,
  kept: StoredConversations,
  log: vscode.LogOutputChannel,
): vscode.Disposable {
  const tree = new RunsTree(kept, log);
  const view = vscode.window.createTreeView<RunsNode>('telos.runs', {
    treeDataProvider: tree,
    showCollapseAll: true,
    canSelectMany: true,
  });
  const following = new RunsWatch(current, tree, log);
  const follow = (): void => {
    if (view.visible) following.start().catch(error => log.error('The runs cannot be followed.', error));
    else following.stop();
  };
  const search = (words: string): void => {
    tree.search = words;
    void vscode.commands.executeCommand('setContext', 'telos.runsSearched', tree.search !== '');
  };
  follow();
  return vscode.Disposable.from(
    tree,
    view,
    following,
    view.onDidChangeVisibility(follow),
    current.onDidChange(() => {
      if (view.visible) follow();
    }),
    tree.onDidList(count => {
      view.message = tree.search ? foundMessage(tree.search, count) : '';
      // Set only after a listing. An empty tree alone does not mean that no runs exist.
      void vscode.commands.executeCommand('setContext', 'telos.noRuns', count === 0 && !tree.search);
    }),
    vscode.commands.registerCommand('telos.refreshRuns', () => tree.refresh()),
    vscode.commands.registerCommand('telos.searchRuns', async () => {
      const words = await vscode.window.showInputBox({
        title: vscode.l10n.t('Search Runs'),
        prompt: vscode.l10n.t('Words of a title, a request, a skill or an answer'),
        value: tree.search,
      });
      if (words === undefined) return;
      search(words);
      await vscode.commands.executeCommand('telos.runs.focus');
    }),
    vscode.commands.registerCommand('telos.clearRunSearch', () => search('')),
    registerRunActions(current, kept, tree),
  );
}

function foundMessage(words: string, count: number): string {
  const shown = plainLabel(words, 60);
  if (count === 0) return vscode.l10n.t('Nothing has “{0}” in it.', shown);
  return count === 1
    ? vscode.l10n.t('One conversation with “{0}”', shown)
    : vscode.l10n.t('{0} conversations with “{1}”', count, shown);
}

type Node = ConversationNode | RunNode;

export function registerRunActions(
  current: CurrentTelos,
  kept: StoredConversations,
  tree: RunsTree,
): vscode.Disposable {
  let loaded: Promise<RunActions> | undefined;
  const actions = (): Promise<RunActions> => {
    loaded ??= import('./runActions.ts').then(({ RunActions }) => new RunActions(current, kept, tree));
    return loaded;
  };
  const register = (
    name: string,
    act: (actions: RunActions, node: Node, selected: readonly Node[]) => PromiseLike<unknown>,
  ): vscode.Disposable =>
    vscode.commands.registerCommand(`telos.${name}`, async (node?: unknown, selected?: unknown) => {
      if (!isNode(node)) return;
      const others = Array.isArray(selected) ? selected.filter(isNode) : [];
      try {
        await act(await actions(), node, others.length > 0 ? others : [node]);
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        void vscode.window.showErrorMessage(plainLabel(why, 500));
      }
    });
  return vscode.Disposable.from(
    vscode.workspace.registerTextDocumentContentProvider(documentScheme, {
      provideTextDocumentContent: async uri => (await actions()).documentOf(uri),
    }),
    register('openRun', (actions, node) => actions.open(node)),
    register('openRunToSide', (actions, node) => actions.open(node, { panel: true })),
    register('resumeRun', (actions, node) => actions.open(node, { resume: true })),
    register('replayRun', (actions, node) => actions.open(node, { replay: true })),
    register('renameRun', (actions, node) => actions.rename(node)),
    register('deleteRun', (actions, _node, selected) => actions.delete(selected)),
    register('exportRun', (actions, node) => actions.export(node)),
    register('compareRun', (actions, node, selected) => actions.compare(node, selected)),
  );
}

/** Checks the argument. Other extensions, and keys without arguments, can call the commands. */
function isNode(value: unknown): value is Node {
  const { kind, runs } = (value ?? {}) as Partial<RunsNode & Node>;
  return (kind === 'conversation' || kind === 'run') && Array.isArray(runs) && runs.length > 0;
}
