/** Says exactly what a call would touch. Refuses what no rule and no answer may open: the floor. */
import type { Danger, JsonObject, ToolCall } from '@telos/protocol/run';
import { type AddressKind, hostKind, isNeverReached, parseWebAddress } from '../addresses.ts';
import { expandPath } from '../config.ts';
import {
  folderHolding,
  isInside,
  PathProblem,
  realPlace,
  refuseSpecialFile,
  resolvePath,
} from '../files/paths.ts';
import { isInsideFolded } from '../files/sensitiveNames.ts';
import { type McpToolFacts, mcpSubject } from '../mcp/tools.ts';
import { readableFolders } from '../tools/tool.ts';
import { dangerOf } from './danger.ts';
import { type Deny, deny, type PolicyContext } from './decision.ts';
import { deepestInput, type McpReach, mcpReach } from './mcpReach.ts';
import { foldedPath, relationOf, writtenSegments } from './reach.ts';
import { looseCommands, plainWords, wordsOccur } from './shellCommands.ts';

/**
 * Describes what a call would touch. `subject` is the real path, the whole command or the address in its normal form. For an MCP
 * tool, it is the server's tool with its input.
 */
export type PolicySubject = { tool: string; subject: string } & (
  | {
      kind: 'read' | 'write';
      /** The path as the call names it, absolute, before its links are followed. Missing if it is the same. */
      named?: string;
      /** For a search for names: their pattern, relative to the folder. */
      pattern?: string;
      /** For a write: the whole new content, as far as the call contains it. */
      content?: string;
    }
  | {
      kind: 'command';
      /** Real and absolute path. */
      folder: string;
      /** The plain words; undefined for a command that is more than that. */
      words: readonly string[] | undefined;
      /** Set if the model asks to run it outside of the box. `why` is in its own words, and may be empty. */
      leaving?: { why: string };
      /** Set if it goes on in the background. */
      goesOn?: true;
      /** Dangers that its words name, for the person to read first. Empty if there are none. */
      dangers: readonly Danger[];
    }
  | {
      kind: 'fetch';
      url: URL;
      host: AddressKind;
      /** The program that wants to reach the host, if it is a boxed command and not the tool that fetches pages. */
      program?: string;
    }
  /** A tool that a step of a plan brings. It acts on nothing but the plan, through the engine. */
  | { kind: 'workflow' }
  | {
      kind: 'mcp';
      facts: McpToolFacts;
      reach: McpReach;
      /** True if it names a folder that contains Telos's own files. */
      aboveTelos: boolean;
    }
);

export type PolicySubjectOf<Kind extends PolicySubject['kind']> = Extract<PolicySubject, { kind: Kind }>;

/** Kinds of the built-in tools. Every other name is that of an MCP server's tool. */
const kinds: Readonly<Record<string, 'read' | 'write' | 'command' | 'fetch'>> = {
  read_file: 'read',
  list_directory: 'read',
  search_files: 'read',
  glob: 'read',
  write_file: 'write',
  edit_file: 'write',
  run_command: 'command',
  fetch_url: 'fetch',
};

/** Name of the call that asks for a host on behalf of a boxed command. A tool cannot have it, since its name has a dot. */
export const hostCall = 'run_command.host';

export const isBuiltin = (tool: string): boolean => Object.hasOwn(kinds, tool);

/** Returns what a call would touch, or why it is refused. Reads files, resolves no host name, and sends nothing. */
export async function subjectOf(call: ToolCall, context: PolicyContext): Promise<PolicySubject | Deny> {
  const { name: tool, input } = call;
  if (tool === hostCall) return hostOf(input);
  const kind = Object.hasOwn(kinds, tool) ? kinds[tool] : undefined;
  switch (kind) {
    case 'read':
      return file(kind, tool, input['path'] ?? '.', context, patternOf(tool, input['pattern']));
    case 'write':
      return file(kind, tool, input['path'], context, contentOf(input['content']));
    case 'command':
      return command(tool, input, context);
    case 'fetch':
      return fetch(tool, input['url']);
    case undefined: {
      if (context.stepTools?.has(tool)) return { kind: 'workflow', tool, subject: tool };
      const facts = context.mcpTool?.(tool);
      if (!facts) return deny('tool.undecided', `There is no rule about the tool ${tool}.`);
      return mcp(tool, facts, input, context);
    }
  }
}

