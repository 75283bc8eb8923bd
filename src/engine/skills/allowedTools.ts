/**
 * Reads `allowed-tools` and `disallowed-tools`: the tools, commands and hosts that a skill names, under any runner's names. The
 * first asks to use them unasked and takes nothing away. The second takes away.
 */

/** Aliases by Telos's name. The first ones are shown to the model. All are understood in any case. */
export const toolAliases: Readonly<Record<string, readonly string[]>> = {
  read_file: ['read', 'Read', 'cat', 'view'],
  write_file: ['write', 'Write', 'create_file'],
  edit_file: ['edit', 'Edit', 'MultiEdit', 'str_replace'],
  list_directory: ['ls', 'LS', 'list'],
  search_files: ['grep', 'Grep', 'search', 'rg'],
  glob: ['Glob', 'find'],
  run_command: ['exec', 'bash', 'Bash', 'shell', 'terminal'],
  fetch_url: ['web_fetch', 'WebFetch', 'fetch'],
};

const byAlias = new Map(
  Object.entries(toolAliases).flatMap(([tool, aliases]) =>
    aliases.map(alias => [alias.toLowerCase(), tool] as const),
  ),
);

/** Returns Telos's name of the tool with this name elsewhere, or undefined if there is none. */
export const toolNamed = (name: string): string | undefined =>
  Object.hasOwn(toolAliases, name) ? name : byAlias.get(name.toLowerCase());

export interface ToolNames {
  /** Names of Telos's own tools, as far as the skill names all of a tool. */
  tools: ReadonlySet<string>;
  /** Names of MCP servers' tools, as written. */
  mcpTools: readonly string[];
  /** Words of commands, such as `git` and `*`. A last `*` stands for any further words. */
  commands: readonly (readonly string[])[];
  /** Hosts of web pages. */
  hosts: readonly string[];
  /** Entries that mean nothing here. */
  unknown: readonly string[];
}

/**
 * Returns the entries of a list, or of a text with commas and blanks. A pattern in parentheses stays whole. Returns undefined if
 * there are no entries.
 */
export function splitAllowedTools(value: unknown): string[] | undefined {
  const texts = (Array.isArray(value) ? value : [value]).filter(item => typeof item === 'string');
  const entries = texts.flatMap(text => text.match(/[^\s,()]+(?:\([^)]*\))?/g) ?? []);
  return entries.length > 0 ? entries : undefined;
}

/** Returns what the entries name. Everything in it is empty if there are none. */
export function readToolNames(entries: readonly string[] = []): ToolNames {
  const tools = new Set<string>();
  const names = { mcpTools: [] as string[], commands: [] as string[][], hosts: [] as string[] };
  const unknown: string[] = [];
  for (const entry of entries) {
    const [, name = '', within = '*'] = /^([^(]*)(?:\((.*)\))?$/.exec(entry) ?? [];
    const tool = toolNamed(name);
    const pattern = within.trim();
    const host = /^domain:([\w.-]+)$/i.exec(pattern)?.[1];
    if (/^mcp__/.test(name)) names.mcpTools.push(name);
    else if (tool === undefined) unknown.push(name);
    else if (/^\*{0,2}$/.test(pattern)) tools.add(tool);
    else if (tool === 'run_command') names.commands.push(pattern.replace(/\s*:\*$/, ' *').split(/\s+/));
    else if (tool === 'fetch_url' && host) names.hosts.push(host.toLowerCase());
    else unknown.push(entry);
  }
  return { tools, ...names, unknown };
}

/**
 * Whether a skill's `disallowed-tools` name the tool. `server` is set for an MCP server's tool. Such tools are named
 * `mcp__server`, `mcp__server__*` or `mcp__server__tool`.
 */
export function namesTool(
  { tools, mcpTools }: ToolNames,
  name: string,
  server?: { server: string; tool: string },
): boolean {
  if (!server) return tools.has(name);
  const whole = `mcp__${server.server}`;
  const names = [whole, `${whole}__*`, `${whole}__${server.tool}`];
  return mcpTools.some(entry => names.includes(entry));
}
