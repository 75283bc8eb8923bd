/**
 * Puts the events of runs in order, and reduces them to the state of the chat view. Pure. Nothing else holds the
 * conversation, so a reopened view that gets the same events shows the same thing. Items that will not change keep
 * their identity.
 */
import { withOutput } from '@telos/protocol/liveText';
import {
  type ApprovalDecision,
  type ContextPart,
  type ContextUse,
  contextParts,
  type RunEvent,
  type ToolCall,
  type Usage,
} from '@telos/protocol/run';
import { todosIn } from '@telos/protocol/todos';
import { addedUsage } from '@telos/protocol/usage';
import { appendMarkdown, closeMarkdown, emptyMarkdown } from './markdownBlocks.ts';
import type {
  ApprovalItem,
  ChatState,
  EndItem,
  Item,
  RouteItem,
  Run,
  ServerName,
  TextItem,
  ThoughtItem,
  ToolItem,
  ToolState,
} from './runItems.ts';

export const emptyChat: ChatState = { runs: [] };

/** In characters. What is kept of a running command's output. Its result has the whole. */
const mostOutput = 4_000;

/** Returns the state after one event. An event outside of a run changes nothing. */
export function reduce(state: ChatState, event: RunEvent): ChatState {
  if (event.type === 'run_start') {
    const { runId: id, text, startedAt, attached, selection, mode } = event;
    const along = {
      ...(attached && { attached }),
      ...(typeof selection === 'string' && { selection }),
      ...(mode && { mode }),
    };
    const run: Run = {
      id,
      text,
      ...along,
      startedAt,
      running: true,
      items: [],
      workingDir: '',
      rounds: 0,
    };
    return { runs: [...interrupt(state).runs, run] };
  }
  const run = state.runs.at(-1);
  if (!run?.running || (event.type === 'notice' && isKnownDead(state, run, event))) return state;
  const next =
    event.type === 'routed' ? addRoute(run, event, state.runs.at(-2)?.route) : reduceRun(run, event);
  return next === run ? state : { runs: [...state.runs.slice(0, -1), next] };
}

/** Returns the state after many events. Neighbouring text deltas are joined first, which makes a big batch cheap. */
export function reduceAll(state: ChatState, events: readonly RunEvent[]): ChatState {
  let text = '';
  let next = state;
  for (const event of events) {
    if (event.type === 'text') {
      text += event.text;
      continue;
    }
    if (text) next = reduce(next, { type: 'text', text });
    text = '';
    next = reduce(next, event);
  }
  return text ? reduce(next, { type: 'text', text }) : next;
}

/** Ends a run that gets no more events although its end was never seen. */
export function interrupt(state: ChatState): ChatState {
  const run = state.runs.at(-1);
  if (!run?.running) return state;
  const toolCalls = run.items.filter(item => item.kind === 'tool').length;
  const ended = endRun(run, { outcome: 'interrupted', rounds: run.rounds, toolCalls });
  return { runs: [...state.runs.slice(0, -1), ended] };
}

/** Returns true from a run's start to its end. */
export function isRunning(state: ChatState): boolean {
  return state.runs.at(-1)?.running === true;
}

type EventOf<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>;

function addRoute(run: Run, event: EventOf<'routed'>, before: RouteItem | undefined): Run {
  const { type: _, hasMcp: __, workingDir, ...facts } = event;
  const same = (['agent', 'skill', 'provider', 'model'] as const).every(
    fact => before?.[fact] === facts[fact],
  );
  const isNew = before ? !same : facts.skill !== '';
  const route: RouteItem = { kind: 'route', text: run.text, ...facts, ...(!isNew && { isSame: true }) };
  return { ...push(run, route), route, workingDir };
}

/** Returns the server that a notice says did not start. */
function deadServer({ route }: Run, { sentences }: EventOf<'notice'>): ServerName | undefined {
  const [first] = sentences ?? [];
  return route && first?.text.startsWith("The MCP server '{0}' is not available")
    ? { agent: route.agent, server: String(first.values[0]) }
    : undefined;
}

