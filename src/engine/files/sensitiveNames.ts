/** Compares names and paths with the table of known names, in a time that grows only linearly with their lengths. */
import { ignored } from '@telos/protocol/text';
import known from './knownNames.json' with { type: 'json' };

/** A group of names, with a few words about the programs or agents that run or obey them. Each text holds several names. */
interface ObeyedGroup {
  by: string;
  anywhere?: readonly string[];
  /** The same, but only below the working folder: a person who chose to work inside one knows about it. */
  inWork?: readonly string[];
  files?: readonly string[];
}

/** Returns the names of the table's lines. */
const namesIn = (lines: readonly string[] = []): string[] =>
  lines.flatMap(line => line.split(' ')).map(name => name.replaceAll('+', ' '));

/** Returns patterns for all variants of a private key's name, except the one that ends in `.pub`. */
const variantsOf = (name: string): string[] => [
  name,
  ...['[!bB]', '[!uU][bB]', '[!pP][uU][bB]', '[!.][pP][uU][bB]'].map(end => `${name}[._-]*${end}`),
];

/** A file system accepts at most 255 units in a name. Folding can make a few more of them. */
const longestName = 1000;

const hasSigns = (pattern: string): boolean => /[*?[]/.test(pattern);

/** Returns the pattern as the source of a regular expression for one name. */
export const sourceOf = (pattern: string): string =>
  pattern.replace(/\[(!?)([^\]]*)\]|[\s\S]/g, (sign, not: string | undefined, set: string | undefined) => {
    if (set !== undefined) return `[${not ? '^' : ''}${set}]`;
    if (sign === '*') return '[^/]*';
    if (sign === '?') return '[^/]';
    return sign.replace(/[\\^$.|?*+()[\]{}]/, '\\$&');
  });

/** Returns a function that makes the test at its first call: a start needs few of the tests in this file. */
function atFirstUse(make: () => (text: string) => boolean): (text: string) => boolean {
  let test: ((text: string) => boolean) | undefined;
  return text => {
    test ??= make();
    return test(text);
  };
}

