/** Implements `telos plan approve`, `run` and `watch`. */

import { shellWord } from '@telos/engine/files';
import { importDatabaseAddress, importPlanWorkers } from '@telos/fleet/executors';
import { Plan } from '@telos/plans/plan';
import { type PlanRunEnd, type PlanWorkers, readRunner } from '@telos/plans/run';
import { checkFile, followJournal, printCard, withChoices } from '@telos/plans/state';
import type { CheckResult, JournalLine, PlanLimits, PlanPhase } from '@telos/protocol/plan';
import type { PlanCard } from '@telos/protocol/planCard';
import { endOf } from '@telos/protocol/text';
import { exitCodes, type PlanCall, type PlanOptions, withPlan, withPlans } from './planCommands.ts';
import { factText, headline, nextCommand, nextStep, setupLines, stuckLines } from './planView.ts';
import { typedPath } from './surroundings.ts';
import type { Terminal } from './terminal.ts';
import { cancelledExitCode } from './terminal.ts';
import { agrees } from './terminalHuman.ts';
import { exactText, terminalJson, terminalLine, terminalText } from './terminalText.ts';

export interface RunPlanOptions extends PlanOptions {
  parallel?: string;
  unattended?: boolean;
  only?: string;
  from?: string;
  until?: string;
  retry?: boolean;
  record?: string;
  workers?: string | true;
  label?: string;
  remote?: string;
  /** Of Telos. */
  version?: string;
}

/** `telos plan approve`: plan.md with `--plan`, the card with `--card`; without either, what waits. */
export async function approveCommand(
  name: string | undefined,
  options: RunPlanOptions,
  terminal: Terminal,
): Promise<number> {
  return withPlan(name, options, terminal, async (plan, call) => {
    const { state } = await plan.look();
    const isPlan = options.plan === true || (options.card !== true && state.phase === 'plan_review');
    return isPlan ? approvePlan(plan, call, options) : approveCard(plan, call, options);
  });
}

async function approvePlan(plan: Plan, { terminal }: PlanCall, options: RunPlanOptions): Promise<number> {
  const text = plan.folder.read('plan.md');
  if (text !== undefined && terminal.canAsk && !options.yes) {
    terminal.say(terminalText(text));
    if (!(await agrees('', 'Approve this plan?', '', terminal))) return exitCodes.person;
  }
  await plan.review('approved');
  terminal.say(`Approved. Next: ${nextCommand('splitting', plan.name)}`);
  return exitCodes.done;
}

async function approveCard(plan: Plan, { terminal }: PlanCall, options: RunPlanOptions): Promise<number> {
  const card = await plan.card();
  if (options.json) terminal.out(`${terminalJson(card)}\n`);
  else sayCard(card, terminal);
  const unattended = 'No one can be asked here; --yes approves the permissions as they are shown.';
  if (!options.yes && !(await agrees('', 'Approve these permissions?', unattended, terminal)))
    return exitCodes.person;
  await plan.acceptCard(card);
  terminal.say(`Accepted. Next: ${nextCommand('ready', plan.name)}`);
  return exitCodes.done;
}

interface SetupOptions extends RunPlanOptions {
  keep?: string[];
  link?: string[];
  copy?: string[];
  detect?: boolean;
  clear?: boolean;
}

/** `telos plan setup`: shows how the worktrees of a plan are set up, or changes it. */
export async function setupPlanCommand(
  commands: readonly string[],
  options: Omit<SetupOptions, 'plan'> & { plan?: string | boolean },
  terminal: Terminal,
): Promise<number> {
  const { plan: named, keep, link, copy, detect, clear } = options;
  const given = {
    ...(commands.length > 0 && { setup: [...commands] }),
    ...(keep && { keep }),
    ...(link && { link }),
    ...(copy && { copy }),
  };
  const isSet = Object.keys(given).length > 0;
  if ([isSet, detect, clear].filter(Boolean).length > 1) {
    terminal.say('Use commands and paths, or --detect, or --clear.');
    return exitCodes.usage;
  }
  const name = typeof named === 'string' ? named : undefined;
  return withPlan(name, options as RunPlanOptions, terminal, async plan => {
    const cleared = clear ? { setup: [], keep: [], link: [], copy: [] } : given;
    const { setup, slot } = await plan.setup(detect ? 'detect' : cleared);
    if (options.json) terminal.out(`${terminalJson({ plan: plan.name, setup, slot })}\n`);
    else for (const line of setupLines({ setup, ...slot })) terminal.out(`${exactText(line)}\n`);
    const isChanged = isSet || detect || clear;
    if (isChanged && !options.json && !(await plan.card()).isAccepted)
      terminal.say(`The permissions of the plan need your approval: telos plan approve ${plan.name} --card`);
    return exitCodes.done;
  });
}

const sayCard = (card: PlanCard, terminal: Terminal): void => {
  for (const line of printCard(card)) terminal.say(exactText(line));
};

