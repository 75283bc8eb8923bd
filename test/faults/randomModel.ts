/** A model that answers at random: calls of every kind, words, summaries, and answers that break off, from the real server's side. */
import type { AnthropicTurn } from '../fakes/anthropicServer.ts';
import type { ReceivedRequest } from '../fakes/loopback.ts';

/** Draws from numbers between 0 and 1. */
export interface Dice {
  /** A whole number from 0 up to, without, `limit`. */
  below(limit: number): number;
  /** True once in `times`. */
  oneIn(times: number): boolean;
  oneOf<Value>(values: readonly Value[]): Value;
}

export function diceOf(random: () => number): Dice {
  const below = (limit: number): number => Math.floor(random() * limit);
  return {
    below,
    oneIn: times => below(times) === 0,
    oneOf: values => values[below(values.length)]!,
  };
}

export const smallPicture = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

/** What the calls find: long and short texts, characters of two units, a picture, and a second skill. */
export const modelFiles: Readonly<Record<string, string | Uint8Array>> = {
  'work/big.txt': 'a line of words 😀 with some more of them\n'.repeat(400),
  'work/a.txt': 'small',
  'work/p.png': smallPicture,
  'skills/kairos/skills/helper/SKILL.md': '---\ndescription: Helps with a step\n---\nHelp.\n',
};

export type Call = NonNullable<AnthropicTurn['toolCalls']>[number];

export const usualCalls: readonly Call[] = [
  { name: 'read_file', input: { path: 'big.txt' } },
  { name: 'read_file', input: { path: 'big.txt' } },
  { name: 'read_file', input: { path: 'a.txt' } },
  { name: 'read_file', input: { path: 'p.png' } },
  { name: 'list_directory', input: { path: '.' } },
  { name: 'glob', input: { pattern: '*' } },
  { name: 'search_files', input: { pattern: 'words' } },
  { name: 'run_command', input: { command: 'echo hi' } },
  { name: 'use_skill', input: { skill: 'kairos:helper', request: 'help' } },
  { name: 'update_todos', input: { todos: [{ text: 'one', status: 'pending' }] } },
  { name: 'nonsense', input: {} },
  { name: 'read_file', json: '{"path": "a.t' },
];

/** The words with which the engine asks for a summary, and with which it is known. */
const asksForSummary = /about to be compacted/;

/** Returns an answer to the request. Its count of tokens is near the truth, so that a small context fills. */
export function randomTurn(
  dice: Dice,
  { body, bytes }: ReceivedRequest,
  calls: readonly Call[] = usualCalls,
): AnthropicTurn {
  const usage = { input_tokens: Math.ceil(bytes / 4), output_tokens: 20 };
  const isSummary = asksForSummary.test(JSON.stringify(body.messages.at(-1)).slice(-3_000));
  if (isSummary) return { usage, text: [dice.oneIn(5) ? '' : 'The summary so far. '.repeat(10)] };
  const thinking = dice.oneIn(5) && {
    thinking: [{ thinking: 'I think.', signature: `s${dice.below(1e9)}` }],
  };
  const kind = dice.below(16);
  if (kind < 11) {
    const toolCalls = Array.from({ length: 1 + dice.below(3) }, () => {
      const call = {
        ...dice.oneOf([
          ...calls,
          { name: 'write_file', input: { path: 'o.txt', content: `${dice.below(1e9)}` } },
        ]),
      };
      return dice.oneIn(4) ? { ...call, id: 'same' } : call;
    });
    const stopReason = dice.oneIn(25) && { stopReason: 'max_tokens' };
    return { usage, ...thinking, ...(dice.oneIn(2) && { text: ['So ', '😀. '] }), toolCalls, ...stopReason };
  }
  if (kind === 11) return { usage, ...thinking, text: ['half ', 'an answer'], ...brokenOff(dice) };
  if (kind === 12) return { usage, text: ['cut'], stopReason: dice.oneOf(['max_tokens', 'refusal']) };
  return { usage, ...thinking, text: [dice.oneIn(6) ? '' : 'That is done.'] };
}

/** The connection is lost somewhere, or falls silent, or the server says that it has a problem. */
function brokenOff(dice: Dice): AnthropicTurn {
  const cutAfterBytes = 1 + dice.below(900);
  return dice.oneOf<AnthropicTurn>([
    { cutAfterBytes },
    { cutAfterBytes, cutBy: 'end' },
    { cutAfterBytes, cutBy: 'silence' },
    { streamError: { type: 'overloaded_error', message: 'Overloaded' } },
    { status: 529 },
  ]);
}
