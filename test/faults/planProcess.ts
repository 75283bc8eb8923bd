/**
 * A runner of a plan in its own process: the engine as it is, with a model that follows a script. `node planProcess.ts ORDER`. Every line
 * of the journal, every call of git, every file of the plan and every turn of the model is a point at which the order may have it
 * killed, once in the life of the plan. Prints what it did as one line of JSON when it ends by itself.
 */
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../src/engine/config.ts';
import type { CompletionRequest, Provider, StreamEvent } from '../../src/engine/core/ports.ts';
import { denyAll } from '../../src/engine/human.ts';
import { Telos } from '../../src/engine/telos.ts';
import { Git } from '../../src/plans/git.ts';
import { Journal } from '../../src/plans/journal.ts';
import { openPlan } from '../../src/plans/plan.ts';
import { PlanFolder } from '../../src/plans/planFolder.ts';
import type { JournalLine, PlanEvent } from '../../src/protocol/plan.ts';
import type { ScriptedAttempt } from './planScript.ts';
import type { PlanOrder, RunnerReport, SentRequest } from './planWorld.ts';

const order: PlanOrder = JSON.parse(process.argv[2] ?? '{}');
const script: Record<string, ScriptedAttempt[]> = JSON.parse(readFileSync(order.script, 'utf8'));

const points: Record<string, number> = {};
/** In milliseconds. */
let journalMs = 0;

/** The points of this plan at which a runner was killed. */
const killedAt = new Set(existsSync(order.killed) ? readFileSync(order.killed, 'utf8').split('\n') : []);
/** How far the plan is: the last line of its journal about a story. */
let place: string | undefined;
let isTakingOver = true;
/** What only reads leaves nothing, so that one kill of each kind says all. */
const reads =
  /^(ask (objects|differences)|git (config|diff|diff-files|for-each-ref|log|ls-files|ls-tree|rev-parse|status|symbolic-ref|version)) /;

function point(name: string): void {
  points[name] = (points[name] ?? 0) + 1;
  if (!order.killAt) return;
  place ??= journalLines().reduce((last, line) => placeOf(line) ?? last, 'the beginning');
  const where = isTakingOver ? 'take-over' : reads.test(name) ? 'anywhere' : place;
  const full = `${where}: ${name}`;
  const lane = createHash('sha1').update(full).digest().readUInt32BE() % order.killAt.lanes;
  if (lane !== order.killAt.lane || killedAt.has(full)) return;
  appendFileSync(order.killed, `${full}\n`);
  process.kill(process.pid, 'SIGKILL');
}

const placeOf = (line: PlanEvent): string | undefined =>
  'story' in line && line.story
    ? `${line.story} ${line.type}${'step' in line ? ` ${line.step}` : ''}`
    : undefined;

/** Has each call of a method pass a point before it begins and one when it is done. */
function watched<Arguments extends unknown[], Result>(
  method: (...args: Arguments) => Promise<Result>,
  nameOf: (...args: Arguments) => string,
): (...args: Arguments) => Promise<Result> {
  return async function (this: unknown, ...args: Arguments) {
    point(`${nameOf(...args)} before`);
    const result = await method.apply(this, args);
    point(`${nameOf(...args)} after`);
    return result;
  };
}

const append = watched(Journal.prototype.append, event => `journal ${event.type}`);
let appending = 0;
let appendingSince = 0;
Journal.prototype.append = async function (event) {
  if (appending++ === 0) appendingSince = performance.now();
  try {
    const appended = await append.call(this, event);
    place = placeOf(event) ?? place;
    if (event.type === 'runner_started') isTakingOver = false;
    return appended;
  } finally {
    // Lines that are written together take their time once.
    if (--appending === 0) journalMs += performance.now() - appendingSince;
  }
};
Git.prototype.run = watched(Git.prototype.run, ([name]) => `git ${name}`);
Git.prototype.ask = watched(Git.prototype.ask, name => `ask ${name}`);
PlanFolder.prototype.write = watched(
  PlanFolder.prototype.write,
  name => `write ${name.replace(/^prds\/.*/, 'prds')}`,
);

if (order.clockBackMs !== undefined) {
  const [now, back] = [Date.now, order.clockBackMs];
  Date.now = () => now() - back;
  const Real = Date;
  globalThis.Date = class extends Real {
    constructor(...args: [] | [number]) {
      super(...((args.length === 0 ? [Real.now()] : args) as [number]));
    }
  } as DateConstructor;
}

