/** Words what the view shows and what a screen reader announces: whole sentences, no tokens, no code. Pure. */

import { describeCall, describeQuestion, describeRoute, describeWhy } from '@telos/protocol/describe';
import type {
  ApprovalDecision,
  ApprovalScope,
  RouteReason,
  RunEvent,
  RunMode,
  ToolCall,
  ToolResult,
  Usage,
} from '@telos/protocol/run';
import { shortened } from '@telos/protocol/text';
import { formatCost, formatDuration } from '@telos/protocol/usage';
import type { Surroundings } from '@telos/protocol/webview';
import { language, t } from './host.ts';
import {
  type ApprovalItem,
  type EndItem,
  type RetryItem,
  type RoundUsage,
  type Run,
  readingTools,
  type ToolState,
} from './runItems.ts';
import { visible } from './visibleText.ts';

const argumentsThatSayMost = [
  'command',
  'question',
  'skill',
  'path',
  'file_path',
  'url',
  'pattern',
  'query',
  'name',
  'title',
];

/** Returns one line about a call, for example its path or command. If the arguments contain no text, returns their names. */
export function summarizeCall(call: ToolCall, workingDir: string): string {
  const entries = Object.entries(call.input);
  // Of a search, what is looked for says more than where.
  const names = readingTools[call.name] === 'search' ? ['pattern', 'query'] : argumentsThatSayMost;
  const telling = names.find(name => typeof call.input[name] === 'string');
  const value = telling ? call.input[telling] : entries.find(([, each]) => typeof each === 'string')?.[1];
  if (typeof value !== 'string') return entries.map(([name]) => name).join(', ');
  const line = visible(relativeTo(value, workingDir).trim().split('\n', 1)[0]!);
  return shortened(line, 200);
}

/** Returns the words before what a call is about, that, and the words behind it: "Ran", "npm test". A language may need either. */
export function wordCall(
  call: ToolCall,
  workingDir: string,
  isDone: boolean,
): readonly [before: string, subject: string, after: string] {
  const [before = '', after = ''] = describeCall(call, '\0', isDone, t).split('\0');
  return [visible(before), summarizeCall(call, workingDir), visible(after)];
}

/** Returns what a series of reads did: "Read 14 files · Searched once". Files that were read twice count once. */
export function describeReads(calls: readonly ToolCall[]): string {
  const of = (kind: string): readonly ToolCall[] => calls.filter(({ name }) => readingTools[name] === kind);
  const paths = (kind: string): number => new Set(of(kind).map(({ input }) => input['path'])).size;
  const [files, folders, searches] = [paths('read'), paths('list'), of('search').length];
  return [
    files > 0 && (files === 1 ? t('Read 1 file') : t('Read {0} files', formatNumber(files))),
    folders > 0 && (folders === 1 ? t('Listed 1 folder') : t('Listed {0} folders', formatNumber(folders))),
    searches > 0 && (searches === 1 ? t('Searched once') : t('Searched {0} times', formatNumber(searches))),
  ]
    .filter(Boolean)
    .join(' · ');
}

/** Returns the line to which a thought folds: "Thought for 8 s". Missing for a time that is not known. */
export const describeThought = (durationMs: number | undefined): string =>
  durationMs === undefined
    ? t('Thought')
    : t(
        'Thought for {0}',
        formatDuration(durationMs < 1_000 ? durationMs : Math.round(durationMs / 1_000) * 1_000),
      );

/** Returns the path relative to `folder`, or unchanged if it is elsewhere. */
export function relativeTo(path: string, folder: string): string {
  if (!folder) return path;
  for (const separator of ['/', '\\']) {
    const prefix = folder.endsWith(separator) ? folder : folder + separator;
    if (path.startsWith(prefix) && path.length > prefix.length) return path.slice(prefix.length);
  }
  return path;
}

export const toolStateWords: Record<ToolState, string> = {
  running: t('running'),
  waiting: t('waiting for you'),
  done: t('done'),
  failed: t('failed'),
  denied: t('denied'),
  stopped: t('stopped'),
};

