/** Runs the loop of a run: asks the model, does its tool calls, returns their results, until no calls are left. */
import type {
  ApprovalDecision,
  ApprovalRequest,
  ContentBlock,
  ContextUse,
  Message,
  RunEvent,
  RunOutcome,
  ToolCall,
} from '@telos/protocol/run';
import { asMessage, type Sentence, sentence, spoken } from '@telos/protocol/text';
import { defaultMaxRounds, type Effort, mostRounds } from '../config.ts';
import { PromptTooLong, TelosError } from '../core/errors.ts';
import { newToken } from '../human.ts';
import { usageOf } from '../providers/models.ts';
import {
  type CompletionRequest,
  defaultMaxTokens,
  ownCallIds,
  type Provider,
  type Quota,
  type StreamEvent,
  type TokenCount,
  withoutDepth,
} from '../providers/provider.ts';
import type { Tool } from '../tools/tool.ts';
import type { Budget } from './budget.ts';
import type { Room } from './compact.ts';
import { ContextMeter, type FirstParts } from './contextMeter.ts';
import { addText, sentMessages } from './contextView.ts';
import { askedAgain, gapOf, isCallless, isSilent, noAnswer, remind } from './noAnswer.ts';
import type { ToolCallContext } from './toolCalls.ts';

export interface RunSpec extends ToolCallContext {
  provider: Provider;
  system: string;
  /** Folder of the skill that runs, if any. */
  skillDir?: string;
  /** Filled during the run, so that a failed run still has its transcript. The first message is already there. */
  messages: Message[];
  /** Rounds after which a person is asked whether to continue, and after which an unattended run ends. Defaults to 20. */
  maxRounds?: number | undefined;
  /** Increased during the run. */
  counts: { rounds: number; toolCalls: number };
  priceOf(tokens: TokenCount): number | 'unknown';
  /** How much the model thinks. By default as much as it does by itself. */
  effort?: Effort | undefined;
  /** Undefined if nothing is limited. */
  budget?: Budget | undefined;
  /** Length limit of an answer, in tokens, once it is another than usual. Changed during the run. */
  maxTokens?: number;
  /** Tokens that the model takes. Undefined if that is not known. */
  window?: number | undefined;
  /** What the first message of the run is made of. */
  firstParts?: FirstParts | undefined;
  /** Hides secrets in what a model has written for itself. */
  redact?: (text: string) => string;
  /** Returns what the person has said since the last round. */
  mail?: (() => Promise<readonly string[]>) | undefined;
}

interface Reply {
  blocks: ContentBlock[];
  calls: ToolCall[];
  stopReason: string;
  /** True if the model has thought, whether or not that is kept. */
  hasThought: boolean;
}

let loadedCalls: Promise<typeof import('./toolCalls.ts')> | undefined;
/** Deciding on calls and carrying them out is half of the engine. No run needs it before its first request is sent. */
function toolCalls(): Promise<typeof import('./toolCalls.ts')> {
  loadedCalls ??= import('./toolCalls.ts');
  return loadedCalls;
}

/** Whoever waits for it gets the error. */
const loadCalls = (): void => void toolCalls().catch(() => undefined);

/** Does what the first calls would wait for, while the model thinks. */
function getReady({ tools, context }: RunSpec): void {
  loadCalls();
  for (const tool of tools) tool.getReady?.(context);
}

/** In milliseconds. By then the first request of a process has been sent, and a model that has not answered goes on thinking for a while. */
const untilReady = 150;

/** Few runs fill the context of a model. */
const roomMaking = () => import('./compact.ts');

/** Share of the limit from which room is made. */
const tightFrom = 0.85;

type RunRoom = Room & { spec: RunSpec };

/** Returns what is needed to make room in the conversation of a run. */
export function roomOf(spec: RunSpec): RunRoom {
  const meter = new ContextMeter(spec.window, spec.firstParts);
  const request = (messages: readonly Message[]): CompletionRequest => requestOf(spec, messages, spec.tools);
  return { spec, meter, request, used: tokens => used(tokens, spec) };
}

