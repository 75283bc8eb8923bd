/** Lists the MCP servers of all agents, and starts, signs in to and signs out of a single one. Starts none that is not accepted. */
import { sentence } from '@telos/protocol/text';
import type { Config } from '../config.ts';
import { TelosError } from '../core/errors.ts';
import type { SignInPort } from '../human.ts';
import { hiddenIn, type McpServer, placeOf, readMcpConfig, signInName } from '../mcp/config.ts';
import type { McpConnection } from '../mcp/connection.ts';
import type { ServerBook } from '../mcp/serverBook.ts';
import { tryServer } from '../mcp/servers.ts';
import { boxesOf, decideOnAgent, serverEnvironment } from '../policy/serverPrograms.ts';
import { redactor, secretsIn } from '../redact.ts';
import type { Agent } from '../skills/agent.ts';
import { workFoldersOf } from '../skills/workFolders.ts';

export interface ServerRef {
  agent: string;
  /** Its name in mcp.json. */
  server: string;
}

/** A server of an agent, as its file has it. */
export interface ListedServer extends ServerRef {
  /** Its command line or address, without the values of variables. */
  place: string;
  /** The mcp.json that names it. Absolute path. */
  file: string;
  isRemote: boolean;
  /** True if its entry says that it runs in the box. Undefined where that cannot be said. */
  isBoxed?: boolean;
  /** True if a sign-in is kept for it. */
  isSignedIn: boolean;
  /** True if it may be started unasked. */
  isAccepted: boolean;
}

/** The parts of the engine that this file needs. */
export interface ServerParts {
  config: Config;
  agents: readonly Agent[];
  book: ServerBook;
  signIn?: SignInPort | undefined;
}

/** Returns all servers, in the order of the agents and their files, and what is wrong in the files. */
export async function listServers({
  config,
  agents,
  signIn,
}: ServerParts): Promise<{ servers: ListedServer[]; problems: string[] }> {
  const servers: ListedServer[] = [];
  const problems: string[] = [];
  for (const agent of agents) {
    if (agent.mcpConfig === undefined) continue;
    const file = agent.mcpConfig;
    const read = readMcpConfig(file);
    problems.push(...read.problems);
    if (read.servers.size === 0) continue;
    const isAccepted = (await decideOnAgent(config, agent, agents)).action === 'allow';
    for (const [server, written] of read.servers) {
      const isRemote = written.type !== 'stdio';
      const kept = isRemote ? await signIn?.read(signInName(agent.name, written.url)) : undefined;
      const place = placeOf(written);
      servers.push({
        agent: agent.name,
        server,
        place,
        file,
        isRemote,
        isAccepted,
        ...(written.type === 'stdio' &&
          !written.isOfPlugin &&
          !written.pluginRoot && { isBoxed: written.sandbox === true }),
        isSignedIn: kept !== undefined && /"access_token"/.test(kept),
      });
    }
  }
  return { servers, problems };
}

/**
 * Starts or reaches the server, lists its tools, and ends it. The book then knows the result. Runs that use the server restart it.
 * Throws TelosError `config` if it is gone or must not be started, and the abort reason on abort.
 */
export async function checkServer(ref: ServerRef, parts: ServerParts, signal: AbortSignal): Promise<void> {
  const { connect } = await openServer(ref, parts, signal);
  const result = await connect();
  if ('connection' in result) {
    await Promise.all([result.listed, noteSkills(ref, result.connection, parts.book, signal)]);
    await result.connection.close();
  }
  signal.throwIfAborted();
  await parts.book.restart(ref.agent, ref.server);
}

/** Never rejects: a server whose skills cannot be listed still has its tools. */
async function noteSkills(
  { agent, server }: ServerRef,
  { skills: served }: McpConnection,
  book: ServerBook,
  signal: AbortSignal,
): Promise<void> {
  const facts = book.facts(agent, server);
  const skills = served.isServed ? await served.list(signal).catch(() => undefined) : [];
  if (facts && skills) book.note(agent, server, { ...facts, skills });
}

/**
 * Reaches the server, does the work with it, and ends it. Throws TelosError `config` if it is gone or must not be started, TelosError `mcp`
 * with the reason if it does not work, what `work` throws, and the abort reason on abort.
 */
export async function withServer<Result>(
  ref: ServerRef,
  parts: ServerParts,
  signal: AbortSignal,
  work: (connection: McpConnection) => Promise<Result>,
): Promise<Result> {
  const { connect } = await openServer(ref, parts, signal);
  const result = await connect();
  signal.throwIfAborted();
  if ('error' in result)
    throw new TelosError('mcp', [
      sentence("The MCP server '{0}' is not available: {1}.", ref.server, result.error),
    ]);
  try {
    return await work(result.connection);
  } finally {
    await result.connection.close();
  }
}

/**
 * Signs in at a server. `agree` is asked about the addresses that the sign-in leads to, that of the browser's page first. Returns false
 * if the server wants no sign-in, or the person refuses. Throws TelosError with the reason of a failure.
 */
export async function signInToServer(
  ref: ServerRef,
  parts: ServerParts,
  agree: (origins: readonly string[]) => Promise<boolean>,
  signal: AbortSignal,
): Promise<boolean> {
  const { connect } = await openServer(ref, parts, signal);
  const result = await connect();
  if ('connection' in result) await result.connection.close();
  signal.throwIfAborted();
  if (!('error' in result) || result.signIn?.isWanted !== true) return false;
  if (!(await agree(await result.signIn.origins(signal)))) return false;
  await result.signIn.signIn(signal);
  await checkServer(ref, parts, signal);
  return true;
}

/** Forgets the sign-in at a server. Its tokens are deleted here; the server may keep them until they expire. */
export async function signOutOfServer(
  { agent, server }: ServerRef,
  { agents, signIn }: ServerParts,
): Promise<void> {
  const { written } = entryOf({ agent, server }, agents);
  if (written.type !== 'stdio') await signIn?.write(signInName(agent, written.url), undefined);
}

function entryOf(
  ref: ServerRef,
  agents: readonly Agent[],
): { agent: Agent; file: string; written: McpServer } {
  const agent = agents.find(({ name }) => name === ref.agent);
  const file = agent?.mcpConfig;
  const written = file === undefined ? undefined : readMcpConfig(file).servers.get(ref.server);
  if (!agent || file === undefined || !written)
    throw new TelosError('config', [
      sentence("The agent {0} has no MCP server '{1}' any more.", ref.agent, ref.server),
    ]);
  return { agent, file, written };
}

async function openServer(
  ref: ServerRef,
  { config, agents, book, signIn }: ServerParts,
  signal: AbortSignal,
) {
  const { agent, file, written } = entryOf(ref, agents);
  const decision = await decideOnAgent(config, agent, agents);
  if (decision.action !== 'allow')
    throw new TelosError(
      'config',
      [
        sentence(
          "The MCP server '{0}' does not start before its agent {1} is reviewed.",
          ref.server,
          agent.name,
        ),
      ],
      { remedy: { kind: 'review_agent', agent: agent.name } },
    );
  const redact = redactor(secretsIn(config.env));
  redact.learn(hiddenIn(file, config.env));
  const openBox = boxesOf(config, agent);
  const reach = { signIn, redact, book, openBox, workFolders: workFoldersOf(config, agents) };
  const env = serverEnvironment(config, agent);
  return { connect: () => tryServer(ref.server, written, config, agent, env, signal, reach) };
}
