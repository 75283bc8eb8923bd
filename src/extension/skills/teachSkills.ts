/** Lets a model write how people ask for skills, shows and edits what it wrote, and forgets what was learned from choices. */

import type { Skill } from '@telos/engine/skills';
import type { Telos } from '@telos/engine/telos';
import { roughCost } from '@telos/protocol/usage';
import * as vscode from 'vscode';
import { acknowledge, complain } from '../base/acknowledge.ts';
import { askText } from '../base/askText.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError, plainLabel } from '../base/labels.ts';

type TeachingPlan = NonNullable<Awaited<ReturnType<Telos['teaching']['plan']>>>;

const neverKey = 'telos.neverOfferTeaching';
/** Time for which the status bar says that the requests are written, in milliseconds. */
/** A window offers it once. */
let isOffered = false;

/**
 * Returns sentences that offer to teach the skills, with the price. Undefined if all are taught, no model can, the window has offered it
 * already, or the person wants no such offers. Never throws.
 */
export async function teachingOffer(
  current: CurrentTelos,
  memory: vscode.Memento,
): Promise<string | undefined> {
  if (isOffered || memory.get<boolean>(neverKey)) return undefined;
  // Without a model there is nothing to offer, and the run has said why.
  const plan = await planOf(current).catch(() => undefined);
  if (!plan || plan.skills.length === 0) return undefined;
  isOffered = true;
  return `${describePlan(plan)} ${vscode.l10n.t('Then Telos finds more of them by itself.')}`;
}

/** Does what the person answers to the offer. */
export async function answerOffer(
  current: CurrentTelos,
  memory: vscode.Memento,
  answer: 'write' | 'never',
): Promise<void> {
  if (answer === 'never') return memory.update(neverKey, true);
  const plan = await planOf(current);
  if (plan) await teach(current, plan);
}

/** Implements `Telos: Teach Telos How You Ask for Skills...`. */
export async function teachSkills(current: CurrentTelos): Promise<void> {
  let plan: TeachingPlan | undefined;
  try {
    plan = await planOf(current);
  } catch (error) {
    complain(plainLabel(describeError(error), 500));
    return;
  }
  if (!plan) {
    acknowledge(vscode.l10n.t('A recording answers instead of a model, so no requests can be written.'), {
      title: vscode.l10n.t('Choose Model...'),
      act: () => vscode.commands.executeCommand('telos.chooseModel'),
    });
    return;
  }
  if (plan.skills.length === 0) {
    acknowledge(vscode.l10n.t('Every skill has its requests already. Preview Routing shows them.'));
    return;
  }
  const write = vscode.l10n.t('Write Them');
  const options = {
    modal: true,
    detail: vscode.l10n.t(
      'They are kept on this machine, never in the skill. Preview Routing shows them, and there you can change them.',
    ),
  };
  if ((await vscode.window.showInformationMessage(describePlan(plan), options, write)) === write)
    await teach(current, plan);
}

const planOf = async (current: CurrentTelos): Promise<TeachingPlan | undefined> =>
  (await current.openTelos()).teaching.plan(vscode.env.language);

function describePlan({ skills, model, cost, tokens, language }: TeachingPlan): string {
  const { l10n } = vscode;
  const count = skills.length;
  // The language's name as the person says it.
  const names = new Intl.DisplayNames([vscode.env.language], { type: 'language' });
  const what = language
    ? l10n.t(
        'A model can write how people ask for your skills, in English and {0}',
        names.of(vscode.env.language) ?? language,
      )
    : l10n.t('A model can write how people ask for your skills');
  const price =
    cost === 'unknown'
      ? l10n.t('about {0} tokens', tokens.toLocaleString(vscode.env.language))
      : roughCost(cost, l10n.t);
  const name = plainLabel(model, 60);
  return count === 1
    ? l10n.t('{0}: {1} with {2} for one skill.', what, price, name)
    : l10n.t('{0}: {1} with {2} for {3} skills.', what, price, name, count);
}

