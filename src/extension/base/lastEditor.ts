/**
 * Remembers the text editor that the person used last. While a chat in an editor has the focus, no text editor is
 * active.
 */
import * as vscode from 'vscode';

export class LastEditor implements vscode.Disposable {
  #editor: vscode.TextEditor | undefined = vscode.window.activeTextEditor;
  readonly #following: vscode.Disposable;

  constructor() {
    this.#following = vscode.window.onDidChangeActiveTextEditor(editor => {
      if (editor) this.#editor = editor;
    });
  }

  /** The editor used last. Undefined if it is closed or out of sight. */
  get editor(): vscode.TextEditor | undefined {
    const { activeTextEditor, visibleTextEditors } = vscode.window;
    if (activeTextEditor) return activeTextEditor;
    const last = this.#editor;
    return visibleTextEditors.find(
      one => one === last || (one.document === last?.document && one.viewColumn === last.viewColumn),
    );
  }

  dispose(): void {
    this.#following.dispose();
  }
}
