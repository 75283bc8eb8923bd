/** The defects of skills in the Problems panel: of every SKILL.md that is open, and of all that are listed. */
import * as vscode from 'vscode';
import type { Telos } from '../../engine/telos.ts';
import type { CurrentTelos } from '../currentTelos.ts';
import { inSlices } from '../slices.ts';
import { diagnose, toEditorDiagnostic } from './diagnose.ts';
import { isSkillFile } from './frontmatterPlace.ts';

/** Between the last key and the look at the text, in milliseconds. */
const settleTime = 300;

export class SkillProblems implements vscode.Disposable {
  readonly #current: CurrentTelos;
  readonly #log: vscode.LogOutputChannel;
  readonly #collection = vscode.languages.createDiagnosticCollection('telos');
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #following: vscode.Disposable;
  /** Listed files that have defects. */
  #listed = new Set<string>();
  /** Counts the listings, so that an older one gives way to a newer. */
  #listing = 0;

  constructor(current: CurrentTelos, log: vscode.LogOutputChannel) {
    this.#current = current;
    this.#log = log;
    this.#following = vscode.Disposable.from(
      vscode.workspace.onDidOpenTextDocument(document => this.#look(document, 0)),
      vscode.workspace.onDidSaveTextDocument(document => this.#look(document, 0)),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.#look(document, settleTime)),
      vscode.workspace.onDidCloseTextDocument(document => this.#forget(document)),
      current.onDidOpen(() => void this.#list()),
      current.onDidRefresh(() => void this.#list()),
    );
    for (const document of vscode.workspace.textDocuments) this.#look(document, 0);
  }

  dispose(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#following.dispose();
    this.#collection.dispose();
  }

  #look(document: vscode.TextDocument, delay: number): void {
    const { uri } = document;
    if (uri.scheme !== 'file' || !isSkillFile(uri.path)) return;
    clearTimeout(this.#timers.get(uri.fsPath));
    const timer = setTimeout(() => {
      this.#timers.delete(uri.fsPath);
      this.#show(document).catch(error => this.#log.error(`${uri.fsPath} could not be checked.`, error));
    }, delay);
    this.#timers.set(uri.fsPath, timer);
  }

  async #show(document: vscode.TextDocument): Promise<void> {
    const defects = await diagnose(document.getText(), document.uri.fsPath);
    if (document.isClosed) return;
    const shown = defects.map(defect => {
      const line = Math.min(Math.max(0, defect.line - 1), document.lineCount - 1);
      return toEditorDiagnostic({ ...defect, line: line + 1 }, document.lineAt(line).text.length);
    });
    this.#collection.set(document.uri, shown);
  }

  /** What was typed and not saved is gone with the document; the file is what counts again. */
  #forget({ uri }: vscode.TextDocument): void {
    if (uri.scheme !== 'file' || !isSkillFile(uri.path)) return;
    clearTimeout(this.#timers.get(uri.fsPath));
    this.#timers.delete(uri.fsPath);
    this.#collection.delete(uri);
    void this.#list();
  }

  async #list(): Promise<void> {
    const listing = ++this.#listing;
    try {
      await this.#listAll(await this.#current.openTelos(), listing);
    } catch (error) {
      this.#log.error('The skills could not be checked.', error);
    }
  }

  /** Of files that nobody has open, what stands in the way of their use; hints wait until somebody looks. */
  async #listAll(telos: Telos, listing: number): Promise<void> {
    const isOpen = new Set(vscode.workspace.textDocuments.map(({ uri }) => uri.fsPath));
    const defective = new Set<string>();
    const agents = await telos.agents();
    for await (const { file, diagnostics } of inSlices(agents.flatMap(agent => agent.skills))) {
      if (listing !== this.#listing) return;
      const telling = diagnostics.filter(({ severity }) => severity !== 'info');
      if (telling.length === 0 || isOpen.has(file)) continue;
      defective.add(file);
      this.#collection.set(
        vscode.Uri.file(file),
        telling.map(defect => toEditorDiagnostic(defect, wholeLine)),
      );
    }
    for (const file of this.#listed) {
      if (!defective.has(file) && !isOpen.has(file)) this.#collection.delete(vscode.Uri.file(file));
    }
    this.#listed = defective;
  }
}

/** The editor cuts a range to the line that is there. */
const wholeLine = 1_000;
