/** Connects the servers of a run: how they reach the user, the frontend and their sandboxes. */
import type { Config } from '../config.ts';
import type { OpenBox } from '../mcp/boxedServer.ts';
import { connectServers, type McpReach, type McpServers } from '../mcp/servers.ts';
import type { PolicyContext } from '../policy/decision.ts';
import { switchesOf } from '../policy/policyEdit.ts';
import type { Agent } from '../skills/agent.ts';
import type { RunFolders, Tool } from '../tools/tool.ts';
import type { Engine, Run } from './request.ts';

/** What a run gives its servers. */
export interface ServedRun {
  run: Run;
  engine: Engine;
  agent: Agent;
  policy: PolicyContext;
  folders: RunFolders;
  env: Readonly<Record<string, string>>;
  /** Where the servers work. */
  place: Pick<McpReach, 'root' | 'workFolders'>;
}

/** Connects the agent's servers. `tools` are those of the run itself. Throws the abort reason on abort. */
export function connectRunServers(
  { run, engine, agent, policy, folders, env, place }: ServedRun,
  tools: readonly Tool[],
  signal: AbortSignal,
): Promise<McpServers> {
  const { config, signIn, openUrl, book } = engine;
  return connectServers(config, agent, tools, env, signal, {
    ...place,
    signIn,
    openUrl,
    book,
    redact: run.redact,
    openBox: boxesOf(config, agent, folders, policy),
    isOff: switchedOff(policy),
    canAsk: !run.human.isAway,
  });
}

/** Returns what opens the sandboxes of an agent's servers, which are loaded with the first of them. */
const boxesOf =
  (config: Config, { name }: Agent, folders: RunFolders, policy: PolicyContext): OpenBox =>
  async (server, args) => {
    const [{ serverBoxes }, { grantedHosts }] = await Promise.all([
      import('../box/serverBox.ts'),
      import('./approval.ts'),
    ]);
    const { holdsSecret } = policy;
    return serverBoxes(config, name, folders, { holdsSecret }, grantedHosts(policy))(server, args);
  };

/** Returns what looks whether the user has switched off a server's tool. The rules are read again each time. */
const switchedOff =
  ({ rules, agent }: PolicyContext) =>
  (server: string, tool: string): boolean =>
    rules !== undefined && switchesOf(rules.read(), agent?.name ?? '', server, tool).length > 0;
