/** What every connection out of this machine needs: the proxy that its address is reached through, and words for a bad certificate. */
import { BlockList, isIP } from 'node:net';
import { type Sentence, sentence } from '@telos/protocol/text';
import { hostKind } from '../addresses.ts';
import { TelosError } from '../core/errors.ts';

export interface NamedProxy {
  url: URL;
  /** The variable that names it. */
  variable: string;
}

let variables: Readonly<Record<string, string>> = {};

/** From now on requests of this process leave as HTTP_PROXY, HTTPS_PROXY and NO_PROXY of `env` say. */
export function followProxies(env: Readonly<Record<string, string>>): void {
  variables = env;
}

/**
 * Returns the proxy for an address. Undefined if it is reached without one, as this machine always is. Throws TelosError `config` if the
 * variable names no proxy that can be used.
 */
export function proxyFor({ protocol, hostname, port }: URL): NamedProxy | undefined {
  const name = protocol === 'https:' ? 'https_proxy' : 'http_proxy';
  const own = [name, name.toUpperCase()].find(one => variables[one]?.trim());
  // What it names is often a proxy of another kind, which other programs take.
  const forAll = ['all_proxy', 'ALL_PROXY'].find(one => /^\s*https?:\/\//i.test(variables[one] ?? ''));
  const variable = own ?? forAll;
  const value = variable && variables[variable]?.trim();
  if (!variable || !value) return undefined;
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  if (hostKind(host) === 'loopback' || isLeftOut(host, port || (protocol === 'https:' ? '443' : '80')))
    return undefined;
  const address = /^[a-z][\w+.-]*:\/\//i.test(value) ? value : `http://${value}`;
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.hostname && /^https?:$/.test(url.protocol)) return { url, variable };
  throw new TelosError('config', [
    sentence("{0} is '{1}', which is no proxy over http or https.", variable, withoutLogin(value)),
    sentence('Set it to an address such as http://proxy.example:3128, or remove it.'),
  ]);
}

/** Returns a proxy's address without its name and password. */
const withoutLogin = (address: string): string =>
  address.replace(/^([a-z][\w+.-]*:\/\/)?.*@/i, '$1').replace(/\/$/, '');

/** Reads NO_PROXY: names with all that is below them, with a port or without, addresses, ranges of them, or `*`. */
function isLeftOut(host: string, port: string): boolean {
  const list = variables['no_proxy'] || variables['NO_PROXY'] || '';
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .some(entry => {
      if (entry === '' || entry === '*') return entry === '*';
      const [, network = '', bits = ''] = /^([\d.]+|[\da-f:]+)\/(\d+)$/.exec(entry) ?? [];
      if (isIP(network)) return isIP(host) === isIP(network) && isWithin(host, network, Number(bits));
      const [, bare = entry, only] = /^(\[[^\]]+\]|[^:]+)(?::(\d+))?$/.exec(entry) ?? [];
      if (only && only !== port) return false;
      const name = bare.replace(/^\*?\.|^\[|\]$/g, '');
      return host === name || host.endsWith(`.${name}`);
    });
}

function isWithin(host: string, network: string, bits: number): boolean {
  const family = isIP(network) === 6 ? 'ipv6' : 'ipv4';
  if (bits > (family === 'ipv6' ? 128 : 32)) return false;
  const list = new BlockList();
  list.addSubnet(network, bits, family);
  return list.check(host, family);
}

/** Returns the code of the deepest cause of an error. Undefined if it has none. */
export function deepestCode(error: unknown): string | undefined {
  let code: string | undefined;
  for (let cause = error, depth = 0; cause instanceof Error && depth < 6; cause = cause.cause, depth += 1) {
    // A host with several addresses fails with one error per address.
    const own = cause instanceof AggregateError ? cause.errors[0] : cause;
    if (own instanceof Error && 'code' in own && typeof own.code === 'string') code = own.code;
  }
  return code;
}

const untrusted =
  /^(?:UNABLE_TO_\w+|(?:DEPTH_ZERO_)?SELF_SIGNED_CERT\w*|CERT_(?!HAS_EXPIRED|NOT_YET)\w+|INVALID_(?:CA|PURPOSE)|PATH_LENGTH_EXCEEDED)$/;

/** Returns why the certificate of a host is refused and what to do. Undefined if an error is about something else. */
export function certificateProblem(host: string, error: unknown): readonly Sentence[] | undefined {
  const code = deepestCode(error) ?? '';
  if (untrusted.test(code))
    return [
      sentence('The certificate of {0} is not trusted ({1}).', host, code),
      sentence(
        'If your network has certificates of its own, set NODE_EXTRA_CA_CERTS to the file with its root, and start Telos again.',
      ),
    ];
  if (/^CERT_(?:HAS_EXPIRED|NOT_YET_VALID)$/.test(code))
    return [
      sentence('The certificate of {0} is not valid at this time ({1}).', host, code),
      sentence('Check the clock of this machine, or ask who runs the server.'),
    ];
  if (/^(?:ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/.test(code))
    return [
      sentence('The certificate of {0} is for another name ({1}).', host, code),
      sentence('Check the address.'),
    ];
  return undefined;
}
