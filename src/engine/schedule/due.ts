/** Runs what is due: takes up a time once, no matter how many call, runs its request with no one there, and keeps how it ended. */
import { statSync } from 'node:fs';
import type { AgentCard } from '@telos/protocol/agentCard';
import {
  type ApprovalRequest,
  innermost,
  type RunEvent,
  type RunOutcome,
  type SkillRef,
} from '@telos/protocol/run';
import { beginningOf } from '@telos/protocol/text';
import { reasonOf } from '../core/errors.ts';
import type { Human } from '../core/ports.ts';
import { isOwnerRunning, ownerHere } from '../files/liveProcess.ts';
import { denyAll } from '../human.ts';
import { nextTime, parseRule, type Rule } from './rule.ts';
import type { LastTime, Schedule, Schedules } from './schedules.ts';

/** The part of an open Telos that a schedule needs. */
export interface ScheduleEngine {
  agents(): Promise<readonly { name: string; skills: readonly { id: string }[] }[]>;
  agentCard(name: string): Promise<Pick<AgentCard, 'digest' | 'state'>>;
  run(
    request: { text: string; skill: SkillRef; origin: 'schedule'; traceParent?: string },
    human: Human,
    signal: AbortSignal,
  ): AsyncIterable<RunEvent>;
  /** See `Telos.inWorkflow`. Missing in an engine that writes no traces. */
  inWorkflow?<Result>(
    name: string,
    work: (traceParent: string | undefined) => Promise<Result>,
    outcomeOf: (result: Result) => string | undefined,
  ): Promise<Result>;
}

export interface DueParts {
  schedules: Schedules;
  /** Opens the engine in the schedule's folder, with its limits. */
  open: (schedule: Schedule) => ScheduleEngine;
  signal: AbortSignal;
  now?: () => Date;
  /** Receives each event of the run. */
  note?: (event: RunEvent) => void;
}

/** In milliseconds. What begins later than this was missed: the machine was off or asleep. */
const missedAfter = 10 * 60_000;
/** A schedule pauses itself after this many times in a row that did not end well. */
const mostFailures = 3;

/** In milliseconds. A clock that was set back by less has the schedule wait that long. */
const smallestSetBack = 5_000;
/** In milliseconds. A time that has come since then is due, where no one knows what was taken up. */
const justNow = 2 * 60_000;

const hour = 3_600_000;
/** Looked through in this order for the latest time that has come, so that a rule of every minute is quick after a year too. */
const windows = [hour, 24 * hour, 31 * 24 * hour, 366 * 24 * hour];

/** Returns the latest time that has come and was not taken up yet, or undefined if there is none. */
export function dueTime({ at, since, last, isPaused }: Schedule, now: Date): Date | undefined {
  if (isPaused) return undefined;
  const rule = parseRule(at);
  const most = now.getTime() + smallestSetBack;
  const [begun, taken] = [Date.parse(since), last ? Date.parse(last.dueAt) : undefined];
  // What lies ahead was noted by a clock that has been set back since, and must not stop the schedule until then.
  const marks = (taken !== undefined && taken > most ? [] : [begun, taken ?? begun]).filter(
    mark => mark <= most,
  );
  const from = Math.max(now.getTime() - (marks.length > 0 ? Number.POSITIVE_INFINITY : justNow), ...marks);
  for (const length of windows) {
    const start = Math.max(from, now.getTime() - length);
    const found = latestBetween(rule, new Date(start), now);
    if (found || start === from) return found;
  }
  return latestBetween(rule, new Date(from), now);
}

function latestBetween(rule: Rule, from: Date, to: Date): Date | undefined {
  let found: Date | undefined;
  for (let next = nextTime(rule, from); next && next <= to; next = nextTime(rule, next)) found = next;
  return found;
}

/** True while a process works on it. */
export const isRunning = ({ last }: Schedule): boolean =>
  last !== undefined && last.endedAt === undefined && isOwnerRunning(last);

/**
 * Runs the schedule if one of its times has come, or in any case if `isByHand`. The time is kept as taken up before anything runs,
 * so a run that is killed is not repeated. Returns the schedule as it is then, or undefined if nothing was to do. One that was removed
 * while it ran keeps nothing. Throws the errors of `Schedules.get`.
 */