/** `telos plan quick`: a plan of one story, whose card is asked about, and which then runs. */
export async function quickPlanCommand(
  goal: string,
  options: RunPlanOptions & { check?: string },
  terminal: Terminal,
): Promise<number> {
  return withPlans(withoutLimits(options), terminal, async call => {
    const { check = '', name } = options;
    const caller = { runs: call.telos, human: call.human, by: 'cli' as const };
    const plan = await Plan.quick(call.repo, { goal, check, ...(name !== undefined && { name }) }, caller);
    if (options.yes) await plan.acceptCard(await plan.card());
    return runNamed(plan, options, call);
  });
}

/** `telos plan run`: works on the stories. Prints what happens as it happens. */
export async function runPlanCommand(
  name: string | undefined,
  options: RunPlanOptions,
  terminal: Terminal,
): Promise<number> {
  return withPlan(name, withoutLimits(options), terminal, (plan, call) => runNamed(plan, options, call));
}

/** The limits are those of the plan, over all of its steps, and not of each of them. */
export function withoutLimits(options: RunPlanOptions): RunPlanOptions {
  const { maxCost: _cost, maxTokens: _tokens, maxMinutes: _minutes, ...rest } = options;
  return rest;
}

/** Runs a plan and shows it. Returns the exit code of its end. */
export async function runNamed(plan: Plan, options: RunPlanOptions, call: PlanCall): Promise<number> {
  const { terminal, signal } = call;
  const { phase } = (await plan.look()).state;
  const early =
    phase === 'interviewing' || phase === 'planning' || phase === 'plan_review' || phase === 'splitting';
  if (early) return sayEarly(plan.name, phase, terminal);
  const limits: PlanLimits = {
    ...(options.maxCost !== undefined && { maxCost: Number(options.maxCost) }),
    ...(options.maxTokens !== undefined && { maxTokens: Number(options.maxTokens) }),
    ...(options.maxMinutes !== undefined && { maxMinutes: Number(options.maxMinutes) }),
  };
  const settings = await plan.folder.settings();
  const most = options.workers === undefined ? 16 : mostOnWorkers;
  const usual = options.workers === undefined ? settings.parallel : most;
  const slots = options.parallel === undefined ? usual : Number(options.parallel);
  if (!Number.isInteger(slots) || slots < 1 || slots > most) {
    terminal.say(`--parallel takes a whole number from 1 to ${most}.`);
    return exitCodes.usage;
  }
  const workers = options.workers === undefined ? undefined : await workersOf(options, call);
  const over = new AbortController();
  const shown = showFacts(plan, options, terminal, AbortSignal.any([signal, over.signal]), true);
  const end = await plan
    .run(
      {
        slots,
        limits,
        unattended: options.unattended === true || settings.unattended === true || !terminal.canAsk,
        ...(options.only !== undefined && { only: options.only }),
        ...(options.from !== undefined && { from: options.from }),
        ...(options.until !== undefined && { until: options.until }),
        ...(options.retry && { retry: true }),
        ...(workers && { workers }),
        ...(options.record !== undefined && { recordTo: typedPath(options.record, terminal.surroundings) }),
        ...(terminal.canAsk && !options.unattended && { goOnRed: red => goesOnRed(red, terminal) }),
      },
      signal,
    )
    .finally(() => over.abort());
  await shown;
  return ended(plan, end, options, call);
}

const rests = (phase: PlanPhase): boolean => phase !== 'running' && phase !== 'waiting';

/** More stories at a time than one runner can bring together. */
const mostOnWorkers = 64;

/** Returns how to reach the workers. Throws the errors of `planWorkers`. */
async function workersOf(
  { workers, label, remote, version = '' }: RunPlanOptions,
  { config, terminal }: PlanCall,
): Promise<PlanWorkers> {
  const [{ planWorkers }, { databaseVariable }] = await Promise.all([
    importPlanWorkers(),
    importDatabaseAddress(),
  ]);
  // Other programs can read the arguments of this one.
  process.title = 'telos plan';
  const url = workers === true ? config.env[databaseVariable] : workers;
  const log = (line: string): void => terminal.say(terminalLine(line));
  return planWorkers(config, { url, version, label, remote, log });
}

function sayEarly(name: string, phase: PlanPhase, terminal: Terminal): number {
  terminal.say(`The plan is not ready to run. Next: ${nextCommand(phase, name)}`);
  if (phase !== 'plan_review')
    terminal.say(`It runs once you have approved plan.md and its permissions: telos plan approve ${name}`);
  return exitCodes.person;
}

async function goesOnRed(red: readonly CheckResult[], terminal: Terminal): Promise<boolean> {
  const names = red.map(({ name }) => name).join(', ');
  const about = `Before anything was changed, these checks fail: ${terminalLine(names)}`;
  return agrees(about, 'Start anyway? Stories that name them pass only once they do.', '', terminal);
}

