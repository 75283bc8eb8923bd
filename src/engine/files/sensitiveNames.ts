/** Compares names and paths with the patterns of the table of known names, in a time that grows with their lengths alone. */
import { agentNames, type ObeyedGroup, obeyedNames, secretNames } from './knownNames.ts';

/** A file system takes no name of more than 255 units; folding can make a few more of them. */
const longestName = 1000;

const hasSigns = (pattern: string): boolean => /[*?[]/.test(pattern);

/** The pattern as the source of a regular expression for one name. */
export const sourceOf = (pattern: string): string =>
  pattern.replace(/\[(!?)([^\]]*)\]|[\s\S]/g, (sign, not: string | undefined, set: string | undefined) => {
    if (set !== undefined) return `[${not ? '^' : ''}${set}]`;
    if (sign === '*') return '[^/]*';
    if (sign === '?') return '[^/]';
    return sign.replace(/[\\^$.|?*+()[\]{}]/, '\\$&');
  });

/** True for a name that is one of the patterns. */
export function nameMatcher(patterns: readonly string[]): (name: string) => boolean {
  const plain = new Set(patterns.filter(pattern => !hasSigns(pattern)));
  // Most of those with a sign are for an ending, which is looked up as well.
  const isForEnding = (pattern: string): boolean =>
    /^\*\.[^.]+$/.test(pattern) && !hasSigns(pattern.slice(1));
  const endings = new Set(patterns.filter(isForEnding).map(pattern => pattern.slice(1)));
  const others = patterns.filter(pattern => hasSigns(pattern) && !isForEnding(pattern));
  const expression = new RegExp(`^(?:${others.map(sourceOf).join('|')})$`);
  return name => {
    if (plain.has(name)) return true;
    const dot = name.lastIndexOf('.');
    if (dot >= 0 && endings.has(name.slice(dot))) return true;
    if (others.length === 0) return false;
    // What is longer is not the name of a file, and two signs in a pattern would take its length squared.
    const isShort = name.length <= 2 * longestName;
    return expression.test(isShort ? name : name.slice(0, longestName) + name.slice(-longestName));
  };
}

/** True for a path, with `/` between its parts, of which parts in a row are one of the patterns. */
export function placeMatcher(patterns: readonly string[]): (path: string) => boolean {
  const isPlace = nameMatcher(patterns.filter(pattern => !pattern.includes('/')));
  const longer = new Map<string, (readonly ((name: string) => boolean)[])[]>();
  for (const [first = '', ...rest] of patterns.map(pattern => pattern.split('/'))) {
    if (rest.length === 0) continue;
    const tests = rest.map(part => nameMatcher([part]));
    longer.set(first, [...(longer.get(first) ?? []), tests]);
  }
  return path => {
    const parts = path.split('/');
    return parts.some(
      (part, at) =>
        isPlace(part) ||
        longer.get(part)?.some(tests => tests.every((test, index) => test(parts[at + 1 + index] ?? ''))),
    );
  };
}

/** A path as a tolerant file system sees it: case, invisible characters, trailing dots and spaces, and the names of streams do not count. */
export function folded(path: string): string {
  return plainText(path)
    .toLowerCase()
    .split(/[\\/]/)
    .map(part => (/[. ]$|:\$/.test(part) ? tidied(part) : part))
    .join('/');
}

/** From the first of them only: tried from each, a long row of dots would take its length squared. */
const tidied = (part: string): string =>
  part.replace(/:[^:]*:\$\w+$/, '').replace(/(?<![. ])[. ]+$/, '') || part;

/** Most paths are plain, and the rest of the work is for the others alone. In capitals, letters meet that a file system takes for the same. */
const plainText = (path: string): string =>
  /^[\x00-\x7f]*$/.test(path)
    ? path
    : path
        .normalize('NFKC')
        .replace(/[\p{Default_Ignorable_Code_Point}\p{Cf}]/gu, '')
        .toUpperCase();

/** A `/` at the end belongs to the name of a folder. */
export const nameOf = (foldedPath: string): string => {
  const path = foldedPath.endsWith('/') ? foldedPath.slice(0, -1) : foldedPath;
  return path.slice(path.lastIndexOf('/') + 1);
};

const { places, hidden, files, words, endings } = secretNames;