export async function runIfDue(
  id: string,
  isByHand: boolean,
  parts: DueParts,
): Promise<Schedule | undefined> {
  const { schedules, now = () => new Date() } = parts;
  let taken: LastTime | undefined;
  const claimed = await schedules.change(id, schedule => {
    const before = withInterrupted(schedule);
    if (isRunning(before)) return undefined;
    const dueAt = isByHand ? now() : dueTime(before, now());
    if (!dueAt) return before === schedule ? undefined : before;
    const startedAt = now().toISOString();
    const isMissed = !isByHand && now().getTime() - dueAt.getTime() > missedAfter;
    taken = { dueAt: dueAt.toISOString(), startedAt, pid: process.pid, owner: ownerHere() };
    if (isMissed && schedule.missed === 'skip') taken = { ...taken, endedAt: startedAt, outcome: 'skipped' };
    return { ...before, last: taken };
  });
  if (!taken) return undefined;
  if (taken.outcome === 'skipped') return claimed;
  const ended = await carryOut(claimed, parts);
  const last = { ...taken, ...ended, endedAt: now().toISOString() };
  try {
    // Another one may have its name by now.
    return await schedules.change(id, schedule =>
      schedule.last?.startedAt === last.startedAt ? withEnd(schedule, last) : undefined,
    );
  } catch (error) {
    if (schedules.find(id)) throw error;
    return withEnd(claimed, last);
  }
}

/** A run whose process is gone ended without a word. */
function withInterrupted(schedule: Schedule): Schedule {
  const { last } = schedule;
  if (!last || last.endedAt !== undefined || isRunning(schedule)) return schedule;
  return withEnd(schedule, { ...last, endedAt: last.startedAt, outcome: 'interrupted' });
}

function withEnd(schedule: Schedule, last: LastTime): Schedule {
  const failures = last.outcome === 'completed' ? 0 : schedule.failures + 1;
  if (failures < mostFailures || schedule.isPaused) return { ...schedule, last, failures };
  return { ...schedule, last, failures, isPaused: true, hasGivenUp: true };
}

type Ended = Pick<LastTime, 'runId' | 'outcome' | 'obstacle' | 'message' | 'needs'>;

async function carryOut(schedule: Schedule, parts: DueParts): Promise<Ended> {
  try {
    const engine = parts.open(schedule);
    const work = async (traceParent: string | undefined): Promise<Ended> => {
      const obstacle = await obstacleOf(schedule, engine);
      return obstacle ? { outcome: 'blocked', obstacle } : runAway(schedule, engine, parts, traceParent);
    };
    const name = `schedule ${schedule.id}`;
    return await (engine.inWorkflow?.(name, work, ({ outcome }) => outcome) ?? work(undefined));
  } catch (error) {
    return { outcome: 'failed', message: reasonOf(error) };
  }
}

/** Returns why nothing may run. */
async function obstacleOf(
  { cwd, skill, digest }: Schedule,
  engine: ScheduleEngine,
): Promise<LastTime['obstacle']> {
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) return 'folder';
  const agent = (await engine.agents()).find(each => each.name === skill.agent);
  if (!agent?.skills.some(each => each.id === skill.skill)) return 'skill';
  const card = await engine.agentCard(skill.agent);
  return card.digest === digest || card.state === 'reviewed' ? undefined : 'changed';
}

async function runAway(
  { request, skill }: Schedule,
  engine: ScheduleEngine,
  { signal, note }: DueParts,
  traceParent: string | undefined,
): Promise<Ended> {
  const needs = new Needs();
  let [runId, message]: (string | undefined)[] = [];
  let outcome: RunOutcome = 'failed';
  const asked = { text: request, skill, origin: 'schedule' as const, ...(traceParent && { traceParent }) };
  for await (const event of engine.run(asked, awayHuman(needs), signal)) {
    needs.add(innermost(event));
    if (event.type === 'run_start') ({ runId } = event);
    if (event.type === 'run_end')
      ({ outcome, message } = { outcome: event.outcome, message: event.error?.message });
    note?.(event);
  }
  return {
    outcome,
    ...(runId !== undefined && { runId }),
    ...(message !== undefined && { message }),
    ...(needs.said.length > 0 && { needs: needs.said.slice(0, mostNeeds) }),
  };
}

const mostNeeds = 20;
/** In characters. */
const longestNeed = 300;

/** What a run has asked while no one answered, as its events say: a messenger may have reached the person. */
class Needs {
  readonly said: string[] = [];
  readonly #asked = new Map<string, ApprovalRequest>();

  add(event: RunEvent): void {
    if (event.type === 'approval_request') this.#asked.set(event.request.callId, event.request);
    if (event.type !== 'approval_response' || event.decision.allow || !event.decision.isAway) return;
    const request = this.#asked.get(event.callId);
    if (request) this.note(needOf(request));
  }

  note(text: string): void {
    const said = text.length > longestNeed ? `${beginningOf(text, longestNeed)}…` : text;
    if (!this.said.includes(said)) this.said.push(said);
  }
}

/** Denies each question, which the person finds in the schedule afterwards. The model reads that it may go on without. */
const awayHuman = (needs: Needs): Human => ({
  ...denyAll,
  approve: async request => ({
    allow: false,
    isAway: true,
    reason: `No one is there to be asked (rule ${request.rule}). The question was kept for the user. Do what works without it, and say at the end what is left.`,
  }),
  ask: async questions => {
    for (const question of questions) needs.note(question);
    return questions.map(() => '');
  },
});

const needOf = ({ tool, subject, choices }: ApprovalRequest): string =>
  choices ? subject : `${tool}: ${subject}`;
