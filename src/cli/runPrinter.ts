/** Shows a run on the terminal: the model's words on stdout as they come, everything else on stderr. */
import { homedir } from 'node:os';
import { isAbsolute, relative } from 'node:path';
import { describeCall, describeHook, describeRoute } from '@telos/protocol/describe';
import { withOutput } from '@telos/protocol/liveText';
import type { MarkdownStream } from '@telos/protocol/markdownStream';
import {
  type ContextUse,
  contextParts,
  type RunError,
  type RunEvent,
  type RunOutcome,
  type SkillRef,
  type ToolCall,
  type Usage,
} from '@telos/protocol/run';
import { counted, grouped } from '@telos/protocol/text';
import { type Todo, todosIn } from '@telos/protocol/todos';
import { addedUsage, formatCost, formatDuration } from '@telos/protocol/usage';
import type { Surroundings } from './surroundings.ts';
import type { Terminal } from './terminal.ts';
import { messageText, terminalJson, terminalLine, terminalText } from './terminalText.ts';

export type RunPrinter = (event: RunEvent) => void;

/** Prints each event as one line of JSON on stdout. */
export function jsonPrinter(terminal: Terminal): RunPrinter {
  return event => terminal.out(`${terminalJson(event)}\n`);
}

export interface PrinterLook {
  verbose?: boolean;
  /** The person can type the next request right below. */
  inChat?: boolean;
}

/** Returns the printer of a run for people: in words, with Markdown shown where stdout is a terminal. */
export async function openTextPrinter(terminal: Terminal, look: PrinterLook): Promise<RunPrinter> {
  const { markdown, outWidth } = terminal;
  if (!markdown || outWidth === undefined) return textPrinter(terminal, look);
  const { markdownStream } = await import('@telos/protocol/markdownStream');
  return textPrinter(terminal, look, markdownStream({ width: outWidth, styled: markdown === 'styled' }));
}

/**
 * Prints a run as text, and closes it with a line of figures. With `verbose` it adds tool results, and tokens and cost of each
 * round.
 */
