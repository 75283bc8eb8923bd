/**
 * Reads the arguments and hands each command to its file. All are imported at once: they are small, and a start that looks up fewer files is
 * faster. What is heavy (providers, MCP, the reader of web pages) loads where it is used.
 */
import { readFileSync } from 'node:fs';
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { amountIn } from '../engine/config.ts';
import { completionScript } from './completionScript.ts';
import { costCommand } from './costCommand.ts';
import { doctorCommand } from './doctorCommand.ts';
import { interactiveCommand } from './interactiveCommand.ts';
import { lintCommand } from './lintCommand.ts';
import { agentsCommand, listSkillsCommand } from './listCommands.ts';
import { logsCommand, logsFollowCommand, logsShowCommand } from './logsCommand.ts';
import { policyExplainCommand, policyListCommand, policyRevokeCommand } from './policyCommand.ts';
import { type RequestOptions, requestCommand } from './requestCommand.ts';
import { routeCommand } from './routeCommand.ts';
import { initCommand, installCommand, skillAddCommand, uninstallCommand } from './setupCommands.ts';
import { openTerminal, type Terminal } from './terminal.ts';
import { terminalText } from './terminalText.ts';
import { trustCommand } from './trustCommand.ts';

export const usageExitCode = 2;

const examples = `
Examples:
  telos                               lists agents and skills to choose from
  telos run daily kickoff             finds the skill by its name and runs it
  telos --agent kairos "plan my day"  asks one agent only
  telos --dry-run kickoff             says what would run

Exit codes: 0 completed, 1 no match or failed, 2 wrong usage, 130 cancelled.`;

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
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : usageExitCode;
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
  const program = new Command('telos');
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
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', examples)
    .helpCommand(false)
    .configureHelp({ subcommandTerm })
    .enablePositionalOptions()
    .showHelpAfterError('(telos --help shows what there is)')
    .configureOutput({
      writeOut: text => terminal.out(text),
      writeErr: text => terminal.say(text.trimEnd()),
    })
    .exitOverride()
    .action(async (words: string[], options: GlobalOptions) => {
      if (options.version) return terminal.out(`${versionIn(packageFile)}\n`);
      if (words.length === 0 && terminal.canAsk) {
        return exit(await interactiveCommand(options, terminal));
      }
      if (words.length === 0 && Object.keys(options).length === 0) return program.outputHelp();
      exit(await requestCommand(words.join(' ').trim(), options, terminal));
    });
  program
    .commandsGroup('Skills:')
    .command('ask')
    .description('ask without one: Telos looks, and changes nothing')
    .argument('<request...>')
    .action(async (words: string[], _options: object, command: Command) => {
      const options: GlobalOptions = command.optsWithGlobals();
      exit(await requestCommand(words.join(' ').trim(), options, terminal, { withoutSkill: true }));
    });
  program
    .command('agents')
    .description('list the agents')
    .option('--json', 'as JSON')
    .action(async (_options: object, command: Command) => {
      exit(await agentsCommand(command.optsWithGlobals(), terminal));
    });
  program
    .command('list-skills')
    .description('list the skills')
    .option('--agent <name>', 'of this agent only')
    .option('--json', 'as JSON')
    .action(async (_options: object, command: Command) => {
      exit(await listSkillsCommand(command.optsWithGlobals(), terminal));
    });
  addRouteCommand(program, terminal, exit);
  program
    .command('lint')
    .description('check skill files, in a folder or all of them')
    .argument('[folder]')
    .option('--json', 'as one JSON object: every skill, and totals')
    .option('--fix', 'mend what a program can mend: quotes, fences')
    .action(async (folder: string | undefined, _options: object, command: Command) => {
      exit(await lintCommand(folder, command.optsWithGlobals(), terminal));
    });
  program.commandsGroup('Skills of your own:');
  addSetupCommands(program, terminal, exit);
  program.commandsGroup('Trust:');
  addPolicyCommands(program, terminal, exit);
  program.commandsGroup('Runs and set-up:');
  addRunsCommands(program, terminal, exit);
  addLogsCommands(program, terminal, exit);
  addUndoCommand(program, terminal, exit);
  addInspectionCommands(program, terminal, exit);
  return program;
}