const scopeLabels: Record<ApprovalScope, string> = {
  once: t('Allow Once'),
  run: t('Allow for This Run'),
  always: t('Always Allow'),
};

/** Returns what a button says that allows this for the scope. */
export const allowLabel = (scope: ApprovalScope, { forConversation }: ApprovalItem['request']): string =>
  scope === 'run' && forConversation ? t('Allow for This Conversation') : scopeLabels[scope];

/** The names of the modes, as the person chooses them. */
export const modeNames: Record<RunMode, string> = {
  plan: t('Look only'),
  review: t('Ask'),
  default: t('Edit this workspace'),
  sandbox: t('Everything in the sandbox'),
};

/** Returns what runs may do in the mode, in one sentence or two. `known` is where they work, if the host has said so. */
export function describeMode(mode: RunMode, known: Surroundings | undefined): string {
  const place = known?.workspace ? visible(known.workspace) : t('this workspace');
  if (mode === 'plan') return t('Reads and answers. Changes nothing.');
  if (mode === 'review') return t('Asks before each change, and shows its lines.');
  if (known?.noSandbox !== undefined)
    return t(
      'Can change {0}. Each command asks, as no sandbox works here: {1}',
      place,
      visible(known.noSandbox),
    );
  return mode === 'sandbox'
    ? t('Asks about no command or folder of your own skills that the sandbox holds. The network still asks.')
    : t('Can change {0}, and asks before the network and anything else. Changes can be undone.', place);
}

/** Returns the added and removed lines, for reading and for listening. Empty if they are not counted. */
export function describeLines(lines: ToolResult['changedLines']): { short: string[]; long: string } {
  if (!lines) return { short: [], long: '' };
  const { added, removed } = lines;
  return {
    short: [`+${formatNumber(added)}`, `−${formatNumber(removed)}`],
    long:
      added === 1
        ? t('1 line added, {0} removed', formatNumber(removed))
        : t('{0} lines added, {1} removed', formatNumber(added), formatNumber(removed)),
  };
}

/** Returns the line to which an answered approval card folds. */
export function describeAnswer(
  answer: NonNullable<ApprovalItem['answer']>,
  { forConversation }: ApprovalItem['request'],
): string {
  if (answer === 'withdrawn') return t('Not answered');
  if (!answer.allow && answer.isSkipped) return t('You skipped this');
  if (!answer.allow) return answer.isAway ? t('No one was there to answer') : t('You denied this');
  if (answer.answer !== undefined || answer.content !== undefined) return t('You answered');
  if (answer.command !== undefined) return t('Changed and allowed once');
  return {
    once: t('Allowed once'),
    run: forConversation ? t('Allowed for this conversation') : t('Allowed for this run'),
    always: t('Always allowed'),
  }[answer.scope];
}

/** The answer sent when the person presses Deny. The model receives its reason. */
export const denial: ApprovalDecision = { allow: false, reason: 'The user denied this.' };

/** In characters. */
export const longestWhy = 1_000;

/** Returns the denial with what the person says to the model. */
export const deniedFor = (why: string): ApprovalDecision =>
  why.trim() === '' ? denial : { allow: false, reason: `The user denied this: ${why.trim()}` };

const providerNames: Record<string, string> = {
  anthropic: 'Anthropic',
  openai: 'OpenAI',
  gemini: 'Gemini',
  ollama: 'Ollama',
  openrouter: 'OpenRouter',
  azure: 'Azure OpenAI',
  bedrock: 'Amazon Bedrock',
  vertex: 'Vertex AI',
  vscode: 'VS Code',
  replay: t('the recording'),
};

function providerName(provider: string): string {
  return providerNames[provider] ?? visible(provider);
}

export function describeRetry(item: RetryItem): string {
  const time = formatDuration(item.waitMs);
  const whom = providerName(item.provider);
  const waiting = item.over ? t('Waited {0} for {1}', time, whom) : t('Waiting {0} for {1}', time, whom);
  const attempt = item.attempt > 1 ? ` (${t('try {0}', item.attempt)})` : '';
  return `${waiting}${attempt}: ${visible(item.why)}`;
}

