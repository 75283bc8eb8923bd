/** Offers a project's context as two tools: to the steps of a plan in this process, and to other programs as an MCP server. */

import type { Readable, Writable } from 'node:stream';
import type { Tool, ToolDefinition } from '@telos/engine/tools';
import type { JsonObject } from '@telos/protocol/run';
import type { ProjectContext } from './contextAnswer.ts';
import { RpcError, type RpcHandler, serveLines, unknownMethod } from './jsonRpcLines.ts';

const summarize: ToolDefinition = {
  name: 'summarize',
  description:
    'Returns what this project is in 15 plain lines for a beginner, from its files, pictures and documents.',
  inputSchema: { type: 'object', properties: {}, additionalProperties: false },
};

const answerQuestion: ToolDefinition = {
  name: 'answerQuestion',
  description:
    'Answers one question about this project in one to five plain lines, from its files, pictures and documents. Says so if they do not tell.',
  inputSchema: {
    type: 'object',
    properties: { query: { type: 'string', description: 'The question, as one would ask a colleague.' } },
    required: ['query'],
    additionalProperties: false,
  },
};

/** The names of the tools, in the order in which they are listed. */
const definitions: readonly ToolDefinition[] = [answerQuestion, summarize];

/** Another name of `answerQuestion`, under which older clients call it. It is not listed. */
const otherName = 'answer_question';

/** Returns the tools for the steps of a plan. A failure is text that begins with `ERROR:`. Throws the abort reason on abort. */
export function contextTools(context: ProjectContext): Tool[] {
  return definitions.map(definition => ({
    definition,
    access: 'read',
    longest: { query: 4_000 },
    async execute(input, { signal }) {
      const { text, isError } = await contextText(context, definition.name, input as JsonObject, signal);
      return { content: text, isError };
    },
  }));
}

/** Returns what a tool says. Throws the abort reason on abort. */
export async function contextText(
  context: Pick<ProjectContext, 'summarize' | 'answerQuestion'>,
  tool: string,
  input: JsonObject,
  signal: AbortSignal,
): Promise<{ text: string; isError: boolean }> {
  try {
    if (tool === summarize.name) return { text: await context.summarize(signal), isError: false };
    if (typeof input['query'] !== 'string')
      return { text: 'ERROR: Give the question as query, a text.', isError: true };
    return { text: await context.answerQuestion(input['query'], signal), isError: false };
  } catch (error) {
    signal.throwIfAborted();
    return { text: `ERROR: ${error instanceof Error ? error.message : String(error)}`, isError: true };
  }
}

/** Versions of the protocol whose messages are the same here. A client of another one is offered the newest. */
const versions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const;

/** Serves the two tools over MCP until the input ends or `signal` aborts. */
export async function serveContext(
  context: ProjectContext,
  input: Readable,
  output: Writable,
  version: string,
  signal: AbortSignal,
): Promise<void> {
  const handle: RpcHandler = async (method, params, { signal: ofCall }) => {
    switch (method) {
      case 'initialize':
        return {
          protocolVersion: versions.find(known => known === params['protocolVersion']) ?? versions[0],
          capabilities: { tools: {} },
          serverInfo: { name: 'telos-context', version },
          instructions: 'Answers questions about one project from its own files. It reads only.',
        };
      case 'ping':
        return {};
      case 'tools/list':
        return { tools: definitions };
      case 'tools/call':
        return call(context, params, ofCall);
      default:
        throw unknownMethod(method);
    }
  };
  try {
    await serveLines(input, output, handle, signal);
  } finally {
    await context.close();
  }
}

async function call(context: ProjectContext, params: JsonObject, signal: AbortSignal): Promise<object> {
  const name = params['name'] === otherName ? answerQuestion.name : params['name'];
  if (!definitions.some(definition => definition.name === name))
    throw new RpcError(-32602, `There is no tool ${String(name)}.`);
  const input = params['arguments'];
  const given =
    typeof input === 'object' && input !== null && !Array.isArray(input) ? (input as JsonObject) : {};
  const { text, isError } = await contextText(context, String(name), given, signal);
  return { content: [{ type: 'text', text }], ...(isError && { isError: true }) };
}
