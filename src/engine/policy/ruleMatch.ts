/** Checks whether a rule of the user fits a call. */

import { isInside } from '../files/paths.ts';
import { folded, isSensitive } from '../files/sensitiveNames.ts';
import type { ReadOnlyCommand } from '../tools/readOnlyShell.ts';
import { commandReach } from './commandReach.ts';
import type { PolicyContext } from './decision.ts';
import type { RuleDraft } from './policyEdit.ts';
import type { PolicyRule } from './policyFile.ts';
import { staysAbove } from './programHabits.ts';
import {
  type FoldedPath,
  foldedPath,
  LinkFollower,
  type NamedPath,
  type Reach,
  relationOf,
  withoutPercents,
  writtenSegments,
} from './reach.ts';
import { looseCommands, withoutBraces, wordsMatch, wordsOccur } from './shellCommands.ts';
import { fileWildcards } from './shellSigns.ts';
import { hostAndPort, hostFits, type PolicySubject, type PolicySubjectOf } from './subject.ts';

/** Returns true for a rule that allows exactly this call. */
export function matchesRule(rule: PolicyRule, wanted: PolicySubject, context: PolicyContext): boolean {
  if (!appliesTo(rule, context)) return false;
  const tool = wanted.kind === 'mcp' && rule.server !== undefined ? wanted.facts.tool : wanted.tool;
  if (rule.server !== undefined && (wanted.kind !== 'mcp' || wanted.facts.server !== rule.server))
    return false;
  return rule.tool === tool && covers(rule, wanted);
}

/**
 * Returns true if the rule is for this agent. A workspace agent can use any name, so an allow rule must also name its folder; a deny rule
 * holds in any case of the name.
 */
export function appliesTo({ effect, agent, pack }: PolicyRule, context: PolicyContext): boolean {
  const { name, packDir } = whoIn(context) ?? {};
  if (agent === '*') return pack === undefined || pack === packDir;
  if (name !== agent && (effect === 'allow' || name?.toLowerCase() !== agent.toLowerCase())) return false;
  if (pack !== undefined) return pack === packDir;
  return effect === 'deny' || context.agent?.source !== 'project';
}

/** Returns true for exactly what an allow rule names, and for nothing that only looks like it. */
function covers(rule: PolicyRule, wanted: PolicySubject): boolean {
  switch (wanted.kind) {
    case 'command':
      if (rule.command !== undefined)
        return (
          rule.command === wanted.subject && (rule.folder === undefined || rule.folder === wanted.folder)
        );
      return rule.argv !== undefined && wanted.words !== undefined && wordsMatch(rule.argv, wanted.words);
    case 'fetch':
      if (rule.host === undefined) return false;
      // A name alone opens the ports of the web to commands, and no others.
      if (wanted.program !== undefined && !/:\d+$/.test(rule.host) && !isWebPort(wanted.url)) return false;
      return hostFits(rule.host, wanted.url, wanted.host === 'public');
    case 'mcp':
      return rule.digest !== undefined && rule.server !== undefined && rule.digest === wanted.facts.digest;
    case 'read':
    case 'write':
      if (rule.path === undefined) return false;
      // Files in an open folder that hold secrets or get executed are named one by one, or asked about.
      return rule.path.endsWith('/**')
        ? isInside(rule.path.slice(0, -3), wanted.subject) && !isSensitive(wanted.subject)
        : rule.path === wanted.subject;
    default:
      return false;
  }
}

const isWebPort = (url: URL): boolean => /:(?:80|443)$/.test(hostAndPort(url));

/** Returns true for a rule that names one command without open arguments. */
export const isExact = ({ command, argv }: PolicyRule): boolean =>
  command !== undefined || (argv !== undefined && argv.at(-1) !== '*');

/** Returns who asks, as rules name it; undefined for a step of a plan that has no agent. */
const whoIn = ({
  agent,
  isTelos,
  workingDir,
}: PolicyContext): { name: string; packDir: string } | undefined =>
  agent ?? (isTelos ? { name: 'telos', packDir: workingDir } : undefined);

/** Returns the rule that an answer of `always` stores for exactly this call; undefined where there is nobody to bind it to. */
export function draftFor(wanted: PolicySubject, context: PolicyContext): RuleDraft | undefined {
  const who = whoIn(context);
  if (!who) return undefined;
  const { name: agent, packDir: pack } = who;
  switch (wanted.kind) {
    case 'command':
      return { agent, pack, tool: wanted.tool, command: wanted.subject, folder: wanted.folder };
    case 'fetch': {
      const isPage = wanted.host === 'public' && wanted.program === undefined;
      const host = isPage ? wanted.url.hostname : hostAndPort(wanted.url);
      return { agent, pack, tool: wanted.tool, host };
    }
    case 'mcp': {
      const { server, tool, digest } = wanted.facts;
      return { agent, pack, tool, server, digest };
    }
    default:
      return { agent, pack, tool: wanted.tool, path: wanted.subject };
  }
}

