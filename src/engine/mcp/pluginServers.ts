/** Reads the mcp.json of a plugin of agent-plugins.org, whose schema is closed and known here, and fills in the plugin's folders. */
import { realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type Sentence, sentence } from '@telos/protocol/text';
import { pluginDataFolder } from '../files/agentHome.ts';
import { isInside, realPlace } from '../files/paths.ts';
import { pluginSchema } from '../files/settingsFile.ts';

/** What `${PLUGIN_ROOT}` and `${PLUGIN_DATA}` stand for. Absolute paths. */
export interface PluginFolders {
  root: string;
  /** Belongs to the servers of this plugin alone, and stays as it is when the plugin is updated. */
  data: string;
}

interface PluginProgram {
  type: 'stdio';
  command: string;
  args: string[];
  env: Record<string, string>;
  cwd?: string;
  isOfPlugin: true;
}

interface PluginAddress {
  type: 'sse' | 'streamable-http';
  url: string;
  headers: Record<string, string>;
  isOfPlugin: true;
}

export type PluginServer = PluginProgram | PluginAddress;

const schema = (file: string): RegExp =>
  new RegExp(`^https://agent-plugins\\.org/schemas/([^/]+)/${file}\\.schema\\.json$`);
const knownVersions = ['1.0.0', '1.1.0'];

/**
 * Returns the servers of a plugin's mcp.json with the mistakes in its entries, or what keeps all of them from being used. Undefined if
 * the file is not of a plugin: it names another schema or none, and no plugin.json of agent-plugins.org lies beside it.
 */
