/** The MCP servers of one run: connected side by side, each on its own risk, and all ended with the run. */
import type { ToolResult } from '../../protocol/run.ts';
import { type Config, expandPath } from '../config.ts';
import { type Redactor, redactor } from '../redact.ts';
import type { McpConnection, McpLimits } from './mcpClient.ts';
import { hiddenIn, type McpServer, placeOf, readMcpConfig, resolveServer } from './mcpConfig.ts';
import type { McpSignIn, SignInPort } from './mcpSignIn.ts';
import { type McpToolSource, type MergedTools, mergeTools } from './mcpTools.ts';
import { type Tool, toolError } from './tool.ts';

/** What is asked of an agent here. */
export interface McpAgent {
  /** What was given out at a sign-in is kept under it. */
  name: string;
  /** Its mcp.json, absolute; undefined for an agent without servers. */
  mcpConfig?: string;
  /** Its servers run here unless they say otherwise. Absolute. */
  packDir: string;
}

export interface McpServers {
  /** The built-in tools and those of the servers, as they are now: a server may change its own. */
  merged(): MergedTools;
  /** What is missing and why, in sentences for people; the run goes on without it. */
  readonly problems: readonly string[];
  /** Servers that want a person to sign in first; without it, each is missing. */
  readonly signIns: readonly WantedSignIn[];
  close(): Promise<void>;
}

export interface WantedSignIn {
  server: string;
  /** The server's own address. */
  place: string;
  /** Where it leads, the page for the browser first; undefined where it must not be made, for a reason that is among the problems then. */
  origins(signal: AbortSignal): Promise<readonly string[] | undefined>;
  /** Has the person sign in and connects to the server. What went wrong is among the problems then. Throws the abort reason on abort. */
  signIn(signal: AbortSignal): Promise<void>;
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

/** What a run's servers are reached with besides. */
export interface McpReach {
  limits?: McpLimits;
  /** See `FrontendParts`. */
  signIn?: SignInPort | undefined;
  /** Goes over what the servers say, and learns what they are given. */
  redact?: Redactor;
}

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
  reach: McpReach = {},
): Promise<McpServers> {
  const file = agent.mcpConfig ?? '';
  const hiding = withHidden(reach, agent, config.env);
  const { servers, problems: defects } = agent.mcpConfig ? readMcpConfig(file) : nothing;
  const again = (name: string): Promise<Attempt> =>
    attempt(name, servers.get(name)!, config, agent, env, signal, hiding);
  const attempts = await Promise.all([...servers.keys()].map(again));
  const connections: RenewableServer[] = [];
  const problems = [...defects];
  let merged = mergeTools(builtin, connections);
  const merge = (): void => {
    merged = mergeTools(builtin, connections);
  };
  const add = (one: Attempt): void => {
    if ('error' in one) {
      problems.push(unavailable(one.server, one.error, file));
      return;
    }
    const connection = new RenewableServer(one, again);
    if (connection.noise) problems.push(noisyText(one.server, connection.noise));
    connection.onToolsChanged = merge;
    connections.push(connection);
    merge();
  };
  const signIns: WantedSignIn[] = [];
  for (const one of attempts) {
    if ('error' in one && one.signIn?.isWanted)
      signIns.push(wantedSignIn(one.server, placeOf(servers.get(one.server)!), one.signIn, again, add));
    else add(one);
  }
  const close = async (): Promise<void> => {
    await Promise.all(connections.map(connection => connection.close()));
  };
  if (signal.aborted) {
    await close();
    throw signal.reason;
  }
  return { merged: () => merged, problems, signIns, close };
}

function wantedSignIn(
  server: string,
  place: string,
  access: McpSignIn,
  connect: (server: string) => Promise<Attempt>,
  add: (attempt: Attempt) => void,
): WantedSignIn {
  const orProblem = async <T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> => {
    try {
      return await work;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      add({ server, error: plainReason(error) });
      return undefined;
    }
  };
  return {
    server,
    place,
    origins: signal => orProblem(access.origins(signal), signal),
    async signIn(signal) {
      const attempt = await orProblem(
        access.signIn(signal).then(() => connect(server)),
        signal,
      );
      if (attempt) add(attempt);
    },
  };
}

