/**
 * Signs in at a remote MCP server that asks for it (OAuth 2.1 with PKCE): in the person's own browser, once they have agreed to where it leads.
 * What is given out is kept for the agent and the server's origin, renewed without a question, and sent nowhere else.
 */

import { randomBytes } from 'node:crypto';
import { TelosError } from '../errors.ts';
import { checkedFetch } from '../tools/checkedFetch.ts';
import type { KnownClient, RemoteServer } from './config.ts';
import { auth, discoverOAuthServerInfo, type OAuthClientProvider } from './sdk.ts';
import {
  type Challenge,
  type ClientInformation,
  challengeOf,
  checkIssuer,
  checkReach,
  clientOf,
  codeIn,
  type Discovery,
  guardedFetch,
  KeptSignIn,
  lacksScope,
  originsOf,
  placesOf,
  type SecretPlace,
  unknownClient,
} from './signInState.ts';

/** What a frontend does for a sign-in. Without it, a server that wants one is told to be out of reach. */
export interface SignInPort extends SecretPlace {
  /** Where the browser comes back to; an address that leads to this frontend alone. */
  redirectUrl(): Promise<string>;
  /** Opens the page and waits for the browser to come back with this `state`. Rejects on abort, and when the person takes too long. */
  visit(url: string, state: string, signal: AbortSignal): Promise<URLSearchParams>;
}

export class McpSignIn {
  readonly #port: SignInPort;
  readonly #learn: (secrets: readonly string[]) => void;
  readonly #server: URL;
  readonly #kept: KeptSignIn;
  readonly #client: KnownClient | undefined;
  /** What the person has not agreed to yet. */
  #found: Discovery | undefined;
  #renewing: Promise<boolean> | undefined;
  /** What the server said when it refused a request; undefined as long as it has not. */
  #challenge: Challenge | undefined;

  /** `learn` is told what must not be shown, as soon as it is known. */
  constructor(
    port: SignInPort,
    agent: string,
    { url, oauth }: Pick<RemoteServer, 'url' | 'oauth'>,
    learn: (secrets: readonly string[]) => void,
  ) {
    this.#port = port;
    this.#learn = learn;
    this.#client = oauth;
    this.#server = new URL(url);
    // A token is for one of the places of an origin, and for the agent that the person has accepted.
    const place = `telos.mcp.${agent}.${this.#server.origin}${this.#server.pathname}`;
    this.#kept = new KeptSignIn(port, place, learn);
  }

  /** True once the server has asked for a sign-in that a person can make. */
  get isWanted(): boolean {
    return this.#challenge !== undefined;
  }

  /** The rights that it wants besides, as the server calls them: a sign-in that was made before does not cover the last request. */
  get wantsMore(): string | undefined {
    return this.#challenge?.more ? (this.#challenge.scope ?? '') : undefined;
  }

