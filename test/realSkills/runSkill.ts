/** Runs one skill through the command line, twice, with a person and a model that takes it at its word. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RunEvent } from '../../src/protocol/run.ts';
import { program } from '../cli/cliProcess.ts';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import { mainWords, type SkillCase } from './caseFile.ts';
import { fillIn, literalModel, type StepResult } from './literalModel.ts';
import { withPerson } from './person.ts';
import { type Layout, type SkillWorld, skillWorld } from './skillWorld.ts';

export interface RunOutcome {
  complete: boolean;
  steps: StepResult[];
  /** The rule of each question, with its subject. */
  questions: string[];
  /** Warnings before the first call. */
  warnings: string[];
  /** Files of the pack that were added or changed since it was published. */
  added: string[];
  changed: string[];
  /** Problems, in sentences. */
  problems: string[];
}

export interface SkillOutcome {
  one: SkillCase;
  layout: Layout;
  /** Why it cannot be complete on this machine. */
  impossible?: string;
  first: RunOutcome;
  second?: RunOutcome;
}

export async function runSkill(one: SkillCase, layout: Layout, yesToAll = false): Promise<SkillOutcome> {
  const world = skillWorld(one, layout);
  try {
    return await runTwice(one, layout, run => runInTerminal(one, world, run, yesToAll));
  } finally {
    world.remove();
  }
}

/** Calls `runOnce` with 0 and, if the skill can work at all, with 1. */
export async function runTwice(
  one: SkillCase,
  layout: Layout,
  runOnce: (run: number) => Promise<RunOutcome>,
): Promise<SkillOutcome> {
  const absent = absentProgram(one);
  const impossible = one.missing === undefined ? absent && `${absent} is not here` : 'as published';
  const first = await runOnce(0);
  const outcome = { one, layout, first, ...(impossible === undefined ? {} : { impossible }) };
  return one.missing === undefined ? { ...outcome, second: await runOnce(1) } : outcome;
}

async function runInTerminal(
  one: SkillCase,
  world: SkillWorld,
  run: number,
  yesToAll: boolean,
): Promise<RunOutcome> {
  const words = world.wordsOf(run);
  const model = literalModel(one.steps, words, one.name);
  const server = await startAnthropicServer({ turns: request => model.turn(request) });
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: world.home,
    LANG: 'C.UTF-8',
    ANTHROPIC_API_KEY: 'sk-ant-test-0123456789',
    ANTHROPIC_BASE_URL: server.url,
    OLLAMA_BASE_URL: 'http://127.0.0.1:9/v1',
    // A person is asked here as where no box works.
    TELOS_SANDBOX: 'off',
    ...one.env,
  };
  const command = [process.execPath, program(), '--json', requestOf(one, words)];
  try {
    const eventsFile = join(world.home, `events-${run}.jsonl`);
    const { code, events, shown } = await withPerson(command, {
      cwd: world.stands,
      env,
      eventsFile,
      yesToAll,
    });
    const problems = code === 0 ? [] : [`exit code ${code}: ${endOf(events) ?? shown.slice(-500)}`];
    return outcomeOf(one, world, words, { steps: model.results, events, problems });
  } finally {
    await server.close();
  }
}

/** Returns what the person asks for. */
export function requestOf(one: SkillCase, words: Readonly<Record<string, string>>): string {
  const { project: _project, ...said } = words;
  return `/${one.name} ${Object.values(said).join(' ')}`;
}

/** Judges one run by its calls, its events and what is there now. */
export function outcomeOf(
  one: SkillCase,
  world: SkillWorld,
  words: Readonly<Record<string, string>>,
  run: { steps: StepResult[]; events: readonly RunEvent[]; problems: readonly string[] },
): RunOutcome {
  const { steps, events } = run;
  const problems = [
    ...run.problems,
    ...(steps.length === one.steps.length ? [] : [`only ${steps.length} calls were made`]),
    ...steps.filter(step => !step.worked).map(step => `${step.call} -> ${step.told.at(-1)?.slice(0, 400)}`),
    ...unmade(one, world, words),
  ];
  return {
    complete: problems.length === 0,
    problems,
    steps,
    questions: questionsIn(events),
    warnings: warningsIn(events),
    ...world.packChanges(),
  };
}

function unmade(
  { makes = {} }: SkillCase,
  world: SkillWorld,
  words: Readonly<Record<string, string>>,
): string[] {
  return Object.entries(makes).flatMap(([path, text]) => {
    const place = world.placeOf(fillIn(path, words));
    if (!existsSync(place)) return [`${place} is not there`];
    return readFileSync(place, 'latin1').includes(Buffer.from(fillIn(text, words)).toString('latin1'))
      ? []
      : [`${place} does not hold '${fillIn(text, words)}'`];
  });
}

const questionsIn = (events: readonly RunEvent[]): string[] =>
  events.flatMap(event =>
    event.type === 'approval_request'
      ? [`${event.request.rule}${event.request.card ? ' (card)' : ''}: ${event.request.subject}`]
      : [],
  );

function warningsIn(events: readonly RunEvent[]): string[] {
  const start = events.findIndex(({ type }) => type === 'tool_start');
  return events
    .slice(0, start < 0 ? undefined : start)
    .flatMap(event => (event.type === 'notice' && event.level === 'warning' ? [event.message] : []));
}

export function endOf(events: readonly RunEvent[]): string | undefined {
  const end = events.at(-1);
  return end?.type === 'run_end' ? `${end.outcome} ${end.error?.message ?? ''}` : undefined;
}

const everyday = ['python3', 'python', 'bash', 'git', 'jq', 'bc', 'node'];

/** Returns the first program that the skill's commands need and that is missing here. */
function absentProgram({ steps, git }: SkillCase): string | undefined {
  const commands = `${steps.map(mainWords).join('\n')}${git ? '\ngit ' : ''}`;
  const needed = everyday.filter(name => new RegExp(`(^|[\\s|;&/])${name}\\s`, 'm').test(commands));
  const folders = (process.env['PATH'] ?? '').split(':');
  return needed.find(name => !folders.some(folder => existsSync(join(folder, name))));
}