/** Returns a test for names that match one of the patterns. */
function nameMatcher(patterns: readonly string[]): (name: string) => boolean {
  return atFirstUse(() => {
    const plain = new Set<string>();
    const endings = new Set<string>();
    const beginnings = new Set<string>();
    const tails = new Map<number, Set<string>>();
    const others = new Map<string, string[]>();
    for (const pattern of patterns) {
      // Most patterns with a wildcard are for an ending, for what a name ends in, or for a name with any ending. All are looked up as well.
      if (!hasSigns(pattern)) plain.add(pattern);
      else if (/^\*\.[^.*?[]+$/.test(pattern)) endings.add(pattern.slice(1));
      else if (/^[^*?[]+\.\*$/.test(pattern)) beginnings.add(pattern.slice(0, -1));
      else if (/^\*[^*?[]+$/.test(pattern)) {
        const { length } = pattern.slice(1);
        tails.set(length, (tails.get(length) ?? new Set()).add(pattern.slice(1)));
      } else {
        const first = pattern.charAt(0);
        const start = hasSigns(first) ? '' : first;
        others.set(start, [...(others.get(start) ?? []), pattern]);
      }
    }
    // One expression for all of them would take longer to make than a start takes to find its agents.
    const made = new Map<string, RegExp | undefined>();
    const startingWith = (start: string): RegExp | undefined => {
      if (!made.has(start)) {
        const sources = others.get(start)?.map(sourceOf);
        made.set(start, sources && new RegExp(`^(?:${sources.join('|')})$`));
      }
      return made.get(start);
    };
    return name => {
      // A longer text is not the name of a file. Two wildcards in a pattern would take time that is quadratic in its length.
      const text =
        name.length <= 2 * longestName ? name : name.slice(0, longestName) + name.slice(-longestName);
      if (plain.has(name) || endings.has(text.slice(text.lastIndexOf('.')))) return true;
      for (let dot = text.indexOf('.'); dot >= 0; dot = text.indexOf('.', dot + 1))
        if (beginnings.has(text.slice(0, dot + 1))) return true;
      for (const [length, all] of tails)
        if (text.length >= length && all.has(text.slice(text.length - length))) return true;
      return [text.charAt(0), ''].some(start => startingWith(start)?.test(text) === true);
    };
  });
}

/** Returns a test for paths with `/` between their parts. It is true if consecutive parts match one of the patterns. */
function placeMatcher(patterns: readonly string[]): (path: string) => boolean {
  return atFirstUse(() => {
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
  });
}

/**
 * Returns a path as a tolerant file system sees it. Case, invisible characters, trailing dots and spaces, and stream names do not
 * count.
 */
export function folded(path: string): string {
  return plainText(path)
    .toLowerCase()
    .split(/[\\/]/)
    .map(part => (/[. ]$|:\$/.test(part) ? tidied(part) : part))
    .join('/');
}

/** Removes from the first of the trailing characters only. Trying each one in a long row of dots would take quadratic time. */
const tidied = (part: string): string =>
  part.replace(/:[^:]*:\$\w+$/, '').replace(/(?<![. ])[. ]+$/, '') || part;

/**
 * Most paths are plain ASCII and skip the rest of the work. In upper case, letters become equal that a file system treats as the
 * same.
 */
const plainText = (path: string): string =>
  /^[\x00-\x7f]*$/.test(path) ? path : ignored.replacedIn(path.normalize('NFKC'), () => '').toUpperCase();

/** Returns the last name of a path. A `/` at the end belongs to the name of a folder. */
export const nameOf = (foldedPath: string): string => {
  const path = foldedPath.endsWith('/') ? foldedPath.slice(0, -1) : foldedPath;
  return path.slice(path.lastIndexOf('/') + 1);
};

const places = namesIn(known.secret.places);
const hidden = namesIn(known.secret.hidden);
const secretFiles = (): string[] => [
  ...namesIn(known.secret.privateKeys).flatMap(variantsOf),
  ...namesIn(known.secret.files),
];
/** Last words of file names that hold secrets together with one of `endings`: `prod-secrets.json`, `api_key.txt`. */
const words = namesIn(known.secret.words);
const endings = namesIn(known.secret.endings);

const isPlain = (pattern: string): boolean => !/[*?[/]/.test(pattern);

/** Folders that are secret with everything in them, if one plain name identifies them. */
export const secretFolderNames: readonly string[] = places.filter(isPlain);

/** The same for places identified by several names or a pattern, for a search that starts above all of them. */
export const secretPlaceGlobs: readonly string[] = [...places.filter(place => !isPlain(place)), ...hidden];

const isSecretPlace = placeMatcher([...places, ...hidden]);
const isKnownFile = atFirstUse(() => nameMatcher(secretFiles()));
const ofText = new Set(endings);
const endsInWord = atFirstUse(() => nameMatcher(words.map(word => `*${word}`)));

function isSecretFile(name: string): boolean {
  if (isKnownFile(name)) return true;
  const dot = name.lastIndexOf('.');
  return ofText.has(name.slice(dot + 1)) && endsInWord(name.slice(0, dot));
}

/** Endings that editors and people append to the name of a file they keep as a copy. */
const ofCopy = /(?:~|\.(?:bak|old|orig|save|saved|backup|copy|swp|tmp))$/;

/** Text that systems insert into the name of a copy, before its ending. */
const ofSecondCopy = /(?: \(\d{1,3}\)| (?:- )?copy(?: \d{1,3})?)(?=(?:\.[^./]*)?$)/;

/** Whether a path, by its names, holds keys, passwords or tokens. */
export function isSensitive(path: string): boolean {
  const plain = folded(path);
  if (isSecretPath(plain)) return true;
  const original = plain.replace(ofCopy, '').replace(ofSecondCopy, '');
  return original !== plain && isSecretPath(original);
}

const isSecretPath = (plain: string): boolean => isSecretPlace(plain) || isSecretFile(nameOf(plain));

/** Whether `path` is `folder` or is below it, however either is spelled. Both are absolute and real. */
export function isInsideFolded(folder: string, path: string): boolean {
  return `${folded(path)}/`.startsWith(`${folded(folder).replace(/\/$/, '')}/`);
}

export interface Obeyed {
  kind: 'agent' | 'program';
  /** The programs or agents that run or obey it, in a few words. */
  by: string;
}

interface ObeyedMatcher extends Obeyed {
  isFile: (name: string) => boolean;
  isAnywhere: (path: string) => boolean;
  isInWork: (path: string) => boolean;
}

const matcher = (kind: Obeyed['kind'], { by, files, anywhere, inWork }: ObeyedGroup) => ({
  kind,
  by,
  isFile: atFirstUse(() => nameMatcher(namesIn(files))),
  isAnywhere: atFirstUse(() => placeMatcher(namesIn(anywhere))),
  isInWork: atFirstUse(() => placeMatcher(namesIn(inWork))),
});

const matchers: readonly ObeyedMatcher[] = [
  matcher('agent', known.agents),
  ...known.programs.map(group => matcher('program', group)),
];

/**
 * Returns the programs or agents that later run or obey the file at `path`, or undefined for an ordinary file. `inWork` is the
 * path below the working folder, or the path itself if it is elsewhere. If the user chose to work inside such a folder, that
 * alone is not alarming.
 */
export function obeyedAt(path: string, inWork: string): Obeyed | undefined {
  const plain = folded(path);
  const cached = behindCache(plain);
  const name = nameOf(plain);
  const [whole, below] = cached === undefined ? [plain, folded(inWork)] : [cached, cached];
  const found =
    matchers.find(({ isFile, by }) => isFile(name) && (cached === undefined || by !== managers)) ??
    matchers.find(({ isAnywhere, isInWork }) => isAnywhere(whole) || isInWork(below));
  return found && { kind: found.kind, by: found.by };
}

const managers = 'package managers';

/** Returns what lies in a cache that programs keep among installed packages, from there; undefined for anything else. */
function behindCache(plain: string): string | undefined {
  const [, rest] = /(?:^|\/)node_modules\/\.(?:cache|vite|vite-temp|vitest)\/([\s\S]+)$/.exec(plain) ?? [];
  return rest;
}

/**
 * Returns the names and places that others obey as sources of regular expressions, in lower case, but for those that the programs in `except`
 * obey.
 */
export function obeyedSources(except: ReadonlySet<string>): string[] {
  const groups: readonly ObeyedGroup[] = [known.agents, ...known.programs];
  return groups
    .filter(({ by }) => !except.has(by))
    .flatMap(({ files, anywhere, inWork }) => [...namesIn(files), ...namesIn(anywhere), ...namesIn(inWork)])
    .map(pattern => pattern.split('/').map(sourceOf).join('/'));
}

const isInTable = atFirstUse(() => {
  const groups = [known.agents, ...known.programs] as readonly ObeyedGroup[];
  const obeyed = groups.flatMap(({ files, anywhere, inWork }) => [files, anywhere, inWork].flatMap(namesIn));
  return nameMatcher([...places, ...hidden, ...obeyed].map(pattern => pattern.split('/')[0] ?? ''));
});

/** False for a name that surely means nothing by itself, as nearly all do: one look in place of one for each group of the table. */
export function mayMean(name: string): boolean {
  const plain = folded(name);
  return ofCopy.test(plain) || ofSecondCopy.test(plain) || isInTable(plain) || isSecretFile(plain);
}

/** First names of all places that are identified by several names. */
const startsOfPlaces = atFirstUse(() => {
  const groups = [known.agents, ...known.programs] as readonly ObeyedGroup[];
  const all = [
    ...places,
    ...groups.flatMap(({ anywhere, inWork }) => [...namesIn(anywhere), ...namesIn(inWork)]),
  ];
  return nameMatcher(all.filter(place => place.includes('/')).map(place => place.split('/')[0]!));
});
const mostParts = 4;

/**
 * Whether names in a folder mean what they mean anywhere: no place that is identified by several names goes through the folder. It is
 * then enough to judge a name once, for a walk through thousands of folders.
 */
export const meansNothing = (folder: string): boolean =>
  !folded(folder).split('/').slice(-mostParts).some(startsOfPlaces);

/** Returns only the kind of `obeyedAt`: `agent` for a file that instructs or configures one, `program` for any other. */
export const whatObeys = (path: string, inWork: string): Obeyed['kind'] | undefined =>
  obeyedAt(path, inWork)?.kind;

const codeEnding =
  /\.(?:[cm]?[jt]sx?|py[cdowz]?|sh|bash|zsh|fish|rb|p[lm]|php|lua|jar|class|so(?:\.\d+)*|dylib|dll|node|wasm|exe|com|ps1|bat|cmd|r|jl|exs?|go|rs|swift)$/i;

/** Whether a path, by its name, holds code that programs run or load. */
export const isCode = (path: string): boolean => codeEnding.test(folded(path));
