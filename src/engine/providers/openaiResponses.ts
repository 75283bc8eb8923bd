/**
 * Streams model turns from OpenAI's Responses API. Nothing is stored there: the reasoning comes sealed, and goes back with the results
 * of the calls that it led to.
 */
import type {
  ContentBlock,
  DocumentBlock,
  ImageBlock,
  Message,
  TextBlock,
  ToolResultBlock,
} from '@telos/protocol/run';
import type { AttachedFile, CompletionRequest, Provider } from '../core/ports.ts';
import { isOpenaiReasoner, openaiEffort, thinkingTokens } from './effort.ts';
import { explainRequest, RefusedRequest, requestEvents } from './eventRequest.ts';
import { limitsAt, type TurnFailure, type TurnLimits } from './failures.ts';
import { extrasIn } from './provider.ts';
import { isReasoningItem, type ReasoningItem, ResponsesReader } from './responsesReader.ts';
import { streamTurn } from './turn.ts';

export interface ResponsesOptions {
  /** Empty for a server that needs none. */
  apiKey: string;
  model: string;
  /** Without a trailing slash. */
  baseUrl: string;
  limits?: TurnLimits;
}

type InputPart =
  | { type: 'input_text'; text: string }
  | { type: 'input_image'; image_url: string; detail: 'auto' }
  | { type: 'input_file'; filename: string; file_data: string };

type InputItem =
  | { role: 'user'; content: string | InputPart[] }
  | { role: 'assistant'; content: string; phase?: string }
  | { type: 'function_call'; call_id: string; name: string; arguments: string }
  | { type: 'function_call_output'; call_id: string; output: string | InputPart[] }
  | ReasoningItem;

export interface ResponsesRequest {
  model: string;
  instructions?: string;
  input: InputItem[];
  max_output_tokens: number;
  stream: true;
  store: false;
  include?: string[];
  reasoning?: { effort?: string; summary?: string };
  tools?: object[];
}

export function createOpenaiResponses(options: ResponsesOptions): Provider {
  const { apiKey, model, baseUrl, limits = limitsAt(baseUrl) } = options;
  const headers: Record<string, string> = apiKey ? { authorization: `Bearer ${apiKey}` } : {};
  const origin = originOf(model);
  let lacks: Lacks = {};
  return {
    name: 'openai',
    model,
    streamCompletion(request, signal) {
      const body = toResponsesRequest(model, request);
      return streamTurn(
        {
          label: 'OpenAI',
          request,
          reader: () => new ResponsesReader(origin),
          async open(attemptSignal) {
            const send = () =>
              requestEvents(`${baseUrl}/responses`, headers, without(body, lacks), attemptSignal);
            for (;;) {
              try {
                return await send();
              } catch (error) {
                const more = lackingIn(error, lacks);
                if (!more) throw error;
                lacks = more;
              }
            }
          },
          explain: error => explain(error, options),
        },
        limits,
        signal,
      );
    },
  };
}

/** What the person's account or the model does not have. Neither is known before it is asked for. */
interface Lacks {
  summary?: true;
  seal?: true;
}

/** Returns what is lacking according to a refusal, if that is new. */
function lackingIn(error: unknown, known: Lacks): Lacks | undefined {
  if (!(error instanceof RefusedRequest) || error.status !== 400) return undefined;
  // Summaries are only for organizations that are verified.
  if (!known.summary && /reasoning\.summary|reasoning summar/i.test(error.text))
    return { ...known, summary: true };
  if (!known.seal && /encrypted[_ ]content is not supported/i.test(error.text))
    return { ...known, seal: true };
  return undefined;
}

function without(
  { include, reasoning, ...body }: ResponsesRequest,
  { summary, seal }: Lacks,
): ResponsesRequest {
  const { summary: wanted, ...effort } = reasoning ?? {};
  const kept = { ...effort, ...(wanted && !summary ? { summary: wanted } : {}) };
  return {
    ...body,
    ...(include && !seal ? { include } : {}),
    ...(Object.keys(kept).length > 0 ? { reasoning: kept } : {}),
  };
}

/** Names who can read a sealed reasoning. No other model is sent it. */
const originOf = (model: string): string => `openai-responses ${model}`;

export function toResponsesRequest(model: string, request: CompletionRequest): ResponsesRequest {
  const { system, messages, tools, maxTokens, attached = [], effort } = request;
  const thinks = isOpenaiReasoner(model);
  const reasoning = {
    ...(effort === undefined ? {} : { effort: openaiEffort(effort, model) }),
    summary: 'auto',
  };
  return {
    model,
    ...(system ? { instructions: system } : {}),
    input: withAttached(
      messages.flatMap(message => toItems(message, originOf(model))),
      attached,
    ),
    max_output_tokens: maxTokens + (thinks && effort !== undefined ? thinkingTokens(effort) : 0),
    stream: true,
    store: false,
    ...(thinks ? { include: ['reasoning.encrypted_content'], reasoning } : {}),
    ...(tools.length > 0
      ? {
          tools: tools.map(({ name, description, inputSchema }) => ({
            type: 'function',
            name,
            description,
            parameters: inputSchema,
            strict: false,
          })),
        }
      : {}),
  };
}

