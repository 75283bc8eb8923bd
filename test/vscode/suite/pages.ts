/** Reads the pages of cards that the extension opens, and presses their buttons in place of a person. */

import * as vscode from 'vscode';
import type { PageShown, ToActionPage } from '../../../src/protocol/actionPage.ts';

type Receive = (message: unknown) => unknown;

interface OpenedPage {
  shown?: PageShown;
  receive?: Receive;
}

export interface WatchedPages {
  /** Returns all that the page of this title shows, a line for each row. Empty until it is drawn. */
  text(title: string): string;
  /** Returns the labels of the buttons of the page. */
  buttons(title: string): string[];
  /** Presses a button of the page. Resolves when it has done its work. */
  press(title: string, label: string): Promise<void>;
  /** Stops watching. */
  end(): void;
}

/** Watches the pages that are opened from now on. */
export function watchPages(): WatchedPages {
  const { createWebviewPanel } = vscode.window;
  const pages = new Map<string, OpenedPage>();
  const open = (...given: Parameters<typeof createWebviewPanel>): vscode.WebviewPanel => {
    const panel = createWebviewPanel(...given);
    pages.set(panel.title, watched(panel.webview));
    return panel;
  };
  Object.assign(vscode.window, { createWebviewPanel: open });
  return {
    text: title => textOf(pages.get(title)?.shown),
    buttons: title => actionsOf(pages.get(title)?.shown).map(({ label }) => label),
    async press(title, label) {
      const page = pages.get(title);
      const action = actionsOf(page?.shown).find(each => each.label === label);
      if (!action) throw new Error(`no ${label} on ${title}`);
      await page?.receive?.({ type: 'page_act', id: action.id });
    },
    end: () => Object.assign(vscode.window, { createWebviewPanel }),
  };
}

function watched(webview: vscode.Webview): OpenedPage {
  const page: OpenedPage = {};
  const post = webview.postMessage.bind(webview);
  const listen = webview.onDidReceiveMessage;
  Object.assign(webview, {
    postMessage(message: ToActionPage) {
      if (message.type === 'page' && !message.page.isBusy) page.shown = message.page;
      return post(message);
    },
    onDidReceiveMessage(receive: Receive, ...rest: [unknown?, vscode.Disposable[]?]) {
      page.receive = receive;
      return listen(receive, ...rest);
    },
  });
  return page;
}

const textOf = (shown: PageShown | undefined): string =>
  shown
    ? [shown.title, shown.summary, ...shown.sections.flatMap(({ title, rows }) => [title, ...rows.flat()])]
        .filter(Boolean)
        .join('\n')
    : '';

const actionsOf = (shown: PageShown | undefined): PageShown['actions'] =>
  shown ? [...shown.cards.flatMap(({ actions }) => actions), ...shown.actions] : [];
