/** Choosing a provider, and how each speaks on the wire. */

import { TelosError } from '../../../src/engine/core/errors.ts';
import { defaultMaxTokens } from '../../../src/engine/core/limits.ts';
import type { Provider, StreamEvent, ToolDefinition } from '../../../src/engine/core/ports.ts';
import { createAnthropic } from '../../../src/engine/providers/anthropic.ts';
import { chooseProvider, createProvider } from '../../../src/engine/providers/create.ts';
import {
  createOpenaiCompatible,
  toOpenaiMessages,
  toOpenaiRequest,
} from '../../../src/engine/providers/openai.ts';
import type { JsonObject, Message } from '../../../src/protocol/run.ts';
import { startAnthropicServer } from '../../fakes/anthropicServer.ts';
import { startOpenaiServer } from '../../fakes/openaiServer.ts';
import { isRecord, type Json, type JsonRecord, strings, texts } from '../caseFile.ts';
import type { Operations } from '../operations.ts';

/** Deltas that arrive together go on together; this keeps them apart on the wire. */
const apartMs = 15;

export const providerOperations: Operations = {
  async select_provider({ given }, world) {
    const config = world.loadConfig({ OLLAMA_BASE_URL: undefined, ...texts(given['env']) });
    try {
      const choice = await chooseProvider(config);
      const { name, model } = await createProvider(config, choice);
      return { provider: name, model, base_url: choice.baseUrl };
    } catch (error) {
      if (!(error instanceof TelosError)) throw error;
      return { error: true, exit: 1 };
    }
  },

  to_openai: async ({ given }) => ({
    messages: toOpenaiMessages(String(given['system']), given['messages'] as unknown as Message[], 'openai'),
  }),

  async openai_request({ given }, world) {
    const tools = definitions(given['tools']);
    const { model = '' } = await chooseProvider(world.loadConfig({ TELOS_PROVIDER: 'ollama' }));
    const maxTokens = Number(given['max_tokens'] ?? defaultMaxTokens);
    const body = toOpenaiRequest('ollama', model, { system: 'S', messages: [], tools, maxTokens });
    return { body };
  },

  async openai_stream({ given }) {
    const server = await startOpenaiServer({
      turns: [{ chunks: (given['chunks'] as readonly JsonRecord[]).map(openaiChunk) }],
      chunkDelayMs: apartMs,
    });
    try {
      const options = { name: 'openrouter', apiKey: 'k', model: 'm', baseUrl: server.url } as const;
      const variables = { keyVariable: 'OPENROUTER_API_KEY', baseUrlVariable: 'OPENROUTER_BASE_URL' };
      return {
        events: (await streamed(createOpenaiCompatible({ ...options, ...variables }), [])).map(eventOf),
      };
    } finally {
      await server.close();
    }
  },

  async anthropic_stream({ given }) {
    const server = await startAnthropicServer({
      turns: [
        {
          text: strings(given['text']),
          toolCalls: anthropicCalls(given['tool_use']),
          stopReason: String(given['stop']),
        },
      ],
      chunkDelayMs: apartMs,
    });
    try {
      const provider = createAnthropic({ apiKey: 'k', model: 'M', baseUrl: server.url });
      const events = await streamed(provider, definitions(given['tools']), Number(given['max_tokens'] ?? 16));
      return {
        events: events.map(eventOf),
        done_events: events.filter(({ type }) => type === 'done').length,
        request: server.requests[0]?.body,
      };
    } finally {
      await server.close();
    }
  },

  async stream_events() {
    const server = await startAnthropicServer({
      turns: [{ text: ['a'], toolCalls: [{ name: 'read_file', input: { path: 'x' } }] }],
    });
    try {
      const provider = createAnthropic({ apiKey: 'k', model: 'M', baseUrl: server.url });
      const events = await streamed(provider, []);
      return { kinds: [...new Set(events.map(({ type }) => type))], max_tokens_default: defaultMaxTokens };
    } finally {
      await server.close();
    }
  },
};

async function streamed(
  provider: Provider,
  tools: readonly ToolDefinition[],
  maxTokens = defaultMaxTokens,
): Promise<StreamEvent[]> {
  const events: StreamEvent[] = [];
  const request = { system: 'S', messages: [{ role: 'user', content: 'x' } as const], tools, maxTokens };
  for await (const event of provider.streamCompletion(request, AbortSignal.timeout(10_000)))
    events.push(event);
  return events;
}

function eventOf(event: StreamEvent): unknown[] {
  switch (event.type) {
    case 'text':
      return ['text', event.text];
    case 'tool_call':
      return ['tool_call', event.call.id, event.call.name, event.call.input];
    case 'done':
      return ['done', event.stopReason];
    default:
      return [event.type];
  }
}

const definitions = (tools: Json | undefined): ToolDefinition[] =>
  (Array.isArray(tools) ? tools : []).filter(isRecord).map(tool => ({
    name: String(tool['name']),
    description: String(tool['description']),
    inputSchema: tool['input_schema'] as JsonObject,
  }));

/** Each is an id, a name and the arguments. */
const anthropicCalls = (calls: Json | undefined): { id: string; name: string; input: unknown }[] =>
  (Array.isArray(calls) ? calls : []).map(([id, name, input]: Json[]) => ({
    id: String(id),
    name: String(name),
    input,
  }));

/** `tool` is index, id, name and a piece of the arguments. */
function openaiChunk(chunk: JsonRecord): object {
  const envelope = { id: 'c', object: 'chat.completion.chunk', created: 0, model: 'm' };
  if (chunk['no_choices']) return { ...envelope, choices: [] };
  const choice = (delta: object, finish_reason: Json = null) => ({
    ...envelope,
    choices: [{ index: 0, delta, finish_reason }],
  });
  if (chunk['finish'] !== undefined) return choice({}, chunk['finish']);
  if (chunk['content'] !== undefined) return choice({ content: chunk['content'] });
  const [index, id, name, json] = chunk['tool'] as readonly Json[];
  const call = {
    index,
    ...(id === null ? {} : { id, type: 'function' }),
    function: { ...(name === null ? {} : { name }), ...(json === null ? {} : { arguments: json }) },
  };
  return choice({ tool_calls: [call] });
}
