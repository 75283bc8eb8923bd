/**
 * Signs in at a remote MCP server that asks for it (OAuth 2.1 with PKCE): in the person's own browser, once they have agreed to where it leads.
 * What is given out is kept for the agent and the server's origin, renewed without a question, and sent nowhere else.
 */
import { randomBytes } from 'node:crypto';
import { TelosError } from '../errors.ts';
import { hostKind, isNeverReached } from './addresses.ts';
import type { RemoteServer } from './mcpConfig.ts';
import {
  auth,
  discoverOAuthServerInfo,
  extractWWWAuthenticateParams,
  type OAuthClientProvider,
} from './mcpSdk.ts';

/** What a frontend does for a sign-in. Without it, a server that wants one is told to be out of reach. */
export interface SignInPort {
  /** Where the browser comes back to; an address that leads to this frontend alone. */
  redirectUrl(): Promise<string>;
  /** Opens the page and waits for the browser to come back with this `state`. Rejects on abort, and when the person takes too long. */
  visit(url: string, state: string, signal: AbortSignal): Promise<URLSearchParams>;
  /** A place for secrets. A value of undefined forgets. */
  read(name: string): Promise<string | undefined>;
  write(name: string, value: string | undefined): Promise<void>;
}

type Tokens = Parameters<OAuthClientProvider['saveTokens']>[0];
type ClientInformation = Awaited<ReturnType<OAuthClientProvider['clientInformation']>>;
type Discovery = Awaited<ReturnType<typeof discoverOAuthServerInfo>>;

interface Kept {
  redirectUrl?: string;
  client?: ClientInformation;
  tokens?: Tokens | undefined;
  discovery?: Discovery;
}

/** For one of the requests that a sign-in takes, in milliseconds. */
const requestLimit = 15_000;

export class McpSignIn {
  readonly #port: SignInPort;
  readonly #learn: (secrets: readonly string[]) => void;
  readonly #server: URL;
  readonly #place: string;
  /** What the person has not agreed to yet. */
  #found: Discovery | undefined;
  #kept: Promise<Kept> | undefined;
  #renewing: Promise<boolean> | undefined;
  /** What the server said when it refused a request; undefined as long as it has not. */
  #challenge: { scope?: string; resourceMetadataUrl?: URL } | undefined;

  /** `learn` is told what must not be shown, as soon as it is known. */
  constructor(
    port: SignInPort,
    agent: string,
    { url }: Pick<RemoteServer, 'url'>,
    learn: (secrets: readonly string[]) => void,
  ) {
    this.#port = port;
    this.#learn = learn;
    this.#server = new URL(url);
    // A token is for one of the places of an origin, and for the agent that the person has accepted.
    this.#place = `telos.mcp.${agent}.${this.#server.origin}${this.#server.pathname}`;
  }

  /** True once the server has asked for a sign-in that a person can make. */
  get isWanted(): boolean {
    return this.#challenge !== undefined;
  }

