/** Connects the MCP servers of one run in parallel. A failing server does not affect the others; all end with the run. */

import { statSync } from 'node:fs';
import { asSaid, beginningOf, type Sentence, sentence } from '@telos/protocol/text';
import { hostKind } from '../addresses.ts';
import { type Config, expandPath } from '../config.ts';
import { TelosError } from '../core/errors.ts';
import { escapeInvisible } from '../files/plainText.ts';
import type { SignInPort } from '../human.ts';
import { deepestJson } from '../jsonDepth.ts';
import { mapStrings, type Redactor, redactor } from '../redact.ts';
import type { Tool, WantedSignIn } from '../tools/tool.ts';
import type { BoxedStart, OpenBox } from './boxedServer.ts';
import type { McpLimits } from './callClock.ts';
import { hiddenIn, type McpServer, placeOf, readMcpConfig, readyServer } from './config.ts';
import type { McpConnection } from './connection.ts';
import type { McpSurroundings } from './link.ts';
import type { AskForOffer } from './offers.ts';
import { type Attempt, phraseOf, RenewableServer } from './renewableServer.ts';
import type { ServerBook } from './serverBook.ts';
import type { McpSignIn } from './signIn.ts';
import { type McpServerPlace, type MergedTools, mergeTools } from './tools.ts';
import { wantedSignIn } from './wantedSignIn.ts';

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
  readonly problems: readonly Sentence[];
  /**
   * Servers that need a sign-in first; without it, each is missing. A failed sign-in is added to `problems`. One that leads to another
   * sign-in adds that here.
   */
  readonly signIns: readonly WantedSignIn[];
  /** Returns the server of that name if it is connected. */
  offering(server: string): OfferingServer | undefined;
  /** Returns the servers that are still starting. Their tools, sign-ins or problems are added once they are there. */
  late(): readonly string[];
  /** Resolves once no server is late. */
  arrived(): Promise<void>;
  close(): Promise<void>;
}

/** What a person can call or attach of a server. */
export type OfferingServer = Pick<RenewableServer, 'offers' | 'ask'>;

/** The answer of one server to a check before a run. */
export interface McpServerReport {
  server: string;
  /** Its command line or its address, without the values of variables. */
  place: string;
  /** Time from its start to the list of its tools. */
  milliseconds: number;
  outcome: { name: string; version: string; tools: readonly string[] } | { error: Sentence };
}

/** Programs that may have to download a server before it starts. */
const fetchesFirst = /(?:^|[\\/])(?:npx|pnpx|bunx|uvx|pipx|docker|podman)(?:\.\w+)?$/i;

/**
 * Returns the limits for a server, where the usual limits count: those of its entry, or a minute to start for one that may be downloaded
 * first.
 */
export function limitsFor(server: McpServer, limits: McpLimits): McpLimits {
  if (limits !== usualLimits) return limits;
  const { timeoutMs: own } = server;
  if (own) return { connectMs: own, callMs: own, longestCallMs: Math.max(own, limits.longestCallMs) };
  const mayFetch = server.type === 'stdio' && fetchesFirst.test(server.command);
  return mayFetch ? { ...limits, connectMs: 60_000 } : limits;
}

/** How long a run waits for its servers before it begins without those that may take longer. In milliseconds. */
const usualPatienceMs = 15_000;

export const usualLimits: McpLimits = { connectMs: 15_000, callMs: 60_000, longestCallMs: 5 * 60_000 };

/** Further settings for reaching a run's servers. */
export interface McpReach {
  limits?: McpLimits;
  patienceMs?: number;
  /** See `FrontendParts`. */
  signIn?: SignInPort | undefined;
  /** Removes secrets from the servers' texts, and learns the secrets that they are given. */
  redact?: Redactor;
  /** See `RunFolders`. */
  workFolders?: readonly string[] | undefined;
  /** The folder that the run works in, the root of started servers. Absolute. */
  root?: string | undefined;
  /** Opens the boxes of servers that are to run in one. Without it, such a server is not started. */
  openBox?: OpenBox | undefined;
  /** See `McpSurroundings`. */
  openUrl?: McpSurroundings['openUrl'];
  canAsk?: boolean;
  /** Called with what each server is found to be. */
  book?: ServerBook | undefined;
  /** Returns true for a tool that the person has switched off. No model is offered it. */
  isOff?: ((server: string, tool: string) => boolean) | undefined;
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
  const ending = new AbortController();
  const end = (): void => ending.abort(signal.reason);
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();
  const again = (name: string): Promise<Attempt> =>
    tryServer(name, servers.get(name)!, config, agent, env, ending.signal, hiding);
  const attempts = await within(reach.patienceMs ?? usualPatienceMs, [...servers.keys()].map(again));
  const connections: RenewableServer[] = [];
  const leave: (() => void)[] = [];
  const problems = defects.map(asSaid);
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
    if (hiding.book) leave.push(hiding.book.lives(agent.name, one.server, connection));
    merge();
  };
  const signIns: WantedSignIn[] = [];
  const take = (one: Attempt): void => {
    if (!('error' in one && one.signIn?.isWanted)) {
      add(one);
      return;
    }
    const at = { server: one.server, place: placeOf(servers.get(one.server)!) };
    const ask = (next: WantedSignIn): number => signIns.push(next);
    signIns.push(wantedSignIn(at, one.signIn, { connect: again, add, ask }));
  };
  const late = new Map<string, Promise<void>>();
  for (const [index, name] of [...servers.keys()].entries()) {
    const { done, work } = attempts[index]!;
    if (done) take(done);
    else
      late.set(
        name,
        work.then(one => void (late.delete(name) && take(one))),
      );
  }
  const arrived = async (): Promise<void> => void (await Promise.all(late.values()));
  const close = async (): Promise<void> => {
    signal.removeEventListener('abort', end);
    ending.abort();
    await arrived();
    for (const left of leave) left();
    await Promise.all(connections.map(connection => connection.close()));
  };
  if (signal.aborted) {
    await close();
    throw signal.reason;
  }
  const offering = (name: string): OfferingServer | undefined =>
    connections.find(({ server }) => server === name);
  const names = (): string[] => [...late.keys()];
  return {
    merged: () => withoutOff(merged, reach.isOff),
    problems,
    signIns,
    offering,
    late: names,
    arrived,
    close,
  };
}