/** Returns how the run ended. Throws the errors of the provider, and the abort reason on abort. */
export async function* runLoop(spec: RunSpec, signal: AbortSignal): AsyncGenerator<RunEvent, RunOutcome> {
  const { notice, quota } = spec.provider;
  if (notice) yield { type: 'notice', level: 'info', message: notice };
  const room = roomOf(spec);
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
    const reply = yield* modelTurn(room, signal);
    const isCut = reply.stopReason === 'max_tokens';
    const most = spec.maxTokens ?? defaultMaxTokens;
    if (isCut) raiseLimit(spec);
    if (reply.stopReason === 'refusal') dropBroken(reply);
    const isUnread = !isCut && (await readWritten(reply, spec));
    if (reply.calls.length === 0) {
      const gap = gapOf(reply, isUnread);
      const hasEnded = !gap || isAskedAgain || (isCut && !isSilent(reply.blocks));
      if (hasEnded && reply.blocks.length > 0)
        spec.messages.push({ role: 'assistant', content: reply.blocks });
      // Half an answer is not a success.
      if (reply.stopReason === 'model_context_window_exceeded') throw new TelosError('provider', tooMuch);
      if (isCut && hasEnded) throw new TelosError('provider', cutOff);
      if (!gap) return 'completed';
      // Words that were said twice are an answer, even if the server says that more was to come.
      if (isAskedAgain && gap === 'unfinished' && isCallless(reply.stopReason)) return 'completed';
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
    const { runTools } = await toolCalls();
    const isLost = isCut && loseCut(reply.calls, most);
    if (isCut) yield* warnings(isLost ? cutCall(most) : cutOff);
    yield* runTools(reply.calls, spec, signal);
    cuts = isLost ? cuts + 1 : 0;
    // A model that does not write less at a time the third time never does.
    if (cuts === mostCuts) throw new TelosError('provider', cutAgain(most));
  }
}

/** Adds what the person has said to the last message of the transcript, behind the results of tools. It is there however the run ends. */
async function* hear({ mail, messages }: RunSpec): AsyncGenerator<RunEvent, void> {
  for (const text of (await mail?.()) ?? []) {
    addText(messages, `The person says: ${text}`);
    yield { type: 'notice', level: 'info', message: `You said: ${text}` };
  }
}

const isDue = ({ roundsBeforeAsking }: Quota, { counts }: RunSpec): boolean =>
  roundsBeforeAsking > 0 && counts.rounds > 0 && counts.rounds % roundsBeforeAsking === 0;

