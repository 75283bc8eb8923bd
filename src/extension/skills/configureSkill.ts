/** Implements `Telos: Configure Skill...`: what one skill runs with, in the person's agents.toml. */

import { importModelList } from '@telos/engine/providers';
import { importSkillSettings, type SkillSettingKey, type SkillSettings } from '@telos/engine/skills';
import { type RunMode, runModes } from '@telos/protocol/run';
import * as vscode from 'vscode';
import { complain } from '../base/acknowledge.ts';
import { askText } from '../base/askText.ts';
import { askEffort } from '../base/chooseEffort.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError, plainLabel, t } from '../base/labels.ts';
import type { SkillNode } from './skillTree.ts';

interface SettingItem extends vscode.QuickPickItem {
  key: SkillSettingKey;
}

interface ModelItem extends vscode.QuickPickItem {
  model?: string;
}

/** A value of a setting; undefined removes it. */
type Answer = { value: string | number | undefined };

/** Shows the settings of a skill, one to change at a time, until the person leaves. */
export async function configureSkill(current: CurrentTelos, { agent, skill }: SkillNode): Promise<void> {
  const { ownSkillSettings, setSkillSetting } = await importSkillSettings();
  const title = t('Configure {0}', plainLabel(skill.id));
  for (;;) {
    const { config } = await current.openTelos();
    const settings = ownSkillSettings(config, agent.name, skill.id);
    const picked = await vscode.window.showQuickPick(items(settings), {
      title,
      placeHolder: t('Anything not set here comes from its author, or from your settings'),
    });
    if (!picked) return;
    const answer = await ask(picked.key, title, settings, current);
    if (!answer) continue;
    try {
      await setSkillSetting(config, agent.name, skill.id, picked.key, answer.value);
    } catch (error) {
      complain(plainLabel(describeError(error), 500));
      return;
    }
    await current.refresh();
  }
}

function items({ model, effort, mode, budget }: SkillSettings): SettingItem[] {
  const row = (key: SkillSettingKey, label: string, value: string | number | undefined): SettingItem => ({
    key,
    label,
    description: value === undefined ? t('not set') : plainLabel(String(value)),
  });
  return [
    row('model', t('Model'), model),
    row('effort', t('Effort of its model'), effort),
    row('mode', t('Mode'), mode && modeLabel(mode)),
    row('max_cost', t('Maximum cost of a run, in dollars'), budget.maxCost),
    row('max_tokens', t('Maximum tokens of a run'), budget.maxTokens),
    row('max_minutes', t('Maximum minutes of a run'), budget.maxMinutes),
  ];
}

function modeLabel(mode: RunMode): string {
  if (mode === 'plan') return t('Look only: it changes nothing');
  return mode === 'review' ? t('Ask: before each change') : t('As in your settings');
}

async function ask(
  key: SkillSettingKey,
  title: string,
  { model, effort, budget }: SkillSettings,
  current: CurrentTelos,
): Promise<Answer | undefined> {
  switch (key) {
    case 'model':
      return askModel(title, model, current);
    case 'effort': {
      const chosen = await askEffort(title, effort);
      return chosen === undefined ? undefined : { value: chosen === '' ? undefined : chosen };
    }
    case 'mode': {
      // A skill may be more careful than its user, never less.
      const modes = runModes
        .filter(mode => mode !== 'sandbox')
        .map(mode => ({ label: modeLabel(mode), mode }));
      const picked = await vscode.window.showQuickPick(modes, { title });
      return picked && { value: picked.mode === 'default' ? undefined : picked.mode };
    }
    case 'max_cost':
      return askNumber(title, t('Dollars; empty for no limit of its own'), budget.maxCost);
    case 'max_tokens':
      return askNumber(title, t('Tokens; empty for no limit of its own'), budget.maxTokens);
    case 'max_minutes':
      return askNumber(title, t('Minutes; empty for no limit of its own'), budget.maxMinutes);
  }
}

/** Lists the models of the providers that are ready, and takes any other name. */
async function askModel(
  title: string,
  model: string | undefined,
  current: CurrentTelos,
): Promise<Answer | undefined> {
  const { config } = await current.openTelos();
  const { listModels } = await importModelList();
  const ready = (await listModels(config)).filter(provider => provider.ready);
  const named = ready.flatMap(({ name, models }) => models.map(each => `${name}:${each}`));
  const other: ModelItem = { label: t('Other...') };
  const usual: ModelItem = { label: t('As in your settings') };
  const known = named.map((each): ModelItem => ({ label: plainLabel(each), model: each }));
  const picked = await vscode.window.showQuickPick([usual, ...known, other], { title });
  if (!picked) return undefined;
  if (picked !== other) return { value: picked.model };
  const typed = await askText({
    title,
    prompt: t('A model of the provider that is set, or provider:model'),
    value: model ?? '',
  });
  return typed === undefined ? undefined : { value: typed.trim() || undefined };
}

async function askNumber(
  title: string,
  prompt: string,
  before: number | undefined,
): Promise<Answer | undefined> {
  const typed = await askText({
    title,
    prompt,
    value: before === undefined ? '' : String(before),
    validateInput: text =>
      text.trim() === '' || isAmount(text) ? undefined : t('Enter 0 or a higher number.'),
  });
  if (typed === undefined) return undefined;
  return { value: typed.trim() === '' ? undefined : Number(typed) };
}

const isAmount = (text: string): boolean => Number.isFinite(Number(text)) && Number(text) >= 0;
