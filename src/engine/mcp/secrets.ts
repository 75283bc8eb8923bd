/** Finds secrets that an mcp.json contains in plain text: tokens, passwords, keys. They must not be shown anywhere. */
import { existsSync } from 'node:fs';
import { isAbsolute } from 'node:path';

/** Names whose values are always secrets. */
const telling =
  /(?:token|secret|passw(?:or)?d|passphrase|pwd|credential|bearer|cookie|authorization|(?:api|access|private|secret|auth|encryption|signing|service|account)[-_ ]?key|[-_]pat|[-_]pass)s?$/i;
/** Names whose values are secrets unless they read like words. */
const hinting = /(?:key|auth|jwt|dsn|sig|signature|session)s?$/i;
/** The word before the secret in a header. */
const scheme = /^(?:basic|bearer|digest|negotiate|token|api-?key)$/i;
/** Beginnings of the keys of well-known services. */
const knownBeginning =
  /^(?:sk|pk|rk)[-_]|^gh[opsur]_|^github_pat_|^glpat-|^xox[abeprs]-|^(?:AKIA|ASIA)[A-Z\d]{12}|^AIza|^ya29\.|^eyJ[\w-]{8}|^SG\.|^npm_|^hf_|^pypi-|^dop_v1_|^shp(?:at|ss)_|^lin_api_|^ntn_|^secret_/;

/**
 * Returns the secrets among the texts of a server's entry or of the whole file, whatever its shape. Words, numbers, paths
 * and hosts are not secrets. Otherwise a third party's file could hide the content of questions to a person.
 */
export function literalSecrets(written: unknown): string[] {
  return [...new Set(inValue('', written))].filter(isOpaque);
}

/** Returns the secrets in a file that is not JSON, from everything that looks like a name with its text. */
export function secretsInBroken(text: string): string[] {
  // The lengths are limited, because a match is tried at each quote. Thousands of unclosed ones would take minutes.
  const pairs = text.matchAll(/"((?:[^"\\\n]|\\.){0,200})"\s{0,50}:\s{0,50}"((?:[^"\\\n]|\\.){0,8000})"/g);
  return [...new Set([...pairs].flatMap(pair => inText(pair[1]!, pair[2]!)))].filter(isOpaque);
}

/** Returns true for a text that may be a secret. It contains no whitespace, which ends a word of a command or sentence. */
const isOpaque = (text: string): boolean => /^\S+$/.test(text) && !isPlain(text) && !scheme.test(text);

function inValue(name: string, value: unknown): string[] {
  if (typeof value === 'string' || typeof value === 'number') return inText(name, String(value));
  if (Array.isArray(value)) return inWords(value.filter(item => typeof item === 'string'));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => inValue(key, item));
}

