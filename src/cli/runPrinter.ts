/** Shows a run on the terminal: the model's words on stdout as they come, everything else on stderr. */
import {
  describeRoute,
  type RunError,
  type RunEvent,
  type SkillRef,
  type ToolCall,
  type ToolResult,
} from '../protocol/run.ts';
import type { Terminal } from './terminal.ts';
import { terminalJson, terminalLine, terminalText, toldText } from './terminalText.ts';

export type RunPrinter = (event: RunEvent) => void;

/** Prints each event as one line of JSON on stdout. */
export function jsonPrinter(terminal: Terminal): RunPrinter {
  return event => terminal.out(`${terminalJson(event)}\n`);
}

/** Prints a run as text. With `verbose` it adds tool results, tokens and cost of each round, and the duration. */
export function textPrinter(terminal: Terminal, verbose: boolean): RunPrinter {
  const { style } = terminal;
  const say = (line: string): void => terminal.say(line);
  return event => {
    switch (event.type) {
      case 'routed':
        return say(routedText(event, terminal, verbose));
      case 'step':
        return say(style.dim(`· ${terminalLine(`${event.skill}: ${event.detail}`, terminal.sayWidth - 2)}`));
      case 'notice':
        return say(event.level === 'warning' ? style.yellow(toldText(event)) : toldText(event));
      case 'text':
        return terminal.out(terminalText(event.text));
      case 'tool_start':
        // The model's next text is another turn. A pipe gets only its words.
        if (terminal.outWidth !== undefined) terminal.endLine();
        return say(`${style.bold('→')} ${toolLine(event.call, terminal.sayWidth - 2)}`);
      case 'tool_end':
        return sayResult(event.name, event.result, terminal, verbose);
      case 'usage':
        return verbose ? say(style.dim(usageText(event))) : undefined;
      case 'retry':
        return say(
          style.yellow(`Trying again in ${Math.ceil(event.waitMs / 1000)} s (${terminalText(event.why)})`),
        );
      case 'run_end':
        terminal.endLine();
        return sayEnd(event, terminal, verbose);
      default:
        return undefined;
    }
  };
}

type EventOf<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>;

function routedText(event: EventOf<'routed'>, { style }: Terminal, verbose: boolean): string {
  const lines = [style.bold(terminalLine(describeRoute(event.agent, event.skill, event.reason)))];
  if (event.recording) {
    const { model, recordedAt } = event.recording;
    lines.push(
      style.yellow(
        `This is a recording of ${terminalLine(model)} made on ${terminalLine(recordedAt)}: no model is asked, the tools run for real.`,
      ),
    );
  }
  if (verbose) {
    lines.push(style.dim(terminalLine(`${event.provider} ${event.model}, files in ${event.workingDir}`)));
  }
  return lines.join('\n');
}

/**
 * Returns the name and the most telling argument, as in `write_file today.md`. If there is none, it shows all arguments.
 */
function toolLine(call: ToolCall, width: number): string {
  const { input } = call;
  const telling = ['path', 'command', 'url']
    .map(name => input[name])
    .find(value => typeof value === 'string');
  const rest = telling ?? (Object.keys(input).length > 0 ? JSON.stringify(input) : '');
  return terminalLine(`${call.name} ${rest}`, width);
}

/** In characters. The reason of a failed call may take more than one line of the screen, but not all of it. */
const failureLength = 400;

/** Shows a failed call always, in one line. Shows a result only with `verbose`. */
function sayResult(name: string, result: ToolResult, terminal: Terminal, verbose: boolean): void {
  const { style } = terminal;
  if (result.isError && !verbose) {
    terminal.say(style.red(`✗ ${terminalLine(`${name}: ${result.content}`, failureLength)}`));
  }
  if (!verbose) return;
  const lines = terminalText(result.content).trimEnd().split('\n');
  const shown = lines.slice(0, 20).map(line => `  ${line}`);
  if (lines.length > 20) shown.push(`  ... ${lines.length - 20} more lines`);
  terminal.say(result.isError ? style.red(shown.join('\n')) : style.dim(shown.join('\n')));
}

function usageText({ round, usage }: EventOf<'usage'>): string {
  const cached = usage.cacheReadTokens > 0 ? `, ${usage.cacheReadTokens} from cache` : '';
  const cost = usage.cost === 'unknown' ? 'cost unknown' : `$${usage.cost.toFixed(4)}`;
  const what = round === 0 ? 'choice of the skill' : `round ${round}`;
  return `${what}: ${usage.inputTokens} tokens in${cached}, ${usage.outputTokens} out, ${cost}`;
}

function sayEnd(event: EventOf<'run_end'>, terminal: Terminal, verbose: boolean): void {
  const { style } = terminal;
  if (event.error?.suggestions && event.outcome === 'no_match') {
    terminal.say(
      noMatchText(
        terminalLine(event.error.message.split('\n')[0] ?? ''),
        { ...event.error, suggestions: event.error.suggestions },
        style.bold,
      ),
    );
  } else if (event.error) {
    terminal.say(style.red(toldText(event.error)));
  } else if (event.outcome === 'round_limit') {
    terminal.say(
      style.yellow(
        `Stopped after ${event.rounds} rounds before it was done. Ask again to continue, or allow more with --max-rounds.`,
      ),
    );
  } else if (event.outcome === 'cancelled') {
    terminal.say(style.yellow('Cancelled.'));
  }
  if (verbose) {
    const seconds = (event.durationMs / 1000).toFixed(1);
    terminal.say(
      style.dim(`${event.outcome}: ${event.rounds} rounds, ${event.toolCalls} tool calls, ${seconds} s`),
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
    const hint = `To run one: telos ${terminalLine(`"/${choices[0]?.skill} <request>"`)}`;
    return [emphasis(sentence), 'None is sure. Likely are:', ...lines, hint].join('\n');
  }
  const listed = suggestions.slice(0, shownSuggestions);
  const more = suggestions.length - listed.length;
  return [
    emphasis(sentence),
    'Available skills:',
    ...listed.map(({ agent, skill }) => `  ${terminalLine(`${skill} (${agent})`)}`),
    ...(more > 0 ? [`  ... and ${more} more; \`telos list-skills\` shows them all`] : []),
    'Without a skill Telos looks around by itself: telos ask "<request>"',
  ].join('\n');
}