function toItems({ role, content }: Message, origin: string): InputItem[] {
  if (typeof content === 'string') return [{ role, content }];
  return role === 'assistant' ? fromAssistant(content, origin) : fromUser(content);
}

/** Returns the items in the order in which the model made them, which it insists on. */
function fromAssistant(content: readonly ContentBlock[], origin: string): InputItem[] {
  const items: InputItem[] = [];
  for (const block of content) {
    if (block.type === 'text' && block.text) items.push({ role: 'assistant', content: block.text });
    else if (block.type === 'tool_use') {
      const { id, name, input } = block;
      items.push({ type: 'function_call', call_id: id, name, arguments: JSON.stringify(input) });
    } else {
      const extras = extrasIn(block, origin);
      const last = items.at(-1);
      if (extras && isReasoningItem(extras)) items.push(extras);
      else if (extras && 'phase' in extras && last && 'role' in last && last.role === 'assistant')
        last.phase = String(extras.phase);
    }
  }
  // Reasoning is refused without what it led to.
  const isReasoning = (item: InputItem): boolean => 'type' in item && item.type === 'reasoning';
  return items.slice(0, items.findLastIndex(item => !isReasoning(item)) + 1);
}

function fromUser(content: readonly ContentBlock[]): InputItem[] {
  const results = content.filter(block => block.type === 'tool_result');
  const parts = content
    .filter(block => block.type === 'text' || block.type === 'image' || block.type === 'document')
    .filter(block => block.type !== 'text' || block.text !== '')
    .map(toPart);
  const said: InputItem[] =
    parts.length > 0 || results.length === 0 ? [{ role: 'user', content: parts }] : [];
  return [...results.map(toOutput), ...said];
}

function toOutput({ tool_use_id, content, is_error }: ToolResultBlock): InputItem {
  const blocks = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content;
  const [first] = blocks;
  // This format has no flag for a failed call, so the text must say so.
  const isMarked = first?.type === 'text' && /^\s*\[?error\b/i.test(first.text);
  const parts = (
    is_error && !isMarked ? [{ type: 'text' as const, text: 'Error: ' }, ...blocks] : blocks
  ).map(toPart);
  const texts = parts.flatMap(part => (part.type === 'input_text' ? [part.text] : []));
  return {
    type: 'function_call_output',
    call_id: tool_use_id,
    output: texts.length === parts.length ? texts.join('') : parts,
  };
}

function toPart(block: TextBlock | ImageBlock | DocumentBlock): InputPart {
  if (block.type === 'text') return { type: 'input_text', text: block.text };
  const { media_type, data } = block.source;
  if (block.type === 'document')
    return { type: 'input_file', filename: block.title, file_data: `data:${media_type};base64,${data}` };
  return { type: 'input_image', image_url: `data:${media_type};base64,${data}`, detail: 'auto' };
}

/** Puts the files before the words of the last message. */
function withAttached(items: InputItem[], files: readonly AttachedFile[]): InputItem[] {
  const last = items.at(-1);
  if (files.length === 0 || !last || !('role' in last) || last.role !== 'user') return items;
  const said: InputPart[] =
    typeof last.content === 'string' ? [{ type: 'input_text', text: last.content }] : last.content;
  const parts = files.map(({ name, mediaType, data }): InputPart => {
    const url = `data:${mediaType};base64,${data}`;
    return mediaType === 'application/pdf'
      ? { type: 'input_file', filename: name, file_data: url }
      : { type: 'input_image', image_url: url, detail: 'auto' };
  });
  return [...items.slice(0, -1), { role: 'user', content: [...parts, ...said] }];
}

function explain(error: unknown, { apiKey, baseUrl }: ResponsesOptions): TurnFailure {
  return explainRequest(
    error,
    {
      label: 'OpenAI',
      address: baseUrl,
      addressVariable: 'OPENAI_BASE_URL',
      keyVariable: 'OPENAI_API_KEY',
      secret: apiKey,
    },
    refused => {
      const { error: body } = (refused.body ?? {}) as {
        error?: { message?: unknown; code?: unknown } | null;
      };
      if (typeof body?.message !== 'string') return {};
      const code =
        typeof body.code === 'string' && !body.message.includes(body.code) ? ` (${body.code})` : '';
      return { reason: body.message + code };
    },
  );
}
