/** Says what Anthropic's Messages API would refuse in a request, in its words. Keys are held against the SDK's types by the compiler. */
import type Anthropic from '@anthropic-ai/sdk';
import { hasUnpairedSurrogate, isPart, type Part, partsOf, repeated, sidesOf } from './refusals.ts';

export interface AnthropicRefusal {
  status: 400 | 413;
  message: string;
}

const mostBytes = 32 * 1024 * 1024;
/** Of the picture as it is sent, in base64. */
const mostPictureBytes = 5 * 1024 * 1024;
const longestSide = 8000;
const mostMarks = 4;
const leastBudget = 1024;

/** Returns the first thing that the API would refuse, or undefined for a request that it takes. `bytes` is the length of the body. */
export function anthropicRefusal(body: unknown, bytes: number): AnthropicRefusal | undefined {
  if (bytes > mostBytes) return { status: 413, message: 'Request exceeds the maximum size' };
  const [message] = isPart(body) ? refusals(body) : ['Input should be a valid dictionary'];
  return message === undefined ? undefined : { status: 400, message };
}

function* refusals(body: Part): Generator<string> {
  if (hasUnpairedSurrogate(body)) yield 'The request body is not valid JSON: no low surrogate in string';
  yield* unknownKeys(body, requestKeys, '');
  if (typeof body['model'] !== 'string') yield 'model: Field required';
  if (!Number.isInteger(body['max_tokens'])) yield 'max_tokens: Field required';
  else if (Number(body['max_tokens']) < 1) yield 'max_tokens: must be greater than or equal to 1';
  yield* inSystem(body['system']);
  yield* inTools(body['tools'] ?? []);
  yield* inMessages(body['messages']);
  yield* inMarks(body);
  yield* inThinking(body);
}

type Keys<Type> = Readonly<Record<keyof Type, true>>;

const requestKeys: Keys<Anthropic.MessageCreateParams & { temperature: 0; top_k: 0; top_p: 0 }> = {
  cache_control: true,
  container: true,
  diagnostics: true,
  inference_geo: true,
  max_tokens: true,
  messages: true,
  metadata: true,
  model: true,
  output_config: true,
  service_tier: true,
  speed: true,
  stop_sequences: true,
  stream: true,
  system: true,
  temperature: true,
  thinking: true,
  tool_choice: true,
  tools: true,
  top_k: true,
  top_p: true,
  user_profile_id: true,
  workspace_id: true,
};

const toolKeys: Keys<Anthropic.Tool> = {
  allowed_callers: true,
  cache_control: true,
  defer_loading: true,
  description: true,
  eager_input_streaming: true,
  input_examples: true,
  input_schema: true,
  name: true,
  strict: true,
  type: true,
};

interface BlockKeys {
  text: Keys<Anthropic.TextBlockParam>;
  image: Keys<Anthropic.ImageBlockParam>;
  document: Keys<Anthropic.DocumentBlockParam>;
  tool_use: Keys<Anthropic.ToolUseBlockParam>;
  tool_result: Keys<Anthropic.ToolResultBlockParam>;
  thinking: Keys<Anthropic.ThinkingBlockParam>;
  redacted_thinking: Keys<Anthropic.RedactedThinkingBlockParam>;
}

const blockKeys: BlockKeys = {
  text: { type: true, text: true, cache_control: true, citations: true },
  image: { type: true, source: true, cache_control: true, transformations: true },
  document: { type: true, source: true, cache_control: true, citations: true, context: true, title: true },
  tool_use: {
    type: true,
    id: true,
    input: true,
    name: true,
    cache_control: true,
    caller: true,
    toolset_name: true,
  },
  tool_result: {
    type: true,
    tool_use_id: true,
    content: true,
    is_error: true,
    cache_control: true,
    toolset_name: true,
  },
  thinking: { type: true, thinking: true, signature: true },
  redacted_thinking: { type: true, data: true },
};

const isKnown = (type: unknown): type is keyof BlockKeys =>
  typeof type === 'string' && Object.hasOwn(blockKeys, type);

/** Which role a block may stand with. Text stands with both. */
const roleOf: Readonly<Record<string, string>> = {
  image: 'user',
  document: 'user',
  tool_result: 'user',
  tool_use: 'assistant',
  thinking: 'assistant',
  redacted_thinking: 'assistant',
};

function* unknownKeys(part: Part, known: object, path: string): Generator<string> {
  for (const key of Object.keys(part))
    if (!Object.hasOwn(known, key)) yield `${path}${key}: Extra inputs are not permitted`;
}

function* inSystem(system: unknown): Generator<string> {
  for (const [index, block] of partsOf(system).entries()) yield* inBlock(block, 'user', `system.${index}`);
}

