/** Implements `telos-agent`: its arguments, and what each of its commands does and prints. */

import { resolve } from 'node:path';
import { reasonOf, TelosError } from '@telos/engine/errors';
import { readGiven } from '@telos/engine/files';
import { allowAll, type Human } from '@telos/engine/run';
import { Telos } from '@telos/engine/telos';
import { Orchestrator, type OrchestratorEvent, type RalphResult } from '@telos/plans/orchestrator';
import { configFor } from './cliConfig.ts';
import { type Command, CommanderError, Option, openParser, wholeNumber } from './parser.ts';
import { abortOnInterrupt, cancelledExitCode, openTerminal, type Terminal } from './terminal.ts';
import { errorText, terminalJson, terminalLine, terminalText } from './terminalText.ts';

/** The options that were typed, after defaults. */
export interface AgentOptions {
  projectDir: string;
  transcript?: string;
  /** Of the command that was once the only one: the interview as JSON or text. */
  context?: string;
  contextDir?: string[];
  noMoreQuestions?: boolean;
  maxIterations: number;
  model: string;
  /** False if `model` is only the default, which gives way to the settings. */
  isModelChosen: boolean;
  timeout: number;
  yes?: boolean;
  json?: boolean;
}

export interface AgentCall {
  command: string;
  options: AgentOptions;
}

interface AgentCommand {
  name: string;
  description: string;
  /** Its options besides `--project-dir`. */
  takes: readonly OptionName[];
}

type OptionName = keyof typeof agentOptions;

const agentOptions = {
  transcript: () => new Option('--transcript <file>', 'the interview so far, as text; - reads stdin'),
  neededTranscript: () =>
    new Option('--transcript <file>', 'the interview, as text; - reads stdin').makeOptionMandatory(),
  context: () => new Option('--context <file>', 'the interview, as text or JSON').makeOptionMandatory(),
  contextDir: () => new Option('--context-dir <folder...>', 'folders with notes, pictures and documents'),
  noMoreQuestions: () => new Option('--no-more-questions', 'ask nothing further'),
  maxIterations: () =>
    new Option('--max-iterations <number>', 'at most that many attempts').default(10).argParser(wholeNumber),
  model: () => new Option('--model <name>', 'the model that works').default('opus'),
  timeout: () =>
    new Option('--timeout <seconds>', 'at most that long for each attempt')
      .default(900)
      .argParser(wholeNumber),
  yes: () => new Option('--yes', 'allow everything without asking'),
  json: () => new Option('--json', 'print the result as JSON'),
} as const;

const agentCommands: readonly AgentCommand[] = [
  {
    name: 'interview',
    description: 'say what must still be known before a plan is written',
    takes: ['neededTranscript', 'contextDir', 'noMoreQuestions', 'model', 'json'],
  },
  {
    name: 'generate-plan',
    description: 'write plan.md from an interview',
    takes: ['neededTranscript', 'contextDir', 'model', 'json'],
  },
  {
    name: 'generate-prds',
    description: 'split plan.md into the stories of prds/',
    takes: ['contextDir', 'model', 'json'],
  },
  {
    name: 'generate-prd',
    description: 'write plan.md and prds/ from an interview (use generate-plan and generate-prds)',
    takes: ['context', 'contextDir', 'model', 'json'],
  },
  {
    name: 'execute',
    description: 'build the stories of prds/, each reviewed',
    takes: ['contextDir', 'maxIterations', 'model', 'timeout', 'yes', 'json'],
  },
  {
    name: 'run',
    description: 'write the plan, split it, and build it',
    takes: ['neededTranscript', 'contextDir', 'maxIterations', 'model', 'timeout', 'yes', 'json'],
  },
  { name: 'serve', description: 'answer JSON-RPC in lines on stdin and stdout', takes: [] },
];

const usageExitCode = 2;
const notRunExitCode = 3;
const exitCodes =
  '0 done, 1 failed or not all done, 2 wrong usage, 3 built, but with checks that were not run, 130 cancelled';

/** Runs `telos-agent` and returns the exit code: see `exitCodes`. */
export async function runAgentLine(args: readonly string[]): Promise<number> {
  const terminal = openTerminal(process);
  try {
    const call = await parseAgentLine(args, terminal);
    if (call.command === 'serve') return await (await import('./agentServe.ts')).serveAgent(terminal);
    return await carryOutCall(call, terminal);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : usageExitCode;
    terminal.say(`telos-agent: ${errorText(error)}`);
    return 1;
  } finally {
    terminal.flush();
  }
}

/** Returns what was typed. Prints help and throws the parser's error for anything else. */
export async function parseAgentLine(args: readonly string[], terminal: Terminal): Promise<AgentCall> {
  const found: AgentCall[] = [];
  const program = openParser(terminal, 'telos-agent')
    .description('Interviews, plans, and builds a project story by story, each reviewed before it counts.')
    .addHelpText(
      'after',
      `\nThe model, its key and its limits are those of telos; telos doctor shows them.\nExit codes: ${exitCodes}.`,
    );
  for (const { name, description, takes } of agentCommands) {
    const command = program.command(name).description(description);
    if (name !== 'serve') command.requiredOption('--project-dir <folder>', 'the project');
    for (const option of takes) command.addOption(agentOptions[option]());
    command.action(() => void found.push({ command: name, options: optionsOf(command) }));
  }
  program.action(() => program.help({ error: true }));
  await program.parseAsync(args, { from: 'user' });
  const [call] = found;
  if (!call) throw new CommanderError(usageExitCode, 'telos-agent.usage', 'No command was given.');
  return call;
}

