/** Answers the messages of the editor in place of a person. */
import * as vscode from 'vscode';

/** Answers every message, and the status bar's, with this button, where it has it, and keeps what was said. */
export async function pressing(buttons: readonly string[], act: () => Promise<unknown>): Promise<string[]> {
  const {
    showInformationMessage,
    showWarningMessage,
    showErrorMessage,
    createStatusBarItem,
    setStatusBarMessage,
  } = vscode.window;
  const pressed: unknown[] = [];
  const said: string[] = [];
  const show = async (message: string, ...items: unknown[]): Promise<unknown> => {
    said.push(message);
    return items.find(item => typeof item === 'string' && buttons.includes(item));
  };
  const showItem = ({ text, command }: vscode.StatusBarItem): void => {
    const title = text.replace(/^\$\(.*?\) /, '');
    if (typeof command !== 'object') said.push(text);
    else if (buttons.includes(title))
      pressed.push(vscode.commands.executeCommand(command.command, ...(command.arguments ?? [])));
  };
  Object.assign(vscode.window, {
    createStatusBarItem: () => ({
      text: '',
      show() {
        showItem(this as unknown as vscode.StatusBarItem);
      },
      dispose() {},
    }),
    setStatusBarMessage: (text: string) => {
      said.push(text);
      return { dispose() {} };
    },
    showInformationMessage: show,
    showWarningMessage: show,
    showErrorMessage: show,
  });
  try {
    await act();
    await Promise.all(pressed);
  } finally {
    Object.assign(vscode.window, {
      showInformationMessage,
      showWarningMessage,
      showErrorMessage,
      createStatusBarItem,
      setStatusBarMessage,
    });
  }
  return said;
}
