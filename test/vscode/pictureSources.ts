/** Says which sources the pictures of README and docs were made from, so that none is older than the views that it shows. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './paths.ts';

/** Few files, whose change one would see in a picture: a change of any other leaves the pictures as good as they are. */
const sources = [
  'webview/composer.tsx',
  'webview/endCard.tsx',
  'webview/icons.tsx',
  'webview/layout.css',
  'webview/parts.css',
  'webview/planPage.css',
  'webview/planPage.tsx',
  'webview/runView.tsx',
];

/** Where `npm run pictures` writes it. */
export const pictureSourcesFile = join(root, 'media/pictures/made-from.txt');

/** Returns a line for each source: the digest of its text as it is now, without its imports, and its path. */
export const pictureSources = (): string =>
  sources
    .map(path => {
      const text = readFileSync(join(root, path), 'utf8')
        .replaceAll('\r\n', '\n')
        .replaceAll(/^import\b[^;]*;\n/gm, '');
      return `${createHash('sha256').update(text).digest('hex')}  ${path}\n`;
    })
    .join('');
