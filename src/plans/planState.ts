/** Folds the journal of a plan and the stories on disk to the plan's state. Reads no disk and knows no clock. */
import type {
  FinishKind,
  JournalLine,
  ParkedQuestion,
  PlanLimits,
  PlanPhase,
  Story,
} from '@telos/protocol/plan';
import type { RunOutcome, Usage } from '@telos/protocol/run';
import { addedUsage } from '@telos/protocol/usage';
import {
  foldStory,
  inOrder,
  isOver,
  noProgress,
  type Progress,
  type StoryState,
  statesOf,
} from './storyState.ts';

/** Why a plan was stopped that no one wanted to stop: its runner has ended. */
export const interruptedWhy = 'It was interrupted.';

export interface PlanState {
  goal: string;
  phase: PlanPhase;
  phaseWhy?: string;
  /** A person asked its runner to pause or to stop, also if that has not reached it. */
  isHeld: boolean;
  /** ISO 8601: no model is asked before. */
  waitingUntil?: string;
  /** The stories in the order in which they are worked on: what others need first, then as their files are named. */
  stories: readonly StoryState[];
  story(id: string): StoryState | undefined;
  /** The first story that is not over. */
  next: StoryState | undefined;
  usage?: Usage;
  /** For how long a runner has worked, in milliseconds: without pauses, waits and sleep of the machine. */
  workedMs: number;
  /** What a person added to the limits. */
  added: PlanLimits;
  questions: readonly ParkedQuestion[];
  answers: ReadonlyMap<string, string>;
  /** Steps that have ended, by key. They are not asked again. */
  steps: ReadonlyMap<string, { runId: string; outcome: RunOutcome }>;
  base?: string;
  branch?: string;
  isPlanApproved: boolean;
  /** What the present or last runner found left by a runner before and put right, in sentences. */
  recovered: readonly string[];
  /** Ids of the commands that were carried out. */
  steered: ReadonlySet<string>;
  /** The last choice of a person for the models and the number of slots. */
  models: ReadonlyMap<string, string>;
  slots?: number;
  /** How a person has ended the plan. Missing if its stories were worked on since. */
  finished?: { how: FinishKind; commit?: string; into?: string };
}

interface Folding extends Omit<PlanState, 'stories' | 'story' | 'next'> {
  questions: ParkedQuestion[];
  answers: Map<string, string>;
  steps: Map<string, { runId: string; outcome: RunOutcome }>;
  steered: Set<string>;
  models: Map<string, string>;
  progress: Map<string, Progress>;
  order: string[];
  /** Was put right before the next runner begins. */
  repaired: readonly string[];
  /** Time of the last line since the first runner began. */
  last?: number;
}

/** Returns the plan's state after the journal's lines, for the stories that its folder has now. */
export function foldPlan(lines: readonly JournalLine[], stories: readonly Story[]): PlanState {
  const plan = emptyPlan();
  for (const line of lines) foldLine(plan, line);
  const { progress, order, last, repaired, ...rest } = plan;
  const states = statesOf(inOrder(stories, order), progress, plan.questions);
  const byId = new Map(states.map(state => [state.story.id, state]));
  return {
    ...rest,
    stories: states,
    // What is over asks nothing more.
    questions: plan.questions.filter(
      ({ story }) => story === undefined || !isOver(byId.get(story)?.status ?? 'ready'),
    ),
    story: id => byId.get(id),
    next: states.find(({ status }) => !isOver(status)),
  };
}

