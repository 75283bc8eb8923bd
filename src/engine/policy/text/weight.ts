/** Says how much a finding weighs, from the table of rules and from what the line does with what was found. */
import type { Finding, FindingLevel } from '@telos/protocol/agentCard';
import { hiding } from '@telos/protocol/text';
import { type Kind, looksOfCard } from './commandLooks.ts';
import table from './rules.json' with { type: 'json' };

export interface Rule {
  level: FindingLevel;
  /** The numbers that others give to it. */
  snyk: readonly string[];
  cisco: readonly string[];
  why: string;
  /** The way of an honest skill. */
  instead: string;
}

export const rules = table.rules as Readonly<Record<Kind, Rule>>;
/** Grows with each change of the table or of what a rule finds. */
export const rulesVersion = table.version;
/** Programs that every machine has. */
export const basePrograms: readonly string[] = table.basePrograms;

/** Kinds of hosts that weigh more when something is run from them or sent to them. */
const hosts: readonly Kind[] = ['paste-host', 'webhook-host', 'tunnel-host', 'short-link', 'bare-address'];
const runs =
  /\b(?:execute|run|paste|launch|double-?click|install)\b.{0,80}\b(?:commands?|scripts?|snippet|installer|installation|terminal|powershell|binary|file|it)\b|\|\s{0,9}(?:sudo\s+)?(?:ba|z)?sh\b|\bchmod\s+\+x\b/i;