/** Returns each work with its result, if that is there in time. Rejects if one of them does. */
async function within<Result>(
  milliseconds: number,
  works: readonly Promise<Result>[],
): Promise<{ work: Promise<Result>; done?: Result }[]> {
  const all: { work: Promise<Result>; done?: Result }[] = works.map(work => ({ work }));
  const each = all.map(async one => {
    one.done = await one.work;
  });
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<void>(resolve => {
    timer = setTimeout(resolve, milliseconds);
  });
  await Promise.race([Promise.all(each), patience]).finally(() => clearTimeout(timer));
  return all;
}

function withoutOff(merged: MergedTools, isOff: McpReach['isOff']): MergedTools {
  if (!isOff) return merged;
  const isOffered = (name: string): boolean => {
    const facts = merged.facts.get(name);
    return !facts || !isOff(facts.server, facts.tool);
  };
  return { ...merged, tools: merged.tools.filter(({ definition }) => isOffered(definition.name)) };
}

/** Connects to every server of an agent, reports on it and ends it again. Throws the abort reason on abort. */
export async function describeServers(
  config: Pick<Config, 'env' | 'home' | 'dataDir'>,
  agent: McpAgent,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
  reach: McpReach = {},
): Promise<{ servers: readonly McpServerReport[]; problems: readonly Sentence[] }> {
  const hiding = withHidden(reach, agent, config.env);
  const { servers, problems } = agent.mcpConfig ? readMcpConfig(agent.mcpConfig) : nothing;
  const reports = [...servers].map(async ([name, server]): Promise<McpServerReport> => {
    const started = performance.now();
    const result = await tryServer(name, server, config, agent, env, signal, hiding);
    const milliseconds = Math.round(performance.now() - started);
    const report = { server: name, place: placeOf(server), milliseconds };
    if ('error' in result) return { ...report, outcome: { error: result.error } };
    const { name: called, version, tools } = result.connection;
    await result.connection.close();
    return { ...report, outcome: { name: called, version, tools: tools.map(tool => tool.name) } };
  });
  const done = await Promise.all(reports);
  signal.throwIfAborted();
  return { servers: done, problems: problems.map(asSaid) };
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
export async function tryServer(
  name: string,
  written: McpServer,
  config: Pick<Config, 'env' | 'home' | 'dataDir'>,
  agent: McpAgent,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
  reach: McpReach & { redact: Redactor },
): Promise<Attempt> {
  const started = performance.now();
  const result = await reached(name, written, config, agent, env, signal, reach);
  // What was interrupted says nothing about the server.
  if (reach.book && !signal.aborted) {
    const milliseconds = Math.round(performance.now() - started);
    const { tools } = 'error' in result ? { tools: [] } : result.connection;
    const isWanted = 'error' in result && result.signIn?.isWanted === true;
    const state = isWanted ? 'sign-in' : 'error' in result ? 'failed' : 'ready';
    const why = 'error' in result ? { error: result.error } : {};
    reach.book.note(agent.name, name, { state, ...why, tools, milliseconds });
    if ('connection' in result && reach.book.wantsOffers)
      return { ...result, listed: noteOffers(agent.name, result, reach.book, signal) };
  }
  return result;
}

/** Lists prompts and resources beside the run, which does not wait for it. Never rejects: what cannot be listed is not offered. */
async function noteOffers(
  agent: string,
  { server, connection }: Extract<Attempt, { connection: McpConnection }>,
  book: ServerBook,
  signal: AbortSignal,
): Promise<void> {
  try {
    const { listPrompts, listResources } = await import('./offers.ts');
    const ask: AskForOffer = (method, params) => connection.ask(method, params, signal);
    const [prompts, resources] = await Promise.all([
      connection.offers('prompts') ? listPrompts(ask) : [],
      connection.offers('resources') ? listResources(ask) : [],
    ]);
    book.noteOffers(agent, server, { prompts, resources });
  } catch {
    // The server has ended, or lists nothing. A word that is typed whole is still looked for.
  }
}

async function reached(
  name: string,
  written: McpServer,
  config: Pick<Config, 'env' | 'home' | 'dataDir'>,
  agent: McpAgent,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
  {
    limits = usualLimits,
    signIn: port,
    redact,
    workFolders,
    openBox,
    book,
    openUrl,
    canAsk,
    root,
  }: McpReach & { redact: Redactor },
): Promise<Attempt> {
  const { packDir } = agent;
  const ready = readyServer(written, config, packDir);
  if ('refusal' in ready) return { server: name, error: ready.refusal };
  const { server } = ready;
  const cwd = server.type === 'stdio' && server.cwd ? expandPath(server.cwd, config.home, packDir) : packDir;
  let signIn: McpSignIn | undefined;
  let boxed: BoxedStart | undefined;
  try {
    const { connectServer } = await import('./client.ts');
    if (port && server.type !== 'stdio') {
      const { McpSignIn } = await import('./signIn.ts');
      signIn = new McpSignIn(port, agent.name, server, redact.learn);
    }
    boxed = await inBox(name, server, { env, cwd, workFolders, openBox });
    const wrote = book?.writer(agent.name, name, redact.text);
    const place = whereabouts(server, cwd, config);
    const asked = { openUrl, canAsk, root: namesFolder(place, cwd) ? undefined : root };
    const { text } = redact;
    const surroundings = {
      env,
      cwd,
      workFolders,
      fetch: signIn?.fetch,
      redact: text,
      boxed,
      wrote,
      ...asked,
    };
    const connection = await connectServer(name, server, surroundings, limitsFor(server, limits), signal);
    return { server: name, connection, place: placeOf(written), signIn, ...place };
  } catch (error) {
    await boxed?.end();
    return { server: name, error: mapStrings(phraseOf(error), redact.text), signIn };
  }
}

/** Returns how a server starts that is to run in a box. Throws TelosError `mcp` if it cannot. */
async function inBox(
  name: string,
  server: McpServer,
  {
    env,
    cwd,
    workFolders,
    openBox,
  }: Pick<McpReach, 'workFolders' | 'openBox'> & Pick<McpSurroundings, 'env' | 'cwd'>,
): Promise<BoxedStart | undefined> {
  if (server.type !== 'stdio' || !server.sandbox) return undefined;
  if (!openBox)
    throw new TelosError('mcp', [
      sentence('its entry says that it runs in a sandbox ("sandbox": true), and there is none here'),
    ]);
  const [{ boxedStart }, { serverProgram }] = await Promise.all([
    import('./boxedServer.ts'),
    import('./link.ts'),
  ]);
  const { command, env: own } = serverProgram(server, env, workFolders);
  return boxedStart(name, { program: command, args: server.args, env: own, folder: cwd }, openBox);
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

/**
 * Returns true for a server that gets no root: one at an address, and one whose arguments name a folder, since many take a
 * root in place of those.
 */
const namesFolder = ({ folders }: McpServerPlace, cwd: string): boolean =>
  folders === undefined ||
  folders.some(path => path !== cwd && statSync(path, { throwIfNoEntry: false })?.isDirectory());

const noisyText = (server: string, noise: string): Sentence =>
  sentence(
    "The MCP server '{0}' wrote output that is not a message ({1}). It is ignored; such output belongs on its error stream.",
    server,
    noise,
  );

const crowdedText = (server: string, used: number): Sentence =>
  sentence("The MCP server '{0}' has more than {1} tools; only the first {1} are used.", server, used);

function tooDeepText(server: string, tools: readonly string[]): Sentence {
  const named = tools
    .slice(0, 5)
    .map(tool => escapeInvisible(beginningOf(tool, 100)))
    .join(', ');
  const rest = tools.length - 5;
  if (tools.length === 1)
    return sentence(
      "{0} of the MCP server '{1}' is left out: its schema nests lists and objects more than {2} levels deep.",
      named,
      server,
      deepestJson,
    );
  return sentence(
    "{0} of the MCP server '{1}' are left out: their schemas nest lists and objects more than {2} levels deep.",
    rest > 0 ? sentence('{0} and {1} more', named, rest) : named,
    server,
    deepestJson,
  );
}

const unavailable = (server: string, why: Sentence, file: string): Sentence =>
  sentence(
    "The MCP server '{0}' is not available in this run: {1}. It is configured in {2}.",
    server,
    why,
    file,
  );
