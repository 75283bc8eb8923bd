/** Searches the text of an agent's files for content that a person should see before they trust it. A hint, never a decision. */
import type { Finding, RedFlag } from '@telos/protocol/agentCard';
import { beginningOf, Characters, codePointOf, hiding, unseen } from '@telos/protocol/text';
import {
  isPiped,
  isSavedAndRunLater,
  type Kind,
  type Looks,
  looksOfCard,
  mostJoined,
} from './commandLooks.ts';
import { looksOfScan } from './instructionLooks.ts';
import { FetchedCode, fetchWords, riskyHostsIn } from './riskyCode.ts';
import { withoutSecret } from './secretShapes.ts';
import { levelOf, rules } from './weight.ts';
import { beyondAscii, WordMasks } from './wordMasks.ts';

const archive = /[\w-]\.(?:zip|7z|rar|tar\.gz|tgz|dmg)\b/i;
const password =
  /\b(?:pass(?:word|code|phrase)?|pwd|pw)\b\s*\S|пароль|密码|contraseña|mot de passe|passwort/i;
/** Largest distance between archive and password, in lines. */
const near = 3;

/** Emoji use one selector at a time, and files a byte order mark at their beginning. */
const invisible = new Characters(`${hiding.source}|[\\ufe00-\\ufe0f]{2}|(?<!^)\\ufeff`);

/** Length of a line that is examined at once, in characters. The next piece repeats some of the text before it. */
const piece = 5000;
const overlap = 1000;

const longestText = 200;
const mostOfKind = 10;

/** Tests for the lines of a text, and the masks that say which of them a line needs. */
export interface LookSet {
  looks: readonly Looks[];
  masks: WordMasks;
}

/** The groups of words that stand before those of the looks. */
const [ofFetching, ofArchive] = [1, 2];
const own = [fetchWords, ['zip', '.7z', 'rar', 'tar', 'tgz', 'dmg']];
const ofLooks = ~beyondAscii & ~ofFetching & ~ofArchive;

const lookSet = (looks: readonly Looks[]): LookSet => ({
  looks,
  masks: new WordMasks([...own, ...looks.map(({ words }) => words)]),
});

/** Made at the first text, which most starts do not look at. */
let ofCard: LookSet | undefined;
let ofScan: LookSet | undefined;

/** Returns at most ten flags of a kind per file. `file` is the name that they are shown with. */
export function findRedFlags(text: string, file: string): RedFlag[] {
  const flags: RedFlag[] = [];
  const count = new Map<Kind, number>();
  ofCard ??= lookSet(looksOfCard);
  lookAtLines(text, ofCard, (kind, line, shown) => {
    const seen = (count.get(kind) ?? 0) + 1;
    count.set(kind, seen);
    if (seen <= mostOfKind) flags.push({ kind, file, line, text: shownLine(shown) });
  });
  return flags;
}

/** Returns what the look before finds in a text: at most ten of a kind and a level. */
export function findingsInText(text: string, file: string): Finding[] {
  const findings: Finding[] = [];
  const count = new Map<string, number>();
  const enough = new Set<Kind>();
  const add = (kind: Kind, line: number, shown: string): void => {
    const level = levelOf(kind, shown, file);
    const seen = (count.get(kind + level) ?? 0) + 1;
    count.set(kind + level, seen);
    // What a skill is able to do is said once.
    if (rules[kind].level === 'low') enough.add(kind);
    if (seen <= mostOfKind) findings.push({ kind, level, file, line, text: shownLine(withoutSecret(shown)) });
  };
  ofScan ??= lookSet([...looksOfCard, ...looksOfScan]);
  lookAtLines(text, ofScan, add, enough);
  return findings;
}

/** Returns a line with escapes for what cannot be seen, shortened. */
export const shownLine = (line: string): string =>
  beginningOf(unseen.replacedIn(line.trim(), codePointOf), longestText);

/**
 * Calls `add` with each kind that a line has, the number of the line, and the command as a shell reads it. Looks for no kind that is in
 * `enough` by then.
 */
