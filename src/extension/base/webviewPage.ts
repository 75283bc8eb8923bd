/** Builds the page around a view's script, and the policy that keeps it from loading anything else. */
import { randomBytes } from 'node:crypto';

export interface WebviewPageParts {
  /** The webview's own origin for local files, the value of `webview.cspSource`. */
  cspSource: string;
  scriptUri: string;
  styleUri: string;
  /** BCP 47 tag, such as `en` or `de`. */
  language?: string;
  /** The view's texts in that language, by their English texts. Undefined for English. */
  words?: Readonly<Record<string, string>> | undefined;
  /** What the page is about, as JSON can hold it. The page keeps it for a reload before it is told anything. */
  place?: object;
}

export function webviewPage({
  cspSource,
  scriptUri,
  styleUri,
  language = 'en',
  words = {},
  place,
}: WebviewPageParts): string {
  const nonce = randomBytes(24).toString('base64');
  const policy = [
    `default-src 'none'`,
    `script-src 'nonce-${nonce}'`,
    `style-src ${cspSource}`,
    `img-src ${cspSource} data:`,
    `font-src ${cspSource}`,
    // `default-src` does not cover these two.
    `form-action 'none'`,
    `base-uri 'none'`,
  ].join('; ');
  const about = place ? ` data-place="${attribute(JSON.stringify(place))}"` : '';
  return `<!DOCTYPE html>
<html lang="${attribute(language)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${styleUri}">
<title>Telos</title>
</head>
<body>
<div id="root" data-words="${attribute(JSON.stringify(words))}"${about}></div>
<script type="module" nonce="${nonce}" src="${scriptUri}"></script>
</body>
</html>
`;
}

const attribute = (text: string): string =>
  text.replace(/[&"<>]/g, character => `&#${character.charCodeAt(0)};`);