function addRouteCommand(program: Command, terminal: Terminal, exit: (code: number) => void): void {
  program
    .command('route')
    .description('say which skill a request means, and why')
    .argument('[request...]')
    .option('--agent <name>', 'only this agent’s skills')
    .addOption(new Option('--mode <mode>', 'how to choose').choices(['auto', 'name', 'local', 'model']))
    .option('--pairs <file>', 'measure: JSON lines of {utterance, expected_path, candidates_dir}')
    .option('--packs <file>', 'measure: JSON {packs: {<pack>: ["<owner>/<folder>", ...]}}')
    .option('--corpus <folder>', 'measure: where the packs’ folders lie')
    .option('--negatives <file>', 'measure: JSON lines of {utterance, candidates_dir} that no skill fits')
    .option('--json', 'as JSON')
    .action(async (words: string[], _options: object, command: Command) => {
      exit(await routeCommand(words.join(' ').trim(), command.optsWithGlobals(), terminal));
    });
}

/** Each command is one statement; that there are many of them makes it long. */
function addSetupCommands(program: Command, terminal: Terminal, exit: (code: number) => void): void {
  program
    .command('init')
    .description('create the skills folder and a configuration')
    .action(async (_options: object, command: Command) => {
      exit(await initCommand(command.optsWithGlobals(), terminal));
    });
  program
    .command('skill')
    .description('write a SKILL.md to start from')
    .helpCommand(false)
    .command('add')
    .description('write a SKILL.md to start from')
    .argument('<agent>')
    .argument('<name>')
    .action(async (agent: string, name: string, _options: object, command: Command) => {
      exit(await skillAddCommand(agent, name, command.optsWithGlobals(), terminal));
    });
  program
    .command('install')
    .description('install an agent pack, or a single skill’s folder')
    .argument('<folder>')
    .action(async (folder: string, _options: object, command: Command) => {
      exit(await installCommand(folder, command.optsWithGlobals(), terminal));
    });
  program
    .command('uninstall')
    .description('delete an installed agent')
    .argument('<agent>')
    .option('--yes', 'without asking')
    .action(async (agent: string, _options: object, command: Command) => {
      exit(await uninstallCommand(agent, command.optsWithGlobals(), terminal));
    });
}

function addPolicyCommands(program: Command, terminal: Terminal, exit: (code: number) => void): void {
  program
    .command('trust')
    .description('look at what an agent’s files name, and accept it')
    .argument('<agent>')
    .option('--yes', 'accept it without asking')
    .option('--json', 'the card as JSON')
    .action(async (agent: string, _options: object, command: Command) => {
      exit(await trustCommand(agent, command.optsWithGlobals(), terminal));
    });
  const policy = program.command('policy').description('see what agents may do, and why').helpCommand(false);
  policy
    .command('explain')
    .description('say how a call would be decided on')
    .argument('<tool>')
    .argument('<input>', 'as JSON, for example \'{"path": "notes.md"}\'')
    .option('--agent <name>', 'in a run of this agent')
    .option('--json', 'as JSON')
    .action(async (tool: string, input: string, _options: object, command: Command) => {
      exit(await policyExplainCommand(tool, input, command.optsWithGlobals(), terminal));
    });
  policy
    .command('list')
    .description('list what has been granted, to whom and when')
    .option('--json', 'as JSON')
    .action(async (_options: object, command: Command) => {
      exit(await policyListCommand(command.optsWithGlobals(), terminal));
    });
  policy
    .command('revoke')
    .description('take back what the list names by this number')
    .argument('<number>')
    .action(async (number: string, _options: object, command: Command) => {
      exit(await policyRevokeCommand(number, command.optsWithGlobals(), terminal));
    });
}

/** What only looks, and what shells want. */
function addInspectionCommands(program: Command, terminal: Terminal, exit: (code: number) => void): void {
  program
    .command('cost')
    .description('add up what runs have used and cost')
    .option('--days <number>', 'of that many days, today included', '30')
    .option('--json', 'as JSON')
    .action(async (_options: object, command: Command) => {
      exit(await costCommand(command.optsWithGlobals(), terminal));
    });
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
      terminal.out(completionScript(shell, described, longOptions(program)));
    });
}

function addLogsCommands(program: Command, terminal: Terminal, exit: (code: number) => void): void {
  const logs = program
    .command('logs')
    .description('the log, a line for each event: last runs, one, as it grows')
    .helpCommand(false)
    .option('--limit <number>', 'that many runs', '20')
    .option('--json', 'as JSON, one run a line')
    .action(async (_options: object, command: Command) => {
      exit(await logsCommand(command.optsWithGlobals(), terminal));
    });
  logs
    .command('show')
    .description('print the conversation of a run, the last one if none is named')
    .argument('[run]', 'the beginning of its id')
    .option('--json', 'its record as JSON')
    .action(async (run: string | undefined, _options: object, command: Command) => {
      exit(await logsShowCommand(run, command.optsWithGlobals(), terminal));
    });
  logs
    .command('follow')
    .description('print what is logged as it happens, until Ctrl-C')
    .option('--json', 'the records as JSON')
    .action(async (_options: object, command: Command) => {
      exit(await logsFollowCommand(command.optsWithGlobals(), terminal));
    });
}

