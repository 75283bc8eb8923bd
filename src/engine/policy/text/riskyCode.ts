/** Finds lookalike names, fetched code that is run, packages without a fixed version, and risky hosts. */

import { isIP } from 'node:net';
import { domainToUnicode } from 'node:url';
import type { RedFlag } from '@telos/protocol/agentCard';
import { Characters } from '@telos/protocol/text';
import { hostKind } from '../../addresses.ts';

/** Letters of other scripts that look like a Latin letter, as listed in the Unicode table of confusables. */
const latinLike =
  /^[аеорсухіјѕһԁԛԝӏгвкмнтАВЕКМНОРСТУХІЈЅԌԚԜҮҺαοριυνκχγτωΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϳᎪᎬᎳᎢᏃᎡօսոհցզՕՍⅼⅰⅴⅹｏ]+$/u;

const otherScripts = new Characters(
  String.raw`[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Coptic}\p{Script=Lisu}\p{Script=Deseret}]`,
);

/** Units and the like: µ comes before Latin letters in honest names. */
const honest = new Characters(String.raw`^[µμΩΔ]\p{Script=Latin}`);

/** Returns true for a word that mixes Latin letters with letters of another script, or that only looks Latin. */
function isLookalike(word: string): boolean {
  const mixes = /\p{Script=Latin}/u.test(word) && otherScripts.test(word) && !honest.test(word);
  const onlyLooks = word.length > 3 && latinLike.test(word);
  const isStyled = [...word].some(letter => letter > '\x7f' && /^[a-z0-9]$/i.test(letter.normalize('NFKC')));
  return mixes || onlyLooks || isStyled;
}

/** Returns the words in the name of a file, host or skill that read like others. A host can be in the network's form. */
export function lookalikesIn(name: string): string[] {
  const read = /\bxn--/i.test(name) ? domainToUnicode(name) || name : name;
  if (/^[\0-\x7f]*$/.test(read)) return [];
  return (read.match(/[\p{L}\p{N}\p{M}]{1,200}/gu) ?? []).filter(isLookalike);
}

/**
 * Ways to fetch, in a shell and in a program. Names that hold text fetched by a program are followed. For a shell, only names
 * assigned from a substitution are followed.
 */
