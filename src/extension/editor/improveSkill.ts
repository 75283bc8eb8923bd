/** Implements *Improve This Skill...*: a model proposes an edit, the evals run before and after, and the person keeps or drops it. */

import { TaughtLines } from '@telos/engine/routing';
import { discoverAgents } from '@telos/engine/skills';
import { Telos } from '@telos/engine/telos';
import {
  copyProposed,
  type Defect,
  knownBefore,
  type Proposal,
  type ProposedSkill,
  proposalCost,
  proposalRequest,
  propose,
  routingDefect,
  type Tried,
  tryEvals,
  tryTriggers,
} from '@telos/evals/proposals';
import {
  type EvalModel,
  expectedCost,
  judgeBeside,
  plannedRuns,
  problemsOf,
  readEvals,
} from '@telos/evals/suite';
import type { TriggerOptions } from '@telos/evals/triggers';
import { roughCost } from '@telos/protocol/usage';
import * as vscode from 'vscode';
import { acknowledge, complain } from '../base/acknowledge.ts';
import { askText } from '../base/askText.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { inProgress } from '../base/inProgress.ts';
import { describeError, plainLabel, t } from '../base/labels.ts';
import { subjectOf } from './evalTestRuns.ts';
import type { Shown } from './improveCase.ts';
import { offer, showProposal } from './proposedEdit.ts';

/** `given` is a run of the view *Runs*, a run of the chat, or an item of the Testing view. Without one, the person chooses a run. */
export async function improveSkill(current: CurrentTelos, given: unknown): Promise<void> {
  try {
    const telos = await current.openTelos();
    // Before the first question: without a model, what is answered would lead nowhere.
    const model: EvalModel | undefined = await telos.asideModel();
    if (!model) {
      acknowledge(t('A recording answers instead of a model, so nothing can be proposed.'), {
        title: t('Choose Model...'),
        act: () => vscode.commands.executeCommand('telos.chooseModel'),
      });
      return;
    }
    const shown = await whatFailed(telos, given);
    if (shown) await improve(current, telos, model, shown);
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError') return;
    if (error instanceof vscode.CancellationError) return;
    complain(plainLabel(describeError(error), 500));
  }
}

async function whatFailed(telos: Telos, given: unknown): Promise<Shown | undefined> {
  const subject = isItem(given) ? subjectOf(given) : undefined;
  if (subject) {
    const { eval: evaluated, failed } = subject;
    const one = currentSkill(telos, subject);
    if (!evaluated) return { one };
    const problems = failed ? problemsOf(failed) : [];
    const said =
      problems.length > 0
        ? problems.join('\n')
        : await askText({
            title: t('What Was Wrong with the Result of {0}?', plainLabel(one.skill.id, 60)),
            prompt: t('Say what it did, and what it should do instead.'),
          });
    if (!said?.trim()) return undefined;
    const { prompt: request, expectations: expected } = evaluated;
    const transcript = failed?.transcript ?? '';
    return { one, defect: { part: 'body', said, request, expected, transcript } };
  }
  const { askAboutRun, chooseRun } = await import('./improveCase.ts');
  const runId = runIn(given) ?? (await chooseRun(telos));
  return runId === undefined ? undefined : askAboutRun(runId, telos, discoverAgents(telos.config));
}

const isItem = (given: unknown): given is vscode.TestItem =>
  typeof given === 'object' && given !== null && 'children' in given && 'busy' in given;

function runIn(given: unknown): string | undefined {
  const { runId } = (given ?? {}) as { runId?: unknown };
  return typeof runId === 'string' ? runId : undefined;
}

/** Returns the skill as it is now: the item may have been listed before an edit. */
function currentSkill({ config }: Telos, { agent, skill }: Shown['one']): Shown['one'] {
  const now = discoverAgents(config).find(({ name }) => name === agent.name);
  const same = now?.skills.find(({ file }) => file === skill.file);
  return now && same ? { agent: now, skill: same } : { agent, skill };
}

