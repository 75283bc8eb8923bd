/** What is wrong with the text of a SKILL.md, as the editor shows it. */
import * as vscode from 'vscode';
import type { Diagnostic } from '../../engine/agents/agent.ts';

export const diagnosticSource = 'Telos';

const severities: Readonly<Record<Diagnostic['severity'], vscode.DiagnosticSeverity>> = {
  error: vscode.DiagnosticSeverity.Error,
  warning: vscode.DiagnosticSeverity.Warning,
  info: vscode.DiagnosticSeverity.Information,
};

/** The text need not be saved; `file` says which folder's name it must match. */
export async function diagnose(text: string, file: string): Promise<readonly Diagnostic[]> {
  const { lintText } = await import('../../engine/agents/lint.ts');
  return lintText(text, file);
}

/** Over the whole line: the engine knows lines, and a line of frontmatter is one thing. */
export function toEditorDiagnostic(defect: Diagnostic, lineLength: number): vscode.Diagnostic {
  const line = Math.max(0, defect.line - 1);
  const message = defect.fix ? `${defect.message} ${defect.fix}` : defect.message;
  const shown = new vscode.Diagnostic(
    new vscode.Range(line, 0, line, lineLength),
    message,
    severities[defect.severity],
  );
  shown.source = diagnosticSource;
  shown.code = defect.code;
  return shown;
}
