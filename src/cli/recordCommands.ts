/** Adds the commands that look at what runs have done, and take it back, to the parser: their words, arguments and options. */
import { costCommand } from './costCommand.ts';
import { logsCommand, logsFollowCommand, logsShowCommand } from './logsCommand.ts';
import { type Command, Option } from './parser.ts';
import type { Terminal } from './terminal.ts';

/** Each is one statement, or a few that belong together. */
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
