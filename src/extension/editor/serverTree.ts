/** Provides the tree *MCP Servers*: the servers of all agents with their states, their tools with a checkbox each, and the skills that they serve. */

import type { ServerBook, ServerFacts } from '@telos/engine/mcp';
import { importDecision, importPolicyEdit } from '@telos/engine/policy';
import { importServerCheck, type ListedServer } from '@telos/engine/run';
import * as vscode from 'vscode';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { plainLabel, translated } from '../base/labels.ts';

export interface ServerNode {
  kind: 'server';
  /** Like the agents of the other tree, for the commands that both have. */
  agent: { name: string };
  listed: ListedServer;
}

export interface ServerToolNode {
  kind: 'tool';
  parent: ServerNode;
  tool: ServerFacts['tools'][number];
  isOn: boolean;
}

interface ServerSkillNode {
  kind: 'skill';
  parent: ServerNode;
  skill: NonNullable<ServerFacts['skills']>[number];
}

interface ProblemNode {
  kind: 'problem';
  text: string;
}

export type ServersNode = ServerNode | ServerToolNode | ServerSkillNode | ProblemNode;

/** The view, as its commands need it. */
export interface ServersView extends vscode.Disposable {
  id: string;
  current: CurrentTelos;
  tree(): Promise<ServerTree>;
  /** Returns the row that the person has selected. */
  selected(): ServersNode | undefined;
}

/** A server can change several times while it starts. In milliseconds. */
const settleTime = 50;

export class ServerTree implements vscode.Disposable {
  readonly #current: CurrentTelos;
  /** What is known of the servers. */
  readonly book: ServerBook;
  readonly #redraw: () => void;
  readonly #unfollow: () => void;
  readonly #starting = new Set<string>();
  #settling: NodeJS.Timeout | undefined;

  /** `redraw` makes the editor ask for the rows again. */
  constructor(current: CurrentTelos, book: ServerBook, redraw: () => void) {
    this.#current = current;
    this.book = book;
    this.#redraw = redraw;
    this.#unfollow = book.onChange(() => this.refresh());
  }

