/** Implements the commands that start a run outside the chat. The person picks a skill and adds a few words. */

import { realpath } from 'node:fs/promises';
import type { Agent, Skill } from '@telos/engine/skills';
import type { Selection } from '@telos/protocol/attachment';
import type { SkillRef } from '@telos/protocol/run';
import * as vscode from 'vscode';
import { acknowledge } from './base/acknowledge.ts';
import { askText } from './base/askText.ts';
import type { CurrentTelos } from './base/currentTelos.ts';
import { plainLabel } from './base/labels.ts';
import type { ChatPanels, ChatView } from './chat/chatPlaces.ts';
import type { NativeRuns } from './editor/editorRuns.ts';
import { deliver, pickTarget, placeOf, type SelectedPlace } from './editor/outputTarget.ts';
import { descriptionOf } from './skills/skillFiles.ts';
import { offerFirstSkill } from './skills/skillFolders.ts';
import { type RankedSkill, rankedSkills, SkillMemory } from './skills/skillRanking.ts';
import type { SkillNode } from './skills/skillTree.ts';

/** The number of skills in use at the top of the list. */
const mostUsed = 5;

interface SkillItem extends vscode.QuickPickItem {
  /** Missing if Telos is to pick by the person's words. */
  ref?: SkillRef;
}

/** The attachments of the person's words. */
interface Along {
  selection?: Selection;
  /** The place of that selection, for an answer that replaces it. */
  place?: SelectedPlace;
  /** Absolute paths of files and folders. */
  files?: readonly string[];
}

/** Parts of the extension that the commands use. */
export interface PickParts {
  current: CurrentTelos;
  chat: ChatView;
  panels: ChatPanels;
  memory: vscode.Memento;
  runs: NativeRuns;
}

/** Implements `Telos: Run Skill...`. */
export async function runSkill(parts: PickParts): Promise<void> {
  const item = await pickSkill(parts, []);
  if (item) await run(parts, item);
}

export async function runSkillOnSelection(parts: PickParts): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const selection = selectedText(editor);
  if (!editor || !selection) {
    acknowledge(vscode.l10n.t('Select some text in an editor first.'));
    return;
  }
  const place = placeOf(editor);
  const item = await pickSkill(parts, [byWords()]);
  if (item) await run(parts, item, { selection, place });
}

export async function runSkillOnTerminalSelection(parts: PickParts): Promise<void> {
  const selection = await terminalSelection();
  if (!selection) {
    acknowledge(vscode.l10n.t('Select some text in a terminal first.'));
    return;
  }
  const item = await pickSkill(parts, [byWords()]);
  if (item) await run(parts, item, { selection });
}

/** Runs a skill on a file of the explorer, on all that are `chosen` there, or on the open one. */
export async function runSkillOnFile(
  parts: PickParts,
  uri?: vscode.Uri,
  chosen?: readonly vscode.Uri[],
): Promise<void> {
  const active = vscode.window.activeTextEditor?.document.uri;
  const uris = chosen?.length ? chosen : [uri ?? active].filter(one => one !== undefined);
  const files = uris.filter(({ scheme }) => scheme === 'file').map(({ fsPath }) => fsPath);
  if (files.length === 0) {
    acknowledge(vscode.l10n.t('Open a file on the disk, or choose one in the explorer.'));
    return;
  }
  const item = await pickSkill(parts, [byWords()]);
  if (item) await run(parts, item, { files });
}

/** Implements Run in the tree. */
export async function runTreeSkill(parts: PickParts, { agent, skill }: SkillNode): Promise<void> {
  await run(parts, skillItem(agent, skill));
}

