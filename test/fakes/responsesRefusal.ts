/** Says what OpenAI's Responses API would refuse in a request, in its words. */
import { inFunctions, inName } from './chatRefusal.ts';
import { hasUnpairedSurrogate, isPart, type Part, partsOf, repeated } from './refusals.ts';

const longestId = 64;
const leastTokens = 16;

/** Returns the first thing that the API would refuse, or undefined for a request that it takes. */
export function responsesRefusal(body: unknown): string | undefined {
  if (!isPart(body) || hasUnpairedSurrogate(body))
    return 'Invalid body: failed to parse JSON value. Please check the value to ensure it is valid JSON.';
  const [message] = refusals(body);
  return message;
}

function* refusals(body: Part): Generator<string> {
  if (typeof body['model'] !== 'string') yield "Missing required parameter: 'model'.";
  const most = body['max_output_tokens'];
  if (most !== undefined && !(Number(most) >= leastTokens))
    yield `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= ${leastTokens}, but got ${String(most)} instead.`;
  yield* inFunctions(body['tools'], tool => tool, '');
  const { input } = body;
  if (typeof input === 'string') return;
  const items = partsOf(input);
  if (items.length === 0) yield "Invalid 'input': empty array. Expected an array with minimum length 1.";
  for (const [index, item] of items.entries()) yield* inItem(item, `input[${index}]`);
  yield* inPairs(items);
  yield* inReasoning(items);
}

function* inItem(item: Part, path: string): Generator<string> {
  const { role, type = 'message', content } = item;
  if (type === 'function_call') yield* inName(String(item['name'] ?? ''), `${path}.name`);
  if (type === 'function_call' && typeof item['arguments'] !== 'string')
    yield `Missing required parameter: '${path}.arguments'.`;
  if (type === 'function_call' || type === 'function_call_output') {
    const id = String(item['call_id'] ?? '');
    if (id.length < 1 || id.length > longestId)
      yield `Invalid '${path}.call_id': string too long. Expected a string with maximum length ${longestId}, but got a string with length ${id.length} instead.`;
  }
  const output = item['output'];
  if (type === 'function_call_output' && typeof output !== 'string' && !Array.isArray(output))
    yield `Missing required parameter: '${path}.output'.`;
  if (type !== 'message') return;
  if (!['user', 'assistant', 'system', 'developer'].includes(String(role)))
    yield `Invalid value: '${String(role)}'. Supported values are: 'assistant', 'system', 'developer', and 'user'.`;
  if (typeof content !== 'string' && partsOf(content).length === 0)
    yield `Invalid '${path}.content': empty array. Expected an array with minimum length 1.`;
  for (const [at, part] of partsOf(content).entries()) {
    const taken = role === 'assistant' ? /^(?:output_text|refusal)$/ : /^input_(?:text|image|file)$/;
    if (!taken.test(String(part['type'])))
      yield `Invalid value: '${String(part['type'])}' at '${path}.content[${at}].type'.`;
  }
}

/** Calls and their outputs are paired by id, wherever they stand. */
function* inPairs(items: readonly Part[]): Generator<string> {
  const idsOf = (type: string): unknown[] =>
    items.filter(item => item['type'] === type).map(item => item['call_id']);
  const [calls, outputs] = [idsOf('function_call'), idsOf('function_call_output')];
  const open = calls.find(id => !outputs.includes(id));
  if (open !== undefined) yield `No tool output found for function call ${String(open)}.`;
  const orphan = outputs.find(id => !calls.includes(id));
  if (orphan !== undefined)
    yield `No tool call found for function call output with call_id ${String(orphan)}.`;
  for (const ids of [calls, outputs]) {
    const twice = repeated(ids);
    if (twice !== undefined)
      yield `Duplicate item found with id ${String(twice)}. Remove duplicate items from your input and try again.`;
  }
}

/** A reasoning comes with its seal, and with what it led to. */
function* inReasoning(items: readonly Part[]): Generator<string> {
  for (const [index, item] of items.entries()) {
    if (item['type'] !== 'reasoning') continue;
    const next = items.slice(index + 1).find(each => each['type'] !== 'reasoning');
    if (!next || (next['role'] !== 'assistant' && next['type'] !== 'function_call'))
      yield `Item '${String(item['id'])}' of type 'reasoning' was provided without its required following item.`;
    if (!item['encrypted_content'])
      yield `Item with id '${String(item['id'])}' not found. Items are not persisted when \`store\` is set to false.`;
  }
}
