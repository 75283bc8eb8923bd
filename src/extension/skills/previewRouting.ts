/**
 * Implements `Telos: Preview Routing...`: shows which skill a request would run and why. Nothing runs until the person
 * picks one.
 */
import * as vscode from 'vscode';
import type { RunRequest } from '../../engine/run/request.ts';
import type { Agent } from '../../engine/skills/agent.ts';
import type { Telos } from '../../engine/telos.ts';
import { describeRoute, type SkillRef } from '../../protocol/run.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { plainLabel } from '../base/labels.ts';
import { descriptionOf, pickableSkills } from './skillFiles.ts';

interface RoutingItem extends vscode.QuickPickItem {
  /** Missing for a separator. */
  ref?: SkillRef;
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
  if (skill) await chat.submitInstead({ text: request, skill });
}

/** Shows which skills fit a request, and returns the one to run it. `file` is the SKILL.md that the person looks at. */
export async function previewRouting(
  current: CurrentTelos,
  request: string,
  file?: string,
): Promise<SkillRef | undefined> {
  const picked = await vscode.window.showQuickPick(listItems(current, request, file), {
    title: vscode.l10n.t('Skills for “{0}”', plainLabel(request, 60)),
    placeHolder: vscode.l10n.t('Pick one to run the request with it, or press Escape'),
    matchOnDescription: true,
    matchOnDetail: true,
  });
  return picked?.ref;
}

async function askRequest(): Promise<string | undefined> {
  return vscode.window.showInputBox({
    title: vscode.l10n.t('Preview Routing'),
    prompt: vscode.l10n.t('A request, as you would say it in the chat. Nothing runs.'),
    placeHolder: vscode.l10n.t('sum up my week'),
    validateInput: text => (text.trim() ? undefined : vscode.l10n.t('Say a few words.')),
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
    const facts = [agent.name, vscode.l10n.t('{0}. with score {1}', index + 1, score.toFixed(2))];
    if (skill.file === file) facts.push(vscode.l10n.t('this skill'));
    return {
      label: plainLabel(skill.id),
      description: plainLabel(facts.join(' · ')),
      detail: plainLabel(`${words.slice(0, 3).join(', ')} — ${descriptionOf(skill)}`),
      ref: { agent: agent.name, skill: skill.id },
    };
  });
  const shown = new Set(ranking.map(({ skill }) => skill.file));
  const rest = await restItems(agents, shown, file);
  const ranks =
    ranked.length > 0 ? vscode.l10n.t('By its words') : vscode.l10n.t('No skill has a word of it');
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
  if (!result.skill) return { notice: notice || vscode.l10n.t('None would run unasked') };
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
  }));
}

const separator = (label: string): RoutingItem => ({ label, kind: vscode.QuickPickItemKind.Separator });
