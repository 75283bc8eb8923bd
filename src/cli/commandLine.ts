/**
 * Reads the arguments and hands each command to its file. All are imported at once: they are small, and a start that looks up fewer files is
 * faster. What is heavy (providers, MCP, the reader of web pages) loads where it is used.
 */
import { readFileSync } from 'node:fs';
import { completionScript } from './completionScript.ts';
import { doctorCommand } from './doctorCommand.ts';
import { interactiveCommand } from './interactiveCommand.ts';
import {
  Argument,
  amount,
  type Command,
  CommanderError,
  longOptions,
  openParser,
  optionsWithWord,
  shareOptions,
} from './parser.ts';
import { addRecordCommands } from './recordCommands.ts';
import { type RequestOptions, requestCommand } from './requestCommand.ts';
import { addSetupCommands, addSkillCommands } from './skillCommands.ts';
import { openTerminal, type Terminal } from './terminal.ts';
import { terminalText } from './terminalText.ts';
import { addTrustCommands } from './trustCommands.ts';

const usageExitCode = 2;

const examples = `
Examples:
  telos                               lists agents and skills to choose from
  telos run daily kickoff             finds the skill by its name and runs it
  telos --agent kairos "plan my day"  asks one agent only
  telos --dry-run kickoff             says what would run

Exit codes: 0 completed, 1 no match or failed, 2 wrong usage, 130 cancelled.`;

/** A request may begin with the word of a command. */
const requestHint = '(A request that begins with this word goes in quotes, as in: telos "agents of change")';

/** Returns the exit code. `packageFile` is where the version stands. */
export async function runCommandLine(args: readonly string[], packageFile: URL): Promise<number> {
  let exitCode = 0;
  const terminal = openTerminal();
  const program = commands(terminal, packageFile, code => {
    exitCode = code;
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.code === 'commander.excessArguments') terminal.say(requestHint);
      return error.exitCode === 0 ? 0 : usageExitCode;
    }
    terminal.endLine();
    terminal.say(terminalText(`telos: ${error instanceof Error ? error.message : String(error)}`));
    return 1;
  } finally {
    terminal.flush();
  }
}

interface GlobalOptions extends RequestOptions {
  version?: boolean;
}

function commands(terminal: Terminal, packageFile: URL, exit: (code: number) => void): Command {
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
    .option('--yes', 'allow everything that would be asked about')
    .optionsGroup('Model and limits:')
    .option('--model <name>', 'the model that answers')
    .option('--provider <name>', 'who provides the model')
    .option('--max-cost <dollars>', 'stop when the run has cost that much', amount)
    .option('--max-tokens <number>', 'stop when it has used that many tokens', amount)
    .option('--max-minutes <number>', 'stop when it has taken that long', amount)
    .option('--record <file>', 'write the model’s turns down')
    .option('--replay <file>', 'play such a recording instead of asking')
    .optionsGroup('Options:')
    .option('--cwd <folder>', 'work as if started in this folder')
    .option('--version', 'print the version')
    .addHelpText('after', examples)
    .action(async (words: string[], options: GlobalOptions) => {
      if (options.version) return terminal.out(`${versionIn(packageFile)}\n`);
      if (words.length === 0 && terminal.canAsk) {
        return exit(await interactiveCommand(options, terminal));
      }
      if (words.length === 0 && Object.keys(options).length === 0) return program.outputHelp();
      exit(await requestCommand(words.join(' ').trim(), options, terminal));
    });
  program.commandsGroup('Skills:');
  addSkillCommands(program, terminal, exit);
  program.commandsGroup('Skills of your own:');
  addSetupCommands(program, terminal, exit);
  program.commandsGroup('Trust:');
  addTrustCommands(program, terminal, exit);
  program.commandsGroup('Runs and set-up:');
  addRecordCommands(program, terminal, exit);
  addInspectionCommands(program, terminal, exit);
  shareOptions(program, ['ask']);
  return program;
}

/** What looks at the set-up, and what shells want. */
function addInspectionCommands(program: Command, terminal: Terminal, exit: (code: number) => void): void {
  program
    .command('doctor')
    .description('show what is set, from where, and what is broken')
    .option('--json', 'as JSON')
    .action(async (_options: object, command: Command) => {
      exit(await doctorCommand(command.optsWithGlobals(), terminal));
    });
  program
    .command('completion')
    .description('print what your shell needs to complete commands')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .action(async (shell: 'bash' | 'zsh' | 'fish') => {
      const described = program.commands.map(command => ({
        name: command.name(),
        description: command.description(),
        words: [
          ...command.commands.map(inner => inner.name()),
          ...(command.registeredArguments[0]?.argChoices ?? []),
          ...longOptions(command),
        ],
        argument: command.registeredArguments[0]?.name(),
      }));
      const withWord = new Set([program, ...program.commands].flatMap(optionsWithWord));
      terminal.out(completionScript(shell, described, longOptions(program), [...withWord]));
    });
}

function versionIn(packageFile: URL): string {
  const { version } = JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string };
  return version;
}
