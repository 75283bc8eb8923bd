/** Reads the data of an MCP sign-in: refusal, description of the authorization server, the browser's answer, stored state. */

import { beginningOf, sentence } from '@telos/protocol/text';
import { hostKind, isNeverReached } from '../addresses.ts';
import { TelosError } from '../core/errors.ts';
import type { SecretPlace, SignInPort } from '../human.ts';
import { checkedFetch, withinBytes } from '../tools/checkedFetch.ts';
import type { KnownClient } from './config.ts';
import {
  type discoverOAuthServerInfo,
  extractWWWAuthenticateParams,
  type OAuthClientProvider,
} from './sdk.ts';

type Tokens = Parameters<OAuthClientProvider['saveTokens']>[0];
export type ClientInformation = Awaited<ReturnType<OAuthClientProvider['clientInformation']>>;
export type Discovery = Awaited<ReturnType<typeof discoverOAuthServerInfo>>;

/** The stored sign-in of one server for one agent. */
export interface Kept {
  redirectUrl?: string;
  client?: ClientInformation;
  tokens?: Tokens | undefined;
  discovery?: Discovery;
  /** The authorization server at which a client from mcp.json has signed in. The client's secret is sent to no other. */
  known?: { clientId: string; issuer: string };
}

/** The reason why a request was refused. */
export interface Challenge {
  scope?: string;
  resourceMetadataUrl?: URL;
  /** True if the sign-in does not cover the request. */
  more?: boolean;
}

/** Returns the client from mcp.json, bound to the authorization server at which it has signed in before. */
export function clientOf({ clientId, clientSecret }: KnownClient, { known }: Kept): ClientInformation {
  return {
    client_id: clientId,
    ...(clientSecret ? { client_secret: clientSecret } : {}),
    ...(known?.clientId === clientId ? { issuer: known.issuer } : {}),
  };
}

/**
 * Returns the address of the client id metadata document by which Telos names itself. Throws TelosError `mcp` for one that no
 * authorization server may take. Source: the authorization page of the Model Context Protocol, 2025-11-25.
 */
export async function documentOf(port: SignInPort): Promise<string | undefined> {
  const address = await port.clientDocument?.();
  if (!address) return undefined;
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const isPlain = url && url.username === '' && url.password === '' && url.hash === '';
  if (isPlain && url.protocol === 'https:' && url.pathname !== '/') return address;
  throw new TelosError('mcp', [
    sentence(
      'the address of your client id document is not https with a path: {0}',
      beginningOf(address, 200),
    ),
  ]);
}

/** Returns true for a client that an address names, which no server has registered. */
export const isDocument = (client: ClientInformation): client is NonNullable<ClientInformation> =>
  client !== undefined && /^https:\/\//.test(client.client_id);

export function unknownClient(server: string, redirectUrl: string): TelosError {
  return new TelosError('mcp', [
    sentence(
      '{0} does not issue client ids; register one there for the address {1} and add it to its entry: "oauth": {"clientId": "..."}',
      new URL(server).origin,
      redirectUrl,
    ),
  ]);
}

/** Returns true if only a sign-in with more rights helps. */
export const lacksScope = (response: Response): boolean =>
  response.status === 403 && extractWWWAuthenticateParams(response).error === 'insufficient_scope';

/** Returns the reason for a refusal. The address of the server's description is accepted only on the server's own origin. */
export function challengeOf(response: Response, server: URL): Challenge {
  const { scope, resourceMetadataUrl } = extractWWWAuthenticateParams(response);
  return {
    ...(scope ? { scope } : {}),
    ...(resourceMetadataUrl?.origin === server.origin ? { resourceMetadataUrl } : {}),
  };
}

/**
 * Throws TelosError `mcp` if the authorization server gives no metadata, names another issuer, or does not say that it checks codes with
 * PKCE S256. A server that uses the name of another could receive that server's codes; without PKCE, whoever sees a code could use it.
 */
export function checkAuthorizationServer({
  authorizationServerUrl,
  authorizationServerMetadata: metadata,
}: Discovery): void {
  if (!metadata)
    throw new TelosError('mcp', [
      sentence(
        'it requires a sign-in and does not say where; put what it accepts into "headers" of its entry',
      ),
    ]);
  const { issuer, code_challenge_methods_supported: methods } = metadata;
  // Several of them may share an origin, such as the tenants of a host.
  if (!URL.canParse(issuer) || issuerOf(issuer) !== issuerOf(authorizationServerUrl))
    throw new TelosError('mcp', [
      sentence(
        'the authorization server {0} calls itself {1}',
        beginningOf(issuerOf(authorizationServerUrl), 200),
        beginningOf(issuer, 200),
      ),
    ]);
  if (!methods?.includes('S256'))
    throw new TelosError('mcp', [
      sentence(
        'the authorization server {0} does not say that it protects a sign-in with PKCE (S256), so no one signs in there',
        issuerOf(authorizationServerUrl),
      ),
    ]);
}

