/** The parts of the Agent Client Protocol's SDK that Telos uses. */
export type {
  AgentContext,
  AvailableCommand,
  ClientCapabilities,
  ContentBlock,
  InitializeResponse,
  McpServer,
  NewSessionResponse,
  PermissionOption,
  PlanEntry,
  PromptResponse,
  RequestPermissionRequest,
  SessionConfigOption,
  SessionUpdate,
  StopReason,
  ToolCallContent,
  ToolKind,
} from '@agentclientprotocol/sdk';
export { agent, methods, ndJsonStream, RequestError } from '@agentclientprotocol/sdk';
