/** Lists the evals and the requests of skills as items of the Testing view, and runs them. */

import { existsSync } from 'node:fs';
import type { Config } from '@telos/engine/config';
import { TaughtLines } from '@telos/engine/routing';
import { discoverAgents } from '@telos/engine/skills';
import { Telos } from '@telos/engine/telos';
import {
  type EvalCase,
  type EvalModel,
  type EvalResult,
  type EvaluatedSkill,
  evalFileOf,
  hasPassed,
  judgeBeside,
  liveSuite,
  localSlots,
  plannedRuns,
  readEvals,
  replaySuite,
  type SkillEvals,
  type StaleReason,
} from '@telos/evals/suite';
import {
  readTriggers,
  runTriggers,
  type Trigger,
  type TriggerResult,
  triggerFileOf,
} from '@telos/evals/triggers';
import type { SkillRef } from '@telos/protocol/run';
import * as vscode from 'vscode';
import { describeError, plainLabel, t } from '../base/labels.ts';
import type { EvalOutcomes, Outcome } from './evalLenses.ts';
import type { WorkersAccess } from './workers.ts';

/** What an item stands for. A skill is the parent of its evals and of its requests. */
type Subject = EvaluatedSkill & { eval?: EvalCase; trigger?: Trigger; failed?: EvalResult };

const subjects = new WeakMap<vscode.TestItem, Subject>();

/** Returns the skill of an item, and its eval with the run that has failed last, if it is one. Undefined for an item of others. */
export const subjectOf = (item: vscode.TestItem): Readonly<Subject> | undefined => subjects.get(item);

/** Replaces the items by the skills that carry evals now. An unreadable file is shown at its skill. */
export async function fillItems(controller: vscode.TestController, config: Config): Promise<void> {
  const items = discoverAgents(config).flatMap(agent =>
    agent.skills
      .filter(({ isDisabled, dir }) => !isDisabled && [evalFileOf(dir), triggerFileOf(dir)].some(existsSync))
      .map(skill => skillItem(controller, { agent, skill })),
  );
  controller.items.replace(items);
}

function skillItem(controller: vscode.TestController, one: EvaluatedSkill): vscode.TestItem {
  const { agent, skill } = one;
  const id = `${agent.name}:${skill.id}`;
  const item = controller.createTestItem(id, plainLabel(skill.id), vscode.Uri.file(skill.file));
  item.description = plainLabel(agent.name);
  subjects.set(item, one);
  try {
    for (const each of readEvals(skill.dir) ?? []) {
      const label = plainLabel(each.name ?? each.prompt);
      addChild(item, controller, `eval ${each.id}`, label, evalFileOf(skill.dir), { ...one, eval: each });
    }
    for (const each of readTriggers(skill.dir) ?? []) {
      const label = plainLabel(each.query);
      addChild(item, controller, `request ${each.query}`, label, triggerFileOf(skill.dir), {
        ...one,
        trigger: each,
      });
    }
  } catch (error) {
    item.error = describeError(error);
  }
  return item;
}

function addChild(
  parent: vscode.TestItem,
  controller: vscode.TestController,
  id: string,
  label: string,
  file: string,
  subject: Subject,
): void {
  const child = controller.createTestItem(`${parent.id} ${id}`, label, vscode.Uri.file(file));
  const line = subject.eval?.line ?? subject.trigger?.line ?? 1;
  child.range = new vscode.Range(line - 1, 0, line - 1, 0);
  child.description = subject.eval ? t('eval') : t('request');
  subjects.set(child, subject);
  parent.children.add(child);
}

/** Whether recordings are played, or the model that is set is asked: here, with the recordings kept, or on workers. */
export type EvalHow = 'play' | 'record' | 'workers';

export interface ItemsRun {
  controller: vscode.TestController;
  telos: Telos;
  request: vscode.TestRunRequest;
  /** Requests are measured only where recordings are played. */
  how: EvalHow;
  /** How to reach the workers, for runs there. */
  workers?: WorkersAccess;
  /** Gets what each item has come to. */
  outcomes: EvalOutcomes;
}

/** Runs the items of a request, and reports each. Throws errors of the engine that no item can be blamed for. */
export async function runItems(
  { controller, telos, request, how, workers, outcomes }: ItemsRun,
  token: vscode.CancellationToken,
): Promise<void> {
  const wanted = leavesOf(controller, request);
  const stop = new AbortController();
  const cancelling = token.onCancellationRequested(() => stop.abort(new vscode.CancellationError()));
  const run = noted(controller.createTestRun(request), outcomes);
  // The button that stops is one of the run, no matter who started it.
  const stopping = run.token.onCancellationRequested(() => stop.abort(new vscode.CancellationError()));
  try {
    for (const [parent, items] of bySkill(wanted)) {
      const one = subjects.get(parent);
      if (!one) continue;
      if (parent.error !== undefined) {
        run.errored(parent, new vscode.TestMessage(parent.error));
        continue;
      }
      const evals = items.filter(item => subjects.get(item)?.eval);
      const requests = items.filter(item => subjects.get(item)?.trigger);
      for (const item of how === 'play' ? items : evals) run.started(item);
      if (how === 'play' && requests.length > 0) await measure(run, one, requests, telos.config, stop.signal);
      if (evals.length > 0)
        await runEvals(run, one, evals, { telos, how, ...(workers && { workers }) }, stop.signal);
    }
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    cancelling.dispose();
    stopping.dispose();
    run.end();
  }
}

