/** The tree *Agents & Skills*: what there is to run, where it comes from, and what is wrong with it. */
import * as vscode from 'vscode';
import type { Agent, Diagnostic, Skill } from '../engine/agents/agent.ts';
import type { CurrentTelos } from './currentTelos.ts';
import { plainLabel } from './plainLabel.ts';

export interface AgentNode {
  kind: 'agent';
  agent: Agent;
}

export interface SkillNode {
  kind: 'skill';
  agent: Agent;
  skill: Skill;
}

export type TreeNode = AgentNode | SkillNode;

const sourceNames = { project: 'workspace', user: 'yours', linked: 'linked', builtin: 'built in' } as const;

const restrictedMessage = 'Restricted Mode: the skills of this workspace are not read, and nothing runs.';

export class SkillTree implements vscode.TreeDataProvider<TreeNode>, vscode.Disposable {
  readonly #current: CurrentTelos;
  readonly #log: vscode.LogOutputChannel;
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #listed = new vscode.EventEmitter<number>();
  readonly #following: vscode.Disposable;
  readonly onDidChangeTreeData = this.#changed.event;
  /** The number of agents that the editor has just been given. */
  readonly onDidList = this.#listed.event;

  constructor(current: CurrentTelos, log: vscode.LogOutputChannel) {
    this.#current = current;
    this.#log = log;
    this.#following = current.onDidChange(() => this.#changed.fire());
  }

  async getChildren(node?: TreeNode): Promise<TreeNode[]> {
    if (node?.kind === 'skill') return [];
    if (node) return node.agent.skills.map(skill => ({ kind: 'skill', agent: node.agent, skill }));
    try {
      const agents = await (await this.#current.openTelos()).agents();
      this.#listed.fire(agents.length);
      return agents.map(agent => ({ kind: 'agent', agent }));
    } catch (error) {
      this.#log.error('The skills could not be listed.', error);
      throw error;
    }
  }

  getTreeItem(node: TreeNode): vscode.TreeItem {
    return node.kind === 'agent' ? agentItem(node.agent) : skillItem(node.agent, node.skill);
  }

  dispose(): void {
    this.#following.dispose();
    this.#changed.dispose();
    this.#listed.dispose();
  }
}

/** Shows the tree, and says above it when Restricted Mode keeps part of it away. */
export function registerSkillTree(tree: SkillTree): vscode.Disposable {
  const view = vscode.window.createTreeView('telos.skills', {
    treeDataProvider: tree,
    showCollapseAll: true,
  });
  // Over an empty tree the message would hide the welcome text, which says the same and more.
  const listed = tree.onDidList(count => {
    view.message = vscode.workspace.isTrusted || count === 0 ? '' : restrictedMessage;
  });
  return vscode.Disposable.from(view, listed);
}

function agentItem(agent: Agent): vscode.TreeItem {
  const item = new vscode.TreeItem(plainLabel(agent.name), vscode.TreeItemCollapsibleState.Expanded);
  const count = agent.skills.length === 1 ? '1 skill' : `${agent.skills.length} skills`;
  const defect = firstDefect(agent.diagnostics);
  item.id = agentId(agent);
  item.contextValue = `agent.${agent.source}`;
  item.iconPath = defect ? warningIcon() : new vscode.ThemeIcon('person');
  item.description = [defect?.message ?? agent.description, count, sourceNames[agent.source]]
    .filter(Boolean)
    .map(part => plainLabel(part))
    .join(' · ');
  item.tooltip = tooltip(agent.name, agent.description, agent.packDir, agent.diagnostics);
  return item;
}

function skillItem(agent: Agent, skill: Skill): vscode.TreeItem {
  const item = new vscode.TreeItem(plainLabel(skill.id), vscode.TreeItemCollapsibleState.None);
  const defect = firstDefect(skill.diagnostics);
  item.id = `${agentId(agent)}\n${skill.file}`;
  item.contextValue = `skill.${skill.source}`;
  item.iconPath = defect ? warningIcon() : new vscode.ThemeIcon('book');
  item.description = plainLabel(defect?.message ?? skill.description);
  item.tooltip = tooltip(skill.name, skill.description, skill.file, skill.diagnostics);
  item.command = { command: 'telos.openSkillFile', title: 'Open SKILL.md', arguments: [{ agent, skill }] };
  return item;
}

const agentId = (agent: Agent): string => `${agent.source}\n${agent.packDir}\n${agent.name}`;

/** What the icon warns of: an error before a warning; a mere hint is left to the tooltip. */
function firstDefect(diagnostics: readonly Diagnostic[]): Diagnostic | undefined {
  return (
    diagnostics.find(({ severity }) => severity === 'error') ??
    diagnostics.find(({ severity }) => severity === 'warning')
  );
}

const warningIcon = (): vscode.ThemeIcon =>
  new vscode.ThemeIcon('warning', new vscode.ThemeColor('list.warningForeground'));

/** Plain text on purpose: the editor reads no links out of a string that is not Markdown. */
function tooltip(
  name: string,
  description: string,
  path: string,
  diagnostics: readonly Diagnostic[],
): string {
  const defects = diagnostics.map(({ message, line, fix }) =>
    plainLabel(`Line ${line}: ${message}${fix ? ` ${fix}` : ''}`, 400),
  );
  return [plainLabel(name), plainLabel(description, 1_000), plainLabel(path, 1_000), ...defects]
    .filter(Boolean)
    .join('\n\n');
}