function lookAtLines(
  text: string,
  { looks, masks }: LookSet,
  add: (kind: Kind, line: number, shown: string) => void,
  enough?: ReadonlySet<Kind>,
): void {
  const lines = text.split('\n');
  const isNearPassword = passwordsNear(lines);
  let fetched: FetchedCode | undefined;
  const found = new Set<Kind>();
  const maskOf = masks.of(text);
  let number = 0;
  const report = (kind: Kind, shown: string): void => {
    found.add(kind);
    add(kind, number, shown);
  };
  for (let index = 0; index < lines.length; index++) {
    const mask = maskOf[index]!;
    const line = lines[index] ?? '';
    // Without any other character, the line only says that a command continues.
    if (line === '' || !/[^ \t\r\\|&]/.test(line)) continue;
    if (found.size > 0) found.clear();
    number = index + 1;
    const whole = joinedFrom(lines, index);
    // Of a command over several lines, the mask says only what its first line has.
    const bits = whole.length > line.length ? ofLooks : mask & ofLooks;
    if (bits !== 0 || line.includes("$'")) {
      for (const looked of piecesOf(whole)) {
        // To a shell, quotes and escapes within a word do not matter.
        const plain = /["'\\]/.test(looked) ? looked.replace(/["'\\]/g, '') : looked;
        for (let at = 0; at < looks.length; at++) {
          const { words, looks: tests } = looks[at]!;
          if (words.length > 0 && (bits & (1 << (own.length + at))) === 0) continue;
          for (const [kind, tells] of tests) {
            if (found.has(kind) || enough?.has(kind)) continue;
            if (tells(looked) || (plain !== looked && tells(plain))) report(kind, looked);
          }
        }
      }
    }
    if (mask & ofFetching) {
      fetched ??= new FetchedCode();
      if (!found.has('pipe-to-shell') && isSavedAndRunLater(lines, index)) report('pipe-to-shell', line);
    }
    for (const kind of riskyHostsIn(line)) report(kind, beginningOf(line, 500));
    if (fetched?.isRunBy(line, isPiped) && !found.has('pipe-to-shell')) report('pipe-to-shell', line);
    if (mask & beyondAscii && invisible.test(line)) report('invisible-characters', beginningOf(line, 500));
    if (mask & ofArchive && archive.test(line) && isNearPassword(index))
      report('archive-password', line.slice(0, piece));
  }
}

/** Returns a test for lines that have a password in them or a few lines away. */
function passwordsNear(lines: readonly string[]): (index: number) => boolean {
  let has: boolean[] | undefined;
  return index => {
    has ??= lines.map(line => line !== '' && password.test(line));
    return has.slice(Math.max(0, index - near), index + near + 1).includes(true);
  };
}

/** A program that begins in a line with `-c "` and continues over further lines. */
const openProgram = /\|\s*(?:python[\d.]*|node|perl|ruby|php)\s+-[cepr]\s+(["'])(?:(?!\1).){0,500}$/;
const mostOfProgram = 40;

/** Returns a command over several lines, as a shell reads it. */
function joinedFrom(lines: readonly string[], start: number): string {
  let joined = lines[start] ?? '';
  if (!joined.includes('|') && !/[\\&]\s*$/.test(joined.slice(-20))) return joined;
  const [, quote] = (joined.includes('|') && openProgram.exec(joined.slice(-1000))) || [];
  if (quote !== undefined) {
    const rest = lines.slice(start + 1, start + 1 + mostOfProgram);
    const end = rest.findIndex(line => line.includes(quote));
    // A program whose end is not seen could do anything.
    return end < 0 ? `${joined} exec` : [joined, ...rest.slice(0, end + 1)].join('\n');
  }
  for (let at = start + 1; at < lines.length && at < start + mostJoined; at++) {
    // A row of a table ends with a pipe as well.
    if (!/(?:\\|&&|\|)\s*$/.test(joined.slice(-20)) || joined.startsWith('|')) break;
    joined = joined.replace(/\\\s*$/, '') + lines[at];
  }
  return joined;
}

function* piecesOf(line: string): Generator<string> {
  for (let at = 0; at === 0 || at + overlap < line.length; at += piece - overlap)
    yield line.slice(at, at + piece);
}
