/** Reads an agent's mcp.json: its MCP servers, how each is reached, and which of the user's variables each asks for. */

import { existsSync, mkdirSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { type Sentence, sentence } from '@telos/protocol/text';
import { applyEdits, parse as findFaults, modify, type ParseError, stripComments } from 'jsonc-parser';
import { hostKind, isNeverReached } from '../addresses.ts';
import type { Config } from '../config.ts';
import { reasonOf } from '../core/errors.ts';
import { writeWhole } from '../files/atomicWrite.ts';
import { type HostPlugin, hostOnly, inPlugin, readHostPlugin, serverFilesOf } from '../files/hostPlugin.ts';
import { readSettings } from '../files/settingsFile.ts';
import { pluginFolders, readPluginServers, resolveProgram } from './pluginServers.ts';
import { literalSecrets, secretsInBroken } from './secrets.ts';

export interface StdioServer {
  type: 'stdio';
  command: string;
  args: string[];
  env: Record<string, string>;
  /** The folder as written in the file. The caller resolves `~` and paths relative to the agent's folder. */
  cwd?: string;
  timeoutMs?: number;
  /** It runs in the box for commands, or not at all. */
  sandbox?: true;
  isOfPlugin?: OfPlugin;
  /** Folder of the plugin for other hosts that has the server, where its words name that. Absolute path. */
  pluginRoot?: string;
}

/** Of a plugin of agent-plugins.org: its two folders are filled in when it is started, and no variable of the person. */
type OfPlugin = true;

export interface RemoteServer {
  type: 'sse' | 'streamable-http';
  url: string;
  headers: Record<string, string>;
  timeoutMs?: number;
  /** The client registration of Telos at the authorization server, if that server gives out no client ids by itself. */
  oauth?: KnownClient;
  isOfPlugin?: OfPlugin;
}

export interface KnownClient {
  clientId: string;
  /** A variable such as `${NAME}`, as written in the file, because the value is a secret. */
  clientSecret?: string;
}

export type McpServer = StdioServer | RemoteServer;

export interface McpConfig {
  /** Servers by name, in the file's order; `${VAR}` is not replaced. */
  servers: ReadonlyMap<string, McpServer>;
  /** Problems in sentences that name the file and the entry. The other servers are not affected. */
  problems: readonly string[];
}

/**
 * Reads `{"mcpServers": {name: {command, args, env, cwd, sandbox} | {type, url, headers, oauth}}}`, each with a `timeout` or without. Unknown keys are ignored.
 * Servers with `disabled: true` are left out, and so are comments. A plugin's file is read by its own, closed schema, one of a plugin for
 * other hosts as those do. Never throws.
 */
export function readMcpConfig(file: string): McpConfig {
  const ofHost = readHostPlugin(file, parsed);
  if (ofHost) return ofHostPlugin(ofHost);
  const none = (problem: string): McpConfig => ({ servers: new Map(), problems: [problem] });
  let text: string;
  try {
    text = readSettings(file);
  } catch (error) {
    return none(`${file} could not be read (${reasonOf(error)}), so its MCP servers are missing.`);
  }
  let content: unknown;
  try {
    content = parsed(text);
  } catch {
    // The parser's own message quotes the surrounding text, which may be a token.
    return none(`${file}${faultIn(text)}, so its MCP servers are missing.`);
  }
  const ofPlugin = readPluginServers(file, text, content);
  if (typeof ofPlugin === 'string') return none(`${file} ${ofPlugin}, so its MCP servers are missing.`);
  if (ofPlugin)
    return {
      servers: ofPlugin.servers,
      problems: ofPlugin.mistakes.map(([name, why]) => ignored(file, name, why)),
    };
  const entries = tableOf(tableOf(content)?.['mcpServers']);
  if (!entries) return none(`${file} has no server in "mcpServers", so no MCP server is connected.`);
  const servers = new Map<string, McpServer>();
  const problems: string[] = [];
  for (const [name, entry] of Object.entries(entries)) {
    const server = serverOf(entry);
    if (typeof server === 'string') problems.push(ignored(file, name, server));
    else if (tableOf(entry)?.['disabled'] !== true) servers.set(name, server);
  }
  return { servers, problems };
}

const ignored = (file: string, name: string, why: string): string =>
  `${file}: the MCP server '${name}' is ignored: ${why}.`;

/** Returns the servers of a plugin that was made for other hosts. What cannot be used of them is named. */
function ofHostPlugin({ root, entries, problems }: HostPlugin): McpConfig {
  const servers = new Map<string, McpServer>();
  const found = [...problems];
  for (const { file, name, entry } of entries) {
    const server = hostOnly(entry) ?? serverOf(entry);
    if (typeof server === 'string') found.push(ignored(file, name, server));
    else if (tableOf(entry)?.['disabled'] === true)
      found.push(ignored(file, name, 'it is switched off there'));
    else servers.set(name, server.type === 'stdio' ? { ...server, pluginRoot: root } : server);
  }
  return { servers, problems: found };
}

/** Returns the server that an entry describes, or a phrase that names the mistake in the entry. */
export function serverOf(entry: unknown): McpServer | string {
  const table = tableOf(entry);
  if (!table) return 'its entry is not an object';
  const { type, command, url } = table;
  const time = timeoutOf(table['timeout']);
  if (typeof time === 'string') return time;
  const kind = type ?? (command === undefined ? 'http' : 'stdio');
  if (kind === 'stdio') {
    if (typeof command !== 'string' || !command.trim()) return 'it needs a "command" or a "url"';
    const args = table['args'] ?? [];
    if (!Array.isArray(args) || args.some(item => textOf(item) === undefined))
      return '"args" must be a list of strings';
    const env = textsOf(table['env']);
    if (!env) return '"env" must be an object of strings';
    const { cwd } = table;
    if (cwd !== undefined && typeof cwd !== 'string') return '"cwd" must be a string';
    const { sandbox = false } = table;
    if (typeof sandbox !== 'boolean') return '"sandbox" must be true or false';
    return {
      type: 'stdio',
      command,
      args: args.map(String),
      env,
      ...(cwd ? { cwd } : {}),
      ...(sandbox ? { sandbox } : {}),
      ...time,
    };
  }
  if (kind !== 'sse' && kind !== 'http' && kind !== 'streamable-http')
    return `its type is ${JSON.stringify(textOf(kind) ?? 'not text')}; known are stdio, sse, http and streamable-http`;
  if (typeof url !== 'string' || !url.trim()) return 'it needs a "command" or a "url"';
  const headers = textsOf(table['headers']);
  if (!headers) return '"headers" must be an object of strings';
  const oauth = table['oauth'] === undefined ? {} : knownClientOf(table['oauth']);
  if (typeof oauth === 'string') return oauth;
  return { type: kind === 'sse' ? 'sse' : 'streamable-http', url, headers, ...oauth, ...time };
}

/** In milliseconds. No call waits longer. */
const longestTimeout = 3_600_000;

/** Returns the time that an entry gives its server. Some runners count in seconds; nobody waits for less than one. */
function timeoutOf(value: unknown): { timeoutMs?: number } | string {
  if (value === undefined) return {};
  if (typeof value !== 'number' || !(value > 0)) return '"timeout" must be a number of milliseconds';
  return { timeoutMs: Math.min(value < 1000 ? value * 1000 : value, longestTimeout) };
}

/**
 * Has a started server run in the box, or outside of it. Returns false for a server that is not there, or is not started. Comments
 * and the form of the file stay. Throws the error of the file system, and TelosError `config` for a file that cannot be read.
 */
export async function setSandbox(file: string, server: string, isBoxed: boolean): Promise<boolean> {
  const known = readMcpConfig(file).servers.get(server);
  if (known?.type !== 'stdio' || known.isOfPlugin || known.pluginRoot) return false;
  await setEntry(file, [server, 'sandbox'], isBoxed || undefined);
  return true;
}

/**
 * Switches a server of an agent's own mcp.json off, so that no run starts it, or on again. Returns false for one that is not in the file
 * or belongs to a plugin. Throws as `setSandbox` does.
 */
export async function switchServer(file: string, server: string, isOn: boolean): Promise<boolean> {
  const known = readMcpConfig(file).servers.get(server);
  if (known?.isOfPlugin || (known?.type === 'stdio' && known.pluginRoot)) return false;
  const servers = tableOf(tableOf(parsed(readSettings(file)))?.['mcpServers']);
  if (!tableOf(servers?.[server])) return false;
  await setEntry(file, [server, 'disabled'], isOn ? undefined : true);
  return true;
}

/** Sets a field of a server's entry, or removes it. Comments and the form of the file stay. */
async function setEntry(file: string, path: readonly string[], value: unknown): Promise<void> {
  const text = readSettings(file);
  const indent = /^[\t ]+/m.exec(text)?.[0] ?? '  ';
  const formattingOptions = indent.startsWith('\t')
    ? { insertSpaces: false, tabSize: 1 }
    : { insertSpaces: true, tabSize: indent.length };
  const edits = modify(text, ['mcpServers', ...path], value, { formattingOptions });
  await writeWhole(file, applyEdits(text, edits));
}

function knownClientOf(value: unknown): Pick<RemoteServer, 'oauth'> | string {
  const { clientId, clientSecret } = tableOf(value) ?? {};
  if (typeof clientId !== 'string' || !clientId.trim())
    return '"oauth" must be an object with a "clientId", and a "clientSecret" if the server requires one';
  if (clientSecret === undefined) return { oauth: { clientId } };
  if (typeof clientSecret !== 'string' || !/^\$\{\w+\}$/.test(clientSecret))
    return `the "clientSecret" of its "oauth" must be a variable such as \${NAME}, set in the environment or in Telos's .env file`;
  return { oauth: { clientId, clientSecret } };
}

const variable = /\$\{(\w+)\}/g;

/** Returns `value` with every `${NAME}` replaced by that variable. One that is not set is replaced by an empty text. */
export function interpolate(value: string, env: Readonly<Record<string, string>>): string {
  return value.replace(variable, (_, name: string) => (Object.hasOwn(env, name) ? (env[name] ?? '') : ''));
}

/**
 * Returns true for the keys of model providers and of the bot. No server and no agent gets them, even if its files ask for
 * them and a person agrees.
 */
export const isTelosKey = (name: string): boolean =>
  /^(?:(?:ANTHROPIC|(?:AZURE_)?OPENAI|GEMINI|GOOGLE|OPENROUTER)_API_KEY|ANTHROPIC_AUTH_TOKEN|AWS_BEARER_TOKEN_BEDROCK|DISCORD_\w*)$/i.test(
    name,
  );

/**
 * Returns texts that must not be shown: values of variables that a file's servers ask for, and secrets in the file. Values
 * that are plain places are left out; any other may be a key. Commands of the agent can be given these variables as well.
 * Never throws.
 */
export function hiddenIn(file: string, env: Readonly<Record<string, string>>): string[] {
  const values = [...readMcpConfig(file).servers.values()].flatMap(namesIn).flatMap(name => {
    const value = Object.hasOwn(env, name) ? (env[name] ?? '') : '';
    return isPlace(value) ? [] : [value];
  });
  return [...values, ...serverFilesOf(file, parsed).flatMap(writtenSecrets)];
}

/** Returns the secrets in the file, also those of disabled servers, since a model may read the file. */
function writtenSecrets(file: string): string[] {
  try {
    const text = readSettings(file);
    // A comment can hold what was an entry.
    const besides = stripComments(text) === text ? [] : secretsInBroken(text);
    try {
      return [...literalSecrets(parsed(text)), ...besides];
    } catch {
      return secretsInBroken(text);
    }
  } catch {
    return []; // connecting reports that the file cannot be read
  }
}

/** Returns true for existing paths, relative paths and hosts. They appear in many messages of a server and give no access. */
function isPlace(value: string): boolean {
  if (/^(?:~|\.\.?)(?:[/\\]|$)/.test(value)) return true;
  if (isAbsolute(value)) return existsSync(value);
  return /^https?:\/\/[\w.:[\]-]+\/?$/i.test(value);
}

/**
 * Returns the server as it is started or reached now, or the reason why it must not be. Makes the folder in which the servers of a
 * plugin keep what they have.
 */
export function readyServer(
  written: McpServer,
  { env, dataDir }: Pick<Config, 'env' | 'dataDir'>,
  packDir: string,
): { server: McpServer } | { refusal: Sentence } {
  const folders = pluginFolders(packDir, dataDir);
  const placed = inPlugin(written, folders.data);
  const keepsData = written.isOfPlugin || JSON.stringify(placed) !== JSON.stringify(inPlugin(written));
  try {
    if (keepsData && written.type === 'stdio') mkdirSync(folders.data, { recursive: true, mode: 0o700 });
  } catch (error) {
    return { refusal: sentence('the folder for its data could not be made ({0})', reasonOf(error)) };
  }
  if (!written.isOfPlugin || written.type !== 'stdio') return resolveServer(placed, env);
  const program = resolveProgram(written, folders);
  return 'refusal' in program ? program : { server: { ...written, ...program } };
}

/** Returns the server with its variables filled in, or the reason why it must not be started or reached. */
export function resolveServer(
  server: McpServer,
  env: Readonly<Record<string, string>>,
): { server: McpServer } | { refusal: Sentence } {
  const names = namesIn(server);
  const key = names.find(isTelosKey);
  if (key)
    return {
      refusal: sentence('it asks for {0}, a key that Telos gives to no server (floor.mcp-key)', key),
    };
  // A person cannot agree to an address that contains a variable, and addresses appear in the logs of servers.
  if (server.type !== 'stdio' && !server.isOfPlugin && server.url.includes('${'))
    return {
      refusal: sentence('its url contains a variable; variables are only filled into values of "headers"'),
    };
  const missing = missingVariables(server, env);
  if (missing)
    return { refusal: sentence("{0}; set it in the environment or in Telos's .env file", missing) };
  const fill = (text: string): string => (server.isOfPlugin ? text : interpolate(text, env));
  if (server.type === 'stdio')
    return { server: { ...server, args: server.args.map(fill), env: mapValues(server.env, fill) } };
  const { oauth } = server;
  const headers = mapValues(server.headers, fill);
  const refusal = addressProblem(server.url) ?? headerProblem(server.headers, headers);
  if (refusal) return { refusal };
  const known = oauth?.clientSecret ? { oauth: { ...oauth, clientSecret: fill(oauth.clientSecret) } } : {};
  return { server: { ...server, headers, ...known } };
}

/** Returns a phrase with the variables that a server asks for and that have no value: "A is not set, B is empty". */
export function missingVariables(
  server: McpServer,
  env: Readonly<Record<string, string>>,
): Sentence | undefined {
  const names = namesIn(server).filter(name => !isTelosKey(name));
  const unset = names.filter(name => !Object.hasOwn(env, name));
  const empty = names.filter(name => Object.hasOwn(env, name) && env[name]?.trim() === '');
  const [one, two] = [
    ...(unset.length === 1 ? [sentence('{0} is not set', unset.join())] : []),
    ...(unset.length > 1 ? [sentence('{0} are not set', unset.join(', '))] : []),
    ...(empty.length === 1 ? [sentence('{0} is empty', empty.join())] : []),
    ...(empty.length > 1 ? [sentence('{0} are empty', empty.join(', '))] : []),
  ];
  return one && two ? { text: '{0}, {1}', values: [one, two] } : one;
}

/**
 * Returns the problem with a header, without its value, which may be a secret. A line break in a value would begin another
 * header or end the request.
 */
function headerProblem(
  written: Readonly<Record<string, string>>,
  filled: Readonly<Record<string, string>>,
): Sentence | undefined {
  const [name] = Object.entries(filled).find(([, value]) => !/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) ?? [];
  if (name === undefined) return undefined;
  const used = [...(written[name] ?? '').matchAll(variable)].map(([, variableName]) => variableName);
  const shown = JSON.stringify(name);
  return used.length > 0
    ? sentence(
        'its header {0}, filled in from {1}, contains a line break or another character that is not allowed in a header; remove it',
        ...[shown, used.join(', ')],
      )
    : sentence(
        'its header {0} contains a line break or another character that is not allowed in a header; remove it',
        shown,
      );
}

/** Returns a server's command line or address for people, as written in the file, so without the values of variables. */
export function placeOf(server: McpServer): string {
  if (server.type === 'stdio') return [server.command, ...server.args].join(' ');
  return withoutSecrets(server.url);
}

/** Returns the name under which a sign-in is kept. A token is for one path of an origin, and for the agent that the person has accepted. */
export function signInName(agent: string, url: string): string {
  const { origin, pathname } = URL.canParse(url) ? new URL(url) : { origin: url, pathname: '' };
  return `telos.mcp.${agent}.${origin}${pathname}`;
}

/** Returns the address without user name, password, query and fragment. */
const withoutSecrets = (url: string): string => url.replace(/\/\/[^/@]*@/, '//').replace(/[?#].*$/s, '');

/** Returns the variables of the person that a server asks for. One of a plugin asks for none: what looks like it is plain text. */
export const namesIn = (server: McpServer): string[] =>
  server.isOfPlugin
    ? []
    : [
        ...new Set(
          textsIn(inPlugin(server, '')).flatMap(text => [...text.matchAll(variable)].map(match => match[1]!)),
        ),
      ];

/** Returns the texts in which variables are looked for. A command or a folder with a variable would be hard to review. */
function textsIn(server: McpServer): string[] {
  return server.type === 'stdio'
    ? [...server.args, ...Object.values(server.env)]
    : [server.url, ...Object.values(server.headers), server.oauth?.clientSecret ?? ''];
}

function addressProblem(url: string): Sentence | undefined {
  if (!URL.canParse(url)) return sentence('its url {0} is not an address', withoutSecrets(url));
  const { protocol, hostname, username, password } = new URL(url);
  if (protocol !== 'http:' && protocol !== 'https:')
    return sentence('its url {0} does not start with http:// or https://', withoutSecrets(url));
  if (username || password)
    return sentence('its url contains a user name or password; put it into "headers"');
  const kind = hostKind(hostname);
  return isNeverReached(kind)
    ? sentence('its url leads to a {0} address (floor.fetch-address)', kind)
    : undefined;
}

const tableOf = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;

/** Returns the value as text. Numbers and booleans are accepted, because people write them for ports and switches. */
const textOf = (value: unknown): string | undefined =>
  ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : undefined;

function textsOf(value: unknown): Record<string, string> | undefined {
  const entries = Object.entries(value === undefined ? {} : (tableOf(value) ?? { wrong: null }));
  if (entries.some(([, item]) => textOf(item) === undefined)) return undefined;
  return Object.fromEntries(entries.map(([name, item]) => [name, String(item)]));
}

const mapValues = (
  table: Readonly<Record<string, string>>,
  change: (text: string) => string,
): Record<string, string> =>
  Object.fromEntries(Object.entries(table).map(([name, text]) => [name, change(text)]));

/** Parses JSON with comments, which editors write into such files too. Throws SyntaxError. */
const parsed = (text: string): unknown => JSON.parse(stripComments(text));

/** Returns the content of JSON with comments; undefined if it is not JSON. */
export function jsonIn(text: string): unknown {
  try {
    return parsed(text);
  } catch {
    return undefined;
  }
}

/** Returns the text of an mcp.json with one more server. All else in it stays, also comments. */
export function withServer(text: string, name: string, entry: object): string {
  const formattingOptions = { insertSpaces: true, tabSize: 2, eol: '\n' };
  return applyEdits(text, modify(text, ['mcpServers', name], entry, { formattingOptions }));
}

/** Returns how a text that is not JSON is named behind its file: with the line and column, from 1, of its first fault. */
function faultIn(text: string): string {
  const faults: ParseError[] = [];
  try {
    findFaults(text, faults);
  } catch {
    return ' is nested too deeply';
  }
  const before = text.slice(0, faults[0]?.offset ?? text.length);
  const column = before.length - before.lastIndexOf('\n');
  return `:${before.split('\n').length}:${column} is not JSON from there on`;
}
