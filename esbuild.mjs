/** Builds what is shipped: the extension, the command line, the library and the chat view's page. `--watch` builds again on every change. */
import { chmod, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { build, context } from 'esbuild';
import { splitForCache } from './compiledBuild.mjs';
import { entriesApart } from './entriesBuild.mjs';
import { editorStart, imported, joinStarts } from './joinBuild.mjs';
import { frameInputs, webviewBuild } from './webviewBuild.mjs';

const watch = process.argv.includes('--watch');

/** Modules that not every start needs. What is imported from them are functions and classes. */
const loadedAtCall = ['node:child_process', 'node:crypto', 'node:net', 'node:readline', 'node:vm'];

/**
 * Has MCP servers and clients check schemas by the smaller of the two validators that their SDKs bring: the larger one compiles each
 * schema to code.
 * @type {import('esbuild').Plugin}
 */
const smallValidator = {
  name: 'small validator',
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /^@modelcontextprotocol\/(?:client|server)\/_shims$/ }, ({ path, resolveDir }) => ({
      path,
      namespace: 'small',
      pluginData: resolveDir,
    }));
    onLoad({ filter: /./, namespace: 'small' }, ({ path, pluginData }) => ({
      contents: `
        export { CfWorkerJsonSchemaValidator as DefaultJsonSchemaValidator } from '${path.replace('_shims', 'validators/cf-worker')}';
        export { default as process } from 'node:process';
        export const CORS_IS_POSSIBLE = false;`,
      resolveDir: pluginData,
    }));
  },
};

/**
 * Takes out what the SDKs of MCP write to the console: they repeat the words of servers, which can hold escape sequences.
 * @type {import('esbuild').Plugin}
 */
