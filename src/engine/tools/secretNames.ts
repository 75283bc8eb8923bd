/** Tells by its names what holds secrets: it is read only when a person has agreed, and never searched. */
import { secretNames } from './knownNames.ts';
import { nameMatcher, placeMatcher, sourceOf } from './namePatterns.ts';

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
