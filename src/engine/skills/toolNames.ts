/** What other runners call the tools that Telos has, since skills are written with those names. */

/** By Telos's name; the first ones are told to the model, all are understood in any case. */
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

/** Telos's name of the tool that is called so elsewhere; undefined where there is none. */
export const toolNamed = (name: string): string | undefined => byAlias.get(name.toLowerCase());
