/** Finds the places and addresses that the input of an MCP tool could mean, however they are written. */

import { basename } from 'node:path';
import type { JsonObject } from '@telos/protocol/run';
import { ignored } from '@telos/protocol/text';
import {
  foldedPath,
  LinkFollower,
  type NamedPath,
  type Reach,
  type Segments,
  throughProcess,
  withoutPercents,
  writtenSegments,
} from './reach.ts';
import { signs } from './shellSigns.ts';

export interface McpReach extends Reach {
  /** The web addresses that the input names. */
  urls: readonly URL[];
}

/** Folders that a relative path can be relative to. All absolute. */
export interface McpPlaces {
  home: string;
  /** The folders that a server treats as its own: the one it runs in, and those that it was started with. */
  own: readonly string[];
  others: readonly string[];
  /** True if the server is on another machine. A folder in its input is then not one of this machine. */
  isRemote: boolean;
}

/** Limits in characters, texts and paths. A model hardly writes as much, and input beyond them is asked about. */
const longestRead = 256 * 1024;
const mostTexts = 20_000;
const mostPaths = 20_000;
/** Levels of nested values. Deeper ones cannot be shown either. */
export const deepestInput = 200;
/** Levels of escapes within escapes. */
const mostLayers = 5;

/**
 * Returns what the input could reach; undefined if it is nested too deeply. The time it takes depends only on the size of the
 * text. Never throws.
 */
export function mcpReach(input: JsonObject, places: McpPlaces): McpReach | undefined {
  const texts = textsIn(input);
  if (texts === undefined) return undefined;
  const unread = new Set<string>();
  const size = texts.reduce((sum, text) => sum + text.length, 0);
  if (size > longestRead || texts.length > mostTexts) {
    return { paths: [], urls: [], code: [], unread: ['more text than is looked at'] };
  }
  const forms = allForms(texts, unread);
  const paths = namedIn(forms, places, unread);
  return { paths, urls: forms.flatMap(urlsIn), code: [], unread: [...unread] };
}

/** Returns every text of an input that can be a path, as it is written and without its wrapping. */
export function placesToldIn(input: JsonObject): string[] {
  const texts = textsIn(input) ?? [];
  const size = texts.reduce((sum, text) => sum + text.length, 0);
  return size > longestRead || texts.length > mostTexts ? texts : allForms(texts, new Set());
}

/** Returns every text, including names of properties; undefined if they are nested too deeply. */
function textsIn(input: unknown): string[] | undefined {
  const texts = new Set<string>();
  const open: [value: unknown, depth: number][] = [[input, 0]];
  for (let next = open.pop(); next; next = open.pop()) {
    const [value, depth] = next;
    if (depth > deepestInput) return undefined;
    if (typeof value === 'string') texts.add(value);
    else if (typeof value === 'object' && value !== null)
      for (const [name, inner] of Object.entries(value)) {
        if (!Array.isArray(value)) texts.add(name);
        open.push([inner, depth + 1]);
      }
  }
  texts.delete('');
  return [...texts];
}

/** Returns the texts as they are written, and as they are once their wrapping is removed. */
function allForms(texts: readonly string[], unread: Set<string>): string[] {
  const forms = new Set(texts);
  let layer = [...forms];
  for (let layers = 0; layer.length > 0; layers++) {
    if (layers === mostLayers) {
      unread.add('escapes within escapes');
      break;
    }
    const next: string[] = [];
    for (const text of layer)
      for (const form of unwrapped(text)) {
        if (form === '' || forms.has(form)) continue;
        forms.add(form);
        next.push(form);
      }
    layer = next;
  }
  return [...forms];
}

