/** Adds the commands about what agents may do to the parser: their words, arguments and options. */
import type { Command } from './parser.ts';
import { policyExplainCommand, policyListCommand, policyRevokeCommand } from './policyCommand.ts';
import type { Terminal } from './terminal.ts';
import { trustCommand } from './trustCommand.ts';

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
