/** How the chat view's page is built: its start, the parts that load on first use, and the program of the frame that draws diagrams. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('.', import.meta.url));

/** The files inside the frame's program, which the page's own list of inputs does not name. */
export const frameInputs = new Set();

/** Left out of the frame: for layouts and formulas that no diagram gets. They are larger than all diagrams together. */
const libraries = ['elkjs', 'katex', 'cytoscape'];

/** Kinds of diagrams that are rare in answers, and layouts. Their source is shown instead, as that of any unknown kind. */
const rareDiagrams = [
  '\\./.*/(?:architecture|cynefin|ishikawa|railroad|abnf|ebnf|peg|swimlanes|usecase|venn|wardley)Diagram',
  // Of agents' flows, and of event modelling.
  '\\./.*/diagram-(?:3B7GL73J|MHCOC4E2)',
  '\\./(?:cose-bilkent|elk|swimlanes)',
];
const notInFrame = new RegExp(`^(?:${[...libraries, ...rareDiagrams].join('|')})(?:[-/]|$)`);

/** Builds what is imported as `FILE?text` into one script, and hands it over as a text. @returns {import('esbuild').Plugin} */
const scriptAsText = {
  name: 'script as text',
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /\.ts\?text$/ }, ({ path, resolveDir }) => ({
      path: `${resolveDir}/${path.replace(/\?text$/, '')}`,
      namespace: 'text',
    }));
    onLoad({ filter: /./, namespace: 'text' }, async ({ path }) => {
      const { outputFiles, metafile } = await build({
        entryPoints: [path],
        bundle: true,
        minify: true,
        write: false,
        metafile: true,
        format: 'iife',
        platform: 'browser',
        target: 'es2022',
        legalComments: 'none',
        absWorkingDir: root,
        logLevel: 'silent',
        plugins: [leftOut],
      });
      for (const input of Object.keys(metafile.inputs)) frameInputs.add(input);
      return { contents: outputFiles[0].text, loader: 'text', watchFiles: [path] };
    });
  },
};

/** @type {import('esbuild').Plugin} */
const leftOut = {
  name: 'left out',
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: notInFrame }, ({ path }) => ({ path, namespace: 'left out' }));
    onLoad({ filter: /./, namespace: 'left out' }, () => ({ contents: 'export default class {}' }));
  },
};

/** Every browser that runs the editor reads the smallest of the three formats of a font. @type {import('esbuild').Plugin} */
const oneFontFormat = {
  name: 'one font format',
  setup: ({ onLoad }) =>
    onLoad({ filter: /katex\.css$/ }, async ({ path }) => {
      const contents = await readFile(path, 'utf8');
      return {
        contents: contents.replace(/,\s*url\([^)]*\.(?:woff|ttf)\) format\("\w+"\)/g, ''),
        loader: 'css',
      };
    }),
};

/** Options for the chat's page `main`, those about a plan, of cards and of an install, and the style sheet `formulas` that loads with the first formula. @type {import('esbuild').BuildOptions} */
export const webviewBuild = {
  absWorkingDir: root,
  bundle: true,
  platform: 'browser',
  format: 'esm',
  splitting: true,
  target: 'es2022',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  loader: { '.woff2': 'file' },
  entryPoints: {
    main: 'webview/main.tsx',
    planPage: 'webview/planPage.tsx',
    actionPage: 'webview/actionPage.tsx',
    installPage: 'webview/installPage.tsx',
    formulas: 'webview/formulas.css',
  },
  chunkNames: 'chunks/[name]-[hash]',
  assetNames: 'chunks/[name]-[hash]',
  plugins: [scriptAsText, oneFontFormat],
};