function* inTools(tools: unknown): Generator<string> {
  const names: unknown[] = [];
  for (const [index, tool] of partsOf(tools).entries()) {
    const path = `tools.${index}.custom.`;
    yield* unknownKeys(tool, toolKeys, path);
    const { name, input_schema: schema } = tool;
    if (typeof name !== 'string' || !/^[a-zA-Z0-9_-]{1,128}$/.test(name))
      yield `${path}name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`;
    names.push(name);
    yield* inSchema(schema, `${path}input_schema`);
  }
  if (repeated(names) !== undefined) yield 'tools: Tool names must be unique.';
}

function* inSchema(schema: unknown, path: string): Generator<string> {
  if (!isPart(schema)) {
    yield `${path}: Field required`;
    return;
  }
  const { type, properties } = schema;
  if (type === undefined) yield `${path}.type: Field required`;
  else if (type !== 'object') yield `${path}.type: Input should be 'object'`;
  for (const word of ['oneOf', 'allOf', 'anyOf'])
    if (word in schema)
      yield `${path}: input_schema does not support oneOf, allOf, or anyOf at the top level`;
  if (properties !== undefined && !isPart(properties))
    yield `${path}: JSON schema is invalid. It must match JSON Schema draft 2020-12`;
  for (const key of isPart(properties) ? Object.keys(properties) : [])
    if (!/^[a-zA-Z0-9_.-]{1,64}$/.test(key))
      yield `${path}.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'`;
}

interface Turn {
  role: unknown;
  blocks: readonly Part[];
  path: string;
}

function* inMessages(messages: unknown): Generator<string> {
  const turns = partsOf(messages).map(({ role, content }, index): Turn => {
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : partsOf(content);
    return { role, blocks, path: `messages.${index}` };
  });
  const [first] = turns;
  if (!first) {
    yield 'messages: at least one message is required';
    return;
  }
  for (const { role, path } of turns)
    if (role !== 'user' && role !== 'assistant')
      yield `${path}.role: Unexpected role "${String(role)}". The Messages API takes "user" and "assistant".`;
  if (first.role !== 'user') yield 'messages: first message must use the "user" role';
  for (const [index, message] of partsOf(messages).entries()) {
    yield* unknownKeys(message, { role: true, content: true }, `messages.${index}.`);
    yield* inContent(message, turns[index]!, index === turns.length - 1);
  }
  yield* inCalls(joined(turns));
}

function* inContent({ content }: Part, { role, blocks, path }: Turn, isLast: boolean): Generator<string> {
  const isOptional = isLast && role === 'assistant';
  if (!isOptional && (content === '' || blocks.length === 0))
    yield `${path}: all messages must have non-empty content except for the optional final assistant message`;
  else
    for (const [at, block] of blocks.entries())
      if (!(isOptional && content === '')) yield* inBlock(block, String(role), `${path}.content.${at}`);
  const last = blocks.at(-1);
  if (isOptional && last?.['type'] === 'text' && /\s$/.test(String(last['text'])))
    yield 'messages: final assistant content cannot end with trailing whitespace';
}

function* inBlock(block: Part, role: string, path: string): Generator<string> {
  const { type } = block;
  if (!isKnown(type)) {
    yield `${path}: Input tag '${String(type)}' found using 'type' does not match any of the expected tags`;
    return;
  }
  if ((roleOf[type] ?? role) !== role)
    yield `${path}: \`${type}\` blocks can only be in \`${roleOf[type]}\` messages`;
  yield* unknownKeys(block, blockKeys[type], `${path}.${type}.`);
  if (type === 'text') yield* inText(block, path);
  else if (type === 'image') yield* inPicture(block['source'], `${path}.image.source.base64`);
  else if (type === 'tool_use') yield* inCall(block, path);
  else if (type === 'tool_result' && typeof block['content'] !== 'string')
    for (const [at, inner] of partsOf(block['content'] ?? []).entries())
      yield* inBlock(inner, 'user', `${path}.tool_result.content.${at}`);
  else if (type === 'thinking' && !block['signature'])
    yield `${path}: Invalid \`signature\` in \`thinking\` block`;
}

function* inText({ text, cache_control: mark }: Part, path: string): Generator<string> {
  if (typeof text !== 'string') yield `${path}.text.text: Input should be a valid string`;
  else if (text === '' && mark) yield `${path}.text: cache_control cannot be set for empty text blocks`;
  else if (text === '') yield `${path}: text content blocks must be non-empty`;
  else if (text.trim() === '') yield `${path}: text content blocks must contain non-whitespace text`;
}

function* inPicture(source: unknown, path: string): Generator<string> {
  const { type, media_type: mediaType, data } = isPart(source) ? source : {};
  if (type !== 'base64') return;
  if (!/^image\/(?:jpeg|png|gif|webp)$/.test(String(mediaType)))
    yield `${path}.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'`;
  const bytes = String(data ?? '').length;
  if (bytes === 0) yield `${path}: image cannot be empty`;
  if (bytes > mostPictureBytes)
    yield `${path}: image exceeds 5 MB maximum: ${bytes} bytes > ${mostPictureBytes} bytes`;
  if (sidesOf(String(data))?.some(side => side > longestSide))
    yield `${path}.data: At least one of the image dimensions exceed max allowed size: ${longestSide} pixels`;
}

