/** Describes what a call could reach, and where a path is that it would delete. The code that reads calls passes this to the code that checks them. */

import { lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { matchesParts, type WildcardPart } from '../files/globPattern.ts';
import { realPlace } from '../files/paths.ts';
import { folded } from '../files/sensitiveNames.ts';
import { signs } from './shellSigns.ts';

/** Consequence if a path touches a forbidden place: the call is refused, or asked about, or nothing happens. */
export type Consequence = 'forbidden' | 'unclear' | 'nothing';

/** A path that a call names. */
export interface NamedPath {
  /** Everything that the path could mean. */
  meanings: readonly FoldedPath[];
  ifBelow: Consequence;
  ifAbove: Consequence;
  /** True if it is after `>`. Nothing of it is read. */
  isWritten?: boolean;
  /** True if it is in the middle of a text, which may only speak of it. */
  isProse?: boolean;
}

export interface Reach {
  paths: readonly NamedPath[];
  /** Parts of the call that cannot be read, as words for a sentence. Empty if all can be read. */
  unread: readonly string[];
  /** Texts in which the pieces of a path can be next to each other. */
  code: readonly string[];
  /** True if patterns match hidden names as well. */
  dots?: boolean;
}

/** The names of an absolute path from its root, with `signs` for unknown parts. */
export type Segments = readonly string[];

/**
 * Position of a path relative to a place. `below`: it is below the place or the place itself. `above`: it is above the place.
 * `maybe`: any of these, because a part of the path is not known. A path that is elsewhere has no relation (undefined).
 */
export type Relation = 'below' | 'above' | 'maybe';

const isAbsolute = (path: string): boolean =>
  path.startsWith('/') || (process.platform === 'win32' && /^[a-z]:/i.test(path));

/** Returns the names of `path`, which is absolute or relative to `base`. `..` is among them. */
export function writtenSegments(path: string, base: Segments = []): Segments {
  const plain = path.replaceAll('\\', '/');
  const parts = plain.split('/').filter(part => part !== '' && part !== '.');
  return isAbsolute(plain) ? parts : [...base, ...parts];
}

/** Resolves `..` by the names alone: it removes the name before it. */
export function plainSegments(written: Segments): Segments {
  const stack: string[] = [];
  for (const part of written) {
    if (part === '..') goUp(stack);
    else stack.push(part);
  }
  return stack;
}

function goUp(stack: string[]): void {
  if (stack.at(-1)?.includes(signs.any)) stack.splice(0, stack.length, signs.any);
  else stack.pop();
}

/** An absolute path as a tolerant file system sees it, with `/` at both ends and `signs` for unknown parts. */
export type FoldedPath = string;

export const foldedPath = (segments: Segments): FoldedPath =>
  segments.length === 0 ? '/' : `/${segments.map(folded).join('/')}/`;

const anySign = new RegExp(`[${signs.any}${signs.star}${signs.one}]`);

/** Returns the position of a path relative to a place. `dots` is for a shell whose patterns match hidden names as well. */
export function relationOf(path: FoldedPath, place: FoldedPath, dots = false): Relation | undefined {
  if (path.startsWith(place)) return 'below';
  if (!anySign.test(path)) return place.startsWith(path) ? 'above' : undefined;
  const wanted = place.slice(1, -1).split('/');
  const names = path.slice(1, -1).split('/');
  for (const [at, part] of names.entries()) {
    const name = wanted[at];
    if (name === undefined) return 'below';
    const open = part.indexOf(signs.any);
    if (open >= 0) return matchesName(part.slice(0, open) + signs.star, name, true) ? 'maybe' : undefined;
    if (!matchesName(part, name, dots)) return undefined;
  }
  return names.length < wanted.length ? 'above' : 'below';
}

/** Returns true if a name fits. The pattern can contain `star` and `one`. */
function matchesName(pattern: string, text: string, dots: boolean): boolean {
  if (!isPattern(pattern)) return pattern === text;
  if (!dots && text.startsWith('.') && !pattern.startsWith('.')) return false;
  const partOf = (sign: string): WildcardPart => {
    if (sign === signs.star) return '*';
    return other => sign === signs.one || other === sign;
  };
  return matchesParts([...pattern].map(partOf), text);
}

const isPattern = (name: string): boolean => name.includes(signs.star) || name.includes(signs.one);

/** Decodes percent escapes. Bytes that are not text become one character. */
export const withoutPercents = (text: string): string =>
  text.replace(/(?:%[\da-f]{2})+/gi, escapes => Buffer.from(escapes.replaceAll('%', ''), 'hex').toString());

/** Returns the target of a path over a process's view of the disk, relative to its folder; undefined for any other path. */
export function throughProcess(path: string): string | undefined {
  const seen = /^\/proc\/[^/]+\/(?:task\/[^/]+\/)?(cwd|root)(?:\/(.*))?$/s.exec(path);
  return seen ? `${seen[1] === 'root' ? '/' : './'}${seen[2] ?? ''}` : undefined;
}

const mostLinks = 40;
const mostMeanings = 100;
const rootSign = process.platform === 'win32' ? '' : '/';

/** Follows the links in many paths, and asks the disk once for each name. */
export class LinkFollower {
  readonly #targets = new Map<string, string | undefined | null>();
  readonly #linksIn = new Map<string, readonly string[]>();
  /** True if there were more paths than are followed. */
  gaveUp = false;

  /** Returns everything that a path could mean by its names and over links. The first one follows from the names alone. */
  meaningsOf(written: Segments): Segments[] {
    const plain = plainSegments(written);
    const found: Segments[] = [plain];
    // A shell follows a link before it goes up from there. Other programs do it the other way round.
    if (plain.length !== written.length) this.#walk([], written, mostLinks, false, found);
    this.#walk([], plain, mostLinks, false, found);
    return found;
  }

  #walk(done: Segments, rest: Segments, links: number, moved: boolean, found: Segments[]): void {
    const stack = [...done];
    for (const [at, part] of rest.entries()) {
      if (part === '..' || part.includes(signs.any)) {
        if (part === '..') goUp(stack);
        else stack.push(part);
        continue;
      }
      const folder = rootSign + stack.join('/');
      const isOpen = isPattern(part);
      for (const name of isOpen ? this.#linksLike(folder, part) : [part]) {
        const target = this.#target(folder.endsWith('/') ? folder + name : `${folder}/${name}`);
        if (target === undefined && !isOpen) {
          // Nothing is there, so no link can follow either.
          if (moved) found.push(plainSegments([...stack, ...rest.slice(at)]));
          return;
        }
        if (typeof target !== 'string') continue;
        if (links === 0 || found.length >= mostMeanings) {
          this.gaveUp = true;
          return;
        }
        const onward = [...writtenSegments(target), ...rest.slice(at + 1)];
        this.#walk(isAbsolute(target) ? [] : stack, onward, links - 1, true, found);
        if (!isOpen) return;
      }
      stack.push(part);
    }
    if (moved) found.push(stack);
  }

  /** Returns the target of a link; null if the path is not a link, undefined if nothing is there. */
  #target(path: string): string | undefined | null {
    if (!this.#targets.has(path)) this.#targets.set(path, targetOf(path));
    return this.#targets.get(path);
  }

  #linksLike(folder: string, pattern: string): readonly string[] {
    let links = this.#linksIn.get(folder);
    if (links === undefined) {
      links = linksIn(folder);
      this.#linksIn.set(folder, links);
    }
    const wanted = folded(pattern);
    return links.filter(link => matchesName(wanted, folded(link), true));
  }
}

