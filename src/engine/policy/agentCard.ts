/** Makes an agent's card: lists what its files name, and flags what a person should look at. */
import { basename, dirname, join, relative } from 'node:path';
import type { AgentCard, CardLines, RedFlag } from '@telos/protocol/agentCard';
import { hostKind, unprotected } from '../addresses.ts';
import { inPlugin } from '../files/hostPlugin.ts';
import { realIfThere } from '../files/paths.ts';
import { looksBinary } from '../files/plainText.ts';
import { loadRegularFile } from '../files/regularFile.ts';
import { isTelosKey, type McpServer, readMcpConfig } from '../mcp/config.ts';
import { isSecretName } from '../redact.ts';
import { type ParsedSkillFile, parseSkillFile } from '../skills/frontmatter.ts';
import { type Hook, hookLine, packHooks, skillHooks } from '../skills/readHooks.ts';
import { readRuntimeMetadata, readToolNames, splitAllowedTools } from '../skills/skillFields.ts';
import type { AgentFiles, ReviewedAgent } from './agentFiles.ts';
import { type AgentFile, isBelow } from './agentReader.ts';
import { isOffered } from './programHabits.ts';
import { promisedIn } from './promisedFiles.ts';
import { compiledEnding, longestRead, scriptEnding } from './text/fileKinds.ts';
import { findRedFlags } from './text/redFlags.ts';
import { namesRepositoryFile, repositoryFlags } from './text/repositoryFiles.ts';
import { lookalikesIn } from './text/riskyCode.ts';

/** The permissions that accepting a card grants. */
export type CardFacts = CardLines & {
  /** Working folder inside the agent's own folder, if empty. The digest does not cover files added later, which are work. */
  workFolder?: string;
};

/** Variables of texts and scripts. A skill that says more in its frontmatter gets more. */
const mostVariables = 40;
/** Upper limit. A typical skill names about ten. */
const mostHosts = 200;
/** Number of flags that every frontend shows in any case. */
const manyFlags = 20;

/** The schema of a file of JSON is its name, which no one fetches. */
const schemaName = /"\$schema"\s{0,9}:\s{0,9}"[^"\n]{0,500}"/g;

const proseEnding = /\.(md|markdown|txt|rst)$/i;