/** Returns an issuer in the one form in which two are compared. */
const issuerOf = (address: string | URL): string => new URL(address).href.replace(/\/$/, '');

/** Returns the addresses of a sign-in, the browser's page first. */
export function placesOf({
  authorizationServerUrl,
  authorizationServerMetadata: metadata,
}: Discovery): URL[] {
  const places = [
    metadata?.authorization_endpoint,
    authorizationServerUrl,
    metadata?.token_endpoint,
    metadata?.registration_endpoint,
  ];
  return places.flatMap(place => (place ? [new URL(place)] : []));
}

export const originsOf = (found: Discovery): string[] => [
  ...new Set(placesOf(found).map(({ origin }) => origin)),
];

export function codeIn(answer: URLSearchParams, state: string, discovery: Discovery | undefined): string {
  const metadata: Readonly<Record<string, unknown>> = discovery?.authorizationServerMetadata ?? {};
  const namesItself = metadata['authorization_response_iss_parameter_supported'] === true;
  const from = answer.get('iss') ?? (namesItself ? '' : metadata['issuer']);
  if (answer.get('state') !== state || from !== metadata['issuer'])
    throw new TelosError('mcp', [sentence('the answer belongs to another sign-in')]);
  const refusal = answer.get('error');
  if (refusal !== null) {
    const why = answer.get('error_description') ?? refusal;
    throw new TelosError('mcp', [sentence('the sign-in was refused: {0}', beginningOf(why, 200))]);
  }
  const code = answer.get('code');
  if (!code) throw new TelosError('mcp', [sentence('its sign-in came back without a code')]);
  return code;
}

/** Returns the stored sign-in, or an empty one if it cannot be read; the person then signs in again. */
function keptIn(text: string | undefined): Kept {
  try {
    const kept: unknown = text === undefined ? {} : JSON.parse(text);
    return typeof kept === 'object' && kept !== null ? kept : {};
  } catch {
    return {};
  }
}

export class KeptSignIn {
  readonly #place: SecretPlace;
  readonly #name: string;
  readonly #learn: (secrets: readonly string[]) => void;
  #kept: Promise<Kept> | undefined;

  /** `learn` receives secrets, which must not be shown, as soon as they are known. */
  constructor(place: SecretPlace, name: string, learn: (secrets: readonly string[]) => void) {
    this.#place = place;
    this.#name = name;
    this.#learn = learn;
  }

  read(): Promise<Kept> {
    this.#kept ??= this.#place.read(this.#name).then(text => {
      const kept = keptIn(text);
      this.#remember(kept);
      return kept;
    });
    return this.#kept;
  }

  /** Reads the stored sign-in again: another window may have signed in, or renewed the token. */
  again(): Promise<Kept> {
    this.#kept = undefined;
    return this.read();
  }

  async write(kept: Kept): Promise<void> {
    this.#kept = Promise.resolve(kept);
    this.#remember(kept);
    await this.#place.write(this.#name, JSON.stringify(kept));
  }

  #remember({ tokens, client }: Kept): void {
    const given = [tokens?.access_token, tokens?.refresh_token, tokens?.id_token, client?.client_secret];
    this.#learn(given.filter(secret => secret !== undefined));
  }
}

/** Time limit of each request of a sign-in, in milliseconds. */
const requestLimit = 15_000;
/** Of each answer of a sign-in, in bytes: a description of a server, a registration, a token. */
const largestAnswer = 1024 * 1024;

/**
 * Returns a fetch function for a sign-in at `server`. It follows no redirect. It throws TelosError `mcp` for an address that
 * `checkReach` refuses. If `allowed` is given, it also throws for any other origin.
 */
export function guardedFetch(server: URL, allowed: readonly string[] | undefined, signal: AbortSignal) {
  return async (input: string | URL, init?: RequestInit): Promise<Response> => {
    const url = new URL(input);
    checkReach(url, server);
    if (allowed && !allowed.includes(url.origin))
      throw new TelosError('mcp', [sentence('its sign-in needs {0}, which was not allowed', url.origin)]);
    const stop = AbortSignal.any([signal, AbortSignal.timeout(requestLimit)]);
    return withinBytes(await checkedFetch(url, { ...init, redirect: 'error', signal: stop }), largestAnswer);
  };
}

/** Throws TelosError `mcp` for an address that a sign-in at `server` must not lead to. */
export function checkReach({ protocol, hostname, origin }: URL, server: URL): void {
  const kind = hostKind(hostname);
  const isSafe = protocol === 'https:' || (protocol === 'http:' && kind === 'loopback');
  if (!isSafe || isNeverReached(kind))
    throw new TelosError('mcp', [
      sentence('its sign-in leads to {0}, but only https is allowed', origin === 'null' ? protocol : origin),
    ]);
  if (kind !== 'public' && kind !== hostKind(server.hostname))
    throw new TelosError('mcp', [
      sentence('its sign-in leads to {0}, inside a private network that the server is not in', origin),
    ]);
}