async function ended(plan: Plan, end: PlanRunEnd, options: RunPlanOptions, call: PlanCall): Promise<number> {
  const { terminal, signal } = call;
  switch (end.kind) {
    case 'busy':
      terminal.say(`${plan.name} is already running (pid ${end.pid}); watching. Ctrl-C ends only this view.`);
      call.isWatching = true;
      await showFacts(plan, options, terminal, signal, false, rests);
      return watchedExitCode(plan, signal);
    case 'unapproved':
      return sayEarly(plan.name, end.phase, terminal);
    case 'card':
      sayCard(end.card, terminal);
      if (terminal.canAsk && !options.unattended) {
        if (!(await agrees('', 'Approve these permissions?', '', terminal))) return exitCodes.person;
        await plan.acceptCard(end.card);
        return runNamed(plan, options, call);
      }
      terminal.say(`Its permissions need your approval: telos plan approve ${plan.name} --card`);
      return exitCodes.person;
    case 'red':
      for (const { name, output } of end.checks)
        terminal.say(
          terminalText(`${name} fails on the base, before anything was changed:\n${endOf(output, 800)}`),
        );
      terminal.say('Fix that first, or take the check out of the stories and plan.json.');
      return exitCodes.person;
    case 'rest':
      return rested(plan, end, options, call);
  }
}

async function rested(
  plan: Plan,
  { phase, why }: Extract<PlanRunEnd, { kind: 'rest' }>,
  options: RunPlanOptions,
  { terminal, signal, place }: PlanCall,
): Promise<number> {
  const { state } = await plan.look();
  if (options.json) terminal.out(`${terminalJson({ plan: plan.name, phase, why })}\n`);
  else terminal.say(terminal.style.bold(headline(plan.name, state)));
  if (!options.json)
    for (const { id, ...question } of state.questions)
      terminal.say(terminalText(`Waits for you: ${withChoices(question)}\n  telos plan answer ${id} "…"`));
  if (!options.json) for (const line of stuckLines(state)) terminal.say(line);
  const next = nextStep(plan.name, state);
  if (phase === 'done' && next !== undefined && !options.json)
    terminal.say(`Branch ${state.branch} has it all. Next: ${from(place)}${next}`);
  if (phase === 'needs_you' && !options.json) terminal.say(`Then: ${from(place)}${next}`);
  if (signal.aborted) return cancelledExitCode;
  if (phase === 'paused' && why !== undefined && /budget/i.test(why)) {
    terminal.say(`To go on: telos plan budget ${plan.name} --add 5, then telos plan run ${plan.name}`);
    return exitCodes.budget;
  }
  return exitCodeOf(phase);
}

const exitCodeOf = (phase: PlanPhase): number =>
  ({ done: exitCodes.done, needs_you: exitCodes.person, waiting: exitCodes.rateLimit })[phase as 'done'] ??
  exitCodes.failed;

/** Returns the exit code of the plan as it is now, for one who only watched it. */
async function watchedExitCode(plan: Plan, signal: AbortSignal): Promise<number> {
  if (signal.aborted) return cancelledExitCode;
  const { phase, phaseWhy = '' } = (await plan.look()).state;
  return phase === 'paused' && /budget/i.test(phaseWhy) ? exitCodes.budget : exitCodeOf(phase);
}

/** Returns what takes a person's shell to the folder, if they are elsewhere. */
const from = (place: string | undefined): string => (place === undefined ? '' : `cd ${shellWord(place)} && `);

/** `telos plan watch`: follows a plan from now on, until it is done. */
export async function watchPlanCommand(
  name: string | undefined,
  options: RunPlanOptions,
  terminal: Terminal,
): Promise<number> {
  return withPlan(name, options, terminal, async (plan, call) => {
    call.isWatching = true;
    const { state } = await plan.look();
    terminal.say(terminal.style.bold(headline(plan.name, state)));
    const isOver = state.phase === 'done' || state.finished !== undefined;
    if (!isOver || readRunner(plan.folder))
      await showFacts(plan, options, terminal, call.signal, true, phase => phase === 'done');
    else if (!options.json) terminal.say('Nothing runs, so there is nothing to watch.');
    return watchedExitCode(plan, call.signal);
  });
}

/** Returns the file that has all that a check printed. */
const outputOf = (
  { folder }: Plan,
  { story, attempt, name }: Extract<JournalLine, { type: 'check_ended' }>,
): string => folder.path('checks', checkFile(`${story}.a${attempt}`, name));

/** Prints the facts of a plan as its journal gets them, until the signal aborts or, for a watcher, the plan rests in such a phase. */
async function showFacts(
  plan: Plan,
  options: RunPlanOptions,
  terminal: Terminal,
  signal: AbortSignal,
  isNew: boolean,
  isEnd: (phase: PlanPhase) => boolean = () => false,
): Promise<void> {
  const before = (await plan.look()).lines;
  const shown = isNew ? before : 0;
  for await (const line of followJournal(plan.folder.journal, signal, plan.folder.seal)) {
    if (line.seq <= shown) continue;
    if (options.json) terminal.out(`${terminalJson(line)}\n`);
    else {
      const text = factText(line);
      if (text !== undefined) terminal.say(`  ${text}`);
      if (line.type === 'runner_started')
        terminal.say(terminal.style.dim('  Each call of its models, live: telos runs --follow'));
      if (line.type === 'check_ended' && line.exitCode !== 0)
        terminal.say(terminalText(`    Its output: ${outputOf(plan, line)}`));
    }
    if (line.type === 'phase' && isEnd(line.phase)) return;
  }
}
