/** Defines as data which files may import which, and reads import lines to find violations. */
import { posix } from 'node:path';

/**
 * The floors from the ground up. A file belongs to the first room that its path starts with. Imports go down, never to another
 * room of the same floor. Only the folders of one door may import each other, in one direction.
 */
export const floors: readonly (readonly string[])[] = [
  ['src/protocol/'],
  ['src/engine/', 'webview/'],
  ['src/engine/files/'],
  ['src/engine/records/', 'src/engine/scan/', 'src/engine/tools/'],
  [
    'src/engine/box/',
    'src/engine/changes/',
    'src/engine/mcp/',
    'src/engine/providers/',
    'src/engine/schedule/',
    'src/engine/skills/',
  ],
  ['src/engine/policy/', 'src/engine/routing/'],
  [
    'src/engine/evals/',
    'src/engine/export/',
    'src/engine/run/',
    'src/engine/sources/',
    'src/engine/doctor.ts',
  ],
  ['src/engine/fleet/', 'src/engine/telos.ts', 'src/engine/workflow/'],
  ['src/bot/', 'src/cli/', 'src/extension/', 'src/library.ts'],
];

/** The doors. They do not import each other, except that the command line may start the bot. */
const doors = ['src/cli/', 'src/bot/', 'src/extension/'];
const doorsBeside: Readonly<Record<string, string>> = { 'src/cli/': 'src/bot/' };

/** Packages of which the product contains parts. All others of package.json build and test it. */
export const bundled = [
  '@anthropic-ai/sdk',
  '@modelcontextprotocol/sdk',
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
const slowToLoad = ['@anthropic-ai/sdk', '@modelcontextprotocol/sdk', 'discord.js', 'openai', ...optional];
const entries = [
  'src/cli/main.ts',
  // `main.ts` imports it late only for the compile cache.
  'src/cli/commandLine.ts',
  'src/cli/agentMain.ts',
  'src/cli/planRunnerMain.ts',
  'src/extension/extension.ts',
  'src/library.ts',
];
/** What single commands and the first tool call need: a start that does not need it does not load it. */
const loadedLater = [
  'src/engine/box/',
  'src/engine/sources/',
  'src/engine/scan/weight.ts',
  'src/engine/export/',
  'src/engine/evals/',
  'src/engine/fleet/',
  'src/engine/schedule/',
  'src/engine/run/approval.ts',
  'src/engine/policy/decide.ts',
];

const forbiddenFolders = ['util', 'utils', 'common', 'types', 'services', 'core', 'helpers', 'lib', 'shared'];

interface Import {
  from: string;
  /** The specifier as written. */
  specifier: string;
  /** The imported file, relative to the root. Undefined for a package. */
  file: string | undefined;
  kind: 'value' | 'type' | 'later';
}

/**
 * Returns one line for each import or name that breaks a rule, with the rule. `sources` are the files of `src` and `webview` by
 * path.
 */
export function brokenRules(sources: ReadonlyMap<string, string>, dependencies: readonly string[]): string[] {
  const imports = [...sources].flatMap(([path, text]) => importsOf(path, text));
  return [
    ...imports.flatMap(one => brokenByImport(one, sources, dependencies)),
    ...sharedDependencies(imports),
    ...circles(imports),
    ...betweenRooms(imports),
    ...slowStarts(imports),
    ...[...sources].flatMap(([path, text]) => brokenByName(path, text)),
  ];
}

export function importsOf(path: string, text: string): Import[] {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
  const found: Import[] = [];
  const add = (written: string, kind: Import['kind']): void => {
    // The bundler hands this file over as a text.
    const specifier = written.replace(/\?text$/, '');
    const file = specifier.startsWith('.') ? posix.join(posix.dirname(path), specifier) : undefined;
    found.push({ from: path, specifier, file, kind });
  };
  for (const [, type, specifier] of code.matchAll(
    /^(?:import|export)\s+(type\s)?[^'"();]*?\sfrom\s+'([^']+)'/gm,
  )) {
    add(specifier ?? '', type ? 'type' : 'value');
  }
  for (const [, specifier] of code.matchAll(/^import\s+'([^']+)'/gm)) add(specifier ?? '', 'value');
  for (const [, specifier] of code.matchAll(/\bimport\(\s*'([^']+)'/g)) add(specifier ?? '', 'later');
  return found;
}

function brokenByImport(
  one: Import,
  sources: ReadonlyMap<string, string>,
  dependencies: readonly string[],
): string[] {
  const line = `${one.from} imports ${one.specifier}`;
  if (one.file === undefined) return brokenByPackage(one, dependencies).map(rule => `${line}: ${rule}`);
  if (/\.(css|json)$/.test(one.file)) return [];
  if (!sources.has(one.file))
    return [`${line}: there is no such file (imports name the file with its ending)`];
  if (one.from.startsWith('webview/')) {
    const fine = one.file.startsWith('webview/') || one.file.startsWith('src/protocol/');
    return fine ? [] : [`${line}: the chat view sees src/protocol and nothing else`];
  }
  if (one.file.startsWith('webview/')) return [`${line}: nothing in src imports the chat view`];
  const [here, there] = [floorOf(one.from), floorOf(one.file)];
  if (here < 0) return [`${line}: ${one.from} has no floor; give it one in test/importRules.ts`];
  if (there > here)
    return [`${line}: imports go down, and this goes from floor ${here + 1} up to ${there + 1}`];
  const [door, otherDoor] = [
    doors.find(d => one.from.startsWith(d)),
    doors.find(d => one.file?.startsWith(d)),
  ];
  const strangers = door && otherDoor && door !== otherDoor && doorsBeside[door] !== otherDoor;
  return strangers ? [`${line}: one door does not know another`] : [];
}

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
    if (one.file === undefined || roomOf(one.from) === roomOf(one.file)) continue;
    pairs.set(`${roomOf(one.from)} ${roomOf(one.file)}`, one);
  }
  return [...pairs].flatMap(([pair, { from, specifier }]) => {
    const [here = '', there = ''] = pair.split(' ');
    const line = `${from} imports ${specifier}`;
    if (pairs.has(`${there} ${here}`))
      return here < there ? [`${line}: ${here} and ${there} import each other`] : [];
    const areDoors = [here, there].every(room => doors.some(door => room.startsWith(door)));
    const sameFloor = floorOf(here) === floorOf(there) && !areDoors && !here.startsWith('webview/');
    return sameFloor && floorOf(here) >= 0 ? [`${line}: ${here} and ${there} are on the same floor`] : [];
  });
}

function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}
