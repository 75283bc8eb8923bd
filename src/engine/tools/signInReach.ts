/** Which addresses a sign-in at an MCP server may lead to, and requests that reach no other. */
import { TelosError } from '../errors.ts';
import { hostKind, isNeverReached } from './addresses.ts';
import { checkedFetch } from './checkedFetch.ts';

/** For one of the requests that a sign-in takes, in milliseconds. */
const requestLimit = 15_000;

/**
 * Fetches for a sign-in at `server`: follows no redirect, and reaches nothing that a server of this kind has no business to name, nor an
 * origin outside of `allowed`, where that is known. Throws TelosError `mcp`.
 */
export function guardedFetch(server: URL, allowed: readonly string[] | undefined, signal: AbortSignal) {
  return async (input: string | URL, init?: RequestInit): Promise<Response> => {
    const url = new URL(input);
    checkReach(url, server);
    if (allowed && !allowed.includes(url.origin))
      throw new TelosError('mcp', `its sign-in wants to reach ${url.origin}, which was not agreed to`);
    const stop = AbortSignal.any([signal, AbortSignal.timeout(requestLimit)]);
    return checkedFetch(url, { ...init, redirect: 'error', signal: stop });
  };
}

/** Throws TelosError `mcp` for an address that a sign-in at `server` must not lead to. */
export function checkReach({ protocol, hostname, origin }: URL, server: URL): void {
  const kind = hostKind(hostname);
  const isSafe = protocol === 'https:' || (protocol === 'http:' && kind === 'loopback');
  if (!isSafe || isNeverReached(kind))
    throw new TelosError(
      'mcp',
      `its sign-in leads to ${origin === 'null' ? protocol : origin}, and only https is taken for one`,
    );
  if (kind !== 'public' && kind !== hostKind(server.hostname))
    throw new TelosError('mcp', `its sign-in leads to ${origin}, inside a network that it is not in`);
}