/** `unclear`: the call may mean what the rule forbids, and only a person can decide. */
export type Prohibition = 'forbidden' | 'unclear';

/** Tools that do the same as the one that a rule names. */
const alsoMeant: Readonly<Record<string, readonly string[]>> = {
  read_file: ['search_files', 'edit_file'],
  write_file: ['edit_file'],
  list_directory: ['glob'],
  glob: ['list_directory'],
};
/** If a rule names one of these and a place, it also holds for everything that could do the same: commands and MCP tools. */
const fileTools = /^(\*|read_file|write_file|edit_file|list_directory|search_files|glob)$/;
/** If a rule names one of these and a place, it also covers the names below the place. */
const lists = /^(\*|list_directory|glob)$/;
const writes = /^(write_file|edit_file)$/;

/** Returns what a rule forbids of a call. `looking` is the command if it only looks at files, so that its paths are certain. */
export function prohibitionBy(
  rule: PolicyRule,
  wanted: PolicySubject,
  home: string,
  looking: ReadOnlyCommand | undefined,
): Prohibition | undefined {
  const { argv, command, host, path, digest } = rule;
  const isNamed = namesTool(rule, wanted);
  if (!(argv ?? command ?? host ?? path ?? digest)) return isNamed ? 'forbidden' : undefined;
  if (path !== undefined) return byPlace(rule, wanted, isNamed, home, looking);
  if (host !== undefined) return byHost(rule, wanted) ? 'forbidden' : undefined;
  if (!isNamed) return undefined;
  if (digest !== undefined)
    return wanted.kind === 'mcp' && digest === wanted.facts.digest ? 'forbidden' : undefined;
  if (wanted.kind !== 'command') return undefined;
  if (command !== undefined) return wanted.subject.includes(command) ? 'forbidden' : undefined;
  const isMeant = looseCommands(wanted.subject).some(words => wordsOccur(argv!, words));
  return isMeant ? 'forbidden' : undefined;
}

/** Returns true if the rule names the tool. An MCP tool has its own name, and the one that the model knows it by. */
function namesTool({ tool, server }: PolicyRule, wanted: PolicySubject): boolean {
  if (server !== undefined && (wanted.kind !== 'mcp' || wanted.facts.server !== server)) return false;
  const names = wanted.kind === 'mcp' ? [wanted.tool, wanted.facts.tool] : [wanted.tool];
  return tool === '*' || names.some(name => name === tool || alsoMeant[tool]?.includes(name));
}

function byPlace(
  rule: PolicyRule,
  wanted: PolicySubject,
  isNamed: boolean,
  home: string,
  looking: ReadOnlyCommand | undefined,
): Prohibition | undefined {
  const isOfFiles = rule.server === undefined && fileTools.test(rule.tool);
  const places = placesOf(rule);
  switch (wanted.kind) {
    case 'command':
      if (!isNamed && !isOfFiles) return undefined;
      if (looking)
        return !writes.test(rule.tool) && shows(looking, places, lists.test(rule.tool))
          ? 'forbidden'
          : undefined;
      return byReach(rule, reachOf(wanted, home), places, home);
    case 'mcp':
      return isNamed || isOfFiles ? byReach(rule, wanted.reach, places, home) : undefined;
    case 'fetch':
    case 'workflow':
      return undefined;
    default: {
      if (!isNamed) return undefined;
      if (
        wanted.pattern !== undefined &&
        lists.test(rule.tool) &&
        finds(wanted.subject, wanted.pattern, places)
      )
        return 'forbidden';
      const path = foldedPath(writtenSegments(wanted.subject));
      const relations = places.map(place => relationOf(path, place));
      // A search shows the content of the files below its folder.
      const searches = wanted.tool === 'search_files' && relations.includes('above');
      return relations.includes('below') || searches ? 'forbidden' : undefined;
    }
  }
}

/** Returns true if a search for names could find one in these places. It follows no links. */
function finds(folder: string, pattern: string, places: readonly FoldedPath[]): boolean {
  const base = writtenSegments(folder);
  return withoutBraces(fileWildcards(pattern)).some(one => {
    const names = writtenSegments(one.replace(/^\/+/, ''), base);
    return places.some(place => /below|maybe/.test(relationOf(foldedPath(names), place, true) ?? ''));
  });
}

/**
 * Returns true if the command shows content in these places. Its links were followed when it was checked. `names` is for a rule
 * that also covers names.
 */
