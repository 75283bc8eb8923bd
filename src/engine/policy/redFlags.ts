/** Looks through the text of an agent's files for what a person should see before they trust it. A hint, never a decision. */
import type { RedFlag } from '../../protocol/agentCard.ts';
import { codePointOf, unseen } from '../../protocol/unseen.ts';

type Kind = RedFlag['kind'];

const shell = String.raw`(?:\S*/)?(?:ba|z|da|k|c|fi)?sh`;
const interpreter = String.raw`(?:sudo\s+(?:-\S+\s+)*)?(?:env\s+)?(?:${shell}|(?:\S*/)?(?:python[\d.]*|node|perl|ruby|php|osascript|pwsh|powershell|iex|invoke-expression))`;
const download = '(?:curl|wget|fetch|http|iwr|irm|invoke-webrequest|invoke-restmethod|downloadstring)';
const decoder = String.raw`(?:base64\s+(?:-\w*d|-D|--decode)|base32\s+-d|xxd\s+-\w*r|openssl\s+(?:base64|enc)\b[^|]*\s-d|atob\s*\(|b64decode|frombase64string|fromCharCode|unhexlify|bytes\.fromhex|gunzip\s+-c|zcat)`;

const patterns: readonly [Kind, RegExp][] = [
  ['pipe-to-shell', new RegExp(String.raw`\b${download}\b.*\|\s*${interpreter}(?:\s|$|["'\x60);])`, 'i')],
  [
    'pipe-to-shell',
    new RegExp(String.raw`(?:${shell}\s+-\w*c|eval|source|\.)\s+["']?[$<\x60(]+\s*${download}\b`, 'i'),
  ],
  ['pipe-to-shell', new RegExp(String.raw`(?:${shell}|source|\.)\s+<\(\s*${download}\b`, 'i')],
  ['pipe-to-shell', new RegExp(String.raw`\b(?:iex|invoke-expression)\b.*\b${download}\b`, 'i')],
  ['decode-and-run', new RegExp(String.raw`${decoder}.*\|\s*${interpreter}(?:\s|$|["'\x60);])`, 'i')],
  [
    'decode-and-run',
    new RegExp(String.raw`\b(?:eval|exec|Function|iex|${shell}\s+-\w*c)\b.{0,40}${decoder}`, 'i'),
  ],
  ['decode-and-run', /\b(?:powershell|pwsh)(?:\.exe)?\b.*\s-e(?:nc|ncodedcommand)?\s+[A-Za-z0-9+/=]{16}/i],
  [
    'credential-path',
    /(?:~|\$HOME|\$\{HOME\}|\/home\/\w+|\/Users\/\w+|%USERPROFILE%)?[\\/]?\.(?:ssh[\\/]|aws[\\/]|gnupg[\\/]|kube[\\/]config|docker[\\/]config\.json|netrc\b|npmrc\b|pypirc\b|git-credentials\b|config[\\/](?:gcloud|gh|telos)\b)|\bid_(?:rsa|ed25519|ecdsa)\b|\/etc\/shadow\b|Library\/Keychains|login\.keychain|Login Data\b|wallet\.dat\b|\bsecurity\s+find-(?:generic|internet)-password/i,
  ],
];

const archive = /\b[\w.-]+\.(?:zip|7z|rar|tar\.gz|tgz|dmg)\b/i;
const password =
  /\b(?:pass(?:word|code|phrase)?|pwd|pw)\b\s*(?:is|=|:|-|\()?\s*\S|пароль|密码|contraseña|mot de passe|passwort/i;
/** How far apart archive and password may stand, in lines. */
const near = 3;

/** Tags, zero-width characters, direction marks and variation selectors beyond those that emoji use. */
const invisible =
  /[\u{e0000}-\u{e007f}]|[\u{e0100}-\u{e01ef}]|[\u200b\u2060-\u2064\u202a-\u202e\u2066-\u2069\u180e\ufff9-\ufffb]|(?<!^)\ufeff/u;

const longestText = 200;
const mostOfKind = 10;

/** At most ten of a kind per file. `file` is the name that they are shown with. */
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
  // A command over several lines, as a shell reads it.
  const joined = lines.map((line, index) =>
    line.endsWith('\\') ? line.slice(0, -1) + (lines[index + 1] ?? '') : line,
  );
  for (const [index, line] of joined.entries()) {
    // A line of that length is data; the patterns would take long on it.
    const looked = line.slice(0, 5000);
    for (const kind of new Set(patterns.filter(([, pattern]) => pattern.test(looked)).map(([name]) => name)))
      add(kind, index + 1, looked);
    if (invisible.test(line)) add('invisible-characters', index + 1, line.slice(0, 500));
    if (
      archive.test(looked) &&
      lines.slice(Math.max(0, index - near), index + near + 1).some(l => password.test(l.slice(0, 5000)))
    )
      add('archive-password', index + 1, looked);
  }
  return flags;
}

const withEscapes = (text: string): string => text.replace(new RegExp(unseen.source, 'gu'), codePointOf);
