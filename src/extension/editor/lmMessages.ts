/** Converts messages, which have Anthropic's form inside Telos, to the editor's language model API, and its calls back. */

import { type CompletionRequest, readToolCall } from '@telos/engine/providers';
import type { ContentBlock, JsonObject, Message, ToolCall, ToolResultBlock } from '@telos/protocol/run';
import * as vscode from 'vscode';

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
