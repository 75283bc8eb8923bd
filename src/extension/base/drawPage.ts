/** Gives a webview the page of one of the built scripts. */
import * as vscode from 'vscode';
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
