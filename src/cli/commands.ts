/**
 * Reads the arguments and hands each command to its file. Most are imported at once: they are small, and a start that looks
 * up fewer files is faster. Heavy parts (providers, MCP, the reader of web pages) are loaded where they are used.
 */

import { readFileSync } from 'node:fs';
import { completionScript } from './completionScript.ts';
import { costCommand } from './costCommand.ts';
import { interactiveCommand } from './interactiveCommand.ts';
import { lintCommand } from './lintCommand.ts';
import { agentsCommand, listSkillsCommand } from './listCommands.ts';
import { logsCommand, logsFollowCommand, logsShowCommand } from './logsCommand.ts';
import {
  Argument,
  amount,
  type Command,
  CommanderError,
  longOptions,
  Option,
  openParser,
  optionsWithWord,
  shareOptions,
} from './parser.ts';
import { type RequestOptions, requestCommand } from './requestCommand.ts';
import { routeCommand } from './routeCommand.ts';
import {
  doctorCommand,
  initCommand,
  installCommand,
  skillAddCommand,
  uninstallCommand,
} from './setupCommands.ts';
import { openTerminal, type Terminal } from './terminal.ts';
import { terminalText } from './terminalText.ts';
import {
  policyExplainCommand,
  policyListCommand,
  policyRevokeCommand,
  trustCommand,
} from './trustCommands.ts';

const usageExitCode = 2;

const examples = `
Examples:
  telos                               lists agents and skills to choose from
  telos run daily kickoff             finds the skill by its name and runs it
  telos --agent kairos "plan my day"  asks one agent only
  telos --dry-run kickoff             says what would run

Exit codes: 0 completed, 1 no match or failed, 2 wrong usage, 130 cancelled.`;

/** Shown because a request may begin with the name of a command. */
const requestHint = '(A request that begins with this word goes in quotes, as in: telos "agents of change")';

/** Runs the command line and returns the exit code. `packageFile` contains the version. */
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

/** Adds the commands that inspect the set-up, and the one that shells use. */
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

export function addSkillCommands(program: Command, terminal: Terminal, exit: (code: number) => void): void {
  program
    .commandsGroup('Skills:')
    .command('ask')
    .description('ask without one: Telos looks, and changes nothing')
    .argument('<request...>')
    .action(async (words: string[], _options: object, command: Command) => {
      const options: RequestOptions = command.optsWithGlobals();
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
    .option('--verbose', 'also show the hints')
    .action(async (folder: string | undefined, _options: object, command: Command) => {
      exit(await lintCommand(folder, command.optsWithGlobals(), terminal));
    });
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

/** Adds the set-up commands. It is long because each command is one statement. */
export function addSetupCommands(program: Command, terminal: Terminal, exit: (code: number) => void): void {
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
    .option('--as <name>', 'under this name; an agent that has it is replaced')
    .option(
      '--yes',
      'replace an agent without asking: one that came from this folder, one made by hand that is called as the folder is, or the one named by --as',
    )
    .action(async (folder: string, _options: object, command: Command) => {
      exit(await installCommand(folder, command.optsWithGlobals(), terminal));
    });
  program
    .command('uninstall')
    .description('remove an installed agent; telos undo brings it back')
    .argument('<agent>')
    .option('--yes', 'without asking')
    .action(async (agent: string, _options: object, command: Command) => {
      exit(await uninstallCommand(agent, command.optsWithGlobals(), terminal));
    });
}

export function addTrustCommands(program: Command, terminal: Terminal, exit: (code: number) => void): void {
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
    .description('take back what the list names by this id')
    .argument('<id>')
    .action(async (id: string, _options: object, command: Command) => {
      exit(await policyRevokeCommand(id, command.optsWithGlobals(), terminal));
    });
}

/** Adds the commands for records. Each is one statement, or a few that belong together. */
export function addRecordCommands(program: Command, terminal: Terminal, exit: (code: number) => void): void {
  addRunsCommands(program, terminal, exit);
  addLogsCommands(program, terminal, exit);
  addUndoCommand(program, terminal, exit);
  program
    .command('cost')
    .description('add up what runs have used and cost')
    .option('--days <number>', 'of that many days, today included', '30')
    .option('--json', 'as JSON')
    .action(async (_options: object, command: Command) => {
      exit(await costCommand(command.optsWithGlobals(), terminal));
    });
}

/** Adds the commands for stored runs. A log has one line per event; these are whole runs to read and share. */
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
    .description('take back what a run, an install or an uninstall changed')
    .argument('[change]', 'the beginning of its id; the latest change if none is named')
    .option('--list', 'list what can be undone, and stop')
    .option('--show', 'print what it changed, and stop')
    .option('--others', 'of a run: also when some files were edited since: undo the other files')
    .option('--force', 'of an install: also when the agent was edited since; that one is kept too')
    .option('--yes', 'without asking')
    .action(async (run: string | undefined, _options: object, command: Command) => {
      const { undoCommand } = await import('./undoCommand.ts');
      exit(await undoCommand(run, command.optsWithGlobals(), terminal));
    });
}
