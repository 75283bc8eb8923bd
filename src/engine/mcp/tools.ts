/** Converts tools of MCP servers into tools of a run, with unique names that providers accept. Built-in names take precedence. */

import { createHash } from 'node:crypto';
import type { JsonObject, ToolResult } from '@telos/protocol/run';
import { shortened } from '@telos/protocol/text';
import { escapeInvisible } from '../files/plainText.ts';
import { type Tool, type ToolContext, toolError } from '../tools/tool.ts';
import { modelSchema } from './modelSchema.ts';

/** A tool as its server lists it. */
export interface McpToolListing {
  name: string;
  description: string;
  inputSchema: JsonObject;
  /** True if the server says that the tool changes nothing. */
  readOnly: boolean;
}

/** The location of a server, needed to interpret the arguments of its tools. */
export interface McpServerPlace {
  /** The server's own folders: the one that it runs in, and those in its arguments. Absolute paths. */
  folders?: readonly string[];
  /** True if it runs on another machine. */
  isRemote?: boolean;
}

/** The parts of a connected server that its tools need. */
export interface McpToolSource extends McpServerPlace {
  server: string;
  tools: readonly McpToolListing[];
  /** Calls a tool. Errors of the server or the model are returned, not thrown. Throws the abort reason on abort. */
  call(
    tool: string,
    input: JsonObject,
    signal: AbortSignal,
    onProgress?: ToolContext['onProgress'],
    askSignIn?: ToolContext['askSignIn'],
    askServer?: ToolContext['askServer'],
  ): Promise<ToolResult>;
}

/** The facts about a tool that a person is asked about, and that a lasting yes covers. */
export interface McpToolFacts extends McpServerPlace {
  server: string;
  tool: string;
  /** The server's full description of the tool. */
  description?: string;
  /** Digest of description and schema. If it changes, an earlier yes is not valid any more. */
  digest: string;
}

export interface MergedTools {
  tools: readonly Tool[];
  /** Facts by the name under which the model calls the tool. */
  facts: ReadonlyMap<string, McpToolFacts>;
}

/** The tool that stands for the tools of servers that are not connected yet. No server has it. */
export const gateName = 'connect_mcp_servers';

const longestName = 64;
/** In characters; OpenAI accepts no more. */
const longestDescription = 1024;

/**
 * Returns the built-in tools, then those of the servers. A name that is built in or occurs more than once becomes
 * `server__tool`. Characters that providers refuse are replaced (only `[A-Za-z0-9_-]` is allowed, at most 64 characters). A
 * name that is then too long or already taken ends with a digest of the whole name.
 */
export function mergeTools(builtin: readonly Tool[], sources: readonly McpToolSource[]): MergedTools {
  const wanted = sources.flatMap(source => source.tools.map(listing => ({ source, listing })));
  const own = [gateName, ...builtin.map(tool => tool.definition.name)];
  const count = new Map<string, number>(own.map(name => [name, 1]));
  for (const { listing } of wanted) {
    const name = plainName(listing.name);
    count.set(name, (count.get(name) ?? 0) + 1);
  }
  const taken = new Set(own);
  const tools: Tool[] = [...builtin];
  const facts = new Map<string, McpToolFacts>();
  for (const { source, listing } of wanted) {
    const short = plainName(listing.name);
    const long = `${source.server}__${listing.name}`;
    const free = count.get(short) === 1 && short.length <= longestName && !taken.has(short);
    const name = free ? short : freeName(long, taken);
    taken.add(name);
    tools.push(mcpTool(name, source, listing));
    const { name: tool, description } = listing;
    const { server, folders = [], isRemote = false } = source;
    facts.set(name, { server, tool, description, digest: digestOf(listing), folders, isRemote });
  }
  return { tools, facts };
}

/** Returns exactly what a call will do, for the person who is asked: server, tool and all arguments. */
export function mcpSubject(
  { server, tool }: Pick<McpToolFacts, 'server' | 'tool'>,
  input: JsonObject,
): string {
  const lines = JSON.stringify(input, null, 2).split('\n').map(escapeInvisible);
  return `${escapeInvisible(server)}: ${escapeInvisible(tool)} ${lines.join('\n')}`;
}

/** Returns the digest of a tool's description and schema. It does not depend on the order of the schema's keys. */
function digestOf({ description, inputSchema }: McpToolListing): string {
  return shortDigest(JSON.stringify([description, sorted(inputSchema)]), 32);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.map(([key, item]) => [key, sorted(item)]);
}

const plainName = (name: string): string => name.replace(/[^A-Za-z0-9_-]/g, '_') || '_';

function freeName(wanted: string, taken: ReadonlySet<string>): string {
  const plain = plainName(wanted);
  if (plain.length <= longestName && !taken.has(plain)) return plain;
  for (let salt = 0; ; salt++) {
    const digest = shortDigest(`${wanted}\0${salt}`, 8);
    const name = `${plain.slice(0, longestName - digest.length - 1)}_${digest}`;
    if (!taken.has(name)) return name;
  }
}

const shortDigest = (text: string, length: number): string =>
  createHash('sha256').update(text).digest('hex').slice(0, length);

function mcpTool(name: string, source: McpToolSource, listing: McpToolListing): Tool {
  const facts = { server: source.server, tool: listing.name };
  const { schema, asServer } = modelSchema(listing.inputSchema);
  return {
    definition: {
      name,
      description: capped(listing.description),
      inputSchema: schema,
    },
    access: listing.readOnly ? 'network' : 'execute',
    async execute(input, context) {
      if (context.approvedSubject !== undefined && context.approvedSubject !== mcpSubject(facts, input))
        return toolError('The call differs from the one that was approved. Nothing was done.');
      const { signal, onProgress, askSignIn, askServer } = context;
      return source.call(listing.name, asServer(input), signal, onProgress, askSignIn, askServer);
    },
  };
}

function capped(description: string): string {
  if (description.length <= longestDescription) return description;
  return shortened(description, longestDescription);
}
