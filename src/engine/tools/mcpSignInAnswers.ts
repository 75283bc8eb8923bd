/** Reads what takes part in a sign-in at an MCP server says: the server's refusal, the authorization server's description, the browser's answer, and what was kept. */
import { TelosError } from '../errors.ts';
import type { KnownClient } from './mcpConfig.ts';
import {
  type discoverOAuthServerInfo,
  extractWWWAuthenticateParams,
  type OAuthClientProvider,
} from './mcpSdk.ts';

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
