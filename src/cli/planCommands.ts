/** Implements `telos plan`: from a goal through its interview, its plan and its stories to the card; and what there is of each. */

import { relative, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { readGiven } from '@telos/engine/files';
import type { Human } from '@telos/engine/run';
import { Telos } from '@telos/engine/telos';
import { refuseMissing } from '@telos/plans/context';
import { Git, problemsOf, problemsOfPlan } from '@telos/plans/gitRepository';
import { openPlan, Plan } from '@telos/plans/plan';
import {
  type Adopted,
  adopt,
  adoptedName,
  MachineSeal,
  makeAdopted,
  notRunning,
  wantedMarks,
  writeMarks,
} from '@telos/plans/run';
import { PlanFolder } from '@telos/plans/state';
import type { SteerCommand } from '@telos/protocol/plan';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { readLine } from './keyboard.ts';
import { headline, nextCommand, nextStep, setupLines, statusText, waves } from './planView.ts';
import { typedPath } from './surroundings.ts';
import { cancelledExitCode, interruptible, type Terminal } from './terminal.ts';
import { agrees, terminalHuman, unattended } from './terminalHuman.ts';
import { sayError, terminalJson, terminalLine, terminalText } from './terminalText.ts';

export interface PlanOptions extends ConfigOptions {
  json?: boolean;
  yes?: boolean;
  name?: string;
  transcript?: string;
  context?: readonly string[];
  moreQuestions?: boolean;
  plan?: boolean;
  card?: boolean;
  changes?: string;
  writeBack?: boolean;
}

/** Exit codes of `telos plan`. */
export const exitCodes = { done: 0, failed: 1, usage: 2, person: 3, budget: 4, rateLimit: 5 } as const;

/** What every command of a plan works with. */
export interface PlanCall {
  config: Config;
  telos: Telos;
  /** Top folder of the repository, or the folder of the call if there is none. */
  repo: string;
  human: Human;
  signal: AbortSignal;
  terminal: Terminal;
  /** Where the person must go for the commands that are named, if they are elsewhere. */
  place?: string;
  /** The call only looks on: an interrupt ends nothing else. */
  isWatching?: boolean;
}

/** Calls `use` with the set-up. Returns its exit code, or that of the error that it throws, which is said. */
export async function withPlans(
  options: ConfigOptions & { yes?: boolean },
  terminal: Terminal,
  use: (call: PlanCall) => Promise<number>,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return exitCodes.usage;
  let call: PlanCall | undefined;
  const onFirst = (): void => {
    const words = call?.isWatching
      ? 'This view ends; the plan is as it was.'
      : 'Stopping; what was done is kept. Ctrl-C again ends at once.';
    terminal.say(terminal.style.dim(words));
  };
  const begin = async (signal: AbortSignal): Promise<number> => {
    const repo = await topOf(config);
    const human = terminal.canAsk ? terminalHuman(terminal) : unattended;
    call = { config, telos: Telos.open(config), repo, human, signal, terminal };
    return use(call);
  };
  const refused = (error: TelosError): number =>
    sayError(error, terminal, error.code === 'rate_limit' ? exitCodes.rateLimit : exitCodes.failed);
  return interruptible(terminal, begin, { onFirst, refused });
}

async function topOf({ cwd, env }: Config): Promise<string> {
  const answer = await new Git(cwd, env)
    .run(['rev-parse', '--show-toplevel'], { allow: [128] })
    .catch(() => undefined);
  return answer?.stdout.trim() || cwd;
}

/** Returns the plan that is named, or the only one that there is. Throws TelosError `config`. */
export function planNamed(name: string | undefined, { repo, telos, human }: PlanCall): Plan {
  const names = PlanFolder.list(repo);
  if (name === undefined && names.length === 0)
    throw new TelosError(
      'config',
      'There are no plans here yet. Begin one with: telos plan new "what you want"',
    );
  if (name === undefined && names.length > 1)
    throw new TelosError('config', `There are several plans; name one: ${names.join(', ')}`);
  return openPlan(repo, name ?? names[0] ?? '', { runs: telos, human, by: 'cli' });
}

/** Calls `use` with the plan that is named, or the only one that there is. Otherwise as `withPlans`. */
export const withPlan = (
  name: string | undefined,
  options: ConfigOptions & { yes?: boolean },
  terminal: Terminal,
  use: (plan: Plan, call: PlanCall) => Promise<number>,
): Promise<number> => withPlans(options, terminal, call => use(planNamed(name, call), call));

/** `telos plan new "<goal>"`: makes the plan and begins its interview. */
export async function newPlanCommand(
  goal: string,
  options: PlanOptions,
  terminal: Terminal,
): Promise<number> {
  return withPlans(options, terminal, async call => {
    const { repo, telos, human, config } = call;
    const caller = { runs: telos, human, by: 'cli' as const };
    const context = (options.context ?? []).map(path => resolve(config.cwd, path));
    refuseMissing(context);
    const plan = await Plan.create(repo, goal, caller, ...(options.name === undefined ? [] : [options.name]));
    if (context.length > 0) await plan.useContext(context);
    if (!options.json) terminal.say(terminalText(`Plan '${plan.name}', in ${plan.folder.dir}`));
    await sayWhatStops(call);
    if (!options.json) await saySetup(plan, call);
    return interviewed(plan, options, call);
  });
}

/**
 * `telos plan adopt PATH`: makes a plan of one that another tool keeps. Its files stay as they are until `--write-back` ticks there, after a
 * yes, what is done.
 */
export async function adoptCommand(path: string, options: PlanOptions, terminal: Terminal): Promise<number> {
  return withPlans(options, terminal, async call => {
    const read = () => adopt(resolve(call.config.cwd, path));
    if (options.writeBack) return writeBack(read, options, call);
    const found = read();
    const seal = new MachineSeal(call.config.dataDir);
    const folder = await makeAdopted(found, call.repo, seal, options.name);
    const stories = found.stories.map(({ story }) => story);
    await sayWhatStops(call);
    const plan = planNamed(folder.name, call);
    await plan.proposeSetup();
    if (!options.json) await saySetup(plan, call);
    if (options.json) terminal.out(`${terminalJson({ plan: folder.name, format: found.format, stories })}\n`);
    else {
      terminal.say(terminalText(`Plan '${folder.name}', in ${folder.dir}, from ${found.format}:`));
      for (const { id, title, items } of stories)
        terminal.out(`${id} ${items.every(({ ticked }) => ticked) ? '[x]' : '[ ]'} ${terminalLine(title)}\n`);
      sayNext(folder.name, 'stories_review', terminal);
    }
    return exitCodes.done;
  });
}

/** Says at once what keeps a plan from running here, which its run would say in the end. */
export async function sayWhatStops({ config, repo, terminal }: PlanCall): Promise<void> {
  const stop = (await problemsOf(repo, config)).find(({ stops }) => stops);
  if (stop) terminal.say(terminal.style.yellow(terminalText(`The plan cannot run here yet: ${stop.text}`)));
}

/** Says what was found that sets up the worktrees of a new plan. */
export async function saySetup(plan: Plan, { terminal }: PlanCall): Promise<void> {
  const { setup, slot } = await plan.setup();
  if (setup.length + slot.copy.length === 0) return;
  terminal.say('Each worktree of the plan is set up so:');
  for (const line of setupLines({ setup, ...slot })) terminal.say(terminalText(`  ${line}`));
  terminal.say(`Change it with: telos plan setup --plan ${plan.name} "..."`);
}

async function writeBack(read: () => Adopted, options: PlanOptions, call: PlanCall): Promise<number> {
  const { terminal, telos } = call;
  const found = read();
  const plan = planNamed(options.name ?? adoptedName(found), call);
  const { state } = await plan.look();
  const { wanted, unknown } = wantedMarks(found, state);
  const marks = wanted.map(({ mark, story, text }) => ({ file: mark.file, story, text }));
  if (unknown.length > 0)
    terminal.say(
      terminalText(`The plan '${plan.name}' does not have these as its source does: ${unknown.join(', ')}`),
    );
  if (marks.length === 0) {
    if (options.json) terminal.out(`${terminalJson({ plan: plan.name, marks })}\n`);
    else terminal.say('Nothing is done that the source does not say already. Nothing was changed.');
    return unknown.length > 0 ? exitCodes.failed : exitCodes.done;
  }
  const rows = marks.map(({ file, story, text }) =>
    terminalLine(`${relative(call.config.cwd, file)}: ${story} ${text}`),
  );
  const asked = `Done by now:\n${rows.map(row => `  [x] ${row}`).join('\n')}`;
  const unattended = `${asked}\nNo one can be asked here; --yes ticks them. Nothing was changed.`;
  if (!options.yes && !(await agrees(asked, 'Tick them in the source?', unattended, terminal)))
    return exitCodes.failed;
  if (!isDeepStrictEqual(wantedMarks(read(), state).wanted, wanted))
    throw new TelosError('config', 'The source has changed meanwhile. Nothing was written; try again.');
  const id = await writeMarks(wanted, telos.changes);
  if (options.json) terminal.out(`${terminalJson({ plan: plan.name, marks, undo: id })}\n`);
  else
    terminal.say(
      `Ticked ${marks.length === 1 ? 'one' : marks.length}. Bring the source back with: telos undo ${id.slice(0, 8)}`,
    );
  return exitCodes.done;
}

/** `telos plan interview`: goes on with the interview, with a transcript or with answers at the terminal. */
export async function interviewCommand(
  name: string | undefined,
  options: PlanOptions,
  terminal: Terminal,
): Promise<number> {
  return withPlan(name, options, terminal, (plan, call) => interviewed(plan, options, call));
}

/** Asks what must be known, at the terminal or through interview.md. `goOn` is the command that goes on with more than the interview. */
export async function interviewed(
  plan: Plan,
  options: PlanOptions,
  call: PlanCall,
  goOn?: string,
): Promise<number> {
  const { signal, terminal } = call;
  const noMoreQuestions = options.moreQuestions === false || options.yes === true;
  let given = options.transcript === undefined ? {} : { transcript: textOf(options.transcript, terminal) };
  for (;;) {
    const round = await plan.interview({ ...given, noMoreQuestions }, signal);
    given = {};
    if (options.json) terminal.out(`${terminalJson({ plan: plan.name, ...round })}\n`);
    if (round.ready) {
      if (!options.json && goOn === undefined) sayNext(plan.name, 'planning', terminal);
      return exitCodes.done;
    }
    if (!options.json)
      for (const [index, question] of round.questions.entries())
        terminal.say(`${index + 1}. ${terminalText(question)}`);
    if (!terminal.canAsk || options.json) {
      await plan.answer(round.questions, undefined);
      const next = goOn ?? `telos plan interview ${plan.name}`;
      if (!options.json)
        terminal.say(
          terminalText(
            `Answer behind A: in ${plan.folder.path('interview.md')}, then: ${next}\nTo go on without answers: ${next} --no-more-questions`,
          ),
        );
      return exitCodes.person;
    }
    const answers: string[] = [];
    for (const question of round.questions) {
      terminal.say(terminal.style.bold(`? ${terminalText(question)}`));
      const answer = await readLine('  (Enter = decide for me) > ', signal);
      if (answer === undefined) return signal.aborted ? cancelledExitCode : exitCodes.person;
      answers.push(answer);
    }
    await plan.answer(round.questions, answers);
  }
}

/** Returns the text of a file, or of the standard input for `-`. Throws TelosError `config` if it cannot be read. */
function textOf(file: string, { surroundings }: Terminal): string {
  try {
    return readGiven(file === '-' ? 0 : typedPath(file, surroundings));
  } catch (error) {
    throw new TelosError('config', `${file} could not be read: ${(error as Error).message}`);
  }
}

function sayNext(name: string, phase: Parameters<typeof nextCommand>[0], terminal: Terminal): void {
  const next = nextCommand(phase, name);
  if (next !== undefined) terminal.say(`Next: ${next}`);
}

/** `telos plan write`: has plan.md written. */
export async function writePlanCommand(
  name: string | undefined,
  options: PlanOptions,
  terminal: Terminal,
): Promise<number> {
  return withPlan(name, options, terminal, async (plan, call) => {
    const comments = options.changes === undefined ? [] : [options.changes];
    if (comments.length > 0) await plan.review('changes', comments);
    await plan.write(call.signal, comments);
    terminal.say(terminalText(`Written: ${plan.folder.path('plan.md')}`));
    sayNext(plan.name, 'plan_review', terminal);
    return exitCodes.done;
  });
}

/** `telos plan split`: has the approved plan split into stories. */
export async function splitPlanCommand(
  name: string | undefined,
  options: PlanOptions,
  terminal: Terminal,
): Promise<number> {
  return withPlan(name, options, terminal, async (plan, call) => {
    const { state } = await plan.look();
    if (!state.isPlanApproved) {
      terminal.say(`plan.md is not approved yet. Read it, then: telos plan approve ${plan.name} --plan`);
      return exitCodes.person;
    }
    for (const path of await plan.split(call.signal)) terminal.out(`${terminalLine(path)}\n`);
    sayNext(plan.name, 'stories_review', terminal);
    return exitCodes.done;
  });
}

/** `telos plan show`: the plan, or all plans if none is named and there are several. */
export async function showPlanCommand(
  name: string | undefined,
  options: PlanOptions,
  terminal: Terminal,
): Promise<number> {
  return withPlans(options, terminal, async call => {
    const names = PlanFolder.list(call.repo);
    if (name === undefined && names.length > 1) {
      for (const one of names) {
        const { state } = await planNamed(one, call).look();
        terminal.out(
          options.json
            ? `${terminalJson({ name: one, ...stateJson(state) })}\n`
            : `${headline(one, state)}\n`,
        );
      }
      return exitCodes.done;
    }
    const plan = planNamed(name, call);
    const { state, problems: ofFiles } = await plan.look();
    const stops = (await problemsOfPlan(plan.folder, call.config.env)).filter(one => one.stops);
    const problems = [...stops.map(({ text }) => text), ...ofFiles];
    if (options.json) terminal.out(`${terminalJson({ name: plan.name, ...stateJson(state), problems })}\n`);
    else terminal.out(`${statusText(plan.name, state, problems, terminal.style, terminal.outWidth)}\n`);
    return exitCodes.done;
  });
}

type State = Awaited<ReturnType<Plan['look']>>['state'];

/** Returns what a program reads of a plan. */
function stateJson(state: State): object {
  const { goal, phase, phaseWhy, branch, base, usage, stories, questions, recovered, finished } = state;
  return {
    goal,
    phase,
    why: phaseWhy,
    branch,
    base,
    usage,
    questions,
    recovered,
    finished,
    stories: stories.map(({ story, status, attempts, commit, passed, accepted, lastDenial }) => ({
      id: story.id,
      title: story.title,
      status,
      attempts,
      commit,
      lastDenial,
      passed: [...passed],
      accepted: [...accepted],
      boxes: story.items.length,
    })),
  };
}

/** `telos plan next`: the story that is worked on next, as ralph's own selection has it. */
export async function nextStoryCommand(
  name: string | undefined,
  options: PlanOptions,
  terminal: Terminal,
): Promise<number> {
  return withPlan(name, options, terminal, async plan => {
    const { next } = (await plan.look()).state;
    if (options.json) terminal.out(`${JSON.stringify(next?.story.id ?? null)}\n`);
    else
      terminal.out(
        next ? `${next.story.id} ${terminalLine(next.story.title)}\n` : 'All stories have ended.\n',
      );
    return exitCodes.done;
  });
}

/** `telos plan graph`: which stories can run at the same time, and why others cannot. */
export async function graphCommand(
  name: string | undefined,
  options: PlanOptions,
  terminal: Terminal,
): Promise<number> {
  return withPlan(name, options, terminal, async plan => {
    const { state } = await plan.look();
    const titles = new Map(state.stories.map(({ story }) => [story.id, story]));
    for (const [index, wave] of waves(state.stories).entries()) {
      terminal.out(`Wave ${index + 1}\n`);
      for (const id of wave) {
        const story = titles.get(id);
        const touches =
          story && story.touches.length > 0 ? story.touches.join(' ') : 'touches anything: runs alone';
        terminal.out(`  ${id} ${terminalLine(story?.title ?? '', 50)} (${terminalLine(touches)})\n`);
      }
    }
    return exitCodes.done;
  });
}

/** `telos plan pause|resume|stop|tell|answer|skip|redo|accept|reopen|budget …`: tells the plan's runner, from any terminal. */
export async function steerCommand(
  name: string | undefined,
  command: SteerCommand,
  options: PlanOptions,
  terminal: Terminal,
): Promise<number> {
  return withPlan(name, options, terminal, async plan => {
    const isRunning = await plan.steer(command).catch(error => {
      if (!(error instanceof TelosError) || error.message !== notRunning) throw error;
      return undefined;
    });
    if (isRunning === undefined) return sayIdle(plan, command, terminal);
    const later = `The plan is not running. This takes effect when it runs: telos plan run ${plan.name}`;
    terminal.say(isRunning ? 'Sent.' : later);
    return exitCodes.done;
  });
}

/** Refuses a command for a run where there is none. Whoever wants to go on reads how. */
async function sayIdle(plan: Plan, { kind }: SteerCommand, terminal: Terminal): Promise<number> {
  terminal.say(terminal.style.red(notRunning));
  const next = kind === 'resume' ? nextStep(plan.name, (await plan.look()).state) : undefined;
  if (next !== undefined) terminal.say(`Next: ${next}`);
  return exitCodes.failed;
}

/** `telos plan doctor`: what of this folder hinders a plan. */
export async function planDoctorCommand(options: PlanOptions, terminal: Terminal): Promise<number> {
  return withPlans(options, terminal, async ({ config, repo }) => {
    const problems = await problemsOf(repo, config);
    if (options.json) terminal.out(`${terminalJson(problems.map(({ text, stops }) => ({ text, stops })))}\n`);
    else if (problems.length === 0) terminal.out('Nothing prevents plans here.\n');
    else
      for (const { text, stops } of problems)
        terminal.out(`${stops ? 'Stops plans' : 'Note'}: ${terminalText(text)}\n`);
    return problems.some(({ stops }) => stops) ? exitCodes.failed : exitCodes.done;
  });
}