/** Returns the run, which tells what its items have come to. */
function noted(run: vscode.TestRun, outcomes: EvalOutcomes): vscode.TestRun {
  const note = (item: vscode.TestItem, outcome: Outcome): void => {
    const one = subjects.get(item);
    if (one) outcomes.note(one.skill.file, item.id, outcome);
  };
  const { passed, failed, errored } = run;
  return Object.assign(run, {
    passed(item: vscode.TestItem, ms?: number) {
      passed.call(run, item, ms);
      note(item, 'passed');
    },
    failed(...given: Parameters<vscode.TestRun['failed']>) {
      failed.apply(run, given);
      note(given[0], 'failed');
    },
    errored(...given: Parameters<vscode.TestRun['errored']>) {
      errored.apply(run, given);
      note(given[0], 'unknown');
    },
  });
}

/** Returns the evals and requests that are asked for. */
function leavesOf(
  controller: vscode.TestController,
  { include, exclude = [] }: vscode.TestRunRequest,
): vscode.TestItem[] {
  const found = new Set<vscode.TestItem>();
  const visit = (item: vscode.TestItem): void => {
    if (exclude.includes(item)) return;
    if (item.children.size === 0) found.add(item);
    for (const [, child] of item.children) visit(child);
  };
  if (include) for (const item of include) visit(item);
  else for (const [, item] of controller.items) visit(item);
  return [...found];
}

function bySkill(items: readonly vscode.TestItem[]): Map<vscode.TestItem, vscode.TestItem[]> {
  const groups = new Map<vscode.TestItem, vscode.TestItem[]>();
  for (const item of items) {
    const parent = item.parent ?? item;
    groups.set(parent, [...(groups.get(parent) ?? []), item]);
  }
  return groups;
}

/** Measures requests among all skills, without a model. */
async function measure(
  run: vscode.TestRun,
  one: EvaluatedSkill,
  items: readonly vscode.TestItem[],
  config: Config,
  signal: AbortSignal,
): Promise<void> {
  const triggers = items.flatMap(item => subjects.get(item)?.trigger ?? []);
  const all = discoverAgents(config);
  // The index leaves out the requests of this very skill, or each would find itself.
  const agent = all.find(({ name }) => name === one.agent.name);
  const skill = agent?.skills.find(({ file }) => file === one.skill.file);
  if (!agent || !skill) {
    for (const item of items) run.skipped(item);
    return;
  }
  const settings = {
    mode: 'local',
    provider: async () => undefined,
    taught: new TaughtLines(config.dataDir),
  } as const;
  for await (const { results, msPerRequest } of runTriggers(
    [{ agent, skill, triggers }],
    () => all,
    settings,
    signal,
  ))
    for (const [index, result] of results.entries()) {
      const item = items[index];
      if (!item) continue;
      if (result.passed) run.passed(item, msPerRequest);
      else run.failed(item, messageAt(item, triggerText(result)), msPerRequest);
    }
}

/** Returns what a request did instead. */
function triggerText({ ran, offered, lead }: TriggerResult): string {
  const name = ({ agent, skill }: SkillRef): string => plainLabel(`${skill} (${agent})`);
  const did = ran ? t('It runs {0}.', name(ran)) : t('It runs no skill.');
  const offers = offered.length > 0 ? [t('It offers {0}.', offered.map(name).join(', '))] : [];
  const words =
    lead && lead.words.length > 0 ? [t('Only {0} has: {1}', name(lead.skill), lead.words.join(', '))] : [];
  return [did, ...offers, ...words].join('\n');
}

async function runEvals(
  run: vscode.TestRun,
  one: EvaluatedSkill,
  items: readonly vscode.TestItem[],
  { telos, how, workers }: Pick<ItemsRun, 'telos' | 'how' | 'workers'>,
  signal: AbortSignal,
): Promise<void> {
  const evals = items.flatMap(item => subjects.get(item)?.eval ?? []);
  const suite: SkillEvals[] = [{ one, evals }];
  const slots = localSlots({ config: telos.config, open: Telos.open.bind(Telos) });
  const say = (line: string): void => run.appendOutput(`${plainLabel(line, 1_000)}\r\n`);
  const running =
    how === 'record'
      ? await recorded(suite, telos, slots, signal)
      : workers
        ? (await import('./evalWorkers.ts')).runOnWorkers(suite, telos, workers, say, signal)
        : replaySuite(suite, slots, signal);
  if (!running) {
    for (const item of items) run.skipped(item);
    return;
  }
  const results = new Map<EvalCase, EvalResult[]>();
  for await (const result of running) {
    // Without the skill, nothing need pass.
    if (result.configuration !== 'with_skill') continue;
    results.set(result.eval, [...(results.get(result.eval) ?? []), result]);
    if (result.worker !== undefined) say(workerLine(result));
  }
  for (const item of items) {
    const known = subjects.get(item)?.eval;
    const own = (known && results.get(known)) ?? [];
    const worker = own.at(-1)?.worker;
    item.description = worker === undefined ? t('eval') : t('eval on {0}', plainLabel(worker));
    report(run, item, own);
  }
}

