/** Says what OpenAI's chat completions would refuse in a request, in its words. */
import { hasUnpairedSurrogate, isPart, type Part, partsOf, repeated } from './refusals.ts';

const mostTools = 128;
const longestName = 64;
const longestId = 40;
const mostBytes = 50 * 1024 * 1024;

/** Returns the first thing that the API would refuse, or undefined for a request that it takes. `bytes` is the length of the body. */
export function chatRefusal(body: unknown, bytes: number): string | undefined {
  if (bytes > mostBytes) return `Invalid body: the request is larger than ${mostBytes} bytes.`;
  if (!isPart(body) || hasUnpairedSurrogate(body))
    return 'Invalid body: failed to parse JSON value. Please check the value to ensure it is valid JSON.';
  const [message] = refusals(body);
  return message;
}

function* refusals(body: Part): Generator<string> {
  if (typeof body['model'] !== 'string') yield 'you must provide a model parameter';
  // A slash is in the name of another maker's model, which another server answers for.
  if (/^(?:o\d|gpt-(?:[5-9]|\d\d))/.test(String(body['model'])) && body['max_tokens'] !== undefined)
    yield "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
  yield* inFunctions(body['tools'], tool => tool['function'], 'function.');
  const messages = partsOf(body['messages']);
  if (messages.length === 0)
    yield "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.";
  for (const [index, message] of messages.entries()) yield* inMessage(message, `messages[${index}]`);
  yield* inCalls(messages);
}

/** Checks the tools of both of OpenAI's formats. `partOf` returns the part with the name and the schema, which `path` leads to. */
export function* inFunctions(
  tools: unknown,
  partOf: (tool: Part) => unknown,
  path: string,
): Generator<string> {
  const list = partsOf(tools);
  if (list.length > mostTools)
    yield `Invalid 'tools': array too long. Expected an array with maximum length ${mostTools}, but got an array with length ${list.length} instead.`;
  if (Array.isArray(tools) && list.length === 0)
    yield "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.";
  const names: string[] = [];
  for (const [index, tool] of list.entries()) {
    const part = partOf(tool);
    const { name, parameters } = isPart(part) ? part : {};
    yield* inName(String(name ?? ''), `tools[${index}].${path}name`);
    names.push(String(name));
    if (parameters === undefined) continue;
    const { type, properties } = isPart(parameters) ? parameters : {};
    if (type !== 'object' || (properties !== undefined && !isPart(properties)))
      yield `Invalid schema for function '${name}': schema must be a JSON Schema of 'type: "object"', got 'type: "${String(type ?? 'None')}"'.`;
  }
  const twice = repeated(names);
  if (twice !== undefined) yield `Invalid 'tools': tool names must be unique, but '${twice}' is there twice.`;
}

/** Checks the name of a tool, in its declaration or in a call. */
export function* inName(name: string, path: string): Generator<string> {
  if (name.length > longestName)
    yield `Invalid '${path}': string too long. Expected a string with maximum length ${longestName}, but got a string with length ${name.length} instead.`;
  if (!/^[a-zA-Z0-9_-]+$/.test(name))
    yield `Invalid '${path}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`;
}

const roles = ['system', 'developer', 'user', 'assistant', 'tool'];

function* inMessage(message: Part, path: string): Generator<string> {
  const { role, content, tool_calls: calls } = message;
  if (!roles.includes(String(role)))
    yield `Invalid value: '${String(role)}'. Supported values are: ${roles.map(each => `'${each}'`).join(', ')}.`;
  if (Array.isArray(content) && content.length === 0)
    yield `Invalid '${path}.content': empty array. Expected an array with minimum length 1, but got an empty array instead.`;
  const isOptional = role === 'assistant' && calls !== undefined;
  if (!isOptional && typeof content !== 'string' && !Array.isArray(content))
    yield `Invalid value for 'content': expected a string, got ${content === null ? 'null' : typeof content}.`;
  for (const [at, part] of partsOf(content).entries()) yield* inPart(part, role, `${path}.content[${at}]`);
  if (calls === undefined) return;
  if (partsOf(calls).length === 0)
    yield `Invalid '${path}.tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.`;
  for (const [at, call] of partsOf(calls).entries()) yield* inCall(call, `${path}.tool_calls[${at}]`);
}

function* inPart({ type, image_url: image, text }: Part, role: unknown, path: string): Generator<string> {
  const isTaken = type === 'text' || (role === 'user' && (type === 'image_url' || type === 'file'));
  if (!isTaken) yield `Invalid value: '${String(type)}' at '${path}.type' in a message of role '${role}'.`;
  if (type === 'text' && typeof text !== 'string') yield `Missing required parameter: '${path}.text'.`;
  const url = isPart(image) ? String(image['url']) : '';
  if (
    type === 'image_url' &&
    !/^(?:https?:|data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$)/.test(url)
  )
    yield `Invalid '${path}.image_url.url': you uploaded an unsupported image. Please make sure your image is valid.`;
}

function* inCall(call: Part, path: string): Generator<string> {
  const given = isPart(call['function']) ? call['function'] : {};
  yield* inName(String(given['name'] ?? ''), `${path}.function.name`);
  if (typeof given['arguments'] !== 'string')
    yield `Missing required parameter: '${path}.function.arguments'.`;
  const id = String(call['id'] ?? '');
  if (id.length < 1 || id.length > longestId)
    yield `Invalid '${path}.id': string too long. Expected a string with maximum length ${longestId}, but got a string with length ${id.length} instead.`;
}

/** The messages of role `tool` follow their calls at once, one for each. */
function* inCalls(messages: readonly Part[]): Generator<string> {
  let open: unknown[] = [];
  let answered: unknown[] = [];
  for (const [index, { role, tool_call_id: id, tool_calls: calls }] of messages.entries()) {
    if (role === 'tool') {
      if (answered.includes(id)) yield `Duplicate value for 'tool_call_id' of '${id}' in message[${index}]`;
      else if (!open.includes(id))
        yield `Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'. (messages.[${index}].role)`;
      open = open.filter(each => each !== id);
      answered.push(id);
      continue;
    }
    if (open.length > 0) break;
    open = partsOf(calls).map(call => call['id']);
    answered = [];
    if (repeated(open) !== undefined) yield `Duplicate value for 'id' in messages[${index}].tool_calls`;
  }
  if (open.length > 0)
    yield `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${open.join(', ')}`;
}