/** Whether the conversation has said so already. */
function isKnownDead(state: ChatState, run: Run, event: EventOf<'notice'>): boolean {
  const dead = deadServer(run, event);
  if (!dead) return false;
  const items = state.runs.flatMap(each => each.items);
  return items.some(
    item => item.kind === 'notice' && item.dead?.agent === dead.agent && item.dead?.server === dead.server,
  );
}

/** Adds to the line about the skill where it works, so that this takes no line of its own. Returns undefined for other notices. */
function addPlace(run: Run, { message, sentences, remedy }: EventOf<'notice'>): Run | undefined {
  const folderOf = remedy?.kind === 'choose_folder' ? { folderOf: remedy.agent } : {};
  const isPlace = remedy?.kind === 'choose_folder' || sentences?.[0]?.text.startsWith('Works in: ');
  if (!isPlace || !run.route) return undefined;
  const route: RouteItem = { ...run.route, place: message, ...folderOf };
  return { ...run, route, items: run.items.map(item => (item === run.route ? route : item)) };
}

function reduceRun(run: Run, event: Exclude<RunEvent, EventOf<'run_start' | 'routed'>>): Run {
  switch (event.type) {
    case 'text':
      return addText(run, event.text);
    case 'reasoning':
      return addThought(run, event.text, event.durationMs);
    case 'step':
      return push(run, { kind: 'step', skill: event.skill, detail: event.detail });
    case 'notice': {
      const { level, message } = event;
      const dead = deadServer(run, event);
      return addPlace(run, event) ?? push(run, { kind: 'notice', level, message, ...(dead && { dead }) });
    }
    // The host words those that a person reads.
    case 'hook':
      return run;
    case 'retry': {
      const { attempt, waitMs, why } = event;
      const provider = run.route?.provider ?? 'the model';
      return push(run, { kind: 'retry', provider, attempt, waitMs, why, over: false });
    }
    case 'usage':
      return addRound(run, event.round, event.usage, event.context);
    case 'tool_start': {
      const next = push(run, openCall(run, event.call));
      const todos = event.call.name === 'update_todos' ? todosIn(event.call.input) : '';
      return typeof todos === 'string' ? next : { ...next, todos };
    }
    case 'tool_output':
      return replaceLast(
        run,
        item => item.kind === 'tool' && item.call.id === event.callId && !item.result,
        item => ({
          ...(item as ToolItem),
          output: withOutput((item as ToolItem).output ?? '', event.text, mostOutput),
        }),
      );
    case 'tool_progress': {
      const { callId, message, share } = event;
      const progress = { message, ...(share !== undefined && { share }) };
      return replaceLast(
        run,
        item => item.kind === 'tool' && item.call.id === callId && !item.result,
        item => ({ ...(item as ToolItem), progress }),
      );
    }
    case 'skill_event':
      return replaceLast(
        run,
        item => item.kind === 'tool' && item.call.id === event.callId && !item.result,
        item => {
          const { inner, ...tool } = item as ToolItem;
          const [next] = reduce({ runs: inner ? [inner] : [] }, event.event).runs;
          return next ? { ...tool, inner: next } : item;
        },
      );
    case 'tool_end':
      return endTool(run, event);
    case 'approval_request':
      return push(setToolState(run, event.request.callId, 'waiting'), {
        kind: 'approval',
        request: event.request,
      });
    case 'approval_response':
      return answerApproval(run, event.callId, event.decision);
    case 'compacted': {
      const { summary, tokensBefore, tokensAfter } = event;
      const context = run.context && shrunk(run.context, tokensAfter);
      const next = push(run, { kind: 'compacted', summary, tokensBefore, tokensAfter });
      return context ? { ...next, context } : next;
    }
    case 'compaction_undone':
      return push(run, { kind: 'restored' });
    case 'run_end': {
      const { interrupted, rounds, toolCalls, durationMs, error } = event;
      const outcome = interrupted ? 'interrupted' : event.outcome;
      return endRun(run, { outcome, rounds, toolCalls, durationMs, ...(error ? { error } : {}) });
    }
  }
}

