/** The argument parser, set up once: how help looks, where it is written, and that wrong usage is an error and not the end of the process. */
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { amountIn } from '../engine/config.ts';
import type { Terminal } from './terminal.ts';

export { Argument, type Command, CommanderError, Option };

/** The command `telos`, without options and commands. */
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

/** Name and arguments; that each has options goes without saying. */
function subcommandTerm(command: Command): string {
  const inner = command.commands.map(one => one.name()).join('|');
  const words = command.registeredArguments.map(one =>
    one.required ? `<${one.name()}>` : `[${one.name()}]`,
  );
  return [command.name(), ...(inner ? [inner] : []), ...words].join(' ');
}

/** For options that take a number from 0 on. Throws an error of the parser for anything else. */
export function amount(text: string): string {
  if (Number.isNaN(amountIn(text))) throw new InvalidArgumentError('It takes a number from 0 on.');
  return text;
}

/** The options of one command, as `--name`. */
export function longOptions(command: Command): string[] {
  return command.options.flatMap(option => (option.long ? [option.long] : []));
}

/** Those of them behind which a word of the person's own stands. */
export function optionsWithWord(command: Command): string[] {
  return command.options.flatMap(option => (option.long && option.required ? [option.long] : []));
}

/** What every command reads of its set-up, and what only `ask` takes because it is a run as well. */
const everywhere = ['--cwd', '--model', '--provider'];
const notInRuns = ['--version', '--agent'];

/**
 * Lets commands take options of `telos` behind their names too, as in `telos ask "..." --json`. To be called when all commands are there.
 * `runs` names the commands that run a request, which take all that a run takes.
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
  // Whoever says that nothing is to happen must not see it happen because a command knows no such thing.
  program.hook('preAction', (_program, command) => {
    if (!program.opts()['dryRun'] || command === program || [...runs, 'route'].includes(command.name()))
      return;
    program.error(`error: --dry-run is for requests; '${command.name()}' has none.`);
  });
}