const ofShell = /\b(?:curl|wget|aria2c)\b/i;
const ofProgram =
  /\burlopen\b|\burlretrieve\b|\b(?:requests|httpx|axios|got|http|https|session)\.(?:get|post|request|read)\b|\b(?:fetch|axios|got)\s*\(|\b(?:iwr|irm|invoke-webrequest|invoke-restmethod|downloadstring)\b|\bNet::HTTP\b|\bfile_get_contents\s*\(\s*["']?https?:/i;

/** Words without which a line fetches nothing, see `WordMasks`. */
export const fetchWords = [
  ...[
    'curl',
    'wget',
    'aria2c',
    'urlopen',
    'urlretrieve',
    'requests',
    'httpx',
    'axios',
    'got',
    'http',
    'session',
  ],
  ...['fetch', 'iwr', 'irm', 'invoke-', 'downloadstring', 'net::http', 'file_get_contents'],
];

/** Functions that run text as code. `exec` after a dot belongs to a pattern. */
const evaluating = /(?:(?<![\w.$-])(?:exec|eval|Function|execScript)|\bvm\.run\w{1,30}|\._compile)\s*\(/g;
const thenEvaluating =
  /\.then\s*\(\s*(?:async\s*)?(?:\(?\w{0,40}\)?\s*=>\s*\{?\s*(?:return\s+)?)?(?:window\.|globalThis\.|global\.)?(?:eval|(?:new\s+)?Function|vm\.run\w{1,30})\b/;
const runningWord =
  /(?:\b(?:eval|source|iex)|(?:^|[\s;&|])\.|\b(?:ba|z|da|k)?sh\s+-\w{0,8}c|<<<)\s*["'\x60]?\$\{?(\w{1,60})/g;
/** A variable alone, at a position where a command is expected. */
const wordAsCommand = /(?:^|[;&|]\s{0,9})["']?\$(?:\{(\w{1,60})\}|(\w{1,60}))["']?\s{0,9}(?=$|[;&|])/g;
const assignment = /(?<![\w.])\$?([A-Za-z_]\w{0,60})\s{0,9}=(?![=>~])/g;

/** Number of characters that are read after a name or a bracket, and number of names that are followed. */
const reach = 200;
const mostNames = 100;
/** Number of lines between the creation of a promise and its use. */
const promiseLines = 6;

/** Finds fetched code that is run. Takes the lines of one file, in their order. */
export class FetchedCode {
  readonly #names = new Set<string>();
  /** Those that were assigned with a `$`, as in PowerShell, where the name alone only shows what it holds. */
  readonly #shown = new Set<string>();
  #promised = 0;

  /**
   * Returns true for a line that runs code that it, or a line before it, has fetched. `isPiped` returns whether a shell receives
   * the output before the given rest of the line.
   */
  isRunBy(line: string, isPiped: (rest: string) => boolean): boolean {
    if (!/[=($]/.test(line)) {
      this.#promised--;
      return false;
    }
    this.#promised = ofProgram.test(line) ? promiseLines : this.#promised - 1;
    this.#follow(line);
    if (this.#promised > 0 && thenEvaluating.test(line)) return true;
    for (const { index, 0: start } of line.matchAll(evaluating)) {
      const code = line.slice(index + start.length, index + start.length + reach);
      if (ofProgram.test(code) || this.#namesOneOf(code)) return true;
    }
    if (this.#names.size === 0 || !line.includes('$')) return false;
    for (const pattern of [runningWord, wordAsCommand])
      for (const [, braced = '', bare = ''] of line.matchAll(pattern))
        if (this.#names.has(braced || bare) && !(pattern === wordAsCommand && this.#shown.has(bare)))
          return true;
    const [, printed = '', rest = ''] = /\b(?:echo|printf|cat)\b([^|]{0,200})(\|.{0,200})/.exec(line) ?? [];
    return this.#namesOneOf(printed) && isPiped(rest);
  }

  /** Records which names hold fetched text, or a value made from it. */
  #follow(line: string): void {
    for (const { index, 0: start, 1: name = '' } of line.matchAll(assignment)) {
      if (this.#names.size >= mostNames) return;
      const [value = ''] = line.slice(index + start.length, index + start.length + reach).split(';', 1);
      const isSubstituted = /^\s{0,9}["']?(?:\$\(|\x60)/.test(value) && ofShell.test(value);
      if (isSubstituted || ofProgram.test(value) || this.#namesOneOf(value)) {
        this.#names.add(name);
        if (start.startsWith('$')) this.#shown.add(name);
        else this.#shown.delete(name);
      }
    }
  }

  #namesOneOf(text: string): boolean {
    if (this.#names.size === 0) return false;
    return (text.match(/[A-Za-z_]\w*/g) ?? []).some(word => this.#names.has(word));
  }
}

/** Programs that fetch a package and run it without a question; `npx` only with a flag. */
const runner = /\b(npx|bunx|pnpx|uvx|pnpm\s{1,9}dlx|yarn\s{1,9}dlx|pipx\s{1,9}run)\s+/gi;
const installing =
  /\b(?:pip[\d.]{0,5}|pipx|uv|poetry|npm|pnpm|yarn|bun)\s(?:[\w.-]{1,20}\s){0,3}?(?:install|i|add|inject)\s/gi;
const cargo = /\bcargo\s+install\s[^|;&]{0,200}--git\b([^|;&]{0,200})/i;
/** Length of a command that is read, in characters and words. */
const lookAhead = 300;
const mostWords = 16;

/** Returns true for a line with a command that fetches code without a fixed version. */
export function bringsUnpinnedCode(line: string): boolean {
  if (!/npx|bunx|uvx|dlx|run|install|\sadd|\si\s|inject/i.test(line)) return false;
  const behind = ({ index, 0: start }: RegExpExecArray): string[] =>
    wordsOf(line.slice(index + start.length, index + start.length + lookAhead));
  for (const match of line.matchAll(runner)) if (runsUnpinned(match[1]!, behind(match))) return true;
  for (const match of line.matchAll(installing)) if (behind(match).some(isUnpinnedPlace)) return true;
  const ofCargo = cargo.exec(line);
  return ofCargo !== null && !/--(?:rev|tag)\b/.test(ofCargo[0] + ofCargo[1]);
}

const wordsOf = (command: string): string[] =>
  command
    .split(/[|;&\n)]/, 1)[0]!
    .split(/\s+/, mostWords)
    .map(word => word.replace(/^["'\x60]+|["'\x60,.:]+$/g, ''))
    .filter(word => word !== '');

function runsUnpinned(program: string, words: readonly string[]): boolean {
  let asks = program.toLowerCase() === 'npx';
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    const [, given] = /^--(?:package|from|spec)=(.*)$/.exec(word) ?? [];
    if (given !== undefined) return !asks && isUnpinned(given);
    if (/^(-y|--yes)$/.test(word)) asks = false;
    else if (/^(-p|--package|--from|--spec)$/.test(word)) {
      const yes = words.slice(at + 1).some(other => /^(-y|--yes)$/.test(other));
      return (!asks || yes) && isUnpinned(words[at + 1] ?? '');
    } else if (!word.startsWith('-')) return !asks && isUnpinned(word);
  }
  return false;
}

/** Returns true for a package without a fixed version. A place on this machine, or a word to be filled in, does not count. */
function isUnpinned(name: string): boolean {
  if (isUnpinnedPlace(name)) return true;
  const [, version] =
    /^(?:@[\w.-]{1,100}\/)?[a-z][\w.-]{0,100}(?:\[[\w,-]{0,60}\])?(?:@|==)?(.{0,100})$/i.exec(name) ?? [];
  return version !== undefined && !/^v?\d+\.\d+(\.\d+)?([-+][\w.-]+)?$/.test(version);
}

/** Returns true for a repository or an archive on the web, unless it names its commit or its version. */
function isUnpinnedPlace(word: string): boolean {
  if (
    /^(?:[\w.[\]-]{1,80}@)?(?:git\+|github:|gitlab:|bitbucket:|git:\/\/|git@)/i.test(word) ||
    /^https?:\S{1,200}\.git\b/i.test(word)
  )
    return !/[@#][\da-f]{7,40}(?:$|[#&])/i.test(word);
  return (
    /^https?:/i.test(word) &&
    !/\d+\.\d+/.test(word.slice(word.lastIndexOf('/'))) &&
    !/[\da-f]{40}/i.test(word) &&
    /\.(?:zip|tgz|gz|whl|js)\b|\/archive\//i.test(word)
  );
}

type Kind = RedFlag['kind'];

/** Hosts with everything below them. A host with a path is meant only at that path. */
const hosts: Readonly<Partial<Record<Kind, readonly string[]>>> = {
  'paste-host': [
    ...[
      'glot.io',
      'pastebin.com',
      'rentry.co',
      'rentry.org',
      'hastebin.com',
      'toptal.com/developers/hastebin',
    ],
    ...['paste.ee', 'dpaste.com', 'dpaste.org', 'ghostbin.com', 'controlc.com', 'justpaste.it', 'pastes.io'],
    ...['paste.rs', 'paste.mozilla.org', 'privatebin.net', 'termbin.com', 'ix.io', 'sprunge.us', '0x0.st'],
    ...['bpa.st', 'pastie.org', 'pasteio.com', 'textbin.net', 'snippet.host', 'write.as', 'telegra.ph'],
    ...[
      'transfer.sh',
      'file.io',
      'gofile.io',
      'anonfiles.com',
      'catbox.moe',
      'litter.catbox.moe',
      'tmpfiles.org',
    ],
    ...['temp.sh', 'oshi.at', 'bashupload.com', 'uguu.se', 'pixeldrain.com', 'filebin.net', 'wormhole.app'],
  ],
  'webhook-host': [
    ...[
      'webhook.site',
      'requestbin.com',
      'requestbin.net',
      'pipedream.net',
      'm.pipedream.net',
      'hookbin.com',
    ],
    ...['webhook.cool', 'beeceptor.com', 'requestcatcher.com', 'postb.in', 'ptsv3.com', 'hookdeck.com'],
    ...[
      'interact.sh',
      'oast.pro',
      'oast.live',
      'oast.site',
      'oast.online',
      'oast.fun',
      'oast.me',
      'oastify.com',
    ],
    ...['burpcollaborator.net', 'canarytokens.com', 'dnslog.cn', 'ceye.io', 'webhookrelay.com'],
    ...['discord.com/api/webhooks', 'discordapp.com/api/webhooks', 'hooks.slack.com'],
  ],
  'tunnel-host': [
    ...['ngrok.io', 'ngrok.app', 'ngrok.dev', 'ngrok-free.app', 'ngrok-free.dev', 'trycloudflare.com'],
    ...['loca.lt', 'localtunnel.me', 'serveo.net', 'localhost.run', 'lhr.life', 'lhr.rocks', 'pinggy.io'],
    ...['pinggy.link', 'bore.pub', 'pagekite.me', 'telebit.io', 'zrok.io', 'packetriot.net', 'playit.gg'],
    ...['devtunnels.ms', 'tunnelmole.net', 'loophole.site', 'localxpose.io', 'loclx.io'],
  ],
  'short-link': [
    ...['bit.ly', 'tinyurl.com', 't.co', 'is.gd', 'v.gd', 'goo.gl', 'ow.ly', 'buff.ly', 'cutt.ly', 'rb.gy'],
    ...['shorturl.at', 'shorturl.com', 't.ly', 'rebrand.ly', 'bl.ink', 'adf.ly', 'tiny.cc', 'soo.gd', 's.id'],
    ...['lnkd.in', 'git.io', 'qr.ae', 'x.gd', 'da.gd', 'clck.ru', 'u.to', 'dub.sh', 'shor.by', 'urlz.fr'],
  ],
};

const kindOf = new Map(
  Object.entries(hosts).flatMap(([kind, names]) => names.map(name => [name, kind as Kind] as const)),
);
/** Length of a path that identifies a place, in characters. */
const longestPath = 40;

const addressHost =
  /\b(?:https?|ftps?|wss?|tcp|udp|ssh|sftp|rsync|git):\/\/(?:[^\s/@"'`<>]{0,60}@)?(\[[\da-f:.]{2,45}\]|[^\s/?#"'`<>()[\]{}\\|,;:]{1,253})/gi;

/** Programs that take a host as a word of its own, up to that word. */
const reaching =
  /(?:^|[\s;|&(`$])(?:curl|wget|nc|ncat|netcat|socat|ssh|scp|sftp|telnet|ftp|rsync)\s(?:[^|;&\n]{0,120}[\s@:=])?$/i;
const reachesFrom = (line: string, at: number): boolean =>
  reaching.test(line.slice(Math.max(0, at - 160), at));
const bareNumber = /(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)/g;

/** Returns the kinds of hosts in one line that deserve a look. */
export function riskyHostsIn(line: string): Kind[] {
  if (!/\/\/|@|\.[a-z]{2,12}(?:\.{0,3}\/|[\s:]|$)|\d\.\d{1,3}\.\d/i.test(line)) return [];
  const kinds = new Set<Kind>();
  for (const { index, 0: name } of line.matchAll(/[\w.-]+/g)) {
    const end = index + name.length;
    if (name.length > 253 || !name.includes('.')) continue;
    const kind = kindOfHost(name, line.slice(end, end + longestPath));
    // In prose, a bare name is not an address.
    const isAddress = line.startsWith('://', index - 3) || line[index - 1] === '@' || line[end] === '/';
    if (kind && (isAddress || reachesFrom(line, index))) kinds.add(kind);
  }
  for (const [, host = ''] of line.matchAll(addressHost)) {
    if (/^[[\d]/.test(host) && isPublicAddress(host)) kinds.add('bare-address');
    if (lookalikesIn(host).length > 0) kinds.add('lookalike-letters');
  }
  for (const { index, 0: number } of line.matchAll(bareNumber))
    if (isPublicAddress(number) && reachesFrom(line, index)) kinds.add('bare-address');
  return [...kinds];
}

/** Returns the kind of the host itself, or of a host that it is below. */
function kindOfHost(name: string, path: string): Kind | undefined {
  const labels = name.toLowerCase().replace(/\.+$/, '').split('.');
  for (let at = Math.max(0, labels.length - 3); at < labels.length - 1; at++) {
    const host = labels.slice(at).join('.');
    const known =
      kindOf.get(host) ?? kindOf.get(host + (/^(\/[\w-]+){1,2}/.exec(path.toLowerCase())?.[0] ?? ''));
    if (known) return known;
  }
  return undefined;
}

/** Reads the host as a URL parser does: a number alone, or in another base, is an address too. */
function isPublicAddress(host: string): boolean {
  const address = `http://${host}/`;
  if (!URL.canParse(address)) return false;
  const { hostname } = new URL(address);
  return isIP(hostname.replace(/^\[|\]$/g, '')) !== 0 && hostKind(hostname) === 'public';
}