/** Reads the files that `files` lists. A file that has changed since is noticed by its digest when the card is accepted. */
export async function cardOf(
  agent: ReviewedAgent,
  files: AgentFiles,
): Promise<CardFacts & Pick<AgentCard, 'leftOut' | 'redFlags'>> {
  const hosts = new Set<string>();
  const variables = new Set<string>();
  const commands = new Set<string>();
  const writes = new Set<string>();
  const scripts: string[] = [];
  const [hooks, hooksNotRun]: [Hook[], string[]] = [[], []];
  const redFlags: RedFlag[] = [...files.escapes, ...lookalikeNames([agent.name, ...files.files.keys()])];
  let crowded: RedFlag | undefined;
  const texts = new Set(
    agent.skills.flatMap(({ kind, file }) => (kind && kind !== 'servers' ? [realIfThere(file) ?? file] : [])),
  );
  if (files.tooLarge) redFlags.push(notRead(agent.packDir));
  for (const [label, file] of [...files.files].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (file.isLink) continue;
    const text = await textOf(file.path, file.size);
    if (file.ofRepository) {
      redFlags.push(...flagsOfRepository(label, text));
      continue;
    }
    const isScript = scriptEnding.test(label) || file.executable || text?.startsWith('#!') === true;
    if (isScript) scripts.push(label);
    if (text === undefined) {
      redFlags.push(...flagsOfUnread(label, file, isScript));
      continue;
    }
    for (const host of hostsIn(label.endsWith('.json') ? text.replace(schemaName, '') : text))
      hosts.add(host);
    for (const name of variablesIn(text)) if (variables.size < mostVariables) variables.add(name);
    if (hosts.size > mostHosts && !crowded)
      crowded = { kind: 'too-many-hosts', file: label, line: 1, text: '' };
    if (/^skills?\.md$/i.test(label.slice(label.lastIndexOf('/') + 1)) || texts.has(file.path)) {
      const { fields, body } = parseSkillFile(text, file.path);
      const names = [agent.name, String(fields['name'] ?? ''), basename(dirname(file.path))];
      for (const path of promisedIn(body, names)) writes.add(path);
      const dir = dirname(file.path);
      const own = skillHooks(fields['hooks'], agent, { id: basename(dir), dir });
      hooks.push(...own.hooks);
      hooksNotRun.push(...own.problems);
      for (const name of declaredVariables(fields)) variables.add(name);
      const named = readToolNames(splitAllowedTools(fields['allowed-tools']));
      for (const command of offeredCommands(named.commands)) commands.add(command);
      for (const host of named.hosts) if (hostKind(host) === 'public') hosts.add(host);
    }
    for (const flag of findRedFlags(text, label)) redFlags.push(flag);
    if (hasRepository(files) && !proseEnding.test(label) && namesRepositoryFile(text))
      redFlags.push({ kind: 'repository-file', file: label, line: 1, text: '' });
  }
  const ofPack = packHooks(agent);
  hooks.push(...ofPack.hooks);
  hooksNotRun.push(...ofPack.problems);
  const { servers, used, inClear, notStarted } = serversOf(agent);
  for (const name of used) variables.add(name);
  const mcpFile = relative(agent.packDir, agent.mcpConfig ?? '');
  for (const text of inClear) redFlags.push({ kind: 'secret-in-clear', file: mcpFile, line: 1, text });
  if (crowded) redFlags.push(crowded);
  const grantsNoScript = files.escapes.length > 0 || redFlags.some(({ kind }) => kind === 'repository-file');
  const workFolder = workFolderOf(files, scripts);
  return {
    // If a host is named with http and with https, plain http is the wider permission.
    hosts: crowded ? [] : [...hosts].filter(host => !hosts.has(unprotected + host)).sort(),
    scripts: grantsNoScript ? [] : scripts,
    ...(commands.size > 0 && !grantsNoScript ? { commands: [...commands].sort() } : {}),
    variables: [...variables].filter(name => !isTelosKey(name)).sort(),
    ...(writes.size > 0 ? { writes: [...writes].sort() } : {}),
    servers,
    ...(notStarted.length > 0 ? { notStarted } : {}),
    ...(hooks.length > 0 ? { hooks: grantsNoScript ? [] : [...new Set(hooks.map(hookLine))] } : {}),
    ...(hooksNotRun.length > 0 ? { hooksNotRun } : {}),
    folders: files.folders,
    redFlags: withAllKindsFirst(redFlags),
    leftOut: leftOutOf(files, workFolder),
    ...(workFolder === undefined ? {} : { workFolder }),
  };
}

const hasRepository = ({ leftOut }: AgentFiles): boolean => leftOut.some(({ why }) => why === 'repository');

/** Returns the parts that are left out, including the working folder that is left out once the card is accepted. */
function leftOutOf({ leftOut }: AgentFiles, workFolder: string | undefined): AgentFiles['leftOut'] {
  const known = workFolder === undefined || leftOut.some(({ path }) => path === workFolder);
  return known ? leftOut : [...leftOut, { path: workFolder, why: 'work' }];
}

/**
 * Returns the label of the working folder if it can be left out. Programs load files next to them by themselves, but a shell does
 * not. So the folder is left out only if no script of such a program is near.
 */
function workFolderOf({ work }: AgentFiles, scripts: readonly string[]): string | undefined {
  if (work === undefined || work.state === 'used') return undefined;
  const around = work.label.slice(0, work.label.lastIndexOf('/') + 1);
  const loads = scripts.filter(label => !/\.(sh|bash|zsh|fish|bat|cmd)$/i.test(label));
  const isNear = loads.some(label => label.startsWith(around) && !label.slice(around.length).includes('/'));
  return isNear || scripts.some(label => isBelow(work.label, label)) ? undefined : work.label;
}

