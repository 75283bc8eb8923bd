/** Reads what was typed: finds the command of the table that it names, or takes it as a request, and returns the exit code. */
import { sandboxModes } from '@telos/engine/config';
import { runModes } from '@telos/protocol/run';
import { groups } from './commands.ts';
import {
  addCommand,
  amount,
  type CliCommand,
  type Command,
  CommanderError,
  type CommandUse,
  effort,
  helpWanted,
  listed,
  literalWords,
  Option,
  openParser,
  rounds,
  shareOptions,
  versionIn,
} from './parser.ts';
import { didYouMean, type RequestOptions, requestCommand } from './requestCommand.ts';
import { findSlip } from './slips.ts';
import type { Surroundings } from './surroundings.ts';
import { openTerminal, type Terminal } from './terminal.ts';
import { terminalLine, toType } from './terminalText.ts';

const usageExitCode = 2;

const examples = `
Examples:
  telos                               lists agents and skills to choose from
  telos run daily kickoff             finds the skill by its name and runs it
  telos --agent kairos "plan my day"  asks one agent only
  telos --dry-run kickoff             says what would run
  telos -- runs of the week           takes all words as the request, although runs is a command

Exit codes: 0 completed, 1 no match or failed, 2 wrong usage, 130 cancelled.`;

/** Runs the command line and returns the exit code. `packageFile` contains the version, and the sample lies beside it. */
export async function runCommandLine(
  args: readonly string[],
  packageFile: URL,
  surroundings: Surroundings,
): Promise<number> {
  let exitCode = 0;
  const terminal = openTerminal(surroundings);
  const given: { literal?: string[]; mayBeSlip?: boolean } = {};
  const said = new Set(args.flatMap(word => word.split(/\s+/)));
  const asksForHelp = args.length === 0 || [...said].some(word => /^(?:-h|--help|help$)/.test(word));
  const useOf = (name: string): CommandUse =>
    said.has(name) || said.has('completion') ? 'call' : asksForHelp ? 'list' : 'name';
  const program = commands(terminal, packageFile, given, useOf, code => {
    exitCode = code;
  });
  const literal = literalWords(args, program, allCommands());
  if (literal) {
    given.literal = literal.words;
    given.mayBeSlip = args[literal.before] !== '--';
  }
  try {
    // The parser would take a command's name at the beginning of these words as the command.
    const parsed = literal ? args.slice(0, literal.before) : args;
    await program.parseAsync(parsed, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) {
      const slip = findSlip(args.join(' '), allCommands());
      const isUnknown = /excessArguments|unknownCommand/.test(error.code);
      if (isUnknown && slip) terminal.say(terminalLine(didYouMean(slip), terminal.sayWidth));
      // A request may begin with the name of a command.
      if (error.code === 'commander.excessArguments')
        terminal.say(
          terminalLine(`To send this as a request, type: ${toType('--', ...args)}`, terminal.sayWidth),
        );
      return error.exitCode === 0 ? 0 : usageExitCode;
    }
    terminal.endLine();
    const { unexpectedText } = await import('./cliConfig.ts');
    terminal.say(`telos: ${unexpectedText(error, terminal)}`);
    return 1;
  } finally {
    terminal.flush();
  }
}

interface GlobalOptions extends RequestOptions {
  version?: boolean;
}

const allCommands = (): CliCommand[] => Object.values(groups).flat();

/**
 * `given.literal` are words of a request that must not be taken for a command, though they may be a slip. `useOf` says what is needed of each
 * command.
 */
function commands(
  terminal: Terminal,
  packageFile: URL,
  given: { literal?: string[]; mayBeSlip?: boolean },
  useOf: (name: string) => CommandUse,
  exit: (code: number) => void,
): Command {
  const program = openParser(terminal);
  program
    .description(
      'Runs your skills with any model: picks the right one, shows why, and asks before anything risky.',
    )
    .argument('[request...]', 'what you want, in your own words')
    .option('--agent <name>', 'only this agent’s skills')
    .option('--dry-run', 'say which skill would run, and stop')
    .option('--verbose', 'also show tool results, tokens and cost')
    .option('--json', 'print events (or lists) as JSON on stdout')
    .option('--yes', 'allow everything without asking')
    .addOption(
      new Option(
        '--mode <mode>',
        'plan: only read; review: ask before each change; sandbox: ask nothing that it holds',
      ).choices(runModes),
    )
    .addOption(
      new Option('--sandbox <mode>', 'required: run commands only in a sandbox; off: ask about each').choices(
        sandboxModes,
      ),
    )
    .option('--file <path>', 'a file that goes with the request: text, a picture, a PDF', listed)
    .option('--continue', 'continue the latest conversation in this folder')
    .optionsGroup('Model and limits:')
    .option('--answer', 'answer without a skill if none fits, without asking')
    .option('--no-context-files', 'read no AGENTS.md, no CLAUDE.md and none of your notes')
    .option('--model <name>', 'the model that answers')
    .option('--provider <name>', 'the provider of the model')
    .option('--effort <level>', 'how much it thinks: off, low, medium, high, xhigh, max, or tokens', effort)
    .option('--max-cost <dollars>', 'stop when the run has cost this much', amount)
    .option('--max-tokens <number>', 'stop when it has used this many tokens', amount)
    .option('--max-minutes <number>', 'stop when it has taken this long', amount)
    .option(
      '--max-rounds <number>',
      'ask after this many steps, each a question to the model, or stop if no one can be asked',
      rounds,
    )
    .option('--record <file>', 'record the model’s answers in this file')
    .option('--force', 'with --record: replace an existing file')
    .option('--replay <file>', 'play such a recording instead of asking a model')
    .optionsGroup('Options:')
    .option('--cwd <folder>', 'run as if started in this folder')
    .option('--version', 'print the version')
    .addHelpText('after', examples)
    .action(async (words: string[], options: GlobalOptions) => {
      if (options.version) return terminal.out(`${versionIn(packageFile)}\n`);
      const said = given.literal ?? words;
      const text = said.join(' ').trim();
      // Words in quotes are a request: "remove duplicates".
      const isQuoted = said.length === 1 && /\s/.test(text);
      const slip = isQuoted ? undefined : findSlip(text, allCommands());
      if (given.literal)
        return exit(await requestCommand(text, options, terminal, { ...(given.mayBeSlip && { slip }) }));
      if (words.length === 0 && terminal.canAsk && !options.continue) {
        const { interactiveCommand } = await import('./interactiveCommand.ts');
        return exit(await interactiveCommand(options, terminal));
      }
      const isGiven = (name: string): boolean => program.getOptionValueSource(name) !== 'default';
      if (words.length === 0 && !Object.keys(options).some(isGiven)) return program.outputHelp();
      const helped = helpWanted(text, program);
      if (helped) return helped.outputHelp();
      exit(await requestCommand(text, options, terminal, { isTyped: true, slip }));
    });
  const samples = new URL('media/demo/', packageFile);
  for (const [group, listed] of Object.entries(groups)) {
    program.commandsGroup(group);
    for (const one of listed) addCommand(program, one, { program, terminal, exit, samples }, useOf(one.name));
  }
  shareOptions(program, ['ask', 'chat'], name => useOf(name) === 'call');
  return program;
}
