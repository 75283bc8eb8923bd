/** Reads a stream of a case as a provider means it, without the product. */
import { type Fields, fieldsOf } from './caseFile.ts';
import type { WireAnswer } from './wire.ts';

export interface Script {
  /** Declared as a stream of events. */
  isStream: boolean;
  /** Its last event is the one that ends a message, and all before it is in order. */
  isWhole: boolean;
  events: number;
  text: string;
  /** Without `input`, the arguments are not a JSON object. */
  calls: { id: string; name: string; input?: Fields }[];
  stop?: string;
  /** Of an event that reports an error; else empty. */
  error: string;
}

export function readScript({ headers, chunks, status }: WireAnswer, dialect: 'anthropic' | 'openai'): Script {
  const type = Object.entries(headers).findLast(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? '';
  const isStream = status === 200 && type.includes('event-stream');
  const all = Buffer.concat([...chunks])
    .toString('utf8')
    .replace(/\r\n?/g, '\n');
  // Text after the last empty line is not an event.
  const lines = all
    .split(/\n\n+/)
    .slice(0, -1)
    .flatMap(block => dataOf(block));
  const script: Script = { isStream, isWhole: false, events: lines.length, text: '', calls: [], error: '' };
  if (!isStream) return script;
  const events = lines.map(line => parsed(line));
  return dialect === 'anthropic'
    ? ofAnthropic(script, events)
    : ofOpenai(script, events, lines.includes('[DONE]'));
}

function dataOf(block: string): string[] {
  const data = block
    .split('\n')
    .flatMap(line => (line.startsWith('data:') ? [line.slice(5).replace(/^ /, '')] : []));
  return data.length > 0 ? [data.join('\n')] : [];
}

function parsed(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Fields)
      : undefined;
  } catch {
    return undefined;
  }
}

const callOf = (id: unknown, name: unknown, json: string): Script['calls'][number] => {
  const input = json === '' ? {} : parsed(json);
  return { id: String(id), name: String(name), ...(input ? { input } : {}) };
};

function ofAnthropic(script: Script, events: readonly (Fields | undefined)[]): Script {
  const open = new Map<unknown, { id: unknown; name: unknown; json: string }>();
  for (const event of events) {
    if (event === undefined) continue;
    const { type, index } = event;
    const [block, delta] = [fieldsOf(event['content_block']), fieldsOf(event['delta'])];
    if (type === 'error') script.error = String(fieldsOf(event['error'])['message']);
    if (type === 'content_block_start' && block['type'] === 'tool_use')
      open.set(index, { id: block['id'], name: block['name'], json: '' });
    if (delta['type'] === 'text_delta') script.text += String(delta['text']);
    const call = open.get(index);
    if (delta['type'] === 'input_json_delta' && call) call.json += String(delta['partial_json']);
    if (type === 'message_delta' && delta['stop_reason']) script.stop = String(delta['stop_reason']);
    if (type === 'message_stop') script.isWhole = script.error === '';
  }
  script.calls = [...open.values()].map(({ id, name, json }) => callOf(id, name, json));
  return script;
}

function ofOpenai(script: Script, events: readonly (Fields | undefined)[], isDone: boolean): Script {
  const open = new Map<unknown, { id: unknown; name: unknown; json: string }>();
  for (const event of events) {
    if (event?.['error']) script.error = String(fieldsOf(event['error'])['message']);
    const [choice] = Array.isArray(event?.['choices']) ? event['choices'].map(fieldsOf) : [];
    const delta = fieldsOf(choice?.['delta']);
    script.text += String(delta['content'] ?? '');
    for (const one of Array.isArray(delta['tool_calls']) ? delta['tool_calls'].map(fieldsOf) : []) {
      const at = one['index'] ?? 0;
      const made = fieldsOf(one['function']);
      const call = open.get(at) ?? { id: one['id'], name: made['name'], json: '' };
      call.json += String(made['arguments'] ?? '');
      open.set(at, call);
    }
    if (choice?.['finish_reason']) script.stop = String(choice['finish_reason']);
  }
  script.calls = [...open.values()].map(({ id, name, json }) => callOf(id, name, json));
  script.isWhole = script.error === '' && (isDone || script.stop !== undefined) && events.length > 0;
  return script;
}
