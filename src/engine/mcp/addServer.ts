/** Adds MCP servers to an agent's mcp.json, and reads those that a workspace has for VS Code. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import { beginningOf, type Sentence, sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import { readHostPlugin } from '../files/hostPlugin.ts';
import { editShared, readSettings } from '../files/settingsFile.ts';
import { jsonIn, serverOf, withServer } from './config.ts';
import { readPluginServers } from './pluginServers.ts';

/** An entry of mcp.json. */
export type ServerEntry = Readonly<Record<string, unknown>>;

export interface ImportableServer {
  name: string;
  entry: ServerEntry;
  /** Variables that have to be set for it: VS Code asks for them. */
  asks: readonly string[];
}

/** Returns the mcp.json to which a server of the agent is added. Absolute path. */
export const serverFileOf = ({ mcpConfig, packDir }: { mcpConfig?: string; packDir: string }): string =>
  mcpConfig ?? join(packDir, 'mcp.json');

/**
 * Adds the servers to the file, which is made if it is missing. Comments and everything else in it stay. Throws TelosError `config`, and
 * changes nothing, if the file is not JSON, belongs to a plugin, has a server of that name, or an entry cannot be used.
 */
export async function addServers(
  file: string,
  added: readonly { name: string; entry: ServerEntry }[],
): Promise<void> {
  await editShared(file, text => {
    let next = text.trim() === '' ? '{}\n' : text;
    for (const { name, entry } of added) {
      const problem = nameProblem(name) ?? wordsOf(name, serverOf(entry));
      if (problem) throw new TelosError('config', [problem]);
      const content = jsonIn(next);
      if (typeof content !== 'object' || content === null || Array.isArray(content))
        throw new TelosError('config', [sentence('{0} is not JSON. Correct it first.', file)]);
      if (readHostPlugin(file, jsonIn) !== undefined || readPluginServers(file, next, content) !== undefined)
        throw new TelosError('config', [sentence('{0} belongs to a plugin and is not changed.', file)]);
      if (Object.hasOwn((content as { mcpServers?: object }).mcpServers ?? {}, name))
        throw new TelosError('config', [sentence("{0} has an MCP server '{1}' already.", file, name)]);
      next = withServer(next, name, entry);
    }
    return next;
  });
}

const wordsOf = (name: string, server: ReturnType<typeof serverOf>) =>
  typeof server === 'string' ? sentence("The server '{0}' cannot be added: {1}.", name, server) : undefined;

/** Returns why a server cannot have this name; undefined if it can. Requests name servers as `@name:resource`. */
export const nameProblem = (name: string) =>
  /^[A-Za-z0-9][\w.-]{0,59}$/.test(name)
    ? undefined
    : sentence('A name has letters, digits, dots, dashes and underscores, at most 60.');

/** Returns the path of VS Code's own file in a workspace, if there is one. */
export function editorServerFile(folder: string): string | undefined {
  const file = join(folder, '.vscode', 'mcp.json');
  return existsSync(file) ? file : undefined;
}

/**
 * Returns the servers of a `.vscode/mcp.json` as entries of an agent's mcp.json, and sentences about those that cannot be taken over.
 * Throws TelosError `config` if the file cannot be read.
 */
export function importableServers(
  file: string,
  folder: string,
): { servers: ImportableServer[]; problems: Sentence[] } {
  let content: unknown;
  try {
    content = jsonIn(readSettings(file));
  } catch {
    content = undefined;
  }
  const named = (content as { servers?: unknown } | undefined)?.servers;
  if (typeof named !== 'object' || named === null || Array.isArray(named))
    throw new TelosError('config', [sentence('{0} has no "servers".', file)]);
  const servers: ImportableServer[] = [];
  const problems: Sentence[] = [];
  for (const [name, written] of Object.entries(named)) {
    const asks = new Set<string>();
    const unknown = new Set<string>();
    const entry = taken(written, text => withOwnVariables(text, folder, asks, unknown));
    const server = serverOf(entry);
    if (nameProblem(name))
      problems.push(sentence("'{0}' is not a name for a server here.", beginningOf(name, 60)));
    else if ('envFile' in Object(written))
      problems.push(
        sentence(
          "'{0}' reads an envFile, which Telos does not. Set its variables in Telos's .env file.",
          name,
        ),
      );
    else if (unknown.size > 0)
      problems.push(sentence("'{0}' uses {1}, which only VS Code fills in.", name, [...unknown].join(', ')));
    else if (typeof server === 'string') problems.push(sentence("'{0}' is left out: {1}.", name, server));
    else servers.push({ name, entry, asks: [...asks] });
  }
  return { servers, problems };
}

const keptKeys = ['type', 'command', 'args', 'env', 'cwd', 'url', 'headers'];

/** Returns what an entry here has of one of VS Code. */
function taken(written: unknown, fill: (text: string) => string): ServerEntry {
  const entries = Object.entries(Object(written) as object).filter(([key]) => keptKeys.includes(key));
  return Object.fromEntries(entries.map(([key, value]) => [key, filled(value, fill)]));
}

function filled(value: unknown, fill: (text: string) => string): unknown {
  if (typeof value === 'string') return fill(value);
  if (Array.isArray(value)) return value.map(item => (typeof item === 'string' ? fill(item) : item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, typeof item === 'string' ? fill(item) : item]),
  );
}

/** Replaces VS Code's places by paths, and what it asks for by variables. */
function withOwnVariables(text: string, folder: string, asks: Set<string>, unknown: Set<string>): string {
  return text.replace(/\$\{([^}]*)\}/g, (place, inner: string) => {
    const [kind = '', id = ''] = inner.split(/:(.*)/s);
    if (kind === 'workspaceFolder' && id === '') return folder;
    if (inner === 'workspaceFolderBasename') return basename(folder);
    if (inner === 'userHome') return homedir();
    const name = id.replace(/\W/g, '_');
    if (kind === 'env' && /^\w+$/.test(id)) {
      asks.add(id);
      return `\${${id}}`;
    }
    if (kind === 'input' && /^[A-Za-z_]/.test(name)) {
      asks.add(name.toUpperCase());
      return `\${${name.toUpperCase()}}`;
    }
    unknown.add(place);
    return place;
  });
}
