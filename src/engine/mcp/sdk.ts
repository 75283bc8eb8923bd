/** Exports the parts of the protocol's SDK that Telos uses; the only file that imports it. Slow, so loaded on first use. */
import type { StandardSchemaV1 } from '@modelcontextprotocol/client';

export type { OAuthClientProvider, Transport } from '@modelcontextprotocol/client';
export {
  auth,
  Client,
  deserializeMessage,
  discoverOAuthServerInfo,
  extractWWWAuthenticateParams,
  InsufficientScopeError,
  isInputRequiredResult,
  ProtocolError,
  ProtocolErrorCode,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  SSEClientTransport,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
export {
  SKILLS_EXTENSION_ID,
  type Skill as SkillEntry,
  SkillsClient,
} from '@modelcontextprotocol/client/ext/skills';
export { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

/** Takes every result as it is. A broken part of one then spoils no other, and hostile output schemas are never compiled. */
export const anyResult: StandardSchemaV1<Readonly<Record<string, unknown>>> = {
  '~standard': {
    version: 1,
    vendor: 'telos',
    validate: value => ({ value: value as Readonly<Record<string, unknown>> }),
  },
};
