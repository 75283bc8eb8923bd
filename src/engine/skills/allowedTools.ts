/** Reads `allowed-tools`: the tools that a skill keeps, under any runner's names, and the commands that it may ask for. */

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

export interface AllowedTools {
  /** Names of Telos's own tools. */
  tools: ReadonlySet<string>;
  /** Names of MCP servers' tools, as written. */
  mcpTools: readonly string[];
  /** Patterns of commands, such as `git *`. Undefined if any command may be asked for. */
  commandPatterns: readonly string[] | undefined;
  /** Names that no tool has here. */
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

/**
 * Returns the allowed tools, or undefined if the skill keeps all tools. It keeps all if there are no entries, or none that names
 * a tool.
 */
export function readAllowedTools(entries: readonly string[] | undefined): AllowedTools | undefined {
  if (!entries) return undefined;
  const tools = new Set<string>();
  const [mcpTools, patterns, unknown]: [string[], string[], string[]] = [[], [], []];
  let anyCommand = false;
  for (const entry of entries) {
    const [, name = '', pattern] = /^([^(]*)(?:\((.*)\))?$/.exec(entry) ?? [];
    const tool = toolNamed(name);
    if (tool === undefined) (/^mcp__/.test(name) ? mcpTools : unknown).push(name);
    else tools.add(tool);
    if (tool !== 'run_command') continue;
    const wanted = pattern?.trim();
    if (wanted === undefined || wanted === '' || wanted === '*') anyCommand = true;
    else patterns.push(wanted.replace(/:\*$/, ' *'));
  }
  if (tools.size === 0 && mcpTools.length === 0) return undefined;
  return {
    tools,
    mcpTools,
    commandPatterns: anyCommand || patterns.length === 0 ? undefined : patterns,
    unknown,
  };
}

/**
 * Whether a skill keeps a tool. `server` is set for an MCP server's tool. Such tools are named `mcp__server`, `mcp__server__*` or
 * `mcp__server__tool`.
 */
export function keepsTool(
  { tools, mcpTools }: AllowedTools,
  name: string,
  server?: { server: string; tool: string },
): boolean {
  if (!server) return tools.has(name);
  const whole = `mcp__${server.server}`;
  const names = [whole, `${whole}__*`, `${whole}__${server.tool}`];
  return mcpTools.some(entry => names.includes(entry));
}
