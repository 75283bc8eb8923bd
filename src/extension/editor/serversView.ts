/** Shows the view *MCP Servers*. What draws it and what its commands do loads when it is shown first. */

import * as vscode from 'vscode';
import type { CurrentTelos } from '../base/currentTelos.ts';
import type { ServersNode, ServersView, ServerTree } from './serverTree.ts';

/** Must match package.json. */
const viewId = 'telos.mcpServers';

/** A server that nothing is known of starts when the person unfolds it. */
export function registerServersView(current: CurrentTelos): ServersView {
  const changed = new vscode.EventEmitter<void>();
  const parts: vscode.Disposable[] = [changed, current.onDidChange(() => changed.fire())];
  let loaded: Promise<ServerTree> | undefined;
  const load = async (): Promise<ServerTree> => {
    const [{ book }, { ServerTree }] = await Promise.all([current.openTelos(), import('./serverTree.ts')]);
    const tree = new ServerTree(current, book, () => changed.fire());
    parts.push(tree);
    return tree;
  };
  const tree = (): Promise<ServerTree> => {
    loaded ??= load().catch(error => {
      loaded = undefined;
      throw error;
    });
    return loaded;
  };
  const view = vscode.window.createTreeView<ServersNode>(viewId, {
    treeDataProvider: {
      onDidChangeTreeData: changed.event,
      getChildren: async node => (await tree()).getChildren(node),
      getTreeItem: async node => (await tree()).getTreeItem(node),
    },
    showCollapseAll: true,
    manageCheckboxStateManually: true,
  });
  const shown: ServersView = {
    id: viewId,
    current,
    tree,
    selected: () => view.selection[0],
    dispose: () => vscode.Disposable.from(...parts).dispose(),
  };
  const actions = () => import('./serverActions.ts');
  parts.push(
    view,
    view.onDidExpandElement(async ({ element }) => (await actions()).startUnfolded(shown, element)),
    view.onDidChangeCheckboxState(async ({ items }) => (await actions()).switchTools(shown, items)),
  );
  return shown;
}
