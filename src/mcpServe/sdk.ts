/** The parts of the MCP server SDK that Telos uses. */
export {
  acceptedContent,
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  createMcpHandler,
  fromJsonSchema,
  hostHeaderValidationResponse,
  type InputRequiredResult,
  inputRequired,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  McpServer,
  originValidationResponse,
  type ServerContext,
} from '@modelcontextprotocol/server';
export {
  type Skill as ServedSkill,
  type SkillSource,
  SkillsExtension,
  skillEntry,
} from '@modelcontextprotocol/server/ext/skills';
export { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
