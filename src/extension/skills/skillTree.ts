/** Provides the tree *Agents & Skills*: the available skills, where they come from, and what is wrong with them. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Diagnostic, lockName } from '@telos/engine/files';
import {
  type Agent,
  importMachine,
  importReadiness,
  type Machine,
  type Missing,
  type Skill,
} from '@telos/engine/skills';
import { importChatLocations, type PluginLocations } from '@telos/packs/export';
import { importLocked } from '@telos/packs/lock';
import type { SkillRef } from '@telos/protocol/run';
import * as vscode from 'vscode';
import { acknowledge } from '../base/acknowledge.ts';
import { askText } from '../base/askText.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeDefect, plainLabel, translated } from '../base/labels.ts';
import { descriptionOf, hintedDescription, inSlices } from './skillFiles.ts';
import { nameOfMissing, SkillMemory } from './skillRanking.ts';
import type { UseLines } from './useLine.ts';

export interface AgentNode {
  kind: 'agent';
  agent: Agent;
  /** The skills that fit the tree's filter, if there is one. */
  shown?: readonly Skill[];
  /** Where it was installed from, if the lock file knows it. */
  installed?: InstalledFrom;
  /** True if VS Code's own chat uses it. */
  isInChat?: boolean;
}

interface InstalledFrom {
  source: string;
  version: string;
  isPinned: boolean;
  isEdited: boolean;
  /** A newer version that *Check for Skill Updates* has found. */
  update?: string | undefined;
}

export interface SkillNode {
  kind: 'skill';
  agent: Agent;
  skill: Skill;
  /** Requirements that are missing on this machine. Empty if the skill is ready, missing if this was not checked. */
  missing?: readonly Missing[];
  isFavorite?: boolean;
  /** Set if the tree has already made the item. */
  item?: vscode.TreeItem;
}

export type TreeNode = AgentNode | SkillNode;

/** Where VS Code's chat looks for plugins. */
export const locationsSetting = 'chat.pluginLocations';

/** Returns the person's own setting. What a workspace says never counts. */
export function chatPluginLocations(): PluginLocations {
  const value = vscode.workspace.getConfiguration().inspect<unknown>(locationsSetting)?.globalValue;
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as PluginLocations)
    : {};
}

async function agentsInChat(agents: readonly Agent[], dataDir: string): Promise<readonly Agent[]> {
  const locations = chatPluginLocations();
  if (Object.keys(locations).length === 0) return [];
  const { folderInChat } = await importChatLocations();
  return agents.filter(agent => folderInChat(agent, dataDir, locations) !== undefined);
}

const sourceNames = {
  project: vscode.l10n.t('workspace'),
  user: vscode.l10n.t('yours'),
  linked: vscode.l10n.t('linked'),
  builtin: vscode.l10n.t('built in'),
} as const;

/** An agent with more skills than this starts folded. Others stay in sight, and no unneeded files are read. */
const mostUnfolded = 60;

const restrictedMessage = vscode.l10n.t(
  'Restricted Mode: the skills of this workspace are not read, and nothing runs.',
);

const failedMessage = vscode.l10n.t(
  'The skills could not be listed. “Telos: Open Log” says why; Refresh looks again.',
);

export class SkillTree implements vscode.TreeDataProvider<TreeNode>, vscode.Disposable {
  readonly #current: CurrentTelos;
  readonly #log: vscode.LogOutputChannel;
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #listed = new vscode.EventEmitter<number | undefined>();
  readonly #following: vscode.Disposable;
  /** The machine at the first check since the last change. */
  #machine: Machine | undefined;
  readonly #skills: SkillMemory;
  #uses: Promise<UseLines> | undefined;
  #filter = '';
  #updates: ReadonlyMap<string, string> = new Map();
  readonly onDidChangeTreeData = this.#changed.event;
  /** Fires with the number of agents that were just listed, or undefined if listing failed. */
  readonly onDidList = this.#listed.event;

