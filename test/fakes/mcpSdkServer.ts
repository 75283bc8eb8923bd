/** Fakes an MCP server over HTTP with the protocol's own SDK, whose sessions it can forget. */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

export interface SdkServer {
  url: string;
  /** Makes all present sessions unknown. */
  forget(): Promise<void>;
  /** Refuses every request from now on. */
  refuseWith(status: number): void;
  /** Number of sessions begun. */
  sessions(): number;
  /** Number of calls of its tool. */
  shouted(): number;
  close(): Promise<void>;
}

/** Starts the server. Requests of an unknown session get `unknownStatus`. */
export async function startSdkServer(unknownStatus = 404): Promise<SdkServer> {
  const known = new Map<string, StreamableHTTPServerTransport>();
  const all: StreamableHTTPServerTransport[] = [];
  let shouted = 0;
  let begun = 0;
  let refusal: number | undefined;

  async function begin(): Promise<StreamableHTTPServerTransport> {
    const server = new McpServer({ name: 'shouting', version: '1' });
    server.registerTool('shout', { inputSchema: { text: z.string() } }, async ({ text }) => {
      shouted++;
      return { content: [{ type: 'text', text: text.toUpperCase() }] };
    });
    const steps: (() => void)[] = [];
    const wait = (): Promise<void> => new Promise(resolve => steps.push(resolve));
    let pairs = 0;
    server.registerTool('pair', { inputSchema: { text: z.string() } }, async ({ text }, { sendRequest }) => {
      // The first of two calls asks once both run, and the second when the first has its answer.
      const isFirst = pairs++ % 2 === 0;
      const turn = wait();
      if (!isFirst) steps.shift()?.();
      await turn;
      const params = { message: text, requestedSchema: { type: 'object' as const, properties: {} } };
      const { action } = await sendRequest({ method: 'elicitation/create', params }, ElicitResultSchema);
      steps.shift()?.();
      return { content: [{ type: 'text', text: `${text}: ${action}` }] };
    });
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized(id) {
        known.set(id, transport);
        begun++;
      },
    });
    await server.connect(transport as Transport);
    all.push(transport);
    return transport;
  }

  const http = createServer(async (request, response) => {
    const id = request.headers['mcp-session-id'];
    const transport = id === undefined ? await begin() : known.get(String(id));
    if (refusal === undefined && transport) return transport.handleRequest(request, response);
    response.writeHead(refusal ?? unknownStatus, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({ jsonrpc: '2.0', error: { code: -32000, message: 'No valid session ID' }, id: null }),
    );
  });
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    async forget() {
      known.clear();
    },
    refuseWith(status) {
      refusal = status;
    },
    sessions: () => begun,
    shouted: () => shouted,
    async close() {
      await Promise.all(all.map(transport => transport.close()));
      await new Promise<void>(resolve => {
        http.close(() => resolve());
        http.closeAllConnections();
      });
    },
  };
}
