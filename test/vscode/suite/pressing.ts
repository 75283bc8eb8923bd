/** Answers the messages of the editor in place of a person. */
import * as vscode from 'vscode';

/** Answers every message with this button, where it has it, and keeps what was said. */
export async function pressing(buttons: readonly string[], act: () => Promise<unknown>): Promise<string[]> {
  const { showInformationMessage, showWarningMessage, showErrorMessage } = vscode.window;
  const said: string[] = [];
  const show = async (message: string, ...items: unknown[]): Promise<unknown> => {
    said.push(message);
    return items.find(item => typeof item === 'string' && buttons.includes(item));
  };
  Object.assign(vscode.window, {
    showInformationMessage: show,
    showWarningMessage: show,
    showErrorMessage: show,
  });
  try {
    await act();
  } finally {
    Object.assign(vscode.window, { showInformationMessage, showWarningMessage, showErrorMessage });
  }
  return said;
}
