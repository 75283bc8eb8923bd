/**
 * Reads what a plugin that was made for other hosts says of itself: its MCP servers, in its .mcp.json or in its plugin.json, and where its
 * skills, commands and agents are. The folder of the plugin is filled in where they write `${CLAUDE_PLUGIN_ROOT}`.
 */
import { existsSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import { reasonOf } from '../core/errors.ts';
import { isInside, realPlace } from './paths.ts';
import { pluginSchema, readSettings } from './settingsFile.ts';

/** An entry as written, and the file that has it. */
interface PluginEntry {
  file: string;
  name: string;
  entry: unknown;
}

export interface HostPlugin {
  /** Folder of the plugin. Absolute path. */
  root: string;
  entries: readonly PluginEntry[];
  /** Files whose text makes the entries. Absolute paths. */
  files: readonly string[];
  /** What names servers and could not be read, in sentences. */
  problems: readonly string[];
}

const serverFile = '.mcp.json';
const folders = ['.claude-plugin', '.plugin', '.github/plugin', '.cursor-plugin', '.codex-plugin'];
/** The manifests of the hosts, the first that names servers counts: they are copies of each other. */
const manifests = [...folders.map(folder => `${folder}/plugin.json`), 'plugin.json'];
const root$ = '$'.concat('{CLAUDE_PLUGIN_ROOT}');
const data$ = '$'.concat('{CLAUDE_PLUGIN_DATA}');

/** Parts of a plugin that its manifest may say the places of. */
const partKinds = ['skills', 'commands', 'agents'] as const;
export type PartKind = (typeof partKinds)[number];

/** What the manifest of a plugin says of its parts: paths as written, each below the plugin. A part that it does not name is missing. */
export interface NamedParts extends Partial<Record<PartKind, readonly string[]>> {
  /** The manifest that names them, or the first that there is. Undefined if there is none. */
  file?: string;
  /** True if that manifest is not JSON. */
  isBroken?: true;
}

/** Returns what the manifests of a folder say of its parts. The first that names a part counts for it. Never throws. */
export function namedParts(packDir: string): NamedParts {
  const found: { -readonly [Key in keyof NamedParts]: NamedParts[Key] } = {};
  for (const name of manifests) {
    const file = join(packDir, name);
    if (!existsSync(file) || (name === 'plugin.json' && pluginSchema(packDir) !== undefined)) continue;
    found.file ??= file;
    for (const kind of partKinds) {
      const value = fieldIn(packDir, name, kind);
      if (value === isBroken && found.file === file) found.isBroken = true;
      const paths = pathsIn(value);
      if (paths.length > 0 && !found[kind]) Object.assign(found, { [kind]: paths, file });
    }
  }
  return found;
}

/** Returns the paths of a part: one, a list, or those of a table by the names of its entries. */
function pathsIn(value: unknown): string[] {
  const each = isTable(value) && !Array.isArray(value) ? Object.values(value) : [value].flat();
  return each.flatMap((one: unknown) =>
    typeof one === 'string' && one.trim() !== ''
      ? [one.replaceAll(root$, '.')]
      : isTable(one) && 'source' in one
        ? pathsIn(one.source)
        : [],
  );
}

/** Returns the folder that a skill means by `${CLAUDE_PLUGIN_ROOT}`: that of its plugin, or its own if its pack is none. */
export const pluginRootOf = ({ packDir, skillDir }: { packDir: string; skillDir: string }): string =>
  isPlugin(packDir) ? packDir : skillDir;

/** Whether a folder has the manifest of a plugin. */
export const isPlugin = (packDir: string): boolean => manifests.some(name => existsSync(join(packDir, name)));

/**
 * Returns the file that names the MCP servers of the plugin in a folder: its manifest if that has `mcpServers`, or its .mcp.json.
 * Undefined if neither does. A plugin.json of agent-plugins.org has none: its servers are in an mcp.json.
 */
export function hostServerFile(packDir: string): string | undefined {
  const manifest = manifests.find(name => namedIn(packDir, name) !== undefined);
  const own = join(packDir, serverFile);
  return manifest === undefined ? (existsSync(own) ? own : undefined) : join(packDir, manifest);
}

/** Returns the servers that a file of `hostServerFile` leads to. Undefined for any other file. Never throws. */
export function readHostPlugin(file: string, parse: (text: string) => unknown): HostPlugin | undefined {
  const root = rootOf(file);
  if (root === undefined) return undefined;
  const entries: PluginEntry[] = [];
  const files: string[] = [];
  const problems: string[] = [];
  const add = (from: string, servers: object): void => {
    for (const [name, entry] of Object.entries(servers))
      if (!entries.some(known => known.name === name)) entries.push({ file: from, name, entry });
      else if (!entries.some(known => known.name === name && isSame(known.entry, entry)))
        problems.push(
          `${from}: the MCP server '${name}' is ignored: another file of the plugin has that name.`,
        );
  };
  const addFile = (path: string): void => {
    if (files.includes(path)) return;
    files.push(path);
    const servers = serversIn(path, parse);
    if (typeof servers === 'string') problems.push(`${path} ${servers}, so its MCP servers are missing.`);
    else add(path, servers);
  };
  if (basename(file) !== serverFile) {
    files.push(file);
    for (const named of [namedIn(root, relative(root, file))].flat())
      if (typeof named === 'object' && named !== null) add(file, named);
      else if (named === isBroken) problems.push(`${file} is not JSON, so its MCP servers are missing.`);
      else if (typeof named !== 'string')
        problems.push(`${file} has "mcpServers" that are neither servers nor a path.`);
      else {
        const place = realPlace(join(root, named.replaceAll(root$, '.')));
        if (place === undefined || !isInside(realPlace(root) ?? root, place))
          problems.push(
            `${file} names MCP servers in ${named}, which leads out of the plugin. They are not started.`,
          );
        else if (!existsSync(place))
          problems.push(`${file} names MCP servers in ${named}, which is not there.`);
        else if (!place.endsWith('.json'))
          problems.push(`${file} names MCP servers in ${named}, which is not JSON. They are not started.`);
        else addFile(join(root, relative(realPlace(root) ?? root, place)));
      }
  }
  if (existsSync(join(root, serverFile))) addFile(join(root, serverFile));
  return { root, entries, files, problems };
}

/** Returns the files whose text says which servers start, and how. Never throws. */
export const serverFilesOf = (file: string, parse: (text: string) => unknown): readonly string[] =>
  readHostPlugin(file, parse)?.files ?? [file];

/** Returns why an entry for other hosts cannot be used here, as a phrase; undefined if nothing speaks against it. */
export function hostOnly(entry: unknown): string | undefined {
  const [preset] = /\$\{\w+:-[^}]*\}/.exec(JSON.stringify(entry) ?? '') ?? [];
  if (preset !== undefined) return `it uses ${preset}, a default that Telos does not fill in`;
  const table = Object(entry) as object;
  return 'headersHelper' in table
    ? 'it has a program make its headers ("headersHelper"), which Telos does not run'
    : undefined;
}

