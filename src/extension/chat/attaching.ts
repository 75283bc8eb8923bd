/**
 * Adds attachments to the chips above the textbox: pasted, dropped, mentioned or chosen. Asks before attaching anything
 * that may hold secrets.
 */

import { basename } from 'node:path';
import { isSensitive } from '@telos/engine/files';
import type { Attachment } from '@telos/protocol/attachment';
import type { ToHost, ToWebview } from '@telos/protocol/webview';
import * as vscode from 'vscode';
import { describeError, plainLabel } from '../base/labels.ts';
import type { LastEditor } from '../base/lastEditor.ts';
import { AttachError, AttachmentList, attachmentOf, mentionsIn } from './attachments.ts';
import { openableFile } from './chatMessages.ts';
import {
  fileMaterial,
  findFiles,
  mentionedFile,
  nameOf,
  problemsMaterial,
  selectionMaterial,
} from './editorMaterial.ts';

type AttachMessage = Extract<
  ToHost,
  {
    type:
      | 'attach'
      | 'attach_bytes'
      | 'attach_uris'
      | 'attach_mention'
      | 'detach'
      | 'find_files'
      | 'find_offers';
  }
>;

type Offers = Omit<Extract<ToWebview, { type: 'offers' }>, 'type'>;

export class Attaching {
  readonly #post: (message: ToWebview) => void;
  readonly #editors: LastEditor;
  readonly #offers: () => Promise<Offers>;
  readonly #list = new AttachmentList();
  #searching: vscode.CancellationTokenSource | undefined;

  /** `offers` returns what the MCP servers that have started offer. */
  constructor(post: (message: ToWebview) => void, editors: LastEditor, offers: () => Promise<Offers>) {
    this.#post = post;
    this.#editors = editors;
    this.#offers = offers;
  }

  /** Sends the view the attachments. `problem` says why something was not attached. */
  show(problem?: string): void {
    this.#post({ type: 'attached', attachments: this.#list.chips, ...(problem && { problem }) });
  }