/** Shakes hands with every server of an agent and ends it again. Throws the abort reason on abort. */
export async function describeServers(
  config: Pick<Config, 'env' | 'home'>,
  agent: McpAgent,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
  reach: McpReach = {},
): Promise<{ servers: readonly McpServerReport[]; problems: readonly string[] }> {
  const hiding = withHidden(reach, agent, config.env);
  const { servers, problems } = agent.mcpConfig ? readMcpConfig(agent.mcpConfig) : nothing;
  const reports = [...servers].map(async ([name, server]): Promise<McpServerReport> => {
    const started = performance.now();
    const result = await attempt(name, server, config, agent, env, signal, hiding);
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

/** Knows before the first word of a server what must not be shown of it. */
function withHidden(
  reach: McpReach,
  { mcpConfig }: McpAgent,
  env: Config['env'],
): McpReach & { redact: Redactor } {
  const redact = reach.redact ?? redactor([]);
  if (mcpConfig) redact.learn(hiddenIn(mcpConfig, env));
  return { ...reach, redact };
}

const nothing = { servers: new Map<string, McpServer>(), problems: [] };

type Attempt =
  | { server: string; connection: McpConnection }
  | { server: string; error: string; signIn?: McpSignIn | undefined };

/** Never throws: on abort it fails as well, and who has waited for all of them looks at the signal. */
async function attempt(
  name: string,
  written: McpServer,
  config: Pick<Config, 'env' | 'home'>,
  agent: McpAgent,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
  { limits = usualLimits, signIn: port, redact }: McpReach & { redact: Redactor },
): Promise<Attempt> {
  const resolved = resolveServer(written, config.env);
  if ('refusal' in resolved) return { server: name, error: resolved.refusal };
  const { server } = resolved;
  const { packDir } = agent;
  const cwd = server.type === 'stdio' && server.cwd ? expandPath(server.cwd, config.home, packDir) : packDir;
  let signIn: McpSignIn | undefined;
  try {
    const { connectServer } = await import('./mcpClient.ts');
    if (port && server.type !== 'stdio') {
      const { McpSignIn } = await import('./mcpSignIn.ts');
      signIn = new McpSignIn(port, agent.name, server, redact.learn);
    }
    const surroundings = { env, cwd, fetch: signIn?.fetch, redact: redact.text };
    const connection = await connectServer(name, server, surroundings, limits, signal);
    return { server: name, connection };
  } catch (error) {
    return { server: name, error: redact.text(plainReason(error)), signIn };
  }
}

const plainReason = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** A server that is started once more when it has ended; the call during which it ended is lost. */
class RenewableServer implements McpToolSource {
  readonly server: string;
  readonly noise: string | undefined;
  #connection: McpConnection;
  #renew: ((server: string) => Promise<Attempt>) | undefined;
  #renewing: Promise<void> | undefined;
  #onToolsChanged: (() => void) | undefined;

  constructor(
    { server, connection }: Extract<Attempt, { connection: McpConnection }>,
    renew: (server: string) => Promise<Attempt>,
  ) {
    this.server = server;
    this.noise = connection.noise;
    this.#connection = connection;
    this.#renew = renew;
  }

  get tools(): McpToolSource['tools'] {
    return this.#connection.tools;
  }

  set onToolsChanged(listener: () => void) {
    this.#onToolsChanged = listener;
    this.#connection.onToolsChanged = listener;
  }

  async call(...[tool, input, signal, onProgress]: Parameters<McpToolSource['call']>): Promise<ToolResult> {
    const agreed = this.#listing(tool);
    if (this.#connection.ended && this.#renew) this.#renewing = this.#start(this.#renew);
    await this.#renewing;
    // What was decided on is the tool as it was listed before.
    if (this.#listing(tool) !== agreed)
      return toolError(
        `The MCP server '${this.server}' had ended and was started again, and ${tool} is not what it was. Nothing was called.`,
      );
    const result = await this.#connection.call(tool, input, signal, onProgress);
    if (!this.#connection.ended || !result.isError) return result;
    const next = this.#renew
      ? 'The next call of one of its tools starts it once more.'
      : 'Its tools are gone for the rest of this run.';
    return { ...result, content: `${result.content} ${next}` };
  }

  async close(): Promise<void> {
    this.#renew = undefined;
    await this.#renewing;
    await this.#connection.close();
  }

  async #start(renew: (server: string) => Promise<Attempt>): Promise<void> {
    this.#renew = undefined;
    const attempt = await renew(this.server);
    if ('error' in attempt) return;
    await this.#connection.close();
    this.#connection = attempt.connection;
    attempt.connection.onToolsChanged = this.#onToolsChanged;
    this.#onToolsChanged?.();
  }

  #listing(tool: string): string {
    return JSON.stringify(this.tools.find(({ name }) => name === tool));
  }
}

const noisyText = (server: string, noise: string): string =>
  `The MCP server '${server}' writes to its output what is no message (${noise}). It is passed over; such words belong on its error stream.`;

const unavailable = (server: string, why: string, file: string): string =>
  `The MCP server '${server}' is not available in this run: ${why}. It stands in ${file}.`;
