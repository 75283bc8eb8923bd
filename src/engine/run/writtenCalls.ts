/** Reads tool calls that a model has written as text, since its server did not read them. Each is decided on like any other call. */
import type { JsonObject, Message, ToolCall } from '@telos/protocol/run';
import { blocksOf } from '../core/messages.ts';
import type { ToolDefinition } from '../core/ports.ts';
import { newCallId } from '../providers/provider.ts';
import { textOf } from './contextView.ts';

/** `unreadable` looks like a call and is none that can be carried out. */
export type WrittenCalls = { calls: readonly ToolCall[]; before: string } | 'unreadable' | undefined;

/** A call before its tool is looked up. Arguments are missing if they could not be read. */
interface Written {
  name: string;
  input: JsonObject | undefined;
}

/** One way in which models write calls: where they begin, and how to read all from there on. */
interface Form {
  begin: RegExp;
  read: (text: string) => readonly Written[] | undefined;
}

/**
 * Returns the calls with which a text ends, if all of them have one reading and name one of the tools. Undefined for a text that has no
 * call. What a tool has returned is never a call, even if the model repeats it.
 */
export function writtenCalls(
  text: string,
  tools: readonly ToolDefinition[],
  messages: readonly Message[],
): WrittenCalls {
  const said = text.replace(/^\s*<think>[\s\S]*?<\/think>/, '').trim();
  for (const { begin, read } of forms) {
    const start = said.search(begin);
    if (start === -1 || isInCode(said.slice(0, start))) continue;
    const tail = said.slice(start);
    const written = read(tail);
    if (!written) return 'unreadable';
    if (isRepeated(tail, messages)) return undefined;
    return found(written, said.slice(0, start).trimEnd(), tools);
  }
  const written = inJson(said);
  if (!written || isRepeated(written.text, messages)) return undefined;
  const calls = found(written.calls, written.before, tools);
  // Beside other words, JSON that names no tool is a part of the answer.
  return calls === 'unreadable' && written.before !== '' ? undefined : calls;
}

function found(written: readonly Written[], before: string, tools: readonly ToolDefinition[]): WrittenCalls {
  const calls = written.flatMap(({ name, input }): ToolCall[] =>
    input && tools.some(tool => tool.name === name) ? [{ id: newCallId(), name, input }] : [],
  );
  return calls.length > 0 && calls.length === written.length ? { calls, before } : 'unreadable';
}

const isInCode = (before: string): boolean =>
  before.split('```').length % 2 === 0 || /`[^`\n]*$/.test(before);

function isRepeated(text: string, messages: readonly Message[]): boolean {
  const plain = (words: string): string => words.replace(/\s+|<\/?tool_call>/g, '');
  const call = plain(text);
  return messages
    .flatMap(blocksOf)
    .some(block => block.type === 'tool_result' && plain(textOf(block)).includes(call));
}

const forms: readonly Form[] = [
  { begin: /<tool_call>/, read: text => inTags(text) },
  { begin: /<function=/, read: text => inFunctionTags(text) },
  { begin: /\[TOOL_CALLS\]/, read: text => afterMark(text.slice('[TOOL_CALLS]'.length).trim()) },
  { begin: /<\|tool_calls_section_begin\|>|<\|tool_call_begin\|>/, read: text => inTokens(text) },
  { begin: /<(?:\w+:)?(?:function_calls|invoke name=)/, read: text => inInvokeTags(text) },
  { begin: /<\|python_tag\|>/, read: text => callsOf(parsed(text.replace(tokens, ''))) },
  { begin: /<\|channel\|>commentary to=/, read: text => inChannel(text) },
  { begin: /<｜tool▁calls?▁begin｜>/, read: text => inSeparators(text) },
  // Python is read by no one here.
  { begin: /```tool_code\s*[^\s[{][\s\S]*```$/, read: () => undefined },
];

const tokens = /<\|(?:python_tag|eom_id|eot_id|im_end)\|>/g;

const invokeTags = /<(?:\w+:)?invoke name="([\w.-]+)">([\s\S]*?)<\/(?:\w+:)?invoke>/g;

/** `<invoke name="…">` with a tag for each argument, which Claude was taught. */
function inInvokeTags(text: string): Written[] | undefined {
  const rest = text.replace(invokeTags, '').replace(/<\/?(?:\w+:)?function_calls>/g, '');
  if (rest.trim() !== '') return undefined;
  return [...text.matchAll(invokeTags)].map(([, name = '', inner = '']) => ({
    name,
    input: parametersIn(
      inner
        .replace(/<(?:\w+:)?parameter name="([\w.-]+)">/g, '<parameter=$1>')
        .replace(/<\/\w+:parameter>/g, '</parameter>'),
    ),
  }));
}