  constructor(current: CurrentTelos, log: vscode.LogOutputChannel, memory: vscode.Memento) {
    this.#current = current;
    this.#log = log;
    this.#skills = new SkillMemory(memory);
    this.#following = vscode.Disposable.from(
      current.onDidChange(() => {
        this.#machine = undefined;
        this.#changed.fire();
      }),
      vscode.workspace.onDidChangeConfiguration(change => {
        if (change.affectsConfiguration(locationsSetting)) this.#changed.fire();
      }),
    );
  }

  /** Words that all have to occur in a skill's or an agent's name or description. Empty shows all. */
  get filter(): string {
    return this.#filter;
  }

  set filter(words: string) {
    this.#filter = words.trim();
    this.#changed.fire();
  }

  /** Newer versions that are known, by the agent's name. */
  get updates(): ReadonlyMap<string, string> {
    return this.#updates;
  }

  set updates(updates: ReadonlyMap<string, string>) {
    this.#updates = updates;
    this.#changed.fire();
  }

  /** Makes a skill a favorite, which lists put first, or takes that back. */
  async setFavorite({ agent, skill }: SkillNode, isFavorite: boolean): Promise<void> {
    await this.#skills.setFavorite({ agent: agent.name, skill: skill.id }, isFavorite);
    this.#changed.fire();
  }

  /** Disables a skill for the person, or enables it again. */
  async setDisabled({ agent, skill }: SkillNode, isDisabled: boolean): Promise<void> {
    const telos = await this.#current.openTelos();
    await telos.setSkillDisabled({ agent: agent.name, skill: skill.id }, isDisabled);
    await this.#current.refresh();
  }

  async getChildren(node?: TreeNode): Promise<TreeNode[]> {
    if (node?.kind === 'skill') return [];
    if (node) return this.#skillNodes(node);
    try {
      const telos = await this.#current.openTelos();
      const agents = await telos.agents();
      this.#listed.fire(agents.length);
      const inChat = await agentsInChat(agents, telos.config.dataDir);
      const installed = await this.#installedFrom();
      const nodes = agents.map(agent => {
        const from = agent.source === 'user' ? installed.get(agent.name) : undefined;
        const isInChat = inChat.includes(agent);
        return { kind: 'agent' as const, agent, isInChat, ...(from && { installed: from }) };
      });
      if (this.#filter === '') return nodes;
      return nodes
        .map(found => ({
          ...found,
          shown: found.agent.skills.filter(skill => this.#fits(found.agent, skill)),
        }))
        .filter(({ shown }) => shown.length > 0);
    } catch (error) {
      this.#log.error('The skills could not be listed.', error);
      this.#listed.fire(undefined);
      throw error;
    }
  }

  /** Returns what the lock file knows, none if nothing was installed from a source or the file cannot be read. */
  async #installedFrom(): Promise<ReadonlyMap<string, InstalledFrom>> {
    const { config } = await this.#current.openTelos();
    if (!existsSync(join(config.skillsDir, lockName))) return new Map();
    const { verifyPacks } = await importLocked();
    try {
      const packs = (await verifyPacks({ config })).filter(({ state }) => state !== 'unlocked');
      return new Map(
        packs.map(({ name, source, version, pinned, state }) => [
          name,
          {
            source,
            version,
            isPinned: pinned,
            isEdited: state === 'edited',
            update: this.#updates.get(name),
          },
        ]),
      );
    } catch (error) {
      this.#log.warn('The lock file of the skills could not be read.', error);
      return new Map();
    }
  }

  getTreeItem(node: TreeNode): vscode.TreeItem {
    return node.kind === 'agent' ? agentItem(node) : (node.item ?? skillItem(node));
  }

  /** Adds what is shown when the pointer rests on a skill. The editor asks only for what is missing. */
  async resolveTreeItem(item: vscode.TreeItem, node: TreeNode): Promise<vscode.TreeItem> {
    if (node.kind !== 'skill') return item;
    this.#uses ??= import('./useLine.ts').then(({ UseLines }) => new UseLines(this.#current));
    const uses = await this.#uses;
    item.tooltip = skillTooltip(node, await uses.of({ agent: node.agent.name, skill: node.skill.id }));
    return item;
  }

  #fits(agent: Agent, skill: Skill): boolean {
    const text = `${agent.name}\n${skill.id}\n${descriptionOf(skill)}`.toLowerCase();
    return this.#filter
      .toLowerCase()
      .split(/\s+/)
      .every(word => text.includes(word));
  }

  /** Reads the files and makes the items in slices, because the editor later asks for all items at once. */
  async #skillNodes({ agent, shown = agent.skills }: AgentNode): Promise<SkillNode[]> {
    const [{ readinessOf }, { thisMachine }] = await Promise.all([importReadiness(), importMachine()]);
    const { config } = await this.#current.openTelos();
    this.#machine ??= thisMachine(config.env);
    const machine = this.#machine;
    const nodes: SkillNode[] = [];
    for await (const skill of inSlices(shown)) {
      const isFavorite = this.#skills.isFavorite({ agent: agent.name, skill: skill.id });
      const { missing } = readinessOf(skill, machine);
      const node = { kind: 'skill' as const, agent, skill, missing, isFavorite };
      nodes.push({ ...node, item: skillItem(node) });
    }
    const place = ({ skill, isFavorite }: SkillNode): number => (skill.isDisabled ? 2 : isFavorite ? 0 : 1);
    return nodes.sort((a, b) => place(a) - place(b));
  }

  dispose(): void {
    this.#following.dispose();
    this.#changed.dispose();
    this.#listed.dispose();
  }
}