/** Returns the secrets in a text. The value of `${VAR}` is known from elsewhere; the text around it may be a secret too. */
function inText(name: string, text: string): string[] {
  const inside = text.includes('":') ? secretsInBroken(text) : [];
  const around = text.split(/\$\{\w*\}/).flatMap(part => {
    if (/^[a-z][\w+.-]*:\/\//i.test(part)) return inAddress(part);
    const whole = telling.test(name) ? [part] : [];
    return [...whole, ...part.split(/[\s,;]+[:=@"']*|^[:=@"']+/).flatMap(word => inWord(name, word))];
  });
  return [...inside, ...around];
}

/** Longest word whose parts are examined, in characters. A longer one is judged only as a whole. */
const longestWord = 8000;

function inWord(name: string, word: string): string[] {
  if (word.length > longestWord) return telling.test(name) ? [word] : [];
  const [, inner = '', value = ''] = /^([\w.-]+)=(?!=*$)(.*)$/.exec(word) ?? [];
  // A cookie contains further names.
  const found = inner ? inWord(telling.test(name) ? name : inner, value) : [];
  if (isPlain(word)) return found;
  const isSecret = telling.test(name) || (isName(name) ? !isReadable(word) : looksGenerated(word));
  return isSecret ? [...found, word, ...unpacked(word)] : found;
}

/** Returns true for names such as those in "env" and "headers". The fields of an entry hold programs, folders and addresses. */
const isName = (name: string): boolean =>
  !['', 'command', 'cwd', 'url', 'type', 'description'].includes(name);

/** Returns `name:password` and the password from base64, as used in a header. */
function unpacked(word: string): string[] {
  if (!/^[\w+/-]{8,}={0,2}$/.test(word)) return [];
  const text = Buffer.from(word, 'base64').toString();
  return /^[\x20-\x7e]+:[\x20-\x7e]+$/.test(text) ? [text, text.slice(text.indexOf(':') + 1)] : [];
}

function inAddress(text: string): string[] {
  if (!URL.canParse(text)) return [];
  const { username, password, pathname, searchParams } = new URL(text);
  // The part before the host, which must stay readable. A short password alone would not be searched for.
  const [upToHost = ''] = /^[a-z][\w+.-]*:\/\/[^/@]*@/i.exec(text) ?? [];
  const who = password ? [upToHost, `${username}:${password}@`, ...spelt(password)] : [];
  const inPath = pathname.split('/').filter(looksGenerated).flatMap(spelt);
  const inQuery = [...searchParams].flatMap(([name, value]) => inWord(name, value));
  return [...who, ...(looksGenerated(username) ? spelt(username) : []), ...inPath, ...inQuery];
}

function spelt(escaped: string): string[] {
  try {
    return [escaped, decodeURIComponent(escaped)];
  } catch {
    return [escaped];
  }
}

/**
 * Returns the secrets in a command line: `--token x`, `--token=x`, `NAME=x`, `Name: x`, secrets in addresses, and generated
 * texts.
 */
function inWords(words: readonly string[]): string[] {
  return words.flatMap((word, index) => {
    const [, flag = ''] = /^--?([\w-]+)$/.exec(words[index - 1] ?? '') ?? [];
    const [, name = '', between = '', value = ''] = /^-{0,2}([\w.-]+)(=|:\s*)(.*)$/s.exec(word) ?? [];
    if (between.length > 1 || between === '=' || telling.test(name)) return inText(name, value);
    const meant = telling.test(flag) || hinting.test(flag) ? flag : '';
    return word.startsWith('-') ? [] : inText(meant, word);
  });
}

/** Returns true for folders, files and hosts, also with other text around them. */
function isPlain(text: string): boolean {
  return text.split(/[:;](?=[/~.])/).every(isPlace) || hostInside.test(text);
}

const hostInside = /(?:^|[@/])(?:[a-z\d-]+\.)+[a-z]{2,12}(?=$|[:/?#])/;

function isPlace(text: string): boolean {
  if (/[/\\]/.test(text) && isReadable(text)) return true;
  if (/^(?:~|\.\.?)(?:[/\\]|$)/.test(text) || /^[\w.-]+(?:[/\\][\w.-]+)*[/\\][\w-]+\.\w{1,5}$/.test(text))
    return true;
  if (!isAbsolute(text) && !/^[A-Z]:[\\/]/i.test(text)) return false;
  return existsSync(text) || (/[/\\].*[/\\]/.test(text) && !text.split(/[/\\]/).some(looksGenerated));
}

/** Returns true for texts of words and small numbers, such as versions, dates, and names of models and regions. */
function isReadable(text: string): boolean {
  const parts = text.split(/[^A-Za-z\d]+/).filter(Boolean);
  const mixed = parts.filter(part => /\d/.test(part) && /[A-Za-z]/.test(part));
  return mixed.length < 3 && mixed.every(part => part.length <= 5) && parts.every(part => isWordLike(part));
}

function isWordLike(part: string): boolean {
  if (/\d/.test(part)) return part.length <= 8;
  const humps = part.match(/[A-Z]?[a-z]+|[A-Z]+/g) ?? [];
  return part.length <= 24 && (humps.length === 1 || part.length >= humps.length * 3);
}

/** Returns true for texts that no person would write: well-known keys, and long mixtures of letters and digits. */
function looksGenerated(text: string): boolean {
  if (knownBeginning.test(text) && text.length >= 12 && !isReadable(text)) return true;
  return text.split(/[^A-Za-z\d]+/).some(part => {
    const changes = part.match(/[A-Za-z](?=\d)|\d(?=[A-Za-z])/g)?.length ?? 0;
    return part.length >= 16 && changes >= 3;
  });
}
