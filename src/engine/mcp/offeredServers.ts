/** The MCP servers of agents for a program that starts them itself: as they are written first, with their variables only when one is to start. */
import { type Config, expandPath } from '../config.ts';
import { type McpServer, readMcpConfig, resolveServer } from './config.ts';

/** What is asked of an agent here. */
interface ServingAgent {
  name: string;
  /** Absolute. */
  packDir: string;
  mcpConfig?: string;
}

export interface OfferedServer {
  agent: string;
  /** As its mcp.json calls it. */
  name: string;
  /** `${VAR}` stands as it is written. */
  written: McpServer;
  /** Absolute; where a server that is started runs. */
  cwd: string;
}

/** Servers that speak the older of the two ways over HTTP are left out: those who take them over do not know it. Never throws. */
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

/** The server as its file has it now, with its variables filled in, or why it must not start. */
export function resolveOffered(
  agent: ServingAgent,
  name: string,
  config: Pick<Config, 'env' | 'home'>,
): { server: McpServer } | { refusal: string } {
  const found = serversOf(agent, config).find(offered => offered.name === name);
  return found
    ? resolveServer(found.written, config.env)
    : { refusal: 'its mcp.json does not name it any more' };
}
