/**
 * Fakes a remote MCP server that requires a sign-in, and its authorization server. Each has its own origin; both are written from
 * the specifications.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface SeenRequest {
  /** Method and path, such as `GET /authorize`. */
  what: string;
  authorization: string | undefined;
  body: string;
}

export interface SignInFaults {
  /** The person refuses on the page. */
  denies?: boolean;
  /** Value that the page returns in place of the state. */
  state?: string;
  /** Origin of the authorization page, according to the metadata. */
  page?: string;
  /** Origin of the token endpoint, according to the metadata. */
  tokens?: string;
  /** Issuer according to the metadata. */
  issuer?: string;
  /** Characters that its description has too many. */
  padding?: number;
  /** The ways in which it says that it protects codes; null for a server that does not say any. */
  pkce?: readonly string[] | null;
  /** Address to which the MCP server redirects every request. */
  redirect?: string;
  /** Rejects every refresh token from now on. */
  refusesRefresh?: boolean;
  /** Registers no clients. They are known beforehand or not at all. */
  registersNobody?: boolean;
  /** Takes addresses of client id metadata documents for clients. */
  takesDocuments?: boolean;
  /** Scope without which no tool can be called. */
  callScope?: string;
  /** Scope that is granted, whatever is requested. */
  givesScope?: string;
}

export interface SignInServers {
  /** Address of the MCP server. */
  url: string;
  /** Address of the MCP server for the older of the two transports over HTTP. */
  sseUrl: string;
  /** Origin of the authorization server. */
  page: string;
  /** May be changed while it runs. */
  faults: SignInFaults;
  /** Requests to each server, in order. */
  seen: { mcp: SeenRequest[]; authorization: SeenRequest[] };
  /** All secrets given out. They must stay hidden. */
  given: string[];
  /** Makes a client known without a registration. */
  know(client: string, redirect: string, secret?: string): void;
  /** Expires every access token given out so far. */
  expire(): void;
  /** Acts as the browser: opens the page and resolves with the address to which it redirects. */
  browse(url: string): Promise<URL>;
  close(): Promise<void>;
}

type Answer = (path: string, body: string, request: IncomingMessage, response: ServerResponse) => void;

/**
 * `pageHost` is an address of this machine for the page that a browser opens. VS Code in a browser leads pages at 127.0.0.1 through
 * itself, but not those at 127.0.0.2. Tokens are given at 127.0.0.1, since clients send them nowhere else without TLS.
 */
