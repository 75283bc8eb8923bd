/**
 * Asks for words in an input box that stays open while the person looks something up elsewhere, and with a list that opens by itself, which
 * no key answers that was meant for another place.
 */
import * as vscode from 'vscode';

/** Returns what was entered, or undefined when the person cancels. Nothing that was typed goes with the focus; Escape closes the box. */
export const askText = (
  options: vscode.InputBoxOptions,
  token?: vscode.CancellationToken,
): Thenable<string | undefined> => vscode.window.showInputBox({ ...options, ignoreFocusOut: true }, token);

/** Time after a letter in which Enter belongs to what is being typed. In milliseconds. */
const stillTyping = 1_000;

/**
 * Returns the item that the person chose, or undefined on Escape and when the token cancels. No item is chosen beforehand and letters
 * filter nothing, so that Enter answers only behind an arrow key. A click answers at once.
 */
export async function askPick<Item extends vscode.QuickPickItem>(
  items: readonly Item[],
  { title, placeHolder }: Pick<vscode.QuickPickOptions, 'title' | 'placeHolder'>,
  token: vscode.CancellationToken,
): Promise<Item | undefined> {
  if (token.isCancellationRequested) return undefined;
  const list = vscode.window.createQuickPick<Item>();
  Object.assign(list, { title, placeholder: placeHolder, ignoreFocusOut: true });
  let typedAt = Number.NEGATIVE_INFINITY;
  const chooseNone = (): void => {
    list.value = '';
    list.activeItems = [];
  };
  try {
    return await new Promise(resolve => {
      list.onDidChangeValue(value => {
        if (value === '') return;
        typedAt = performance.now();
        chooseNone();
      });
      list.onDidAccept(() => {
        const [item] = list.selectedItems;
        if (!item) return;
        if (performance.now() - typedAt > stillTyping) resolve(item);
        else chooseNone();
      });
      list.onDidHide(() => resolve(undefined));
      token.onCancellationRequested(() => resolve(undefined));
      list.items = [...items];
      list.activeItems = [];
      list.show();
    });
  } finally {
    list.dispose();
  }
}
