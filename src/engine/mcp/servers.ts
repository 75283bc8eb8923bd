/** Connects the MCP servers of one run in parallel. A failing server does not affect the others; all end with the run. */

import { hostKind } from '../addresses.ts';
import { type Config, expandPath } from '../config.ts';
import { escapeInvisible } from '../files/plainText.ts';
import type { SignInPort } from '../human.ts';
import { deepestJson } from '../jsonDepth.ts';
import { type Redactor, redactor } from '../redact.ts';
import type { Tool, WantedSignIn } from '../tools/tool.ts';
import type { McpLimits } from './client.ts';
import { hiddenIn, type McpServer, placeOf, readMcpConfig, readyServer } from './config.ts';
import { type Attempt, moreOf, plainReason, RenewableServer } from './renewableServer.ts';
import type { McpSignIn } from './signIn.ts';
import { type McpServerPlace, type MergedTools, mergeTools } from './tools.ts';

/** The parts of an agent that this file needs. */
export interface McpAgent {
  /** The agent's name. Tokens of a sign-in are kept under it. */
  name: string;
  /** Its mcp.json, as an absolute path; undefined for an agent without servers. */
  mcpConfig?: string;
  /** Folder in which its servers run, unless an entry names another. Absolute path. */
  packDir: string;
}

export interface McpServers {
  /** Returns the built-in tools and those of the servers, as they are now. A server may change its own. */
  merged(): MergedTools;
  /** Problems with servers, in sentences for people. The run continues without the missing servers. */
  readonly problems: readonly string[];
  /** Servers that need a sign-in first; without it, each is missing. A failed sign-in is added to `problems`. */
  readonly signIns: readonly WantedSignIn[];
  close(): Promise<void>;
}

/** The answer of one server to a check before a run. */
export interface McpServerReport {
  server: string;
  /** Its command line or its address, without the values of variables. */
  place: string;
  /** Time from its start to the list of its tools. */
  milliseconds: number;
  outcome: { name: string; version: string; tools: readonly string[] } | { error: string };
}

export const usualLimits: McpLimits = { connectMs: 15_000, callMs: 60_000, longestCallMs: 5 * 60_000 };

/** Further settings for reaching a run's servers. */
export interface McpReach {
  limits?: McpLimits;
  /** See `FrontendParts`. */
  signIn?: SignInPort | undefined;
  /** Removes secrets from the servers' texts, and learns the secrets that they are given. */
  redact?: Redactor;
  /** See `RunFolders`. */
  workFolders?: readonly string[] | undefined;
}

/**
 * Connects to all servers of an agent at once. A server that is not available is reported in `problems`. On abort, leaves
 * nothing running and throws the abort reason. `env` is the environment of a started server, without its own variables.
 */
export async function connectServers(
  config: Pick<Config, 'env' | 'home' | 'dataDir'>,
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
    const { noise, hasMoreTools, tooDeepTools } = one.connection;
    if (noise) problems.push(noisyText(one.server, noise));
    if (hasMoreTools) problems.push(crowdedText(one.server, one.connection.tools.length));
    if (tooDeepTools.length > 0) problems.push(tooDeepText(one.server, tooDeepTools));
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
  const more = moreOf(access);
  return {
    server,
    place,
    ...more,
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

/** Connects to every server of an agent, reports on it and ends it again. Throws the abort reason on abort. */
export async function describeServers(
  config: Pick<Config, 'env' | 'home' | 'dataDir'>,
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

/** Returns `reach` with a redactor that knows the file's secrets before a server writes its first text. */
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

/** Tries to reach a server. Never throws: an abort is returned as an error, and the caller checks the signal afterwards. */
async function attempt(
  name: string,
  written: McpServer,
  config: Pick<Config, 'env' | 'home' | 'dataDir'>,
  agent: McpAgent,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
  { limits = usualLimits, signIn: port, redact, workFolders }: McpReach & { redact: Redactor },
): Promise<Attempt> {
  const { packDir } = agent;
  const ready = readyServer(written, config, packDir);
  if ('refusal' in ready) return { server: name, error: ready.refusal };
  const { server } = ready;
  const cwd = server.type === 'stdio' && server.cwd ? expandPath(server.cwd, config.home, packDir) : packDir;
  let signIn: McpSignIn | undefined;
  try {
    const { connectServer } = await import('./client.ts');
    if (port && server.type !== 'stdio') {
      const { McpSignIn } = await import('./signIn.ts');
      signIn = new McpSignIn(port, agent.name, server, redact.learn);
    }
    const surroundings = { env, cwd, workFolders, fetch: signIn?.fetch, redact: redact.text };
    const connection = await connectServer(name, server, surroundings, limits, signal);
    return { server: name, connection, place: placeOf(written), signIn, ...whereabouts(server, cwd, config) };
  } catch (error) {
    return { server: name, error: redact.text(plainReason(error)), signIn };
  }
}

/**
 * Returns a server's location. A started server gets folders as arguments. A server at an address may still run on this
 * machine or in its network.
 */
function whereabouts(server: McpServer, cwd: string, { home }: Pick<Config, 'home'>): McpServerPlace {
  if (server.type !== 'stdio') return { isRemote: hostKind(new URL(server.url).hostname) === 'public' };
  const named = server.args.filter(word => /^[~./\\]|^[A-Za-z]:[\\/]/.test(word));
  return { folders: [cwd, ...named.map(word => expandPath(word, home, cwd))] };
}

const noisyText = (server: string, noise: string): string =>
  `The MCP server '${server}' wrote output that is not a message (${noise}). It is ignored; such output belongs on its error stream.`;

const crowdedText = (server: string, used: number): string =>
  `The MCP server '${server}' has more than ${used} tools; only the first ${used} are used.`;

function tooDeepText(server: string, tools: readonly string[]): string {
  const named = tools.slice(0, 5).map(tool => escapeInvisible(tool.slice(0, 100)));
  const more = tools.length > named.length ? ` and ${tools.length - named.length} more` : '';
  const are = tools.length === 1 ? 'is left out: its schema nests' : 'are left out: their schemas nest';
  return `${named.join(', ')}${more} of the MCP server '${server}' ${are} lists and objects more than ${deepestJson} levels deep.`;
}

const unavailable = (server: string, why: string, file: string): string =>
  `The MCP server '${server}' is not available in this run: ${why}. It is configured in ${file}.`;
