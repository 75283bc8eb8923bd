/** Reads what takes part in a sign-in at an MCP server says: the server's refusal, the authorization server's description, the browser's answer, and what was kept. */

import { TelosError } from '../errors.ts';
import { hostKind, isNeverReached } from '../tools/addresses.ts';
import { checkedFetch } from '../tools/checkedFetch.ts';
import type { KnownClient } from './config.ts';
import {
  type discoverOAuthServerInfo,
  extractWWWAuthenticateParams,
  type OAuthClientProvider,
} from './sdk.ts';

type Tokens = Parameters<OAuthClientProvider['saveTokens']>[0];
export type ClientInformation = Awaited<ReturnType<OAuthClientProvider['clientInformation']>>;
export type Discovery = Awaited<ReturnType<typeof discoverOAuthServerInfo>>;

/** Of one server, for one agent. */
export interface Kept {
  redirectUrl?: string;
  client?: ClientInformation;
  tokens?: Tokens | undefined;
  discovery?: Discovery;
  /** With whom a client that mcp.json names has signed in: its secret goes to nobody else. */
  known?: { clientId: string; issuer: string };
}

/** Why a request was refused. */
export interface Challenge {
  scope?: string;
  resourceMetadataUrl?: URL;
  /** The person is signed in, but not for this. */
  more?: boolean;
}

/** What mcp.json says of the client, bound to the authorization server with which it has signed in before. */
export function clientOf({ clientId, clientSecret }: KnownClient, { known }: Kept): ClientInformation {
  return {
    client_id: clientId,
    ...(clientSecret ? { client_secret: clientSecret } : {}),
    ...(known?.clientId === clientId ? { issuer: known.issuer } : {}),
  };
}

export function unknownClient(server: string, redirectUrl: string): TelosError {
  return new TelosError(
    'mcp',
    `${new URL(server).origin} gives out no client ids by itself; make one there for the address ${redirectUrl} and write it into its entry: "oauth": {"clientId": "..."}`,
  );
}

/** A sign-in that covers more is what helps, and no other one. */
export const lacksScope = (response: Response): boolean =>
  response.status === 403 && extractWWWAuthenticateParams(response).error === 'insufficient_scope';

/** A server names where its description lies; only its own origin is believed. */
export function challengeOf(response: Response, server: URL): Challenge {
  const { scope, resourceMetadataUrl } = extractWWWAuthenticateParams(response);
  return {
    ...(scope ? { scope } : {}),
    ...(resourceMetadataUrl?.origin === server.origin ? { resourceMetadataUrl } : {}),
  };
}

/** One that speaks in the name of another could have the other's codes brought to it. */
export function checkIssuer({
  authorizationServerUrl,
  authorizationServerMetadata: metadata,
}: Discovery): void {
  if (!metadata)
    throw new TelosError(
      'mcp',
      'it wants a sign-in and does not say where; what it accepts goes into "headers" of its entry',
    );
  const { origin } = new URL(authorizationServerUrl);
  if (!URL.canParse(metadata.issuer) || new URL(metadata.issuer).origin !== origin)
    throw new TelosError(
      'mcp',
      `the authorization server ${origin} calls itself ${metadata.issuer.slice(0, 200)}`,
    );
}

/** The page for the browser first. */
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
    throw new TelosError('mcp', 'the answer to its sign-in is that of another one');
  const refusal = answer.get('error');
  if (refusal !== null) {
    const why = answer.get('error_description') ?? refusal;
    throw new TelosError('mcp', `the sign-in was refused: ${why.slice(0, 200)}`);
  }
  const code = answer.get('code');
  if (!code) throw new TelosError('mcp', 'its sign-in came back without a code');
  return code;
}

/** What cannot be read is as good as nothing: the person signs in again. */
export function keptIn(text: string | undefined): Kept {
  try {
    const kept: unknown = text === undefined ? {} : JSON.parse(text);
    return typeof kept === 'object' && kept !== null ? kept : {};
  } catch {
    return {};
  }
}

/** A place for secrets. A value of undefined forgets. */
export interface SecretPlace {
  read(name: string): Promise<string | undefined>;
  write(name: string, value: string | undefined): Promise<void>;
}

export class KeptSignIn {
  readonly #place: SecretPlace;
  readonly #name: string;
  readonly #learn: (secrets: readonly string[]) => void;
  #kept: Promise<Kept> | undefined;

  /** `learn` is told what must not be shown, as soon as it is known. */
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

  /** As it lies there now: another window may have signed in, or renewed it. */
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