async function teach(current: CurrentTelos, plan: TeachingPlan): Promise<void> {
  const telos = await current.openTelos();
  const problems: string[] = [];
  let done = 0;
  const title = vscode.l10n.t('Writing how people ask for your skills');
  const task = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
  try {
    await vscode.window.withProgress(task, (progress, token) => {
      const stop = new AbortController();
      token.onCancellationRequested(() => stop.abort());
      return telos.teaching.teach(plan, stop.signal, (skill, result) => {
        done++;
        if (typeof result !== 'number') problems.push(`${skill.id}: ${result.message}`);
        const message = vscode.l10n.t('{0} of {1}', done, plan.skills.length);
        progress.report({ message, increment: 100 / plan.skills.length });
      });
    });
  } catch (error) {
    if (done < plan.skills.length && !isAbort(error)) problems.push(describeError(error));
  }
  await current.refresh();
  const taught = plan.skills.filter(({ skill }) => telos.teaching.linesOf(skill).length > 0).length;
  const said = vscode.l10n.t('Skills with written requests: {0} of {1}.', taught, plan.skills.length);
  acknowledge([said, plainLabel(problems.slice(0, 3).join(' · '), 400)].filter(Boolean).join(' '));
}

const isAbort = (error: unknown): boolean => error instanceof Error && error.name === 'AbortError';

interface LineItem extends vscode.QuickPickItem {
  /** Missing for the entry that adds one. */
  line?: string;
}

/** Shows the requests that a skill was taught. The person changes, adds and removes them, until Escape. */
export async function editRequests(current: CurrentTelos, skill: Skill): Promise<void> {
  for (;;) {
    const { teaching } = await current.openTelos();
    const lines = teaching.linesOf(skill);
    const asked = await pickLine(skill, lines);
    if (!asked) return;
    const { line, isRemoved } = asked;
    const changed = isRemoved ? '' : await askLine(skill, line);
    if (changed === undefined) continue;
    const others = lines.filter(other => other !== changed || other === line);
    const next =
      line === undefined ? [changed, ...others] : others.map(other => (other === line ? changed : other));
    await teaching.set(skill, next);
    await current.refresh();
  }
}

/** Returns the request to change, or none to add one. Undefined if the person has finished. */
async function pickLine(
  skill: Skill,
  lines: readonly string[],
): Promise<{ line?: string; isRemoved: boolean } | undefined> {
  const remove = { iconPath: new vscode.ThemeIcon('trash'), tooltip: vscode.l10n.t('Remove') };
  const pick = vscode.window.createQuickPick<LineItem>();
  pick.title = vscode.l10n.t('Requests That Mean {0}', plainLabel(skill.id, 60));
  pick.placeholder =
    lines.length === 0 ? vscode.l10n.t('None yet') : vscode.l10n.t('Pick one to change it, or press Escape');
  pick.items = [
    ...lines.map(line => ({ label: plainLabel(line), line, buttons: [remove] })),
    { label: `$(add) ${vscode.l10n.t('Add a request...')}`, alwaysShow: true },
  ];
  try {
    return await new Promise(resolve => {
      pick.onDidAccept(() => {
        const [item] = pick.selectedItems;
        if (item) resolve({ ...(item.line !== undefined && { line: item.line }), isRemoved: false });
      });
      pick.onDidTriggerItemButton(({ item }) =>
        resolve({ ...(item.line !== undefined && { line: item.line }), isRemoved: true }),
      );
      pick.onDidHide(() => resolve(undefined));
      pick.show();
    });
  } finally {
    pick.dispose();
  }
}

async function askLine(skill: Skill, line: string | undefined): Promise<string | undefined> {
  return askText({
    title: vscode.l10n.t('Requests That Mean {0}', plainLabel(skill.id, 60)),
    prompt: vscode.l10n.t('Enter it as someone who does not know the skill would say it.'),
    ...(line !== undefined && { value: line }),
    validateInput: text => (text.trim() ? undefined : vscode.l10n.t('Enter a few words.')),
  });
}

/** Implements `Telos: Forget Learned Choices...`. */
export async function forgetChoices(current: CurrentTelos): Promise<void> {
  const forget = vscode.l10n.t('Forget');
  const answer = await vscode.window.showWarningMessage(
    vscode.l10n.t('Forget which skills you chose for which words?'),
    { modal: true, detail: vscode.l10n.t('Requests that were written for skills stay.') },
    forget,
  );
  if (answer !== forget) return;
  const count = await (await current.openTelos()).forgetChoices();
  acknowledge(
    count === 0
      ? vscode.l10n.t('Nothing was learned yet.')
      : count === 1
        ? vscode.l10n.t('One choice is forgotten.')
        : vscode.l10n.t('{0} choices are forgotten.', count),
  );
}
