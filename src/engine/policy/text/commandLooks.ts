/** Finds the lines of a text that download and run, decode and run, run later, or name places of keys. */
import type { RedFlag } from '@telos/protocol/agentCard';
import { bringsUnpinnedCode } from './riskyCode.ts';

export type Kind = RedFlag['kind'];

const downloading =
  /\b(?:curl|wget|fetch|http|iwr|irm|invoke-webrequest|invoke-restmethod|downloadstring)\b/i;
const decoding =
  /base64\s+(?:-\w*d|-D|--decode)|base32\s+-d|xxd\s+-\w*r|openssl\s+(?:base64|enc)\b[^|]{0,200}\s-d|atob\s*\(|b64decode|frombase64string|fromCharCode|unhexlify|bytes\.fromhex|gunzip\s+-c|zcat|\b(?:printf|echo)\s[^|]{0,20}\\{1,2}(?:x[\da-f]{2}|[0-7]{3})|\|\s*(?:rev\s|tr\s+(?!-[dsc]|["']?(?:\\\w|[^"'])["']?\s|["']?(?:A-Z["']?\s+["']?a-z|a-z["']?\s+["']?A-Z|\[:upper:\]|\[:lower:\])["']?(?:\s|$)))/i;
/** Words of `downloading`, and of what else fetches. */
const downloads = [
  'curl',
  'wget',
  'fetch',
  'http',
  'iwr',
  'irm',
  'invoke-',
  'downloadstring',
  'urlopen',
  'requests',
];
const startupFile = String.raw`\.(?:bashrc|bash_profile|bash_login|bash_aliases|profile|zshrc|zshenv|zprofile|zlogin|kshrc|config\/fish\/config\.fish)\b`;

/** Matches one pattern directly after the other within a line. */
const then = (first: string, more: RegExp): RegExp => new RegExp(`${first}(?:${more.source})`, 'i');
const substitution = String.raw`\s+["']?[$<\x60(]+\s*`;

/** Tests for lines, with words of which a line must have one before any of them can be true. */
export interface Looks {
  /** The first three characters of each count. A blank stands for anything but a letter or a digit. Without words, every line is tested. */
  words: readonly string[];
  looks: readonly [Kind, (line: string) => boolean][];
}

/**
 * Tests that detect a kind, each on one line. No test may search from many places to the end of the line. The text comes from a
 * stranger, who could make that take as long as they like.
 */
export const looksOfCard: readonly Looks[] = [
  {
    words: downloads,
    looks: [
      ['pipe-to-shell', line => line.includes('|') && isPiped(behind(downloading, line))],
      ['pipe-to-shell', line => /&&|;/.test(line) && isSavedAndRun(behind(downloading, line))],
      [
        'pipe-to-shell',
        matching(then(String.raw`(?:sh\s+-\w*c|eval|source|\.)${substitution}`, downloading)),
      ],
      [
        'pipe-to-shell',
        matching(then(String.raw`(?:sh|source|\.)\s+(?:<\(|<<<\s*["']?\$\()\s*`, downloading)),
      ],
      ['pipe-to-shell', line => downloading.test(behind(/\b(?:iex|invoke-expression)\b/i, line) ?? '')],
      [
        'pipe-to-shell',
        matching(/\b(?:exec|eval)\s*\(\s*(?:[\w.]{0,60}\burlopen|requests\.get|await fetch)\s*\(/i),
      ],
      ['pipe-to-shell', matching(/(?:^|[;&]\s{0,9})\$\(\s{0,9}(?:curl|wget)\b/i)],
    ],
  },
  {
    words: ['tcp', 'udp', 'nc ', 'ncat'],
    looks: [
      [
        'pipe-to-shell',
        matching(
          /sh\s+-i\b.{0,60}\/dev\/(?:tcp|udp)\/|\/dev\/(?:tcp|udp)\/.{0,100}\b(?:ba|z|k|da)?sh\b|\b(?:nc|ncat)\b(?:(?![;|&]\s{0,9}(?:echo|printf)\b).){0,80}\s-\w{0,6}e\s/i,
        ),
      ],
    ],
  },
  {
    words: ['dup2', 'stdin', 'fsockopen', 'mkfifo', 'socat'],
    looks: [
      [
        'pipe-to-shell',
        matching(
          /\bos\.dup2\s*\(\s*\w{1,40}\.fileno\b|\bopen\s*\(\s*STDIN\s*,\s*["']<?>?&|\bfsockopen\b.{0,120}\b(?:exec|system|passthru|popen|proc_open)\s*\(|\bmkfifo\b.{0,120}\bsh\s+-i\b|\bsocat\b.{0,120}\bexec:["']?[\w/]{0,20}sh\b|\b(?:client|socket|sock|conn|connection|net|s|c)\.pipe\s*\(\s*\w{1,20}\.stdin\b/i,
        ),
      ],
    ],
  },
  {
    words: ['npx', 'bunx', 'pnpx', 'uvx', 'dlx', 'run', 'install', ' add', ' i ', 'inject'],
    looks: [['unpinned-code', bringsUnpinnedCode]],
  },
  {
    words: [
      ...['cron', 'launch', 'systemctl', 'systemd', 'schtasks', 'autostart', 'update-rc', 'currentversion'],
      ...['register-', 'profile.d', 'rc.local', 'preload', 'at '],
    ],
    looks: [
      [
        'runs-later',
        matching(
          /\|\s{0,9}crontab\b|\bcrontab\s+(?:-u\s+\S+\s+)?(?:-(?:\s|$)|-e\b|[\w~$"']?[\w.~$-]{0,60}[./][\w.-])|\/etc\/cron(?:tab\b|\.\w)|\/var\/spool\/cron|\blaunchctl\s+(?:load|bootstrap|enable|submit)\b|\bsystemctl\s+(?:--\w+\s+)?enable\b|\bschtasks\b.{0,9}\/create|\.config\/autostart\/|\bupdate-rc\.d\b|CurrentVersion\\{1,2}Run(?:Once)?\b/i,
        ),
      ],
      [
        'runs-later',
        matching(
          /\bsystemd\/(?:user|system)\/[\w@.-]{0,60}\.(?:service|timer|path|socket)\b|\bsystemd-run\b.{0,120}\s--on-\w|\bLibrary\/Launch(?:Agents|Daemons)\/|\bRegister-ScheduledTask\b|\/etc\/(?:profile\.d\/\w|rc\.local\b|ld\.so\.preload\b)|\|\s{0,9}at\s+(?:now|noon|midnight|tomorrow|-\w|\d)/i,
        ),
      ],
    ],
  },
  {
    words: ['sudoers', 'nopasswd', 'chmod', 'usermod', 'gpasswd', 'adduser', 'setcap', 'localgroup'],
    looks: [
      [
        'gains-rights',
        matching(
          /\/etc\/sudoers\b|\bNOPASSWD\s*:|\bchmod\s+(?:-\w{1,6}\s+){0,3}(?:[ugoa]{0,4}[+=][rwx]{0,3}s|0?[4-7][0-7]{3}\b)|\b(?:usermod|gpasswd|adduser)\b.{0,60}\b(?:sudo|wheel|docker|root|admin)\b|\bsetcap\s+\S{0,60}cap_|\blocalgroup\s+administrators\b.{0,60}\/add\b/i,
        ),
      ],
    ],
  },
  {
    words: ['stratum', 'xmrig', 'minerd', 'cpuminer', 'ethminer', 'nbminer'],
    looks: [
      [
        'mines-coins',
        matching(
          /\bstratum2?\+(?:tcp|ssl|tls|udp):\/\/["']?[\w$[{<%]|\b(?:xmrig|minerd|cpuminer|ethminer|nbminer)\b/i,
        ),
      ],
    ],
  },
  {
    words: ['bash', 'profile', 'zsh', 'zprofile', 'zlogin', 'kshrc', 'config'],
    looks: [
      [
        'runs-later',
        matching(
          new RegExp(
            String.raw`(?:>>?|\btee\s+(?:-a|--append)\s|\bsed\s+-i\b[^|;]{0,200}\s|\bopen\s*\([^)]{0,60})\s{0,9}["']?[\w~\${}/.-]{0,80}${startupFile}`,
            'i',
          ),
        ),
      ],
    ],
  },
  {
    words: [
      ...['base64', 'base32', 'b64', 'xxd', 'openssl', 'atob', 'frombase64', 'fromcharcode', 'unhexlify'],
      ...['bytes.fromhex', 'gunzip', 'zcat', 'printf', 'echo', 'rev', 'tr '],
    ],
    looks: [
      ['decode-and-run', line => line.includes('|') && isPiped(behind(decoding, line))],
      [
        'decode-and-run',
        matching(
          then(
            String.raw`\b(?:eval|exec|iex|sh\s+-\w*c)\b(?:\s{1,9}--)?[^\w\s+]{0,3}\s{0,9}["'\x60$<([&].{0,60}`,
            decoding,
          ),
        ),
      ],
      ['decode-and-run', matching(/\bFunction\b.{0,40}(?:atob\s*\(|fromCharCode|base64)/)],
    ],
  },
  { words: [], looks: [['decode-and-run', matching(/\$'(?:\\{1,2}(?:x[\da-f]{2}|[0-7]{3})){3}/i)]] },
  {
    words: ['powershell', 'pwsh'],
    looks: [
      [
        'decode-and-run',
        line =>
          /\s-e(?:nc|ncodedcommand)?\s+[A-Za-z0-9+/=]{16}/i.test(
            behind(/\b(?:powershell|pwsh)\b/i, line) ?? '',
          ),
      ],
    ],
  },
  {
    words: [
      ...['ssh', 'aws', 'gnupg', 'kube', 'docker', 'netrc', 'npmrc', 'pypirc', 'git-credentials', 'config'],
      ...['rsa', 'ed25519', 'ecdsa', 'shadow', 'keychain', 'login', 'wallet', 'security'],
    ],
    looks: [
      [
        'credential-path',
        matching(
          /(?:^|[^\w.])\.(?:ssh[\\/]|aws[\\/]|gnupg[\\/]|kube[\\/]config|docker[\\/]config\.json|netrc\b|npmrc\b|pypirc\b|git-credentials\b|config[\\/](?:gcloud|gh|telos)\b)|\bid_(?:rsa|ed25519|ecdsa)\b|\/etc\/shadow\b|Library\/Keychains|login\.keychain|Login Data\b|wallet\.dat\b|\bsecurity\s+find-(?:generic|internet)-password/i,
        ),
      ],
    ],
  },
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

export function isPiped(rest: string | undefined): boolean {
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
/** Largest number of lines of one command. */
export const mostJoined = 40;

export function isSavedAndRunLater(lines: readonly string[], start: number): boolean {
  const rest = behind(downloading, (lines[start] ?? '').slice(0, 5000));
  if (rest === undefined) return false;
  let next = start + 1;
  // The lines of the download itself were read with it.
  while (next < start + mostJoined && /\\\s*$/.test((lines[next - 1] ?? '').slice(-20))) next++;
  const later = lines.slice(next, next + soon).map(line => line.slice(0, 1000));
  return isSavedAndRun([rest, ...later].join(' ; '));
}