function addUndoCommand(program: Command, terminal: Terminal, exit: (code: number) => void): void {
  program
    .command('undo')
    .description('make files what they were before a run')
    .argument('[run]', 'the beginning of its id; the latest run that changed a file if none is named')
    .option('--show', 'print what it changed, and stop')
    .option('--others', 'also when some files were edited since: undo the other files')
    .option('--yes', 'without asking')
    .action(async (run: string | undefined, _options: object, command: Command) => {
      const { undoCommand } = await import('./undoCommand.ts');
      exit(await undoCommand(run, command.optsWithGlobals(), terminal));
    });
}

/** Unlike the log, which has one line for each event of every run, these are whole runs that one can read and hand on. */
function addRunsCommands(program: Command, terminal: Terminal, exit: (code: number) => void): void {
  const commands = (): Promise<typeof import('./runsCommand.ts')> => import('./runsCommand.ts');
  const runs = program
    .command('runs')
    .description('the runs that are kept: list, read, export, replay')
    .helpCommand(false)
    .option('--limit <number>', 'that many runs', '20')
    .option('--search <words>', 'only those with these words: in title, request, skill or answer')
    .option('--json', 'as JSON, one run a line')
    .action(async (_options: object, command: Command) => {
      exit(await (await commands()).runsCommand(command.optsWithGlobals(), terminal));
    });
  const named = 'the beginning of its id; the latest run if none is named';
  runs
    .command('show')
    .description('what was asked, done and answered')
    .argument('[run]', named)
    .option('--json', 'its events and messages as JSON')
    .action(async (run: string | undefined, _options: object, command: Command) => {
      exit(await (await commands()).runsShowCommand(run, command.optsWithGlobals(), terminal));
    });
  runs
    .command('export')
    .description('the conversation up to a run, without secrets')
    .argument('[run]', named)
    .addOption(new Option('--format <format>', 'how').choices(['md', 'jsonl', 'html']).default('md'))
    .option('--output <file>', 'to this file, not to stdout')
    .option('--yes', 'replace a file that is there')
    .action(async (run: string | undefined, _options: object, command: Command) => {
      exit(await (await commands()).runsExportCommand(run, command.optsWithGlobals(), terminal));
    });
  runs
    .command('replay')
    .description('show a run once more as it happened; no model is asked, no tool runs')
    .argument('[run]', named)
    .action(async (run: string | undefined, _options: object, command: Command) => {
      exit(await (await commands()).runsReplayCommand(run, command.optsWithGlobals(), terminal));
    });
  runs
    .command('rename')
    .description('give a run a name; an empty one takes it away')
    .argument('<run>', 'the beginning of its id')
    .argument('<title...>')
    .action(async (run: string, title: string[], _options: object, command: Command) => {
      exit(
        await (await commands()).runsRenameCommand(run, title.join(' '), command.optsWithGlobals(), terminal),
      );
    });
  runs
    .command('delete')
    .description('delete what is kept of a run; its lines in the log stay')
    .argument('<run>', 'the beginning of its id')
    .option('--yes', 'without asking')
    .action(async (run: string, _options: object, command: Command) => {
      exit(await (await commands()).runsDeleteCommand(run, command.optsWithGlobals(), terminal));
    });
}

/** Name and arguments; that each has options goes without saying. */
function subcommandTerm(command: Command): string {
  const inner = command.commands.map(one => one.name()).join('|');
  const words = command.registeredArguments.map(one =>
    one.required ? `<${one.name()}>` : `[${one.name()}]`,
  );
  return [command.name(), ...(inner ? [inner] : []), ...words].join(' ');
}

function amount(text: string): string {
  if (Number.isNaN(amountIn(text))) throw new InvalidArgumentError('It takes a number from 0 on.');
  return text;
}

function longOptions(command: Command): string[] {
  return command.options.flatMap(option => (option.long ? [option.long] : []));
}

function versionIn(packageFile: URL): string {
  const { version } = JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string };
  return version;
}
