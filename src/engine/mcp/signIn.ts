/**
 * Signs in at a remote MCP server that asks for it (OAuth 2.1 with PKCE). This happens in the person's own browser, after they
 * have agreed to the addresses that it leads to. Tokens are kept for the agent and the server's address, renewed without a
 * question, and sent nowhere else.
 */

import { randomBytes } from 'node:crypto';
import { beginningOf, sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import type { SignInPort } from '../human.ts';
import { checkedFetch } from '../tools/checkedFetch.ts';
import { type KnownClient, type RemoteServer, signInName } from './config.ts';
import { auth, discoverOAuthServerInfo, type OAuthClientProvider } from './sdk.ts';
import {
  type Challenge,
  type ClientInformation,
  challengeOf,
  checkAuthorizationServer,
  checkReach,
  clientOf,
  codeIn,
  type Discovery,
  documentOf,
  guardedFetch,
  isDocument,
  KeptSignIn,
  lacksScope,
  originsOf,
  placesOf,
  unknownClient,
} from './signInState.ts';

export class McpSignIn {
  readonly #port: SignInPort;
  readonly #learn: (secrets: readonly string[]) => void;
  readonly #server: URL;
  readonly #kept: KeptSignIn;
  readonly #client: KnownClient | undefined;
  /** The addresses found by `origins`, which the person has not agreed to yet. */
  #found: Discovery | undefined;
  #renewing: Promise<boolean> | undefined;
  /** The server's reason for refusing a request; undefined while it has refused none. */
  #challenge: Challenge | undefined;

  /** `learn` receives secrets, which must not be shown, as soon as they are known. */
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
    this.#kept = new KeptSignIn(port, signInName(agent, url), learn);
  }

  /** True once the server has asked for a sign-in that a person can make. */
  get isWanted(): boolean {
    return this.#challenge !== undefined;
  }

  /** The authorization server that `origins` has found last. */
  get issuer(): string | undefined {
    return this.#found?.authorizationServerUrl;
  }

  /** The further rights that the server wants, by the server's names. The earlier sign-in does not cover the last request. */
  get wantsMore(): string | undefined {
    return this.#challenge?.more ? (this.#challenge.scope ?? '') : undefined;
  }

  /** Sends a request to the server with the token, and renews the token once if the server refuses it. */
  readonly fetch = async (input: string | URL, init: RequestInit = {}): Promise<Response> => {
    const isOwn = new URL(input).origin === this.#server.origin;
    const headers = new Headers(init.headers);
    const token = (await this.#kept.read()).tokens?.access_token;
    const isOurs = isOwn && !headers.has('authorization');
    if (isOurs && token) headers.set('authorization', `Bearer ${token}`);
    // Redirects are not followed here: the caller decides on each, and sends another request.
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

  /** Stores why a request was refused. Resolves with true if there is another token by now, so that a retry may succeed. */
  async #hasBetter(token: string | undefined, response: Response): Promise<boolean> {
    if (response.status === 401) {
      this.#challenge = challengeOf(response, this.#server);
      return this.#renew(token);
    }
    if (token === undefined || !lacksScope(response)) return false;
    // Another call may have signed in meanwhile.
    const { tokens } = await this.#kept.read();
    if (tokens && tokens.access_token !== token) return true;
    this.#challenge = { ...challengeOf(response, this.#server), more: true };
    return false;
  }

  /**
   * Returns the origins that a sign-in would lead to, that of the browser's page first. Throws TelosError `mcp` for an
   * address that must not be reached.
   */
  async origins(signal: AbortSignal): Promise<string[]> {
    checkReach(this.#server, this.#server);
    const fetchFn = guardedFetch(this.#server, undefined, signal);
    const { resourceMetadataUrl } = this.#challenge ?? {};
    const at = resourceMetadataUrl ? { resourceMetadataUrl } : {};
    const found = await discoverOAuthServerInfo(this.#server, {
      ...at,
      fetchFn,
      // `checkAuthorizationServer` compares them, and says so in words.
      skipIssuerMetadataValidation: true,
    });
    checkAuthorizationServer(found);
    await this.#checkClient(found);
    for (const place of placesOf(found)) checkReach(place, this.#server);
    this.#found = found;
    return originsOf(found);
  }

  /**
   * Throws TelosError `mcp` if the authorization server does not know the client, or if the client belongs to another server.
   * In these cases the person must not be asked to sign in.
   */
  async #checkClient({
    authorizationServerUrl: issuer,
    authorizationServerMetadata,
  }: Discovery): Promise<void> {
    const { known, client, redirectUrl } = await this.#kept.read();
    if (this.#client) {
      if (known?.clientId !== this.#client.clientId || known.issuer === issuer) return;
      throw new TelosError('mcp', [
        sentence(
          'its sign-in is now at {0}, and the client id of its entry belongs to {1}. If that is correct, clear the secrets that Telos keeps, then sign in again',
          issuer,
          known.issuer,
        ),
      ]);
    }
    const takesDocument = authorizationServerMetadata?.client_id_metadata_document_supported === true;
    if (takesDocument && (await documentOf(this.#port))) return;
    if (authorizationServerMetadata?.registration_endpoint) return;
    const own = await this.#port.redirectUrl();
    if (!client || redirectUrl !== own) throw unknownClient(issuer, own);
  }

  /**
   * Signs in. Before, the caller must call `origins` and ask the person. Throws TelosError `mcp` with the reason, and the
   * abort reason on abort.
   */
  async signIn(signal: AbortSignal): Promise<void> {
    const state = randomBytes(24).toString('base64url');
    const redirectUrl = await this.#port.redirectUrl();
    let page: URL | undefined;
    const from = await this.#wanted();
    const show = (url: URL): void => {
      page = url;
    };
    const provider = await this.#provider(redirectUrl, state, show, from.scope);
    // The earlier token does not cover the request, and would only be renewed.
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
      throw new TelosError('mcp', [sentence('its sign-in page is at another address than it announced')]);
    const answer = await this.#port.visit(page.href, state, signal);
    const authorizationCode = codeIn(answer, state, discovery);
    this.#learn([authorizationCode]);
    const iss = answer.get('iss');
    await this.#orWhy(auth(provider, { ...options, authorizationCode, ...(iss !== null && { iss }) }));
    this.#challenge = undefined;
  }

  /** Resolves with true if the token is now another than `refused`. Requests that were refused together renew it once. */
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
      // Another window may have been faster. If not, a new sign-in is needed: the run reports that the server wants one.
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
      throw new TelosError('mcp', [sentence('its sign-in failed: {0}', beginningOf(why, 300))], {
        cause: error,
      });
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
    // A registration contains the address that the browser returns to.
    let client = kept.redirectUrl === redirectUrl ? kept.client : undefined;
    if (known) client = clientOf(known, kept);
    const isNew = state !== '';
    const { client_id_metadata_document_supported: takesDocument } =
      this.#found?.authorizationServerMetadata ?? {};
    const document = isNew && !known && takesDocument === true ? await documentOf(this.#port) : undefined;
    // A renewal needs the client that has signed in; a new sign-in takes the document that is set now.
    if (isNew && !known && isDocument(client) && client.client_id !== document) client = undefined;
    return {
      redirectUrl,
      ...(document === undefined ? {} : { clientMetadataUrl: document }),
      clientMetadata: {
        client_name: 'Telos',
        application_type: 'native',
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
        // The answer contains the scope only if it differs from the requested one.
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
        // A token that another window has received meanwhile was not refused.
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

  /** Returns the scope to ask for. It includes the rights granted before; otherwise the new token would not have them. */
  async #wanted(): Promise<{ scope?: string; resourceMetadataUrl?: URL }> {
    const { more, ...wanted } = this.#challenge ?? {};
    if (!more || wanted.scope === undefined) return wanted;
    const before = (await this.#kept.read()).tokens?.scope?.split(' ') ?? [];
    return { ...wanted, scope: [...new Set([...before, ...wanted.scope.split(' ')])].join(' ') };
  }
}
