/** Searches the text of an agent's files for content that a person should see before they trust it. A hint, never a decision. */
import type { RedFlag } from '../../protocol/agentCard.ts';
import { codePointOf, hiding, unseen } from '../../protocol/text.ts';
import { bringsUnpinnedCode, FetchedCode, riskyHostsIn } from './riskyCode.ts';

type Kind = RedFlag['kind'];

const downloading =
  /\b(?:curl|wget|fetch|http|iwr|irm|invoke-webrequest|invoke-restmethod|downloadstring)\b/i;
const decoding =
  /base64\s+(?:-\w*d|-D|--decode)|base32\s+-d|xxd\s+-\w*r|openssl\s+(?:base64|enc)\b[^|]{0,200}\s-d|atob\s*\(|b64decode|frombase64string|fromCharCode|unhexlify|bytes\.fromhex|gunzip\s+-c|zcat|\b(?:printf|echo)\s[^|]{0,20}\\{1,2}(?:x[\da-f]{2}|[0-7]{3})|\|\s*(?:rev|tr)\s/i;
const startupFile = String.raw`\.(?:bashrc|bash_profile|bash_login|bash_aliases|profile|zshrc|zshenv|zprofile|zlogin|kshrc|config\/fish\/config\.fish)\b`;

/** Matches one pattern directly after the other within a line. */
const then = (first: string, more: RegExp): RegExp => new RegExp(`${first}(?:${more.source})`, 'i');
const substitution = String.raw`\s+["']?[$<\x60(]+\s*`;

/**
 * Tests that detect a kind, each on one line. No test may search from many places to the end of the line. The text comes from a
 * stranger, who could make that take as long as they like.
 */
const looks: readonly [Kind, (line: string) => boolean][] = [
  ['pipe-to-shell', line => isPiped(behind(downloading, line))],
  ['pipe-to-shell', line => isSavedAndRun(behind(downloading, line))],
  ['pipe-to-shell', matching(then(String.raw`(?:sh\s+-\w*c|eval|source|\.)${substitution}`, downloading))],
  ['pipe-to-shell', matching(then(String.raw`(?:sh|source|\.)\s+(?:<\(|<<<\s*["']?\$\()\s*`, downloading))],
  ['pipe-to-shell', line => downloading.test(behind(/\b(?:iex|invoke-expression)\b/i, line) ?? '')],
  [
    'pipe-to-shell',
    matching(/\b(?:exec|eval)\s*\(\s*(?:[\w.]{0,60}\burlopen|requests\.get|await fetch)\s*\(/i),
  ],
  ['pipe-to-shell', matching(/(?:^|[;&]\s{0,9})\$\(\s{0,9}(?:curl|wget)\b/i)],
  [
    'pipe-to-shell',
    matching(
      /sh\s+-i\b.{0,60}\/dev\/(?:tcp|udp)\/|\/dev\/(?:tcp|udp)\/.{0,100}\b(?:ba|z|k|da)?sh\b|\b(?:nc|ncat)\b.{0,80}\s-\w{0,6}e\s/i,
    ),
  ],
  ['unpinned-code', bringsUnpinnedCode],
  [
    'runs-later',
    matching(
      /\|\s{0,9}crontab\b|\bcrontab\s+(?:-u\s+\S+\s+)?(?:-(?:\s|$)|-e\b|[\w~$"']?[\w.~$-]{0,60}[./][\w.-])|\/etc\/cron(?:tab\b|\.\w)|\/var\/spool\/cron|\blaunchctl\s+(?:load|bootstrap|enable|submit)\b|\bsystemctl\s+(?:--\w+\s+)?enable\b|\bschtasks\b.{0,9}\/create|\.config\/autostart\/|\bupdate-rc\.d\b|CurrentVersion\\{1,2}Run\b/i,
    ),
  ],
  [
    'runs-later',
    matching(
      new RegExp(
        String.raw`(?:>>?|\btee\s+(?:-a|--append)\s|\bsed\s+-i\b[^|;]{0,200}\s|\bopen\s*\([^)]{0,60})\s{0,9}["']?[\w~\${}/.-]{0,80}${startupFile}`,
        'i',
      ),
    ),
  ],
  ['decode-and-run', line => isPiped(behind(decoding, line))],
  ['decode-and-run', matching(/\$'(?:\\{1,2}(?:x[\da-f]{2}|[0-7]{3})){3}/i)],
  ['decode-and-run', matching(then(String.raw`\b(?:eval|exec|Function|iex|sh\s+-\w*c)\b.{0,40}`, decoding))],
  [
    'decode-and-run',
    line =>
      /\s-e(?:nc|ncodedcommand)?\s+[A-Za-z0-9+/=]{16}/i.test(behind(/\b(?:powershell|pwsh)\b/i, line) ?? ''),
  ],
  [
    'credential-path',
    matching(
      /(?:^|[^\w.])\.(?:ssh[\\/]|aws[\\/]|gnupg[\\/]|kube[\\/]config|docker[\\/]config\.json|netrc\b|npmrc\b|pypirc\b|git-credentials\b|config[\\/](?:gcloud|gh|telos)\b)|\bid_(?:rsa|ed25519|ecdsa)\b|\/etc\/shadow\b|Library\/Keychains|login\.keychain|Login Data\b|wallet\.dat\b|\bsecurity\s+find-(?:generic|internet)-password/i,
    ),
  ],
];

function matching(pattern: RegExp): (line: string) => boolean {
  return line => pattern.test(line);
}

/** Returns the text after the first match. */
function behind(pattern: RegExp, line: string): string | undefined {
  const match = pattern.exec(line);
  return match ? line.slice(match.index + match[0].length) : undefined;
}

const interpreter =
  /^(?:(?:ba|z|da|k|c|fi)?sh|\$\{?shell\}?|python[\d.]*|node|deno|bun|perl|ruby|php|osascript|pwsh|powershell|iex|invoke-expression)$/i;
/** Words that can come before the program that is run. */
const carrier = /^(?:sudo|env|exec|command|nohup|time|nice|xargs|busybox|toybox|-\S*|\w+=\S*)$/i;
/**
 * An interpreter with a program of its own, given with `-c` or the like or as a file. It reads the piped text as data, unless its
 * program runs that text in turn.
 */
const ownProgram =
  /^\s*(?:sudo\s+)?(?:\S*\/)?(?:python[\d.]*|node|deno|bun|perl|ruby|php)\s+(?:-m\s+json\.tool\b|(?:-[a-z]{1,3}\s+)?[\w./~$-]+\.(?:py|js|mjs|cjs|ts|rb|pl|php)\b|-[a-z]{0,3}[cepr]\b)/i;
const runsInTurn =
  /\b(?:exec|eval|compile|system|popen|spawn\w*|subprocess|Function|child_process|runpy|vm)\b/i;

/** Returns the program and its first operand, without flags and without their folders. */
function programIn(command: string): [program: string, operand: string] {
  const words = command.trim().split(/\s+/, 16);
  const [program = '', operand = ''] = words.filter(word => !carrier.test(word)).map(fileName);
  return [program, operand];
}

const fileName = (word: string): string => /([^/]*)$/.exec(word.replace(/["'\x60);&}].*$/s, ''))?.[1] ?? '';

function isPiped(rest: string | undefined): boolean {
  if (rest === undefined || !rest.includes('|')) return false;
  const [, ...receivers] = rest.replaceAll('||', ';').split('|');
  return receivers.some(
    (receiver, at) =>
      interpreter.test(programIn(receiver)[0]) &&
      !(ownProgram.test(receiver) && !runsInTurn.test(receivers.slice(at).join('|'))),
  );
}

/** Returns true for a line such as `curl -o install.sh … && sh install.sh`. */
function isSavedAndRun(rest: string | undefined): boolean {
  if (rest === undefined) return false;
  const [first = '', ...later] = rest.split(/&&|;/);
  const saved = [/(?:\s-\w*o|--output|--output-document|>)[\s=]*([^\s>]+)/i, /https?:\/\/(\S+)/i];
  const names = saved.map(pattern => fileName(pattern.exec(first)?.[1] ?? '')).filter(Boolean);
  return later.some(command => {
    const [program, operand] = programIn(command);
    return names.includes(program) || (interpreter.test(program) && names.includes(operand));
  });
}

/** Number of lines after the download in which a saved file can be run. */
const soon = 6;

function isSavedAndRunLater(lines: readonly string[], start: number): boolean {
  const rest = behind(downloading, (lines[start] ?? '').slice(0, piece));
  if (rest === undefined) return false;
  const later = lines.slice(start + 1, start + 1 + soon).map(line => line.slice(0, overlap));
  return isSavedAndRun([rest, ...later].join(' ; '));
}

const archive = /[\w-]\.(?:zip|7z|rar|tar\.gz|tgz|dmg)\b/i;
const password =
  /\b(?:pass(?:word|code|phrase)?|pwd|pw)\b\s*\S|пароль|密码|contraseña|mot de passe|passwort/i;
/** Largest distance between archive and password, in lines. */
const near = 3;

/** Emoji use one selector at a time, and files a byte order mark at their beginning. */
const invisible = new RegExp(`${hiding.source}|[\\ufe00-\\ufe0f]{2}|(?<!^)\\ufeff`, 'u');

/** Length of a line that is examined at once, in characters. The next piece repeats some of the text before it. */
const piece = 5000;
const overlap = 1000;
/** Largest number of lines of one command. */
const mostJoined = 8;

const longestText = 200;
const mostOfKind = 10;

/** Returns at most ten flags of a kind per file. `file` is the name that they are shown with. */
export function findRedFlags(text: string, file: string): RedFlag[] {
  const flags: RedFlag[] = [];
  const count = new Map<Kind, number>();
  const add = (kind: Kind, line: number, shown: string): void => {
    const seen = (count.get(kind) ?? 0) + 1;
    count.set(kind, seen);
    if (seen > mostOfKind) return;
    flags.push({ kind, file, line, text: withEscapes(shown.trim()).slice(0, longestText) });
  };
  const lines = text.split('\n');
  const isNear = lines.map(line => line !== '' && password.test(line));
  const fetched = new FetchedCode();
  for (const [index, line] of lines.entries()) {
    // Without any other character, the line only says that a command continues.
    if (!/[^ \t\r\\|&]/.test(line)) continue;
    const found = new Set<Kind>();
    for (const looked of piecesOf(joinedFrom(lines, index))) {
      // To a shell, quotes and escapes within a word do not matter.
      const plain = looked.replace(/["'\\]/g, '');
      for (const [kind, tells] of looks) {
        if (found.has(kind) || !(tells(looked) || (plain !== looked && tells(plain)))) continue;
        found.add(kind);
        add(kind, index + 1, looked);
      }
    }
    if (!found.has('pipe-to-shell') && isSavedAndRunLater(lines, index)) {
      found.add('pipe-to-shell');
      add('pipe-to-shell', index + 1, line);
    }
    for (const kind of riskyHostsIn(line)) add(kind, index + 1, line.slice(0, 500));
    if (fetched.isRunBy(line, isPiped) && !found.has('pipe-to-shell')) add('pipe-to-shell', index + 1, line);
    if (invisible.test(line)) add('invisible-characters', index + 1, line.slice(0, 500));
    if (archive.test(line) && isNear.slice(Math.max(0, index - near), index + near + 1).includes(true))
      add('archive-password', index + 1, line.slice(0, piece));
  }
  return flags;
}

/** A program that begins in a line with `-c "` and continues over further lines. */
const openProgram = /\|\s*(?:python[\d.]*|node|perl|ruby|php)\s+-[cepr]\s+(["'])(?:(?!\1).){0,500}$/;
const mostOfProgram = 40;

/** Returns a command over several lines, as a shell reads it. */
function joinedFrom(lines: readonly string[], start: number): string {
  let joined = lines[start] ?? '';
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

const withEscapes = (text: string): string => text.replace(new RegExp(unseen.source, 'gu'), codePointOf);