/** Saves the file, and runs its skill in the chat. */
export async function runSkillFile(parts: PickParts, uri: vscode.Uri): Promise<void> {
  const document = vscode.workspace.textDocuments.find(each => each.uri.toString() === uri.toString());
  if (document?.isDirty && (await document.save())) await parts.current.refresh();
  const node = await findNode(parts.current, uri.fsPath);
  if (node) {
    await runTreeSkill(parts, node);
    return;
  }
  acknowledge(
    vscode.l10n.t('This file is not in any folder that Telos reads skills from, so it cannot run from here.'),
    {
      title: vscode.l10n.t('Show Skills Folder'),
      act: () => vscode.commands.executeCommand('telos.showSkillsFolder'),
    },
  );
}

async function run(
  { chat, panels, memory, runs }: PickParts,
  item: SkillItem,
  along: Along = {},
): Promise<void> {
  const { selection, place, files = [] } = along;
  const isPlain = !selection && files.length === 0;
  const target = isPlain ? 'chat' : await pickTarget(memory, place !== undefined);
  if (!target) return;
  const text = await askWords(item, along);
  if (text === undefined) return;
  const request = {
    text: [text, ...(files.length > 0 ? [`Look at this:\n${files.join('\n')}`] : [])].join('\n\n').trim(),
    ...(item.ref && { skill: item.ref }),
    ...(selection && { selection }),
  };
  if (target === 'chat') {
    const place = chat.isRunning ? await placeBesideRun() : 'sidebar';
    if (place === 'editor') panels.submitInNew(request);
    else if (place) await chat.submitInFront(request);
    return;
  }
  // The chat notes its own runs.
  if (item.ref) await new SkillMemory(memory).noteRun(item.ref);
  await deliver(runs, request, target, place);
}

type ChatPlaceName = 'sidebar' | 'editor';

/** The person's answer, which holds for the window. */
let besideRun: ChatPlaceName | undefined;

/** Asks once what becomes of a request while the chat runs another. Returns undefined if the person closes the list. */
async function placeBesideRun(): Promise<ChatPlaceName | undefined> {
  if (besideRun) return besideRun;
  const item = (place: ChatPlaceName, label: string, detail: string) => ({ place, label, detail });
  const picked = await vscode.window.showQuickPick(
    [
      item(
        'sidebar',
        vscode.l10n.t('Wait for Its End'),
        vscode.l10n.t('The chat runs one request after the other.'),
      ),
      item(
        'editor',
        vscode.l10n.t('Open a Second Chat'),
        vscode.l10n.t('Runs at once, in an editor of its own.'),
      ),
    ],
    {
      title: vscode.l10n.t('The chat is still running'),
      placeHolder: vscode.l10n.t('Your choice holds until the window is closed'),
    },
  );
  besideRun = picked?.place;
  return besideRun;
}

const byWords = (): SkillItem => ({
  label: vscode.l10n.t('Let Telos pick'),
  detail: vscode.l10n.t('By your words'),
});

async function pickSkill(
  { current, memory }: PickParts,
  before: readonly SkillItem[],
): Promise<SkillItem | undefined> {
  const skills = await rankedSkills(await current.openTelos(), new SkillMemory(memory));
  if (skills.length === 0) {
    await offerFirstSkill();
    return undefined;
  }
  return vscode.window.showQuickPick([...before, ...grouped(skills)], {
    title: vscode.l10n.t('Run Skill'),
    placeHolder: vscode.l10n.t('Which skill?'),
    matchOnDescription: true,
    matchOnDetail: true,
  });
}

/** Lists favorites and the skills in use, then all others by their agents. Those with a defect come last. */
function grouped(skills: readonly RankedSkill[]): SkillItem[] {
  const isSound = ({ skill }: RankedSkill): boolean =>
    skill.diagnostics.every(({ severity }) => severity === 'info');
  const favorites = skills.filter(({ isFavorite }) => isFavorite);
  const used = skills.filter(each => !each.isFavorite && each.weight > 0 && isSound(each)).slice(0, mostUsed);
  const others = skills.filter(each => !favorites.includes(each) && !used.includes(each));
  const names = [...new Set(others.map(({ agent }) => agent.name))];
  const group = (label: string, members: readonly RankedSkill[]): SkillItem[] =>
    members.length === 0
      ? []
      : [{ label, kind: vscode.QuickPickItemKind.Separator }, ...members.map(rankedItem)];
  return [
    ...group(vscode.l10n.t('Favorites'), favorites),
    ...group(vscode.l10n.t('Last used'), used),
    ...names.flatMap(name =>
      group(
        plainLabel(name),
        others.filter(({ agent }) => agent.name === name),
      ),
    ),
  ];
}

