/** Adds the commands about skills, those there are and those of one's own, to the parser: their words, arguments and options. */
import { lintCommand } from './lintCommand.ts';
import { agentsCommand, listSkillsCommand } from './listCommands.ts';
import { type Command, Option } from './parser.ts';
import { type RequestOptions, requestCommand } from './requestCommand.ts';
import { routeCommand } from './routeCommand.ts';
import { initCommand, installCommand, skillAddCommand, uninstallCommand } from './setupCommands.ts';
import type { Terminal } from './terminal.ts';

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

/** Each command is one statement; that there are many of them makes it long. */
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
