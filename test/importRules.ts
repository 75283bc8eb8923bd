/** Defines as data which files may import which, and reads import lines to find violations. */
import { dirname, posix } from 'node:path';
import { type Entry, readEntries } from '../entriesBuild.mjs';

/** The packages from the ground up. A package imports only packages below it, and only by their entries (`exports` of its package.json). */
export const packageFloors: readonly (readonly string[])[] = [
  ['protocol'],
  ['engine'],
  ['packs'],
  ['evals', 'plans'],
  ['acp', 'bot', 'fleet', 'gallery', 'library', 'mcpServe', 'today'],
  ['cli', 'extension', 'webview'],
];

/**
 * The rooms of the packages, from the ground up. A file belongs to the room with the longest path that its own starts with. Imports go
 * down, never to another room of the same floor.
 */
export const floors: readonly (readonly string[])[] = [
  ['src/protocol/'],
  ['src/engine/core/'],
  ['src/engine/'],
  ['src/engine/files/'],
  ['src/engine/policy/text/', 'src/engine/records/', 'src/engine/tools/'],
  [
    'src/engine/away/',
    'src/engine/box/',
    'src/engine/changes/',
    'src/engine/mcp/',
    'src/engine/providers/',
    'src/engine/schedule/',
    'src/engine/skills/',
    'src/engine/traces/',
  ],
  ['src/engine/policy/', 'src/engine/routing/'],
  ['src/engine/run/', 'src/engine/doctor.ts'],
  ['src/engine/telos.ts'],
  ['src/packs/audit/'],
  ['src/packs/export/', 'src/packs/sources/'],
  ['src/evals/', 'src/plans/'],
  ['src/fleet/stories/'],
  ['src/fleet/'],
  ['src/acp/', 'src/bot/', 'src/gallery/', 'src/library/', 'src/mcpServe/', 'src/today/'],
  ['src/cli/', 'src/extension/', 'webview/'],
];

/** Packages of which the product contains parts. All others of package.json build and test it. */
export const bundled = [
  '@agentclientprotocol/sdk',
  '@anthropic-ai/sdk',
  '@modelcontextprotocol/client',
  '@modelcontextprotocol/server',
  '@preact/signals',
  'commander',
  'diff',
  'discord.js',
  'dompurify',
  'highlight.js',
  'htmlparser2',
  'jsonc-parser',
  'katex',
  'marked',
  'mermaid',
  'openai',
  'preact',
  'smol-toml',
  'yaml',
  'zod',
];

/** Packages that are installed by who needs them. The product loads them late and contains nothing of them. */
export const optional = ['@dbos-inc/dbos-sdk'];

/** Packages with many importers. The chat view is written in them; they are not tools that it uses. */
const manyImporters = ['preact', '@preact/signals'];

/** Libraries that load slowly. No file that runs at the start may lead to them. */
const slowToLoad = ['@anthropic-ai/sdk', '@modelcontextprotocol/client', 'discord.js', 'openai', ...optional];
const entries = [
  'src/cli/main.ts',
  // `main.ts` imports it late only for the compile cache.
  'src/cli/commandLine.ts',
  'src/cli/agentMain.ts',
  'src/cli/planRunnerMain.ts',
  'src/extension/extension.ts',
  'src/library/library.ts',
];
/** What single commands and the first tool call need: a start that does not need it does not load it. */
const loadedLater = [
  'src/engine/away/askAway.ts',
  'src/engine/box/',
  'src/engine/policy/text/weight.ts',
  'src/engine/schedule/',
  'src/engine/traces/traced.ts',
  'src/evals/',
  'src/fleet/',
  'src/packs/',
  'src/engine/run/approval.ts',
  'src/engine/policy/decide.ts',
];

const forbiddenFolders = ['util', 'utils', 'common', 'types', 'services', 'helpers', 'lib', 'shared'];

interface Import {
  from: string;
  /** The specifier as written. */
  specifier: string;
  /** The file that is reached, relative to the root; behind an entry, the one that has the name. Undefined for other packages. */
  file: string | undefined;
  /** The name that is taken of an entry. */
  name?: string;
  kind: 'value' | 'type' | 'later';
}

export type Entries = ReadonlyMap<string, Entry>;

const ownEntries: Entries = readEntries(dirname(import.meta.dirname));

/**
 * Returns one line for each import or name that breaks a rule, with the rule. `sources` are the files of `src` and `webview` by
 * path.
 */
export function brokenRules(
  sources: ReadonlyMap<string, string>,
  dependencies: readonly string[],
  entries: Entries = ownEntries,
): string[] {
  const inside = withoutEntries(sources, entries);
  const imports = [...inside].flatMap(([path, text]) => importsOf(path, text, entries));
  return [
    ...imports.flatMap(one => brokenByImport(one, inside, dependencies)),
    ...vainEntries(imports, entries),
    ...sharedDependencies(imports),
    ...circles(imports),
    ...betweenRooms(imports),
    ...slowStarts(imports),
    ...[...sources].flatMap(([path, text]) => brokenByName(path, text)),
  ];
}

