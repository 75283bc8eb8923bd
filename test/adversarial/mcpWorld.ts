/** Makes what cases on MCP servers need: servers to start, servers that names lead to, and an agent that wants them. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Telos } from '../../src/engine/telos.ts';
import type { ApprovalDecision } from '../../src/protocol/run.ts';
import type { AgentRun } from './agentRun.ts';
import type { CaseInput } from './caseFile.ts';
import type { Seen } from './checks.ts';
import { inOwnNetwork, namesIn } from './kinds/pages.ts';
import type { McpCaseOptions } from './mcpCaseServer.ts';
import { agentName, type World } from './world.ts';

const program = fileURLToPath(new URL('mcpCaseServer.ts', import.meta.url));
export const yes: ApprovalDecision = { allow: true, scope: 'once' };

/** Returns what was said of the servers: where the agent works stands before it in each run. */
export const noticesOf = ({ events }: AgentRun): string =>
  events
    .flatMap(event =>
      event.type === 'notice' && !event.message.startsWith('Works in: ') ? [event.message] : [],
    )
    .join('\n');

export const completed = ({ events }: AgentRun): boolean => {
  const end = events.at(-1);
  return end?.type === 'run_end' && end.outcome === 'completed';
};

export const offeredIn = (run: AgentRun): { name: string; description: string }[] =>
  run.requests[0]?.body?.tools ?? [];

export async function accept(world: World, env: Record<string, string> = {}): Promise<void> {
  const telos = Telos.open(world.configFor(env));
  await telos.acceptCard(await telos.agentCard(agentName));
}

/** Writes the agent's mcp.json. */
export const configure = (world: World, mcpServers: object): void =>
  void world.put(join(world.pack, 'mcp.json'), JSON.stringify({ mcpServers }));

export interface CaseServer {
  entry: object;
  change(options: Partial<McpCaseOptions>): void;
  /** Messages that the server has received, with its processes. */
  record(): { pid?: number; method?: string; id?: number; error?: { code: number } }[];
}

/** A server that is started as a process of its own. */
export function caseServer(world: World, name: string, options: McpCaseOptions): CaseServer {
  const file = join(world.root, `${name}.json`);
  const record = join(world.root, `${name}.jsonl`);
  world.put(file, JSON.stringify(options));
  return {
    entry: { command: process.execPath, args: [program, file, record] },
    change: more => void world.put(file, JSON.stringify({ ...options, ...more })),
    record: () =>
      existsSync(record)
        ? readFileSync(record, 'utf8')
            .trim()
            .split('\n')
            .map(line => JSON.parse(line))
        : [],
  };
}

export const schema = { type: 'object', properties: {} };
export const tool = (name: string, more: object = {}): object => ({
  name,
  description: 'd',
  inputSchema: schema,
  ...more,
});

/** What the servers behind the names of a case have seen. */
export interface Seas {
  requests: { port: number; host: string; method: string; headers: IncomingMessage['headers'] }[];
  connections: number;
}

const ports = [80, 443] as const;

export async function listenEverywhere(): Promise<Seas> {
  const seen: Seas = { requests: [], connections: 0 };
  const cert = process.env['TELOS_ADVERSARIAL_CERT'] ?? '';
  for (const port of ports) {
    const serve = (request: IncomingMessage, response: ServerResponse): void => {
      seen.requests.push({
        port,
        host: request.headers.host ?? '',
        method: request.method ?? '',
        headers: request.headers,
      });
      void answerAsServer(request, response);
    };
    const server: Server =
      port === 80
        ? createServer(serve)
        : createTlsServer({ cert: readFileSync(`${cert}.pem`), key: readFileSync(`${cert}.key`) }, serve);
    server.on('connection', () => seen.connections++);
    await new Promise<void>(resolve => server.listen(port, '0.0.0.0', resolve));
    server.unref();
  }
  return seen;
}

/** A server over HTTP with one tool. */
async function answerAsServer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let text = '';
  for await (const piece of request.setEncoding('utf8')) text += piece;
  if (request.method !== 'POST') return void response.writeHead(405).end();
  const { id, method, params } = JSON.parse(text);
  if (id === undefined) return void response.writeHead(202).end();
  const serverInfo = { name: 'case', version: '1' };
  const result =
    method === 'initialize'
      ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo }
      : method === 'tools/list'
        ? { tools: [tool('q')] }
        : { content: [{ type: 'text', text: 'called' }] };
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
}

/** The case again in a network where its names lead to servers of ours, with a certificate that counts there. */
export function amongNames(world: World, theCase: CaseInput): Promise<Seen> {
  const caseNames = ['case.test', ...namesIn(JSON.stringify(theCase.input))];
  const cert = join(world.root, 'server');
  const names = caseNames.map(name => `DNS:${name}`).join();
  const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=case'];
  const files = ['-addext', `subjectAltName=${names}`, '-keyout', `${cert}.key`, '-out', `${cert}.pem`];
  execFileSync('openssl', [...request, ...files], { stdio: 'ignore' });
  const dns = Object.fromEntries(caseNames.map(name => [name, ['127.0.0.1']]));
  const input = { ...theCase.input, netns: { dns, lo_addresses: ['169.254.169.254'] } };
  const env = { NODE_EXTRA_CA_CERTS: `${cert}.pem`, TELOS_ADVERSARIAL_CERT: cert };
  return inOwnNetwork(world, { ...theCase, input }, env);
}

export const isElsewhere = (): boolean => process.env['TELOS_ADVERSARIAL_NETWORK'] !== undefined;

export async function serveHttp(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ url: string; close(): void }> {
  const server = createServer(answer);
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, close };
}