export async function startSignInServers(
  faults: SignInFaults = {},
  pageHost = '127.0.0.1',
): Promise<SignInServers> {
  const seen: SignInServers['seen'] = { mcp: [], authorization: [] };
  const given: string[] = [];
  /** Scope by access token. */
  const access = new Map<string, string>();
  const refresh = new Map<string, string>();
  const clients = new Map<string, { redirects: string[]; secret?: string | undefined }>();
  const codes = new Map<string, { challenge: string; redirect: string; client: string; scope: string }>();
  const streams = new Set<ServerResponse>();
  const give = (kind: string): string => {
    const secret = `${kind}-${randomUUID()}`;
    given.push(secret);
    return secret;
  };
  const answer: Answer = (path, body, request, response) => {
    const url = new URL(path, authorization.address);
    const form = new URLSearchParams(body);
    switch (url.pathname) {
      case '/.well-known/oauth-authorization-server':
        return json(response, 200, {
          issuer: faults.issuer ?? authorization.address,
          authorization_endpoint: `${faults.page ?? pages.address}/authorize`,
          token_endpoint: `${faults.tokens ?? authorization.address}/token`,
          ...(faults.registersNobody ? {} : { registration_endpoint: `${authorization.address}/register` }),
          ...(faults.takesDocuments && { client_id_metadata_document_supported: true }),
          response_types_supported: ['code'],
          ...(faults.padding && { padding: 'x'.repeat(faults.padding) }),
          ...(faults.pkce !== null && { code_challenge_methods_supported: faults.pkce ?? ['S256'] }),
          authorization_response_iss_parameter_supported: true,
        });
      case '/register': {
        const { redirect_uris } = JSON.parse(body) as { redirect_uris: string[] };
        const client_id = randomUUID();
        clients.set(client_id, { redirects: redirect_uris });
        return json(response, 201, { client_id, redirect_uris });
      }
      case '/authorize': {
        const [client = '', redirect = '', challenge = '', state = ''] = [
          'client_id',
          'redirect_uri',
          'code_challenge',
          'state',
        ].map(name => url.searchParams.get(name) ?? '');
        if (!clients.get(client)?.redirects.includes(redirect) || challenge === '')
          return json(response, 400, { error: 'invalid_request' });
        const target = new URL(redirect);
        target.searchParams.set('state', faults.state ?? state);
        target.searchParams.set('iss', authorization.address);
        if (faults.denies) {
          target.searchParams.set('error', 'access_denied');
          target.searchParams.set('error_description', 'You have said no.');
        } else {
          // Codes contain what other servers also put into them. It must survive every address.
          const code = give('code+/%3D=');
          const scope = faults.givesScope ?? url.searchParams.get('scope') ?? '';
          codes.set(code, { challenge, redirect, client, scope });
          target.searchParams.set('code', code);
        }
        return void response.writeHead(302, { location: target.href }).end();
      }
      case '/token':
        return token(form, request, response);
      default:
        return json(response, 404, {});
    }
  };
  const authorization = await open('127.0.0.1', seen.authorization, answer);
  const pages = pageHost === '127.0.0.1' ? authorization : await open(pageHost, seen.authorization, answer);

  /** Returns true if the client is known and sends its secret, if it has one, in either usual place. */
  function isClient(form: URLSearchParams, { headers }: IncomingMessage): boolean {
    const basic = Buffer.from(
      /^Basic (.+)$/.exec(headers.authorization ?? '')?.[1] ?? '',
      'base64',
    ).toString();
    const [id, secret] = basic ? basic.split(':') : [form.get('client_id'), form.get('client_secret')];
    const known = clients.get(id ?? '');
    return known !== undefined && (known.secret ?? null) === (secret ?? null);
  }

  function token(form: URLSearchParams, request: IncomingMessage, response: ServerResponse): void {
    const refused = (): void => json(response, 400, { error: 'invalid_grant' });
    if (!isClient(form, request)) {
      json(response, 401, { error: 'invalid_client' });
      return;
    }
    let scope = '';
    if (form.get('grant_type') === 'authorization_code') {
      const code = form.get('code') ?? '';
      const asked = codes.get(code);
      codes.delete(code);
      const verifier = form.get('code_verifier') ?? '';
      given.push(verifier);
      const challenge = createHash('sha256').update(verifier).digest('base64url');
      if (asked?.challenge !== challenge || asked.redirect !== form.get('redirect_uri')) {
        refused();
        return;
      }
      scope = asked.scope;
    } else {
      const old = form.get('refresh_token') ?? '';
      scope = refresh.get(old) ?? '';
      if (faults.refusesRefresh || !refresh.delete(old)) {
        refused();
        return;
      }
    }
    const [access_token, refresh_token] = [give('access'), give('refresh')];
    access.set(access_token, scope);
    refresh.set(refresh_token, scope);
    json(response, 200, { access_token, refresh_token, token_type: 'Bearer', expires_in: 3600 });
  }

  const mcp = await open('127.0.0.1', seen.mcp, (path, body, { headers }, response) => {
    const [, described] = /^\/\.well-known\/oauth-protected-resource(\/\w+)$/.exec(path) ?? [];
    if (described) {
      const resource = `${mcp.address}${described}`;
      return json(response, 200, { resource, authorization_servers: [authorization.address] });
    }
    if (path !== '/mcp' && path !== '/sse') return json(response, 404, {});
    if (faults.redirect) return void response.writeHead(307, { location: faults.redirect }).end();
    const bearer = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ?? '';
    const challenge = `Bearer resource_metadata="${mcp.address}/.well-known/oauth-protected-resource${path}"`;
    const scope = access.get(bearer);
    if (scope === undefined) return void response.writeHead(401, { 'www-authenticate': challenge }).end();
    if (body === '' && path === '/sse') {
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .write('event: endpoint\ndata: /sse\n\n');
      return void streams.add(response);
    }
    if (body === '') return void response.writeHead(405).end();
    const { id, method, params } = JSON.parse(body);
    const { callScope } = faults;
    if (method === 'tools/call' && callScope && !scope.split(' ').includes(callScope)) {
      const lacks = `${challenge}, error="insufficient_scope", scope="${callScope}"`;
      return void response.writeHead(403, { 'www-authenticate': lacks }).end();
    }
    if (id === undefined) return void response.writeHead(202).end();
    const answer = { jsonrpc: '2.0', id, result: resultOf(method, params, headers) };
    if (path === '/mcp') return json(response, 200, answer);
    response.writeHead(202).end();
    for (const stream of streams) stream.write(`event: message\ndata: ${JSON.stringify(answer)}\n\n`);
  });

  return {
    url: `${mcp.address}/mcp`,
    sseUrl: `${mcp.address}/sse`,
    page: pages.address,
    faults,
    seen,
    given,
    know: (client, redirect, secret) => void clients.set(client, { redirects: [redirect], secret }),
    expire: () => access.clear(),
    async browse(url) {
      const response = await fetch(url, { redirect: 'manual' });
      return new URL(response.headers.get('location') ?? 'nowhere:');
    },
    close: async () => void (await Promise.all([mcp, authorization, pages].map(one => one.close()))),
  };
}

/** Returns the result of a method. The one tool returns all the headers with which it was called. */
function resultOf(
  method: string,
  params: { protocolVersion?: string },
  headers: IncomingMessage['headers'],
): object {
  if (method === 'tools/list')
    return { tools: [{ name: 'headers', description: 'Says them.', inputSchema: { type: 'object' } }] };
  if (method === 'tools/call') return { content: [{ type: 'text', text: JSON.stringify(headers) }] };
  return {
    protocolVersion: params.protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'guarded', version: '1' },
  };
}

async function open(
  host: string,
  seen: SeenRequest[],
  answer: Answer,
): Promise<{ address: string; close(): Promise<void> }> {
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const body = Buffer.concat(pieces).toString('utf8');
    const path = request.url ?? '';
    const what = `${request.method} ${path.replace(/\?.*$/, '')}`;
    seen.push({ what, authorization: request.headers.authorization, body });
    answer(path, body, request, response);
  });
  await new Promise<void>(resolve => server.listen(0, host, resolve));
  const close = (): Promise<void> =>
    new Promise(resolve => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { address: `http://${host}:${(server.address() as AddressInfo).port}`, close };
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
