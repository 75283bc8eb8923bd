/** Reads `allowed-tools`: which of the tools a skill keeps, under any runner's names, and which commands it may ask for. */
import { toolNamed } from './toolNames.ts';

export interface AllowedTools {
  /** Names of Telos's own tools. */
  tools: ReadonlySet<string>;
  /** Names as they were written that belong to MCP servers. */
  mcpTools: readonly string[];
  /** Patterns of commands, such as `git *`; undefined where any command may be asked for. */
  commandPatterns: readonly string[] | undefined;
  /** What is the name of no tool here. */
  unknown: readonly string[];
}

/** Entries between commas and blanks, or of a list; a pattern in parentheses stays whole. Undefined where nothing is said. */
export function splitAllowedTools(value: unknown): string[] | undefined {
  const texts = (Array.isArray(value) ? value : [value]).filter(item => typeof item === 'string');
  const entries = texts.flatMap(text => text.match(/[^\s,()]+(?:\([^)]*\))?/g) ?? []);
  return entries.length > 0 ? entries : undefined;
}

/** Undefined where the skill keeps all tools: nothing is said, or nothing that names a tool. */
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

/** Whether a tool stays. `server` says whose it is when it is an MCP server's; those are named `mcp__server`, `mcp__server__*` or `mcp__server__tool`. */
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
