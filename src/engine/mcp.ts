/** MCP servers: configuration, secrets and links. */
export { addServers, serverFileOf } from './mcp/addServer.ts';
export { type McpServer, type RemoteServer, readMcpConfig, type StdioServer } from './mcp/config.ts';
export type { ServedSkill, ServedSkills } from './mcp/connection.ts';
export { literalSecrets } from './mcp/secrets.ts';
export type { ServerBook, ServerFacts } from './mcp/serverBook.ts';

export const importAddServer = () => import('./mcp/addServer.ts');
export const importConfig = () => import('./mcp/config.ts');
