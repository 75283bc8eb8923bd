/** Lists the tools that runs offer, and checks a call's input before anything else is done with it. */

import type { JsonObject } from '@telos/protocol/run';
import { grouped } from '@telos/protocol/text';
import { createCommandTool } from './command.ts';
import type { Address } from './fetchPage.ts';
import { listDirectoryTool, readFileTool } from './files.ts';
import { globTool } from './glob.ts';
import { searchFilesTool } from './search.ts';
import { type Tool, textProperty, toolError } from './tool.ts';
import { editFileTool, writeFileTool } from './writeFiles.ts';

/** In characters. Servers accept no longer addresses. */
const longestAddress = 8000;

/**
 * The five tools that every run offers. Each also checks its own input, so that no caller can make it act on a missing
 * argument.
 */
export const builtinTools: readonly Tool[] = [
  readFileTool,
  writeFileTool,
  listDirectoryTool,
  createCommandTool(),
  createFetchTool(),
].map(withCheckedInput);

/** The five built-in tools, and the further ones that skills written for other runners expect. */
export const skillTools: readonly Tool[] = [
  ...builtinTools,
  ...[editFileTool, searchFilesTool, globTool].map(withCheckedInput),
];

const boxedTools = {
  open: withCheckedInput(createCommandTool({}, 'open')),
  closed: withCheckedInput(createCommandTool({}, 'closed')),
};

/** Returns the tools as a run offers them whose commands run in a box. `closed` means that no command may ask to leave it. */
export const toolsInBox = (tools: readonly Tool[], box: 'open' | 'closed'): readonly Tool[] =>
  tools.map(tool =>
    tool.definition.name === 'run_command' && tool.access === 'execute' ? boxedTools[box] : tool,
  );

function withCheckedInput(tool: Tool): Tool {
  return {
    ...tool,
    async execute(input, context) {
      const problem = inputProblem(tool, input);
      return problem === undefined ? tool.execute(input, context) : toolError(problem);
    },
  };
}

/**
 * Returns what is wrong with a call's input and what is expected instead, for the model. Returns undefined if the input is
 * valid. Checks the required and the string properties of the tool's schema, and the numbers of an own tool. Properties that are
 * missing from the schema are allowed.
 */
export function inputProblem(tool: Tool, input: Readonly<Record<string, unknown>>): string | undefined {
  const { longest, definition } = tool;
  const { name, inputSchema } = definition;
  const properties = objectOf(inputSchema['properties']);
  const required = Array.isArray(inputSchema['required']) ? inputSchema['required'] : [];
  // A server may take a text for a number, whatever its schema says.
  const isOwn = skillTools.some(own => own.definition.name === name);
  const faults = Object.keys(properties).flatMap(key => {
    const value = input[key];
    if (value === undefined) return required.includes(key) ? [`"${key}" is missing`] : [];
    const { type } = objectOf(properties[key]);
    if (type === 'number' && typeof value !== 'number' && isOwn)
      return [`"${key}" must be a number, not ${kindOf(value)}`];
    if (type !== 'string') return [];
    if (typeof value !== 'string') return [`"${key}" must be a string, not ${kindOf(value)}`];
    const most = longest?.[key] ?? Number.POSITIVE_INFINITY;
    return value.length > most
      ? [`"${key}" has ${grouped(value.length)} characters; the maximum is ${grouped(most)}`]
      : [];
  });
  if (faults.length === 0) return undefined;
  const wanted = Object.entries(properties).map(
    ([key, schema]) => `"${key}"${required.includes(key) ? '' : ' (optional)'}: ${objectOf(schema)['type']}`,
  );
  return `${name} was not run: ${faults.join('; ')}. It takes { ${wanted.join(', ')} }. Call it again with all of them.`;
}

const objectOf = (value: unknown): JsonObject =>
  typeof value === 'object' && value !== null ? (value as JsonObject) : {};

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** `resolve` finds all addresses of a name. `timeoutMs` covers the whole call with its redirects. */
export interface FetchOptions {
  resolve: (hostname: string) => Promise<readonly Address[]>;
  timeoutMs: number;
}

export function createFetchTool(options: Partial<FetchOptions> = {}): Tool {
  const timeoutMs = options.timeoutMs ?? 30_000;
  return {
    definition: {
      name: 'fetch_url',
      description: 'Returns a web page or file as text, at most 1 MiB. The user is asked first.',
      inputSchema: {
        type: 'object',
        properties: { url: textProperty() },
        required: ['url'],
      },
    },
    access: 'network',
    longest: { url: longestAddress },
    async execute(input, context) {
      context.signal.throwIfAborted();
      const stop = new AbortController();
      const onAbort = (): void => stop.abort(context.signal.reason);
      context.signal.addEventListener('abort', onAbort);
      const timeout = new Error(`No complete answer arrived within ${timeoutMs / 1000} s.`);
      const timer = setTimeout(() => stop.abort(timeout), timeoutMs);
      try {
        // Loaded here, because Node's web and compression modules cost a cold start ten milliseconds and more.
        const { fetchPage, resolveName } = await import('./fetchPage.ts');
        const resolve = options.resolve ?? resolveName;
        return await fetchPage(String(input['url']), context.approvedSubject, resolve, stop.signal);
      } catch (error) {
        context.signal.throwIfAborted();
        const cause = stop.signal.aborted ? stop.signal.reason : error;
        return toolError(
          `Could not fetch ${String(input['url'])}: ${cause instanceof Error ? cause.message : cause}`,
        );
      } finally {
        clearTimeout(timer);
        context.signal.removeEventListener('abort', onAbort);
      }
    },
  };
}
