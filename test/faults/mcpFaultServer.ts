/** An MCP server on the protocol's own SDK over stdin and stdout, whose tools are faults: `node mcpFaultServer.ts`. */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

const server = new McpServer({ name: 'faults', version: '1.0.0' });
const text = (content: string) => ({ content: [{ type: 'text' as const, text: content }] });

server.registerTool(
  'large',
  { description: 'So many bytes of text.', inputSchema: { bytes: z.number() } },
  ({ bytes }) => text('m'.repeat(bytes)),
);
server.registerTool('fails', { description: 'Fails.' }, () => {
  throw new Error('the disk of the server is on fire');
});
server.registerTool('dies', { description: 'Ends the server.' }, () => process.exit(7));
server.registerTool('babbles', { description: 'Prints what is no message, then answers.' }, () => {
  process.stdout.write('Loading model...\n{"half":\n\n');
  return text('sober again');
});
server.registerTool('never', { description: 'Never answers.' }, () => new Promise<never>(() => undefined));

await server.connect(new StdioServerTransport());
