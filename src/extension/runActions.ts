/** The commands of the view *Runs*, each with a node of its tree; what they do loads with their first use. */
import * as vscode from 'vscode';
import type { RunActions } from './actOnRun.ts';
import type { CurrentTelos } from './currentTelos.ts';
import type { KeptConversations } from './keptConversations.ts';
import { plainLabel } from './plainLabel.ts';
import { type ConversationNode, documentScheme, type RunNode } from './runItem.ts';
import type { RunsNode, RunsTree } from './runsTree.ts';

type Node = ConversationNode | RunNode;

export function registerRunActions(
  current: CurrentTelos,
  kept: KeptConversations,
  tree: RunsTree,
): vscode.Disposable {
  let loaded: Promise<RunActions> | undefined;
  const actions = (): Promise<RunActions> => {
    loaded ??= import('./actOnRun.ts').then(({ RunActions }) => new RunActions(current, kept, tree));
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

/** Commands are open to other extensions and to keys without arguments. */
function isNode(value: unknown): value is Node {
  const { kind, runs } = (value ?? {}) as Partial<RunsNode & Node>;
  return (kind === 'conversation' || kind === 'run') && Array.isArray(runs) && runs.length > 0;
}