async function improve(current: CurrentTelos, telos: Telos, model: EvalModel, shown: Shown): Promise<void> {
  const { config } = telos;
  const one = currentSkill(telos, shown.one);
  const taught = new TaughtLines(config.dataDir);
  const routing: TriggerOptions = { mode: 'local', provider: async () => undefined, taught };
  const defect =
    shown.defect ?? (await routingDefect(one, discoverAgents(config), routing, AbortSignal.timeout(60_000)));
  if (!defect) {
    acknowledge(t('All requests of {0} pass already.', plainLabel(one.skill.id, 60)));
    return;
  }
  const proposal = await ask(one, defect, model);
  if (!proposal) return;
  const copy = await copyProposed(one, proposal);
  let isShown = false;
  try {
    const uri = await showProposal(current, one, proposal, copy);
    isShown = true;
    const agents = discoverAgents(config);
    const requests = await tryTriggers(one, copy.one, agents, routing, AbortSignal.timeout(60_000));
    const evals = await runBoth(telos, one, copy, model).catch(error => {
      complain(plainLabel(describeError(error), 500));
      return [];
    });
    offer(uri, [...requests, ...evals]);
  } finally {
    if (!isShown) await copy.remove();
  }
}

/** Asks the model after a yes to the price. Undefined after a no. */
async function ask(one: Shown['one'], defect: Defect, model: EvalModel): Promise<Proposal | undefined> {
  const request = proposalRequest(one.skill, defect);
  const { cost, tokens } = proposalCost(request, model);
  const name = plainLabel(model.provider.model, 60);
  const skill = plainLabel(one.skill.id, 60);
  const question =
    defect.part === 'description'
      ? t('Ask {0} for a better description of {1}?', name, skill)
      : t('Ask {0} for a better text of {1}?', name, skill);
  const yes = t('Ask');
  const detail = t(
    'It costs {0}. You see the proposal as a diff, and nothing is written before you keep it.',
    priceText(cost, tokens),
  );
  const answer = await vscode.window.showInformationMessage(question, { modal: true, detail }, yes);
  if (answer !== yes) return undefined;
  return inProgress(t('{0} is writing a proposal', name), signal =>
    propose(one.skill, defect, request, model, signal),
  );
}

const priceText = (cost: number | 'unknown', tokens: number): string =>
  cost === 'unknown'
    ? t('about {0} tokens', tokens.toLocaleString(vscode.env.language))
    : roughCost(cost, vscode.l10n.t);

/** Runs the evals with both texts after a yes to the price: what is recorded of the text as it is plays without a model. */
async function runBoth(
  telos: Telos,
  one: Shown['one'],
  copy: ProposedSkill,
  model: EvalModel,
): Promise<Tried[]> {
  const evals = readEvals(one.skill.dir) ?? [];
  if (evals.length === 0) return [];
  const parts = { config: telos.config, open: Telos.open.bind(Telos) };
  const known = await knownBefore(one, evals, parts, AbortSignal.timeout(120_000));
  const options = { models: [model], runs: 1 };
  const open = { one, evals: evals.filter(each => !known.has(each)) };
  const suites = [open, { one, evals }];
  const runs = plannedRuns(suites, { ...options, withBaseline: false });
  const cost = expectedCost(runs, [{ one, evals }]);
  const yes = t('Run Evals');
  const name = plainLabel(model.provider.model, 60);
  const detail = [
    t(
      'Before: {0} from recordings, {1} with the model. With the proposal: {2}.',
      known.size,
      open.evals.length,
      evals.length,
    ),
    cost === 'unknown'
      ? t('What it costs is not known.')
      : t('It costs {0}.', roughCost(cost, vscode.l10n.t)),
    t('Commands run only with approved permissions, as in any eval. Without this, only requests are tried.'),
  ].join('\n');
  const question = t('Run the evals of {0} with {1} before and after?', plainLabel(one.skill.id, 60), name);
  const answer = await vscode.window.showInformationMessage(question, { modal: true, detail }, yes);
  if (answer !== yes) return [];
  const judge = await telos.asideModel(judgeBeside([model]));
  return inProgress(t('The evals of {0} are running', plainLabel(one.skill.id, 60)), signal =>
    tryEvals(one, copy.one, evals, known, { ...options, judge, maxCost: undefined }, parts, signal),
  );
}
