/** Runs the loop of a run: asks the model, does its tool calls, returns their results, until no calls are left. */
import type { RunEvent, RunOutcome } from '@telos/protocol/run';
import { asMessage, type Sentence, sentence } from '@telos/protocol/text';
import { runCalls } from './calls.ts';
import { PromptTooLong, TelosError } from './errors.ts';
import { defaultMaxRounds, defaultMaxTokens, mostCuts, mostRounds, untilReady } from './limits.ts';
import { addText } from './messages.ts';
import { askedAgain, gapOf, isCallless, isSilent, noAnswer, remind } from './noAnswer.ts';
import type { RunSpec } from './ports.ts';
import { dropBroken, loseCut, newReply, type Reply, take, takeWritten } from './reply.ts';
import { askForMore, askToGoOn, isDue } from './rounds.ts';
import { used, warnings } from './usage.ts';

/** Returns how the run ended. Throws the errors of the provider, and the abort reason on abort. */
export async function* runLoop(spec: RunSpec, signal: AbortSignal): AsyncGenerator<RunEvent, RunOutcome> {
  const { notice, quota } = spec.provider;
  if (notice) yield { type: 'notice', level: 'info', message: notice };
  const atATime = Math.min(spec.maxRounds ?? defaultMaxRounds, mostRounds);
  let asksFor = quota;
  let isAskedAgain = false;
  let cuts = 0;
  for (let limit = atATime; ; ) {
    signal.throwIfAborted();
    if (spec.counts.rounds >= limit) {
      const mayGoOn = limit < mostRounds && !spec.human.isAway;
      const answer = mayGoOn ? yield* askToGoOn(atATime, spec, signal) : undefined;
      if (!answer?.allow) {
        // Words that were said in the last round are there when the conversation goes on.
        yield* hear(spec);
        return 'round_limit';
      }
      limit = answer.scope === 'once' ? Math.min(limit + atATime, mostRounds) : mostRounds;
    } else if (asksFor && isDue(asksFor, spec)) {
      const answer = yield* askForMore(asksFor, limit, spec, signal);
      if (!answer.allow) return 'cancelled';
      if (answer.scope !== 'once') asksFor = undefined;
    }
    yield* hear(spec);
    signal.throwIfAborted();
    yield* warnings((await spec.budget?.check(spec.provider)) ?? []);
    spec.counts.rounds++;
    const reply = yield* modelTurn(spec, signal);
    const isCut = reply.stopReason === 'max_tokens';
    const most = spec.maxTokens ?? defaultMaxTokens;
    if (isCut) raiseLimit(spec);
    if (reply.stopReason === 'refusal') dropBroken(reply);
    const isUnread = !isCut && (await takeWritten(reply, spec.readWritten));
    if (reply.calls.length === 0) {
      const gap = gapOf(reply, isUnread);
      const hasEnded = !gap || isAskedAgain || (isCut && !isSilent(reply.blocks));
      if (hasEnded && reply.blocks.length > 0)
        spec.messages.push({ role: 'assistant', content: reply.blocks });
      // Half an answer is not a success.
      if (reply.stopReason === 'model_context_window_exceeded') throw new TelosError('provider', tooMuch);
      if (isCut && hasEnded) throw new TelosError('provider', cutOff);
      // Words that were said twice are an answer, even if the server says that more was to come.
      if (!gap || (isAskedAgain && gap === 'unfinished' && isCallless(reply.stopReason))) {
        const more = spec.atEnd && (yield* spec.atEnd(signal));
        if (more === undefined) return 'completed';
        addText(spec.messages, more);
        isAskedAgain = false;
        yield { type: 'text', text: '\n\n' };
        continue;
      }
      if (isAskedAgain) throw noAnswer(gap, spec.provider.model);
      isAskedAgain = true;
      remind(spec.messages, reply.blocks, gap);
      // What comes next is another answer.
      if (!isSilent(reply.blocks)) yield { type: 'text', text: '\n\n' };
      yield { type: 'notice', level: 'info', ...asMessage(...askedAgain(gap, spec.provider.model)) };
      continue;
    }
    isAskedAgain = false;
    spec.messages.push({ role: 'assistant', content: reply.blocks });
    spec.counts.toolCalls += reply.calls.length;
    const policy = await spec.calls.open();
    const isLost = isCut && loseCut(reply.calls, most);
    if (isCut) yield* warnings(isLost ? cutCall(most) : cutOff);
    yield* runCalls(reply.calls, policy, spec.messages, signal);
    cuts = isLost ? cuts + 1 : 0;
    // A model that does not write less at a time the third time never does.
    if (cuts === mostCuts) throw new TelosError('provider', cutAgain(most));
  }
}

