/** Joins what loads together at a start, and parts what the command line can load from what only VS Code does. */
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { build } from 'esbuild';

/** What VS Code loads at its start. */
export const editorStart = 'src/extension/extension.ts';

/** What a run on the command line loads: its start, then what it needs before its first request, with it, and after its answer. */
const cliStarts = [
  'src/cli/commandLine.ts',
  'src/engine/box/findBox.ts',
  'src/engine/providers/anthropic.ts',
  'src/engine/run/callPolicy.ts',
];

const programs = ['dist/cli.js', 'dist/agent.js', 'dist/runner.js'];
const chunks = 'dist/chunks/cli';

/**
 * Joins the files of each start into one: Node takes longer to find and link two dozen small files than to run them. Files that load
 * later then import from the joined one. `outputs` of esbuild is changed to match. Both starts need `start.js`; `engine.js` is the part of
 * the command line's start that VS Code loads later, so that it loads nothing else of it.
 * @param {import('esbuild').BuildOptions} options how parts are built
 */
export async function joinStarts(outputs, options) {
  const entryOf = source => Object.keys(outputs).find(file => outputs[file].entryPoint === source);
  const editor = entryOf(editorStart);
  const atStart = source => [...imported([entryOf(source)], outputs)];
  const ofCli = imported(programs, outputs, true);
  const ofEditor = imported([editor], outputs, true);
  await removeUnused(outputs, new Set([...ofCli, ...ofEditor]));
  for (const file of ofCli)
    if (outputs[file].imports.some(one => one.path === 'vscode'))
      throw new Error(`The command line would load vscode by ${Object.keys(outputs[file].inputs)}.`);
  const inBoth = new Set(cliStarts.flatMap(atStart));
  const joins = [
    [`${chunks}/start.js`, atStart(editorStart).filter(file => inBoth.has(file))],
    [`${chunks}/engine.js`, atStart(cliStarts[0]).filter(file => ofEditor.has(file))],
    ...cliStarts.map(source => [entryOf(source), atStart(source)]),
    [editor, atStart(editorStart).filter(file => !ofCli.has(file))],
  ];
  for (const [file, parts] of joins) {
    const left = parts.filter(part => outputs[part] && !outputs[part].isJoined);
    await joinParts(file, left, outputs, options);
  }
  await moveToEditor(
    [...ofEditor].filter(file => file !== editor && !ofCli.has(file)),
    editor,
    outputs,
  );
}

/** The files and all that they import, but for what they import when it is needed; with `later` that too. */
export function imported(files, outputs, later = false) {
  const all = new Set(files);
  for (const file of all)
    for (const { path, kind } of outputs[file].imports)
      if (outputs[path] && (later || kind === 'import-statement')) all.add(path);
  return all;
}

/** A part whose only import is in code that is left out is written all the same. */
async function removeUnused(outputs, used) {
  for (const file of Object.keys(outputs).filter(one => !used.has(one))) {
    await rm(file);
    delete outputs[file];
  }
}

async function joinParts(target, parts, outputs, options) {
  const names = new Map(
    parts.map((file, index) => [basename(file), { index, names: outputs[file].exports }]),
  );
  const joined = await build({
    ...options,
    plugins: [keepOut(names, dirname(target), outputs)],
    splitting: false,
    write: false,
    outdir: undefined,
    outfile: target,
    target: 'node20',
    stdin: {
      contents: [
        ...(parts.includes(target) ? [`export * from './${target}';`] : []),
        ...parts.map((file, index) => exportsOf(file, index, outputs)),
      ].join('\n'),
      resolveDir: '.',
    },
  });
  const entryPoint = outputs[target]?.entryPoint;
  for (const file of parts) {
    await rm(file);
    delete outputs[file];
  }
  await writeFile(target, joined.outputFiles[0].contents);
  for (const [file, output] of Object.entries(outputs)) {
    const joinedAs = pathTo(target, dirname(file));
    const text = await readFile(file, 'utf8');
    const changed = importFromJoined(text, names, joinedAs);
    if (changed !== text) await writeFile(file, changed);
    for (const one of output.imports) if (names.has(basename(one.path))) one.path = target;
  }
  outputs[target] = { ...Object.values(joined.metafile.outputs)[0], entryPoint, isJoined: true };
  for (const one of outputs[target].imports)
    one.path = one.external ? resolvedFrom(target, one.path) : one.path;
}

/** Returns the file that an import in `from` names, or the name of a module. */
const resolvedFrom = (from, path) =>
  path.startsWith('.') ? join(dirname(from), path).split(sep).join('/') : path;

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
      onResolve({ filter: /^\.\.?\// }, ({ path, kind, resolveDir }) =>
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
function importFromJoined(text, parts, joined) {
  const partOf = path => parts.get(basename(path));
  const replaced = text
    .replace(/(import|export)(?:\{([^}]*)\}from)?"(\.\.?\/[^"]+)"/g, (all, word, list, path) => {
      const part = partOf(path);
      if (!part) return all;
      const from = `"${joined}"`;
      if (!list) return `${word}${from}`;
      const renamed = list.split(',').map(one => {
        const [theirs, ours = theirs] = one.split(' as ');
        return `${theirs}$${part.index} as ${ours}`;
      });
      return `${word}{${renamed}}from${from}`;
    })
    .replace(/import\("(\.\.?\/[^"]+)"\)/g, (all, path) => {
      const part = partOf(path);
      // The file that is called as the part keeps its names.
      if (!part || basename(path) === basename(joined)) return all;
      return `import("${joined}").then(m=>({${part.names.map(name => `${name}:m.${name}$${part.index}`)}}))`;
    });
  for (const part of parts.keys())
    if (part !== basename(joined) && replaced.includes(part))
      throw new Error(`An import of ${part} is left.`);
  return replaced;
}

/** Moves what only VS Code loads to a folder of its own, which the npm package does not have. */
async function moveToEditor(files, editor, outputs) {
  await mkdir('dist/chunks/extension', { recursive: true });
  const there = files.filter(file => outputs[file]);
  const moved = new Map(there.map(file => [file, file.replace(chunks, 'dist/chunks/extension')]));
  for (const file of [...there, editor]) {
    const now = moved.get(file) ?? file;
    const text = (await readFile(file, 'utf8')).replace(/"(\.\.?\/[^"\s]+\.js)"/g, (all, path) => {
      const target = resolvedFrom(file, path);
      return outputs[target] ? `"${pathTo(moved.get(target) ?? target, dirname(now))}"` : all;
    });
    for (const one of outputs[file].imports) one.path = moved.get(one.path) ?? one.path;
    if (now !== file) await rename(file, now);
    await writeFile(now, text);
  }
  for (const [file, now] of moved) {
    outputs[now] = outputs[file];
    delete outputs[file];
  }
}