/** Flags names of files and folders. If one is inside another, only the outermost is flagged. */
function lookalikeNames(names: readonly string[]): RedFlag[] {
  const found = new Set<string>();
  const isInFound = (name: string): boolean =>
    name.split('/').some((_, index, parts) => found.has(parts.slice(0, index).join('/')));
  for (const name of names) {
    const parts = name.split('/');
    const at = parts.findIndex(part => lookalikesIn(part).length > 0);
    const label = parts.slice(0, at + 1).join('/');
    if (at >= 0 && !isInFound(label)) found.add(label);
  }
  return [...found].slice(0, manyFlags).map(file => ({ kind: 'lookalike-letters', file, line: 1, text: '' }));
}

/** Returns the flags of a file in a repository's own folder. Nothing in there is granted, and its samples do nothing. */
function flagsOfRepository(label: string, text: string | undefined): RedFlag[] {
  if (label.endsWith('.sample')) return [];
  return text === undefined
    ? [notRead(label)]
    : [...repositoryFlags(label, text), ...findRedFlags(text, label)];
}

function flagsOfUnread(label: string, { size }: AgentFile, isScript: boolean): RedFlag[] {
  if (compiledEnding.test(label)) return [{ kind: 'compiled-code', file: label, line: 1, text: '' }];
  return isScript || size > longestRead || isMeantToBeRead(label) ? [notRead(label)] : [];
}

/**
 * Sorts one flag of each kind to the front. A list that is cut still shows every kind, so the worst cannot hide behind many of
 * another kind.
 */
function withAllKindsFirst(flags: readonly RedFlag[]): RedFlag[] {
  if (flags.length <= manyFlags) return [...flags];
  const seen = new Map<RedFlag['kind'], number>();
  const ranked = flags.map(flag => {
    const rank = seen.get(flag.kind) ?? 0;
    seen.set(flag.kind, rank + 1);
    return { flag, rank };
  });
  return ranked.sort((one, other) => one.rank - other.rank).map(({ flag }) => flag);
}

/** Returns true if a model, or Telos itself, takes the file for text, whatever bytes it contains. */
const isMeantToBeRead = (label: string): boolean => /\.(md|markdown|txt|json|toml|ya?ml)$/i.test(label);

const notRead = (file: string): RedFlag => ({ kind: 'not-looked-into', file, line: 1, text: '' });

async function textOf(path: string, size: number): Promise<string | undefined> {
  if (size > longestRead) return undefined;
  const bytes = await loadRegularFile(path).catch(() => undefined);
  return bytes === undefined || looksBinary(bytes) ? undefined : bytes.toString('utf8');
}

