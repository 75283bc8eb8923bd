/** Turns the events of a run into updates of a session. */
import { isAbsolute, resolve } from 'node:path';
import { readText } from '@telos/engine/files';
import type { StoredRun } from '@telos/engine/records';
import { describeHook, describeRoute } from '@telos/protocol/describe';
import { contextParts, type RunEvent, type ToolCall, type Usage } from '@telos/protocol/run';
import { beginningOf, endOf } from '@telos/protocol/text';
import { todosIn } from '@telos/protocol/todos';
import { addedUsage } from '@telos/protocol/usage';
import type { PlanEntry, SessionUpdate, ToolCallContent, ToolKind } from './protocol.ts';

/** Characters of an output that are sent, and bytes of a file whose change is sent whole. */
const mostOutput = 20_000;
const mostFileBytes = 256 * 1024;

const kinds: Readonly<Record<string, ToolKind>> = {
  read_file: 'read',
  list_directory: 'read',
  read_output: 'read',
  glob: 'search',
  search_files: 'search',
  edit_file: 'edit',
  write_file: 'edit',
  run_command: 'execute',
  stop_command: 'execute',
  fetch_url: 'fetch',
  update_todos: 'think',
};

const verbs: Readonly<Record<string, string>> = {
  read_file: 'Read',
  list_directory: 'List',
  glob: 'Find',
  search_files: 'Search for',
  edit_file: 'Edit',
  write_file: 'Write',
  fetch_url: 'Fetch',
  use_skill: 'Use',
};

/** Returns what a call is shown as: `Read src/cart.js`, or the command. */
export function titleOf({ name, input }: ToolCall): string {
  const [about] = ['command', 'path', 'url', 'pattern', 'query', 'skill'].flatMap(key =>
    typeof input[key] === 'string' ? [input[key]] : [],
  );
  const verb = name === 'run_command' ? '' : (verbs[name] ?? name);
  return beginningOf([verb, about].filter(Boolean).join(' ').replace(/\s+/g, ' '), 200) || name;
}

export const kindOf = (tool: string): ToolKind => kinds[tool] ?? 'other';

/** Returns the text in a block of code, whatever marks are in it. */
export function fenced(text: string, language = ''): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([marks]) => marks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}

export const textContent = (text: string): ToolCallContent => ({
  type: 'content',
  content: { type: 'text', text },
});

const message = (text: string): SessionUpdate => ({
  sessionUpdate: 'agent_message_chunk',
  content: { type: 'text', text },
});

const thought = (text: string): SessionUpdate => ({
  sessionUpdate: 'agent_thought_chunk',
  content: { type: 'text', text },
});

/** Follows the runs of a session, whose calls refer to each other. Its costs are those of the session. */
export class SessionUpdates {
  #workingDir = '';
  /** By the id of a call: what it has printed, and the text of its file before it. */
  readonly #printed = new Map<string, string>();
  readonly #before = new Map<string, { path: string; text: string | null }>();
  #usage: Usage | undefined;

