/** Knows when a turn of a model is no answer, asks for one, and says how a run without any ends. */
import type { ContentBlock, Message } from '@telos/protocol/run';
import { type Sentence, sentence } from '@telos/protocol/text';
import { TelosError } from './errors.ts';
import { addText, reminderMark } from './messages.ts';

/** Why a turn without calls is no answer. `unfinished`: the model or its server stopped before the end. */
export type Gap = 'empty' | 'thoughts' | 'written_call' | 'refused' | 'unfinished';

/** Reasons for which an answer ended too early, whatever it says. */
const early: readonly string[] = [
  ...['error', 'abort', 'aborted', 'cancelled', 'other', 'pause_turn', 'insufficient_system_resource'],
  'network_error',
];

/** Returns true if the server says that calls end the turn. Without any, they have not arrived, or the server says so each time. */
export const isCallless = (stopReason: string): boolean =>
  ['tool_use', 'tool_calls', 'function_call'].includes(stopReason);

/** Returns true if what ended for that reason was refused or cut, or its server broke it off. */
export const isEarly = (stopReason: string): boolean =>
  ['refusal', 'max_tokens', 'model_context_window_exceeded', ...early].includes(stopReason);

/** Returns true if nobody can read a word: marks without a width and what ends as a thought are none. */
export const isSilent = (blocks: readonly ContentBlock[]): boolean =>
  blocks.every(block => block.type !== 'text' || block.text.replace(unread, '') === '');

const unread = /^[\s\S]*<\/think(?:ing)?>|[\s\p{Cf}\p{Cc}]/gu;

/** Returns why a turn without calls is no answer. Undefined for an answer. */
export function gapOf(
  {
    blocks,
    stopReason,
    hasThought,
  }: { blocks: readonly ContentBlock[]; stopReason: string; hasThought: boolean },
  isWrittenCall: boolean,
): Gap | undefined {
  if (stopReason === 'refusal') return 'refused';
  if (isWrittenCall) return 'written_call';
  if (isSilent(blocks)) return hasThought ? 'thoughts' : 'empty';
  return early.includes(stopReason) || isCallless(stopReason) ? 'unfinished' : undefined;
}

const reminders: Readonly<Record<Gap, string>> = {
  empty: 'Your last turn was empty. Go on with the work, or answer now.',
  thoughts: 'Your last turn had thoughts alone, which no one reads. Go on with the work, or answer now.',
  written_call:
    'Your last turn had a tool call as text, which was not carried out. Call one of your tools as a tool call, or answer in words.',
  refused:
    'Your last turn was a refusal or was held back. Do the part of the request that you can do, or say in words why you cannot.',
  unfinished: 'Your last turn ended too early. Go on with the work, or answer now.',
};

/**
 * Asks the model for an answer. Words that the turn had are kept before that, but not those of a refusal, which would only lead to another
 * one.
 */
export function remind(messages: Message[], blocks: readonly ContentBlock[], gap: Gap): void {
  if (gap !== 'refused' && !isSilent(blocks)) messages.push({ role: 'assistant', content: [...blocks] });
  addText(messages, `${reminderMark}${reminders[gap]}]`);
}

const happened: Readonly<Record<Gap, (model: string) => Sentence>> = {
  empty: model => sentence('{0} returned an empty answer.', model),
  thoughts: model => sentence('{0} only thought, and gave no answer.', model),
  written_call: model => sentence('{0} wrote a tool call as text, which cannot be carried out.', model),
  refused: () => sentence('The model declined to continue.'),
  unfinished: model => sentence('{0} ended its answer too early.', model),
};

const next: Readonly<Record<Gap, Sentence>> = {
  empty: sentence('Ask again, or choose another model.'),
  thoughts: sentence('Ask again, lower the effort, or choose another model.'),
  written_call: sentence(
    'Switch on tool calls at the server ({0}), or choose a model that has tools.',
    'llama.cpp: --jinja; vLLM: --enable-auto-tool-choice --tool-call-parser; SGLang: --tool-call-parser',
  ),
  refused: sentence('Rephrase the request, or choose another model.'),
  unfinished: sentence('Ask again, or choose another model.'),
};

/** Returns what the person is told while the model is asked once more. */
export const askedAgain = (gap: Gap, model: string): readonly Sentence[] => [
  happened[gap](model),
  sentence('It is asked once more.'),
];

/** Returns the error of a run whose model has given no answer twice. */
export const noAnswer = (gap: Gap, model: string): TelosError =>
  new TelosError('no_answer', [
    happened[gap](model),
    sentence('It was asked twice, so this run has no answer.'),
    next[gap],
  ]);
