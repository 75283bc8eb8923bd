/** Collects attachments from the editor: the selection, its known problems, and files. */

import { open, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { mediaTypeOf, mostBytes } from '@telos/engine/files';
import { type Attachment, maxTextBytes } from '@telos/protocol/attachment';
import * as vscode from 'vscode';
import { plainLabel } from '../base/labels.ts';
import { AttachError, attachmentOf, textAttachment } from './attachments.ts';

const mostProblems = 100;
const mostFiles = 30;
/** The search stops after this many files. The best of them are shown. */
const mostFound = 400;
const leftOut = '**/{node_modules,.git}/**';

/** Returns the selection as an attachment. Throws AttachError if nothing is selected. */
export function selectionMaterial(editor: vscode.TextEditor | undefined): Attachment {
  if (!editor) throw new AttachError(vscode.l10n.t('There is no selection: no text editor is open.'));
  const { document, selection } = editor;
  const name = nameOf(document.uri);
  if (selection.isEmpty) throw new AttachError(vscode.l10n.t('Nothing is selected in {0}.', name));
  const [first, last] = [selection.start.line + 1, selection.end.line + 1];
  const lines =
    first === last ? vscode.l10n.t('line {0}', first) : vscode.l10n.t('lines {0} to {1}', first, last);
  return textAttachment(
    vscode.l10n.t('Selection of {0}, {1}', name, lines),
    document.getText(selection),
    document.languageId,
  );
}

/**
 * Returns the problems of the editor's file, or of the whole workspace if the file has none. Throws AttachError if
 * there are none at all.
 */
export function problemsMaterial(editor: vscode.TextEditor | undefined): Attachment {
  const uri = editor?.document.uri;
  const own = uri ? vscode.languages.getDiagnostics(uri) : [];
  const all: readonly [vscode.Uri, readonly vscode.Diagnostic[]][] =
    uri && own.length > 0 ? [[uri, own]] : vscode.languages.getDiagnostics();
  const problems = all.flatMap(([file, found]) => found.map(problem => ({ file, problem })));
  if (problems.length === 0)
    throw new AttachError(vscode.l10n.t('There are no problems: the editor reports none.'));
  problems.sort((one, other) => one.problem.severity - other.problem.severity);
  const lines = problems.slice(0, mostProblems).map(({ file, problem }) => problemLine(file, problem));
  const more = problems.length - lines.length;
  const whose = uri && own.length > 0 ? nameOf(uri) : vscode.l10n.t('the workspace');
  return textAttachment(
    vscode.l10n.t('Problems of {0}', whose),
    [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join('\n'),
  );
}

const severities = ['error', 'warning', 'information', 'hint'];

function problemLine(
  file: vscode.Uri,
  { range, severity, source, code, message }: vscode.Diagnostic,
): string {
  const number = typeof code === 'object' ? code.value : code;
  const from = [source, number].filter(part => part !== undefined && part !== '').join(' ');
  const place = `${nameOf(file)}:${range.start.line + 1}:${range.start.character + 1}`;
  return `${place} ${severities[severity]}: ${message.replace(/\s+/g, ' ')}${from ? ` (${from})` : ''}`;
}

/** Returns a file as the editor shows it, with unsaved changes, or else as it is on disk. Throws AttachError. */
export async function fileMaterial(uri: vscode.Uri): Promise<Attachment> {
  const name = nameOf(uri);
  if (uri.scheme !== 'file')
    throw new AttachError(vscode.l10n.t('{0} was not attached: it is not a file on the disk.', name));
  const path = uri.fsPath;
  const document = vscode.workspace.textDocuments.find(one => one.uri.toString() === uri.toString());
  if (document) {
    const bytes = Buffer.from(document.getText());
    return attachmentOf({ name, path, bytes, language: document.languageId });
  }
  const about = await stat(path).catch(() => undefined);
  if (!about) throw new AttachError(vscode.l10n.t('{0} was not attached: it does not exist.', name));
  if (about.isDirectory()) {
    throw new AttachError(
      vscode.l10n.t('{0} was not attached: it is a folder. Name it in your request instead.', name),
    );
  }
  if (!about.isFile())
    throw new AttachError(vscode.l10n.t('{0} was not attached: it is not a regular file.', name));
  return attachmentOf({ name, path, size: about.size, bytes: await readStart(path) });
}

/** Reads all of a picture or document that models can read, and the beginning of any other file. */
async function readStart(path: string): Promise<Buffer> {
  const handle = await open(path);
  try {
    const start = await readAt(handle, 0, maxTextBytes);
    const mediaType = mediaTypeOf(start);
    if (!mediaType) return start;
    return Buffer.concat([start, await readAt(handle, start.length, mostBytes(mediaType) - start.length)]);
  } finally {
    await handle.close();
  }
}

async function readAt(handle: Awaited<ReturnType<typeof open>>, from: number, most: number): Promise<Buffer> {
  const bytes = Buffer.alloc(most);
  let filled = 0;
  while (filled < most) {
    const { bytesRead } = await handle.read(bytes, filled, most - filled, from + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}

/**
 * Finds files of the workspace whose paths contain the query, best match first. Among equal matches, open files come
 * first.
 */
export async function findFiles(query: string, token?: vscode.CancellationToken): Promise<string[]> {
  const opened = openFiles().map(nameOf);
  const words = query.toLowerCase();
  const glob = query === '' ? '**/*' : globOf(query);
  const most = query === '' ? mostFiles : mostFound;
  const found = await vscode.workspace.findFiles(glob, leftOut, most, token);
  const names = [...new Set([...opened, ...found.map(nameOf)])].filter(name =>
    name.toLowerCase().includes(words),
  );
  const rank = (name: string): number => {
    const file = basename(name).toLowerCase();
    const known = opened.includes(name) ? 0 : 0.5;
    return (file === words ? 0 : file.startsWith(words) ? 1 : file.includes(words) ? 2 : 3) + known;
  };
  const ranked = names.map(name => ({ name, rank: rank(name) }));
  ranked.sort((one, other) => one.rank - other.rank || one.name.length - other.name.length);
  return ranked.slice(0, mostFiles).map(({ name }) => name);
}

/** Returns a glob that ignores case. Each part of a path may be incomplete. */
function globOf(query: string): string {
  const part = (text: string): string => `*${[...text].map(anyCase).join('')}*`;
  const parts = query.split('/').map(part);
  const inFolder = parts.length === 1 ? `,**/${parts[0]}/**` : '';
  return `{**/${parts.join('/')}${inFolder}}`;
}

function anyCase(character: string): string {
  const [lower, upper] = [character.toLowerCase(), character.toUpperCase()];
  if (lower !== upper) return `[${lower}${upper}]`;
  return /[*?{}[\],!]/.test(character) ? '?' : character;
}

/** Returns the workspace file that a mention names, or undefined if there is none. */
export async function mentionedFile(mention: string): Promise<vscode.Uri | undefined> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  for (const { uri, name } of folders) {
    const within =
      folders.length > 1 && mention.startsWith(`${name}/`) ? mention.slice(name.length + 1) : mention;
    if (within.split('/').includes('..')) continue;
    const file = vscode.Uri.joinPath(uri, within);
    const about = await stat(file.fsPath).catch(() => undefined);
    if (about?.isFile()) return file;
  }
  return undefined;
}

function openFiles(): vscode.Uri[] {
  const inputs = vscode.window.tabGroups.all.flatMap(group => group.tabs.map(tab => tab.input));
  const uris = inputs.flatMap(input => (input instanceof vscode.TabInputText ? [input.uri] : []));
  return uris.filter(uri => uri.scheme === 'file' && vscode.workspace.getWorkspaceFolder(uri));
}

/** Returns a file's path relative to the workspace, or its name alone if it is outside. */
export function nameOf(uri: vscode.Uri): string {
  const isInside = vscode.workspace.getWorkspaceFolder(uri) !== undefined;
  const name = isInside ? vscode.workspace.asRelativePath(uri) : basename(uri.path) || uri.path;
  return plainLabel(name.replaceAll('\\', '/'), 500);
}