export function textPrinter(
  terminal: Terminal,
  { verbose = false, inChat = false }: PrinterLook = {},
  markdown?: MarkdownStream,
): RunPrinter {
  const { style } = terminal;
  const figures = new RunFigures(terminal.surroundings);
  const live = new LiveLines();
  /** Printers of the skills that run as steps, by call. */
  const inner = new Map<string, RunPrinter>();
  const isGlimpsed = inChat && !verbose && terminal.canAsk;
  /** Calls that have begun, whose end names them. */
  const calls = new Map<string, ToolCall>();
  let isNewTurn = false;
  let thought = '';
  let likely: readonly SkillRef[] = [];
  const endText = (): void => {
    if (markdown) terminal.out(markdown.end());
  };
  const say = (line: string): void => {
    endText();
    terminal.say(line);
  };
  return event => {
    figures.add(event);
    switch (event.type) {
      case 'routed':
        likely = event.reason.likely ?? [];
        return say(routedText(event, terminal, verbose));
      case 'step':
        return say(style.dim(`· ${terminalLine(`${event.skill}: ${event.detail}`, terminal.sayWidth - 2)}`));
      case 'notice':
        return say(event.level === 'warning' ? style.yellow(messageText(event)) : messageText(event));
      case 'hook': {
        const said = describeHook(event);
        const { agent, command, did, durationMs } = event;
        if (said) say((said.level === 'warning' ? style.yellow : style.dim)(terminalText(said.message)));
        else if (verbose)
          say(
            style.dim(
              terminalLine(`hook ${event.event} (${agent || 'yours'}) ${did}, ${durationMs} ms: ${command}`),
            ),
          );
        return undefined;
      }
      case 'text': {
        const text = terminalText(event.text);
        // Tool lines stand between two turns, but not in a pipe that gets only the words.
        if (isNewTurn) terminal.endLine('blank line');
        isNewTurn = false;
        return terminal.out(markdown ? markdown.add(text) : text);
      }
      case 'reasoning':
        thought += event.text;
        if (event.durationMs === undefined) return;
        if (verbose) say(style.dim(thoughtText(thought, event.durationMs)));
        thought = '';
        return;
      case 'tool_start':
        endText();
        calls.set(event.call.id, event.call);
        isNewTurn = true;
        if (terminal.outWidth !== undefined) terminal.endLine();
        return say(
          event.call.name === 'update_todos'
            ? todoText(event.call, terminal)
            : `${style.bold('→')} ${toolLine(event.call, terminal.sayWidth - 2)}`,
        );
      case 'skill_event': {
        const printer = inner.get(event.callId) ?? textPrinter(below(terminal), { verbose });
        inner.set(event.callId, printer);
        // Its result says how it ended.
        if (event.event.type !== 'run_end') printer(event.event);
        return undefined;
      }
      case 'tool_output':
        return verbose ? live.add(event, line => say(style.dim(`  ${line}`))) : undefined;
      case 'tool_progress':
        return say(style.dim(terminalLine(`${event.name}: ${event.message}`, terminal.sayWidth)));
      case 'tool_end': {
        const call = calls.get(event.callId) ?? { id: event.callId, name: event.name, input: {} };
        calls.delete(event.callId);
        const end = live.endOf(event, line => say(style.dim(`  ${line}`)));
        sayResult(call, end, terminal, verbose);
        return isGlimpsed ? sayGlimpse(call, event, terminal) : undefined;
      }
      case 'usage':
        return verbose ? say(style.dim(usageText(event))) : undefined;
      case 'retry':
        return say(
          style.yellow(`Trying again in ${Math.ceil(event.waitMs / 1000)} s (${terminalText(event.why)})`),
        );
      case 'compacted':
        say(style.dim(compactedText(event, inChat)));
        return verbose ? say(style.dim(indented(event.summary))) : undefined;
      case 'compaction_undone':
        return say(style.dim('The compaction is undone: the model is sent the whole conversation again.'));
      case 'run_end': {
        endText();
        terminal.endLine();
        sayEnd(event, terminal, inChat);
        const closing = figures.closingLine(event, verbose);
        if (closing !== undefined) say(style.dim(terminalLine(closing)));
        const fitting = likely.map(({ skill }) => `/${skill}?`).join(' ');
        return fitting === '' ? undefined : say(style.dim(terminalLine(`no skill · ${fitting}`)));
      }
      default:
        return undefined;
    }
  };
}

/** Returns a terminal for what a step does: its lines are indented, and its words are left to its result. */
const below = (terminal: Terminal): Terminal => ({
  ...terminal,
  out: () => undefined,
  endLine: () => undefined,
  say: line => terminal.say(line.replace(/^/gm, '  ')),
  sayWidth: Math.max(20, terminal.sayWidth - 2),
  outWidth: undefined,
  markdown: undefined,
});

/** Shows the lines of running commands as they come. */
class LiveLines {
  /** The line that is not whole yet, by call. */
  readonly #open = new Map<string, string>();

  add({ callId, text }: EventOf<'tool_output'>, say: (line: string) => void): void {
    const lines = withOutput(this.#open.get(callId) ?? '', text, longestLine).split('\n');
    this.#open.set(callId, lines.pop() ?? '');
    for (const line of lines) say(terminalText(line));
  }

  /** Returns the end of the call. If its output was shown, only what Telos says of it is left of its result. */
  endOf(event: EventOf<'tool_end'>, say: (line: string) => void): EventOf<'tool_end'> {
    const rest = this.#open.get(event.callId);
    if (rest === undefined) return event;
    this.#open.delete(event.callId);
    if (rest !== '') say(terminalText(rest));
    const lines = event.result.content.trimEnd().split('\n');
    const notes = lines.slice(lines.findLastIndex(line => line !== '' && !/^\[.*\]$/.test(line)) + 1);
    const content = notes.filter(line => line !== '' && line !== '[stderr]').join('\n');
    return { ...event, result: { ...event.result, content } };
  }
}

/** In characters. What is kept of output without a line break. */
const longestLine = 16_000;

/** Files that the closing line names. The others are counted. */
const namedFiles = 5;

/** Sums a run up. */
class RunFigures {
  readonly #surroundings: Surroundings;
  #usage: Usage | undefined;
  readonly #files = new Set<string>();
  #isRouted = false;
  #isRecording = false;