function unwrapped(text: string): string[] {
  const forms = [ignored.replacedIn(text.normalize('NFKC'), () => ''), withoutPercents(text)];
  if (/\\(x[\da-f]{2}|u[\da-f]{4})/i.test(text)) forms.push(withoutCodes(text));
  // The text as a shell would read it.
  if (/["'`\\]/.test(text)) forms.push(text.replace(/["'`\\]/g, ''));
  if (/^\s*["[{]/.test(text)) forms.push(...(jsonIn(text) ?? []));
  return forms;
}

const withoutCodes = (text: string): string =>
  text.replace(/\\(?:x([\da-f]{2})|u([\da-f]{4}))/gi, (_, short, long) =>
    String.fromCharCode(Number.parseInt(short ?? long, 16)),
  );

function jsonIn(text: string): string[] | undefined {
  try {
    return textsIn(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Finds the paths in the texts. A path is `sure` if it is a value by itself, or one of a list. */
function namedIn(forms: readonly string[], places: McpPlaces, unread: Set<string>): NamedPath[] {
  const found = new Map<string, boolean>();
  const add = (text: string, sure: boolean): void => {
    const path = plainPath(text, places.home);
    for (const one of [path, throughProcess(path) ?? ''])
      if (one !== '') found.set(one, sure || found.get(one) === true);
  };
  for (const form of forms) {
    const text = form
      .replace(/\$\{(\w+)\}|\$env:(\w+)/gi, (_, one, other) => `$${one ?? other}`)
      .replace(/%(?:userprofile|home)%/gi, '$HOME');
    if (text.length <= 1024) add(text, true);
    for (const line of text.split(/[\n\r\0]+/)) addFrom(line, add);
  }
  const follower = new LinkFollower();
  const paths: NamedPath[] = [];
  for (const [path, sure] of found) {
    paths.push(...meaningsOf(path, sure, places, follower));
    if (paths.length > mostPaths || follower.gaveUp) {
      unread.add('more paths than are looked at');
      break;
    }
  }
  return paths;
}

const separators = /[,;:|=@?&#!'"`<>()[\]{}\t]+/;

function addFrom(line: string, add: (text: string, sure: boolean) => void): void {
  const pieces = line.split(separators).map(piece => piece.trim());
  const isList = pieces.every(piece => !piece.includes(' '));
  for (const [at, piece] of pieces.entries()) {
    if (isList || looksRooted(piece)) add(piece, isList);
    else if (/[\\/]/.test(piece)) add(piece, false);
    // In the address of a file, the host comes before the path.
    if (/^[\\/]{2}/.test(piece) && !/(https?|wss?)$/i.test(pieces[at - 1] ?? ''))
      add(piece.replace(/^[\\/]+[^\\/]*/, ''), isList);
    if (isList) continue;
    for (const word of piece.split(/\s+/)) if (/[\\/~$]/.test(word)) add(word, false);
  }
}

const looksRooted = (text: string): boolean => /^([\\/~]|\$(HOME|PWD)\b)/i.test(text);

/** Returns the path with `/` alone, without Windows prefixes, and with the home folder in place of its signs. */
function plainPath(text: string, home: string): string {
  const path = text
    .trim()
    .replace(/^["'`]+|["'`]+$/g, '')
    .replaceAll('\\', '/')
    .replace(/^\/[/?]\??[?.]?\/(?:UNC\/)?/i, '/')
    .replace(/^\$(HOME|USERPROFILE)(?=\/|$)/i, () => home)
    .replace(/^\$PWD(?=\/|$)/i, '.');
  const [, user, rest = ''] = /^~([^/]*)(.*)$/s.exec(path) ?? [];
  if (user === undefined) return path;
  if (user === '' || user === basename(home)) return home + rest;
  // The home folder of another user is not known here.
  return /^[a-z_][\w.-]*$/i.test(user) && rest !== '' ? `/${signs.any}${rest}` : path;
}

/** Replaces the wildcards of file name patterns by `signs`. In a text, stars can mean many other things. */
function withPatterns(path: string, isText: boolean): string {
  // A star without any folder is hardly a pattern of paths.
  if (!path.includes('/')) return path;
  const plain = isText ? path : path.replace(/\*{2,}/g, signs.any);
  return plain.replaceAll('*', signs.star).replaceAll('?', signs.one);
}

function meaningsOf(written: string, sure: boolean, places: McpPlaces, follower: LinkFollower): NamedPath[] {
  const { home, own, others, isRemote } = places;
  const isText = !sure || /\s/.test(written);
  const path = withPatterns(written, isText || isRemote);
  const isOpen = path !== written;
  const named = (base: Segments, isOwn: boolean, isRooted: boolean): NamedPath => ({
    meanings: follower.meaningsOf(writtenSegments(path, base)).map(foldedPath),
    ifBelow: isRooted || (sure && !isOpen) ? 'forbidden' : 'unclear',
    // A tool may go through a folder it is given, down to the last one. Whether it does is not known, so a folder above is asked
    // about.
    ifAbove:
      isRemote || !isOwn || (!sure && /^\/+$/.test(path)) || (isText && isOpen) ? 'nothing' : 'unclear',
    isProse: !sure,
  });
  if (path.startsWith('/')) return [named([], true, true)];
  // The server decides which folder a pattern is relative to.
  const folders = new Map((isOpen ? [] : [home, ...others]).map(folder => [folder, false]));
  for (const folder of own) folders.set(folder, true);
  return [...folders].map(([folder, isOwn]) => named(writtenSegments(folder), isOwn && sure, false));
}

/** Returns the addresses in a text. Hosts are compared as a URL parser reads them, whatever their scheme. */
function urlsIn(text: string): URL[] {
  const found: URL[] = [];
  const add = (rest: string): void => {
    const address = `http://${rest.replace(/^[\\/]+/, '')}`;
    if (URL.canParse(address)) found.push(new URL(address));
  };
  for (const [, rest = ''] of text.matchAll(/(?:\bhttps?:[\\/]*|:\/\/|^\/\/)([^\s"'<>`|,;]+)/gi)) add(rest);
  // A host alone.
  if (text.length < 500 && /^[^\s/\\]*[.:][^\s/\\]*([/\\]\S*)?$/.test(text)) add(text);
  return found;
}