export function readPluginServers(
  file: string,
  text: string,
  content: unknown,
): { servers: Map<string, PluginServer>; mistakes: [name: string, phrase: string][] } | string | undefined {
  const top = tableOf(content) ?? {};
  const manifest = basename(file) === 'mcp.json' ? pluginSchema(dirname(file)) : undefined;
  const own = typeof top['$schema'] === 'string' ? top['$schema'] : undefined;
  if (manifest === undefined && own?.startsWith('https://agent-plugins.org/') !== true) return undefined;
  const [, version] = schema('mcp').exec(own ?? '') ?? [];
  const [, wanted = version] = schema('plugin').exec(manifest ?? '') ?? [];
  if (version === undefined || !knownVersions.includes(version))
    return `follows ${own === undefined ? 'no schema' : JSON.stringify(own)}; this Telos knows Agent Plugins ${knownVersions.join(' and ')}`;
  if (version !== wanted) return `follows Agent Plugins ${version}, but plugin.json beside it ${wanted}`;
  if (!isJson(text)) return 'has comments, which JSON does not have';
  if (leadsOut(file)) return 'is a link that leads out of the plugin';
  const other = Object.keys(top).find(key => key !== '$schema' && key !== 'mcpServers');
  if (other !== undefined) return `has ${JSON.stringify(other)}, which is not a field of Agent Plugins`;
  const entries = tableOf(top['mcpServers']);
  if (!entries) return 'has no object "mcpServers"';
  const servers = new Map<string, PluginServer>();
  const mistakes: [string, string][] = [];
  for (const [name, entry] of Object.entries(entries)) {
    const server = serverIn(entry);
    if (typeof server === 'string') mistakes.push([name, server]);
    else servers.set(name, server);
  }
  return { servers, mistakes };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const leadsOut = (file: string): boolean =>
  !isInside(realpathSync.native(dirname(file)), realPlace(file) ?? '/');

const fieldsOf: Readonly<Record<string, readonly string[]>> = {
  stdio: ['type', 'command', 'args', 'env', 'cwd'],
  sse: ['type', 'url', 'headers'],
  'streamable-http': ['type', 'url', 'headers'],
};

/** Returns the server, or a phrase that names the mistake in its entry. */
function serverIn(entry: unknown): PluginServer | string {
  const table = tableOf(entry);
  if (!table) return 'its entry is not an object';
  const { type } = table;
  const known = typeof type === 'string' && Object.hasOwn(fieldsOf, type) ? fieldsOf[type] : undefined;
  if (!known)
    return `its "type" has to be ${Object.keys(fieldsOf).join(', ')}, in a plugin of agent-plugins.org`;
  const other = Object.keys(table).find(key => !known.includes(key));
  if (other !== undefined)
    return `${JSON.stringify(other)} is not a field of a server of the type ${String(type)}`;
  return type === 'stdio' ? programIn(table) : addressIn(table, type as PluginAddress['type']);
}

function programIn({ command, args = [], env = {}, cwd }: Record<string, unknown>): PluginProgram | string {
  if (typeof command !== 'string' || !/^(?:\.\/[^\\]+|[^\s/\\]+)$/.test(command) || /^\.*$|\0/.test(command))
    return '"command" has to be the name of a program, or a path in the plugin that begins with ./';
  if (!isTexts(args)) return '"args" has to be a list of texts';
  const settings = textsIn(env);
  if (!settings) return '"env" has to be an object of texts';
  if (Object.keys(settings).some(name => name === 'PLUGIN_ROOT' || name === 'PLUGIN_DATA'))
    return '"env" cannot set PLUGIN_ROOT or PLUGIN_DATA, which name the folders of the plugin';
  if (Object.keys(settings).some(name => !/^[^=\0]+$/.test(name)))
    return '"env" has a name that no variable can have';
  if (
    cwd !== undefined &&
    !(typeof cwd === 'string' && /^(?:\.\/|\$\{PLUGIN_(?:ROOT|DATA)\}(?:\/|$))/.test(cwd))
  )
    return `"cwd" has to begin with ./, \${PLUGIN_ROOT} or \${PLUGIN_DATA}`;
  return { type: 'stdio', command, args, env: settings, ...(cwd !== undefined && { cwd }), isOfPlugin: true };
}

function addressIn(
  { url, headers = {} }: Record<string, unknown>,
  type: PluginAddress['type'],
): PluginAddress | string {
  if (typeof url !== 'string' || !URL.canParse(url)) return '"url" has to be a whole address';
  const { protocol, hostname, username, password } = new URL(url);
  if (username || password || /^[^/]*\/\/[^/?#]*@/.test(url))
    return '"url" cannot have a user name or password';
  if (url.includes('#')) return '"url" cannot have a fragment';
  const isHere = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);
  if (protocol !== 'https:' && !(protocol === 'http:' && isHere))
    return '"url" has to begin with https://, other than for localhost';
  const texts = textsIn(headers);
  if (!texts) return '"headers" has to be an object of texts';
  const names = Object.keys(texts).map(name => name.toLowerCase());
  if (new Set(names).size < names.length) return '"headers" has one header twice';
  const isHeader = ([name, value]: [string, string]): boolean =>
    /^[\w!#$%&'*+.^`|~-]+$/.test(name) &&
    /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/.test(value);
  if (!Object.entries(texts).every(isHeader))
    return '"headers" has a name or a value that no header can have';
  return { type, url, headers: texts, isOfPlugin: true };
}

/** Returns the folders of the plugin that is installed at `packDir`. */
export const pluginFolders = (packDir: string, dataDir: string): PluginFolders => ({
  root: realPlace(packDir) ?? packDir,
  data: pluginDataFolder(packDir, dataDir),
});

/** Replaces each of the two names once. What a replacement brings is not looked at again, and no other variable is known. */
const filled = (text: string, { root, data }: PluginFolders): string =>
  text.replace(/\$\{PLUGIN_(ROOT|DATA)\}/g, (_, name: string) => (name === 'ROOT' ? root : data));

/** Returns the program with whole paths, as it is started. Returns the reason why it must not be if one of them leads out of the plugin. */
export function resolveProgram(
  { command, args, env, cwd = '' }: Pick<PluginProgram, 'command' | 'args' | 'env' | 'cwd'>,
  folders: PluginFolders,
): { command: string; args: string[]; env: Record<string, string>; cwd: string } | { refusal: Sentence } {
  const { root, data } = folders;
  const program = command.startsWith('./') ? realPlace(join(root, command)) : command;
  if (program === undefined || (program !== command && !isInside(root, program)))
    return { refusal: sentence('its command leads out of the plugin: {0}', command) };
  const home = cwd.startsWith(`\${PLUGIN_DATA}`) ? data : root;
  const place = realPlace(cwd.startsWith('$') ? join(filled(cwd, folders)) : join(root, cwd));
  if (place === undefined || !isInside(home, place))
    return { refusal: sentence('the folder that it runs in leads out of the plugin: {0}', cwd) };
  const own = Object.entries(env).map(([name, value]) => [name, filled(value, folders)]);
  return {
    command: program,
    args: args.map(word => filled(word, folders)),
    env: { ...Object.fromEntries(own), PLUGIN_ROOT: root, PLUGIN_DATA: data },
    cwd: place,
  };
}

const tableOf = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every(item => typeof item === 'string' && !item.includes('\0'));

const textsIn = (value: unknown): Record<string, string> | undefined => {
  const table = tableOf(value);
  return table && isTexts(Object.values(table)) ? (table as Record<string, string>) : undefined;
};
