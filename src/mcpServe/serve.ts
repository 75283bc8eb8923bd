/** Opens the MCP server to programs: over two streams, or over HTTP on the loopback address. */
import { timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Telos } from '@telos/engine/telos';
import {
  createMcpHandler,
  hostHeaderValidationResponse,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  originValidationResponse,
  StdioServerTransport,
  serveStdio,
} from './sdk.ts';
import { SkillServer } from './server.ts';

export interface McpServeParts {
  telos: Telos;
  /** The version of Telos. */
  version: string;
}

/** Serves one client until it closes the input or the signal aborts. Then all runs are stopped, with their commands. */
export async function serveMcp(
  { telos, version }: McpServeParts,
  input: Readable,
  output: Writable,
  signal: AbortSignal,
): Promise<void> {
  const skills = new SkillServer(telos, version);
  const handle = serveStdio(() => skills.connection(), {
    transport: new StdioServerTransport(input, output),
  });
  await Promise.race([once(input, 'close'), once(input, 'end'), once(signal, 'abort')]);
  await skills.close();
  await handle.close();
}

/**
 * Serves any number of clients at `http://127.0.0.1:PORT/mcp`, each with the token as its bearer, until the signal aborts. `port` 0 takes a
 * free one. `onReady` gets the address. Throws the error of the system if the port is taken.
 */
export async function serveMcpHttp(
  { telos, version }: McpServeParts,
  { port, token }: { port: number; token: string },
  onReady: (address: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const skills = new SkillServer(telos, version);
  const handler = createMcpHandler(() => skills.connection());
  const server = createServer((request, response) => {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const asked = requestOf(request, gone.signal);
    const refused = refusalOf(asked, token);
    void Promise.resolve(refused ?? handler.fetch(asked))
      .then(answer => send(answer, response))
      .catch(() => response.destroy());
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  onReady(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
  if (!signal.aborted) await once(signal, 'abort');
  await skills.close();
  await handler.close();
  server.closeAllConnections();
  await new Promise(resolve => server.close(resolve));
}

/** Returns the answer to a request that is let in by nobody: from a page, for another host, without the token. */
function refusalOf(request: Request, token: string): Response | undefined {
  const strange =
    hostHeaderValidationResponse(request, localhostAllowedHostnames()) ??
    originValidationResponse(request, localhostAllowedOrigins());
  if (strange) return strange;
  if (new URL(request.url).pathname !== '/mcp') return new Response('Not found', { status: 404 });
  const given = Buffer.from(request.headers.get('authorization') ?? '');
  const wanted = Buffer.from(`Bearer ${token}`);
  if (given.length === wanted.length && timingSafeEqual(given, wanted)) return undefined;
  return new Response('Unauthorized', { status: 401, headers: { 'www-authenticate': 'Bearer' } });
}

function requestOf(request: IncomingMessage, signal: AbortSignal): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers))
    for (const one of [value ?? []].flat()) headers.append(name, one);
  const { method = 'GET', url = '/' } = request;
  const hasBody = method !== 'GET' && method !== 'HEAD';
  return new Request(new URL(url, `http://${request.headers.host ?? '127.0.0.1'}`), {
    method,
    headers,
    signal,
    ...(hasBody && { body: Readable.toWeb(request) as ReadableStream, duplex: 'half' }),
  });
}

async function send(answer: Response, response: ServerResponse): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (!answer.body) return void response.end();
  await pipeline(Readable.fromWeb(answer.body as never), response);
}