function shows(
  { program, paths, argv }: ReadOnlyCommand,
  places: readonly FoldedPath[],
  names: boolean,
): boolean {
  const listsBelow = program === 'find' || (program === 'ls' && staysAbove(program, argv) === 'none');
  const readsBelow = program === 'rg' || program === 'grep' || (names && listsBelow);
  return paths.some(path => {
    const named = foldedPath(writtenSegments(path));
    const relations = places.map(place => relationOf(named, place));
    return relations.includes('below') || (readsBelow && relations.includes('above'));
  });
}

function byReach(
  { tool }: PolicyRule,
  reach: Reach,
  places: readonly FoldedPath[],
  home: string,
): Prohibition | undefined {
  let found: Prohibition | undefined;
  const isWriting = writes.test(tool);
  for (const named of reach.paths) {
    const { ifBelow, ifAbove, isWritten } = named;
    const relation = strongest(named, places, reach.dots);
    const consequence = relation === 'below' ? ifBelow : relation === 'above' ? ifAbove : 'unclear';
    if (relation === undefined || consequence === 'nothing') continue;
    // Whether a program writes the files it is given is not known. A file after `>` is certainly written.
    if (consequence === 'forbidden' && (!isWriting || isWritten)) return 'forbidden';
    found = 'unclear';
  }
  if (reach.unread.length === 0) return found;
  const isPieced = reach.code.some(text => places.some(place => standsInPieces(text, place, home)));
  return isPieced && !isWriting ? 'forbidden' : 'unclear';
}

function strongest({ meanings }: NamedPath, places: readonly FoldedPath[], dots?: boolean) {
  const relations = meanings.flatMap(path => places.map(place => relationOf(path, place, dots)));
  return (['below', 'above', 'maybe'] as const).find(one => relations.includes(one));
}

/** Returns true if the code contains the place in pieces that it joins. Quotes, signs and blanks between them are removed. */
function standsInPieces(code: string, place: FoldedPath, home: string): boolean {
  const own = foldedPath(writtenSegments(home));
  const below = place.slice(place.startsWith(own) ? own.length : 1, -1);
  const wanted = [place.slice(0, -1), `/${below}`, below.includes('/') ? below : `${below}/`];
  const joined = withoutPercents(code).replace(/["'`+\s\\]/g, '');
  return [joined, joined.replaceAll(',', '/').replace(/\/{2,}/g, '/')].some(text => {
    const plain = folded(text);
    return below !== '' && wanted.some(one => plain.includes(one));
  });
}

/** Returns the place as it is written, and the places that its links lead to. */
function placesOf({ path = '' }: PolicyRule): FoldedPath[] {
  const written = writtenSegments(path.replace(/\/\*\*$/, ''));
  return new LinkFollower().meaningsOf(written).map(foldedPath);
}

/** Reach of a command, computed once for all rules. */
const reaches = new WeakMap<PolicySubject, Reach>();

function reachOf(wanted: PolicySubjectOf<'command'>, home: string): Reach {
  const known = reaches.get(wanted) ?? commandReach(wanted.subject, wanted.folder, home);
  reaches.set(wanted, known);
  return known;
}

/** Returns the parts of the call that could not be read, for the question about it. */
export function unreadIn(wanted: PolicySubject, home: string): readonly string[] {
  if (wanted.kind === 'mcp') return wanted.reach.unread;
  return wanted.kind === 'command' ? reachOf(wanted, home).unread : [];
}

/** Returns the tools whose forbidden hosts a call must not reach either. A command can do what a fetch does, and more. */
const toolsWithHosts = ({ kind, tool }: PolicySubject): readonly string[] =>
  kind === 'command' || tool === 'run_command' ? ['*', 'fetch_url', 'run_command'] : ['*', 'fetch_url'];

/**
 * Returns true if the call can reach the rule's host. A command, or the tool of a server, can fetch as well. An address with
 * `www.` is the same as the one without.
 */
function byHost({ tool, host = '', server }: PolicyRule, wanted: PolicySubject): boolean {
  const pattern = host.replace(/:\d+$/, '');
  const means = (url: URL): boolean =>
    [url, without(url)].some(one => hostFits(pattern, one, true) || hostFits(withoutWww(pattern), one, true));
  if (!toolsWithHosts(wanted).includes(tool)) return false;
  if (wanted.kind === 'fetch') return means(wanted.url);
  if (wanted.kind === 'mcp')
    return (server === undefined || wanted.facts.server === server) && wanted.reach.urls.some(means);
  if (wanted.kind !== 'command') return false;
  const plain = wanted.subject.replace(/["'\\]/g, '').toLowerCase();
  const names = new Set(plain.match(/[a-z\d][\w.-]*\.[\w.-]*\w|\[[\da-f:.]+\]/g));
  return [...names].some(name => URL.canParse(`http://${name}/`) && means(new URL(`http://${name}/`)));
}

const withoutWww = (host: string): string => host.replace(/^www\./i, '');

function without(url: URL): URL {
  const bare = new URL(url);
  bare.hostname = withoutWww(url.hostname);
  return bare;
}
