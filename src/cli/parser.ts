/**
 * Sets up the argument parser: the form of help, and where it is written. Wrong usage is an error and does not end the
 * process.
 */
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { amountIn } from '../engine/config.ts';
import type { Terminal } from './terminal.ts';

export { Argument, type Command, CommanderError, Option };

/** Returns the command `telos`, without options and commands. */
export function openParser(terminal: Terminal): Command {
  return new Command('telos')
    .helpOption('-h, --help', 'print this')
    .helpCommand(false)
    .configureHelp({ subcommandTerm })
    .enablePositionalOptions()
    .showHelpAfterError('(telos --help shows what there is)')
    .configureOutput({
      writeOut: text => terminal.out(text),
      writeErr: text => terminal.say(text.trimEnd()),
    })
    .exitOverride();
}

/** Returns name and arguments. Options are left out, since every command has some. */
function subcommandTerm(command: Command): string {
  const inner = command.commands.map(one => one.name()).join('|');
  const words = command.registeredArguments.map(one =>
    one.required ? `<${one.name()}>` : `[${one.name()}]`,
  );
  return [command.name(), ...(inner ? [inner] : []), ...words].join(' ');
}

/** Parses options that take a number from 0 on. Throws an error of the parser for anything else. */
export function amount(text: string): string {
  if (Number.isNaN(amountIn(text))) throw new InvalidArgumentError('It takes a number from 0 on.');
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
export function shareOptions(program: Command, runs: readonly string[]): void {
  const share = (command: Command): void => {
    const isRun = runs.includes(command.name());
    for (const option of program.options) {
      const { long = '' } = option;
      const fits = everywhere.includes(long) || (isRun && !notInRuns.includes(long));
      if (fits && !longOptions(command).includes(long)) command.addOption(option);
    }
    for (const inner of command.commands) share(inner);
  };
  for (const command of program.commands) share(command);
  // A dry run must not turn into a real one because the command has no dry run.
  program.hook('preAction', (_program, command) => {
    if (!program.opts()['dryRun'] || command === program || [...runs, 'route'].includes(command.name()))
      return;
    program.error(`error: --dry-run is for requests; '${command.name()}' has none.`);
  });
}
