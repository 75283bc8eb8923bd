/** The sentences of the chat view, kept as pure functions so that they can be read and tested without a browser. */
import { formatCost } from '../src/protocol/daySpending.ts';
import type {
  ApprovalDecision,
  ApprovalScope,
  RouteReason,
  ToolCall,
  ToolResult,
  Usage,
} from '../src/protocol/run.ts';
import type { ApprovalItem, EndItem, RetryItem, RoundUsage, Run, ToolState } from './state.ts';
import { visible } from './visibleText.ts';

const argumentsThatSayMost = ['command', 'path', 'file_path', 'url', 'pattern', 'query', 'name', 'title'];

/** One line about what a call does, for example its path or command; empty when the arguments hold no text. */
export function summarizeCall(call: ToolCall, workingDir: string): string {
  const entries = Object.entries(call.input);
  const telling = argumentsThatSayMost.find(name => typeof call.input[name] === 'string');
  const value = telling ? call.input[telling] : entries.find(([, each]) => typeof each === 'string')?.[1];
  if (typeof value !== 'string') return entries.map(([name]) => name).join(', ');
  const line = visible(relativeTo(value, workingDir).trim().split('\n', 1)[0]!);
  return line.length > 200 ? `${line.slice(0, 199)}…` : line;
}

/** A path as seen from `folder`, unchanged when it lies elsewhere. */
export function relativeTo(path: string, folder: string): string {
  if (!folder) return path;
  for (const separator of ['/', '\\']) {
    const prefix = folder.endsWith(separator) ? folder : folder + separator;
    if (path.startsWith(prefix) && path.length > prefix.length) return path.slice(prefix.length);
  }
  return path;
}

export const toolStateWords: Record<ToolState, string> = {
  running: 'running',
  waiting: 'waits for you',
  done: 'done',
  failed: 'failed',
  denied: 'denied',
  stopped: 'stopped',
};

export const scopeLabels: Record<ApprovalScope, string> = {
  once: 'Allow once',
  run: 'Allow for this run',
  always: 'Always allow',
};

/** Lines that came and went, for an eye and for an ear; empty where they are not counted. */
export function describeLines(lines: ToolResult['changedLines']): { short: string[]; long: string } {
  if (!lines) return { short: [], long: '' };
  const { added, removed } = lines;
  return {
    short: [`+${formatNumber(added)}`, `−${formatNumber(removed)}`],
    long: `${count(added, 'line')} added, ${formatNumber(removed)} removed`,
  };
}

/** The line to which an approval card folds once it is answered. */
export function describeAnswer(answer: NonNullable<ApprovalItem['answer']>): string {
  if (answer === 'withdrawn') return 'Not answered';
  if (!answer.allow) return 'Denied';
  return { once: 'Allowed once', run: 'Allowed for this run', always: 'Always allowed' }[answer.scope];
}

/** What the model is told when the person presses Deny. */
export const denial: ApprovalDecision = { allow: false, reason: 'The person said no.' };

const providerNames: Record<string, string> = {
  anthropic: 'Anthropic',
  openai: 'OpenAI',
  gemini: 'Gemini',
  ollama: 'Ollama',
  openrouter: 'OpenRouter',
  vscode: 'VS Code',
  replay: 'the recording',
};

export function providerName(provider: string): string {
  return providerNames[provider] ?? visible(provider);
}

export function describeRetry(item: RetryItem): string {
  const verb = item.over ? 'Waited' : 'Waiting';
  const attempt = item.attempt > 1 ? ` (try ${item.attempt})` : '';
  return `${verb} ${formatDuration(item.waitMs)} for ${providerName(item.provider)}${attempt}: ${visible(item.why)}`;
}

/** The index's figures behind a choice: "score 0.62, then weekly-summary with 0.31"; empty where there are none. */
export function describeScores({ score, runnerUp }: RouteReason): string {
  const own = score === undefined ? '' : `score ${score.toFixed(2)}`;
  if (!runnerUp) return own;
  const other = runnerUp.score === undefined ? '' : ` with ${runnerUp.score.toFixed(2)}`;
  return [own, `then ${visible(runnerUp.skill)}${other}`].filter(Boolean).join(', ');
}

/** The sentence about a recorded run, with its date in the reader's calendar and own words for a broken one. */
export function describeRecording(recording: { model: string; recordedAt: string }): string {
  const time = new Date(recording.recordedAt);
  const date = Number.isNaN(time.getTime())
    ? 'an unknown date'
    : time.toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' });
  return `This is a recording of ${visible(recording.model)} from ${date}, not a live model; its tools run for real.`;
}

export const describeChanges = (files: number): string => `${count(files, 'file')} changed`;

const outcomeWords: Record<EndItem['outcome'], string> = {
  completed: 'Completed',
  no_match: 'No skill fits',
  round_limit: 'Stopped at the round limit',
  budget: 'Stopped by the budget',
  cancelled: 'Cancelled',
  failed: 'Failed',
  interrupted: 'Interrupted before its end',
};

export function describeOutcome(outcome: EndItem['outcome']): string {
  return outcomeWords[outcome];
}

/** Time, rounds, tool calls, tokens and cost of a run, as far as they are known. */
export function describeFigures(end: EndItem): string[] {
  const figures: string[] = [];
  if (end.durationMs !== undefined) figures.push(formatDuration(end.durationMs));
  if (end.rounds > 0) figures.push(count(end.rounds, 'round'));
  if (end.toolCalls > 0) figures.push(count(end.toolCalls, 'tool call'));
  return end.usage ? [...figures, ...describeUsage(end.usage)] : figures;
}

/** What one round used: "Round 2: 1,200 tokens in, 80 out · $0.0012". */
export function describeRound({ round, usage }: RoundUsage): string {
  return `Round ${round}: ${describeUsage(usage).join(' · ') || 'nothing known'}`;
}

function describeUsage(usage: Usage): string[] {
  const input = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
  if (input + usage.outputTokens === 0) return [];
  const tokens = `${formatNumber(input)} tokens in, ${formatNumber(usage.outputTokens)} out`;
  return [tokens, usage.cost === 'unknown' ? 'cost unknown' : formatCost(usage.cost)];
}

/** What a run waits for; undefined while its text is on its way or a tool or card says it for itself. */
export function describeActivity(run: Run): string | undefined {
  const last = run.items.at(-1);
  if (last?.kind === 'retry') return undefined;
  if (!run.route) return 'Choosing a skill';
  const toolIsOpen = run.items.some(
    item => item.kind === 'tool' && (item.state === 'running' || item.state === 'waiting'),
  );
  const personIsAsked = run.items.some(item => item.kind === 'approval' && !item.answer);
  if (last?.kind === 'text' || toolIsOpen || personIsAsked) return undefined;
  return run.route.recording ? 'Waiting for the recording' : `Waiting for ${visible(run.route.model)}`;
}

/** Milliseconds in words a person reads at a glance: "0.4 s", "12 s", "3 min 5 s". */
export function formatDuration(ms: number): string {
  if (ms < 10_000) return `${Number((ms / 1000).toFixed(1))} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const rest = seconds % 60;
  return rest ? `${Math.floor(seconds / 60)} min ${rest} s` : `${seconds / 60} min`;
}

export function formatNumber(value: number): string {
  return value.toLocaleString('en-US');
}

function count(value: number, noun: string): string {
  return `${formatNumber(value)} ${noun}${value === 1 ? '' : 's'}`;
}
