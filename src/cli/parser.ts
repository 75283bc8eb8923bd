/**
 * Sets up the argument parser: the form of help, and where it is written. Wrong usage is an error and does not end the
 * process.
 */

import { amountIn, effortIn, roundsIn } from '@telos/engine/config';
import { readText } from '@telos/engine/files';
import { effortLevels } from '@telos/engine/providers';
import { isOneEditAway } from '@telos/engine/routing';
import { mostRounds } from '@telos/engine/run';
import {
  Argument,
  Command,
  CommanderError,
  InvalidArgumentError,
  Option,
  type OptionValues,
} from 'commander';
import type { CompletedCommand } from './completionScript.ts';
import type { Terminal } from './terminal.ts';

export { Argument, type Command, CommanderError, Option };

/** Returns the command of a program, without options and commands. */
export function openParser(terminal: Terminal, name = 'telos'): Command {
  return new Command(name)
    .helpOption('-h, --help', 'print this')
    .helpCommand(false)
    .configureHelp({ subcommandTerm })
    .enablePositionalOptions()
    .showHelpAfterError(`See \`${name} --help\`.`)
    .configureOutput({
      writeOut: text => terminal.out(text),
      writeErr: text => terminal.say(text.trimEnd()),
    })
    .exitOverride();
}

/** A command as data. */
export interface CliCommand {
  name: string;
  description: string;
  arguments?: readonly Argument[];
  /** Called if the command is: an option takes apart how it is written. */
  options?: () => readonly Option[];
  /** Missing if the command only groups others. */
  run?: (call: CommandCall) => Promise<number>;
  /** Commands below this one, such as `runs show`. */
  inner?: readonly CliCommand[];
}

/** The call of a command. */
export interface CommandCall {
  /** The text that was typed for each argument. The words of a last argument with dots are joined. */
  words: readonly [string, string];
  /** The text that was typed for the first argument, if any. */
  word: string | undefined;
  /** The words of a first argument with dots, each as it was typed: a name may contain spaces. */
  list: readonly string[];
  options: OptionValues;
  terminal: Terminal;
  program: Command;
  /** The sample's skills and the folder to try them in. */
  samples: URL;
}

/** How much of a command a start needs: all to call it, what help shows of it, or its name alone. */
export type CommandUse = 'call' | 'list' | 'name';

/**
 * Adds the command and those below it, as far as `use` says: sixty commands with their options would be a twentieth of each start.
 * Its exit code goes to `exit`.
 */
export function addCommand(
  above: Command,
  given: CliCommand,
  frame: Pick<CommandCall, 'program' | 'terminal' | 'samples'> & { exit: (code: number) => void },
  use: CommandUse,
): void {
  const command = above.command(given.name);
  if (use === 'name') return;
  const { description, arguments: taken = [], options, run, inner } = given;
  command.description(description);
  for (const one of taken) command.addArgument(one);
  if (inner) command.helpCommand(false);
  for (const one of inner ?? []) addCommand(command, one, frame, use);
  if (use === 'list') return;
  for (const option of options?.() ?? []) command.addOption(option);
  if (!run) return;
  command.action(async (...typed: unknown[]) => {
    const { exit, ...rest } = frame;
    // The parser hands over each argument, then the options and the command.
    const [first, second = ''] = typed
      .slice(0, taken.length)
      .map(word => (Array.isArray(word) ? word.join(' ').trim() : (word as string | undefined)));
    const list = Array.isArray(typed[0]) ? (typed[0] as string[]) : [];
    const options = command.optsWithGlobals();
    exit(await run({ ...rest, words: [first ?? '', second], word: first, list, options }));
  });
}

/** Returns what a shell completes for the command. */
export const completed = (command: Command): CompletedCommand => ({
  name: command.name(),
  description: command.description(),
  words: [
    ...command.commands.map(inner => inner.name()),
    ...(command.registeredArguments[0]?.argChoices ?? []),
    ...longOptions(command),
  ],
  argument: command.registeredArguments[0]?.name(),
});

/** More commands below a command than this are listed by its own help alone. */
const mostInner = 6;

/** Returns name and arguments. Options are left out, since every command has some. */
function subcommandTerm(command: Command): string {
  const names = command.commands.map(one => one.name());
  const inner = names.length > mostInner ? '…' : names.join('|');
  const words = command.registeredArguments.map(one =>
    one.required ? `<${one.name()}>` : `[${one.name()}]`,
  );
  return [command.name(), ...(inner ? [inner] : []), ...words].join(' ');
}

/** Parses options that take a number from 0 on. Throws an error of the parser for anything else. */
export function amount(text: string): string {
  if (Number.isNaN(amountIn(text))) throw new InvalidArgumentError('It takes 0 or a higher number.');
  return text;
}

