/** Hosts by which a stranger passes on what they do not want to stand in a file, or collects what a machine sends. */
import { isIP } from 'node:net';
import type { RedFlag } from '../../protocol/agentCard.ts';
import { hostKind } from '../tools/addresses.ts';
import { lookalikesIn } from './lookalikes.ts';

type Kind = RedFlag['kind'];

/** With everything below them. One with a path is meant there alone. */
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
/** How much of a path tells a place, in characters. */
const longestPath = 40;

const addressHost =
  /\bhttps?:\/\/(?:[^\s/@"'`<>]{0,60}@)?(\[[\da-f:.]{2,45}\]|[^\s/?#"'`<>()[\]{}\\|,;:]{1,253})/gi;

/** The kinds of hosts in one line that deserve a look. */
export function riskyHostsIn(line: string): Kind[] {
  if (!/[./]/.test(line)) return [];
  const kinds = new Set<Kind>();
  for (const { index, 0: name } of line.matchAll(/[\w.-]+/g)) {
    const end = index + name.length;
    // In prose a bare name is no address.
    const isAddress = line.startsWith('://', index - 3) || line[index - 1] === '@' || line[end] === '/';
    const kind =
      isAddress && name.length < 254 && name.includes('.')
        ? kindOfHost(name, line.slice(end, end + longestPath))
        : undefined;
    if (kind) kinds.add(kind);
  }
  for (const [, host = ''] of line.matchAll(addressHost)) {
    if (/^[[\d]/.test(host) && isPublicAddress(host)) kinds.add('bare-address');
    if (lookalikesIn(host).length > 0) kinds.add('lookalike-letters');
  }
  return [...kinds];
}

/** Of the host itself or of one that it lies below. */
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

/** As a URL parser reads it: also a number alone, or in another base, is an address. */
function isPublicAddress(host: string): boolean {
  const address = `http://${host}/`;
  if (!URL.canParse(address)) return false;
  const { hostname } = new URL(address);
  return isIP(hostname.replace(/^\[|\]$/g, '')) !== 0 && hostKind(hostname) === 'public';
}
