/** The list from which a person picks the skill of their next request. */
import * as vscode from 'vscode';
import type { Telos } from '../engine/telos.ts';
import type { SkillRef } from '../protocol/run.ts';
import { descriptionOf, pickableSkills } from './pickableSkills.ts';
import { plainLabel } from './plainLabel.ts';

/** `skill` is null for the choice by the words; undefined when the list was left. */
export async function chooseNextSkill(telos: Telos): Promise<{ skill: SkillRef | null } | undefined> {
  const byWords = {
    label: vscode.l10n.t('Let Telos pick'),
    description: vscode.l10n.t('by what you say'),
    skill: null,
  };
  const items = (await pickableSkills(await telos.agents())).map(({ agent, skill }) => ({
    label: plainLabel(skill.id),
    description: plainLabel(agent.name),
    detail: plainLabel(descriptionOf(skill)),
    skill: { agent: agent.name, skill: skill.id },
  }));
  return vscode.window.showQuickPick([byWords, ...items], {
    title: vscode.l10n.t('Skill for your next request'),
    matchOnDescription: true,
    matchOnDetail: true,
  });
}
