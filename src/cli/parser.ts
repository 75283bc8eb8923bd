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