  /** Returns what the client is told of the event. `within` is the call that brought it, for an event of a step. */
  of(event: RunEvent, within = ''): SessionUpdate[] {
    switch (event.type) {
      case 'routed':
        this.#workingDir = event.workingDir;
        return event.reason.rule === 'continued' || event.reason.rule === 'without_skill'
          ? []
          : [thought(`${describeRoute(event.agent, event.skill, event.reason)}\n`)];
      case 'text':
        // What a skill says that is used as a step is the result of its call.
        return within === '' ? [message(event.text)] : [];
      case 'reasoning':
        return event.text === '' ? [] : [thought(event.text)];
      case 'notice':
        return [thought(`${event.message}\n`)];
      case 'hook': {
        const said = describeHook(event);
        return said ? [thought(`${said.message}\n`)] : [];
      }
      case 'retry':
        return [thought(`${event.why}\n`)];
      case 'tool_start':
        return this.#start(event.call, within);
      case 'tool_output':
        return [this.#output(within + event.callId, event.text)];
      case 'tool_end':
        return [this.#end(event, within)];
      case 'skill_event':
        return this.of(event.event, `${within}${event.callId}/`);
      case 'usage': {
        const { context, usage } = event;
        this.#usage = addedUsage(this.#usage, usage);
        if (context?.window === undefined) return [];
        const used = contextParts.reduce((sum, part) => sum + context.tokens[part], 0);
        const { cost } = this.#usage;
        const paid = cost === 'unknown' ? {} : { cost: { amount: cost, currency: 'USD' } };
        return [{ sessionUpdate: 'usage_update', used, size: context.window, ...paid }];
      }
      default:
        return [];
    }
  }

  #start(call: ToolCall, within: string): SessionUpdate[] {
    const id = within + call.id;
    const { path } = call.input;
    const file = typeof path === 'string' && path !== '' ? this.#placeOf(path) : undefined;
    if (file !== undefined && kindOf(call.name) === 'edit')
      this.#before.set(id, { path: file, text: textAt(file) ?? null });
    const start: SessionUpdate = {
      sessionUpdate: 'tool_call',
      toolCallId: id,
      title: titleOf(call),
      kind: kindOf(call.name),
      status: 'in_progress',
      rawInput: call.input,
      ...(file !== undefined && { locations: [{ path: file }] }),
    };
    const todos = call.name === 'update_todos' ? todosIn(call.input) : [];
    if (typeof todos === 'string' || todos.length === 0) return [start];
    const entries = todos.map(
      ({ text, state }): PlanEntry => ({ content: text, priority: 'medium', status: planStates[state] }),
    );
    return [start, { sessionUpdate: 'plan', entries }];
  }

  #output(id: string, text: string): SessionUpdate {
    const printed = endOf((this.#printed.get(id) ?? '') + text, mostOutput);
    this.#printed.set(id, printed);
    return { sessionUpdate: 'tool_call_update', toolCallId: id, content: [textContent(fenced(printed))] };
  }

  #end({ callId, name, result }: RunEvent & { type: 'tool_end' }, within: string): SessionUpdate {
    const id = within + callId;
    const changed = result.changedFiles ?? [];
    const before = this.#before.get(id);
    this.#before.delete(id);
    this.#printed.delete(id);
    const now = before && changed.includes(before.path) ? textAt(before.path) : undefined;
    const words = beginningOf(result.content, mostOutput);
    const content: ToolCallContent[] =
      before && now !== undefined
        ? [{ type: 'diff', path: before.path, oldText: before.text, newText: now }]
        : words.trim() === ''
          ? []
          : [textContent(name === 'use_skill' ? words : fenced(words))];
    return {
      sessionUpdate: 'tool_call_update',
      toolCallId: id,
      status: result.isError ? 'failed' : 'completed',
      content,
      ...(changed.length > 0 && { locations: changed.map(path => ({ path })) }),
    };
  }

  /** The protocol takes absolute paths alone. */
  #placeOf(path: string): string | undefined {
    if (isAbsolute(path)) return path;
    return this.#workingDir === '' ? undefined : resolve(this.#workingDir, path);
  }
}

const planStates = { open: 'pending', doing: 'in_progress', done: 'completed' } as const;

/** Returns the text of a file, or undefined if it is missing, not text or large. */
function textAt(path: string): string | undefined {
  try {
    const text = readText(path, mostFileBytes);
    return text.includes('\0') ? undefined : text;
  } catch {
    return undefined;
  }
}

/** Yields the updates of stored runs in their order, the words of the user among them. */
export function* replayed(runs: readonly StoredRun[]): Generator<SessionUpdate> {
  const updates = new SessionUpdates();
  for (const { events } of runs)
    for (const event of events) {
      if (event.type === 'run_start')
        yield { sessionUpdate: 'user_message_chunk', content: { type: 'text', text: event.text } };
      yield* updates.of(event);
    }
}