  /** For every request to the server: adds what was given out, and renews it once where the server wants another. */
  readonly fetch = async (input: string | URL, init: RequestInit = {}): Promise<Response> => {
    const isOwn = new URL(input).origin === this.#server.origin;
    const headers = new Headers(init.headers);
    const token = (await this.#read()).tokens?.access_token;
    const isOurs = isOwn && !headers.has('authorization');
    if (isOurs && token) headers.set('authorization', `Bearer ${token}`);
    // No redirect is followed here: who sends through this decides on each, and asks again.
    const request = { redirect: 'manual', ...init, headers } as const;
    const response = await fetch(input, request);
    if (response.status !== 401 || !isOurs) return response;
    this.#challenge = challengeOf(response, this.#server);
    if (!(await this.#renew(token))) return response;
    await response.body?.cancel();
    headers.set('authorization', `Bearer ${(await this.#read()).tokens?.access_token}`);
    const second = await fetch(input, request);
    if (second.status !== 401) this.#challenge = undefined;
    return second;
  };

  /** The origins that a sign-in would lead to: the page for the browser first. Throws TelosError `mcp` for one that must not be reached. */
  async origins(signal: AbortSignal): Promise<string[]> {
    this.#check(this.#server);
    const fetchFn = this.#guarded(undefined, signal);
    const found = await discoverOAuthServerInfo(this.#server, { ...this.#from(), fetchFn });
    checkIssuer(found);
    for (const place of placesOf(found)) this.#check(place);
    this.#found = found;
    return originsOf(found);
  }

  /** Call `origins` before, and ask. Throws TelosError `mcp` with the reason, and the abort reason on abort. */
  async signIn(signal: AbortSignal): Promise<void> {
    const state = randomBytes(24).toString('base64url');
    const redirectUrl = await this.#port.redirectUrl();
    let page: URL | undefined;
    const provider = await this.#provider(redirectUrl, state, url => {
      page = url;
    });
    const discovery = this.#found;
    const allowed = discovery ? [...originsOf(discovery), this.#server.origin] : [];
    const options = { serverUrl: this.#server, ...this.#from(), fetchFn: this.#guarded(allowed, signal) };
    if ((await this.#orWhy(auth(provider, options))) === 'AUTHORIZED') return;
    if (!page || !allowed.includes(page.origin))
      throw new TelosError('mcp', 'its sign-in page is not where it said that it would be');
    const answer = await this.#port.visit(page.href, state, signal);
    const authorizationCode = codeIn(answer, state, discovery);
    this.#learn([authorizationCode]);
    await this.#orWhy(auth(provider, { ...options, authorizationCode }));
    this.#challenge = undefined;
  }

  /** True when there is another token than `refused` now; several requests that were refused together renew it once. */
  async #renew(refused: string | undefined): Promise<boolean> {
    const kept = await this.#again();
    if (kept.tokens?.access_token !== refused) return kept.tokens !== undefined;
    if (!kept.tokens?.refresh_token || !kept.discovery || !kept.redirectUrl) return false;
    this.#renewing ??= this.#renewed(kept.redirectUrl, originsOf(kept.discovery), refused).finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  async #renewed(
    redirectUrl: string,
    allowed: readonly string[],
    refused: string | undefined,
  ): Promise<boolean> {
    const nobodyLooks = (): never => {
      throw new Error('A new sign-in is needed.');
    };
    try {
      const provider = await this.#provider(redirectUrl, '', nobodyLooks);
      const fetchFn = this.#guarded([...allowed, this.#server.origin], new AbortController().signal);
      return (await auth(provider, { serverUrl: this.#server, fetchFn })) === 'AUTHORIZED';
    } catch {
      // Another window may have been faster. Else whoever needs it signs in again: the run says that the server wants it.
      const { tokens } = await this.#again();
      return tokens !== undefined && tokens.access_token !== refused;
    }
  }

  async #orWhy<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (error instanceof TelosError) throw error;
      const why = error instanceof Error ? error.message : String(error);
      throw new TelosError('mcp', `its sign-in failed: ${why.slice(0, 300)}`, { cause: error });
    }
  }

  async #provider(
    redirectUrl: string,
    state: string,
    show: (page: URL) => void,
  ): Promise<OAuthClientProvider> {
    const kept = await this.#read();
    let verifier = '';
    // A registration names the address that the browser comes back to.
    let client = kept.redirectUrl === redirectUrl ? kept.client : undefined;
    return {
      redirectUrl,
      clientMetadata: {
        client_name: 'Telos',
        redirect_uris: [redirectUrl],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
      },
      state: () => state,
      clientInformation: () => client,
      saveClientInformation: async information => {
        client = information;
        await this.#write({ ...(await this.#read()), client: information, redirectUrl });
      },
      tokens: async () => (await this.#read()).tokens,
      saveTokens: async tokens => {
        const discovery = this.#found ?? (await this.#read()).discovery;
        await this.#write({ ...(await this.#read()), tokens, ...(discovery ? { discovery } : {}) });
      },
      redirectToAuthorization: show,
      saveCodeVerifier: text => {
        verifier = text;
        this.#learn([text]);
      },
      codeVerifier: () => verifier,
      discoveryState: async () => this.#found ?? (await this.#read()).discovery,
      invalidateCredentials: async scope => {
        const refused = (await this.#read()).tokens;
        const { client: registered, tokens, ...rest } = await this.#again();
        // What another window has got meanwhile is not what was refused.
        if (tokens?.access_token !== refused?.access_token) return;
        if (scope === 'all' || scope === 'client') client = undefined;
        await this.#write({
          ...rest,
          ...(client ? { client: registered } : {}),
          ...(scope === 'all' || scope === 'tokens' ? {} : { tokens }),
        });
      },
    };
  }

  #from(): { scope?: string; resourceMetadataUrl?: URL } {
    return this.#challenge ?? {};
  }

  /** Follows no redirect, and reaches nothing that a server of this kind has no business to name. */
  #guarded(allowed: readonly string[] | undefined, signal: AbortSignal) {
    return async (input: string | URL, init?: RequestInit): Promise<Response> => {
      const url = new URL(input);
      this.#check(url);
      if (allowed && !allowed.includes(url.origin))
        throw new TelosError('mcp', `its sign-in wants to reach ${url.origin}, which was not agreed to`);
      const stop = AbortSignal.any([signal, AbortSignal.timeout(requestLimit)]);
      return fetch(url, { ...init, redirect: 'error', signal: stop });
    };
  }

  #check({ protocol, hostname, origin }: URL): void {
    const kind = hostKind(hostname);
    const isSafe = protocol === 'https:' || (protocol === 'http:' && kind === 'loopback');
    if (!isSafe || isNeverReached(kind))
      throw new TelosError(
        'mcp',
        `its sign-in leads to ${origin === 'null' ? protocol : origin}, and only https is taken for one`,
      );
    if (kind !== 'public' && kind !== hostKind(this.#server.hostname))
      throw new TelosError('mcp', `its sign-in leads to ${origin}, inside a network that it is not in`);
  }

  /** As it lies there now: another window may have signed in, or renewed it. */
  #again(): Promise<Kept> {
    this.#kept = undefined;
    return this.#read();
  }

  #read(): Promise<Kept> {
    this.#kept ??= this.#port.read(this.#place).then(text => {
      const kept = keptIn(text);
      this.#remember(kept);
      return kept;
    });
    return this.#kept;
  }

