/** Says in the status bar that something was done, and what can be done next. A notification would lie over the chat's textbox. */
import * as vscode from 'vscode';

/** In milliseconds. What offers something to press stays for longer. */
const acknowledgedFor = 8_000;
const offeredFor = 20_000;

/** Something to do next, as a button beside the text. */
export interface NextStep {
  title: string;
  act: () => unknown;
}

const actCommand = 'telos.followUp';
let acts: readonly NextStep[] = [];
let shown: vscode.Disposable | undefined;
let isRegistered = false;

/** Says that something was done. The buttons go away by themselves, and at the next text that has some. */
export function acknowledge(text: string, ...next: readonly NextStep[]): void {
  if (next.length === 0) {
    vscode.window.setStatusBarMessage(text, acknowledgedFor);
    return;
  }
  if (!isRegistered)
    vscode.commands.registerCommand(actCommand, async (index: number) => {
      const step = acts[index];
      shown?.dispose();
      await step?.act();
    });
  isRegistered = true;
  shown?.dispose();
  acts = next;
  const texts = [text, ...next.map(({ title }) => `$(chevron-right) ${title}`)];
  const items = texts.map((label, place) => {
    // The lower the number, the further to the right.
    const item = vscode.window.createStatusBarItem(vscode.StatusBarAlignment.Left, -1_000 - place);
    item.name = 'Telos';
    item.text = label;
    item.tooltip = text;
    if (place > 0) item.command = { title: label, command: actCommand, arguments: [place - 1] };
    item.show();
    return item;
  });
  const timer = setTimeout(() => shown?.dispose(), offeredFor);
  const all = vscode.Disposable.from(...items);
  shown = {
    dispose() {
      clearTimeout(timer);
      all.dispose();
    },
  };
}

/** Says why something that the person has just asked for was not done, in the middle of the window. */
export const complain = (text: string): void => void vscode.window.showErrorMessage(text, { modal: true });
