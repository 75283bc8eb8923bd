/** Reads the arguments of a tool call, which models now and then get wrong. */
import type { JsonObject, ToolCall } from '../../protocol/run.ts';
import { deepestJson, isDeeper } from '../jsonDepth.ts';

/** The call as it is, or one without its arguments where those go too deep for anything to be done with them, kept or shown. */
export function withoutDepth(call: ToolCall): ToolCall {
  if (!isDeeper(call.input)) return call;
  const problem = `The arguments hold more than ${deepestJson} lists and objects inside each other. Give them flat.`;
  return { ...call, input: {}, problem };
}

/** `json` is the model's text, whole; no text means no arguments. What cannot be read leaves `input` empty and says so in `problem`. */
export function readToolCall(id: string, name: string, json: string): ToolCall {
  if (json.trim() === '') return { id, name, input: {} };
  try {
    const input: unknown = JSON.parse(json);
    if (typeof input === 'object' && input !== null && !Array.isArray(input)) {
      return withoutDepth({ id, name, input: input as JsonObject });
    }
    return { id, name, input: {}, problem: 'The arguments must be one JSON object.' };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { id, name, input: {}, problem: `The arguments are not valid JSON: ${reason}` };
  }
}