/**
 * Returns a server with the plugin's folders in place of their names, that of its data only if it is given. The same server if it is of no
 * such plugin.
 */
export function inPlugin<Server extends object>(server: Server, data?: string): Server {
  const { pluginRoot } = server as { pluginRoot?: string };
  if (pluginRoot === undefined) return server;
  const fill = (value: unknown): unknown => {
    if (typeof value === 'string')
      return value.replaceAll(root$, pluginRoot).replaceAll(data$, data ?? data$);
    if (Array.isArray(value)) return value.map(fill);
    return typeof value === 'object' && value !== null
      ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item)]))
      : value;
  };
  return fill(server) as Server;
}

function rootOf(file: string): string | undefined {
  if (basename(file) === serverFile) return dirname(file);
  const name = manifests.find(each => file.endsWith(`${sep}${each.split('/').join(sep)}`));
  return name === undefined ? undefined : file.slice(0, -name.length - 1);
}

const isBroken = Symbol('has the field, and is not JSON');

/** Returns `mcpServers` of a manifest below the folder; undefined if it has none. */
const namedIn = (root: string, manifest: string): unknown => fieldIn(root, manifest, 'mcpServers');

/** Returns `hooks` of the first manifest in a plugin's folder that has it, with the manifest; undefined if none does. */
export function hooksInManifest(root: string): { file: string; value: unknown } | undefined {
  for (const name of manifests) {
    const value = fieldIn(root, name, 'hooks');
    if (value !== undefined) return { file: join(root, name), value: value === isBroken ? undefined : value };
  }
  return undefined;
}

/** Returns a field of a manifest below the folder; undefined if it has none, `isBroken` if it has it and is not JSON. */
function fieldIn(root: string, manifest: string, field: string): unknown {
  if (manifest === 'plugin.json' && pluginSchema(root) !== undefined) return undefined;
  let text = '';
  try {
    text = readSettings(join(root, manifest));
    return (JSON.parse(text.replace(/^\ufeff/, '')) as Record<string, unknown>)[field] ?? undefined;
  } catch {
    return text.includes(`"${field}"`) ? isBroken : undefined;
  }
}

/** Returns the entries of a file: below `mcpServers`, or all of it, as some plugins write it. Returns what is wrong as a phrase. */
function serversIn(file: string, parse: (text: string) => unknown): object | string {
  let content: unknown;
  try {
    content = parse(readSettings(file));
  } catch (error) {
    // The parser's own message quotes the surrounding text, which may be a token.
    return error instanceof SyntaxError ? 'is not JSON' : `could not be read (${reasonOf(error)})`;
  }
  const named = isTable(content) && 'mcpServers' in content ? content.mcpServers : content;
  if (!isTable(named)) return 'has no server in "mcpServers"';
  return Object.fromEntries(Object.entries(named).filter(([key]) => key !== '$schema'));
}

const isTable = (value: unknown): value is object & { mcpServers?: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);