/** Finishes the last item, which will not grow any more: closes text and ends a wait. */
function settleTail(items: readonly Item[]): readonly Item[] {
  const last = items.at(-1);
  if (last?.kind === 'text' && last.markdown.open !== '') {
    return [...items.slice(0, -1), { ...last, markdown: closeMarkdown(last.markdown) }];
  }
  if (last?.kind === 'thought' && !last.over) return [...items.slice(0, -1), endThought(last)];
  if (last?.kind === 'retry' && !last.over) return [...items.slice(0, -1), { ...last, over: true }];
  return items;
}

function push(run: Run, item: Item): Run {
  const last = run.items.at(-1);
  // A retry replaces the one before it. The fifth wait for an answer says more than five separate lines.
  const before =
    item.kind === 'retry' && last?.kind === 'retry' ? run.items.slice(0, -1) : settleTail(run.items);
  return { ...run, items: [...before, item] };
}

function addText(run: Run, text: string): Run {
  if (text === '') return run;
  const last = run.items.at(-1);
  if (last?.kind !== 'text') {
    return push(run, { kind: 'text', markdown: appendMarkdown(emptyMarkdown, text) });
  }
  const grown: TextItem = { ...last, markdown: appendMarkdown(last.markdown, text) };
  return { ...run, items: [...run.items.slice(0, -1), grown] };
}

function addThought(run: Run, text: string, durationMs: number | undefined): Run {
  const last = run.items.at(-1);
  const isOpen = last?.kind === 'thought' && !last.over;
  if (!isOpen && text === '') return run;
  const thought: ThoughtItem = isOpen ? last : { kind: 'thought', markdown: emptyMarkdown, over: false };
  const grown = { ...thought, markdown: appendMarkdown(thought.markdown, text) };
  const item = durationMs === undefined ? grown : endThought({ ...grown, durationMs });
  return isOpen ? { ...run, items: [...run.items.slice(0, -1), item] } : push(run, item);
}

const endThought = (item: ThoughtItem): ThoughtItem => ({
  ...item,
  markdown: closeMarkdown(item.markdown),
  over: true,
});

function replaceLast(run: Run, matches: (item: Item) => boolean, change: (item: Item) => Item): Run {
  const index = run.items.findLastIndex(matches);
  if (index === -1) return run;
  return { ...run, items: run.items.with(index, change(run.items[index]!)) };
}

function setToolState(run: Run, callId: string, state: ToolState): Run {
  return replaceLast(
    run,
    item => item.kind === 'tool' && item.call.id === callId && !item.result,
    item => ({ ...(item as ToolItem), state }),
  );
}

const openCall = ({ id: runId, workingDir }: Run, call: ToolCall): ToolItem => ({
  kind: 'tool',
  call,
  state: 'running',
  workingDir,
  runId,
});

function endTool(run: Run, { callId, name, result, policy }: EventOf<'tool_end'>): Run {
  const isOpenCall = (item: Item) => item.kind === 'tool' && item.call.id === callId && !item.result;
  const known = run.items.some(isOpenCall) ? run : push(run, openCall(run, { id: callId, name, input: {} }));
  return replaceLast(known, isOpenCall, item => {
    const tool = item as ToolItem;
    const state = tool.state === 'denied' ? 'denied' : result.isError ? 'failed' : 'done';
    const isOutside =
      name === 'run_command' && policy && policy.action !== 'deny' && policy.rule !== 'run.read-only';
    const place = policy?.boxed ? { boxed: true as const } : isOutside ? { leftBox: true as const } : {};
    return { ...tool, state, result, ...place };
  });
}

function answerApproval(run: Run, callId: string, answer: ApprovalDecision): Run {
  const answered = replaceLast(
    run,
    item => item.kind === 'approval' && item.request.callId === callId && !item.answer,
    item => ({ ...(item as ApprovalItem), answer }),
  );
  return setToolState(answered, callId, answer.allow || answer.isSkipped ? 'running' : 'denied');
}