/** Returns the scores of a choice: "score 0.62, then weekly-summary with 0.31". Empty if there are none. */
export function describeScores({ score, runnerUp }: RouteReason): string {
  const own = score === undefined ? '' : t('score {0}', score.toFixed(2));
  if (!runnerUp) return own;
  const name = visible(runnerUp.skill);
  const other =
    runnerUp.score === undefined
      ? t('then {0}', name)
      : t('then {0} with {1}', name, runnerUp.score.toFixed(2));
  return [own, other].filter(Boolean).join(', ');
}

/** Describes a recorded run with its date in the reader's calendar. An invalid date has its own words. */
export function describeRecording(recording: { model: string; recordedAt: string }): string {
  const time = new Date(recording.recordedAt);
  const date = Number.isNaN(time.getTime())
    ? t('an unknown date')
    : time.toLocaleDateString(language === 'en' ? 'en-GB' : language, {
        day: 'numeric',
        month: 'long',
        year: 'numeric',
        timeZone: 'UTC',
      });
  return t(
    'This is a recording of {0} from {1}, not a live model. Its tools run for real.',
    visible(recording.model),
    date,
  );
}

export const describeChanges = (files: number): string =>
  files === 1 ? t('1 file changed') : t('{0} files changed', formatNumber(files));

const outcomeWords: Record<EndItem['outcome'], string> = {
  completed: t('Completed'),
  no_match: t('No matching skill'),
  round_limit: t('Stopped at the limit of steps'),
  budget: t('Stopped at the budget limit'),
  cancelled: t('Cancelled'),
  failed: t('Failed'),
  interrupted: t('Interrupted'),
};

export function describeOutcome(outcome: EndItem['outcome']): string {
  return outcomeWords[outcome];
}

/** Returns a run's time and its cost, if they are known. */
export const describeEnd = ({ durationMs, usage }: EndItem): string[] => [
  ...(durationMs === undefined ? [] : [formatDuration(durationMs)]),
  ...(usage && usage.cost !== 'unknown' && usage.cost > 0 ? [formatCost(usage.cost)] : []),
];

/** Returns a run's time, steps, tool calls, tokens and cost, if they are known. */
export function describeFigures(end: EndItem): string[] {
  const figures: string[] = [];
  if (end.durationMs !== undefined) figures.push(formatDuration(end.durationMs));
  if (end.rounds > 0) figures.push(end.rounds === 1 ? t('1 step') : t('{0} steps', formatNumber(end.rounds)));
  if (end.toolCalls > 0) {
    figures.push(end.toolCalls === 1 ? t('1 tool call') : t('{0} tool calls', formatNumber(end.toolCalls)));
  }
  return end.usage ? [...figures, ...describeUsage(end.usage)] : figures;
}

/** Returns the usage of one step: "Step 2: 1,200 tokens in, 80 out · $0.0012". */
export function describeRound({ round, usage }: RoundUsage): string {
  const used = describeUsage(usage).join(' · ') || t('not known');
  return round === 0 ? t('Choice of the skill: {0}', used) : t('Step {0}: {1}', round, used);
}

function describeUsage(usage: Usage): string[] {
  const input = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
  if (input + usage.outputTokens === 0) return [];
  const tokens = t('{0} tokens in, {1} out', formatNumber(input), formatNumber(usage.outputTokens));
  return [tokens, usage.cost === 'unknown' ? t('cost unknown') : formatCost(usage.cost)];
}

/** Returns what a run waits for. Undefined while its text arrives, or a tool or card shows it. */
export function describeActivity(run: Run): string | undefined {
  const last = run.items.at(-1);
  if (last?.kind === 'retry') return undefined;
  // Work of Telos's own, which has steps and no skill.
  if (!run.route && run.items.some(item => item.kind === 'step'))
    return last?.kind === 'step' ? t('Working') : undefined;
  if (!run.route) return t('Choosing a skill');
  const toolIsOpen = run.items.some(
    item => item.kind === 'tool' && (item.state === 'running' || item.state === 'waiting'),
  );
  const personIsAsked = run.items.some(item => item.kind === 'approval' && !item.answer);
  if (last?.kind === 'text' || (last?.kind === 'thought' && !last.over) || toolIsOpen || personIsAsked)
    return undefined;
  return run.route.recording
    ? t('Waiting for the recording')
    : t('Waiting for {0}', visible(run.route.model));
}

