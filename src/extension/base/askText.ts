/** Asks for words in an input box that stays open while the person looks something up elsewhere. */
import * as vscode from 'vscode';

/** Returns what was entered, or undefined when the person cancels. Nothing that was typed goes with the focus; Escape closes the box. */
export const askText = (
  options: vscode.InputBoxOptions,
  token?: vscode.CancellationToken,
): Thenable<string | undefined> => vscode.window.showInputBox({ ...options, ignoreFocusOut: true }, token);