async function file(
  kind: 'read' | 'write',
  tool: string,
  given: unknown,
  context: PolicyContext,
  more: { content?: string; pattern?: string } = {},
): Promise<PolicySubject | Deny> {
  if (typeof given !== 'string') return deny('input.invalid', 'The path must be a string.');
  try {
    const path = await resolvePath(given, context.workingDir, context.home);
    const isOpen = (kind === 'read' && isInStandIn(path, context)) || isInPluginData(path, context);
    const owner = isOpen ? undefined : await ownFolderAround(path, context);
    if (owner) return closed(path, owner);
    await refuseSpecialFile(path);
    const named = expandPath(given, context.home, context.workingDir);
    return { kind, tool, subject: path, ...(named === path ? {} : { named }), ...more };
  } catch (error) {
    if (!(error instanceof PathProblem)) throw error;
    return deny(error.kind === 'special' ? 'floor.special-file' : 'input.invalid', error.message);
  }
}

/** Whether a path is in a folder that only commands in the box have written, such as their own temporary files. */
export const isInStandIn = (path: string, { standIns = [] }: PolicyContext): boolean =>
  standIns.some(({ place }) => isInside(realPlace(place) ?? place, path));

/** Whether a path is in the folder in which the plugin of the run keeps what is its own. */
export const isInPluginData = (path: string, { pluginData }: PolicyContext): boolean =>
  pluginData !== undefined && isInside(realPlace(pluginData) ?? pluginData, path);

const patternOf = (tool: string, given: unknown): { pattern?: string } =>
  tool === 'glob' && typeof given === 'string' ? { pattern: given } : {};

const contentOf = (given: unknown): { content?: string } =>
  typeof given === 'string' ? { content: given } : {};
/**
 * Checks the input of an MCP tool, because the actions of a server cannot be checked. An input that names a place of Telos's own
 * is refused, however it is written. A folder above one is not refused, since it is not known whether the tool goes down that
 * far. It is asked about each time.
 */
async function mcp(
  tool: string,
  facts: McpToolFacts,
  input: JsonObject,
  context: PolicyContext,
): Promise<PolicySubject | Deny> {
  const { home, workingDir, packDir, skillDir, commandDir, currentDir } = context;
  const own = [workingDir, packDir, ...(facts.folders ?? [])];
  const others = [skillDir, commandDir, ...(currentDir === undefined ? [] : [currentDir])];
  const reach = mcpReach(input, { home, own, others, isRemote: facts.isRemote === true });
  if (!reach)
    return deny('input.invalid', `The input has values within values, more than ${deepestInput} deep.`);
  const address = reach.urls.find(({ hostname }) => /^(metadata|link-local)$/.test(hostKind(hostname)));
  if (address)
    return deny('floor.fetch-address', `${address.hostname} is an address that no tool may reach.`);
  let aboveTelos = false;
  const pack = await realPack(context);
  for (const folder of await ownFolders(context)) {
    const relations = relationsTo(folder.path, reach, packInside(folder.path, pack));
    if (relations.below) return closed(folder.path, folder);
    // A server that is given a whole pack goes through its skills, not through what judges one of them.
    aboveTelos ||= relations.above && !folder.isHidden;
  }
  return { kind: 'mcp', tool, subject: mcpSubject(facts, input), facts, reach, aboveTelos };
}

function relationsTo(
  folder: string,
  reach: McpReach,
  pack: string | undefined,
): { below: boolean; above: boolean } {
  const place = foldedPath(writtenSegments(folder));
  const own = pack === undefined ? undefined : foldedPath(writtenSegments(pack));
  let [below, above] = [false, false];
  for (const { meanings, ifBelow, ifAbove, isProse } of reach.paths)
    for (const path of meanings) {
      const relation = relationOf(path, place);
      const isOwn = own !== undefined && relationOf(path, own) === 'below';
      below ||= relation === 'below' && !isOwn && ifBelow === 'forbidden';
      above ||= (relation === 'above' || relation === 'maybe') && ifAbove !== 'nothing' && !isProse;
    }
  return { below, above };
}

interface OwnFolder {
  path: string;
  /** True for one that is closed for this run alone. */
  isHidden: boolean;
}

const ownFolders = ({ protectedDirs, hiddenDirs, home }: PolicyContext): Promise<OwnFolder[]> =>
  Promise.all(
    protectedDirs.map(async folder => ({
      path: await resolvePath(folder, folder, home),
      isHidden: hiddenDirs?.includes(folder) === true,
    })),
  );

const closed = (path: string, { isHidden }: OwnFolder): Deny =>
  isHidden
    ? deny('floor.evals', `${path} belongs to what this run is judged by: it may not read or change it.`)
    : deny('floor.telos-files', `${path} belongs to Telos itself: no run may read or change it.`);

const realPack = ({ packDir, home }: PolicyContext): Promise<string> => resolvePath(packDir, packDir, home);

/** Returns the agent's folder if inside `folder`. For its own runs, an agent in the data folder is not Telos's own. */
const packInside = (folder: string, pack: string): string | undefined =>
  pack !== folder && isInside(folder, pack) ? pack : undefined;