/** Parses an option that takes a whole number of at least 1. Throws an error of the parser for anything else. */
export function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text) || Number(text) < 1)
    throw new InvalidArgumentError('It takes a whole number of at least 1.');
  return Number(text);
}

/** Parses an option that takes a provider and a number, and may be given again. Throws an error of the parser for anything else. */
export function requestLimits(text: string, before: readonly string[] = []): string[] {
  if (!/^[\w-]+=[1-9]\d{0,5}$/.test(text))
    throw new InvalidArgumentError('It takes a provider and how many requests a minute: openrouter=60.');
  return [...before, text];
}

/** Parses an option that takes a number of rounds. Throws an error of the parser for anything else. */
export function rounds(text: string): string {
  if (roundsIn(text) === undefined)
    throw new InvalidArgumentError(`It takes a whole number from 1 to ${mostRounds}.`);
  return text;
}

/** Collects the values of an option that may be given several times. */
export const listed = (text: string, before: readonly string[] = []): readonly string[] => [...before, text];

/** Parses an option that takes how much a model thinks. Throws an error of the parser for anything else. */
export function effort(text: string): string {
  if (effortIn(text) === undefined)
    throw new InvalidArgumentError(`It takes ${effortLevels.join(', ')}, or a number of tokens.`);
  return text;
}

/** Returns the options of one command, as `--name`. */
export function longOptions(command: Command): string[] {
  return command.options.flatMap(option => (option.long ? [option.long] : []));
}

/** Returns the options that take a value from the person. */
export function optionsWithWord(command: Command): string[] {
  return command.options.flatMap(option => (option.long && option.required ? [option.long] : []));
}

/** Options that every command reads for its set-up, and options that only `ask` takes because it is also a run. */
const everywhere = ['--cwd', '--model', '--provider'];
const notInRuns = ['--version', '--agent'];

/**
 * Lets commands take options of `telos` after their names too, as in `telos ask "..." --json`. Must be called when all
 * commands are defined. `runs` names the commands that run a request; they take all options of a run.
 */
export function shareOptions(
  program: Command,
  runs: readonly string[],
  canCall: (name: string) => boolean,
): void {
  const share = (command: Command): void => {
    const isRun = runs.includes(command.name());
    for (const option of program.options) {
      const { long = '' } = option;
      const fits = everywhere.includes(long) || (isRun && !notInRuns.includes(long));
      if (fits && !longOptions(command).includes(long)) command.addOption(option);
    }
    for (const inner of command.commands) share(inner);
  };
  for (const command of program.commands) if (canCall(command.name())) share(command);
  // A dry run must not turn into a real one because the command has no dry run.
  program.hook('preAction', (_program, command) => {
    const hasOne = [...runs, 'route'].includes(command.name()) || longOptions(command).includes('--dry-run');
    if (!program.opts()['dryRun'] || command === program || hasOne) return;
    program.error(`error: --dry-run is for requests; '${command.name()}' has none.`);
  });
}

/**
 * Returns the words that are a request whatever they are, and the number of words before them: those after a `--` before any
 * command, and a sentence that begins with a command which only groups others, such as `plan my week`. Undefined for anything else.
 */
export function literalWords(
  args: readonly string[],
  program: Command,
  commands: readonly CliCommand[],
): { words: string[]; before: number } | undefined {
  const withWord = new Set(program.options.filter(({ required }) => required).map(({ long }) => long));
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? '';
    if (word === '--') return { words: args.slice(at + 1), before: at };
    if (!word.startsWith('-'))
      return isSentence(args.slice(at), commands) ? { words: args.slice(at), before: at } : undefined;
    if (withWord.has(word)) at++;
  }
  return undefined;
}

/** A mistyped command has one more word at most, or is nearly one that is there. */
function isSentence(
  [first = '', second = '', ...more]: readonly string[],
  groups: readonly CliCommand[],
): boolean {
  const group = groups.find(({ name, run }) => name === first && !run);
  const meant = group?.inner?.some(({ name }) => name === second || isOneEditAway(second, name));
  return (
    group !== undefined && !meant && more.length > 0 && ![second, ...more].some(word => word.startsWith('-'))
  );
}

/** Returns the command that `telos help ...` asks about: `telos` itself, or the one that is named. Undefined for other words. */
export function helpWanted(request: string, program: Command): Command | undefined {
  if (request === 'help') return program;
  return program.commands.find(command => request === `help ${command.name()}`);
}

/** Returns the version that `packageFile` names. */
export function versionIn(packageFile: URL): string {
  const { version } = JSON.parse(readText(packageFile)) as { version: string };
  return version;
}