  async #write(kept: Kept): Promise<void> {
    this.#kept = Promise.resolve(kept);
    this.#remember(kept);
    await this.#port.write(this.#place, JSON.stringify(kept));
  }

  #remember({ tokens, client }: Kept): void {
    const given = [tokens?.access_token, tokens?.refresh_token, tokens?.id_token, client?.client_secret];
    this.#learn(given.filter(secret => secret !== undefined));
  }
}

/** A server names where its description lies; only its own origin is believed. */
function challengeOf(response: Response, server: URL): { scope?: string; resourceMetadataUrl?: URL } {
  const { scope, resourceMetadataUrl } = extractWWWAuthenticateParams(response);
  return {
    ...(scope ? { scope } : {}),
    ...(resourceMetadataUrl?.origin === server.origin ? { resourceMetadataUrl } : {}),
  };
}

/** One that speaks in the name of another could have the other's codes brought to it. */
function checkIssuer({ authorizationServerUrl, authorizationServerMetadata: metadata }: Discovery): void {
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
function placesOf({ authorizationServerUrl, authorizationServerMetadata: metadata }: Discovery): URL[] {
  const places = [
    metadata?.authorization_endpoint,
    authorizationServerUrl,
    metadata?.token_endpoint,
    metadata?.registration_endpoint,
  ];
  return places.flatMap(place => (place ? [new URL(place)] : []));
}

const originsOf = (found: Discovery): string[] => [...new Set(placesOf(found).map(({ origin }) => origin))];

function codeIn(answer: URLSearchParams, state: string, discovery: Discovery | undefined): string {
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
function keptIn(text: string | undefined): Kept {
  try {
    const kept: unknown = text === undefined ? {} : JSON.parse(text);
    return typeof kept === 'object' && kept !== null ? kept : {};
  } catch {
    return {};
  }
}
