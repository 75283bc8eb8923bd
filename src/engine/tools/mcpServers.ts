/** The MCP servers of one run: connected side by side, each on its own risk, and all ended with the run. */
import { type Config, expandPath } from '../config.ts';
import type { McpConnection, McpLimits, McpSurroundings } from './mcpClient.ts';
import { type McpServer, placeOf, readMcpConfig, resolveServer } from './mcpConfig.ts';
import { type MergedTools, mergeTools } from './mcpTools.ts';
import type { Tool } from './tool.ts';

/** What is asked of an agent here. */
export interface McpAgent {
  /** Its mcp.json, absolute; undefined for an agent without servers. */
  mcpConfig?: string;
  /** Its servers run here unless they say otherwise. Absolute. */
  packDir: string;
}

export interface McpServers {
  /** The built-in tools and those of the servers, as they are now: a server may change its own. */
  merged(): MergedTools;
  /** What is missing and why, in sentences for people; the run goes on without it. */
  problems: readonly string[];
  close(): Promise<void>;
}

/** How one server answers, for somebody who wants to know before a run. */
export interface McpServerReport {
  server: string;
  /** Its command line or its address, without the values of variables. */
  place: string;
  /** From its start to the list of its tools. */
  milliseconds: number;
  outcome: { name: string; version: string; tools: readonly string[] } | { error: string };
}

export const usualLimits: McpLimits = { connectMs: 15_000, callMs: 60_000 };

/**
 * Connects to all servers of an agent at once. A server that cannot be had is one of the `problems`. Throws the abort reason on abort, and
 * leaves nothing running then. `env` is the environment of a server that is started, without its own variables.
 */
export async function connectServers(
  config: Pick<Config, 'env' | 'home'>,
  agent: McpAgent,
  builtin: readonly Tool[],
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
  limits: McpLimits = usualLimits,
): Promise<McpServers> {
  const file = agent.mcpConfig ?? '';
  const { servers, problems } = agent.mcpConfig ? readMcpConfig(file) : nothing;
  const attempts = await Promise.all(
    [...servers].map(([name, server]) => attempt(name, server, config, agent, env, signal, limits)),
  );
  const connections = attempts.flatMap(one => ('connection' in one ? [one.connection] : []));
  const close = async (): Promise<void> => {
    await Promise.all(connections.map(connection => connection.close()));
  };
  if (signal.aborted) {
    await close();
    throw signal.reason;
  }
  let merged = mergeTools(builtin, connections);
  for (const connection of connections) {
    connection.onToolsChanged = () => {
      merged = mergeTools(builtin, connections);
    };
  }
  const dead = attempts.flatMap(one => ('error' in one ? [unavailable(one.server, one.error, file)] : []));
  return { merged: () => merged, problems: [...problems, ...dead], close };
}

/** Shakes hands with every server of an agent and ends it again. Throws the abort reason on abort. */
export async function describeServers(
  config: Pick<Config, 'env' | 'home'>,
  agent: McpAgent,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
  limits: McpLimits = usualLimits,
): Promise<{ servers: readonly McpServerReport[]; problems: readonly string[] }> {
  const { servers, problems } = agent.mcpConfig ? readMcpConfig(agent.mcpConfig) : nothing;
  const reports = [...servers].map(async ([name, server]): Promise<McpServerReport> => {
    const started = performance.now();
    const result = await attempt(name, server, config, agent, env, signal, limits);
    const milliseconds = Math.round(performance.now() - started);
    const report = { server: name, place: placeOf(server), milliseconds };
    if ('error' in result) return { ...report, outcome: { error: result.error } };
    const { name: called, version, tools } = result.connection;
    await result.connection.close();
    return { ...report, outcome: { name: called, version, tools: tools.map(tool => tool.name) } };
  });
  const done = await Promise.all(reports);
  signal.throwIfAborted();
  return { servers: done, problems };
}

const nothing = { servers: new Map<string, McpServer>(), problems: [] };

type Attempt = { server: string; connection: McpConnection } | { server: string; error: string };

/** Never throws: on abort it fails as well, and who has waited for all of them looks at the signal. */
async function attempt(
  name: string,
  written: McpServer,
  config: Pick<Config, 'env' | 'home'>,
  { packDir }: McpAgent,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
  limits: McpLimits,
): Promise<Attempt> {
  const resolved = resolveServer(written, config.env);
  if ('refusal' in resolved) return { server: name, error: resolved.refusal };
  const { server } = resolved;
  const cwd = server.type === 'stdio' && server.cwd ? expandPath(server.cwd, config.home, packDir) : packDir;
  const surroundings: McpSurroundings = { env, cwd };
  try {
    const { connectServer } = await import('./mcpClient.ts');
    const connection = await connectServer(name, server, surroundings, limits, signal);
    return { server: name, connection };
  } catch (error) {
    return { server: name, error: error instanceof Error ? error.message : String(error) };
  }
}

const unavailable = (server: string, why: string, file: string): string =>
  `The MCP server '${server}' is not available in this run: ${why}. It stands in ${file}.`;
