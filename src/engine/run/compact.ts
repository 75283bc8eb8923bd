/**
 * Makes room in what the model is sent: leaves out old tool results, then has the model summarize the conversation. Nothing is lost
 * from the transcript. Loaded only when a conversation is about to fill the model's context.
 */
import type { ContentBlock, Message, RunEvent } from '@telos/protocol/run';
import { asMessage, type Sentence, sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import { blocksOf } from '../core/messages.ts';
import { gapOf } from '../core/noAnswer.ts';
import type { Budget, CompletionRequest, Provider, TokenCount } from '../core/ports.ts';
import { cutMiddle } from '../files/plainText.ts';
import { wholeWindowOf } from '../providers/contextWindow.ts';
import { type ContextMeter, messageCharacters } from './contextMeter.ts';
import { type ContextView, compactionIn, joined, sentMessages, textOf, viewOf } from './contextView.ts';
import type { ContextChange } from './request.ts';
import type { RunHooks } from './runHooks.ts';

/** Shares of the limit. Room is made in steps, so that the prompts in between begin alike and a provider's cache finds them. */
const trimmedTo = 0.4;
const compactedFrom = 0.65;
/** Share that the latest messages may have, which are kept as they are. */
const keptShare = 0.15;
/** Share that the person's words may have beside a summary. */
const wordsShare = 0.3;
/** Shorter results are not left out. In characters. */
const smallestTrimmed = 2_000;
/** The latest messages, whose results are not left out unless the prompt was refused. */
const untouched = 4;
const longestSummary = 8_192;

/** The parts of a run that are needed. `request` returns what would be sent of these messages. */
export interface Room {
  spec: {
    provider: Provider;
    messages: Message[];
    window?: number | undefined;
    budget?: Budget | undefined;
    hooks?: Pick<RunHooks, 'beforeSummary'> | undefined;
    /** Hides secrets in what a model has written for itself. */
    redact?: (text: string) => string;
  };
  meter: ContextMeter;
  request(messages: readonly Message[]): CompletionRequest;
  /** Counts the use of a question beside the conversation. */
  used(tokens: TokenCount | undefined): Iterable<RunEvent>;
}

/** Makes room before the next round. `isRefused` is true if the server has refused the prompt, so that no result is spared. */
export async function* makeRoom(
  room: Room,
  signal: AbortSignal,
  isRefused = false,
): AsyncGenerator<RunEvent, void> {
  const { meter } = room;
  const limit = meter.limit ?? 0;
  if (!isRefused) yield* sayWholeWindow(room);
  yield* trim(room, isRefused ? 0 : untouched);
  if (tokensNow(room) <= limit * compactedFrom) return;
  if (meter.summaryFailed && !isRefused) return;
  const held =
    !isRefused && room.spec.hooks ? yield* room.spec.hooks.beforeSummary('auto', signal) : undefined;
  if (held !== undefined) {
    meter.summaryFailed = true;
    return yield notice('warning', [
      sentence('A hook does not let the conversation be summarized: {0}', held),
    ]);
  }
  const problem = yield* compact(room, { focus: '', keep: limit * keptShare }, signal);
  if (!problem) return;
  // A model that refuses once refuses again, and each time costs a whole prompt.
  meter.summaryFailed = true;
  yield notice('warning', [...problem, sentence('Only old tool results are left out.')]);
}

/** Says once that the model takes more, where room is made because more would cost more. */
function* sayWholeWindow({ spec: { provider, window }, meter }: Room): Generator<RunEvent, void> {
  const whole = wholeWindowOf(provider, window);
  if (whole === undefined || window === undefined || meter.wholeSaid) return;
  meter.wholeSaid = true;
  yield notice('info', [
    sentence(
      'Longer prompts of {0} cost more, so it is sent {1} tokens at most. TELOS_CONTEXT_WINDOW=full allows {2}.',
      provider.model,
      window,
      whole,
    ),
  ]);
}

const tokensNow = ({ spec, meter, request }: Room): number =>
  meter.tokensOf(request(sentMessages(spec.messages)));

/** Leaves out large results, the oldest first, until much of the room is free. */
function* trim(room: Room, spared: number): Generator<RunEvent, void> {
  const { spec, meter } = room;
  const before = tokensNow(room);
  const tooMuch = meter.characters(before - (meter.limit ?? 0) * trimmedTo);
  const sent = sentMessages(spec.messages);
  const calls: string[] = [];
  let freed = 0;
  for (const block of sent.slice(0, Math.max(0, sent.length - spared)).flatMap(blocksOf)) {
    if (freed >= tooMuch) break;
    if (block.type !== 'tool_result') continue;
    const characters = messageCharacters({ role: 'user', content: [block] });
    if (characters < smallestTrimmed) continue;
    calls.push(block.tool_use_id);
    freed += characters;
  }
  if (calls.length === 0) return;
  spec.messages.push({ role: 'user', content: '', context: { kind: 'trimmed', calls } });
  yield notice('info', [
    calls.length === 1
      ? sentence('To save room, the model is no longer sent 1 old tool result.')
      : sentence('To save room, the model is no longer sent {0} old tool results.', calls.length),
  ]);
}

/** Share of the conversation that a summary on demand leaves as it is. */
const keptOnDemand = 0.05;

/** Does what the person wants with the conversation, and says if there is nothing to do. Throws TelosError if it cannot be done. */
export async function* changeContext(
  room: Room,
  change: ContextChange,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, void> {
  const { messages } = room.spec;
  if (change.kind === 'compact') {
    const held = room.spec.hooks && (yield* room.spec.hooks.beforeSummary('manual', signal));
    if (held !== undefined)
      throw new TelosError('config', [
        sentence('A hook does not let the conversation be summarized: {0}', held),
      ]);
    const keep = tokensNow(room) * keptOnDemand;
    const problem = yield* compact(room, { focus: change.focus, keep }, signal);
    if (problem)
      throw new TelosError('no_answer', [...problem, sentence('The conversation stays as it is.')]);
    return;
  }
  if (compactionIn(messages) === -1)
    return yield notice('info', [sentence('This conversation has no compaction to undo.')]);
  messages.push({ role: 'user', content: '', context: { kind: 'restored' } });
  yield { type: 'compaction_undone' };
}

interface Wish {
  /** What the person wants the summary to dwell on. */
  focus: string;
  /** Tokens of the latest messages that stay as they are. */
  keep: number;
}

/** Has the model summarize the conversation. Returns why it did not, and then has changed nothing. */
export async function* compact(
  room: Room,
  { focus, keep }: Wish,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, readonly Sentence[] | undefined> {
  const { spec, meter, request } = room;
  const view = viewOf(spec.messages);
  const start = startOfKept(view, meter.characters(keep));
  const first = spokenIn(spec.messages) - view.rest.length + start;
  const part = joined([...(view.head ? [view.head] : []), ...view.rest.slice(0, start)]);
  if (!part.some(({ role }) => role === 'assistant'))
    return void (yield notice('info', [sentence('There is nothing to summarize yet.')]));
  const before = tokensNow(room);
  let summary: string;
  try {
    summary = yield* summaryOf(part, focus, room, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof TelosError && error.code === 'budget') throw error;
    const why = error instanceof Error ? error.message : String(error);
    return [sentence('The conversation could not be summarized: {0}', why)];
  }
  if (summary === '') return [sentence('The model wrote no summary of the conversation.')];
  // Counted back from here, as the person may have said more in the meantime.
  const kept = spokenIn(spec.messages) - first;
  const words = meter.characters((meter.limit ?? before) * wordsShare);
  const step: Message = { role: 'user', content: summary, context: { kind: 'compacted', kept, words } };
  const after = meter.tokensOf(request(sentMessages([...spec.messages, step])));
  if (after >= before) return [sentence('The summary is longer than the text it replaces.')];
  spec.messages.push(step);
  yield { type: 'compacted', summary, tokensBefore: before, tokensAfter: after };
  return undefined;
}

/** Returns the number of messages that are said: those that say how others are sent are none. */
const spokenIn = (messages: readonly Message[]): number => messages.filter(({ context }) => !context).length;

/** Returns the place in `rest` from which all messages have room. The first of them is the model's, so that no result is without its call. */
function startOfKept({ head, rest }: ContextView, most: number): number {
  let characters = 0;
  let start = rest.length;
  // Without a head, the first message has the text of the skill.
  for (let place = rest.length - 1; place >= (head ? 0 : 1); place--) {
    const message = rest[place]!;
    characters += messageCharacters(message);
    if (characters > most) break;
    if (message.role === 'assistant') start = place;
  }
  return start;
}

async function* summaryOf(
  part: readonly Message[],
  focus: string,
  room: Room,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, string> {
  const { spec, meter, request, used } = room;
  for (const one of (await spec.budget?.check(spec.provider)) ?? []) yield notice('warning', [one]);
  const asked = [...part, { role: 'user' as const, content: questionFor(focus) }];
  const limit = meter.limit;
  const whole = request(joined(asked));
  const tooMuch = limit === undefined ? 0 : meter.tokensOf(whole) - limit;
  const sent = tooMuch > 0 ? request(joined(shorter(asked, meter.characters(tooMuch)))) : whole;
  const maxTokens = Math.min(longestSummary, sent.maxTokens, Math.ceil((limit ?? longestSummary * 8) / 8));
  let summary = '';
  let stopReason = '';
  for await (const event of spec.provider.streamCompletion({ ...sent, maxTokens, isAside: true }, signal)) {
    if (event.type === 'text') summary += event.text;
    if (event.type === 'retry') yield event;
    if (event.type === 'done' || event.type === 'spent') yield* used(event.usage);
    if (event.type === 'done') stopReason = event.stopReason;
  }
  if (gapOf({ blocks: [{ type: 'text', text: summary }], stopReason, hasThought: false }, false)) return '';
  // What was hidden from the record must not come back through the summary.
  return (spec.redact?.(summary) ?? summary).trim();
}

/** Returns the messages with their longest texts cut, so that they have about `tooMany` characters fewer. */
function shorter(messages: readonly Message[], tooMany: number): Message[] {
  const all = messages.reduce((sum, message) => sum + messageCharacters(message), 0);
  const share = Math.max(0.05, (all - tooMany * 1.1) / all);
  const cut = (text: string): string =>
    text.length < smallestTrimmed
      ? text
      : cutMiddle(text, Math.floor(text.length * share), () => '\n[...]\n');
  const cutBlock = (block: ContentBlock): ContentBlock =>
    block.type === 'text'
      ? { ...block, text: cut(block.text) }
      : block.type === 'tool_result'
        ? { ...block, content: cut(textOf(block)) }
        : block;
  return messages.map((message, index) =>
    index === messages.length - 1
      ? message
      : { role: message.role, content: blocksOf(message).map(cutBlock) },
  );
}

const questionFor = (focus: string): string =>
  [
    'Do no more work now, and call no tool. The conversation is about to be compacted: from here on you are sent what the person has said, the text of the skill, your summary, and the latest messages. Write that summary, for yourself.',
    'Keep what the work needs: what is asked for and what is done of it; decisions and their reasons; each file that was read or written, and what matters in it; names, numbers, values and exact wordings that were found; what failed and why; what is open, and the next step. Take over what an earlier summary says. Leave out secrets such as keys and passwords.',
    ...(focus ? [`The person wants it to dwell on: ${focus}`] : []),
    'Answer with the summary alone.',
  ].join('\n\n');

const notice = (level: 'info' | 'warning', sentences: readonly Sentence[]): RunEvent => ({
  type: 'notice',
  level,
  ...asMessage(...sentences),
});