/** Asks the person before further rounds. An unattended loop can use up a month's quota in minutes. */
function askForMore(
  { whose, roundsBeforeAsking }: Quota,
  limit: number,
  spec: RunSpec,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, ApprovalDecision> {
  const { rounds } = spec.counts;
  const sentences = [
    sentence(
      'This run has asked the model {0} times already, and each time counts against the quota of {1}.',
      rounds,
      whose,
    ),
  ];
  const more = Math.min(roundsBeforeAsking, limit - rounds);
  return askAboutRounds(more, 'quota.rounds', sentences, spec, signal);
}

/** Asks the person at the limit of rounds. A long task needs more of them, and a model that goes in circles must not have them. */
function askToGoOn(
  atATime: number,
  spec: RunSpec,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, ApprovalDecision> {
  const { rounds } = spec.counts;
  const more = Math.min(atATime, mostRounds - rounds);
  const sentences = [
    sentence('This run has asked the model {0} times and is not done.', rounds),
    sentence(
      'If you allow this for the run, Telos asks again after {0} more requests. max_rounds sets this number.',
      mostRounds,
    ),
  ];
  return askAboutRounds(more, 'run.rounds', sentences, spec, signal);
}

async function* askAboutRounds(
  more: number,
  rule: string,
  sentences: readonly Sentence[],
  { provider, counts, human }: RunSpec,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, ApprovalDecision> {
  const request: ApprovalRequest = {
    callId: `more-rounds-${counts.rounds}`,
    token: newToken(),
    tool: 'more_rounds',
    subject: `${more} more ${more === 1 ? 'question' : 'questions'} to ${provider.model}`,
    rule,
    reason: spoken(sentences),
    sentences,
    scopes: ['once', 'run'],
  };
  const answer = human.approve(request, signal);
  yield { type: 'approval_request', request };
  const decision = await answer;
  yield { type: 'approval_response', callId: request.callId, decision };
  signal.throwIfAborted();
  return decision;
}

const cutOff = [
  sentence('The answer was cut off at its length limit (max_tokens).'),
  sentence('Ask the model to continue, or for less at a time.'),
];

const tooMuch = [
  sentence('The conversation no longer fits into the context of the model, so the answer was cut off.'),
  sentence('Start a new conversation, or choose a model with a larger context.'),
];

/** Number of turns in a row whose calls may be cut. */
const mostCuts = 3;

const cutCall = (most: number): readonly Sentence[] => [
  sentence('The answer was cut off at its length limit of {0} tokens, so its last call was not run.', most),
];

const cutAgain = (most: number): readonly Sentence[] => [
  sentence('The calls of the model were cut off at its length limit of {0} tokens again and again.', most),
  sentence('Ask for less at a time, or choose another model.'),
];

/** Marks the calls that were cut, for the model. Returns false if all arrived whole. */
function loseCut(calls: ToolCall[], most: number): boolean {
  const last = calls.length - 1;
  const problem = `Your answer was cut at ${most} tokens: the call was not run. Write in parts.`;
  let isLost = false;
  for (const [index, call] of calls.entries()) {
    // Of a call that was cut at its very beginning, there are no arguments at all.
    if (!call.problem && !(index === last && Object.keys(call.input).length === 0)) continue;
    calls[index] = { ...call, problem };
    isLost = true;
  }
  return isLost;
}

/** Lets later answers be twice as long, once, if the context of the model has room for that. */
function raiseLimit(spec: RunSpec): void {
  if (spec.maxTokens !== undefined) return;
  const wanted = defaultMaxTokens * 2;
  spec.maxTokens = spec.window === undefined || wanted <= spec.window / 4 ? wanted : defaultMaxTokens;
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

/** Leaves out the calls in whose middle an answer was held back. */
function dropBroken(reply: Reply): void {
  const broken = new Set(reply.calls.flatMap(({ id, problem }) => (problem ? [id] : [])));
  reply.calls = reply.calls.filter(({ id }) => !broken.has(id));
  reply.blocks = reply.blocks.filter(block => block.type !== 'tool_use' || !broken.has(block.id));
}

/** Few answers have these words. */
const hintOfCall = /tool_c|TOOL_CALL|tool▁call|<function=|"name"|invoke|python_tag|<\|channel\|>/;

/** Makes calls of those that the model has written as text. Returns true if there are some that cannot be read. */
async function readWritten(reply: Reply, spec: RunSpec): Promise<boolean> {
  const [only, ...others] = reply.blocks.filter(block => block.type === 'text');
  if (reply.calls.length > 0 || !only || others.length > 0 || reply.stopReason === 'refusal') return false;
  if (!hintOfCall.test(only.text)) return false;
  const { writtenCalls } = await import('./writtenCalls.ts');
  const definitions = spec.tools.map(({ definition }) => definition);
  const written = writtenCalls(only.text, definitions, spec.messages);
  if (!written || written === 'unreadable') return written !== undefined;
  reply.calls.push(...written.calls);
  reply.blocks = [
    ...reply.blocks.filter(block => block !== only),
    ...(written.before === '' ? [] : [{ type: 'text' as const, text: written.before }]),
    ...written.calls.map(({ id, name, input }) => ({ type: 'tool_use' as const, id, name, input })),
  ];
  return false;
}

/**
 * Streams one model turn. If it fails, the text that has arrived is kept in the transcript; half a tool call is not.
 * A first turn that fails for an unknown reason is repeated without tools, since some local models have none.
 */
async function* modelTurn(room: RunRoom, signal: AbortSignal): AsyncGenerator<RunEvent, Reply> {
  const { spec, meter } = room;
  const { provider, messages, counts, budget } = spec;
  let isRefused = false;
  for (let tools = spec.tools; ; ) {
    const reply: Reply = { blocks: [], calls: [], stopReason: 'end_turn', hasThought: false };
    const withOwnIds = ownCallIds(messages);
    let thinkingSince: number | undefined;
    const request = yield* fittingRequest(room, tools, signal);
    const early = loadedCalls ? undefined : setTimeout(getReady, untilReady, spec);
    try {
      for await (const event of provider.streamCompletion(request, signal)) {
        if (!loadedCalls) loadCalls();
        take(reply, withOwnIds(event));
        if (event.type === 'reasoning') reply.hasThought = true;
        if (event.type === 'reasoning') thinkingSince ??= performance.now();
        else if (thinkingSince !== undefined) {
          yield { type: 'reasoning', text: '', durationMs: Math.round(performance.now() - thinkingSince) };
          thinkingSince = undefined;
        }
        if (event.type === 'text' || event.type === 'reasoning' || event.type === 'retry') yield event;
        if (event.type === 'spent') yield* used(event.usage, spec);
        if (event.type === 'done')
          yield* used(event.usage, spec, event.usage && meter.counted(request, event.usage));
      }
      return reply;
    } catch (error) {
      if (reply.blocks.length === 0 && lowerLimit(spec, error)) continue;
      if (error instanceof PromptTooLong && reply.blocks.length === 0 && !isRefused && !provider.recording) {
        isRefused = true;
        const before = meter.tokensOf(request);
        meter.refused(request);
        yield* (await roomMaking()).makeRoom(room, signal, true);
        if (meter.tokensOf(room.request(sentMessages(messages))) >= before) throw error;
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

/** Returns what is sent now. Makes room first if the model's context is nearly full. A recording answers whatever it is sent. */
async function* fittingRequest(
  room: RunRoom,
  tools: readonly Tool[],
  signal: AbortSignal,
): AsyncGenerator<RunEvent, CompletionRequest> {
  const { spec, meter } = room;
  const request = requestOf(spec, sentMessages(spec.messages), tools);
  const { limit } = meter;
  if (limit === undefined || spec.provider.recording || meter.tokensOf(request) <= limit * tightFrom)
    return request;
  yield* (await roomMaking()).makeRoom(room, signal);
  return requestOf(spec, sentMessages(spec.messages), tools);
}

const requestOf = (
  { system, skillDir, effort, maxTokens = defaultMaxTokens, context: { workingDir } }: RunSpec,
  messages: readonly Message[],
  tools: readonly Tool[],
): CompletionRequest => ({
  system,
  messages,
  tools: tools.map(tool => tool.definition),
  workingDir,
  ...(skillDir === undefined ? {} : { skillDir }),
  ...(effort === undefined ? {} : { effort }),
  maxTokens,
});

/** Adds one event of a turn to its reply. */
function take(reply: Reply, event: StreamEvent): void {
  switch (event.type) {
    case 'text':
      appendText(reply.blocks, event.text);
      break;
    case 'thinking':
      reply.blocks.push(event.block);
      reply.hasThought = true;
      break;
    case 'tool_call': {
      const call = withoutDepth(event.call);
      const { id, name, input } = call;
      reply.calls.push(call);
      reply.blocks.push({ type: 'tool_use', id, name, input });
      break;
    }
    case 'done':
      reply.stopReason = event.stopReason;
      break;
  }
}

function* used(
  tokens: TokenCount | undefined,
  spec: RunSpec,
  context?: ContextUse,
): Generator<RunEvent, void> {
  const usage = tokens && usageOf(tokens, spec.priceOf(tokens));
  if (usage) yield { type: 'usage', round: spec.counts.rounds, usage, ...(context && { context }) };
  // A recording asks no model, and so uses nothing.
  if (!spec.provider.recording) yield* warnings(spec.budget?.add(usage) ?? []);
}

function* warnings(all: readonly Sentence[]): Generator<RunEvent, void> {
  for (const one of all) yield { type: 'notice', level: 'warning', ...asMessage(one) };
}

function appendText(blocks: ContentBlock[], text: string): void {
  const last = blocks.at(-1);
  if (last?.type === 'text') last.text += text;
  else blocks.push({ type: 'text', text });
}