/** Shows the tree, with a message above it if Restricted Mode hides part of it. */
export function registerSkillTree(tree: SkillTree, current: CurrentTelos): vscode.Disposable {
  const view = vscode.window.createTreeView('telos.skills', {
    treeDataProvider: tree,
    showCollapseAll: true,
  });
  // Above an empty tree, the message would hide the welcome text, which says the same and more.
  const listed = tree.onDidList(count => {
    void vscode.commands.executeCommand('setContext', 'telos.skillsFiltered', tree.filter !== '');
    if (count === undefined) view.message = failedMessage;
    else if (tree.filter) view.message = vscode.l10n.t('Only skills with “{0}”', plainLabel(tree.filter, 60));
    else view.message = vscode.workspace.isTrusted || count === 0 ? '' : restrictedMessage;
    // Set only after a listing. An empty tree alone does not mean that no skills exist.
    void vscode.commands.executeCommand('setContext', 'telos.noSkills', count === 0);
  });
  const shown = view.onDidChangeVisibility(({ visible }) => visible && void current.look());
  const greyed = vscode.window.registerFileDecorationProvider({
    provideFileDecoration: ({ scheme }) => (scheme === disabledScheme ? { color: disabledColor } : undefined),
  });
  return vscode.Disposable.from(view, listed, shown, greyed);
}

function agentItem({ agent, shown = agent.skills, installed, isInChat }: AgentNode): vscode.TreeItem {
  const { Expanded, Collapsed } = vscode.TreeItemCollapsibleState;
  const state = shown.length > mostUnfolded ? Collapsed : Expanded;
  const item = new vscode.TreeItem(plainLabel(agent.name), state);
  const count = shown.length === 1 ? vscode.l10n.t('1 skill') : vscode.l10n.t('{0} skills', shown.length);
  const defect = firstDefect(agent.diagnostics);
  item.id = agentId(agent);
  item.contextValue = `agent.${agent.source}${isInChat ? '.inChat' : ''}${installed ? `.locked${installed.isPinned ? '.pinned' : ''}` : ''}`;
  item.iconPath = defect ? warningIcon() : new vscode.ThemeIcon('person');
  const states = installed ? installedStates(installed) : [sourceNames[agent.source]];
  item.description = [
    ...(installed?.update ? states.splice(0, 1) : []),
    defect ? describeDefect(defect).message : agent.description,
    count,
    ...states,
    ...(isInChat ? [vscode.l10n.t("in VS Code's chat")] : []),
  ]
    .filter(Boolean)
    .map(part => plainLabel(part))
    .join(' · ');
  item.tooltip = tooltip(agent.name, agent.description, agent.packDir, [
    ...(installed ? [vscode.l10n.t('Installed from {0}, {1}', installed.source, installed.version)] : []),
    ...defectLines(agent.diagnostics),
  ]);
  return item;
}