function endRun(
  run: Run,
  end: Omit<
    EndItem,
    'kind' | 'runId' | 'text' | 'usage' | 'perRound' | 'changedFiles' | 'likely' | 'hasSkill'
  >,
): Run {
  const items = settleTail(run.items).map((item): Item => {
    if (item.kind === 'tool' && (item.state === 'running' || item.state === 'waiting')) {
      const [inner] = item.inner ? interrupt({ runs: [item.inner] }).runs : [];
      return { ...item, state: 'stopped', ...(inner && { inner }) };
    }
    if (item.kind === 'approval' && !item.answer) return { ...item, answer: 'withdrawn' };
    return item;
  });
  const last: EndItem = {
    kind: 'end',
    runId: run.id,
    text: run.text,
    changedFiles: [
      ...new Set(items.flatMap(item => (item.kind === 'tool' && item.result?.changedFiles) || [])),
    ],
    ...(run.route?.reason.likely && { likely: run.route.reason.likely }),
    ...(run.route?.skill && { hasSkill: true }),
    ...(run.usage ? { usage: run.usage } : {}),
    ...(run.perRound && run.perRound.length > 1 ? { perRound: run.perRound } : {}),
    ...end,
  };
  return { ...run, running: false, items: [...items, last] };
}

function addRound(run: Run, round: number, usage: Usage, context: ContextUse | undefined): Run {
  const before = run.perRound ?? [];
  const last = before.at(-1);
  // A summary is asked for beside the round.
  const isSame = last?.round === round;
  const one = { round, usage: isSame ? addedUsage(last.usage, usage) : usage };
  return {
    ...run,
    rounds: Math.max(run.rounds, round),
    usage: addedUsage(run.usage, usage),
    perRound: [...(isSame ? before.slice(0, -1) : before), one],
    ...(context && { context }),
  };
}

/** Returns the parts as they are about until the next round is counted. */
function shrunk({ tokens, ...rest }: ContextUse, to: number): ContextUse {
  const share = Math.min(1, to / Math.max(1, totalOf({ tokens })));
  const of = (part: ContextPart): number => Math.round(tokens[part] * share);
  const [system, skill, files, tools, conversation] = contextParts.map(of) as [
    number,
    number,
    number,
    number,
    number,
  ];
  return { ...rest, tokens: { system, skill, files, tools, conversation } };
}

export const totalOf = ({ tokens }: ContextUse): number =>
  contextParts.reduce((sum, part) => sum + tokens[part], 0);

export interface Inbox {
  readonly id: string | null;
  /** Number of the conversation's events that have been applied. */
  readonly have: number;
}

/** The numbered part of a `conversation` or `events` message. */
interface Batch {
  readonly id: string;
  readonly from: number;
  readonly events: readonly RunEvent[];
}

export interface Receipt {
  readonly inbox: Inbox;
  /** The new events, in order. */
  readonly events: readonly RunEvent[];
  /** True for another conversation, or the same one from its start: the view discards what was drawn. */
  readonly reset: boolean;
  /** True if events are missing: the view asks the host for all from `inbox.have` on. */
  readonly gap: boolean;
}

/** Takes a `conversation` message, which begins another conversation or continues the present one. */
export function receiveConversation(inbox: Inbox, batch: Batch): Receipt {
  if (batch.id === inbox.id && batch.from > 0) return receiveEvents(inbox, batch);
  if (batch.from > 0) return { inbox: { id: batch.id, have: 0 }, events: [], reset: true, gap: true };
  return {
    inbox: { id: batch.id, have: batch.events.length },
    events: batch.events,
    reset: true,
    gap: false,
  };
}

/** Takes an `events` message. Ignores events of a conversation that is not shown. */
export function receiveEvents(inbox: Inbox, batch: Batch): Receipt {
  const nothing = { inbox, events: [], reset: false, gap: false };
  if (batch.id !== inbox.id) return nothing;
  if (batch.from > inbox.have) return { ...nothing, gap: true };
  const events = batch.events.slice(inbox.have - batch.from);
  if (events.length === 0) return nothing;
  return { inbox: { id: inbox.id, have: inbox.have + events.length }, events, reset: false, gap: false };
}