  /** For every request to the server: adds what was given out, and renews it once where the server wants another. */
  readonly fetch = async (input: string | URL, init: RequestInit = {}): Promise<Response> => {
    const isOwn = new URL(input).origin === this.#server.origin;
    const headers = new Headers(init.headers);
    const token = (await this.#kept.read()).tokens?.access_token;
    const isOurs = isOwn && !headers.has('authorization');
    if (isOurs && token) headers.set('authorization', `Bearer ${token}`);
    // No redirect is followed here: who sends through this decides on each, and asks again.
    const request = { redirect: 'manual', ...init, headers } as const;
    const response = await checkedFetch(input, request);
    if (!isOurs || !(await this.#hasBetter(token, response))) return response;
    await response.body?.cancel();
    headers.set('authorization', `Bearer ${(await this.#kept.read()).tokens?.access_token}`);
    const second = await checkedFetch(input, request);
    if (lacksScope(second)) this.#challenge = { ...challengeOf(second, this.#server), more: true };
    else if (second.status !== 401) this.#challenge = undefined;
    return second;
  };

  /** Notes why a request was refused, where it was. True when there is another token by now with which it is worth another try. */
  async #hasBetter(token: string | undefined, response: Response): Promise<boolean> {
    if (response.status === 401) {
      this.#challenge = challengeOf(response, this.#server);
      return this.#renew(token);
    }
    if (token === undefined || !lacksScope(response)) return false;
    // The sign-in of another call may have come between.
    const { tokens } = await this.#kept.read();
    if (tokens && tokens.access_token !== token) return true;
    this.#challenge = { ...challengeOf(response, this.#server), more: true };
    return false;
  }

  /** The origins that a sign-in would lead to: the page for the browser first. Throws TelosError `mcp` for one that must not be reached. */
  async origins(signal: AbortSignal): Promise<string[]> {
    checkReach(this.#server, this.#server);
    const fetchFn = guardedFetch(this.#server, undefined, signal);
    const { resourceMetadataUrl } = this.#challenge ?? {};
    const at = resourceMetadataUrl ? { resourceMetadataUrl } : {};
    const found = await discoverOAuthServerInfo(this.#server, { ...at, fetchFn });
    checkIssuer(found);
    await this.#checkClient(found);
    for (const place of placesOf(found)) checkReach(place, this.#server);
    this.#found = found;
    return originsOf(found);
  }

  /** Asks nobody to sign in for a client that the authorization server does not know, or that is known to another one. */
  async #checkClient({
    authorizationServerUrl: issuer,
    authorizationServerMetadata,
  }: Discovery): Promise<void> {
    const { known, client, redirectUrl } = await this.#kept.read();
    if (this.#client) {
      if (known?.clientId !== this.#client.clientId || known.issuer === issuer) return;
      throw new TelosError(
        'mcp',
        `it sends people to ${issuer} now, and the client id of its entry belongs to ${known.issuer}. If that is right, "Telos: Clear Secrets" forgets where it belongs`,
      );
    }
    if (authorizationServerMetadata?.registration_endpoint) return;
    const own = await this.#port.redirectUrl();
    if (!client || redirectUrl !== own) throw unknownClient(issuer, own);
  }

  /** Call `origins` before, and ask. Throws TelosError `mcp` with the reason, and the abort reason on abort. */
  async signIn(signal: AbortSignal): Promise<void> {
    const state = randomBytes(24).toString('base64url');
    const redirectUrl = await this.#port.redirectUrl();
    let page: URL | undefined;
    const from = await this.#wanted();
    const show = (url: URL): void => {
      page = url;
    };
    const provider = await this.#provider(redirectUrl, state, show, from.scope);
    // What was given out before does not cover it, and would only be renewed.
    if (this.#challenge?.more) provider.tokens = () => undefined;
    const discovery = this.#found;
    const allowed = discovery ? [...originsOf(discovery), this.#server.origin] : [];
    const options = {
      serverUrl: this.#server,
      ...from,
      fetchFn: guardedFetch(this.#server, allowed, signal),
    };
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
    const kept = await this.#kept.again();
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
      const fetchFn = guardedFetch(
        this.#server,
        [...allowed, this.#server.origin],
        new AbortController().signal,
      );
      return (await auth(provider, { serverUrl: this.#server, fetchFn })) === 'AUTHORIZED';
    } catch {
      // Another window may have been faster. Else whoever needs it signs in again: the run says that the server wants it.
      const { tokens } = await this.#kept.again();
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
    asked?: string,
  ): Promise<OAuthClientProvider> {
    const kept = await this.#kept.read();
    let verifier = '';
    const known = this.#client;
    // A registration names the address that the browser comes back to.
    let client = kept.redirectUrl === redirectUrl ? kept.client : undefined;
    if (known) client = clientOf(known, kept);
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
      ...(known
        ? {}
        : {
            saveClientInformation: async (information: ClientInformation) => {
              client = information;
              await this.#kept.write({ ...(await this.#kept.read()), client: information, redirectUrl });
            },
          }),
      tokens: async () => (await this.#kept.read()).tokens,
      saveTokens: async tokens => {
        const { issuer } = tokens;
        const kept = await this.#kept.read();
        // It is only told where it differs from what was asked for.
        const scope = tokens.scope ?? asked ?? kept.tokens?.scope;
        const discovery = this.#found ?? kept.discovery;
        await this.#kept.write({
          ...kept,
          tokens: { ...tokens, ...(scope === undefined ? {} : { scope }) },
          ...(discovery ? { discovery } : {}),
          ...(known && issuer ? { known: { clientId: known.clientId, issuer }, redirectUrl } : {}),
        });
      },
      redirectToAuthorization: show,
      saveCodeVerifier: text => {
        verifier = text;
        this.#learn([text]);
      },
      codeVerifier: () => verifier,
      discoveryState: async () => this.#found ?? (await this.#kept.read()).discovery,
      invalidateCredentials: async scope => {
        const refused = (await this.#kept.read()).tokens;
        const { client: registered, tokens, ...rest } = await this.#kept.again();
        // What another window has got meanwhile is not what was refused.
        if (tokens?.access_token !== refused?.access_token) return;
        if (!known && (scope === 'all' || scope === 'client')) client = undefined;
        await this.#kept.write({
          ...rest,
          ...(client && !known ? { client: registered } : {}),
          ...(scope === 'all' || scope === 'tokens' ? {} : { tokens }),
        });
      },
    };
  }

  /** Rights that were given before are asked for again, or the new token would lack them. */
  async #wanted(): Promise<{ scope?: string; resourceMetadataUrl?: URL }> {
    const { more, ...wanted } = this.#challenge ?? {};
    if (!more || wanted.scope === undefined) return wanted;
    const before = (await this.#kept.read()).tokens?.scope?.split(' ') ?? [];
    return { ...wanted, scope: [...new Set([...before, ...wanted.scope.split(' ')])].join(' ') };
  }
}
