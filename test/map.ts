/** Draws the packages and their rooms by floor for `npm run map`, with the figures that CONTRIBUTING limits, from the import lines alone. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readEntries } from '../entriesBuild.mjs';
import {
  core,
  floorOf,
  importsOf,
  packageFloor,
  packageFloors,
  packageOfFile,
  roomOf,
  withoutEntries,
} from './importRules.ts';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

export interface HouseFigures {
  packages: number;
  packageFloors: number;
  /** Ordered pairs of packages of which the first imports from the second. */
  packageArrows: number;
  packageArrowsUp: number;
  /** Files by which other packages reach the engine. */
  engineEntries: number;
  /** Of the engine: folders, and ordered pairs of them of which the first imports from the second. */
  engineRooms: number;
  engineArrows: number;
  /** Of the loop of a run and its ports. */
  coreLines: number;
  /** Files that the loop can reach by imports, its own included. */
  loopFiles: number;
  /** Pairs of rooms that import each other. */
  circles: number;
  /** Files that are no mere entries. */
  files: number;
  /** Files with only one importer, which is in the same folder. A file that loads later is its own chunk and does not count. */
  oneImporter: number;
}

/** The plan of the house. A limit becomes lower with any commit, and higher only by one that changes the plan and says what it gains. */
export const limits: HouseFigures = {
  packages: 15,
  packageFloors: 6,
  packageArrows: 47,
  packageArrowsUp: 0,
  engineEntries: 17,
  engineRooms: 17,
  engineArrows: 89,
  coreLines: 1000,
  loopFiles: 25,
  circles: 0,
  files: 756,
  oneImporter: 99,
};

/** Returns the source files of the project by path from its root. */
export function projectSources(): Map<string, string> {
  const sources = new Map<string, string>();
  for (const top of ['src', 'webview']) {
    for (const name of readdirSync(join(root, top), { recursive: true, encoding: 'utf8' })) {
      const path = `${top}/${name.replaceAll('\\', '/')}`;
      if (/(?<!\.d)\.tsx?$/.test(path)) sources.set(path, readFileSync(join(root, path), 'utf8'));
    }
  }
  return sources;
}

export function figuresOf(all: ReadonlyMap<string, string>): HouseFigures {
  const sources = withoutEntries(all);
  const imports = [...sources].flatMap(([path, text]) => importsOf(path, text));
  const [packageArrows, engineArrows] = [new Set<string>(), new Set<string>()];
  const importers = new Map<string, Set<string>>();
  const later = new Set<string>();
  for (const { from, file, kind } of imports) {
    if (file === undefined || !sources.has(file)) continue;
    if (kind === 'later') later.add(file);
    importers.set(file, (importers.get(file) ?? new Set()).add(from));
    const [ours, theirs] = [packageOfFile(from), packageOfFile(file)];
    if (ours !== theirs) packageArrows.add(`${ours} ${theirs}`);
    else if (ours === 'engine' && roomOf(from) !== roomOf(file))
      engineArrows.add(`${roomOf(from)} ${roomOf(file)}`);
  }
  const pairs = [...packageArrows].map(arrow => arrow.split(' ') as [string, string]);
  const lonely = [...importers].filter(([file, from]) => {
    const [only = ''] = from;
    return from.size === 1 && !later.has(file) && dirname(only) === dirname(file);
  });
  const packages = new Set([...sources.keys()].map(packageOfFile));
  return {
    packages: packages.size,
    packageFloors: new Set([...packages].map(packageFloor)).size,
    packageArrows: packageArrows.size,
    packageArrowsUp: pairs.filter(([here, there]) => packageFloor(there) >= packageFloor(here)).length,
    engineEntries: [...readEntries(root).values()].filter(({ file }) => packageOfFile(file) === 'engine')
      .length,
    engineRooms: new Set(
      [...sources.keys()].map(roomOf).filter(room => room.startsWith('src/engine/') && room.endsWith('/')),
    ).size,
    engineArrows: engineArrows.size,
    coreLines: [...sources].reduce(
      (sum, [path, text]) => sum + (path.startsWith(core) ? text.trimEnd().split('\n').length : 0),
      0,
    ),
    loopFiles: reachedFrom(`${core}loop.ts`, sources).size,
    circles: [...engineArrows].filter(arrow => {
      const [here = '', there = ''] = arrow.split(' ');
      return here < there && engineArrows.has(`${there} ${here}`);
    }).length,
    files: sources.size,
    oneImporter: lonely.length,
  };
}

function reachedFrom(file: string, sources: ReadonlyMap<string, string>): Set<string> {
  const reached = new Set([file]);
  for (const from of reached)
    for (const { file: there } of importsOf(from, sources.get(from) ?? ''))
      if (there !== undefined && sources.has(there)) reached.add(there);
  return reached;
}

/** Draws the packages by floor, the top one first, each with the number of its files; and below the rooms of the engine in the same way. */
export function drawMap(all: ReadonlyMap<string, string>): string {
  const files = [...withoutEntries(all).keys()];
  const ofEngine = files.filter(path => packageOfFile(path) === 'engine');
  return [
    ...packageFloors.map((names, floor) => floorLine(floor, names, files, packageOfFile)).reverse(),
    '',
    ...engineFloors(ofEngine).reverse(),
  ].join('\n');
}

function engineFloors(files: readonly string[]): string[] {
  const rooms = [...new Set(files.map(roomOf))].sort();
  const floors = [...new Set(rooms.map(floorOf))].sort((one, other) => one - other);
  return floors.map((floor, index) => {
    const here = rooms.filter(room => floorOf(room) === floor);
    const names = here.map(shortName);
    return floorLine(index, names, files, path => shortName(roomOf(path)));
  });
}

function floorLine(
  floor: number,
  names: readonly string[],
  files: readonly string[],
  nameOf: (path: string) => string,
): string {
  const counted = names.map(name => `${name} ${files.filter(path => nameOf(path) === name).length}`);
  return `${floor + 1}  ${counted.join(' · ')}`;
}

/** Returns the name of a room as the map has it. */
export const shortName = (room: string): string =>
  room === 'src/engine/' ? 'engine' : room.replace(/^src\/(engine\/)?|\/$/g, '');

export const drawFigures = (figures: HouseFigures): string =>
  Object.entries(figures)
    .map(([name, value]) => `${name.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)} ${value}`)
    .join(', ');

if (import.meta.main) {
  const sources = projectSources();
  const figures = figuresOf(sources);
  console.log(`${drawMap(sources)}\n\n${drawFigures(figures)}\n(limits: ${drawFigures(limits)})`);
  const over = (Object.keys(limits) as (keyof HouseFigures)[]).filter(name => figures[name] > limits[name]);
  if (over.length > 0) process.exitCode = 1;
}