  /** Files are named as they would be typed there. */
  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
  }

  add(event: RunEvent): void {
    if (event.type === 'routed') {
      this.#isRouted = true;
      this.#isRecording = event.recording !== undefined;
    }
    if (event.type === 'usage') this.#usage = addedUsage(this.#usage, event.usage);
    if (event.type === 'tool_end') for (const file of event.result.changedFiles ?? []) this.#files.add(file);
  }

  /** Returns time, tokens, cost and changed files in a line; undefined for a run that never began. */
  closingLine(end: EventOf<'run_end'>, verbose: boolean): string | undefined {
    if (!this.#isRouted) return undefined;
    const { outcome, durationMs, rounds, toolCalls } = end;
    const parts = [`${closingWords[outcome]} ${formatDuration(Math.max(durationMs, 100))}`];
    if (verbose) parts.push(counted(rounds, 'step'), counted(toolCalls, 'tool call'));
    if (this.#usage && !this.#isRecording) {
      const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, cost } = this.#usage;
      const tokens = inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens;
      parts.push(`${grouped(tokens)} ${tokens === 1 ? 'token' : 'tokens'}`);
      parts.push(cost === 'unknown' ? 'cost unknown' : formatCost(cost));
    }
    const files = [...this.#files].map(path => shortPath(path, this.#surroundings));
    const more = files.length > namedFiles ? ` and ${files.length - namedFiles} more` : '';
    if (files.length > 0)
      parts.push(`${counted(files.length, 'file')}: ${files.slice(0, namedFiles).join(', ')}${more}`);
    return parts.join(' · ');
  }
}

const closingWords: Record<RunOutcome, string> = {
  completed: 'Done in',
  no_match: 'Ended after',
  round_limit: 'Stopped after',
  budget: 'Stopped after',
  cancelled: 'Cancelled after',
  failed: 'Failed after',
};

/** Returns the path as a person would type it: from the current folder, or else from the home folder. */
function shortPath(path: string, surroundings: Surroundings): string {
  for (const [folder, name] of [
    [surroundings.cwd(), ''],
    [surroundings.env['HOME'] || homedir(), '~/'],
  ] as const) {
    const below = relative(folder, path);
    if (below !== '' && !below.startsWith('..') && !isAbsolute(below)) return name + below;
  }
  return path;
}

type EventOf<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>;

function routedText(event: EventOf<'routed'>, { style }: Terminal, verbose: boolean): string {
  const lines = [style.bold(terminalLine(describeRoute(event.agent, event.skill, event.reason)))];
  if (event.recording) {
    const { model, recordedAt } = event.recording;
    lines.push(
      style.yellow(
        `This is a recording of ${terminalLine(model)} from ${terminalLine(recordedAt.replace(/T.*$/, ''))}: no model is asked, the tools run for real.`,
      ),
    );
  }
  if (verbose) {
    lines.push(style.dim(terminalLine(`${event.provider} ${event.model}, files in ${event.workingDir}`)));
  }
  return lines.join('\n');
}

const todoMarks: Record<Todo['state'], string> = { open: '·', doing: '▸', done: '✓' };

/** Returns the to-do list of the run. */
function todoText(call: ToolCall, { style, sayWidth }: Terminal): string {
  const todos = todosIn(call.input);
  if (typeof todos === 'string') return `${style.bold('→')} ${terminalLine(call.name)}`;
  const lines = todos.map(({ text, state }) => {
    const line = `  ${todoMarks[state]} ${terminalLine(text, sayWidth - 4)}`;
    return state === 'doing' ? style.bold(line) : state === 'done' ? style.dim(line) : line;
  });
  const done = todos.filter(({ state }) => state === 'done').length;
  return [`${style.bold('→')} To do: ${done} of ${todos.length} done`, ...lines].join('\n');
}

/** Returns what a call does, with its most telling argument: "Writing today.md". If there is none, it shows all arguments. */
function toolLine(call: ToolCall, width: number): string {
  const { input } = call;
  const telling = ['pattern', 'path', 'command', 'url', 'question', 'skill']
    .map(name => input[name])
    .find(value => typeof value === 'string');
  const rest = telling ?? (Object.keys(input).length > 0 ? JSON.stringify(input) : '');
  return terminalLine(describeCall(call, rest, false), width);
}

/** In characters. The reason of a failed call may take more than one line of the screen, but not all of it. */
const failureLength = 400;
/** In characters. The line above has all of the call. */
const callLength = 60;
/** The same of a denial, whose last words are the rule that would allow the call. */
const denialLength = 8000;

/** Shows a failed call always, in one line. Shows a result only with `verbose`. */
function sayResult(
  call: ToolCall,
  { result, policy }: EventOf<'tool_end'>,
  terminal: Terminal,
  verbose: boolean,
): void {
  const { style } = terminal;
  if (result.isError && !verbose) {
    const denied = /^Denied: The user denied this(.*)$/s.exec(result.content)?.[1];
    const what =
      denied === undefined ? `${toolLine(call, callLength)}: ${result.content}` : `You denied this${denied}`;
    const most = result.content.startsWith('Denied: ') ? denialLength : failureLength;
    terminal.say(style.red(`✗ ${terminalLine(what, most)}`));
  }
  if (!verbose) return;
  if (result.content === '') return;
  const lines = terminalText(result.content).trimEnd().split('\n');
  const shown = lines.slice(0, 20).map(line => `  ${line}`);
  if (lines.length > 20) shown.push(`  ... ${lines.length - 20} more lines`);
  if (policy?.boxed) shown.push('  (ran in the sandbox)');
  terminal.say(result.isError ? style.red(shown.join('\n')) : style.dim(shown.join('\n')));
}

/** Most lines of a change, and last lines of a command, that a chat shows. */
const [mostChanged, mostLast] = [10, 3];

/** Shows what a call has changed, or the last lines that a command has printed. */
function sayGlimpse(call: ToolCall, { result }: EventOf<'tool_end'>, terminal: Terminal): void {
  if (result.isError) return;
  const { style } = terminal;
  const lines = call.name === 'run_command' ? lastLines(result.content) : changedLines(call);
  const shown = lines.map(line => terminalLine(line.replace(/^(.)/, '$1 '), terminal.sayWidth - 4));
  for (const line of shown) {
    const colored = line.startsWith('-')
      ? style.red(line)
      : line.startsWith('+')
        ? style.bold(line)
        : style.dim(line);
    terminal.say(`    ${colored}`);
  }
}

function lastLines(content: string): string[] {
  const lines = content.split('\n').filter(line => line.trim() !== '' && line !== '(no output)');
  return lines.slice(-mostLast).map(line => `│${line}`);
}

/** Returns the lines that go and come, as the call has them. */
function changedLines({ name, input }: ToolCall): string[] {
  if (name === 'write_file') return some('+', input['content']);
  if (name !== 'edit_file') return [];
  const edits = Array.isArray(input['edits']) ? input['edits'] : [input];
  return edits.flatMap((edit: unknown) => {
    const { old_text: old, new_text: fresh } = (edit ?? {}) as Record<string, unknown>;
    return [...some('-', old), ...some('+', fresh)];
  });
}

function some(sign: string, text: unknown): string[] {
  const lines = typeof text === 'string' && text !== '' ? text.replace(/\n$/, '').split('\n') : [];
  const more = lines.length - mostChanged;
  const shown = lines.slice(0, mostChanged).map(line => sign + line);
  return more > 0 ? [...shown, `…${more} more lines`] : shown;
}

function thoughtText(thought: string, durationMs: number): string {
  const lines = terminalText(thought).trim().split('\n');
  return [
    `Thought for ${formatDuration(Math.max(durationMs, 100))}:`,
    ...lines.map(line => `  ${line}`),
  ].join('\n');
}

const indented = (text: string): string =>
  terminalText(text)
    .split('\n')
    .map(line => `  ${line}`)
    .join('\n');

function compactedText({ tokensBefore, tokensAfter }: EventOf<'compacted'>, inChat: boolean): string {
  const undo = inChat ? ' /uncompact undoes it.' : '';
  return `Compacted: the model is sent about ${grouped(tokensAfter)} tokens in place of ${grouped(tokensBefore)}.${undo}`;
}

/** Returns how full the model's context is, with its parts, the largest first. */
function contextText({ window, tokens }: ContextUse): string {
  const parts = contextParts.filter(part => tokens[part] > 0).sort((a, b) => tokens[b] - tokens[a]);
  const total = contextParts.reduce((sum, part) => sum + tokens[part], 0);
  const share = window === undefined ? '' : ` of ${grouped(window)}, ${Math.round((100 * total) / window)}%`;
  return `context ${grouped(total)}${share} (${parts.map(part => `${part} ${grouped(tokens[part])}`).join(', ')})`;
}

function usageText({ round, usage, context, routing }: EventOf<'usage'>): string {
  const cached = usage.cacheReadTokens > 0 ? `, ${usage.cacheReadTokens} from cache` : '';
  const cost = usage.cost === 'unknown' ? 'cost unknown' : `$${usage.cost.toFixed(4)}`;
  const what =
    round === 0 ? (routing ? 'choice of the skill' : 'summary of the conversation') : `step ${round}`;
  const line = `${what}: ${usage.inputTokens} tokens in${cached}, ${usage.outputTokens} out, ${cost}`;
  return context ? `${line}\n  ${contextText(context)}` : line;
}

function sayEnd(event: EventOf<'run_end'>, terminal: Terminal, inChat: boolean): void {
  const { style } = terminal;
  if (event.error?.suggestions && event.outcome === 'no_match') {
    const sentence = terminalLine(event.error.message.split('\n')[0] ?? '');
    const { suggestions, choices } = event.error;
    // A question about it follows.
    const isAsked = terminal.canAsk && (choices ?? []).length === 0;
    terminal.say(
      isAsked ? style.bold(sentence) : noMatchText(sentence, { ...event.error, suggestions }, style.bold),
    );
  } else if (event.error) {
    terminal.say(style.red(messageText(event.error)));
  } else if (event.outcome === 'round_limit') {
    terminal.say(
      style.yellow(
        `Stopped after ${counted(event.rounds, 'step')}, before it was done. Continue with: ${inChat ? '/continue' : 'telos --continue (--max-rounds allows more at once)'}`,
      ),
    );
  }
}

/** Suggestions that fit on a screen; the rest is counted. */
const shownSuggestions = 40;

/** Returns the sentence and the skills to choose from: the likely ones with their reasons, or all if none is likely. */
export function noMatchText(
  sentence: string,
  { suggestions, choices = [] }: { suggestions: readonly SkillRef[] } & Pick<RunError, 'choices'>,
  emphasis: (text: string) => string,
): string {
  if (choices.length > 0) {
    const lines = choices.map(({ agent, skill, reason }, index) =>
      terminalLine(`  ${index + 1}. ${describeRoute(agent, skill, reason)}`),
    );
    const hint = `To run one: telos "${terminalLine(`/${choices[0]?.skill} <request>`)}"`;
    return [emphasis(sentence), 'Did you mean one of these?', ...lines, hint].join('\n');
  }
  const listed = suggestions.slice(0, shownSuggestions);
  const more = suggestions.length - listed.length;
  return [
    emphasis(sentence),
    'Available skills:',
    ...listed.map(({ agent, skill }) => `  ${terminalLine(`${skill} (${agent})`)}`),
    ...(more > 0 ? [`  ... and ${more} more; \`telos list-skills\` shows them all`] : []),
    'To have it answered without a skill: telos --answer "<request>"',
  ].join('\n');
}
