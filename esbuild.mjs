/** Builds what is shipped: the extension, the command line, the library and the chat view's page. `--watch` builds again on every change. */
import { chmod, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { build, context } from 'esbuild';
import { splitForCache } from './compiledBuild.mjs';
import { entriesApart } from './entriesBuild.mjs';
import { frameInputs, webviewBuild } from './webviewBuild.mjs';

const watch = process.argv.includes('--watch');

/** Modules that not every start needs. What is imported from them are functions and classes. */
const loadedAtCall = ['node:child_process', 'node:crypto', 'node:net', 'node:readline', 'node:vm'];

/** What a run on the command line loads: its start, then what it needs before its first request, with it, and after its answer. */
const joinedOfCli = [
  'src/cli/commandLine.ts',
  'src/engine/box/findBox.ts',
  'src/engine/providers/anthropic.ts',
  'src/engine/run/callPolicy.ts',
];

/** @type {import('esbuild').BuildOptions} */
const everywhere = {
  bundle: true,
  outdir: 'dist',
  minify: !watch,
  sourcemap: watch,
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
  plugins: [entriesApart(import.meta.dirname), { name: 'finish', setup: build => build.onEnd(finish) }],
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
    entryPoints: { extension: 'src/extension/extension.ts' },
    chunkNames: 'chunks/extension/[name]-[hash]',
    target: 'node22',
    external: ['vscode', '@dbos-inc/dbos-sdk'],
  },
  {
    ...onNode,
    // Nothing else is external here: an import of `vscode` that the command line can reach breaks the build.
    external: ['@dbos-inc/dbos-sdk'],
    entryPoints: {
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
  if (!watch && outputs['dist/cli.js']) for (const one of joinedOfCli) await joinStart(one, outputs);
  if (!watch && outputs['dist/extension.js']) await joinStart('src/extension/extension.ts', outputs);
  for (const file of Object.keys(outputs)) if (file.endsWith('.js')) await makeRunnable(file, outputs[file]);
  for (const [file, output] of Object.entries(outputs)) {
    if (output.entryPoint && !file.includes('/chunks/')) console.log(sizeLine(file, outputs));
    if (output.cssBundle)
      console.log(`${output.cssBundle.padEnd(24)}${kilobytes([output.cssBundle], outputs)}`);
  }
}

/**
 * Joins the file of a module and all that it imports at its start into one file: Node takes longer to find and link two dozen
 * small files than to run them. Files that load later then import from the joined one. `outputs` is changed to match.
 */
async function joinStart(source, outputs) {
  const entry = Object.keys(outputs).find(file => outputs[file].entryPoint === source);
  const parts = [...importedAtStart(entry, outputs)].filter(file => !outputs[file].isJoined);
  const names = new Map(parts.map((file, index) => [basename(file), index]));
  const joined = await build({
    ...onNode,
    plugins: [keepOut(names, dirname(entry), outputs)],
    splitting: false,
    write: false,
    outdir: undefined,
    outfile: entry,
    external: ['vscode', '@dbos-inc/dbos-sdk'],
    target: 'node20',
    stdin: {
      contents: [
        `export * from './${entry}';`,
        ...parts.map((file, index) => exportsOf(file, index, outputs)),
      ].join('\n'),
      resolveDir: '.',
    },
  });
  for (const file of parts) {
    await rm(file);
    if (file !== entry) delete outputs[file];
  }
  await writeFile(entry, joined.outputFiles[0].contents);
  outputs[entry] = { ...Object.values(joined.metafile.outputs)[0], entryPoint: source, isJoined: true };
  for (const [file, output] of Object.entries(outputs)) {
    if (!/^dist\/chunks\/.*\.js$/.test(file) || file === entry) continue;
    const joinedAs = pathTo(entry, dirname(file));
    await writeFile(file, importFromJoined(await readFile(file, 'utf8'), names, joinedAs));
    for (const one of output.imports) if (names.has(basename(one.path))) one.path = entry;
  }
}

/** Exports all names of a part, with its number in front: parts have the same short names. */
function exportsOf(file, index, outputs) {
  const list = outputs[file].exports.map(name => `${name} as ${name}$${index}`);
  return list.length > 0 ? `export {${list}} from './${file}';` : `import './${file}';`;
}

/**
 * Leaves out of the joined file, which lies in `folder`, what is imported later, and what an earlier joined file holds.
 * @returns {import('esbuild').Plugin}
 */
function keepOut(names, folder, outputs) {
  const joined = new Set(
    Object.keys(outputs)
      .filter(file => outputs[file].isJoined)
      .map(file => basename(file)),
  );
  return {
    name: 'keep out',
    setup: ({ onResolve }) =>
      onResolve({ filter: /^\.\// }, ({ path, kind, resolveDir }) =>
        joined.has(basename(path)) || (kind === 'dynamic-import' && !names.has(basename(path)))
          ? { path: pathTo(join(resolveDir, path), resolve(folder)), external: true }
          : undefined,
      ),
  };
}

/** Returns how a file in `folder` imports another. */
function pathTo(file, folder) {
  const path = relative(folder, file).split(sep).join('/');
  return path.startsWith('.') ? path : `./${path}`;
}

/** Replaces the imports of joined parts; a reference that is left would load code twice, so it fails the build. */
function importFromJoined(text, names, joined) {
  const replaced = text.replace(/import(?:\{([^}]*)\}from)?"\.\/([^"]+)"/g, (all, list, file) => {
    if (!names.has(file)) return all;
    const from = `"${joined}"`;
    if (!list) return `import${from}`;
    const renamed = list.split(',').map(one => one.replace(/^[\w$]+/, name => `${name}$${names.get(file)}`));
    return `import{${renamed.map(one => (one.includes(' as ') ? one : `${one} as ${one.replace(/\$\d+$/, '')}`))}}from${from}`;
  });
  for (const part of names.keys())
    if (part !== basename(joined) && replaced.includes(part))
      throw new Error(`An import of ${part} is left.`);
  return replaced;
}

/**
 * Adds what a file needs before Node can run it: `require` for CommonJS inside an ES module or in place of imports, and the first
 * line of a program. A joined file of the command line becomes a script that is kept compiled.
 */
async function makeRunnable(file, { isJoined = false }) {
  const text = await readFile(file, 'utf8');
  const program = ['dist/cli.js', 'dist/agent.js', 'dist/runner.js'].includes(file);
  const ofCli = file.includes('/chunks/cli/');
  const code = ofCli ? requireBuiltins(text) : text.replace(/^#!.*\n/, '');
  if (ofCli && isJoined) {
    const parts = splitForCache(file, code);
    await writeFile(parts.codeFile, parts.code);
    await writeFile(file, parts.shim);
    return;
  }
  const needsRequire = (ofCli && code !== text) || code.includes('Dynamic require of');
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
  const atStart = importedAtStart(entry, outputs);
  const later = Object.keys(outputs).filter(file => /\.js$/.test(file) && !atStart.has(file));
  const rest =
    later.length > 0 ? `, and ${kilobytes(later, outputs)} in ${later.length} files on first use` : '';
  return `${entry.padEnd(24)}${kilobytes([...atStart], outputs)}${rest}`;
}

/** A file and all that it imports, but for what it imports when it is needed. */
function importedAtStart(entry, outputs) {
  const atStart = new Set([entry]);
  for (const file of atStart) {
    for (const { path, kind } of outputs[file].imports) {
      if (kind === 'import-statement' && outputs[path]) atStart.add(path);
    }
  }
  return atStart;
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