async function ownFolderAround(path: string, context: PolicyContext): Promise<OwnFolder | undefined> {
  for (const folder of await ownFolders(context)) {
    if (!isInsideFolded(folder.path, path)) continue;
    const pack = packInside(folder.path, await realPack(context));
    if (pack === undefined || !isInside(pack, path)) return folder;
  }
  return undefined;
}

async function command(
  tool: string,
  input: JsonObject,
  context: PolicyContext,
): Promise<PolicySubject | Deny> {
  const { command: given, cwd } = input;
  if (typeof given !== 'string') return deny('input.invalid', 'The command must be a string.');
  const { disallowedCommands = [] } = context;
  const disallowed =
    disallowedCommands.length > 0 &&
    looseCommands(given).flatMap(words => disallowedCommands.filter(each => wordsOccur(each, words)))[0];
  if (disallowed)
    return deny(
      'skill.disallowed-tools',
      `The skill itself rules out the command \`${disallowed.join(' ')}\`.`,
    );
  const { commandDir, home } = context;
  const wanted = typeof cwd === 'string' ? cwd : commandDir;
  const folder = await resolvePath(wanted, commandDir, home).catch(() => wanted);
  const isOwn =
    wanted === commandDir || (await folderHolding(folder, readableFolders(context), home)) !== undefined;
  if (!isOwn)
    return deny(
      'input.invalid',
      `${wanted} is outside the folders of this run. Leave cwd out, or name a folder in ${context.workingDir}.`,
    );
  const { dangers, destroys } = dangerOf(given, { folder, workingDir: context.workingDir, home });
  if (destroys !== undefined)
    return deny(
      'floor.destroys',
      `It would destroy ${destroys}, which belongs to the system or is a whole home folder or disk. No answer allows that. Name the files that are meant.`,
    );
  const leaving =
    context.hasBox && asksToLeave(input) ? { leaving: { why: String(input['why'] ?? '') } } : {};
  const goesOn = input['background'] === true ? { goesOn: true as const } : {};
  const words = plainWords(given);
  return { kind: 'command', tool, subject: given, folder, words, dangers, ...leaving, ...goesOn };
}

/** Models also write the word as a text. */
const asksToLeave = ({ outside_box: wanted }: JsonObject): boolean => wanted === true || wanted === 'true';

function fetch(tool: string, given: unknown): PolicySubject | Deny {
  if (typeof given !== 'string') return deny('input.invalid', 'The URL must be a string.');
  const parsed = parseWebAddress(given);
  if ('problem' in parsed) return deny(refusalOf(given, parsed.scheme), parsed.problem);
  const { url } = parsed;
  const host = hostKind(url.hostname);
  if (isNeverReached(host))
    return deny('floor.fetch-address', `${url.host} is a ${host} address, which is never fetched.`);
  return { kind: 'fetch', tool, subject: url.href, url, host };
}

/** Returns the host and port that a boxed command wants to reach. They count for commands, in rules and in answers. */
function hostOf({ url, program }: JsonObject): PolicySubject | Deny {
  const wanted = fetch('run_command', url);
  if ('action' in wanted || wanted.kind !== 'fetch') return wanted;
  return { ...wanted, subject: hostAndPort(wanted.url), program: String(program) };
}

/** Returns the rule of the refusal. Complete addresses are refused for their scheme, or for a login that hides the host. */
function refusalOf(given: string, scheme: string | undefined): string {
  if (scheme !== undefined) return 'floor.fetch-scheme';
  return URL.canParse(given) ? 'floor.fetch-login' : 'input.invalid';
}

/** Returns the name under which a yes for the run is stored: this exact call, or the MCP tool as it is described now. */
export function grantName(wanted: PolicySubject): string {
  if (wanted.kind === 'mcp') {
    const { server, tool, digest } = wanted.facts;
    return JSON.stringify([server, tool, digest]);
  }
  const { tool, subject } = wanted;
  if (wanted.kind !== 'command') return JSON.stringify([tool, subject, '']);
  return JSON.stringify([tool, subject, wanted.folder, ...(wanted.leaving ? ['outside'] : [])]);
}

/** Returns `host:port`, with the default port if none is written. */
export function hostAndPort(url: URL): string {
  return `${url.hostname}:${url.port || (url.protocol === 'https:' ? '443' : '80')}`;
}

/**
 * Returns true if the pattern matches the host. A host on this machine or its network matches only with its port. A wildcard
 * matches names below a host, never the host itself.
 */
export function hostFits(pattern: string, url: URL, isPublic: boolean): boolean {
  const host = pattern.toLowerCase();
  if (host === hostAndPort(url)) return true;
  if (!isPublic || /:\d+$/.test(host)) return false;
  const name = url.hostname.replace(/\.$/, '');
  return host.startsWith('*.') ? name.endsWith(host.slice(1)) : name === host;
}
