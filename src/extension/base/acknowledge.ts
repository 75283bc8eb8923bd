/** Says that something was done. */
import * as vscode from 'vscode';

/** In milliseconds. */
const acknowledgedFor = 8_000;

/** Says that something was done. A notification would lie over the chat's textbox, and ask to be closed. */
export const acknowledge = (text: string): void =>
  void vscode.window.setStatusBarMessage(text, acknowledgedFor);
