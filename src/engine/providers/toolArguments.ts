/** Reads the arguments of a tool call, which models now and then get wrong. */
import type { JsonObject, ToolCall } from '../../protocol/run.ts';

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
