/** Maps other runners' tool names to the tools of Telos, since skills are written with those names. */

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
    [tool, ...aliases].map(alias => [alias.toLowerCase(), tool] as const),
  ),
);

/** Returns Telos's name of the tool with this name elsewhere, or undefined if there is none. */
export const toolNamed = (name: string): string | undefined => byAlias.get(name.toLowerCase());