/** Returns the files that are no mere entries. */
export function withoutEntries(
  sources: ReadonlyMap<string, string>,
  entries: Entries = ownEntries,
): Map<string, string> {
  const mere = new Set([...entries.values()].filter(({ names }) => names).map(({ file }) => file));
  return new Map([...sources].filter(([path]) => !mere.has(path)));
}

/** Returns the package of a file: its folder in `src`, or the chat view. */
export const packageOfFile = (path: string): string =>
  path.startsWith('src/') ? (path.split('/')[1] ?? '') : (path.split('/')[0] ?? '');

export function importsOf(path: string, text: string, entries: Entries = ownEntries): Import[] {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
  const found: Import[] = [];
  const add = (written: string, kind: Import['kind'], list = ''): void => {
    // The bundler hands this file over as a text.
    const specifier = written.replace(/\?text$/, '');
    const entry = entries.get(specifier);
    if (entry?.names) {
      found.push(...throughEntry(entry, list, { from: path, specifier, kind }));
      return;
    }
    const file = specifier.startsWith('.')
      ? posix.join(posix.dirname(path), specifier)
      : (entry?.file ?? (specifier.startsWith('@telos/') ? specifier : undefined));
    found.push({ from: path, specifier, file, kind });
  };
  for (const [, type, list, specifier] of code.matchAll(
    /^(?:import|export)\s+(type\s)?([^'"();]*?)\sfrom\s+'([^']+)'/gm,
  )) {
    add(specifier ?? '', type ? 'type' : 'value', list);
  }
  for (const [, specifier] of code.matchAll(/^import\s+'([^']+)'/gm)) add(specifier ?? '', 'value');
  for (const [, specifier] of code.matchAll(/\bimport\(\s*'([^']+)'/g)) add(specifier ?? '', 'later');
  return found;
}

/** Returns an import of the file behind the entry for each name in the list of an import line. */
function throughEntry(
  { file, names, later }: Entry,
  list: string,
  { from, specifier, kind }: Pick<Import, 'from' | 'specifier' | 'kind'>,
): Import[] {
  const items = list
    .replace(/[{}]/g, '')
    .split(',')
    .map(item => item.trim());
  return items
    .filter(item => item !== '')
    .map(item => {
      const name = item.replace(/^type /, '').split(' as ')[0] ?? '';
      const loaded = later?.get(name);
      if (loaded) return { from, specifier, file: loaded, name, kind: kind === 'type' ? kind : 'later' };
      const there = names?.get(name)?.file ?? file;
      return { from, specifier, file: there, name, kind: item.startsWith('type ') ? 'type' : kind };
    });
}

/** Returns a line for each entry, and each name of an entry, that no other package imports. */
function vainEntries(imports: readonly Import[], entries: Entries): string[] {
  const taken = new Set(imports.flatMap(({ specifier, name }) => [specifier, `${specifier} ${name}`]));
  return [...entries].flatMap(([specifier, { file, names, later }]) => {
    if (!taken.has(specifier)) return [`${file} is an entry that no other package imports`];
    const all = [...(names?.keys() ?? []), ...(later?.keys() ?? [])];
    return all
      .filter(name => !taken.has(`${specifier} ${name}`))
      .map(name => `${file} names ${name}, which no other package imports`);
  });
}

function brokenByImport(
  one: Import,
  sources: ReadonlyMap<string, string>,
  dependencies: readonly string[],
): string[] {
  const line = `${one.from} imports ${one.specifier}`;
  if (one.file === undefined) return brokenByPackage(one, dependencies).map(rule => `${line}: ${rule}`);
  if (one.file.startsWith('@telos/')) return [`${line}: that package has no such entry`];
  if (/\.(css|json)$/.test(one.file)) return [];
  if (!sources.has(one.file))
    return [`${line}: there is no such file (imports name the file with its ending)`];
  const [ours, theirs] = [packageOfFile(one.from), packageOfFile(one.file)];
  const byPath = one.specifier.startsWith('.');
  if (ours !== theirs && byPath)
    return [`${line}: another package is imported by its entries, @telos/${theirs}/…`];
  if (ours === theirs && !byPath) return [`${line}: a file of the same package is imported by its path`];
  if (ours !== theirs && packageFloor(theirs) >= packageFloor(ours))
    return [`${line}: ${ours} does not know ${theirs}; packages import what is below them`];
  if (ours === 'webview' && theirs !== ours && theirs !== 'protocol')
    return [`${line}: the chat view sees src/protocol and nothing else`];
  if (one.from.startsWith(core) && !one.file.startsWith(core) && theirs !== 'protocol')
    return [`${line}: the core sees src/protocol and nothing else`];
  const [here, there] = [floorOf(one.from), floorOf(one.file)];
  if (here < 0) return [`${line}: ${one.from} has no floor; give it one in test/importRules.ts`];
  return there > here
    ? [`${line}: imports go down, and this goes from floor ${here + 1} up to ${there + 1}`]
    : [];
}

/** The loop of a run and its ports. */
export const core = 'src/engine/core/';

export const packageFloor = (name: string): number => packageFloors.findIndex(floor => floor.includes(name));

function brokenByPackage(one: Import, dependencies: readonly string[]): string[] {
  if (one.specifier === 'vscode') {
    return one.from.startsWith('src/extension/') ? [] : ['only src/extension knows VS Code'];
  }
  if (one.specifier.startsWith('node:')) {
    const ground = one.from.startsWith('webview/') || one.from.startsWith('src/protocol/');
    return ground ? ['this part runs in the chat view too, where there is no Node'] : [];
  }
  const name = packageOf(one.specifier);
  if (optional.includes(name))
    return one.kind === 'later' ? [] : ['it is not bundled; load it by import() where it is needed'];
  return dependencies.includes(name) ? [] : ['it is not among the packages that are bundled'];
}

function sharedDependencies(imports: readonly Import[]): string[] {
  const importers = new Map<string, Set<string>>();
  for (const { from, specifier, file } of imports) {
    if (file !== undefined || specifier === 'vscode' || specifier.startsWith('node:')) continue;
    const name = packageOf(specifier);
    importers.set(name, (importers.get(name) ?? new Set()).add(from));
  }
  return [...importers]
    .filter(([name, files]) => files.size > 1 && !manyImporters.includes(name))
    .map(
      ([name, files]) => `${[...files].join(' and ')} import ${name}: one file alone imports a dependency`,
    );
}

/** Returns circles of files. An import that loads later counts too. */
function circles(imports: readonly Import[]): string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const walk = (file: string, path: readonly string[]): void => {
    const start = path.indexOf(file);
    if (start >= 0) found.push(`${[...path.slice(start), file].join(' -> ')}: imports go round in a circle`);
    if (start >= 0 || done.has(file)) return;
    for (const one of imports) if (one.from === file && one.file) walk(one.file, [...path, file]);
    done.add(file);
  };
  for (const { from } of imports) walk(from, []);
  return found;
}

function slowStarts(imports: readonly Import[]): string[] {
  const found: string[] = [];
  const reached = new Set(entries);
  for (const file of reached) {
    for (const one of imports.filter(candidate => candidate.from === file && candidate.kind === 'value')) {
      const room = loadedLater.find(start => one.file?.startsWith(start));
      if (room)
        found.push(`${file} imports ${one.file}: ${room} is loaded at the start; reach it by import()`);
      if (one.file) reached.add(one.file);
      else if (slowToLoad.includes(packageOf(one.specifier))) {
        found.push(
          `${file} imports ${one.specifier}: it is loaded at the start; reach this file by import()`,
        );
      }
    }
  }
  return found;
}

function brokenByName(path: string, text: string): string[] {
  const parts = path.split('/');
  const folder = parts.slice(0, -1).find(part => forbiddenFolders.includes(part));
  return [
    ...(folder ? [`${path}: a folder named ${folder} says nothing about what lives there`] : []),
    ...(/^index\.tsx?$/.test(parts.at(-1) ?? '') ? [`${path}: no barrels; import the file that has it`] : []),
    ...(/^export\s+default\b/m.test(text) ? [`${path}: exports are named, none is the default`] : []),
  ];
}

/** Returns the index in `floors`, or -1. The longest entry wins: a folder's own room before the loose files around it. */
export function floorOf(path: string): number {
  const entries = floors.flatMap((rooms, floor) => rooms.map(room => ({ room, floor })));
  const fitting = entries.filter(({ room }) => room === path || belongsTo(path, room));
  fitting.sort((one, other) => other.room.length - one.room.length);
  return fitting[0]?.floor ?? -1;
}

/** Returns true if the path belongs to the room. A folder of loose files excludes its subfolders; a door includes them. */
const belongsTo = (path: string, room: string): boolean =>
  path.startsWith(room) && (room !== 'src/engine/' || !path.slice(room.length).includes('/'));

/** Returns the room of a file: its folder, or the file itself if the floors name it. */
export function roomOf(path: string): string {
  return floors.flat().includes(path) ? path : `${posix.dirname(path)}/`;
}

/** Returns one line for each two rooms that import each other, and for each import between rooms of one floor. */
function betweenRooms(imports: readonly Import[]): string[] {
  const pairs = new Map<string, Import>();
  for (const one of imports) {
    if (one.file === undefined || packageOfFile(one.from) !== packageOfFile(one.file)) continue;
    if (roomOf(one.from) === roomOf(one.file)) continue;
    pairs.set(`${roomOf(one.from)} ${roomOf(one.file)}`, one);
  }
  return [...pairs].flatMap(([pair, { from, specifier }]) => {
    const [here = '', there = ''] = pair.split(' ');
    const line = `${from} imports ${specifier}`;
    if (pairs.has(`${there} ${here}`))
      return here < there ? [`${line}: ${here} and ${there} import each other`] : [];
    // The folders of a frontend import each other in one direction.
    const inFrontend = /^(?:src\/(?:cli|extension)|webview)\//.test(here);
    const sameFloor = floorOf(here) === floorOf(there) && !inFrontend;
    return sameFloor && floorOf(here) >= 0 ? [`${line}: ${here} and ${there} are on the same floor`] : [];
  });
}

function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}
