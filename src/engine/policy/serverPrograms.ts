/** Finds programs of MCP servers that a run could have written. The card covers the bytes of the agent, but not those. */

import { statSync } from 'node:fs';
import { basename } from 'node:path';
import { sentence, shortened, spoken } from '@telos/protocol/text';
import { type Config, expandPath } from '../config.ts';
import { inPlugin } from '../files/hostPlugin.ts';
import { isInside, realPlace } from '../files/paths.ts';
import { isCode, isInsideFolded } from '../files/sensitiveNames.ts';
import type { OpenBox } from '../mcp/boxedServer.ts';
import { interpolate, readMcpConfig, type StdioServer } from '../mcp/config.ts';
import { pluginFolders, resolveProgram } from '../mcp/pluginServers.ts';
import type { Agent } from '../skills/agent.ts';
import { workFoldersOf } from '../skills/workFolders.ts';
import { commandEnvironment } from '../tools/command.ts';
import { ownFolders } from './agentFiles.ts';
import { type Allow, type Ask, allow, type PolicyContext, reviewOf, runPolicy } from './decision.ts';
import { wordsThatLaunch } from './programHabits.ts';
import { withCard } from './question.ts';

/** A server that starts or loads a file that a run can change without a question. */
export interface WrittenServer {
  server: string;
  /** Real and absolute path. */
  path: string;
}

/** Variables that say what programs load, run, or obey. */
const loadingVariable =
  /^(?:LD_|DYLD_|NODE_|PYTHON|PERL5|RUBY|LUA_|PHP|GEM_|BUNDLE_|CLASSPATH|_?JAVA_|JDK_|DOTNET_|CARGO|RUST|GO|GIT_|NPM_|UV_|PIP_|DENO_|BUN_|R_|BASH_ENV$|ENV$|ZDOTDIR$|SHELL$|EDITOR$|PAGER$)/i;
/** Further variables that change what a program finds, trusts or does. */
const steeringVariable =
  /^(?:PATH|HOME|IFS|CDPATH|PS4|TMP|TEMP|TMPDIR|USER|LANG|LANGUAGE|LOCPATH|NLSPATH|GCONV_PATH|TERMINFO.*|VISUAL|BROWSER|SHELLOPTS|BASH.*|PERL.*|MALLOC_.*|GLIBC_.*|XDG_.*|LC_.*|TELOS_.*|CLAUDE_.*|SKILL_(?:DIR|PATH|ROOT)|.*PROXY|SSL.*|OPENSSL.*|.*CA_BUNDLE|.*_CONFIG(?:_.*)?|.*RC|.*_?(?:OPTS|OPTIONS|PRELOAD|PLUGINS?|MODULES?|BACKEND|HOST|URL))$/i;

/** Returns true for a variable that could make a reviewed script load, run, trust or reach something else. */
export const isSteeringVariable = (name: string): boolean =>
  loadingVariable.test(name) || steeringVariable.test(name);

/** Flags followed by the folder in which a program runs, or by code. */
const folderFlag = /^(?:-C|--(?:directory|cwd|chdir|prefix|project|working-dir(?:ectory)?))(?:=|$)/;
const loadingFlag =
  /^(?:-r|--(?:require|import|loader|experimental-loader|preload|env-file|config|init-file|rcfile))(?:=|$)/;
const codeFlag = /^-\w*[ce]$|^--(?:eval|print)$/;

/**
 * Returns the first such server; undefined if everything that the servers name is elsewhere. The content of a data folder is for
 * the server to read.
 */
async function writtenServer(context: PolicyContext): Promise<WrittenServer | undefined> {
  const { agent, home, packDir, env = {} } = context;
  if (agent?.mcpConfig === undefined) return undefined;
  const reviewed = ownFolders(agent);
  for (const [server, written] of readMcpConfig(agent.mcpConfig).servers) {
    if (written.type !== 'stdio') continue;
    const entry = written.isOfPlugin ? startedOf(written, context) : inPlugin(written, context.pluginData);
    if (!entry) continue;
    const cwd = expandPath(entry.cwd ?? '.', home, packDir);
    const inCwd = (path: string): string => realPlace(expandPath(path, home, cwd)) ?? path;
    const named = entry.cwd === undefined ? [] : [cwd];
    const fill = (word: string): string => (entry.isOfPlugin ? word : interpolate(word, env));
    const filled = { ...entry, args: entry.args.map(fill) };
    const path = [...named, ...programsOf(filled, inCwd, { ...env, HOME: home })]
      .map(inCwd)
      .find(each => canBeWritten(each, reviewed, context));
    if (path !== undefined) return { server, path };
  }
  return undefined;
}

/** Returns a plugin's server with its folders filled in. Undefined if it is not started, as one of them leads elsewhere. */
function startedOf(server: StdioServer, { packDir, protectedDirs }: PolicyContext): StdioServer | undefined {
  // Both folders are Telos's own, and no run writes in either.
  const program = resolveProgram(server, pluginFolders(packDir, protectedDirs.at(-1) ?? packDir));
  return 'refusal' in program ? undefined : { ...server, ...program };
}

