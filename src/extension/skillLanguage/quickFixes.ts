/** Quick fixes for the defects of a SKILL.md: the changes that the engine says mend them. */
import * as vscode from 'vscode';
import type { Diagnostic } from '../../engine/agents/agent.ts';
import { diagnose, diagnosticSource } from './diagnose.ts';
import { isSkillFile } from './frontmatterPlace.ts';

export const quickFixProvider: vscode.CodeActionProvider = {
  async provideCodeActions(document, _range, { diagnostics }) {
    const shown = diagnostics.filter(({ source }) => source === diagnosticSource);
    if (shown.length === 0 || !isSkillFile(document.uri.path)) return [];
    // The text may have changed since it was shown; an edit must fit the text as it is now.
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
  { fix, message }: Diagnostic,
  { offset, length, text }: NonNullable<Diagnostic['edit']>,
): vscode.CodeAction {
  const action = new vscode.CodeAction(fix ?? `Mend: ${message}`, vscode.CodeActionKind.QuickFix);
  const range = new vscode.Range(document.positionAt(offset), document.positionAt(offset + length));
  action.edit = new vscode.WorkspaceEdit();
  action.edit.replace(document.uri, range, text);
  action.diagnostics = [diagnostic];
  action.isPreferred = true;
  return action;
}
