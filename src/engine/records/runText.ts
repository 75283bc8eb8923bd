/** Renders a run as a document: its request, actions, answers and usage. Exports conversations for other people, without secrets. */

import type { ApprovalDecision, RunEvent, ToolCall, ToolResult } from '@telos/protocol/run';
import { beginningOf, shortened } from '@telos/protocol/text';
import { formatDuration } from '@telos/protocol/usage';
import { mapStrings } from '../redact.ts';
import type { KeptConversation } from './runHistory.ts';
import type { RunSummary, StoredRun } from './runSummary.ts';
import { fenced, inlineCode, plainMarkdown, safeMarkdown } from './safeMarkdown.ts';

/** Returns the figures of a run, each with its name. Unknown ones are left out. Times are local. */
export function figuresOf(summary: RunSummary): readonly (readonly [name: string, value: string])[] {
  const { agent, skill, provider, model, outcome, rounds, toolCalls, durationMs, usage, error } = summary;
  const figures: [string, string | undefined][] = [
    ['Skill', skill ? `${agent}:${skill}` : 'none'],
    ['Model', model ? `${provider} ${model}` : undefined],
    ['Outcome', outcomeText[outcome] + (error ? `: ${error}` : '')],
    ['Started', timeText(summary.startedAt)],
    ['Duration', durationMs === undefined ? undefined : formatDuration(durationMs)],
    ['Steps', String(rounds)],
    ['Tool calls', String(toolCalls)],
    [
      'Tokens',
      usage && `${usage.inputTokens} in, ${usage.outputTokens} out${cachedText(usage.cacheReadTokens)}`,
    ],
    ['Cost', costText(summary)],
  ];
  return figures.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
}

export const outcomeText: Readonly<Record<RunSummary['outcome'], string>> = {
  completed: 'completed',
  failed: 'failed',
  cancelled: 'stopped',
  no_match: 'no matching skill',
  round_limit: 'stopped at the limit of steps',
  budget: 'stopped at the budget',
  running: 'running',
  interrupted: 'interrupted',
};

const cachedText = (tokens: number): string => (tokens > 0 ? `, ${tokens} from the cache` : '');

/** Returns undefined if no model was asked, or if the run has no end. */
export function costText({ usage, isRecording, rounds }: RunSummary): string | undefined {
  if (!usage || rounds === 0) return undefined;
  if (isRecording) return 'none, played from a recording';
  return typeof usage.cost === 'number' ? `$${usage.cost.toFixed(4)}` : 'unknown';
}

/** Returns `2026-01-31 09:05`, local time, or the text itself if it is not a time. */
export function timeText(iso: string): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return iso;
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** One piece of a run, in the order in which it happened. */
export type RunPart =
  | { kind: 'text'; text: string }
  | { kind: 'tool'; call: ToolCall; result?: ToolResult; asked?: string }
  | { kind: 'note'; text: string };

/** Returns the parts of a run that readers need. Each call has its result and the answer to its approval request. */
export function partsOf(events: readonly RunEvent[]): RunPart[] {
  const parts: RunPart[] = [];
  const calls = new Map<string, Extract<RunPart, { kind: 'tool' }>>();
  for (const event of events) {
    switch (event.type) {
      case 'text':
        parts.push({ kind: 'text', text: event.text });
        break;
      case 'tool_start': {
        const part = { kind: 'tool' as const, call: event.call };
        calls.set(event.call.id, part);
        parts.push(part);
        break;
      }
      case 'approval_response': {
        const call = calls.get(event.callId);
        if (call) call.asked = describeAnswer(event.decision);
        break;
      }
      case 'tool_end': {
        const call = calls.get(event.callId);
        if (call) call.result = event.result;
        break;
      }
      case 'notice':
        parts.push({ kind: 'note', text: event.message });
        break;
      case 'hook': {
        const { event: at, agent, command, did, said = '' } = event;
        const words = said === '' ? '' : `: ${said}`;
        if (did !== 'passed')
          parts.push({
            kind: 'note',
            text: `Hook ${at} of ${agent || 'the user'} (${command}) ${did}${words}`,
          });
        break;
      }
      case 'step':
        parts.push({ kind: 'note', text: `${event.skill}: ${event.detail}` });
        break;
      case 'retry':
        parts.push({ kind: 'note', text: `Retried: ${event.why}` });
        break;
      default:
    }
  }
  return parts;
}

/** Returns the input of a call in one line: its path, command or address, else all of it. */
export function inputText({ input }: ToolCall): string {
  const telling = ['path', 'command', 'url']
    .map(name => input[name])
    .find(value => typeof value === 'string');
  return String(telling ?? (Object.keys(input).length > 0 ? JSON.stringify(input) : ''));
}

