/** Shows the view *Runs*. Keeps its tree up to date while it is visible. */

import { type FSWatcher, mkdirSync, watch } from 'node:fs';
import { importRunFile } from '@telos/engine/records';
import * as vscode from 'vscode';
import { complain } from '../base/acknowledge.ts';
import { askText } from '../base/askText.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError, plainLabel } from '../base/labels.ts';
import type { StoredConversations } from '../chat/storedConversations.ts';
import type { RunActions } from './runActions.ts';
import { type ConversationNode, documentScheme, type RunNode } from './runItem.ts';
import { type RunsNode, RunsTree } from './runsTree.ts';
import { ScheduleDesk } from './scheduleDesk.ts';

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
    const [{ config }, { runsFolder }] = await Promise.all([this.#current.openTelos(), importRunFile()]);
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

/** The view, as its commands need it. */
export interface RunsView {
  registration: vscode.Disposable;
  tree: RunsTree;
  schedules: ScheduleDesk;
  /** Shows on the icon of the view container how many questions wait. */
  sayWaiting(count: number): void;
  /** Lists only the runs with these words, or all if there are none. */
  search(words: string): void;
  actions(): Promise<RunActions>;
}

export function registerRunsView(
  context: ConstructorParameters<typeof ScheduleDesk>[0],
  current: CurrentTelos,
  kept: StoredConversations,
  log: vscode.LogOutputChannel,
): RunsView {
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
  const waiting = { questions: 0, schedules: 0 };
  const showWaiting = (): void => {
    const value = waiting.questions + waiting.schedules;
    const tooltip =
      waiting.questions > 0
        ? vscode.l10n.t('Telos waits for your answer')
        : vscode.l10n.t('A scheduled run needs your input');
    view.badge = value > 0 ? { value, tooltip } : undefined;
  };
  const sayWaiting = (questions: number): void => {
    waiting.questions = questions;
    showWaiting();
  };
  const schedules = new ScheduleDesk(context, current, log, tree);
  follow();
  let loaded: Promise<RunActions> | undefined;
  const actions = (): Promise<RunActions> => {
    loaded ??= import('./runActions.ts').then(({ RunActions }) => new RunActions(current, kept, tree));
    return loaded;
  };
  const registration = vscode.Disposable.from(
    tree,
    view,
    following,
    schedules,
    tree.onDidListSchedules(listed => {
      waiting.schedules = listed.filter(({ needsPerson }) => needsPerson).length;
      showWaiting();
      schedules.follow(listed.length);
    }),
    view.onDidChangeVisibility(follow),
    current.onDidChange(() => {
      if (view.visible) follow();
    }),
    tree.onDidList(count => {
      view.message = tree.search ? foundMessage(tree.search, count) : '';
      // Set only after a listing. An empty tree alone does not mean that no runs exist.
      void vscode.commands.executeCommand('setContext', 'telos.noRuns', count === 0 && !tree.search);
    }),
    vscode.workspace.registerTextDocumentContentProvider(documentScheme, {
      provideTextDocumentContent: async uri => (await actions()).documentOf(uri),
    }),
  );
  return { registration, tree, schedules, sayWaiting, search, actions };
}

function foundMessage(words: string, count: number): string {
  const shown = plainLabel(words, 60);
  if (count === 0) return vscode.l10n.t('Nothing contains “{0}”.', shown);
  return count === 1
    ? vscode.l10n.t('One conversation with “{0}”', shown)
    : vscode.l10n.t('{0} conversations with “{1}”', count, shown);
}

type Node = ConversationNode | RunNode;

/** Asks for words, and lists only the runs that have them. */
export async function searchRuns({ tree, search }: RunsView): Promise<void> {
  const words = await askText({
    title: vscode.l10n.t('Search Runs'),
    prompt: vscode.l10n.t('Words of a title, a request, a skill or an answer'),
    value: tree.search,
  });
  if (words === undefined) return;
  search(words);
  await vscode.commands.executeCommand('telos.runs.focus');
}

/** Returns the handler of a command in the menu of a run. It does nothing if it is called without a run. */
export const onRun =
  (
    { actions }: RunsView,
    act: (actions: RunActions, node: Node, selected: readonly Node[]) => PromiseLike<unknown>,
  ) =>
  async (node?: unknown, selected?: unknown): Promise<void> => {
    if (!isNode(node)) return;
    const others = Array.isArray(selected) ? selected.filter(isNode) : [];
    try {
      await act(await actions(), node, others.length > 0 ? others : [node]);
    } catch (error) {
      const why = describeError(error);
      complain(plainLabel(why, 500));
    }
  };

/** Checks the argument. Other extensions, and keys without arguments, can call the commands. */
function isNode(value: unknown): value is Node {
  const { kind, runs } = (value ?? {}) as Partial<RunsNode & Node>;
  return (kind === 'conversation' || kind === 'run') && Array.isArray(runs) && runs.length > 0;
}
