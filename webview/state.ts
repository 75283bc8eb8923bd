/**
 * Puts the events of runs in order, and reduces them to the state of the chat view. Pure. Nothing else holds the
 * conversation, so a reopened view that gets the same events shows the same thing. Items that will not change keep
 * their identity.
 */
import type { ApprovalDecision, RunEvent, ToolCall, Usage } from '../src/protocol/run.ts';
import { addedUsage } from '../src/protocol/usage.ts';
import { appendMarkdown, closeMarkdown, emptyMarkdown } from './markdownBlocks.ts';
import type {
  ApprovalItem,
  ChatState,
  EndItem,
  Item,
  RouteItem,
  Run,
  TextItem,
  ToolItem,
  ToolState,
} from './runItems.ts';

export const emptyChat: ChatState = { runs: [] };

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
  if (!run?.running) return state;
  const next = reduceRun(run, event);
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

function reduceRun(run: Run, event: Exclude<RunEvent, { type: 'run_start' }>): Run {
  switch (event.type) {
    case 'routed': {
      const { type: _, hasMcp: __, workingDir, ...facts } = event;
      const route: RouteItem = { kind: 'route', text: run.text, ...facts };
      return { ...push(run, route), route, workingDir };
    }
    case 'text':
      return addText(run, event.text);
    case 'step':
      return push(run, { kind: 'step', skill: event.skill, detail: event.detail });
    case 'notice': {
      const { level, message, remedy } = event;
      const folderOf = remedy?.kind === 'choose_folder' ? { folderOf: remedy.agent } : {};
      return push(run, { kind: 'notice', level, message, ...folderOf });
    }
    case 'retry': {
      const { attempt, waitMs, why } = event;
      const provider = run.route?.provider ?? 'the model';
      return push(run, { kind: 'retry', provider, attempt, waitMs, why, over: false });
    }
    case 'usage':
      return addRound(run, event.round, event.usage);
    case 'tool_start': {
      return push(run, openCall(run, event.call));
    }
    case 'tool_end':
      return endTool(run, event);
    case 'approval_request':
      return push(setToolState(run, event.request.callId, 'waiting'), {
        kind: 'approval',
        request: event.request,
      });
    case 'approval_response':
      return answerApproval(run, event.callId, event.decision);
    case 'question_request':
      return push(run, { kind: 'questions', questions: event.questions });
    case 'question_response':
      return replaceLast(
        run,
        item => item.kind === 'questions' && !item.answers,
        item => ({ ...item, answers: event.answers }) as Item,
      );
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

function endTool(run: Run, { callId, name, result, policy }: Extract<RunEvent, { type: 'tool_end' }>): Run {
  const isOpenCall = (item: Item) => item.kind === 'tool' && item.call.id === callId && !item.result;
  const known = run.items.some(isOpenCall) ? run : push(run, openCall(run, { id: callId, name, input: {} }));
  return replaceLast(known, isOpenCall, item => {
    const tool = item as ToolItem;
    const state = tool.state === 'denied' ? 'denied' : result.isError ? 'failed' : 'done';
    return { ...tool, state, result, ...(policy?.boxed && { boxed: true }) };
  });
}

function answerApproval(run: Run, callId: string, answer: ApprovalDecision): Run {
  const answered = replaceLast(
    run,
    item => item.kind === 'approval' && item.request.callId === callId && !item.answer,
    item => ({ ...(item as ApprovalItem), answer }),
  );
  return setToolState(answered, callId, answer.allow ? 'running' : 'denied');
}

function endRun(
  run: Run,
  end: Omit<EndItem, 'kind' | 'runId' | 'text' | 'usage' | 'perRound' | 'changedFiles'>,
): Run {
  const items = settleTail(run.items).map((item): Item => {
    if (item.kind === 'tool' && (item.state === 'running' || item.state === 'waiting')) {
      return { ...item, state: 'stopped' };
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
    ...(run.usage ? { usage: run.usage } : {}),
    ...(run.perRound && run.perRound.length > 1 ? { perRound: run.perRound } : {}),
    ...end,
  };
  return { ...run, running: false, items: [...items, last] };
}

function addRound(run: Run, round: number, usage: Usage): Run {
  return {
    ...run,
    rounds: Math.max(run.rounds, round),
    usage: addedUsage(run.usage, usage),
    perRound: [...(run.perRound ?? []), { round, usage }],
  };
}

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