  async act(message: AttachMessage): Promise<void> {
    switch (message.type) {
      case 'attach':
        return this.#choose();
      case 'attach_bytes':
        return this.#adding(async () => {
          const { name, data, size, thumbnail } = message;
          const bytes = Buffer.from(data, 'base64');
          const attachment = attachmentOf({ name: plainLabel(name, 200) || 'pasted', bytes, size });
          if (await mayAttach(attachment.name)) this.#list.add(attachment, thumbnail ? { thumbnail } : {});
        });
      case 'attach_uris':
        for (const uri of message.uris) await this.#adding(() => this.#addFile(ownUri(uri), 'dropped'));
        return;
      case 'attach_mention':
        return this.#adding(async () => {
          if (!(await this.#addMention(message.mention))) {
            throw new AttachError(
              vscode.l10n.t('There is no file {0} in the workspace.', plainLabel(message.mention)),
            );
          }
        });
      case 'detach':
        this.#list.remove(message.id);
        return this.show();
      case 'find_files':
        return this.#find(message.query);
      case 'find_offers':
        return this.#post({ type: 'offers', ...(await this.#offers()) });
    }
  }

  /**
   * Takes everything attached to a request and clears the chips. Returns undefined if something that the words mention
   * cannot be attached. The view then shows why.
   */
  async takeFor(text: string): Promise<Attachment[] | undefined> {
    try {
      for (const mention of mentionsIn(text)) {
        if (!this.#list.holds(mention)) await this.#addMention(mention);
      }
    } catch (error) {
      this.show(sentenceOf(error));
      return undefined;
    }
    const taken = this.#list.take();
    if (taken.length > 0) this.show();
    return taken;
  }

  /**
   * Returns the attachments that `text` mentions and `before` did not. The chips stay for the next request. Returns
   * undefined like `takeFor`.
   */
  async newlyNamed(text: string, before: string): Promise<Attachment[] | undefined> {
    const known = mentionsIn(before);
    const found: Attachment[] = [];
    try {
      for (const mention of mentionsIn(text).filter(each => !known.includes(each))) {
        const material = await this.#mentioned(mention);
        if (material && material !== 'declined') found.push(material);
      }
      return found;
    } catch (error) {
      this.show(sentenceOf(error));
      return undefined;
    }
  }

  async #adding(add: () => Promise<void>): Promise<void> {
    try {
      await add();
      this.show();
    } catch (error) {
      this.show(sentenceOf(error));
    }
  }

  /** Returns false if the word is not a mention of anything. Throws AttachError. */
  async #addMention(mention: string): Promise<boolean> {
    const material = await this.#mentioned(mention);
    if (material && material !== 'declined') this.#list.add(material, { mention });
    return material !== undefined;
  }

  /** Returns undefined if the word is not a mention of anything. Throws AttachError. */
  async #mentioned(mention: string): Promise<Attachment | 'declined' | undefined> {
    if (mention === 'selection') return selectionMaterial(this.#editors.editor);
    if (mention === 'problems') return problemsMaterial(this.#editors.editor);
    const file = await mentionedFile(mention);
    if (!file) return undefined;
    return (await mayAttach(file.fsPath, true)) ? fileMaterial(file) : 'declined';
  }

  /**
   * Attaches a file. Asks first if a page reports it as dropped and it is outside the workspace. A file chosen in a
   * dialog needs no question.
   */
  async #addFile(uri: vscode.Uri, how: 'dropped' | 'chosen'): Promise<void> {
    if (uri.scheme !== 'file')
      throw new AttachError(
        vscode.l10n.t('{0} was not attached: it is not a file on the disk.', nameOf(uri)),
      );
    if (await mayAttach(uri.fsPath, how === 'dropped')) this.#list.add(await fileMaterial(uri));
  }

  async #find(query: string): Promise<void> {
    this.#searching?.cancel();
    const searching = new vscode.CancellationTokenSource();
    this.#searching = searching;
    try {
      const files = await findFiles(query, searching.token);
      if (!searching.token.isCancellationRequested) this.#post({ type: 'files_found', query, files });
    } finally {
      searching.dispose();
      if (this.#searching === searching) this.#searching = undefined;
    }
  }

  /** Offers a list, for people without a mouse who know no mentions. */
  async #choose(): Promise<void> {
    const editor = this.#editors.editor;
    const fromDisk = {
      label: `$(folder-opened) ${vscode.l10n.t('Image or File…')}`,
      description: vscode.l10n.t('From anywhere on the disk'),
    };
    const selection = {
      label: `$(list-selection) ${vscode.l10n.t('Selection')}`,
      description: '@selection',
      mention: 'selection',
    };
    const problems = {
      label: `$(warning) ${vscode.l10n.t('Problems')}`,
      description: '@problems',
      mention: 'problems',
    };
    const files = (await findFiles('')).map(mention => ({
      label: `$(file) ${plainLabel(mention)}`,
      mention,
    }));
    const resources = (await this.#offers()).resources.map(({ word, description }) => ({
      label: `$(mcp) ${plainLabel(word)}`,
      description: plainLabel(description),
      resource: word,
    }));
    const items: (vscode.QuickPickItem & { mention?: string; resource?: string })[] = [
      fromDisk,
      ...(editor && !editor.selection.isEmpty ? [selection] : []),
      problems,
      ...(files.length > 0
        ? [
            { label: vscode.l10n.t('Files of the workspace'), kind: vscode.QuickPickItemKind.Separator },
            ...files,
          ]
        : []),
      ...(resources.length > 0
        ? [
            { label: vscode.l10n.t('Resources of MCP servers'), kind: vscode.QuickPickItemKind.Separator },
            ...resources,
          ]
        : []),
    ];
    const picked = await vscode.window.showQuickPick(items, {
      title: vscode.l10n.t('Attach to your next request'),
    });
    if (!picked) return;
    const { mention, resource } = picked;
    if (resource !== undefined) return this.#post({ type: 'insert', text: `@${resource} ` });
    if (mention !== undefined) {
      await this.#adding(async () => void (await this.#addMention(mention)));
      return;
    }
    const chosen = await vscode.window.showOpenDialog({
      canSelectMany: true,
      openLabel: vscode.l10n.t('Attach'),
    });
    for (const uri of chosen ?? []) await this.#adding(() => this.#addFile(uri, 'chosen'));
  }
}

/**
 * Asks before a file leaves the machine if its name suggests secrets. With `asksOutside`, also asks if the file is
 * outside the workspace.
 */
async function mayAttach(path: string, asksOutside = false): Promise<boolean> {
  const folders = (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath);
  const real = await openableFile(path, folders, undefined);
  const isOutside = asksOutside && real === undefined;
  const isSecret = isSensitive(path) || (real !== undefined && isSensitive(real));
  if (!isOutside && !isSecret) return true;
  const why = isSecret
    ? vscode.l10n.t('By its name it holds secrets.')
    : vscode.l10n.t('It is outside the workspace.');
  const attach = vscode.l10n.t('Attach');
  const answer = await vscode.window.showWarningMessage(
    vscode.l10n.t('Attach {0}?', plainLabel(basename(path))),
    {
      modal: true,
      detail: `${plainLabel(path, 500)}\n${why} ${vscode.l10n.t('The provider of the model can read all of it.')}`,
    },
    attach,
  );
  return answer === attach;
}

const sentenceOf = (error: unknown): string =>
  error instanceof AttachError
    ? error.message
    : vscode.l10n.t('It was not attached: {0}', plainLabel(describeError(error)));

/** Returns the address of a file on the machine on which Telos runs, even if the window is remote. */
function ownUri(address: string): vscode.Uri {
  const uri = vscode.Uri.parse(address);
  return uri.scheme === 'vscode-remote' ? vscode.Uri.file(uri.path) : uri;
}