export function formatNumber(value: number): string {
  return value.toLocaleString('en-US');
}

/** Returns what a conversation's next message did to its skill, in five words. Empty if it just goes on. */
export function fitsText(skill: string, { switchedFrom, alsoFits }: RouteReason): string {
  if (alsoFits) return t('{0} fits too', alsoFits.skill);
  if (!switchedFrom) return '';
  return switchedFrom.skill
    ? t('{0} fits better than {1}', skill, switchedFrom.skill)
    : t('{0} fits this request', skill);
}

/** Text that was received but is not a complete sentence yet. */
export interface Speech {
  readonly rest: string;
  readonly inCode: boolean;
}

export const initialSpeech: Speech = { rest: '', inCode: false };

/** Returns the sentences to announce now, and the state to keep for later. */
export function announcementsFor(speech: Speech, event: RunEvent): { speech: Speech; say: string[] } {
  // Of what a skill of the run does, only its questions are said.
  if (event.type === 'skill_event') {
    const { type } = event.event;
    const isSaid = type === 'approval_request' || type === 'skill_event';
    return isSaid ? announcementsFor(speech, event.event) : { speech, say: [] };
  }
  if (event.type === 'text') return hearText(speech, event.text);
  const pending = endOfText(speech);
  const announcement = announce(event);
  if (announcement === undefined) return { speech, say: [] };
  return { speech: initialSpeech, say: announcement ? [...pending, announcement] : pending };
}

/**
 * Returns the announcement of an event. Undefined keeps a half sentence waiting; an empty string ends it without further words.
 */
function announce(event: RunEvent): string | undefined {
  switch (event.type) {
    case 'run_start':
      return '';
    case 'routed':
      return [describeRoute(event.agent, event.skill, event.reason, t), fitsText(event.skill, event.reason)]
        .filter(Boolean)
        .map(sentence => `${sentence}.`)
        .join(' ');
    case 'step':
      return `${event.skill}: ${event.detail}`;
    case 'notice':
      return event.message;
    case 'tool_start':
      return '';
    case 'approval_request':
      return `${describeQuestion(event.request, t)} ${describeWhy(event.request, t)}`;
    case 'retry':
      return t('Waiting: {0}', event.why);
    case 'run_end':
      return event.error
        ? `${describeOutcome(event.outcome)}: ${event.error.message}`
        : `${describeOutcome(event.outcome)}.`;
    default:
      return undefined;
  }
}

function hearText(speech: Speech, delta: string): { speech: Speech; say: string[] } {
  let { inCode } = speech;
  let rest = speech.rest + delta;
  const say: string[] = [];
  for (;;) {
    const cut = /\n|[.!?]["')\]]?\s/.exec(rest);
    if (!cut) break;
    const piece = rest.slice(0, cut.index + cut[0].length);
    rest = rest.slice(piece.length);
    if (/^\s*(```|~~~)/.test(piece)) {
      inCode = !inCode;
      if (inCode) say.push(t('Code block.'));
    } else if (!inCode) {
      const words = spoken(piece);
      if (words) say.push(words);
    }
  }
  return { speech: { rest, inCode }, say };
}

function endOfText(speech: Speech): string[] {
  const words = speech.inCode ? '' : spoken(speech.rest);
  return words ? [words] : [];
}

function spoken(markdown: string): string {
  const text = markdown
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/^\s*(#{1,6}\s|[-*+]\s|>\s?|\|)/, '')
    .replace(/[*_`]{1,3}|\|/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return /[\p{L}\p{N}]/u.test(text) ? text : '';
}