/** Adds the words of the user to the last message of the transcript, behind the results of tools. They are there however the run ends. */
async function* hear({ mail, messages }: RunSpec): AsyncGenerator<RunEvent, void> {
  for (const text of (await mail?.()) ?? []) {
    addText(messages, `The person says: ${text}`);
    yield { type: 'notice', level: 'info', message: `You said: ${text}` };
  }
}

const cutOff = [
  sentence('The answer was cut off at its length limit (max_tokens).'),
  sentence('Ask the model to continue, or for less at a time.'),
];

const tooMuch = [
  sentence('The conversation no longer fits into the context of the model, so the answer was cut off.'),
  sentence('Start a new conversation, or choose a model with a larger context.'),
];

const cutCall = (most: number): readonly Sentence[] => [
  sentence('The answer was cut off at its length limit of {0} tokens, so its last call was not run.', most),
];

const cutAgain = (most: number): readonly Sentence[] => [
  sentence('The calls of the model were cut off at its length limit of {0} tokens again and again.', most),
  sentence('Ask for less at a time, or choose another model.'),
];

/** Lets later answers be twice as long, once, if the context of the model has room for that. */
function raiseLimit(spec: RunSpec): void {
  if (spec.maxTokens !== undefined) return;
  const wanted = defaultMaxTokens * 2;
  const { size } = spec.window;
  spec.maxTokens = size === undefined || wanted <= size / 4 ? wanted : defaultMaxTokens;
}

/** The words in which servers refuse a length limit. */
const refusedLimit = /max_(?:completion_|output_|new_)?tokens|maxOutputTokens|output tokens/i;

/** Takes back a raised limit that the server refuses. */
function lowerLimit(spec: RunSpec, error: unknown): boolean {
  if (!(error instanceof TelosError) || (spec.maxTokens ?? 0) <= defaultMaxTokens) return false;
  if (!(error instanceof PromptTooLong) && !refusedLimit.test(error.message)) return false;
  spec.maxTokens = defaultMaxTokens;
  return true;
}

/**
 * Streams one model turn. If it fails, the text that has arrived is kept in the transcript; half a tool call is not.
 * A first turn that fails for an unknown reason is repeated without tools, since some local models have none.
 */
async function* modelTurn(spec: RunSpec, signal: AbortSignal): AsyncGenerator<RunEvent, Reply> {
  const { provider, messages, counts, budget, window, calls } = spec;
  let isRefused = false;
  for (let tools = spec.tools; ; ) {
    const reply = newReply();
    let thinkingSince: number | undefined;
    const request = yield* window.fit(tools, spec.maxTokens ?? defaultMaxTokens, signal);
    const early = calls.getReady && setTimeout(calls.getReady, untilReady);
    try {
      for await (const event of provider.streamCompletion(request, signal)) {
        calls.load();
        take(reply, event);
        if (event.type === 'reasoning') thinkingSince ??= performance.now();
        else if (thinkingSince !== undefined) {
          yield { type: 'reasoning', text: '', durationMs: Math.round(performance.now() - thinkingSince) };
          thinkingSince = undefined;
        }
        if (event.type === 'text' || event.type === 'reasoning' || event.type === 'retry') yield event;
        if (event.type === 'spent') yield* used(event.usage, spec);
        if (event.type === 'done')
          yield* used(event.usage, spec, event.usage && window.counted(request, event.usage));
      }
      return reply;
    } catch (error) {
      if (reply.blocks.length === 0 && lowerLimit(spec, error)) continue;
      if (error instanceof PromptTooLong && reply.blocks.length === 0 && !isRefused && !provider.recording) {
        isRefused = true;
        if (!(yield* window.shrink(request, signal))) throw error;
        continue;
      }
      const text = reply.blocks.filter(block => block.type === 'text');
      if (text.length > 0) messages.push({ role: 'assistant', content: text });
      const mayLackTools = counts.rounds === 1 && !(error instanceof TelosError);
      if (signal.aborted || !mayLackTools || reply.blocks.length > 0) throw error;
    } finally {
      clearTimeout(early);
    }
    tools = [];
    yield* warnings((await budget?.check(provider)) ?? []);
    counts.rounds++;
    yield* warnings([sentence('{0} does not support tools; it can only answer with text.', provider.model)]);
  }
}