/** Returns what is to be known of an installed agent in a few words, an update first. */
function installedStates({ source, isPinned, isEdited, update }: InstalledFrom): string[] {
  return [
    ...(update === undefined ? [] : [vscode.l10n.t('update to {0}', update)]),
    source,
    ...(isPinned ? [vscode.l10n.t('pinned')] : []),
    ...(isEdited ? [vscode.l10n.t('edited')] : []),
  ];
}

function skillItem({ agent, skill, missing = [], isFavorite = false }: SkillNode): vscode.TreeItem {
  const item = new vscode.TreeItem(plainLabel(skill.id), vscode.TreeItemCollapsibleState.None);
  const { shadowedBy } = skill;
  const look = lookOf(skill, missing);
  item.id = `${agentId(agent)}\n${skill.file}`;
  item.contextValue = `skill.${skill.source}${skill.isDisabled ? '.disabled' : ''}${shadowedBy ? '.shadowed' : ''}${missing.length > 0 ? '.missing' : ''}${isFavorite ? '.favorite' : ''}`;
  if (skill.isDisabled) item.resourceUri = disabledUri(skill);
  item.iconPath = isFavorite && look.isSound ? new vscode.ThemeIcon('star-full') : look.icon;
  item.description = plainLabel(look.description);
  item.command = {
    command: 'telos.openSkillFile',
    title: vscode.l10n.t('Open SKILL.md'),
    arguments: [{ agent, skill }],
  };
  return item;
}

/** Returns the text, with a line that says how the skill has done lately. */
function skillTooltip({ agent, skill, missing = [] }: SkillNode, use: string | undefined): string {
  const { shadowedBy } = skill;
  return tooltip(skill.name, descriptionOf(skill), skill.file, [
    ...(skill.isDisabled
      ? [vscode.l10n.t('Disabled: it runs only if you say {0}.', `${agent.name}:${skill.id}`)]
      : []),
    ...(shadowedBy ? [shadowSentence(agent, skill, shadowedBy)] : []),
    // Errors that keep the file from being read are listed below, among its defects.
    ...missing.filter(({ kind }) => kind !== 'file').map(one => vscode.l10n.t('Missing: {0}', reasonOf(one))),
    ...defectLines(skill.diagnostics),
    ...(use === undefined ? [] : [use]),
  ]);
}

/**
 * Returns one icon and one line. A broken file comes first, then a missing requirement, then a skill hidden by another.
 */
function lookOf(
  skill: Skill,
  missing: readonly Missing[],
): { icon: vscode.ThemeIcon; description: string; isSound?: boolean } {
  const { shadowedBy } = skill;
  if (skill.isDisabled)
    return {
      icon: new vscode.ThemeIcon('circle-slash', disabledColor),
      description: `${vscode.l10n.t('disabled')} · ${hintedDescription(skill)}`,
    };
  const defect = firstDefect(skill.diagnostics);
  if (defect) return { icon: warningIcon(), description: describeDefect(defect).message };
  if (missing.length > 0) {
    const names = missing.map(nameOfMissing).join(', ');
    return {
      icon: new vscode.ThemeIcon('tools', warningColor),
      description: vscode.l10n.t('needs {0}', names),
    };
  }
  if (shadowedBy) {
    const icon = new vscode.ThemeIcon('eye-closed', disabledColor);
    return { icon, description: vscode.l10n.t('hidden by {0} of {1}', shadowedBy.skill, shadowedBy.agent) };
  }
  return { icon: new vscode.ThemeIcon('book'), description: hintedDescription(skill), isSound: true };
}

function shadowSentence(agent: Agent, { id }: Skill, other: SkillRef): string {
  return vscode.l10n.t(
    '{0} runs {1} of {2}. Use {3} to run this skill.',
    id,
    other.skill,
    other.agent,
    `${agent.name}:${id}`,
  );
}

const agentId = (agent: Agent): string => `${agent.source}\n${agent.packDir}\n${agent.name}`;