/** Returns everything that the server's words name as a program to run or a file to load. */
function programsOf(
  { command, args, env: own }: StdioServer,
  inCwd: (path: string) => string,
  env: Readonly<Record<string, string>>,
): string[] {
  const found = /[\\/]/.test(command) ? [command] : [];
  const launching = wordsThatLaunch(command, args, isCode);
  for (const [at, word] of args.entries()) {
    const before = args[at - 1] ?? '';
    const loads = [folderFlag, loadingFlag, codeFlag].some(flag => flag.test(before) || flag.test(word));
    const counts = loads || launching[at];
    for (const path of pathsIn(word, env))
      if (counts || isCode(path) || isPlainFile(inCwd(path))) found.push(path);
  }
  for (const [name, value] of Object.entries(own))
    for (const path of pathsIn(interpolate(value, env), env))
      if (isCode(path) || (loadingVariable.test(name) && /[\\/]/.test(path))) found.push(path);
  return found;
}

/** Returns the word, and the pieces of it that can be paths. */
function pathsIn(word: string, env: Readonly<Record<string, string>>): string[] {
  const plain = word.replace(/\$(\w+)/g, (sign, name: string) => env[name] ?? sign);
  const attached = /^-\w(.+)$/.exec(plain)?.[1] ?? '';
  return [plain, attached, ...interpolate(plain, env).split(/[\s=:;,@'"`()&|<>]+/)].filter(Boolean);
}

/** Returns true for a file whose name does not say that it is data. */
function isPlainFile(path: string): boolean {
  return !basename(path).includes('.') && statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/**
 * Returns true if a run can change the file without a question. It cannot change the files that the agent's card covers, except
 * those in its working folder.
 */
function canBeWritten(
  path: string,
  reviewed: readonly string[],
  { workingDir, workFolders = [], pluginData, home }: PolicyContext,
): boolean {
  const real = (folder: string): string => realPlace(folder) ?? folder;
  const work = real(workingDir);
  const own = reviewed.find(folder => isInside(folder, path));
  if (own !== undefined) return work !== own && isInside(own, work) && isInsideFolded(work, path);
  const data = pluginData === undefined ? [] : [real(pluginData)];
  const places = [work, ...data, ...workFolders.map(real)].filter(place => !isInside(place, home));
  return places.some(place => isInsideFolded(place, path));
}

/** Returns the servers, each with its command line or address. */
async function serverList(mcpConfig: string | undefined): Promise<string> {
  const { exactPlace } = await import('./agentCard.ts');
  const servers = mcpConfig === undefined ? [] : [...readMcpConfig(mcpConfig).servers];
  return shortened(servers.map(([name, server]) => `${name} (${exactPlace(server)})`).join(', '), 400);
}

/** Decides whether the servers of an agent may be started or reached. Its card lists them. */
export async function decideOnServers(context: PolicyContext): Promise<Allow | Ask> {
  const { agent } = context;
  const subject = agent?.mcpConfig ?? '';
  const review = await reviewOf(context);
  const written = await writtenServer(context);
  if (review?.state === 'reviewed' && review.files.escapes.length === 0 && written === undefined)
    return allow('card.servers', subject);
  const sentences = [
    sentence('It starts or connects to {0}.', await serverList(agent?.mcpConfig)),
    ...(written === undefined
      ? []
      : [
          sentence(
            'The MCP server {0} runs or loads {1}, which is in a location that runs can write to, so its permissions do not cover it.',
            JSON.stringify(written.server),
            written.path,
          ),
        ]),
  ];
  const question: Ask = {
    action: 'ask',
    rule: 'mcp.connect',
    reason: spoken(sentences),
    sentences,
    subject,
    scopes: ['once'],
    ...(written === undefined && { toAllow: { kind: 'review_agent' as const, agent: agent?.name ?? '' } }),
  };
  return withCard(question, context, review, () => written === undefined);
}

/** Decides whether the servers of an agent may be started or reached unasked. */
export function decideOnAgent(config: Config, agent: Agent, agents: readonly Agent[]) {
  const { packDir, workingDir } = agent;
  const folders = { workingDir, packDir, skillDir: packDir, commandDir: packDir };
  return decideOnServers(
    runPolicy(config, agent, { ...folders, workFolders: workFoldersOf(config, agents) }),
  );
}

/** Returns the environment of the servers of an agent outside of a run, without their own variables. */
export const serverEnvironment = (config: Config, { packDir }: Agent): Record<string, string> =>
  commandEnvironment({ ...config.env, HOME: config.home }, { packDir, skillDir: packDir }, config.dataDir);

/** Returns what opens the boxes of an agent's servers. There they reach no host. */
export const boxesOf =
  (config: Config, { name, packDir, workingDir }: Agent): OpenBox =>
  async (server, args) => {
    const { serverBoxes } = await import('../box/serverBox.ts');
    const workFolders = workFoldersOf(config, []);
    const folders = { workingDir, packDir, skillDir: packDir, commandDir: packDir, workFolders };
    return serverBoxes(config, name, folders)(server, args);
  };