/** Something is sent to a host. */
export const sends =
  /\bcurl\b.{0,200}\s(?:-d|-F|-T|--data\S{0,20}|--form|--upload-file|-X\s{0,3}(?:POST|PUT))\b|\b(?:requests|httpx|axios|session)\.(?:post|put)\s*\((?!\s*\))|\bmethod\b["']?\s{0,3}[:=]\s{0,3}["'](?:POST|PUT)|\bnc\b.{0,80}\d{2,5}\b/i;
/** Chat services of whose webhooks honest skills post to their own. */
const chats = /\b(?:hooks\.slack\.com|discord(?:app)?\.com\/api\/webhooks)\b/i;

/** Commands that fetch, and words that run what a name holds. Without one, a line only looks like running what it downloads. */
const fetchesOrRuns =
  /\b(?:curl|wget|aria2c|iwr|irm|invoke-\w+|downloadstring|iex|eval|exec|source|Function|vm\.run\w+|_compile)\b|\b(?:ba|z|da|k)?sh\s+-\w*c\b|(?:sh|python[\d.]*|node|perl|ruby|php)\s[^|;&]{0,40}<<<|\bhttp\s.{0,200}\|/i;
/** Ways to hand a shell to another machine. They fetch nothing that could be known. */
const givesShell =
  /\/dev\/(?:tcp|udp)\/|\b(?:nc|ncat|socat|mkfifo|fsockopen)\b|\bsocket\b.{0,200}\bdup2\b|\.pipe\s*\(/i;
/** A variable alone, where a shell takes it for a command. */
const variableRun = /(?:^|[;&])\s{0,9}["']?\$\{?\w+\}?["']?\s*$/;
const noShell = /\.(?:[cm]?[jt]sx?|py|rb|go|rs|html|css|json)$/i;

/** The three flags of countries that are written with tags. */
const flags =
  /\u{1f3f4}\u{e0067}\u{e0062}(?:\u{e0065}\u{e006e}\u{e0067}|\u{e0073}\u{e0063}\u{e0074}|\u{e0077}\u{e006c}\u{e0073})\u{e007f}/gu;

/** Returns how much a finding weighs. `line` is the whole command. */
export function levelOf(kind: Kind, line: string, file: string): FindingLevel {
  switch (kind) {
    case 'pipe-to-shell': {
      if (isKnownInstaller(commandsOf(line))) return 'medium';
      return fetchesOrRuns.test(line) ||
        givesShell.test(line) ||
        (variableRun.test(line) && !noShell.test(file))
        ? 'high'
        : 'medium';
    }
    case 'decode-and-run':
      return onlyShowsDecoding(line) ? 'medium' : 'high';
    case 'archive-password':
      return /https?:\/\//i.test(line) || (line.length < 1000 && /\b(?:down)?load/i.test(line))
        ? 'high'
        : 'medium';
    case 'invisible-characters':
      return hiding.test(withoutMarkup(line.replace(flags, ''))) ? 'high' : 'low';
    case 'gains-rights':
      return hasOnlyDockerGroup(line) ? 'medium' : rules[kind].level;
    case 'executable-download':
      return runs.test(line) ? 'high' : 'medium';
    case 'credential-path':
      return sends.test(line) ? 'high' : 'medium';
    default:
      return hosts.includes(kind) && !chats.test(line) && (runs.test(line) || sends.test(line))
        ? 'high'
        : rules[kind].level;
  }
}

/** Characters between marks that have no width, as in a link without words or before a fence that is shown as it is. A few hide nothing. */
const besideMarks = /(?<![\p{L}\p{N}\u200b])\u200b(?![\p{L}\p{N}\u200b])/gu;
const mostBesideMarks = 2;

const withoutMarkup = (line: string): string =>
  (line.match(besideMarks) ?? []).length <= mostBesideMarks ? line.replace(besideMarks, '') : line;

/** The step after an installation of Docker that its own manual gives. */
const dockerGroup = /\b(?:sudo\s+)?(?:usermod|gpasswd|adduser)\b[^|;&\n]{0,60}\bdocker\b(?:\s+\S{1,40})?/gi;
const otherRights =
  /sudoers|NOPASSWD|setcap|localgroup|\b(?:sudo|wheel|root|admin)\b|chmod\s+(?:\S+\s+){0,3}(?:[ugoa]*[+=][rwx]*s|0?[4-7][0-7]{3}\b)/i;

const hasOnlyDockerGroup = (line: string): boolean => {
  const rest = line.replace(dockerGroup, ' ');
  return rest !== line && !otherRights.test(rest);
};

/** Hosts that the standards keep for examples. */
const reservedForExamples = /^(?:[\w-]+\.)*example(?:\.(?:com|org|net))?(?:[/:]|$)/i;

/** Returns what of a line of prose are commands in backticks, if all that is piped in it is in them. Else the whole line. */
function commandsOf(line: string): string {
  const spans = [...line.matchAll(/`([^`\n]{3,1000})`/g)].map(([, span = '']) => span);
  const piped = spans.filter(span => span.includes('|'));
  return piped.length > 0 && !line.replace(/`[^`\n]{3,1000}`/g, '').includes('|') ? piped.join(' ; ') : line;
}

/** Hosts with which texts speak of an attacker. */
const saidOfAttackers = /^(?:[\w-]+\.)*(?:attacker|evil)\.com$/;
const spokenHost = /(?<![\w.@-])(?:attacker|evil)\.com(?![\w.@:-])/g;
const savedAs = /(?:\s-\w{0,8}[oP]|--output(?:-document)?|>{1,2})[\s=]{0,9}[^\s;|&]{1,200}/gi;

/** Returns true for a command that names no address, or only those of installers that many people use. */
function isKnownInstaller(line: string): boolean {
  const address = /\bhttps?:\/\/[^\s"'\x60<>|)]{1,300}/gi;
  const addresses = line.match(address) ?? [];
  // A host may also stand without `https://`, but not where a file is named for what comes.
  const rest = line.replace(address, '').replace(spokenHost, '');
  if (addresses.length === 0 && (rest.includes('$') || givesShell.test(rest))) return false;
  const isNamed = /\b(?:curl|wget|iwr|irm)\b[^|;&]{0,200}[\w-]\.[a-z]/i.test(rest.replace(savedAs, ' '));
  return !isNamed && addresses.every(isKnownAddress);
}

/** Reads an address as the program does that fetches it: a name before `@` is no host, and `..` leads to another place. */
function isKnownAddress(address: string): boolean {
  const [, rest = ''] = /^https:\/\/(?:www\.)?(.*)$/i.exec(address) ?? [];
  if (reservedForExamples.test(rest)) return true;
  if (!URL.canParse(address) || /\.\.|%2e|\\/i.test(rest)) return false;
  const { protocol, username, password, port, hostname, pathname } = new URL(address);
  if (protocol !== 'https:' || username + password + port !== '') return false;
  if (ofAnyone.test(hostname) && rest.includes('$')) return false;
  const place = `${hostname.replace(/^www\./, '')}${pathname}`.toLowerCase();
  return saidOfAttackers.test(hostname) || table.installers.some(known => leadsTo(place, known));
}

/** An installer that ends with a mark is anything that begins so. Any other is that host, or that name with what is below it or its ending. */
const leadsTo = (place: string, known: string): boolean =>
  place.startsWith(known) &&
  (/[/_]$/.test(known) || (known.includes('/') ? /^(?:$|[/.@])/ : /^\//).test(place.slice(known.length)));

/** Hosts where anyone may have a place. What a variable holds there may lead out of the one that is known. */
const ofAnyone = /^(?:github\.com|raw\.githubusercontent\.com|dl\.cloudsmith\.io|deno\.land)$/;

/** Code that is written down to be decoded, as attacks are shown. */
const literalCode = /\b(?:atob|(?:base64\.)?b64decode)\s{0,3}\(\s{0,3}(["'])([^"']{0,1000})\1\s{0,3}\)/gi;
/** A box in a browser, a module that is only named, or nothing. */
const doesNothing =
  /^(?:alert\((?:\d{0,9}|document\.(?:cookie|domain)|(["'])[\w ]{0,40}\1)\);?|import \w+)?$/;
const withoutEmpty = (call: string, _quote: string, code: string): string =>
  doesNothing.test(
    Buffer.from(code.replace(/[^\w+/]/g, ''), 'base64')
      .toString('latin1')
      .trim(),
  )
    ? ''
    : call;

const decoding = looksOfCard.flatMap(({ looks }) => looks.filter(([kind]) => kind === 'decode-and-run'));
const decodes = (line: string): boolean => decoding.some(([, tells]) => tells(line));

function onlyShowsDecoding(line: string): boolean {
  const rest = line.replace(literalCode, withoutEmpty);
  return rest !== line && !decodes(rest) && !decodes(rest.replace(/["'\\]/g, ''));
}

const order: readonly FindingLevel[] = ['low', 'medium', 'high'];

/** Returns true if the level is the given one or a higher one. */
export const isAtLeast = (level: FindingLevel, least: FindingLevel): boolean =>
  order.indexOf(level) >= order.indexOf(least);

type Weighed = Pick<Finding, 'level' | 'file' | 'line'>;

/** Sorts what weighs most to the front, then by place. */
export const byWeight = (one: Weighed, other: Weighed): number =>
  order.indexOf(other.level) - order.indexOf(one.level) ||
  (one.file < other.file ? -1 : one.file > other.file ? 1 : one.line - other.line);
