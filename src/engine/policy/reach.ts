/** What a call could reach by what it says: data that those who read calls hand to those who hold them against prohibitions. */

import { lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { matchesParts, type WildcardPart } from '../files/globPattern.ts';
import { folded } from '../files/sensitiveNames.ts';
import { signs } from './shellWords.ts';

/** What follows where a path touches a place that is forbidden: the call is refused, or asked about, or nothing. */
export type Consequence = 'forbidden' | 'unclear' | 'nothing';

/** A path that a call names. */
export interface NamedPath {
  /** All that it could mean. */
  meanings: readonly FoldedPath[];
  ifBelow: Consequence;
  ifAbove: Consequence;
  /** Behind `>`: nothing is read of it. */
  isWritten?: boolean;
  /** It stands in the middle of a text, which may only speak of it. */
  isProse?: boolean;
}

export interface Reach {
  paths: readonly NamedPath[];
  /** What cannot be read in the call, for a sentence; empty where all can. */
  unread: readonly string[];
  /** Texts in which the pieces of a path can stand beside each other. */
  code: readonly string[];
  /** Patterns take hidden names as well. */
  dots?: boolean;
}

/** The names of an absolute path from its root, with `signs` for what is not known. */
export type Segments = readonly string[];

/**
 * How a path lies to a place: `below` it or it itself, `above` it, or `maybe` any of these since a part of it is not known. Undefined where
 * it lies elsewhere.
 */
export type Relation = 'below' | 'above' | 'maybe';

const isAbsolute = (path: string): boolean =>
  path.startsWith('/') || (process.platform === 'win32' && /^[a-z]:/i.test(path));

/** The names of `path`, which is absolute or relative to `base`, `..` among them. */
export function writtenSegments(path: string, base: Segments = []): Segments {
  const plain = path.replaceAll('\\', '/');
  const parts = plain.split('/').filter(part => part !== '' && part !== '.');
  return isAbsolute(plain) ? parts : [...base, ...parts];
}

/** As the names alone say: `..` takes away the name before it. */
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

/** An absolute path as a tolerant file system sees it, `/` at both its ends, with `signs` for what is not known. */
export type FoldedPath = string;

export const foldedPath = (segments: Segments): FoldedPath =>
  segments.length === 0 ? '/' : `/${segments.map(folded).join('/')}/`;

const anySign = new RegExp(`[${signs.any}${signs.star}${signs.one}]`);

/** `dots` for a shell whose patterns take hidden names as well. */
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

/** Does a name fit, with `star` and `one` in the pattern? */
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

/** What is no text is one character of it. */
export const withoutPercents = (text: string): string =>
  text.replace(/(?:%[\da-f]{2})+/gi, escapes => Buffer.from(escapes.replaceAll('%', ''), 'hex').toString());

/** Where a path leads that goes over a process's view of the disk, relative to the folder that it runs in; undefined for any other path. */
export function throughProcess(path: string): string | undefined {
  const seen = /^\/proc\/[^/]+\/(?:task\/[^/]+\/)?(cwd|root)(?:\/(.*))?$/s.exec(path);
  return seen ? `${seen[1] === 'root' ? '/' : './'}${seen[2] ?? ''}` : undefined;
}

const mostLinks = 40;
const mostMeanings = 100;
const rootSign = process.platform === 'win32' ? '' : '/';

/** Follows the links on the way of many paths, and asks the disk once for each name. */
export class LinkFollower {
  readonly #targets = new Map<string, string | undefined | null>();
  readonly #linksIn = new Map<string, readonly string[]>();
  /** There were more ways than are followed. */
  gaveUp = false;

  /** All that a path could mean by its names and over links; the first is what the names alone say. */
  meaningsOf(written: Segments): Segments[] {
    const plain = plainSegments(written);
    const found: Segments[] = [plain];
    // A shell follows a link before it goes up from there; other programs do it the other way round.
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
          // Nothing is there, so no link is behind it either.
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

  /** What a link says; null for what is none, undefined where nothing is. */
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
