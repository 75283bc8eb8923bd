/** Draws the rooms by floor for `npm run map`, with the figures that CONTRIBUTING limits, from the import lines alone. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { floorOf, floors, importsOf, roomOf } from './importRules.ts';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

export interface HouseFigures {
  rooms: number;
  floors: number;
  /** Ordered pairs of rooms of which the first imports from the second. */
  arrows: number;
  arrowsUp: number;
  /** Pairs of rooms that import each other. */
  circles: number;
  files: number;
  /** Files with only one importer, which is in the same folder. A file that loads later is its own chunk and does not count. */
  oneImporter: number;
}

/**
 * Lower a limit here when its figure has become lower. The design allows 22 rooms, 120 arrows, 240 files and 50 with one importer for
 * what runs one skill; the long work adds two rooms, their arrows down, and about 80 files with its views, the first hour about 20,
 * where packs come from two rooms and about 25 files, each kind of source one that loads when it is used; evals a room with 13
 * arrows and about 28 files, of which six improve a skill; what runs by the clock a room with ten arrows and 11 files; the bot one with eight arrows and 13 files;
 * what runs on workers one with six arrows and 10 files, stories there 15 files, and the editor's way to workers one arrow and two files;
 * the code that earlier starts have compiled one file; a small working folder, which needs no git, one; what a command's words carry and
 * name, two; the thoughts that no longer follow what they were bound to, one; what a call of the command line finds around it, one; the encodings
 * of text, and the tools that write, two, of which one has one importer; turns that are
 * no answer, two; the home that an agent keeps in the box, one; what models get of a server's schema, one of one importer; who has the keys of the terminal, one; what a machine seals of its
 * plans, one; who is still running, one; the one way to start git, one; what starts programs for a large
 * editor, one, of one importer; the way through a proxy, three; the list of models with its command, two;
 * how the changes of a command land, eleven, one for each step, of which three have one importer; the programs that a conversation's box keeps, two, and what others write beside a command, one.
 */
export const limits: HouseFigures = {
  rooms: 32,
  floors: 9,
  arrows: 217,
  arrowsUp: 0,
  circles: 0,
  files: 653,
  oneImporter: 68,
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

export function figuresOf(sources: ReadonlyMap<string, string>): HouseFigures {
  const imports = [...sources].flatMap(([path, text]) => importsOf(path, text));
  const arrows = new Set<string>();
  const importers = new Map<string, Set<string>>();
  const later = new Set<string>();
  for (const { from, file, kind } of imports) {
    if (file === undefined || !sources.has(file)) continue;
    if (kind === 'later') later.add(file);
    importers.set(file, (importers.get(file) ?? new Set()).add(from));
    if (roomOf(from) !== roomOf(file)) arrows.add(`${roomOf(from)} ${roomOf(file)}`);
  }
  const pairs = [...arrows].map(arrow => arrow.split(' ') as [string, string]);
  const lonely = [...importers].filter(([file, from]) => {
    const [only = ''] = from;
    return from.size === 1 && !later.has(file) && dirname(only) === dirname(file);
  });
  return {
    rooms: new Set([...sources.keys()].map(roomOf)).size,
    floors: new Set([...sources.keys()].map(floorOf)).size,
    arrows: arrows.size,
    arrowsUp: pairs.filter(([here, there]) => floorOf(there) > floorOf(here)).length,
    circles: pairs.filter(([here, there]) => here < there && arrows.has(`${there} ${here}`)).length,
    files: sources.size,
    oneImporter: lonely.length,
  };
}

/** Draws the rooms by floor, the top one first, with the number of their files. */
export function drawMap(sources: ReadonlyMap<string, string>): string {
  const rooms = new Map<string, number>();
  for (const path of sources.keys()) rooms.set(roomOf(path), (rooms.get(roomOf(path)) ?? 0) + 1);
  const lines = floors.map((_, floor) => {
    const here = [...rooms].filter(([room]) => floorOf(room) === floor).sort();
    return `${floor + 1}  ${here.map(([room, files]) => `${shortName(room)} ${files}`).join(' · ')}`;
  });
  return lines.reverse().join('\n');
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