function targetOf(path: string): string | undefined | null {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return undefined;
    return stats.isSymbolicLink() ? readlinkSync(path) : null;
  } catch {
    return undefined;
  }
}

function linksIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter(entry => entry.isSymbolicLink())
      .map(entry => entry.name);
  } catch {
    return [];
  }
}

/** Folders of a command. All absolute. */
export interface Surroundings {
  /** Where it runs. Real. */
  folder: string;
  workingDir: string;
  home: string;
}

/** Where something is that a command would delete or move. */
export type PlaceKind = 'inside' | 'outside' | 'unknown' | 'home' | 'system';

/** Top folders without which a system does not start, or people lose what is theirs. */
const systemFolders =
  /^\/(?:$|(?:bin|boot|dev|etc|home|lib\d*|libx?32|opt|proc|root|run|sbin|srv|sys|usr|usr\/(?:bin|lib|sbin|local)|var|var\/lib|system|library|applications|users|volumes|private|private\/(?:etc|var)|cores|windows|nix|snap)\/$)/;

/** Returns where a path is that would be deleted. `system` is the root or one of the system's own folders, `home` a home folder or one above it, or all in these. */
export function placeOf(
  value: string,
  folder: string,
  { workingDir, home, folder: own }: Surroundings,
): PlaceKind {
  if (/^[a-z]:[\\/.*\ue001]*$/i.test(value)) return 'system';
  const base = /^[/\ue000]/.test(folder) ? folder : `${own}/${folder}`;
  const isUnknown = value.startsWith(signs.any);
  const written = writtenSegments(value, /^[/\ue000]/.test(value) ? [] : writtenSegments(base));
  const isContent = /^[.*?\ue001\ue002]*$/.test(value.slice(value.lastIndexOf('/') + 1));
  const meanings = meaningsOf(written, isContent);
  const homes = [home, realPlace(home) ?? home].map(path => foldedPath(writtenSegments(path)));
  for (const meaning of meanings.map(trimmed)) {
    const path = foldedPath(meaning);
    if (systemFolders.test(path) || (meaning.length === 1 && hasPattern(path))) return 'system';
    if (homes.some(one => isAtOrAbove(path, one))) return 'home';
  }
  if (isUnknown) return 'unknown';
  const roots = [workingDir, realPlace(workingDir) ?? workingDir, own].map(path =>
    foldedPath(writtenSegments(path)),
  );
  const isInside = meanings.every(meaning =>
    roots.some(root => relationOf(foldedPath(meaning), root) === 'below'),
  );
  return isInside ? 'inside' : 'outside';
}

export const isPrecious = (kind: PlaceKind): boolean => kind === 'system' || kind === 'home';
const hasPattern = (path: string): boolean => path.includes(signs.star) || path.includes(signs.one);

/** Returns true if the path is the place, or a folder above it, also by its pattern. */
function isAtOrAbove(path: string, place: string): boolean {
  const relation = relationOf(path, place);
  const isAsDeep = path.split('/').length <= place.split('/').length;
  return relation === 'above' || (relation === 'below' && isAsDeep);
}

/** Follows the links of the folders above, and a link itself only if what is in it would go. */
function meaningsOf(written: Segments, isContent: boolean): Segments[] {
  const follower = new LinkFollower();
  if (isContent) return follower.meaningsOf(written);
  return follower.meaningsOf(written.slice(0, -1)).map(above => [...above, ...written.slice(-1)]);
}

/** Returns the path without a last name that is any name. */
function trimmed(path: Segments): Segments {
  const isAny = /^[.\ue001\ue002]*[\ue001\ue002][.\ue001\ue002]*$/.test(path.at(-1) ?? '');
  return isAny ? path.slice(0, -1) : path;
}
