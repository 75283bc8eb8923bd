/** Writes our messages, which are Anthropic's inside, in the form of OpenAI's chat completions, and loses nothing on the way. */
import type {
  ContentBlock,
  ImageBlock,
  Message,
  TextBlock,
  ToolResultBlock,
  ToolUseBlock,
} from '../../protocol/run.ts';
import { extrasOf } from './callExtras.ts';

export type OpenaiPart = { type: 'text'; text: string } | { type: 'image_url'; image_url: { url: string } };

export interface OpenaiToolCall {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}

export type OpenaiMessage =
  | { role: 'system'; content: string }
  | { role: 'user'; content: string | OpenaiPart[] }
  | { role: 'assistant'; content: string | null; tool_calls?: OpenaiToolCall[]; reasoning_details?: unknown }
  | { role: 'tool'; tool_call_id: string; content: string };

/**
 * The system text comes first, if there is one. Results of tools become messages of their own, directly behind the calls; what a
 * user said beside them, and the images that tools returned, follow in a message of the user. `provider` is who reads them.
 */
export function toOpenaiMessages(
  system: string,
  messages: readonly Message[],
  provider: string,
): OpenaiMessage[] {
  const translated = messages.flatMap(message =>
    message.role === 'assistant' ? [fromAssistant(message.content, provider)] : fromUser(message.content),
  );
  return system ? [{ role: 'system', content: system }, ...translated] : translated;
}

function fromAssistant(content: string | ContentBlock[], provider: string): OpenaiMessage {
  if (typeof content === 'string') return { role: 'assistant', content };
  // Other models' reasoning stays behind: it is sealed for the provider that it came from.
  const text = content
    .flatMap(block => (block.type === 'text' && block.text ? [block.text] : []))
    .join('\n\n');
  const extras = extrasOf(content, provider);
  const calls = content.flatMap(block => (block.type === 'tool_use' ? [toCall(block, extras)] : []));
  const own = extras.get('');
  if (calls.length === 0) return { role: 'assistant', content: text, ...own };
  return { role: 'assistant', content: text || null, tool_calls: calls, ...own };
}

function toCall(block: ToolUseBlock, extras: ReadonlyMap<string, object>): OpenaiToolCall {
  return {
    id: block.id,
    type: 'function',
    function: { name: block.name, arguments: spacedJson(block.input) },
    ...extras.get(block.id),
  };
}

/** JSON in one line with a space behind commas and colons, the way the models' own training data is written. */
function spacedJson(value: unknown): string {
  // Line breaks inside of strings are escaped, so the ones that are left are the layout's.
  return JSON.stringify(value, null, 1).replace(/,\n */g, ', ').replace(/\n */g, '');
}

function fromUser(content: string | ContentBlock[]): OpenaiMessage[] {
  if (typeof content === 'string') return [{ role: 'user', content }];
  const results = content.filter(block => block.type === 'tool_result');
  const said = content.filter(block => block.type === 'text' || block.type === 'image');
  const parts = [...results.flatMap(imagesOf), ...said.map(toPart)].filter(
    part => part.type !== 'text' || part.text,
  );
  const answers = results.map(toAnswer);
  if (parts.length === 0) return answers.length > 0 ? answers : [{ role: 'user', content: '' }];
  const [first] = parts;
  const single = parts.length === 1 && first?.type === 'text' ? first.text : parts;
  return [...answers, { role: 'user', content: single }];
}

function toAnswer({ tool_use_id, content, is_error }: ToolResultBlock): OpenaiMessage {
  const text =
    typeof content === 'string'
      ? content
      : content.flatMap(block => (block.type === 'text' ? [block.text] : ['[image, see below]'])).join('\n');
  // This format has no flag for a failed call, so the text must say it.
  const failed = is_error && !/^\s*\[?error\b/i.test(text);
  const plain = withoutTemplateTokens(text);
  return { role: 'tool', tool_call_id: tool_use_id, content: failed ? `Error: ${plain}` : plain };
}

/**
 * Servers of local models paste texts into a template in which such words end a turn or begin one of the system: a page that holds them could
 * speak as the system. A blank breaks them up and leaves them readable.
 */
function withoutTemplateTokens(text: string): string {
  return text
    .replace(/<(\|[\w-]{1,40}\|>)/g, '< $1')
    .replace(/<(\/?(?:start_of_turn|end_of_turn|s)>|<\/?SYS>>)/g, '< $1')
    .replace(/\[(\/?INST\])/g, '[ $1');
}

/** Answers of tools may hold text only; their images are shown behind them. */
function imagesOf({ tool_use_id, content }: ToolResultBlock): OpenaiPart[] {
  const images = typeof content === 'string' ? [] : content.filter(block => block.type === 'image');
  if (images.length === 0) return [];
  return [{ type: 'text', text: `Returned by the tool call ${tool_use_id}:` }, ...images.map(toPart)];
}

function toPart(block: TextBlock | ImageBlock): OpenaiPart {
  if (block.type === 'text') return { type: 'text', text: block.text };
  const { media_type, data } = block.source;
  return { type: 'image_url', image_url: { url: `data:${media_type};base64,${data}` } };
}