  /** Lists the servers again soon. */
  refresh(): void {
    this.#settling ??= setTimeout(() => {
      this.#settling = undefined;
      this.#redraw();
    }, settleTime);
  }

  /** Shows a server as starting until the work has settled. */
  async during<Result>({ listed }: ServerNode, work: Promise<Result>): Promise<Result> {
    const id = idOf(listed);
    this.#starting.add(id);
    this.refresh();
    try {
      return await work;
    } finally {
      this.#starting.delete(id);
      this.refresh();
    }
  }

  /** Returns true for a server that nothing is known of, and that may be started unasked. */
  isFresh({ listed }: ServerNode): boolean {
    const isKnown = this.book.facts(listed.agent, listed.server) !== undefined;
    return listed.isAccepted && !isKnown && !this.#starting.has(idOf(listed));
  }

  async getChildren(node?: ServersNode): Promise<ServersNode[]> {
    if (node?.kind === 'server') return [...(await this.#tools(node)), ...this.#skills(node)];
    if (node) return [];
    const [telos, { listServers }] = await Promise.all([this.#current.openTelos(), importServerCheck()]);
    const { servers, problems } = await listServers(await telos.serverParts());
    // Set only after a listing. An empty tree alone does not mean that there is none.
    const isEmpty = servers.length + problems.length === 0;
    void vscode.commands.executeCommand('setContext', 'telos.noMcpServers', isEmpty);
    return [
      ...problems.map(text => ({ kind: 'problem' as const, text })),
      ...servers.map(listed => ({ kind: 'server' as const, agent: { name: listed.agent }, listed })),
    ];
  }

  async #tools(parent: ServerNode): Promise<ServersNode[]> {
    const { agent, server } = parent.listed;
    const { config } = await this.#current.openTelos();
    const [{ openPolicyFile }, { switchesOf }] = await Promise.all([importDecision(), importPolicyEdit()]);
    const rules = openPolicyFile(config).read();
    return (this.book.facts(agent, server)?.tools ?? []).map(tool => ({
      kind: 'tool',
      parent,
      tool,
      isOn: switchesOf(rules, agent, server, tool.name).length === 0,
    }));
  }

  #skills(parent: ServerNode): ServersNode[] {
    const { agent, server } = parent.listed;
    const { skills = [] } = this.book.facts(agent, server) ?? {};
    return skills.map(skill => ({ kind: 'skill', parent, skill }));
  }

  getTreeItem(node: ServersNode): vscode.TreeItem {
    if (node.kind === 'skill') return skillItem(node);
    if (node.kind === 'tool') return toolItem(node);
    if (node.kind === 'problem') return problemItem(node);
    const { agent, server } = node.listed;
    const isStarting = this.#starting.has(idOf(node.listed));
    return serverItem(node, this.book.facts(agent, server), this.book.running(agent, server) > 0, isStarting);
  }

  dispose(): void {
    clearTimeout(this.#settling);
    this.#unfollow();
  }
}

const idOf = ({ agent, server, file }: ListedServer): string => `${agent}\n${server}\n${file}`;

function serverItem(
  { listed }: ServerNode,
  facts: ServerFacts | undefined,
  isRunning: boolean,
  isStarting: boolean,
): vscode.TreeItem {
  const { agent, server, place, isRemote, isSignedIn, isBoxed } = listed;
  const { Collapsed, None } = vscode.TreeItemCollapsibleState;
  const look = lookOf(listed, facts, isRunning, isStarting);
  const canUnfold = facts ? facts.tools.length + (facts.skills?.length ?? 0) > 0 : listed.isAccepted;
  const item = new vscode.TreeItem(plainLabel(server, 60), canUnfold ? Collapsed : None);
  item.id = idOf(listed);
  item.iconPath = look.icon;
  item.description = plainLabel(`${agent} · ${look.text}`, 300);
  item.contextValue = `server.${look.state}${isRemote ? '.remote' : ''}${isBoxed === undefined ? '' : isBoxed ? '.boxed' : '.unboxed'}${isSignedIn ? '.signedIn' : ''}`;
  item.tooltip = [plainLabel(server), plainLabel(look.text, 1_000), plainLabel(place, 400), listed.file].join(
    '\n\n',
  );
  item.accessibilityInformation = { label: plainLabel(`${server}, ${agent}, ${look.text}`, 400) };
  return item;
}

interface Look {
  state: 'starting' | 'running' | 'ready' | 'failed' | 'sign-in' | 'new' | 'unknown';
  icon: vscode.ThemeIcon;
  text: string;
}

function lookOf(
  { isAccepted }: ListedServer,
  facts: ServerFacts | undefined,
  isRunning: boolean,
  isStarting: boolean,
): Look {
  const look = (state: Look['state'], icon: string, text: string, color?: string): Look => ({
    state,
    text,
    icon: new vscode.ThemeIcon(icon, color === undefined ? undefined : new vscode.ThemeColor(color)),
  });
  if (isStarting) return look('starting', 'loading~spin', vscode.l10n.t('starting'));
  if (!isAccepted) return look('new', 'shield', vscode.l10n.t('its agent is not reviewed yet'));
  if (!facts) return look('unknown', 'circle-outline', vscode.l10n.t('not started yet'));
  if (facts.state === 'sign-in') return look('sign-in', 'account', vscode.l10n.t('wants you to sign in'));
  if (facts.error) return look('failed', 'error', translated(facts.error), 'list.errorForeground');
  const count = countsOf(facts);
  if (isRunning) return look('running', 'play-circle', vscode.l10n.t('{0}, used by a run', count));
  return look('ready', 'pass', count);
}

function countsOf({ tools, skills = [] }: ServerFacts): string {
  const ofTools = tools.length === 1 ? vscode.l10n.t('1 tool') : vscode.l10n.t('{0} tools', tools.length);
  if (skills.length === 0) return ofTools;
  const ofSkills =
    skills.length === 1 ? vscode.l10n.t('1 skill') : vscode.l10n.t('{0} skills', skills.length);
  return `${ofTools}, ${ofSkills}`;
}

/** A click shows what the skill holds, and installs it after a yes. */
function skillItem({ parent, skill }: ServerSkillNode): vscode.TreeItem {
  const { agent, server } = parent.listed;
  const item = new vscode.TreeItem(plainLabel(skill.name, 80));
  const title = vscode.l10n.t('Install the skill {0}', plainLabel(skill.name, 80));
  item.id = `${idOf(parent.listed)}\nskill ${skill.name}`;
  item.contextValue = 'skill';
  item.iconPath = new vscode.ThemeIcon('book');
  item.description = plainLabel(skill.description, 200);
  item.tooltip = [title, plainLabel(skill.description, 2_000)].join('\n\n');
  item.accessibilityInformation = { label: title };
  const source = `mcp:${agent}:${server}/${skill.name}`;
  item.command = { command: 'telos.installSkills', title, arguments: [source] };
  return item;
}

function toolItem({ parent, tool, isOn }: ServerToolNode): vscode.TreeItem {
  const { Checked, Unchecked } = vscode.TreeItemCheckboxState;
  const item = new vscode.TreeItem(plainLabel(tool.name, 80));
  item.id = `${idOf(parent.listed)}\n${tool.name}`;
  item.contextValue = 'tool';
  item.description = plainLabel(tool.description, 200);
  item.tooltip = [plainLabel(tool.name), plainLabel(tool.description, 2_000)].join('\n\n');
  item.checkboxState = {
    state: isOn ? Checked : Unchecked,
    tooltip: isOn ? vscode.l10n.t('Switch this tool off') : vscode.l10n.t('Switch this tool on'),
  };
  return item;
}

function problemItem({ text }: ProblemNode): vscode.TreeItem {
  const item = new vscode.TreeItem(plainLabel(text, 300));
  item.iconPath = new vscode.ThemeIcon('warning', new vscode.ThemeColor('list.warningForeground'));
  item.tooltip = plainLabel(text, 1_000);
  return item;
}