function rankedItem({ agent, skill, note }: RankedSkill): SkillItem {
  const item = skillItem(agent, skill);
  return {
    ...item,
    detail: [note && `$(warning) ${plainLabel(note)}`, item.detail].filter(Boolean).join(' · '),
  };
}

function skillItem(agent: Agent, skill: Skill): SkillItem {
  return {
    label: plainLabel(skill.id),
    description: plainLabel(agent.name),
    detail: plainLabel(descriptionOf(skill)),
    ref: { agent: agent.name, skill: skill.id },
  };
}

/** Asks for the words. Returns undefined if the person cancels. A picked skill needs no words. */
async function askWords(item: SkillItem, { selection, files = [] }: Along): Promise<string | undefined> {
  return askText({
    title: item.ref ? vscode.l10n.t('Run {0}', item.label) : vscode.l10n.t('Run a skill'),
    prompt: selection
      ? vscode.l10n.t(
          'The selection of {0} is attached.',
          plainLabel(vscode.workspace.asRelativePath(selection.file)),
        )
      : files.length > 0
        ? vscode.l10n.t('It was asked about {0}.', plainLabel(files.join(', ')))
        : vscode.l10n.t('What should it do?'),
    placeHolder: item.ref ? vscode.l10n.t('Your words, or press Enter to skip') : vscode.l10n.t('Your words'),
    validateInput: text =>
      item.ref || text.trim() ? undefined : vscode.l10n.t('Telos chooses by your words. Enter a few.'),
  });
}

/**
 * Returns the editor's first selection with its file and line, so that a model can find it again. Returns undefined if
 * nothing is selected.
 */
function selectedText(editor: vscode.TextEditor | undefined): Selection | undefined {
  if (!editor || editor.selection.isEmpty) return undefined;
  const { document, selection } = editor;
  return {
    file: document.uri.scheme === 'file' ? document.uri.fsPath : document.fileName,
    text: document.getText(selection),
    line: selection.start.line + 1,
    language: document.languageId,
  };
}

/**
 * Returns the selection in the terminal. The editor does not expose it, so it is copied, and the clipboard is restored
 * afterwards.
 */
async function terminalSelection(): Promise<Selection | undefined> {
  const { clipboard } = vscode.env;
  const before = await clipboard.readText();
  await clipboard.writeText('');
  try {
    await vscode.commands.executeCommand('workbench.action.terminal.copySelection');
    const text = await clipboard.readText();
    const name = vscode.window.activeTerminal?.name ?? '';
    return text.trim() === ''
      ? undefined
      : { file: `terminal ${name}`.trim(), text, line: 1, language: 'plaintext' };
  } finally {
    await clipboard.writeText(before);
  }
}

/** Returns the skill of a file, with links resolved on both sides. */
async function findNode(current: CurrentTelos, file: string): Promise<SkillNode | undefined> {
  const agents = await (await current.openTelos()).agents();
  const nodes = agents.flatMap(agent =>
    agent.skills.map(skill => ({ kind: 'skill' as const, agent, skill })),
  );
  const exact = nodes.find(({ skill }) => skill.file === file);
  if (exact) return exact;
  const real = await realpath(file).catch(() => file);
  for (const node of nodes) {
    if ((await realpath(node.skill.file).catch(() => '')) === real) return node;
  }
  return undefined;
}
