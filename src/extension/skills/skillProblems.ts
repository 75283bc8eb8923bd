/** Shows the defects of skills in the Problems panel, with fixes, and what can be done above the first line of a SKILL.md. */

import type { Diagnostic } from '@telos/engine/files';
import { importLint } from '@telos/engine/skills';
import type { Telos } from '@telos/engine/telos';
import * as vscode from 'vscode';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeDefect } from '../base/labels.ts';
import { inSlices, isSkillFile } from './skillFiles.ts';

/** The time from the last key to the check of the text. In milliseconds. */
const settleTime = 300;

/** Checks every open SKILL.md, and all listed ones. */
class SkillProblems implements vscode.Disposable {
  readonly #current: CurrentTelos;
  readonly #log: vscode.LogOutputChannel;
  readonly #collection = vscode.languages.createDiagnosticCollection('telos');
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #following: vscode.Disposable;
  /** Listed files that have defects. */
  #listed = new Set<string>();
  /** Counts the listings, so that an older one stops when a newer one has started. */
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

  /** Checks the saved file again after its document is closed. Unsaved changes no longer count. */
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

  /** Shows errors and warnings of files that are not open. Hints wait until the file is opened. */
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

/** The editor cuts a range to the actual line. */
const wholeLine = 1_000;

const diagnosticSource = 'Telos';

const severities: Readonly<Record<Diagnostic['severity'], vscode.DiagnosticSeverity>> = {
  error: vscode.DiagnosticSeverity.Error,
  warning: vscode.DiagnosticSeverity.Warning,
  info: vscode.DiagnosticSeverity.Information,
};

/** Returns the defects of a text, which need not be saved. `file` gives the name of the folder that it must match. */
async function diagnose(text: string, file: string): Promise<readonly Diagnostic[]> {
  const { lintText } = await importLint();
  return lintText(text, file);
}

/** Marks the whole line. The engine reports only lines, and a line of frontmatter is one unit. */
function toEditorDiagnostic(defect: Diagnostic, lineLength: number): vscode.Diagnostic {
  const line = Math.max(0, defect.line - 1);
  const { message, fix } = describeDefect(defect);
  const shown = new vscode.Diagnostic(
    new vscode.Range(line, 0, line, lineLength),
    fix ? `${message} ${fix}` : message,
    severities[defect.severity],
  );
  shown.source = diagnosticSource;
  shown.code = defect.code;
  return shown;
}

const quickFixProvider: vscode.CodeActionProvider = {
  async provideCodeActions(document, _range, { diagnostics }) {
    const shown = diagnostics.filter(({ source }) => source === diagnosticSource);
    if (shown.length === 0 || !isSkillFile(document.uri.path)) return [];
    // The text may have changed since the problem was shown. An edit must fit the present text.
    const defects = await diagnose(document.getText(), document.uri.fsPath);
    return shown.flatMap(diagnostic => {
      const defect = defects.find(
        ({ code, line }) => code === diagnostic.code && line - 1 === diagnostic.range.start.line,
      );
      return defect?.edit ? [quickFix(document, diagnostic, defect, defect.edit)] : [];
    });
  },
};

function quickFix(
  document: vscode.TextDocument,
  diagnostic: vscode.Diagnostic,
  defect: Diagnostic,
  { offset, length, text }: NonNullable<Diagnostic['edit']>,
): vscode.CodeAction {
  const { fix, message } = describeDefect(defect);
  const action = new vscode.CodeAction(
    fix ?? vscode.l10n.t('Fix: {0}', message),
    vscode.CodeActionKind.QuickFix,
  );
  const range = new vscode.Range(document.positionAt(offset), document.positionAt(offset + length));
  action.edit = new vscode.WorkspaceEdit();
  action.edit.replace(document.uri, range, text);
  action.diagnostics = [diagnostic];
  action.isPreferred = true;
  return action;
}

/** Shows the lines *Run* and *Preview Routing* above a SKILL.md. */
const lensProvider: vscode.CodeLensProvider = {
  provideCodeLenses({ uri }) {
    if (!isSkillFile(uri.path)) return [];
    const top = new vscode.Range(0, 0, 0, 0);
    return [
      new vscode.CodeLens(top, {
        title: `$(play) ${vscode.l10n.t('Run')}`,
        tooltip: vscode.l10n.t('Saves the file and runs the skill in the chat'),
        command: 'telos.runSkillFile',
        arguments: [uri],
      }),
      new vscode.CodeLens(top, {
        title: vscode.l10n.t('Preview Routing'),
        tooltip: vscode.l10n.t('Shows which skills a request would find, and where this one stands'),
        command: 'telos.previewRouting',
        arguments: [undefined, uri.fsPath],
      }),
    ];
  },
};

/** Matches by file name. Newer editors have their own language for it, older ones call it Markdown. */
const skillFiles: vscode.DocumentFilter = {
  scheme: 'file',
  pattern: '**/{SKILL,Skill,skill,SKILLS,Skills,skills}.{md,MD}',
};

export function registerSkillLanguage(
  current: CurrentTelos,
  log: vscode.LogOutputChannel,
): vscode.Disposable {
  return vscode.Disposable.from(
    new SkillProblems(current, log),
    vscode.languages.registerCodeActionsProvider(skillFiles, quickFixProvider, {
      providedCodeActionKinds: [vscode.CodeActionKind.QuickFix],
    }),
    vscode.languages.registerCodeLensProvider(skillFiles, lensProvider),
  );
}
