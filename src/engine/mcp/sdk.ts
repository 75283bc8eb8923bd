/** The only file that imports the protocol's SDK: what Telos uses of it, and no more. It takes long to load, so it comes with the first server. */
export type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';
export {
  auth,
  discoverOAuthServerInfo,
  extractWWWAuthenticateParams,
} from '@modelcontextprotocol/sdk/client/auth.js';
export { Client } from '@modelcontextprotocol/sdk/client/index.js';
export { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
export { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
export { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
export { deserializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js';
export type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
export {
  ErrorCode,
  McpError,
  ResultSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