const seen: JournalLine[] = [];
let seenBytes = 0;

/** Lines of the journal as they are on the disk. Only what is new is read: a plan has a thousand of them. */
function journalLines(): readonly JournalLine[] {
  const file = join(order.repo, '.telos/plans', order.plan, 'journal.jsonl');
  if (!existsSync(file)) return seen;
  const journal = openSync(file, 'r');
  const bytes = Buffer.alloc(fstatSync(journal).size - seenBytes);
  readSync(journal, bytes, 0, bytes.length, seenBytes);
  closeSync(journal);
  const end = bytes.lastIndexOf(10) + 1;
  for (const line of bytes.toString('utf8', 0, end).split('\n').slice(0, -1)) {
    try {
      seen.push(JSON.parse(line));
    } catch {
      // A line that was torn by a kill.
    }
  }
  seenBytes += end;
  return seen;
}

/** What the script has for the present attempt at a story: one that was cut off had nothing of it. */
function scripted(story: string, lines: readonly JournalLine[]): ScriptedAttempt {
  const list = script[story] ?? [];
  const used = lines.filter(
    line =>
      (line.type === 'attempt_ended' && line.story === story && line.status === 'denied') ||
      (line.type === 'story_passed' && line.story === story),
  );
  const one = list[Math.min(used.length, list.length - 1)];
  if (!one) throw new Error(`there is no script for ${story}`);
  return one;
}

const sent: SentRequest[] = [];
const rss: number[] = [];
let calls = 0;

const provider: Provider = {
  name: 'scripted',
  model: 'script',
  async *streamCompletion(request, signal) {
    signal.throwIfAborted();
    const lines = journalLines();
    const step = lines.findLast(line => line.type === 'step_started' && isOf(line.story, request));
    if (step?.type !== 'step_started') throw new Error('a model was asked before the journal has its step');
    const turn = request.messages.filter(({ role }) => role === 'assistant').length;
    // What an outsider sees of what a model was paid for.
    if (turn === 0) appendFileSync(order.paid, `${step.key}\n`);
    if (turn === 0) rss.push(process.memoryUsage.rss());
    if (order.requests) sent.push(sentOf(step.step, request));
    point(`${step.step} before`);
    yield* answer(step.step, turn, scripted(step.story ?? '', lines));
    point(`${step.step} after`);
  },
};

function* answer(step: string, turn: number, attempt: ScriptedAttempt): Generator<StreamEvent> {
  const call = (name: string, input: Record<string, unknown>): StreamEvent => ({
    type: 'tool_call',
    call: { id: `c${++calls}-${process.pid}`, name, input },
  });
  if (turn > 0) {
    yield { type: 'text', text: 'Done.' };
    yield { type: 'done', stopReason: 'end_turn' };
    return;
  }
  if (step !== 'reviewer')
    for (const [path, content] of Object.entries(attempt.files)) yield call('write_file', { path, content });
  else if (attempt.denied) yield call('deny', { reason: 'No.' });
  else yield call('approve', { summary: 'Fine.', ...(attempt.items && { items: attempt.items }) });
  yield { type: 'done', stopReason: 'tool_use' };
}

const isOf = (story: string | undefined, { messages }: CompletionRequest): boolean =>
  story !== undefined && JSON.stringify(messages[0]).includes(story);

const sentOf = (step: string, { system, tools, messages }: CompletionRequest): SentRequest => ({
  step,
  fixed: JSON.stringify([system, tools]),
  messages: JSON.stringify(messages),
});

const config = loadConfig({ env: process.env, home: process.env['HOME'] ?? '', cwd: order.repo });
const scriptedModel = { model: async () => 'script', create: async () => provider };
const runs = Telos.open({ ...config, provider: 'scripted' }, { providers: { scripted: scriptedModel } });
const plan = openPlan(order.repo, order.plan, { runs, human: denyAll, by: 'cli' });

const began = new Date().toISOString();
const startedAt = performance.now();
const end = await plan.run({ slots: order.slots, unattended: true }, new AbortController().signal);
const ms = performance.now() - startedAt;
const report: RunnerReport = { end, began, ms, journalMs, points, rss };
if (end.kind === 'rest' && end.phase === 'done' && !order.keepSlots) await plan.finish('keep');
if (order.requests) writeFileSync(order.requests, sent.map(one => JSON.stringify(one)).join('\n'));
console.log(JSON.stringify(report));
