/** Writes an agent's MCP servers in the two forms that other hosts read, and says what does not travel. */

import { isAbsolute, relative, resolve, sep } from 'node:path';
import { isInside } from '@telos/engine/files';
import type { McpServer, RemoteServer, StdioServer } from '@telos/engine/mcp';
import { hostKind } from '@telos/engine/tools';

export interface PortableServers {
  /** `mcp.json` of Agent Plugins: no variables, no secrets. */
  portable: Record<string, object>;
  /** `.mcp.json` of Claude Code and Copilot, which replace `${NAME}` by the person's variables. */
  withVariables: Record<string, object>;
  /** What was left out of the portable form, a sentence each. */
  notes: string[];
  /** Servers that cannot be exported at all, a sentence each. */
  refused: string[];
}

const variable = /\$\{\w+\}/;

/** Returns the servers of a pack for others. `folder` is that of the pack, `isThere` tells which files below it are exported. */
export function portableServers(
  servers: ReadonlyMap<string, McpServer>,
  folder: string,
  isThere: (path: string) => boolean,
): PortableServers {
  const result: PortableServers = { portable: {}, withVariables: {}, notes: [], refused: [] };
  for (const [name, server] of servers) {
    if (server.isOfPlugin) {
      addOfPlugin(result, name, server);
      continue;
    }
    const problem = server.type === 'stdio' ? stdioProblem(server, folder) : remoteProblem(server);
    if (problem !== undefined) result.refused.push(`The MCP server '${name}' ${problem}.`);
    else if (server.type === 'stdio') addStdio(result, name, server, { folder, isThere });
    else addRemote(result, name, server);
  }
  return result;
}

/** A server of a plugin is portable as it is. Claude Code has other names for the two folders, and fills in any variable. */
function addOfPlugin(result: PortableServers, name: string, { isOfPlugin: _, ...server }: McpServer): void {
  result.portable[name] = server;
  if (variable.test(JSON.stringify(server).replace(/\$\{PLUGIN_(?:ROOT|DATA)\}/g, ''))) {
    result.notes.push(
      `The MCP server '${name}' has text that looks like a variable and is none. Hosts that read .mcp.json would fill it in, so it is only in mcp.json.`,
    );
    return;
  }
  if (server.type !== 'stdio') {
    addRemote(result, name, server);
    return;
  }
  const { command, args, env, cwd } = server;
  if (cwd !== undefined)
    result.notes.push(
      `The MCP server '${name}' names the folder that it runs in. Hosts that read .mcp.json run it in the user's own.`,
    );
  const ofClaude = (text: string): string => text.replace(/\$\{(?=PLUGIN_(?:ROOT|DATA)\})/g, '${CLAUDE_');
  result.withVariables[name] = {
    command: command.startsWith('./') ? `\${CLAUDE_PLUGIN_ROOT}${command.slice(1)}` : command,
    args: args.map(ofClaude),
    ...(Object.keys(env).length > 0 && {
      env: Object.fromEntries(Object.entries(env).map(([key, value]) => [key, ofClaude(value)])),
    }),
  };
}

function remoteProblem({ url }: RemoteServer): string | undefined {
  if (variable.test(url)) return `has a variable in its address, which no other host replaces: ${url}`;
  if (!URL.canParse(url)) return `has no address that can be read: ${url}`;
  const { protocol, hostname, username, password } = new URL(url);
  if (username !== '' || password !== '') return 'has a password in its address';
  if (protocol === 'https:' || (protocol === 'http:' && hostKind(hostname) === 'loopback')) return undefined;
  return `is reached by ${protocol.slice(0, -1)}, which other hosts refuse; they take https`;
}

function addRemote(result: PortableServers, name: string, { type, url, headers }: RemoteServer): void {
  const entries = Object.entries(headers);
  const plain = entries.filter(([, value]) => !variable.test(value));
  const lost = entries.filter(entry => !plain.includes(entry)).map(([header]) => header);
  const withHeaders = (kept: typeof entries) =>
    kept.length > 0 ? { headers: Object.fromEntries(kept) } : {};
  result.portable[name] = { type, url, ...withHeaders(plain) };
  result.withVariables[name] = { type: type === 'sse' ? 'sse' : 'http', url, ...withHeaders(entries) };
  if (lost.length > 0)
    result.notes.push(
      `The MCP server '${name}' sends ${lost.join(', ')} from your variables. Only hosts that read .mcp.json do that; in mcp.json it is left out.`,
    );
}

/** Returns the path below the pack's folder with `./`, if a word leads there. */
function within(word: string, folder: string): string | undefined {
  const path = resolve(folder, word);
  if (path === folder || !isInside(folder, path)) return undefined;
  return `./${relative(folder, path).split(sep).join('/')}`;
}

const isPath = (word: string): boolean => /[\\/]/.test(word) || word.startsWith('~') || isAbsolute(word);

function stdioProblem({ command, cwd }: StdioServer, folder: string): string | undefined {
  if (variable.test(command))
    return `has a variable in its command, which no other host replaces: ${command}`;
  if (isPath(command) && (command.startsWith('~') || within(command, folder) === undefined))
    return `starts a program outside of the pack: ${command}`;
  if (cwd !== undefined && cwd !== '.' && (variable.test(cwd) || within(cwd, folder) === undefined))
    return `works in a folder outside of the pack: ${cwd}`;
  return undefined;
}

function addStdio(
  result: PortableServers,
  name: string,
  server: StdioServer,
  { folder, isThere }: { folder: string; isThere(path: string): boolean },
): void {
  const { command, args, env, cwd } = server;
  const program = isPath(command) ? within(command, folder)! : command;
  const rooted = (word: string): string =>
    isAbsolute(word) && within(word, folder) ? `\${PLUGIN_ROOT}${within(word, folder)!.slice(1)}` : word;
  // Claude Code starts a program in the person's project, so a file of the pack needs its whole path.
  const ofClaude = (word: string): string => {
    const path = within(word, folder);
    return path !== undefined && (isAbsolute(word) || isThere(path.slice(2)))
      ? `\${CLAUDE_PLUGIN_ROOT}${path.slice(1)}`
      : word;
  };
  const place = cwd === undefined || cwd === '.' ? undefined : within(cwd, folder);
  const isFree = (value: string): boolean => !variable.test(value);
  const kept = Object.entries(env).filter(([, value]) => isFree(value));
  const settings = (some: readonly [string, string][]) =>
    some.length > 0 ? { env: Object.fromEntries(some) } : {};
  result.withVariables[name] = {
    command: program.startsWith('./') ? `\${CLAUDE_PLUGIN_ROOT}${program.slice(1)}` : program,
    args: args.map(ofClaude),
    ...settings(Object.entries(env)),
  };
  if (!args.every(isFree)) {
    result.notes.push(
      `The MCP server '${name}' takes variables in its arguments. Only hosts that read .mcp.json replace them; mcp.json does not have it.`,
    );
    return;
  }
  const lost = Object.entries(env)
    .filter(([, value]) => !isFree(value))
    .map(([key]) => key);
  if (lost.length > 0)
    result.notes.push(
      `The MCP server '${name}' takes ${lost.join(', ')} from your variables. Only hosts that read .mcp.json set them; in mcp.json they are left out.`,
    );
  result.portable[name] = {
    type: 'stdio',
    command: program,
    ...(args.length > 0 ? { args: args.map(rooted) } : {}),
    ...settings(kept),
    ...(place === undefined ? {} : { cwd: place }),
  };
}
