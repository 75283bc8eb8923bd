/** Opens what is pressed in the chat: web and mail links, and files in folders that the person works with. */

import { stat } from 'node:fs/promises';
import { loadRegularFile, mediaTypeOf } from '@telos/engine/files';
import type { Telos } from '@telos/engine/telos';
import { maxImageBytes } from '@telos/protocol/attachment';
import type { SkillRef } from '@telos/protocol/run';
import * as vscode from 'vscode';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { plainLabel } from '../base/labels.ts';
import { descriptionOf } from '../skills/skillFiles.ts';
import { rankedSkills, SkillMemory } from '../skills/skillRanking.ts';
import { openableFile, openableLink } from './chatMessages.ts';

interface Desk {
  current: CurrentTelos;
  log: vscode.LogOutputChannel;
}

export async function openLink(url: string, log: Desk['log']): Promise<void> {
  const link = openableLink(url);
  if (link) await vscode.env.openExternal(vscode.Uri.parse(link, true));
  else log.warn(`A link was not opened, only http, https and mailto are: ${plainLabel(url)}`);
}

/**
 * Opens a file at its lines, or returns why not. `workingDir` is the folder in which the conversation's latest skill worked.
 */
export async function openFile(
  { path, line, endLine = line }: { path: string; line?: number; endLine?: number },
  workingDir: string | undefined,
  { current, log }: Desk,
): Promise<string | undefined> {
  const file = await fileOf(path, workingDir, await openableFolders(current, workingDir));
  if (file) {
    const lines = line !== undefined && {
      selection: new vscode.Range(line - 1, 0, (endLine ?? line) - 1, 0),
    };
    await vscode.commands.executeCommand('vscode.open', vscode.Uri.file(file), lines || undefined);
    return undefined;
  }
  log.warn(`A file was not opened: ${plainLabel(path, 1_000)}`);
  return vscode.l10n.t(
    '{0} does not exist, or is outside the workspace, the working folders and the skills.',
    plainLabel(path),
  );
}

/** Returns the paths that may be opened, of those that an answer names. */
export async function filesAmong(
  paths: readonly string[],
  workingDir: string | undefined,
  { current }: Desk,
): Promise<string[]> {
  const folders = await openableFolders(current, workingDir);
  const files = await Promise.all(paths.map(path => fileOf(path, workingDir, folders)));
  return paths.filter((_, at) => files[at] !== undefined);
}

/** Returns a local image of an answer as a `data:` address, or why it is not shown. Neither if there is no such file. */
export async function imageOf(
  path: string,
  workingDir: string | undefined,
  { current }: Desk,
): Promise<{ data?: string; problem?: string }> {
  const file = await fileOf(path, workingDir, await openableFolders(current, workingDir));
  if (file === undefined) return {};
  const { size } = await stat(file);
  if (size > maxImageBytes) {
    const most = `${maxImageBytes / 1_000_000} MB`;
    return { problem: vscode.l10n.t('It is not shown: it is larger than {0}.', most) };
  }
  const bytes = await loadRegularFile(file);
  const isDrawing = /^\s*<(?:\?xml|!--|!DOCTYPE svg|svg)/i.test(bytes.subarray(0, 200).toString('utf8'));
  const type = imageType(bytes) ?? (/\.svg$/i.test(file) && isDrawing ? 'image/svg+xml' : undefined);
  if (!type) return { problem: vscode.l10n.t('It is not shown: it is not an image that the view can show.') };
  return { data: `data:${type};base64,${bytes.toString('base64')}` };
}

/** A document has a type too, which no picture shows. */
function imageType(bytes: Buffer): string | undefined {
  const type = mediaTypeOf(bytes);
  return type?.startsWith('image/') ? type : undefined;
}

/** A relative path starts in the working folder, or else in a folder of the workspace. */
async function fileOf(
  path: string,
  workingDir: string | undefined,
  folders: readonly string[],
): Promise<string | undefined> {
  const workspace = (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath);
  for (const base of [workingDir, ...workspace]) {
    const file = await openableFile(path, folders, base);
    if (file !== undefined) return file;
  }
  return undefined;
}

async function openableFolders(current: Desk['current'], workingDir: string | undefined): Promise<string[]> {
  const telos = await current.openTelos();
  const agents = await telos.agents();
  return [
    ...(vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath),
    ...(workingDir ? [workingDir] : []),
    telos.config.skillsDir,
    ...agents.flatMap(agent => [agent.workingDir, agent.packDir, ...agent.skills.map(({ dir }) => dir)]),
  ];
}

/** Language names that fences use, with the editor's own names for them. */
const fenceNames: Readonly<Record<string, string>> = {
  bash: 'shellscript',
  sh: 'shellscript',
  shell: 'shellscript',
  zsh: 'shellscript',
  js: 'javascript',
  jsx: 'javascriptreact',
  ts: 'typescript',
  tsx: 'typescriptreact',
  py: 'python',
  rb: 'ruby',
  rs: 'rust',
  md: 'markdown',
  yml: 'yaml',
  'c++': 'cpp',
  'c#': 'csharp',
  cs: 'csharp',
  ps1: 'powershell',
};

/** Replaces the selections in `editor`, or returns why not. Without an editor, the text goes into a new document. */
export async function insertAtCursor(
  editor: vscode.TextEditor | undefined,
  text: string,
): Promise<string | undefined> {
  if (!editor) {
    await openNewFile(text, '');
    return undefined;
  }
  const code = text.replace(/\n$/, '');
  const done = await editor.edit(edit => {
    for (const selection of editor.selections) edit.replace(selection, code);
  });
  if (!done)
    return vscode.l10n.t(
      'The code was not inserted because the editor is read-only. Open another file, then try again.',
    );
  await vscode.window.showTextDocument(editor.document, editor.viewColumn);
  return undefined;
}

/** Opens an unsaved document. It is plain text if the editor does not know the language. */
export async function openNewFile(text: string, language: string): Promise<void> {
  const wanted = fenceNames[language.toLowerCase()] ?? language.toLowerCase();
  const known = await vscode.languages.getLanguages();
  const document = await vscode.workspace.openTextDocument({
    content: text,
    ...(known.includes(wanted) ? { language: wanted } : {}),
  });
  await vscode.window.showTextDocument(document);
}

/** Asks for the next skill. `skill` is null if the words are to choose. Returns undefined if the list was closed. */
export async function chooseNextSkill(
  telos: Telos,
  memory: vscode.Memento,
): Promise<{ skill: SkillRef | null } | undefined> {
  const byWords = {
    label: vscode.l10n.t('Let Telos pick'),
    description: vscode.l10n.t('by your words'),
    skill: null,
  };
  const ranked = await rankedSkills(telos, new SkillMemory(memory));
  const items = ranked.map(({ ref, skill, note }) => ({
    label: plainLabel(ref.skill),
    description: plainLabel(ref.agent),
    detail: plainLabel([note, descriptionOf(skill)].filter(Boolean).join(' · ')),
    skill: ref,
  }));
  return vscode.window.showQuickPick([byWords, ...items], {
    title: vscode.l10n.t('Skill for your next request'),
    matchOnDescription: true,
    matchOnDetail: true,
  });
}