/** Returns what became of a run, and on which worker. */
function workerLine(result: EvalResult): string {
  const { eval: each, status, worker = '' } = result;
  const what = each.name ?? each.prompt;
  if (status === 'unfinished') return t('{0}: did not end on {1}', what, worker);
  return hasPassed(result) ? t('{0}: passed on {1}', what, worker) : t('{0}: failed on {1}', what, worker);
}

/** Returns the runs with the person's model, after a yes to what they cost. Undefined after a no. Throws if no model is set. */
async function recorded(
  suite: readonly SkillEvals[],
  telos: Telos,
  slots: Parameters<typeof liveSuite>[2],
  signal: AbortSignal,
): Promise<AsyncGenerator<EvalResult> | undefined> {
  const model: EvalModel | undefined = await telos.asideModel();
  if (!model) throw new Error(t('Set up a model first. A recording cannot run evals.'));
  const judge = await telos.asideModel(judgeBeside([model]));
  const options = { models: [model], judge, runs: 1, withBaseline: false, maxCost: undefined, keeps: true };
  const runs = plannedRuns(suite, options).length;
  const yes = t('Run and Record');
  const question =
    runs === 1
      ? t('Run 1 eval with {0} and keep the recording?', model.provider.model)
      : t('Run {0} evals with {1} and keep the recordings?', runs, model.provider.model);
  const detail = t('This asks the model, which may cost something. The budget of the settings applies.');
  const answer = await vscode.window.showInformationMessage(question, { modal: true, detail }, yes);
  return answer === yes ? liveSuite(suite, options, slots, signal) : undefined;
}

function report(run: vscode.TestRun, item: vscode.TestItem, results: readonly EvalResult[]): void {
  const failed = results.find(result => result.status === 'graded' && !hasPassed(result));
  const { failed: _before, ...known } = subjects.get(item) ?? {};
  if ('agent' in known) subjects.set(item, { ...known, ...(failed && { failed }) });
  const ms = results.reduce((sum, { durationMs }) => sum + durationMs, 0);
  if (results.length === 0) run.skipped(item);
  if (results.every(hasPassed)) {
    if (results.length > 0) run.passed(item, ms);
    return;
  }
  const messages = results.filter(result => !hasPassed(result)).flatMap(result => problemTexts(result));
  const said = messages.map(text => messageAt(item, text));
  // What is stale or did not end says nothing about the skill.
  if (results.some(({ status }) => status === 'graded')) run.failed(item, said, ms);
  else run.errored(item, said);
}

function problemTexts({ status, stale, error, outcome, graded, denials }: EvalResult): string[] {
  if (stale) return [`${staleTexts[stale.reason]()} ${t('Run and record it again.')}`];
  if (status === 'unfinished') return [t('It did not end: {0}', error?.message ?? outcome)];
  return [
    ...graded
      .filter(({ passed }) => passed !== true)
      .map(({ text, passed, evidence }) =>
        passed === false ? t('Not met: {0}\n{1}', text, evidence) : t('Not graded: {0}\n{1}', text, evidence),
      ),
    ...denials.map(({ tool, rule }) => t('{0} was refused by the rule {1}.', tool, rule)),
  ];
}

const staleTexts: Readonly<Record<StaleReason, () => string>> = {
  none: () => t('Nothing is recorded yet.'),
  format: () => t('The recording has an older format.'),
  inputs: () => t('The request or the files of the eval have changed since it was recorded.'),
  skill: () => t('The files of the skill have changed since it was recorded.'),
  turns: () => t('The run takes more or fewer turns than the recording.'),
  judge: () => t('What the judge is asked has changed since it was recorded.'),
  instructions: () => t('What Telos tells the model has changed since it was recorded.'),
  tools: () => t('The list of tools has changed since it was recorded.'),
  request: () => t('The text of the skill or the request has changed since it was recorded.'),
  results: () => t('A tool returned something different from the recording.'),
  limits: () => t('The limit of an answer has changed since it was recorded.'),
};

function messageAt(item: vscode.TestItem, text: string): vscode.TestMessage {
  const message = new vscode.TestMessage(text);
  if (item.uri && item.range) message.location = new vscode.Location(item.uri, item.range);
  return message;
}
