/** Reads what the editor asks an offered model as the engine's own messages, and writes the answer's parts back. */
import * as vscode from 'vscode';
import { TelosError } from '../../engine/errors.ts';
import { type CompletionRequest, defaultMaxTokens } from '../../engine/providers/provider.ts';
import type {
  ContentBlock,
  ImageBlock,
  JsonObject,
  Message,
  TextBlock,
  ToolCall,
} from '../../protocol/run.ts';

type Asked = vscode.LanguageModelChatRequestMessage;
type Spoken = Message & { content: ContentBlock[] };

/** Characters that stand for one token, near enough for prose and code in most tokenizers. */
const charactersPerToken = 4;
/** What an image takes at a usual size. */
const tokensPerImage = 1_500;

/** The editor's own messages may be of a role that its published types do not know: those are for the system. */
export function fromLmRequest(
  messages: readonly Asked[],
  { tools = [], toolMode, modelOptions }: vscode.ProvideLanguageModelChatResponseOptions,
): CompletionRequest {
  const mustCall = toolMode === vscode.LanguageModelChatToolMode.Required && tools.length > 0;
  const system = [
    ...messages.filter(({ role }) => !isSpoken(role)).map(textOf),
    ...(mustCall ? ['Answer with a call of one of the tools, and with nothing else.'] : []),
  ];
  const wanted: unknown = modelOptions?.['max_tokens'];
  return {
    system: system.join('\n\n'),
    messages: joined(messages.filter(({ role }) => isSpoken(role)).map(toMessage)),
    tools: tools.map(({ name, description, inputSchema }) => ({
      name,
      description,
      inputSchema: (inputSchema as JsonObject | undefined) ?? { type: 'object', properties: {} },
    })),
    maxTokens:
      typeof wanted === 'number' && wanted > 0 ? Math.min(wanted, defaultMaxTokens) : defaultMaxTokens,
  };
}

/** Throws for a call whose arguments could not be read: an empty object in their place could mean anything to the tool. */
export function toLmCall({ id, name, input, problem }: ToolCall): vscode.LanguageModelToolCallPart {
  if (problem)
    throw new TelosError(
      'provider',
      `The model called ${name} with arguments that cannot be read. ${problem}`,
    );
  return new vscode.LanguageModelToolCallPart(id, name, input);
}

/** An estimate: no provider's tokenizer is here, and asking one would cost a question each time. */
export function estimateTokens(text: string | Asked): number {
  if (typeof text === 'string') return Math.ceil(text.length / charactersPerToken);
  const blocks = blocksOf(text);
  const shown = blocks.flatMap((block): (ContentBlock | string)[] =>
    block.type === 'tool_result' ? [...block.content] : [block],
  );
  const count = shown.filter(block => typeof block !== 'string' && block.type === 'image').length;
  const { length } = JSON.stringify(blocks, (key, value) => (key === 'source' ? undefined : value));
  return Math.ceil(length / charactersPerToken) + count * tokensPerImage;
}

const isSpoken = (role: vscode.LanguageModelChatMessageRole): boolean =>
  role === vscode.LanguageModelChatMessageRole.User || role === vscode.LanguageModelChatMessageRole.Assistant;

const textOf = ({ content }: Asked): string =>
  content.map(part => (part instanceof vscode.LanguageModelTextPart ? part.value : '')).join('');

function toMessage(asked: Asked): Spoken {
  const isAssistant = asked.role === vscode.LanguageModelChatMessageRole.Assistant;
  return { role: isAssistant ? 'assistant' : 'user', content: blocksOf(asked) };
}

function blocksOf({ content }: Asked): ContentBlock[] {
  const blocks = content.flatMap(toBlock);
  // Results stand before what was said beside them, because models want them directly behind their calls.
  const results = blocks.filter(({ type }) => type === 'tool_result');
  const others = blocks.filter(({ type }) => type !== 'tool_result');
  return [...results, ...others];
}

/** Empty for what the editor may add, such as thoughts that only another model understands. */
function toBlock(part: unknown): ContentBlock[] {
  if (part instanceof vscode.LanguageModelToolCallPart) {
    return [{ type: 'tool_use', id: part.callId, name: part.name, input: part.input as JsonObject }];
  }
  if (part instanceof vscode.LanguageModelToolResultPart) {
    const inner = part.content.flatMap(toShown);
    return [{ type: 'tool_result', tool_use_id: part.callId, content: inner, is_error: false }];
  }
  return toShown(part);
}

function toShown(part: unknown): (TextBlock | ImageBlock)[] {
  if (part instanceof vscode.LanguageModelTextPart)
    return part.value ? [{ type: 'text', text: part.value }] : [];
  if (part instanceof vscode.LanguageModelDataPart && part.mimeType.startsWith('image/')) {
    const data = Buffer.from(part.data).toString('base64');
    return [{ type: 'image', source: { type: 'base64', media_type: part.mimeType, data } }];
  }
  return [];
}

/** Providers want user and assistant in turn, and no message without content. */
function joined(messages: readonly Spoken[]): Message[] {
  const result: Spoken[] = [];
  for (const { role, content } of messages) {
    const last = result.at(-1);
    if (content.length === 0) continue;
    if (last?.role === role) last.content.push(...content);
    else result.push({ role, content: [...content] });
  }
  return result;
}
