/** Answers the messages of the editor in place of a person. */
import * as vscode from 'vscode';
import type { ToInstallPage } from '../../../src/protocol/installPage.ts';

/** Answers every message, and the status bar's, with this button, where it has it, and keeps what was said. */
export async function pressing(buttons: readonly string[], act: () => Promise<unknown>): Promise<string[]> {
  const {
    showInformationMessage,
    showWarningMessage,
    showErrorMessage,
    createStatusBarItem,
    setStatusBarMessage,
    createWebviewPanel,
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
  const openPage = (...[type, title, ...rest]: Parameters<typeof createWebviewPanel>) => {
    if (type !== 'telos.install') return createWebviewPanel(type, title, ...rest);
    said.push(title);
    return pageWith(buttons);
  };
  Object.assign(vscode.window, {
    createWebviewPanel: openPage,
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
      createWebviewPanel,
    });
  }
  return said;
}

/** A page of an install that presses the first of its buttons with such a label, and is closed where there is none. */
function pageWith(buttons: readonly string[]) {
  const closed = new vscode.EventEmitter<void>();
  let receive: (message: unknown) => Promise<unknown> = async () => undefined;
  return {
    onDidDispose: closed.event,
    dispose: () => closed.fire(),
    webview: {
      cspSource: '',
      options: {},
      set html(_page: string) {
        void receive({ type: 'ready' });
      },
      asWebviewUri: (uri: vscode.Uri) => uri,
      onDidReceiveMessage: (listener: typeof receive) => {
        receive = listener;
      },
      postMessage: async ({ shown }: ToInstallPage) => {
        const pressed = shown.actions.find(({ label }) => buttons.includes(label));
        const skills = shown.skills.map(({ id }) => id);
        if (pressed) await receive({ type: 'install_act', act: pressed.act, skills });
        if (!pressed || pressed.act === 'files') closed.fire();
      },
    },
  };
}
