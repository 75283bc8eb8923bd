/** How each kind of case is carried out, and which wait for a part of the product that is not there yet. */
import type { AdversarialCase } from './caseFile.ts';
import type { Seen } from './judge.ts';
import { approvalReplay, approvalView, runCommand } from './kinds/commands.ts';
import {
  appendRace,
  closedLogs,
  enospc,
  killedAppend,
  reader,
  stateRace,
  twoWindows,
} from './kinds/durable.ts';
import { agentConfig, race, toolCall, twoRuns } from './kinds/files.ts';
import { mcpOauth, mcpServer } from './kinds/mcp.ts';
import { mcpJson, mcpServers } from './kinds/mcpConfigs.ts';
import { obeyingModel } from './kinds/obeyingModel.ts';
import { fetchUrl } from './kinds/pages.ts';
import { cancel, cliSignal, commandProcess, hostKill } from './kinds/processes.ts';
import { readOnlyCommand } from './kinds/readOnly.ts';
import {
  childEnvironment,
  environmentFile,
  logInjection,
  logPermissions,
  secretFlow,
} from './kinds/secrets.ts';
import { discovery, route, skillFile, untrustedRoots } from './kinds/skills.ts';
import { manyCalls, providerHttp, providerStream } from './kinds/streams.ts';
import { cliJson, cliOutput, cliPipe } from './kinds/terminals.ts';
import { time } from './kinds/times.ts';
import { extensionApi, localPort, uri, workspace } from './kinds/trust.ts';
import {
  markdownString,
  notification,
  webviewHtml,
  webviewMarkdown,
  webviewMessage,
} from './kinds/webviews.ts';
import type { World } from './world.ts';

export type Execute = (world: World, theCase: AdversarialCase) => Promise<Seen>;

/** By area and kind, since some areas put one kind to different uses. */
export function executeFor({ id, area, input }: AdversarialCase): Execute | undefined {
  if (id === 'stream-018') return manyCalls;
  return kinds[`${area} ${input.kind}`] ?? kinds[input.kind];
}

const kinds: Readonly<Record<string, Execute>> = {
  tool_call: toolCall,
  agent_config: agentConfig,
  race,
  two_runs: twoRuns,
  run_command: runCommand,
  approval_replay: approvalReplay,
  approval_view: approvalView,
  fetch_url: fetchUrl,
  ro_command: readOnlyCommand,
  ro_command_env: readOnlyCommand,
  skill_md: skillFile,
  route,
  discovery,
  ro_roots: untrustedRoots,
  obeying_model: obeyingModel,
  secret_flow: secretFlow,
  child_env: childEnvironment,
  env_file: environmentFile,
  log_perms: logPermissions,
  log_inject: logInjection,
  cli_output: cliOutput,
  cli_stream: cliOutput,
  cli_json: cliJson,
  cli_pipe: cliPipe,
  'process run_command': commandProcess,
  cancel,
  host_kill: hostKill,
  mcp_json: mcpJson,
  mcp_server: mcpServer,
  mcp_servers: mcpServers,
  mcp_oauth: mcpOauth,
  webview_markdown: webviewMarkdown,
  stream_markdown: webviewMarkdown,
  webview_html_check: webviewHtml,
  webview_message: webviewMessage,
  notification,
  markdown_string: markdownString,
  append_race: appendRace,
  kill9_append: killedAppend,
  enospc,
  log_dir: closedLogs,
  reader,
  state_race: stateRace,
  two_windows: twoWindows,
  time,
  workspace,
  uri,
  local_port: localPort,
  ext_api: extensionApi,
  provider_stream: providerStream,
  provider_http: providerHttp,
  cli_signal: cliSignal,
};

/** They take many seconds each; a run of everything has them, the fast layer does not. */
export const slowCases: ReadonlySet<string> = new Set([
  ...['path-013', 'path-039', 'path-042', 'path-043'],
  ...[
    'process-001',
    'process-002',
    'process-004',
    'process-006',
    'process-009',
    'process-010',
    'process-022',
  ],
  ...['stream-003', 'stream-007', 'stream-009', 'mcp-023', 'mcp-024', 'webview-030'],
  ...['trust-001', 'trust-002', 'trust-003', 'trust-004', 'trust-012'],
  ...['durable-001', 'durable-002', 'durable-003', 'durable-008', 'durable-009'],
]);