function optionsOf(command: Command): AgentOptions {
  const given = command.opts();
  return {
    ...(given as AgentOptions),
    // The parser takes `--no-…` for the opposite of an option.
    noMoreQuestions: given['moreQuestions'] === false,
    isModelChosen: command.getOptionValueSource('model') === 'cli',
  };
}

async function carryOutCall({ command, options }: AgentCall, terminal: Terminal): Promise<number> {
  const config = configFor({ cwd: '.' }, terminal);
  if (!config) return usageExitCode;
  const interrupts = abortOnInterrupt(terminal, () => terminal.say('Stopping; Ctrl-C again ends at once.'));
  const { projectDir, contextDir, maxIterations, model, isModelChosen, timeout } = options;
  const orchestrator = new Orchestrator(
    {
      projectDir,
      contextDir,
      maxIterations,
      timeout,
      signal: interrupts.signal,
      ...(isModelChosen && { model }),
      human: await humanFor(options, terminal),
    },
    async () => Telos.open({ ...config, cwd: resolve(projectDir) }),
  );
  try {
    return (await commands[command]?.(orchestrator, options, terminal)) ?? usageExitCode;
  } catch (error) {
    if (interrupts.signal.aborted) return cancelledExitCode;
    throw error;
  } finally {
    interrupts.release();
    await orchestrator.close();
  }
}

type Carry = (orchestrator: Orchestrator, options: AgentOptions, terminal: Terminal) => Promise<number>;

const commands: Readonly<Record<string, Carry>> = {
  async interview(orchestrator, options, terminal) {
    const { transcript, noMoreQuestions = false } = options;
    const text = textAt(transcript);
    const round = await orchestrator.interview().processRound({ transcript: text, noMoreQuestions });
    if (options.json) terminal.out(`${terminalJson(round)}\n`);
    else if (round.ready) terminal.out('Ready: a plan can be written.\n');
    else
      for (const [at, question] of round.questions.entries())
        terminal.out(`${at + 1}. ${terminalLine(question)}\n`);
    return 0;
  },
  async 'generate-plan'(orchestrator, options, terminal) {
    const path = await orchestrator.generatePlan(textAt(options.transcript));
    return reportPath(path, 'plan', options, terminal);
  },
  async 'generate-prds'(orchestrator, options, terminal) {
    return reportPath(await orchestrator.generatePrds(), 'prds', options, terminal);
  },
  async 'generate-prd'(orchestrator, options, terminal) {
    terminal.say('generate-prd is kept for old scripts. Use generate-plan, then generate-prds.');
    await orchestrator.generatePlan(textAt(options.context));
    return reportPath(await orchestrator.generatePrds(), 'prds', options, terminal);
  },
  async execute(orchestrator, options, terminal) {
    return finished(await orchestrator.execute({ onEvent: progress(terminal) }), options, terminal);
  },
  async run(orchestrator, options, terminal) {
    const transcript = textAt(options.transcript);
    const result = await orchestrator.planAndExecute(transcript, { onEvent: progress(terminal) });
    return finished(result, options, terminal);
  },
};

/** Returns a file's text. Throws TelosError `config` if it cannot be read. */
function textAt(file: string | undefined): string {
  try {
    return readGiven(file === '-' ? 0 : resolve(file ?? ''));
  } catch (error) {
    const why = reasonOf(error);
    throw new TelosError('config', `The file ${file} could not be read: ${why}`);
  }
}

function reportPath(path: string, name: string, { json }: AgentOptions, terminal: Terminal): number {
  terminal.out(json ? `${terminalJson({ [name]: path })}\n` : `${terminalLine(path)}\n`);
  return 0;
}

/** Prints on stderr what happens, one line each. */
function progress(terminal: Terminal): (event: OrchestratorEvent) => void {
  return event => {
    switch (event.type) {
      case 'iteration_start': {
        const about = event.story === undefined ? '' : `: ${event.story}, criterion ${event.item}`;
        terminal.say(`Attempt ${event.iteration} of ${event.maxIterations}${terminalText(about)}`);
        break;
      }
      case 'check_ended':
        terminal.say(
          `  check ${terminalLine(event.check.name)}: ${event.check.exitCode === 0 ? 'passed' : 'failed'}`,
        );
        break;
      case 'iteration_end':
        terminal.say(`  ${event.status}: ${terminalLine(event.details, 200)}`);
        break;
      case 'run_event':
        if (event.event.type === 'tool_start')
          terminal.say(terminal.style.dim(`  ${event.step}: ${terminalLine(event.event.call.name)}`));
        break;
    }
  };
}

function finished(result: RalphResult, { json }: AgentOptions, terminal: Terminal): number {
  if (json) terminal.out(`${terminalJson(result)}\n`);
  else if (result.success && result.iterations === 0)
    terminal.out(
      'Nothing to do: every item was ticked before. No model has reviewed the work in this run.\n',
    );
  else if (result.success) terminal.out(`Done after ${result.iterations} attempts.\n`);
  else terminal.out(`Not done after ${result.iterations} attempts. ${terminalText(result.error ?? '')}\n`);
  if (result.success) return 0;
  return result.checksNotRun.length > 0 ? notRunExitCode : 1;
}

async function humanFor({ yes }: AgentOptions, terminal: Terminal): Promise<Human> {
  if (yes) return allowAll;
  const { terminalHuman, unattended } = await import('./terminalHuman.ts');
  return terminal.canAsk ? terminalHuman(terminal) : unattended;
}
