/** Reads the arguments of a tool call, which models now and then get wrong. */
import type { JsonObject, ToolCall } from '../../protocol/run.ts';

/** Lists and objects inside each other. What goes through them goes down step by step, and no tool takes so many. */
const deepest = 100;

/** The call as it is, or one without its arguments where those go too deep for anything to be done with them, kept or shown. */
export function withoutDepth(call: ToolCall): ToolCall {
  if (!isDeeper(call.input, deepest)) return call;
  const problem = `The arguments hold more than ${deepest} lists and objects inside each other. Give them flat.`;
  return { ...call, input: {}, problem };
}

const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some(inner => isDeeper(inner, levels - 1)));

/** `json` is the model's text, whole; no text means no arguments. What cannot be read leaves `input` empty and says so in `problem`. */
export function readToolCall(id: string, name: string, json: string): ToolCall {
  if (json.trim() === '') return { id, name, input: {} };
  try {
    const input: unknown = JSON.parse(json);
    if (typeof input === 'object' && input !== null && !Array.isArray(input)) {
      return { id, name, input: input as JsonObject };
    }
    return { id, name, input: {}, problem: 'The arguments must be one JSON object.' };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { id, name, input: {}, problem: `The arguments are not valid JSON: ${reason}` };
  }
}