const isPlain = (pattern: string): boolean => !/[*?[/]/.test(pattern);

/** Folders that are secret with all that lies in them, as far as one plain name tells. */
export const secretFolderNames: readonly string[] = places.filter(isPlain);

/** The same for places that more than one name tells, for a search that starts above all of them. */
export const secretPlaceGlobs: readonly string[] = [...places.filter(place => !isPlain(place)), ...hidden];

/** Names of secret files, for programs that search by themselves and are told to mind no case. */
export const secretFileGlobs: readonly string[] = [
  ...hidden,
  ...files,
  ...words.flatMap(word => endings.map(ending => `*${word}.${ending}`)),
];

const isSecretPlace = placeMatcher([...places, ...hidden]);
const isKnownFile = nameMatcher(files);
const ofText = new Set(endings);
const lastWord = new RegExp(`(?:${words.map(sourceOf).join('|')})$`);

function isSecretFile(name: string): boolean {
  if (isKnownFile(name)) return true;
  const dot = name.lastIndexOf('.');
  return ofText.has(name.slice(dot + 1)) && lastWord.test(name.slice(0, dot));
}

/** What editors and people put behind the name of a file that they keep as it was. */
const ofCopy = /(?:~|\.(?:bak|old|orig|save|saved|backup|copy|swp|tmp))$/;

/** What systems put into the name of a copy, before its ending. */
const ofSecondCopy = /(?: \(\d{1,3}\)| (?:- )?copy(?: \d{1,3})?)(?=(?:\.[^./]*)?$)/;

/** True for a path that by its names holds keys, passwords or tokens. */
export function isSensitive(path: string): boolean {
  const plain = folded(path);
  if (isSecretPath(plain)) return true;
  const original = plain.replace(ofCopy, '').replace(ofSecondCopy, '');
  return original !== plain && isSecretPath(original);
}

const isSecretPath = (plain: string): boolean => isSecretPlace(plain) || isSecretFile(nameOf(plain));

/** True when `path` is `folder` or lies below it, however either is spelt. Both absolute and real. */
export function isInsideFolded(folder: string, path: string): boolean {
  return `${folded(path)}/`.startsWith(`${folded(folder).replace(/\/$/, '')}/`);
}

export interface Obeyed {
  kind: 'agent' | 'program';
  /** Who runs or obeys it, in a few words. */
  by: string;
}

interface ObeyedMatcher extends Obeyed {
  isFile: (name: string) => boolean;
  isAnywhere: (path: string) => boolean;
  isInWork: (path: string) => boolean;
}

const matcher = (kind: Obeyed['kind'], { by, files = [], anywhere = [], inWork = [] }: ObeyedGroup) => ({
  kind,
  by,
  isFile: nameMatcher(files),
  isAnywhere: placeMatcher(anywhere),
  isInWork: placeMatcher(inWork),
});

const matchers: readonly ObeyedMatcher[] = [
  matcher('agent', agentNames),
  ...obeyedNames.map(group => matcher('program', group)),
];

/**
 * What later runs or obeys the file at `path`, and who does; undefined for an ordinary file. `inWork` is the path below the folder of the work,
 * or the path itself when it lies elsewhere: where the user chose to work inside such a folder, that alone is no alarm.
 */
export function obeyedAt(path: string, inWork: string): Obeyed | undefined {
  const plain = folded(path);
  const name = nameOf(plain);
  const below = folded(inWork);
  const found =
    matchers.find(({ isFile }) => isFile(name)) ??
    matchers.find(({ isAnywhere, isInWork }) => isAnywhere(plain) || isInWork(below));
  return found && { kind: found.kind, by: found.by };
}

/** As `obeyedAt`: `agent` for a file that instructs or sets up one, `program` for any other that is run or obeyed. */
export const whatObeys = (path: string, inWork: string): Obeyed['kind'] | undefined =>
  obeyedAt(path, inWork)?.kind;

const codeEnding =
  /\.(?:[cm]?[jt]sx?|py[cdowz]?|sh|bash|zsh|fish|rb|p[lm]|php|lua|jar|class|so(?:\.\d+)*|dylib|dll|node|wasm|exe|com|ps1|bat|cmd|r|jl|exs?|go|rs|swift)$/i;

/** True for a path that by its name holds code, which programs run or load. */
export const isCode = (path: string): boolean => codeEnding.test(folded(path));
