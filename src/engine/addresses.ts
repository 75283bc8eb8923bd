/** Distinguishes public addresses from those that only this machine or its network can reach. */
import { BlockList, isIP } from 'node:net';

/**
 * `loopback` and `private` may be reached if a person names exactly that host and port. The last three are never reached:
 * `link-local`, `metadata` (where clouds hand out credentials) and `reserved`. A `reserved` address is not a single host,
 * or is a tunnel to any other kind.
 */
export type AddressKind = 'public' | 'loopback' | 'private' | 'link-local' | 'metadata' | 'reserved';

/**
 * The first kind whose ranges contain an address applies. Sources: the IANA special-purpose registries, and each cloud's
 * own manual.
 */
const ranges: readonly [AddressKind, readonly string[]][] = [
  [
    'metadata',
    [
      ...[
        '169.254.169.254/32',
        '169.254.170.2/32',
        '100.100.100.200/32',
        '168.63.129.16/32',
        '192.0.0.192/32',
      ],
      ...['fd00:ec2::254/128', 'fd20:ce::254/128'],
    ],
  ],
  ['link-local', ['169.254.0.0/16', 'fe80::/10']],
  ['loopback', ['127.0.0.0/8', '::1/128']],
  [
    'private',
    [
      ...['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '198.18.0.0/15'],
      ...['fc00::/7', 'fec0::/10'],
    ],
  ],
  [
    'reserved',
    [
      ...['0.0.0.0/8', '192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '198.51.100.0/24', '203.0.113.0/24'],
      ...['224.0.0.0/4', '240.0.0.0/4'],
      // IETF protocol assignments with Teredo, documentation, 6to4. Then everything that is not global unicast.
      ...['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
      ...['::/3', '4000::/2', '8000::/1'],
    ],
  ],
];

/**
 * Returns one list per kind for one family. A list of both families would match an IPv4 address against an IPv6 range that
 * contains it.
 */
function listsOf(family: 4 | 6): [AddressKind, BlockList][] {
  return ranges.map(([kind, subnets]) => {
    const list = new BlockList();
    for (const subnet of subnets) {
      const [network, prefix] = subnet.split('/') as [string, string];
      if (isIP(network) === family) list.addSubnet(network, Number(prefix), `ipv${family}`);
    }
    return [kind, list];
  });
}

/** Created at the first address, because filling them costs a cold start some milliseconds. */
let lists: { 4: [AddressKind, BlockList][]; 6: [AddressKind, BlockList][] } | undefined;

/**
 * Returns the kind of an IPv4 or IPv6 address. An IPv6 address that represents an IPv4 one (mapped, NAT64) has the kind of
 * the latter.
 */
export function addressKind(address: string): AddressKind {
  const bare = address.split('%', 1)[0]!;
  const family = isIP(bare);
  if (family !== 4 && family !== 6) return 'reserved';
  const inner = family === 6 ? embeddedIPv4(bare) : undefined;
  if (inner !== undefined) return addressKind(inner);
  lists ??= { 4: listsOf(4), 6: listsOf(6) };
  return lists[family].find(([, list]) => list.check(bare, `ipv${family}`))?.[0] ?? 'public';
}

function embeddedIPv4(address: string): string | undefined {
  const groups = ipv6Groups(address);
  const prefix = groups.slice(0, 6).join(':');
  if (prefix !== '0:0:0:0:0:ffff' && prefix !== '64:ff9b:0:0:0:0') return undefined;
  return groups
    .slice(6)
    .flatMap(group => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255])
    .join('.');
}

/** Returns the eight groups in hexadecimal without leading zeros. */
function ipv6Groups(address: string): string[] {
  const canonical = new URL(`http://[${address}]/`).hostname.slice(1, -1);
  const [before = '', after] = canonical.split('::');
  const left = before === '' ? [] : before.split(':');
  const right = after === undefined || after === '' ? [] : after.split(':');
  return [...left, ...Array<string>(8 - left.length - right.length).fill('0'), ...right];
}

const metadataNames = new Set([
  ...['metadata.google.internal', 'metadata.goog', 'metadata', 'instance-data'],
  'instance-data.ec2.internal',
]);
const loopbackNames = new Set(['localhost', 'localhost.localdomain', 'ip6-localhost', 'ip6-loopback']);
const privateEndings = [
  ...['.local', '.localdomain', '.lan', '.internal', '.intranet', '.private', '.home', '.corp', '.home.arpa'],
  ...['.svc', '.fritz.box'],
];

/**
 * Returns the kind that the host of a parsed URL suggests, without asking the network. A literal address is known exactly,
 * a name is judged by its form. A public-looking name can still lead elsewhere, so its addresses are checked when it is
 * resolved.
 */
export function hostKind(hostname: string): AddressKind {
  const host = hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');
  if (isIP(host) !== 0) return addressKind(host);
  if (metadataNames.has(host) || host.endsWith('.metadata.google.internal')) return 'metadata';
  if (loopbackNames.has(host) || host.endsWith('.localhost')) return 'loopback';
  if (!host.includes('.') || privateEndings.some(ending => host.endsWith(ending))) return 'private';
  return 'public';
}

/** Returns true for the kinds that no approval opens. */
export const isNeverReached = (kind: AddressKind): boolean =>
  kind === 'link-local' || kind === 'metadata' || kind === 'reserved';

/** Returns the URL in its normal form without fragment, or a sentence that says why it is refused. */
export function parseWebAddress(
  given: string,
  base?: URL,
): { url: URL } | { problem: string; scheme?: string } {
  let url: URL;
  try {
    url = new URL(given, base);
  } catch {
    return {
      problem: `${JSON.stringify(given)} is not a web address. Give a complete address such as https://example.com/page.`,
    };
  }
  const scheme = url.protocol.slice(0, -1);
  if (scheme !== 'http' && scheme !== 'https')
    return { problem: `Only http and https addresses can be fetched, not ${scheme}.`, scheme };
  if (url.username !== '' || url.password !== '')
    return { problem: `The address contains a user name or password before ${url.host}. Leave it out.` };
  // DNS allows no longer names, and a question that shows the name must stay readable.
  if (url.hostname.length > 254)
    return { problem: `The host name has ${url.hostname.length} characters, which is too long.` };
  url.hash = '';
  return { url };
}

/** Prefix of a host that the files name with plain http. Anyone on the network path can read and change what it answers. */
export const unprotected = 'http://';

/** Returns true if the hosts of a card include the host of `url`. For an http address, they must name it with plain http. */
export function namesHost(hosts: readonly string[], { protocol, hostname }: URL): boolean {
  return (protocol === 'https:' && hosts.includes(hostname)) || hosts.includes(unprotected + hostname);
}