/** Returns the public hosts of the web addresses in a text, as a URL parser reads them. Hosts of plain http have that prefix. */
function hostsIn(text: string): string[] {
  const found: string[] = [];
  for (const [address] of text.matchAll(/\bhttps?:\/\/[^\s"'`<>)\]}\\|,;]+/gi)) {
    if (!URL.canParse(address)) continue;
    const { hostname, protocol } = new URL(address);
    // A name such as example.$DOMAIN is a pattern, not a host.
    if (/^[\w.-]+$/.test(hostname) && hostname.includes('.') && hostKind(hostname) === 'public')
      found.push((protocol === 'http:' ? unprotected : '') + hostname.replace(/\.$/, ''));
  }
  return found;
}

/** Returns the environment variables that a skill's frontmatter says it needs. */
function declaredVariables(fields: ParsedSkillFile['fields']): string[] {
  const { requires, primaryEnv } = readRuntimeMetadata(fields);
  const names = primaryEnv === undefined ? requires.env : [...requires.env, primaryEnv];
  return names.filter(name => /^[A-Za-z_]\w*$/.test(name));
}

/** The ways in which texts and scripts name a variable that is set outside of them. */
const namedVariables = [
  /\bprocess\.env(?:\.|\[["'])([A-Z][A-Z0-9_]{2,60})\b/g,
  /\b(?:environ(?:\.get)?|getenv)[([]["']([A-Z][A-Z0-9_]{2,60})["']/g,
  /\$\{([A-Z][A-Z0-9_]{2,60}):?[-?=]/g,
  /\bexport ([A-Z][A-Z0-9_]{2,60})=/g,
  /\$([A-Z][A-Z0-9]{0,40}_[A-Z0-9_]{1,40})\b/g,
  /`\$?([A-Z][A-Z0-9]{0,40}_[A-Z0-9_]{1,40})`/g,
];
/** Variables that hold keys, open something, or change which code a program loads. They are granted only as the frontmatter says. */
const notByName =
  /^(?:LD_|DYLD_|NODE_|PYTHON|PERL|RUBY|BASH|GIT_|SSH_|GPG_|DBUS_|AWS_|AZURE_|GOOGLE_|DOCKER|KUBE|NPM_|PIP_|TELOS_|CLAUDE_|SKILL_|HIST)|(?:URL|URI|DSN|CONNECTION|SOCK|SESSION|COOKIE|AUTH|PAT|PIN|OPTIONS)$/;

/**
 * Returns the variables that a text or a script names without declaring them. A variable that it sets itself is not one, unless it
 * tells the person to set it.
 */
function variablesIn(text: string): string[] {
  const found = new Set(
    namedVariables.flatMap(pattern => [...text.matchAll(pattern)].map(match => match[1]!)),
  );
  return [...found].slice(0, mostVariables * 3).filter(name => {
    if (isSecretName(name) || notByName.test(name)) return false;
    return !new RegExp(`^[ \\t]*(?:local |readonly |declare )?${name}=`, 'm').test(text);
  });
}

/**
 * Returns the servers of the agent's MCP configuration. `inClear` lists those that are sent a variable's value, or credentials,
 * over plain http to another machine.
 */
function serversOf(agent: ReviewedAgent): {
  servers: { name: string; place: string }[];
  used: string[];
  inClear: string[];
  notStarted: readonly string[];
} {
  if (agent.mcpConfig === undefined) return { servers: [], used: [], inClear: [], notStarted: [] };
  const { servers, problems } = readMcpConfig(agent.mcpConfig);
  const entries = [...servers];
  const asking = entries
    .filter(([, { isOfPlugin }]) => !isOfPlugin)
    .map(([, server]) => inPlugin(server, ''));
  const used = [...JSON.stringify(asking).matchAll(/\$\{(\w+)\}/g)].map(match => match[1]!);
  return {
    notStarted: problems.map(problem => problem.replaceAll(join(agent.packDir, '/'), '')),
    servers: entries.map(([name, server]) => ({ name, place: exactPlace(server) })),
    used,
    inClear: entries.flatMap(([name, server]) =>
      sendsInClear(server) ? [`${name}: ${exactPlace(server)}`] : [],
    ),
  };
}

function sendsInClear(server: McpServer): boolean {
  if (server.type === 'stdio' || !URL.canParse(server.url)) return false;
  const { protocol, hostname } = new URL(server.url);
  const isSecret = ([name, value]: [string, string]): boolean =>
    value.includes('${') || /^(authorization|cookie)$/i.test(name);
  return (
    protocol === 'http:' && hostKind(hostname) !== 'loopback' && Object.entries(server.headers).some(isSecret)
  );
}

/**
 * Returns the server's address or command as it is written, with quotes around a word that is not plain. A query or a blank is
 * part of what is agreed to. So are the folder and the variables that a program is started with, which can change what it does.
 */
export function exactPlace(server: McpServer): string {
  if (server.type !== 'stdio') return server.url;
  const words = [server.command, ...server.args];
  const place = [...Object.entries(server.env).map(settingOf), ...words.map(shownWord)].join(' ');
  return server.cwd === undefined ? place : `${place} (in ${shownWord(server.cwd)})`;
}

const shownWord = (word: string): string => (/^[\w./:@=+-]+$/.test(word) ? word : JSON.stringify(word));

/** Returns the setting for display. A secret in plain text is not shown again. */
function settingOf([name, value]: [string, string]): string {
  if (isSecretName(name) && !value.includes('${')) return `${shownWord(name)}=…`;
  return `${shownWord(name)}=${/^\$\{\w+\}$/.test(value) ? value : shownWord(value)}`;
}

/** Returns the patterns of commands that a card can offer: those whose program is not drastic. */
const offeredCommands = (patterns: readonly (readonly string[])[]): string[] =>
  patterns.filter(([program = '']) => isOffered(program)).map(words => words.join(' '));
