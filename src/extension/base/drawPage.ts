/** Gives a webview the page of one of the built scripts, and opens pages of cards with buttons. */
import { randomUUID } from 'node:crypto';
import type { FromActionPage, PageAction, PageShown } from '@telos/protocol/actionPage';
import * as vscode from 'vscode';
import { complain } from './acknowledge.ts';
import { describeError, plainLabel } from './labels.ts';
import { webviewPage } from './webviewPage.ts';

/** Draws the page of a built script, such as `main`, in a webview. `place` is kept by the page, as in `WebviewPageParts`. */
export function drawPage(
  webview: vscode.Webview,
  extensionUri: vscode.Uri,
  script: string,
  place?: object,
): void {
  const built = vscode.Uri.joinPath(extensionUri, 'dist', 'webview');
  const asset = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(built, name)).toString();
  webview.options = { enableScripts: true, localResourceRoots: [built] };
  webview.html = webviewPage({
    cspSource: webview.cspSource,
    scriptUri: asset(`${script}.js`),
    styleUri: asset(`${script}.css`),
    language: vscode.l10n.bundle ? vscode.env.language : 'en',
    words: vscode.l10n.bundle,
    ...(place && { place }),
  });
}

type Act = () => unknown;

/** Makes a button of a page. `about` is for screen readers. */
export type Button = (label: string, about: string, act: Act, isPrimary?: boolean) => PageAction;

interface ActionPage {
  /** Names the kind of the page. */
  type: string;
  title: string;
  /** Shown while it is drawn. */
  waiting: string;
  /** Returns the page as things are now. Called again after each button. */
  draw: (button: Button) => Promise<PageShown>;
  /** Draw it again whenever it comes to the front. */
  isLive?: boolean;
}

interface OpenPage {
  panel: vscode.WebviewPanel;
  draw: (page: ActionPage) => Promise<void>;
}

/** By type and title. */
const open = new Map<string, OpenPage>();

/** Opens a page of cards, or brings the one of this type and title to the front and draws this page on it. */
export async function openActionPage(newest: ActionPage): Promise<void> {
  const key = `${newest.type} ${newest.title}`;
  const before = open.get(key);
  if (before) {
    before.panel.reveal();
    return before.draw(newest);
  }
  let page = newest;
  const panel = vscode.window.createWebviewPanel(page.type, page.title, vscode.ViewColumn.Active, {});
  let acts = new Map<string, Act>();
  let shown: PageShown | undefined;
  // A page that was closed meanwhile needs nothing, and one that is hidden asks when it comes to the front.
  const post = (next: PageShown): void =>
    void panel.webview.postMessage({ type: 'page', page: next }).then(undefined, () => undefined);
  const draw = async (): Promise<void> => {
    const drawn = new Map<string, Act>();
    const button: Button = (label, about, act, isPrimary = false) => {
      const id = randomUUID();
      drawn.set(id, act);
      return { id, label, about: `${label}: ${plainLabel(about, 120)}`, isPrimary };
    };
    if (!shown || !page.isLive)
      post({ ...(shown ?? { ...emptyPage, title: page.title }), summary: page.waiting, isBusy: true });
    await orComplain(async () => {
      shown = await page.draw(button);
      acts = drawn;
    });
    if (shown) post(shown);
  };
  panel.webview.onDidReceiveMessage(async (message: FromActionPage | undefined) => {
    if (message?.type === 'ready') return shown && !page.isLive ? post(shown) : draw();
    const act = message?.type === 'page_act' ? acts.get(message.id) : undefined;
    if (!act) return;
    await orComplain(act);
    if (open.get(key)?.panel === panel) await draw();
  });
  panel.onDidChangeViewState(({ webviewPanel }) => page.isLive && webviewPanel.visible && void draw());
  panel.onDidDispose(() => open.delete(key));
  open.set(key, {
    panel,
    draw: next => {
      page = next;
      return draw();
    },
  });
  drawPage(panel.webview, vscode.extensions.getExtension('telos.telos')!.extensionUri, 'actionPage');
}

async function orComplain(act: Act): Promise<void> {
  try {
    await act();
  } catch (error) {
    complain(plainLabel(describeError(error), 500));
  }
}

/** A page with nothing on it. */
export const emptyPage: PageShown = {
  title: '',
  summary: '',
  cardsTitle: '',
  cards: [],
  rows: [],
  sections: [],
  problems: [],
  actions: [],
};
