/** Reads the difference of two trees as `git diff-tree` prints it: which files, how many lines, and the text. */

export interface ChangedFile {
  path: string;
  /** Before it was renamed or copied. */
  from?: string;
  /** `A`, `D`, `M`, `R` and so on. */
  letter: string;
  /** Blobs; only zeros where there is none. */
  before: string;
  after: string;
  /** It has become a link to a commit of another repository. */
  isRepository: boolean;
}

export interface Difference {
  files: ChangedFile[];
  /** Lines. */
  added: number;
  removed: number;
  patch: string;
}

/** With these, `readDifference` understands what git prints. */
export const differenceOptions = [
  ...['-r', '-M', '-z', '--raw', '--numstat', '-p', '--no-abbrev'],
  ...['--no-ext-diff', '--no-textconv', '--no-color'],
];

/**
 * Reads a line with the two trees, raw records, records with numbers of lines, and behind an empty record the text. Each record ends
 * with a NUL; a file that was moved has its two names in records of their own.
 */
export function readDifference(printed: string): Difference {
  const found: Difference = { files: [], added: 0, removed: 0, patch: '' };
  let at = printed.indexOf('\n') + 1;
  const record = (): string => {
    const end = printed.indexOf('\0', at);
    const text = printed.slice(at, end < 0 ? undefined : end);
    at = end < 0 ? printed.length : end + 1;
    return text;
  };
  while (printed[at] === ':') {
    const [mode = '', next = '', before = '', after = '', letter = ''] = record().slice(1).split(' ');
    const first = record();
    const isMoved = /^[RC]/.test(letter);
    const isRepository = next === '160000' && mode !== '160000';
    const path = isMoved ? record() : first;
    const file = { path, letter: letter.charAt(0), before, after, isRepository };
    found.files.push(isMoved ? { ...file, from: first } : file);
  }
  for (let count = 0; count < found.files.length; count++) {
    const [added, removed, path] = record().split('\t');
    found.added += Number(added) || 0;
    found.removed += Number(removed) || 0;
    if (path === '') for (const _ of ['old', 'new']) record();
  }
  if (printed[at] === '\0') at++;
  found.patch = printed.slice(at);
  return found;
}