/** Returns the rest of the input, or an empty text if the one line contains all of it. */
export function restOfInput(call: ToolCall): string {
  const rest = Object.entries(call.input).filter(([, value]) => value !== inputText(call));
  if (rest.length === 0 || inputText(call).startsWith('{')) return '';
  return rest
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('\n');
}

/** Maximum length of one input or result in a document. A JSON Lines file has all of it. In characters. */
const maxShown = 20_000;

export function shownPart(text: string): string {
  if (text.length <= maxShown) return text;
  return `${beginningOf(text, maxShown)}\n[... ${text.length - maxShown} more characters]`;
}

/** Returns the whole request. */
export function requestOf({ events, summary }: StoredRun): string {
  const start = events.find(event => event.type === 'run_start');
  return (start?.type === 'run_start' ? start.text : summary.request).trim();
}

/** Returns the names of the request's attachments. */
function attachedTo({ events }: StoredRun): string[] {
  const start = events.find(event => event.type === 'run_start');
  return start?.type === 'run_start' ? (start.attached ?? []).map(({ name }) => name) : [];
}

/** Returns the note about lines that could not be read. */
export const skippedText = (count: number): string =>
  `${count} ${count === 1 ? 'line' : 'lines'} of the stored file could not be read and ${count === 1 ? 'is' : 'are'} missing here.`;

function conversationMarkdown({ title, runs }: KeptConversation): string {
  return [`# ${plainMarkdown(title)}`, ...runs.map(run => runMarkdown(run))].join('\n\n');
}

/** Returns Markdown that is harmless wherever it is shown. Ends with a newline. */
export function runMarkdown(run: StoredRun): string {
  const request = requestOf(run);
  const attached = attachedTo(run);
  return `${[
    `## ${plainMarkdown(titleOf(request || `Run ${run.summary.skill}`))}`,
    figuresOf(run.summary)
      .map(([name, value]) => `- ${name}: ${plainMarkdown(value)}`)
      .join('\n'),
    ...(request ? ['### Request', fenced(request)] : []),
    ...(attached.length > 0 ? [`With it: ${attached.map(inlineCode).join(', ')}`] : []),
    '### What happened',
    ...partsOf(run.events).flatMap(partMarkdown),
    ...(run.skippedLines > 0 ? [`*${skippedText(run.skippedLines)}*`] : []),
  ].join('\n\n')}\n`;
}

const titleOf = (text: string): string => shortened(text.replace(/\s+/g, ' '), 100);

function partMarkdown(part: RunPart): string[] {
  switch (part.kind) {
    case 'text':
      return [safeMarkdown(part.text.trim())];
    case 'note':
      return [`> ${plainMarkdown(part.text)}`];
    case 'tool': {
      const { call, result, asked } = part;
      const state = !result ? ' (without a result)' : result.isError ? ' (failed)' : '';
      const heading = `**${plainMarkdown(call.name)}** ${inlineCode(inputText(call))}${state}${asked ? `, ${asked}` : ''}`;
      const rest = restOfInput(call);
      return [
        heading,
        ...(rest ? [fenced(shownPart(rest))] : []),
        ...(result?.content.trim() ? [fenced(shownPart(result.content))] : []),
      ];
    }
  }
}

export type ExportFormat = 'md' | 'jsonl';

/**
 * Returns the runs up to and including the last one of `conversation`. Everything is redacted again, because text stored before a
 * secret was known may still contain it.
 */
export function exportedConversation(
  conversation: KeptConversation,
  format: ExportFormat,
  redact: (text: string) => string,
): string {
  const clean = mapStrings(conversation, redact);
  switch (format) {
    case 'md':
      return conversationMarkdown(clean);
    case 'jsonl':
      return jsonLines(clean);
  }
}

/** Writes one line per run with its summary, followed by its events. The messages of a run are in its `run_end` event. */
function jsonLines({ id, title, runs }: KeptConversation): string {
  const lines = runs.flatMap(({ summary: { file, ...summary }, events, messages }) => [
    { type: 'run', version: 1, ...summary, conversation: id, conversationTitle: title },
    ...events.map(event => (event.type === 'run_end' ? { ...event, messages } : event)),
  ]);
  return lines.map(line => `${JSON.stringify(line)}\n`).join('');
}

/** Returns a file name made from a title: letters, digits and hyphens, never empty. */
export function exportName(title: string, startedAt: string, format: ExportFormat): string {
  const words = title
    .normalize('NFC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-+|-+$/g, '');
  return `${[startedAt.slice(0, 10).replace(/[^\d-]/g, ''), beginningOf(words, 60) || 'run'].filter(Boolean).join('-')}.${format}`;
}

function describeAnswer(decision: ApprovalDecision): string {
  if (!decision.allow) return decision.isSkipped ? 'you skipped the question' : 'you denied it';
  if (decision.command === undefined) return `you allowed it (${decision.scope})`;
  return `you changed it to ${inlineCode(decision.command)}`;
}
