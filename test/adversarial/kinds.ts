/** How each kind of case is carried out. */
import { type CaseInput, fieldsOf } from './caseFile.ts';
import type { Seen } from './checks.ts';
import { approvalReplay, approvalView, runCommand } from './kinds/commands.ts';
import { discordEvent, discordStart } from './kinds/discord.ts';
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
import { install, killedInstall, uninstallCommand } from './kinds/installs.ts';
import { mcpOauth, mcpServer } from './kinds/mcp.ts';
import { mcpJson, mcpServers } from './kinds/mcpConfigs.ts';
import { obeyingModel } from './kinds/obeyingModel.ts';
import { fetchUrl } from './kinds/pages.ts';
import { cancel, cliSignal, commandProcess, hostKill } from './kinds/processes.ts';
import { readOnlyCommand } from './kinds/readOnly.ts';
import { resolvedCall } from './kinds/resolver.ts';
import {
  childEnvironment,
  environmentFile,
  logInjection,
  logPermissions,
  secretFlow,
} from './kinds/secrets.ts';
import { discovery, route, skillFile, untrustedRoots } from './kinds/skills.ts';
import { providerHttp, providerStream } from './kinds/streams.ts';
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
import { workflow } from './kinds/workflow.ts';
import type { World } from './world.ts';

export type Execute = (world: World, theCase: CaseInput) => Promise<Seen>;

/** By area and kind, since some areas put one kind to different uses; a kind that is new, by what it puts in. */
export function executeFor({ area, input }: CaseInput): Execute | undefined {
  return kinds[`${area} ${input.kind}`] ?? kinds[input.kind] ?? byShape(input);
}

function byShape(input: CaseInput['input']): Execute | undefined {
  const has = (...names: string[]): boolean => names.every(name => input[name] !== undefined);
  if (has('name', 'input')) return toolCall;
  if (has('plan')) return obeyingModel;
  if (has('markdown')) return webviewMarkdown;
  if (has('url') && typeof input['url'] === 'string') return fetchUrl;
  return has('command') && typeof input['command'] === 'string' ? runCommand : undefined;
}

const kinds: Readonly<Record<string, Execute>> = {
  install,
  kill_during_install: killedInstall,
  'install cli': uninstallCommand,
  tool_call: toolCall,
  agent_config: agentConfig,
  race,
  two_runs: twoRuns,
  run_command: runCommand,
  resolved_call: resolvedCall,
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
  workflow,
  discord_event: discordEvent,
  discord_start: discordStart,
};

/** A run of everything has them, the fast layer does not: they take many seconds each. */
export function takesLong({ area, input }: CaseInput): boolean {
  const { kind } = input;
  if (executeFor({ area, input }) === undefined) return false;
  if (['race', 'append_race', 'kill9_append', 'reader', 'state_race', 'host_kill', 'ext_api'].includes(kind))
    return true;
  if (kind === 'workflow') return input['crash'] !== undefined;
  if (kind === 'workspace') return !/SKILL\.md|mcp\.json/.test(String(input['file']));
  if (area === 'process' && kind === 'run_command')
    return /sleep \d{2,}$|yes|urandom|while|for /.test(String(input['command']));
  if (kind === 'mcp_server') return /never/.test(String(input['behaviour']));
  if (kind.endsWith('_markdown')) return /repeat:.*\d{6}/.test(String(input['markdown']));
  if (kind === 'provider_stream')
    return (
      input['finish'] === 'silent_forever' ||
      fieldsOf(input['chunks'])['cut'] !== undefined ||
      /^event: error/.test(String(Array.isArray(input['chunks']) ? input['chunks'][0] : ''))
    );
  return kind === 'tool_call' && /repeat:y:\d{7}|"(size|files)":\d{6}/.test(JSON.stringify(input));
}
