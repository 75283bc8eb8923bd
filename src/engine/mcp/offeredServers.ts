/** Offers the MCP servers of agents to a program that starts them itself. Variables are filled in only when one starts. */
import { type Config, expandPath } from '../config.ts';
import { type McpServer, readMcpConfig, resolveServer } from './config.ts';

/** The parts of an agent that this file needs. */
interface ServingAgent {
  name: string;
  /** Absolute. */
  packDir: string;
  mcpConfig?: string;
}

export interface OfferedServer {
  agent: string;
  /** Its name in mcp.json. */
  name: string;
  /** The entry as written in the file; `${VAR}` is not replaced. */
  written: McpServer;
  /** Folder in which a started server runs. Absolute path. */
  cwd: string;
}

/**
 * Returns an agent's servers. Servers with the older HTTP transport are left out, because the other program does not know it.
 * Never throws.
 */
export function serversOf(agent: ServingAgent, { home }: Pick<Config, 'home'>): OfferedServer[] {
  if (!agent.mcpConfig) return [];
  const { servers } = readMcpConfig(agent.mcpConfig);
  return [...servers].flatMap(([name, written]) => {
    if (written.type === 'sse') return [];
    const cwd =
      written.type === 'stdio' && written.cwd ? expandPath(written.cwd, home, agent.packDir) : agent.packDir;
    return [{ agent: agent.name, name, written, cwd }];
  });
}

/** Returns the server from the current file, with its variables filled in, or the reason why it must not start. */
export function resolveOffered(
  agent: ServingAgent,
  name: string,
  config: Pick<Config, 'env' | 'home'>,
): { server: McpServer } | { refusal: string } {
  const found = serversOf(agent, config).find(offered => offered.name === name);
  return found ? resolveServer(found.written, config.env) : { refusal: 'it was removed from its mcp.json' };
}