/** Returns the defect that the icon shows, an error before a warning. Hints are only in the tooltip. */
function firstDefect(diagnostics: readonly Diagnostic[]): Diagnostic | undefined {
  return (
    diagnostics.find(({ severity }) => severity === 'error') ??
    diagnostics.find(({ severity }) => severity === 'warning')
  );
}

/** The editor greys a row by its address. */
const disabledScheme = 'telos-disabled';
const disabledUri = ({ file }: Skill): vscode.Uri => vscode.Uri.from({ scheme: disabledScheme, path: file });
const disabledColor = new vscode.ThemeColor('disabledForeground');
const warningColor = new vscode.ThemeColor('list.warningForeground');
const warningIcon = (): vscode.ThemeIcon => new vscode.ThemeIcon('warning', warningColor);

function defectLines(diagnostics: readonly Diagnostic[]): string[] {
  return diagnostics.map(defect => {
    const { message, fix } = describeDefect(defect);
    return vscode.l10n.t('Line {0}: {1}', defect.line, `${message}${fix ? ` ${fix}` : ''}`);
  });
}

/** Returns plain text on purpose: the editor reads no links out of a string that is not Markdown. */
function tooltip(name: string, description: string, path: string, notes: readonly string[]): string {
  return [
    plainLabel(name),
    plainLabel(description, 1_000),
    ...notes.map(note => plainLabel(note, 400)),
    plainLabel(path, 1_000),
  ]
    .filter(Boolean)
    .join('\n\n');
}

/** Asks for words, and lists only the skills that have them. */
export async function filterSkills(tree: SkillTree): Promise<void> {
  const words = await askText({
    title: vscode.l10n.t('Filter Skills'),
    prompt: vscode.l10n.t('Filter by name or description. Leave empty to show all skills.'),
    value: tree.filter,
  });
  if (words !== undefined) tree.filter = words;
}

const kindNames = (): Readonly<Record<Missing['kind'], string>> => ({
  file: vscode.l10n.t('file'),
  os: vscode.l10n.t('operating system'),
  program: vscode.l10n.t('program'),
  package: vscode.l10n.t('package'),
  script: vscode.l10n.t('script'),
  variable: vscode.l10n.t('variable'),
  setting: vscode.l10n.t('setting'),
  tool: vscode.l10n.t('tool'),
});

interface MissingItem extends vscode.QuickPickItem {
  /** Copied to the clipboard when the item is picked. Missing if there is nothing to copy. */
  copy?: string;
}

/** Lists what is missing for a skill, and copies the command that the person picks. */
export async function showMissing({ skill, missing = [] }: SkillNode): Promise<void> {
  if (missing.length === 0) {
    acknowledge(vscode.l10n.t('{0} meets all requirements.', plainLabel(skill.id)));
    return;
  }
  const picked = await vscode.window.showQuickPick(missing.flatMap(missingItems), {
    title: vscode.l10n.t('Missing requirements of {0}', plainLabel(skill.id)),
    placeHolder: vscode.l10n.t('Pick a command to copy it. Nothing is installed from here.'),
    matchOnDetail: true,
  });
  if (picked?.copy === undefined) return;
  await vscode.env.clipboard.writeText(picked.copy);
  vscode.window.setStatusBarMessage(vscode.l10n.t('Copied: {0}', plainLabel(picked.copy, 80)), 5_000);
}

/** Returns why a skill wants it, and what a person can do. */
const reasonOf = ({ sentences: { reason, nextStep } }: Missing): string =>
  `${translated(reason)} ${translated(nextStep)}`;

function missingItems(missing: Missing): MissingItem[] {
  const { kind, what, commands } = missing;
  const item: MissingItem = {
    label: `$(circle-slash) ${plainLabel(nameOfMissing(missing))}`,
    description: kindNames()[kind],
    detail: plainLabel(reasonOf(missing), 400),
    ...(kind === 'variable' && { copy: what }),
  };
  const copies = commands.map(command => ({
    label: `$(copy) ${plainLabel(command, 300)}`,
    description: vscode.l10n.t("copy the author's command"),
    copy: command,
  }));
  return [item, ...copies];
}
