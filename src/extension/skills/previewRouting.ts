/**
 * Implements `Telos: Preview Routing...`: shows which skill a request would run and why. Nothing runs until the person
 * picks one.
 */

import type { RunRequest } from '@telos/engine/run';
import type { Agent, Skill } from '@telos/engine/skills';
import type { Telos } from '@telos/engine/telos';
import { describeRoute } from '@telos/protocol/describe';
import type { SkillRef } from '@telos/protocol/run';
import * as vscode from 'vscode';
import { askText } from '../base/askText.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { plainLabel } from '../base/labels.ts';
import { descriptionOf, pickableSkills } from './skillFiles.ts';

interface RoutingItem extends vscode.QuickPickItem {
  /** Missing for a separator. */
  ref?: SkillRef;
  /** The skill whose requests the item's button shows. */
  skill?: Skill;
}

/** Implements the command. It takes the request, if that is known already, and the SKILL.md that the person looks at. */
export async function askAndPreview(
  current: CurrentTelos,
  chat: { submitInstead(request: RunRequest): Promise<void> },
  text?: unknown,
  file?: unknown,
): Promise<void> {
  const request = typeof text === 'string' && text.trim() ? text : await askRequest();
  if (!request) return;
  const skill = await previewRouting(current, request, typeof file === 'string' ? file : undefined);
  if (skill) await chat.submitInstead({ text: request, skill, isChoice: true });
}

/** Shows which skills fit a request, and returns the one to run it. `file` is the SKILL.md that the person looks at. */
export async function previewRouting(
  current: CurrentTelos,
  request: string,
  file?: string,
): Promise<SkillRef | undefined> {
  for (;;) {
    const picked = await showPreview(current, request, file);
    if (!picked?.edits) return picked?.ref;
    const { editRequests } = await import('./teachSkills.ts');
    await editRequests(current, picked.edits);
  }
}

/** Returns the item that the person picked, with `edits` if its requests are to be shown. Undefined after Escape. */
async function showPreview(
  current: CurrentTelos,
  request: string,
  file: string | undefined,
): Promise<{ ref?: SkillRef; edits?: Skill } | undefined> {
  const pick = vscode.window.createQuickPick<RoutingItem>();
  pick.title = vscode.l10n.t('Skills for “{0}”', plainLabel(request, 60));
  pick.placeholder = vscode.l10n.t('Pick one to run the request with it, or press Escape');
  pick.matchOnDescription = true;
  pick.matchOnDetail = true;
  pick.busy = true;
  try {
    return await new Promise((resolve, reject) => {
      pick.onDidAccept(() => {
        const ref = pick.selectedItems[0]?.ref;
        if (ref) resolve({ ref });
      });
      pick.onDidTriggerItemButton(({ item }) => item.skill && resolve({ edits: item.skill }));
      pick.onDidHide(() => resolve(undefined));
      pick.show();
      listItems(current, request, file).then(items => {
        pick.items = items;
        pick.busy = false;
      }, reject);
    });
  } finally {
    pick.dispose();
  }
}

/** The button that shows and edits the requests of a skill. */
const editing = (): vscode.QuickInputButton => ({
  iconPath: new vscode.ThemeIcon('edit'),
  tooltip: vscode.l10n.t('Requests That Mean This Skill'),
});

async function askRequest(): Promise<string | undefined> {
  return askText({
    title: vscode.l10n.t('Preview Routing'),
    prompt: vscode.l10n.t('Enter a request as you would in the chat. Nothing runs.'),
    placeHolder: vscode.l10n.t('sum up my week'),
    validateInput: text => (text.trim() ? undefined : vscode.l10n.t('Enter a few words.')),
  });
}

/** Returns the skill that would run, then the ranking, then all others. */
async function listItems(
  current: CurrentTelos,
  text: string,
  file: string | undefined,
): Promise<RoutingItem[]> {
  const telos = await current.openTelos();
  const [decided, ranking, agents] = await Promise.all([
    decide(telos, text),
    telos.ranking({ text }),
    telos.agents(),
  ]);
  const ranked = ranking.map(({ agent, skill, score, words }, index): RoutingItem => {
    const facts = [agent.name, vscode.l10n.t('#{0}, score {1}', index + 1, score.toFixed(2))];
    if (skill.file === file) facts.push(vscode.l10n.t('this skill'));
    const taught = telos.teaching.linesOf(skill).length;
    if (taught === 1) facts.push(vscode.l10n.t('one written request'));
    if (taught > 1) facts.push(vscode.l10n.t('{0} written requests', taught));
    return {
      label: plainLabel(skill.id),
      description: plainLabel(facts.join(' · ')),
      detail: plainLabel([words.slice(0, 3).join(', '), descriptionOf(skill)].filter(Boolean).join(' — ')),
      ref: { agent: agent.name, skill: skill.id },
      skill,
      buttons: [editing()],
    };
  });
  const shown = new Set(ranking.map(({ skill }) => skill.file));
  const rest = await restItems(agents, shown, file);
  const ranks =
    ranked.length > 0
      ? vscode.l10n.t('Matching skills, best match first')
      : vscode.l10n.t('No skill matches these words');
  return [
    ...(decided.item ? [separator(vscode.l10n.t('Would run')), decided.item] : []),
    separator([decided.notice, ranks].filter(Boolean).join(' · ')),
    ...ranked,
    ...(rest.length > 0 ? [separator(vscode.l10n.t('All others')), ...rest] : []),
  ];
}

/** Routes the request. `notice` explains the choice: why the model made none, or that nothing would run. */
async function decide(telos: Telos, text: string): Promise<{ item?: RoutingItem; notice: string }> {
  const result = await telos.route({ text }, new AbortController().signal);
  const notice = plainLabel(result.notice ?? '');
  if (!result.skill) return { notice: notice || vscode.l10n.t('None would run without a question') };
  const { agent, skill, reason } = result;
  const { runnerUp } = reason;
  const second =
    runnerUp &&
    (runnerUp.score === undefined
      ? vscode.l10n.t('then {0}', runnerUp.skill)
      : vscode.l10n.t('then {0} with {1}', runnerUp.skill, runnerUp.score.toFixed(2)));
  const facts = [
    agent.name,
    reason.score === undefined ? '' : vscode.l10n.t('score {0}', reason.score.toFixed(2)),
    second,
  ];
  const item: RoutingItem = {
    label: `$(arrow-right) ${plainLabel(skill.id)}`,
    description: plainLabel(facts.filter(Boolean).join(' · ')),
    detail: plainLabel(describeRoute(agent.name, skill.id, reason, vscode.l10n.t)),
    ref: { agent: agent.name, skill: skill.id },
    skill,
    buttons: [editing()],
  };
  return { item, notice };
}

async function restItems(
  agents: readonly Agent[],
  shown: ReadonlySet<string>,
  file: string | undefined,
): Promise<RoutingItem[]> {
  const others = (await pickableSkills(agents)).filter(({ skill }) => !shown.has(skill.file));
  return others.map(({ agent, skill }) => ({
    label: plainLabel(skill.id),
    description: plainLabel(
      skill.file === file ? `${agent.name} · ${vscode.l10n.t('this skill')}` : agent.name,
    ),
    detail: plainLabel(descriptionOf(skill)),
    ref: { agent: agent.name, skill: skill.id },
    skill,
    buttons: [editing()],
  }));
}

const separator = (label: string): RoutingItem => ({ label, kind: vscode.QuickPickItemKind.Separator });