const channelCall =
  /^<\|channel\|>commentary to=(?:functions\.)?([\w-]+)[^{]*(\{[\s\S]*\})\s*(?:<\|call\|>)?$/;

/** The channel in which gpt-oss calls. */
function inChannel(text: string): Written[] | undefined {
  const [, name, json] = channelCall.exec(text) ?? [];
  return name === undefined ? undefined : [{ name, input: argumentsOf(parsed(json ?? '')) }];
}

const separatedCalls =
  /<｜tool▁call▁begin｜>(?:function)?(?:<｜tool▁sep｜>)?([\w-]+)(?:<｜tool▁sep｜>)?\s*(?:```json)?\s*(\{[\s\S]*?\})\s*(?:```)?\s*<｜tool▁call▁end｜>/g;

/** The tokens of DeepSeek's templates, the older and the newer ones. */
function inSeparators(text: string): Written[] | undefined {
  const rest = text.replace(separatedCalls, '').replace(/<｜tool▁calls▁(?:begin|end)｜>/g, '');
  if (rest.trim() !== '') return undefined;
  return [...text.matchAll(separatedCalls)].map(([, name = '', json = '']) => ({
    name,
    input: argumentsOf(parsed(json)),
  }));
}

/** `<tool_call>{…}</tool_call>`, also several of them, or with the tags of a function inside. */
function inTags(text: string): Written[] | undefined {
  const parts = text.split(/<tool_call>/).slice(1);
  const calls = parts.map(part => {
    const inner = part.replace(/<\/tool_call>\s*$/, '').trim();
    return inner.startsWith('<function=') ? inFunctionTags(inner) : callsOf(parsed(inner));
  });
  return calls.every(each => each !== undefined) ? calls.flat() : undefined;
}

const functionTags = /<function=([\w.-]+)>([\s\S]*?)<\/function>/g;

/** `<function=name>{…}</function>`, or a tag for each argument in place of the JSON. */
function inFunctionTags(text: string): Written[] | undefined {
  const rest = text.replace(functionTags, '').replace(/<\/tool_call>/g, '');
  if (rest.trim() !== '') return undefined;
  return [...text.matchAll(functionTags)].map(([, name = '', inner = '']) => ({
    name,
    input: /<parameter=/.test(inner) ? parametersIn(inner) : argumentsOf(parsed(inner.trim() || '{}')),
  }));
}

const parameterTags = /<parameter=([\w.-]+)>\n?([\s\S]*?)\n?<\/parameter>/g;

function parametersIn(text: string): JsonObject | undefined {
  if (text.replace(parameterTags, '').trim() !== '') return undefined;
  return Object.fromEntries(
    [...text.matchAll(parameterTags)].map(([, name = '', value = '']) => [name, valueIn(value)]),
  );
}

/** Numbers, lists and objects are what they look like. Any other value is a text. */
function valueIn(text: string): unknown {
  return /^(?:-?\d+(?:\.\d+)?|true|false|[[{][\s\S]*[\]}])$/.test(text) ? (parsed(text) ?? text) : text;
}

/** `[TOOL_CALLS][{…}]`, `[TOOL_CALLS]name{…}` or `[TOOL_CALLS]name[ARGS]{…}`. */
function afterMark(text: string): Written[] | undefined {
  const named = /^([\w.-]+)\s*(?:\[ARGS\])?\s*(\{[\s\S]*\})$/.exec(text);
  if (named) return [{ name: named[1]!, input: argumentsOf(parsed(named[2]!)) }];
  return callsOf(parsed(text));
}

const tokenCalls =
  /<\|tool_call_begin\|>\s*(?:functions\.)?([\w-]+)(?::\d+)?\s*<\|tool_call_argument_begin\|>([\s\S]*?)<\|tool_call_end\|>/g;

/** The tokens of Kimi's template. */
function inTokens(text: string): Written[] | undefined {
  const rest = text.replace(tokenCalls, '').replace(/<\|tool_calls_section_(?:begin|end)\|>/g, '');
  if (rest.trim() !== '') return undefined;
  return [...text.matchAll(tokenCalls)].map(([, name = '', json = '']) => ({
    name,
    input: argumentsOf(parsed(json.trim())),
  }));
}

/** JSON that is the whole text, or in the only block of code at its end. */
function inJson(said: string): { calls: Written[]; before: string; text: string } | undefined {
  const block = /^((?:(?!```)[\s\S])*)```(?:json|tool_call|tool_code)?\s*([[{][\s\S]*[\]}])\s*```$/.exec(
    said,
  );
  const [before, text] = block ? [block[1]!.trim(), block[2]!] : ['', said];
  if (!/^[[{]/.test(text)) return undefined;
  const calls = callsOf(parsed(text));
  return calls && { calls, before, text };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the calls of a JSON value: one object or a list of them, each with a name, its arguments and nothing else. */
function callsOf(value: unknown): Written[] | undefined {
  const all = Array.isArray(value) ? value : [value];
  const calls = all.map(callOf);
  return calls.length > 0 && calls.every(each => each !== undefined) ? calls : undefined;
}

function callOf(value: unknown): Written | undefined {
  if (!isObject(value)) return undefined;
  const { function: inner, type: _type, id: _id, ...own } = value;
  const { name, arguments: given, parameters = given, ...others } = isObject(inner) ? inner : own;
  if (typeof name !== 'string' || parameters === undefined || Object.keys(others).length > 0)
    return undefined;
  return { name, input: argumentsOf(parameters) };
}

/** Some models write the arguments as JSON in a text. */
function argumentsOf(value: unknown): JsonObject | undefined {
  const given = typeof value === 'string' ? parsed(value) : value;
  return isObject(given) ? given : undefined;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