const quietClient = {
  name: 'quiet client',
  setup: ({ onLoad }) =>
    onLoad(
      { filter: /@modelcontextprotocol[\\/](?:client|server)[\\/]dist[\\/].*\.mjs$/ },
      async ({ path }) => ({
        contents: (await readFile(path, 'utf8')).replace(/\bconsole\.(?:log|warn|error|debug)\(/g, 'void ('),
        loader: 'js',
      }),
    ),
};

/** @type {import('esbuild').BuildOptions} */
const everywhere = {
  bundle: true,
  outdir: 'dist',
  minify: !watch,
  sourcemap: watch,
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
  plugins: [
    entriesApart(import.meta.dirname),
    smallValidator,
    quietClient,
    { name: 'finish', setup: build => build.onEnd(finish) },
  ],
};

/** Splitting keeps each SDK in a file of its own, which loads on first use. @type {import('esbuild').BuildOptions} */
const onNode = {
  ...everywhere,
  platform: 'node',
  format: 'esm',
  splitting: true,
  mainFields: ['module', 'main'],
  // Its build for Node is CommonJS, of which nothing can be left out.
  alias: { yaml: './node_modules/yaml/browser/index.js' },
};

/** How parts of the starts are joined. @type {import('esbuild').BuildOptions} */
const joined = { ...onNode, external: ['vscode', '@dbos-inc/dbos-sdk'], alias: {} };

/**
 * Builds the parser of YAML into a file that loads at its first use: a seventh of what a start would read, for the few skills whose
 * frontmatter has more than plain lines. @returns {import('esbuild').Plugin}
 */
function yamlLater(file) {
  const contents = `
    import { createRequire } from 'node:module';
    const load = () => createRequire(import.meta.url)('./${basename(file)}');
    const later = name => new Proxy(class {}, {
      apply: (_, self, given) => load()[name](...given),
      construct: (_, given) => new (load()[name])(...given),
      get: (_, property) => load()[name][property],
    });
    export const [LineCounter, parseDocument, visit] = ['LineCounter', 'parseDocument', 'visit'].map(later);`;
  return {
    name: 'yaml later',
    setup: ({ onResolve, onLoad, onStart }) => {
      onResolve({ filter: /^yaml$/ }, ({ path }) => ({ path, namespace: 'later' }));
      onLoad({ filter: /^/, namespace: 'later' }, () => ({ contents, resolveDir: '.' }));
      onStart(() =>
        build({
          ...onNode,
          format: 'cjs',
          splitting: false,
          metafile: false,
          plugins: [],
          ...{
            entryPoints: [onNode.alias.yaml],
            outdir: undefined,
            outfile: `dist/${file}`,
            target: 'node20',
          },
        }).then(() => undefined),
      );
    },
  };
}

/**
 * Leaves discord.js to a file of its own, outside of what the extension ships. It is CommonJS, so that its names are read here.
 * @returns {import('esbuild').Plugin}
 */
function discordApart() {
  const names = Object.keys(createRequire(import.meta.url)('discord.js'));
  const contents = `
    import { createRequire } from 'node:module';
    const take = name => createRequire(import.meta.url)('../bot/discord.cjs')[name];
    ${names.map(name => `export const ${name} = /* @__PURE__ */ take('${name}');`).join('\n')}`;
  return {
    name: 'discord apart',
    setup: ({ onResolve, onLoad }) => {
      onResolve({ filter: /^discord\.js$/ }, ({ path }) => ({ path, namespace: 'apart' }));
      onLoad({ filter: /^/, namespace: 'apart' }, () => ({ contents, resolveDir: '.' }));
    },
  };
}

/** @type {import('esbuild').BuildOptions[]} */
const builds = [
  {
    ...onNode,
    // In one build, so that the extension and the command line share what both need.
    external: ['vscode', '@dbos-inc/dbos-sdk'],
    entryPoints: {
      extension: editorStart,
      cli: 'src/cli/main.ts',
      agent: 'src/cli/agentMain.ts',
      runner: 'src/cli/planRunnerMain.ts',
    },
    chunkNames: 'chunks/cli/[name]-[hash]',
    target: 'node20',
    plugins: [yamlLater('chunks/cli/yaml.cjs'), discordApart(), ...everywhere.plugins],
    alias: {},
  },
  {
    ...onNode,
    // Alone, so that what it loads can import it by this name.
    entryPoints: { 'chunks/cli/compiledCode': 'src/cli/compiledCode.ts' },
    splitting: false,
    target: 'node20',
  },
  {
    ...onNode,
    // For `telos bot` alone, which the npm package has.
    format: 'cjs',
    splitting: false,
    outExtension: { '.js': '.cjs' },
    target: 'node20',
    entryPoints: { 'chunks/bot/discord': './node_modules/discord.js/src/index.js' },
    external: ['zlib-sync', 'bufferutil', 'utf-8-validate', 'erlpack'],
    alias: {},
  },
  {
    ...onNode,
    // Alone, so that who imports Telos loads no door.
    entryPoints: { telos: 'src/library/library.ts' },
    chunkNames: 'chunks/library/[name]-[hash]',
    target: 'node20',
  },
  {
    ...everywhere,
    ...webviewBuild,
    outdir: 'dist/webview',
    plugins: [...webviewBuild.plugins, ...everywhere.plugins],
  },
];

await rm('dist', { recursive: true, force: true });
const contexts = await Promise.all(builds.map(options => context(options)));
if (watch) {
  await Promise.all(contexts.map(one => one.watch()));
  console.log('Building again on every change. Ctrl-C ends it.');
} else {
  const results = await Promise.allSettled(contexts.map(one => one.rebuild()));
  await Promise.all(contexts.map(one => one.dispose()));
  // esbuild has printed the reasons.
  if (results.some(result => result.status === 'rejected')) process.exitCode = 1;
  else
    await writeNotices([
      ...results.flatMap(result => Object.keys(result.value.metafile.inputs)),
      ...frameInputs,
    ]);
}

/** @param {import('esbuild').BuildResult} result */
async function finish(result) {
  const outputs = result.metafile?.outputs ?? {};
  if (!watch && outputs['dist/cli.js']) await joinStarts(outputs, joined);
  for (const file of Object.keys(outputs)) if (file.endsWith('.js')) await makeRunnable(file, outputs[file]);
  for (const [file, output] of Object.entries(outputs)) {
    if (output.entryPoint && !file.includes('/chunks/')) console.log(sizeLine(file, outputs));
    if (output.cssBundle)
      console.log(`${output.cssBundle.padEnd(24)}${kilobytes([output.cssBundle], outputs)}`);
  }
}

/**
 * Adds what a file needs before Node can run it: `require` for CommonJS inside an ES module or in place of imports, and the first
 * line of a program. A joined file of the command line becomes a script that is kept compiled.
 */
async function makeRunnable(file, { isJoined = false }) {
  const text = await readFile(file, 'utf8');
  const program = ['dist/cli.js', 'dist/agent.js', 'dist/runner.js'].includes(file);
  const ofCli = file.includes('/chunks/cli/');
  const isEditor = file === 'dist/extension.js';
  const code = ofCli || isEditor ? requireBuiltins(text) : text.replace(/^#!.*\n/, '');
  if (ofCli && isJoined && basename(file) !== 'start.js') {
    const parts = splitForCache(file, code);
    await writeFile(parts.codeFile, parts.code);
    await writeFile(file, parts.shim);
    return;
  }
  const needsRequire = ((ofCli || isEditor) && code !== text) || code.includes('Dynamic require of');
  if (!program && !needsRequire) return;
  const require =
    "import{createRequire as makeRequire}from'node:module';const require=makeRequire(import.meta.url);";
  await writeFile(file, `${program ? '#!/usr/bin/env node\n' : ''}${needsRequire ? require : ''}${code}`);
  if (program) await chmod(file, 0o755);
}

/**
 * Gets Node's own modules by `require`. To import one, Node reads each of its exports, which loads more of Node: that was a tenth of
 * a start. An import that is left fails the build.
 */
function requireBuiltins(text) {
  /** What is taken of each module, as a pattern of names. */
  const taken = new Map();
  const lines = [];
  const code = text.replace(
    /import ?(?:([\w$]+),?|\*as ([\w$]+))? ?(?:\{([^}]*)\})?from"(node:[\w/]+)";?/g,
    (...found) => {
      const [, whole, star, list = '', name] = found;
      const module = `require("${name}")`;
      for (const one of list.split(',').filter(Boolean)) {
        const [theirs, ours = theirs] = one.split(' as ');
        if (loadedAtCall.includes(name))
          lines.push(
            /^[A-Z]/.test(theirs)
              ? `function ${ours}(...given){return Reflect.construct(${module}.${theirs},given)}`
              : `function ${ours}(...given){return ${module}.${theirs}(...given)}`,
          );
        else if (theirs === 'default') lines.push(`const ${ours}=${module};`);
        else taken.set(name, [...(taken.get(name) ?? []), `${theirs}:${ours}`]);
      }
      for (const ours of [whole, star].filter(Boolean))
        lines.push(
          loadedAtCall.includes(name)
            ? `const ${ours}=new Proxy({},{get:(_,name)=>${module}[name]});`
            : `const ${ours}=${module};`,
        );
      return '';
    },
  );
  if (/(?:from|import)"node:/.test(code)) throw new Error('An import of a module of Node is left.');
  for (const [name, names] of taken) lines.push(`const{${names}}=require("${name}");`);
  return lines.join('') + code;
}

/** What loads at the start, the file itself and all it imports, and what loads later. */
function sizeLine(entry, outputs) {
  const atStart = imported([entry], outputs);
  const later = Object.keys(outputs).filter(file => /\.js$/.test(file) && !atStart.has(file));
  const rest =
    later.length > 0 ? `, and ${kilobytes(later, outputs)} in ${later.length} files on first use` : '';
  return `${entry.padEnd(24)}${kilobytes([...atStart], outputs)}${rest}`;
}

function kilobytes(files, outputs) {
  return `${(files.reduce((sum, file) => sum + outputs[file].bytes, 0) / 1000).toFixed(0)} KB`;
}

/** The licenses of the libraries that are inside: each asks to be passed on with its text. */
async function writeNotices(inputs) {
  const folders = new Set(
    inputs.map(input => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0]).filter(Boolean),
  );
  const notices = await Promise.all([...folders].sort().map(notice));
  await writeFile('dist/NOTICES.txt', `Telos holds parts of these libraries.\n\n${notices.join('\n')}`);
}

async function notice(folder) {
  const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const file = (await readdir(folder)).find(entry => /^licen[cs]e/i.test(entry));
  const text = file ? await readFile(join(folder, file), 'utf8') : 'Its package holds no license text.';
  return `${'='.repeat(80)}\n${name} ${version} (${license})\n\n${text.trim()}\n`;
}
