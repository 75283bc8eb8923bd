/** Chooses the tools that a run is offered. */
import type { Config } from '../config.ts';
import type { Provider, ToolDefinition } from '../core/ports.ts';
import type { McpServers } from '../mcp/servers.ts';
import { windowOf } from '../providers/contextWindow.ts';
import type { Agent } from '../skills/agent.ts';
import { namesTool, type ToolNames } from '../skills/skillFields.ts';
import { backgroundNames } from '../tools/backgroundTools.ts';
import { skillTools } from '../tools/builtin.ts';
import { personTools } from '../tools/personTools.ts';
import { readOnlyShellTool } from '../tools/readOnlyShell.ts';
import { type Tool, toolError } from '../tools/tool.ts';
import { searchNames, ToolSearch } from './toolSearch.ts';

/** What servers say of their tools. */
export type ServerFacts = ReturnType<McpServers['merged']>['facts'];

/** Tools that look and change nothing. */
export const readOnlyTools: readonly Tool[] = [
  ...skillTools.filter(tool => tool.access === 'read'),
  readOnlyShellTool,
];

/** Tools that are offered to a run that only plans. */
export const planTools: readonly Tool[] = [
  ...readOnlyTools,
  ...skillTools.filter(tool => tool.access === 'network'),
];

/** Returns a tool of a server in a replay. The tape answers each call of it. */
export const tapedTool = (definition: ToolDefinition): Tool => ({
  definition,
  access: 'network',
  execute: async () => toolError('No server is started in a replay.'),
});

/** Tools that act on nothing but what the conversation has itself. */
export const conversationTools: ReadonlySet<string> = new Set([
  ...backgroundNames,
  ...personTools.map(({ definition }) => definition.name),
  ...searchNames,
]);

/** Returns what hides the tools of an agent's servers where they are many. Undefined for an agent without servers. */
export const searchOf = (
  { mcpConfig }: Agent,
  config: Config,
  provider: Provider,
  servers: () => McpServers | undefined,
): ToolSearch | undefined =>
  mcpConfig === undefined
    ? undefined
    : new ToolSearch(windowOf(config, provider), name => servers()?.merged().facts.has(name) ?? false);

/** Returns the tools that are offered: those that a role's `tools` name, and no other that `disallowed-tools` name. */
export function keptTools(
  { disallowed, only }: { disallowed: ToolNames; only: ToolNames | undefined },
  tools: readonly Tool[],
  facts: ServerFacts | undefined,
): readonly Tool[] {
  return tools.filter(({ definition: { name } }) => {
    const server = facts?.get(name);
    return !namesTool(disallowed, name, server) && (only === undefined || mayHave(only, name, server));
  });
}

/** Whether a role's `tools` name a tool, or one that it goes with. What acts on nothing but the conversation needs no name. */
function mayHave(only: ToolNames, name: string, server: Parameters<typeof namesTool>[2]): boolean {
  const isOfCommands = name === 'run_command' || backgroundNames.includes(name);
  if (isOfCommands && (only.commands.length > 0 || only.tools.has('run_command'))) return true;
  if (name === 'fetch_url' && only.hosts.length > 0) return true;
  if (searchNames.has(name)) return true;
  return namesTool(only, name, server) || personTools.some(({ definition }) => definition.name === name);
}

export const withoutNames = (tools: readonly Tool[], names: readonly string[]): readonly Tool[] =>
  tools.filter(({ definition }) => !names.includes(definition.name));