function foldLine(plan: Folding, line: JournalLine): void {
  countTime(plan, line);
  if ('story' in line && line.story !== undefined) foldStory(progressOf(plan, line.story), line);
  switch (line.type) {
    case 'plan_created':
      plan.goal = line.goal;
      break;
    case 'interview_round':
      if (line.ready || line.forced) plan.phase = 'planning';
      break;
    case 'plan_written':
      plan.phase = 'plan_review';
      plan.isPlanApproved = false;
      break;
    case 'plan_reviewed':
      plan.isPlanApproved = line.decision === 'approved';
      plan.phase = plan.isPlanApproved ? 'splitting' : 'planning';
      break;
    case 'stories_written':
      plan.phase = 'stories_review';
      break;
    case 'card_accepted':
      plan.phase = 'ready';
      break;
    case 'runner_started':
      plan.base = line.base;
      plan.branch = line.branch;
      plan.recovered = plan.repaired;
      plan.repaired = [];
      delete plan.finished;
      plan.isHeld = false;
      setPhase(plan, 'running');
      break;
    case 'recovered':
      plan.repaired = [...plan.repaired, ...line.what];
      break;
    case 'phase':
      setPhase(plan, line.phase, line.why);
      break;
    case 'waiting':
      setPhase(plan, 'waiting', line.why);
      plan.waitingUntil = line.until;
      break;
    case 'step_ended':
      plan.steps.set(line.key, { runId: line.runId, outcome: line.outcome });
      if (line.usage) plan.usage = addedUsage(plan.usage, line.usage);
      break;
    case 'question_parked':
      plan.questions = [...plan.questions.filter(({ id }) => id !== line.question.id), line.question];
      break;
    case 'question_answered':
      plan.questions = plan.questions.filter(({ id }) => id !== line.id);
      plan.answers.set(line.id, line.text);
      break;
    case 'story_reopened':
      // It starts over, so what its attempts so far asked is no longer asked.
      plan.questions = plan.questions.filter(({ story }) => story !== line.story);
      break;
    case 'steered':
      foldCommand(plan, line);
      break;
    case 'finished':
      plan.finished = finishOf(line);
      break;
  }
}

type Ended = Extract<JournalLine, { type: 'finished' }>;

function finishOf({ how, commit, into }: Ended): NonNullable<PlanState['finished']> {
  return { how, ...(commit !== undefined && { commit }), ...(into !== undefined && { into }) };
}

function setPhase(plan: Folding, phase: PlanPhase, why?: string): void {
  plan.phase = phase;
  delete plan.waitingUntil;
  if (why === undefined) delete plan.phaseWhy;
  else plan.phaseWhy = why;
}

/** A clock that was put back takes nothing away. */
function countTime(plan: Folding, line: JournalLine): void {
  // A person's own act, long after the runner has ended.
  if (line.type === 'finished' || line.type === 'card_accepted') return;
  const now = Date.parse(line.ts);
  if (Number.isNaN(now)) return;
  const { last } = plan;
  if (line.type === 'runner_started') plan.last = now;
  if (line.type === 'runner_started' || last === undefined) return;
  plan.last = Math.max(last, now);
  if (plan.phase !== 'running' && plan.phase !== 'finishing') return;
  const away = line.type === 'away' ? line.ms : 0;
  plan.workedMs = Math.max(0, plan.workedMs + plan.last - last - away);
}

function foldCommand(plan: Folding, line: Extract<JournalLine, { type: 'steered' }>): void {
  const { command, id } = line;
  if (id !== undefined) plan.steered.add(id);
  if (line.ignored !== undefined) return;
  switch (command.kind) {
    case 'tell':
      // Whoever changed nothing knows more now.
      for (const [story, one] of plan.progress)
        if (command.story === undefined || command.story === story) one.unchanged = 0;
      break;
    case 'reorder': {
      const rest = plan.order.filter(one => one !== command.story);
      const at = rest.indexOf(command.before);
      plan.order =
        at < 0
          ? [...rest, command.story, command.before]
          : [...rest.slice(0, at), command.story, ...rest.slice(at)];
      break;
    }
    case 'budget':
      for (const name of ['maxCost', 'maxTokens', 'maxMinutes'] as const) {
        const more = command.add[name];
        if (typeof more === 'number') plan.added[name] = (plan.added[name] ?? 0) + more;
      }
      break;
    case 'pause':
    case 'stop':
      plan.isHeld = true;
      break;
    case 'resume':
      plan.isHeld = false;
      break;
    case 'split':
      progressOf(plan, command.story).isToSplit = true;
      break;
    case 'model':
      plan.models.set(command.role ?? '', command.model);
      break;
    case 'parallel':
      plan.slots = command.slots;
      break;
  }
}

function progressOf(plan: Folding, story: string): Progress {
  const known = plan.progress.get(story);
  if (known) return known;
  const fresh = noProgress();
  plan.progress.set(story, fresh);
  return fresh;
}

const emptyPlan = (): Folding => ({
  goal: '',
  phase: 'interviewing',
  isHeld: false,
  workedMs: 0,
  added: {},
  questions: [],
  answers: new Map(),
  steps: new Map(),
  isPlanApproved: false,
  recovered: [],
  repaired: [],
  steered: new Set(),
  models: new Map(),
  progress: new Map(),
  order: [],
});
