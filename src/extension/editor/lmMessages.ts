/**
 * Converts messages, which have Anthropic's form inside Telos, to the editor's language model API, and converts its
 * calls back.
 */
import * as vscode from 'vscode';
import { TelosError } from '../../engine/errors.ts';
import { type CompletionRequest, defaultMaxTokens, readToolCall } from '../../engine/providers/provider.ts';
import type {
  ContentBlock,
  ImageBlock,
  JsonObject,
  Message,
  TextBlock,
  ToolCall,
  ToolResultBlock,
} from '../../protocol/run.ts';

type AssistantPart = vscode.LanguageModelTextPart | vscode.LanguageModelToolCallPart;
type ResultPart = vscode.LanguageModelTextPart | vscode.LanguageModelDataPart;
type UserPart = ResultPart | vscode.LanguageModelToolResultPart;

/** Replaces an image for a model that cannot see. */
const unseenImage = '[An image was here; this model cannot see images.]';

/**
 * Converts the messages. The API has no system role, so the system text opens the first user message. `seesImages` is
 * false if the model has said so.
 */
export function toLmMessages(
  { system, messages }: Pick<CompletionRequest, 'system' | 'messages'>,
  seesImages: boolean,
): vscode.LanguageModelChatMessage[] {
  const translated = messages.map(message => toLmMessage(message, seesImages));
  if (!system) return translated;
  const [first] = translated;
  const opening = new vscode.LanguageModelTextPart(system);
  if (first?.role !== vscode.LanguageModelChatMessageRole.User) {
    return [vscode.LanguageModelChatMessage.User([opening]), ...translated];
  }
  first.content = [opening, ...first.content];
  return translated;
}

function toLmMessage({ role, content }: Message, seesImages: boolean): vscode.LanguageModelChatMessage {
  const blocks: ContentBlock[] = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  return role === 'assistant'
    ? vscode.LanguageModelChatMessage.Assistant(blocks.flatMap(toAssistantPart))
    : vscode.LanguageModelChatMessage.User(toUserParts(blocks, seesImages));
}

/** Drops reasoning, because it is sealed for the provider that it came from. */
function toAssistantPart(block: ContentBlock): AssistantPart[] {
  if (block.type === 'text' && block.text) return [new vscode.LanguageModelTextPart(block.text)];
  if (block.type === 'tool_use') {
    return [new vscode.LanguageModelToolCallPart(block.id, block.name, block.input)];
  }
  return [];
}

/** Puts results before the user's words, because models expect them directly after their calls. */
function toUserParts(blocks: readonly ContentBlock[], seesImages: boolean): UserPart[] {
  const results = blocks.filter(block => block.type === 'tool_result');
  const said = blocks.filter(
    block => block.type === 'text' || block.type === 'image' || block.type === 'document',
  );
  return [
    ...results.map(block => toResultPart(block, seesImages)),
    ...said.flatMap(block => toPart(block, seesImages)),
  ];
}

function toResultPart(block: ToolResultBlock, seesImages: boolean): vscode.LanguageModelToolResultPart {
  const { tool_use_id, content, is_error } = block;
  const blocks: SeenBlock[] = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  const parts = blocks.flatMap(each => toPart(each, seesImages));
  // The API has no flag for a failed call, so the text must say it.
  const first = blocks.find(each => each.type === 'text')?.text ?? '';
  const failed = is_error && !/^\s*\[?error\b/i.test(first);
  const opening = failed ? [new vscode.LanguageModelTextPart('Error: ')] : [];
  return new vscode.LanguageModelToolResultPart(tool_use_id, [...opening, ...parts]);
}

type SeenBlock = Exclude<ToolResultBlock['content'], string>[number];

function toPart(block: SeenBlock, seesImages: boolean): ResultPart[] {
  if (block.type === 'text') return block.text ? [new vscode.LanguageModelTextPart(block.text)] : [];
  // The engine sends the editor's models none.
  if (block.type === 'document') return [];
  if (!seesImages) return [new vscode.LanguageModelTextPart(unseenImage)];
  const { media_type, data } = block.source;
  return [vscode.LanguageModelDataPart.image(Buffer.from(data, 'base64'), media_type)];
}

export function toLmTools(tools: CompletionRequest['tools']): vscode.LanguageModelChatTool[] {
  return tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
}

/** Converts a call. The API promises an object. Anything else is returned to the model as its mistake. */
export function fromLmCall({ callId, name, input }: vscode.LanguageModelToolCallPart): ToolCall {
  if (typeof input === 'string') return readToolCall(callId, name, input);
  if (typeof input === 'object' && input !== null && !Array.isArray(input)) {
    return { id: callId, name, input: input as JsonObject };
  }
  return { id: callId, name, input: {}, problem: 'The arguments must be one JSON object.' };
}

type Asked = vscode.LanguageModelChatRequestMessage;
type Spoken = Message & { content: ContentBlock[] };

/** Characters per token, close enough for prose and code in most tokenizers. */
const charactersPerToken = 4;
/** Tokens of an image of usual size. */
const tokensPerImage = 1_500;

/**
 * Converts a request of the editor. Its messages may have a role outside its published types. Those become system text.
 */
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

/**
 * Converts a call. Throws if its arguments could not be read. An empty object instead could mean anything to the tool.
 */
export function toLmCall({ id, name, input, problem }: ToolCall): vscode.LanguageModelToolCallPart {
  if (problem)
    throw new TelosError(
      'provider',
      `The model called ${name} with arguments that cannot be read. ${problem}`,
    );
  return new vscode.LanguageModelToolCallPart(id, name, input);
}

/**
 * Estimates the tokens. The providers' tokenizers are not available here, and counting remotely would cost a request
 * each time.
 */
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
  // Results come first, because models expect them directly after their calls.
  const results = blocks.filter(({ type }) => type === 'tool_result');
  const others = blocks.filter(({ type }) => type !== 'tool_result');
  return [...results, ...others];
}

/** Returns an empty list for parts that the editor may add, such as thoughts that only another model understands. */
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

/** Joins messages of the same role. Providers require alternating user and assistant, and reject empty messages. */
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