function* inCall({ id, name, input }: Part, path: string): Generator<string> {
  if (!/^[a-zA-Z0-9_-]+$/.test(String(id)))
    yield `${path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`;
  if (typeof name !== 'string' || name.length < 1 || name.length > 200)
    yield `${path}.tool_use.name: String should have 1 to 200 characters`;
  if (!isPart(input)) yield `${path}.tool_use.input: Input should be a valid dictionary`;
}

/** Returns the turns as the API reads them: messages of one role that follow each other are one. */
function joined(turns: readonly Turn[]): Turn[] {
  const whole: Turn[] = [];
  for (const turn of turns) {
    const last = whole.at(-1);
    if (last && last.role === turn.role)
      whole[whole.length - 1] = { ...last, blocks: [...last.blocks, ...turn.blocks] };
    else whole.push(turn);
  }
  return whole;
}

/** Each call has one result in the very next message, before anything else there; each result has its call just before. */
function* inCalls(turns: readonly Turn[]): Generator<string> {
  const seen: unknown[] = [];
  for (const [index, { role, blocks, path }] of turns.entries()) {
    const calls = idsOf(blocks, 'tool_use', 'id');
    seen.push(...calls);
    const results = role === 'user' ? idsOf(blocks, 'tool_result', 'tool_use_id') : [];
    const before = idsOf(turns[index - 1]?.blocks ?? [], 'tool_use', 'id');
    const orphan = results.find(id => !before.includes(id));
    if (orphan !== undefined)
      yield `${path}.content: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${String(orphan)}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
    const twice = repeated(results);
    if (twice !== undefined)
      yield `${path}.content: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${String(twice)}`;
    const leading = blocks.findIndex(block => block['type'] !== 'tool_result');
    const answered = idsOf(leading < 0 ? blocks : blocks.slice(0, leading), 'tool_result', 'tool_use_id');
    const missing = before.filter(id => !answered.includes(id));
    if (role === 'user' && missing.length > 0) yield withoutResult(turns[index - 1]?.path, missing);
  }
  const open = idsOf(turns.at(-1)?.blocks ?? [], 'tool_use', 'id');
  if (open.length > 0) yield withoutResult(turns.at(-1)?.path, open);
  if (repeated(seen) !== undefined) yield 'messages: `tool_use` ids must be unique';
}

const withoutResult = (path: string | undefined, ids: readonly unknown[]): string =>
  `${path}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;

const idsOf = (blocks: readonly Part[], type: string, key: string): unknown[] =>
  blocks.filter(block => block['type'] === type).map(block => block[key]);

function* inMarks(body: Part): Generator<string> {
  const contents = partsOf(body['messages']).flatMap(({ content }) => partsOf(content));
  const inner = contents.flatMap(({ content }) => partsOf(content));
  const all = [body, ...partsOf(body['system']), ...partsOf(body['tools']), ...contents, ...inner];
  const marks = all.filter(({ cache_control: mark }) => mark).length;
  if (marks > mostMarks)
    yield `A maximum of ${mostMarks} blocks with cache_control may be provided. Found ${marks}.`;
}

function* inThinking({
  model,
  thinking,
  max_tokens: most,
  messages,
  tool_choice: choice,
}: Part): Generator<string> {
  const type = isPart(thinking) ? thinking['type'] : undefined;
  const isLatestSonnet = /^claude-sonnet-5-5/.test(String(model));
  if (type === 'disabled' && (isLatestSonnet || /^claude-(?:opus-5-5|fable|mythos)/.test(String(model))))
    yield '"thinking.type.disabled" is not supported for this model.';
  if (type === 'between_tools' && !isLatestSonnet)
    yield '"thinking.type.between_tools" is not supported for this model.';
  if (!isPart(thinking) || thinking['type'] !== 'enabled') return;
  const budget = Number(thinking['budget_tokens']);
  if (!(budget >= leastBudget))
    yield `thinking.enabled.budget_tokens: Input should be greater than or equal to ${leastBudget}`;
  if (!(budget < Number(most))) yield '`max_tokens` must be greater than `thinking.budget_tokens`.';
  if (isPart(choice) && (choice['type'] === 'any' || choice['type'] === 'tool'))
    yield 'Thinking may not be enabled when tool_choice forces tool use.';
  const turns = partsOf(messages);
  const at = turns.findLastIndex(({ role }) => role === 'assistant');
  const blocks = partsOf(turns[at]?.['content']);
  const first = String(blocks[0]?.['type']);
  if (blocks.some(({ type }) => type === 'tool_use') && !/thinking$/.test(first))
    yield `messages.${at}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block.`;
}
