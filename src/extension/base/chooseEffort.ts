/** Asks how much a model is to think. */

import { effortIn } from '@telos/engine/config';
import { type Effort, effortLevels } from '@telos/engine/providers';
import * as vscode from 'vscode';
import { askText } from './askText.ts';
import { t } from './labels.ts';

interface EffortItem extends vscode.QuickPickItem {
  /** Empty for as much as the model thinks by itself; missing for a number of tokens. */
  effort?: Effort | '';
}

/** `levels` are those that the model tells apart. Returns the answer, empty for as much as the model thinks by itself. Undefined if there was none. */
export async function askEffort(
  title: string,
  current: Effort | undefined,
  levels: readonly (typeof effortLevels)[number][] = effortLevels,
): Promise<Effort | '' | undefined> {
  const labels: Readonly<Record<(typeof effortLevels)[number], string>> = {
    off: t('Off'),
    low: t('Low'),
    medium: t('Medium'),
    high: t('High'),
    xhigh: t('Very High'),
    max: t('Maximum'),
  };
  const items: EffortItem[] = [
    { label: t('Model Default'), effort: '' },
    ...levels.map(effort => ({ label: labels[effort], effort })),
    { label: t('Number of tokens…'), ...(typeof current === 'number' && { detail: String(current) }) },
  ];
  const inUse = items.find(({ effort = current }) => effort === (current ?? ''));
  if (inUse) inUse.description = t('in use');
  const picked = await vscode.window.showQuickPick(items, {
    title,
    placeHolder: t('How much should it think before it answers?'),
  });
  return picked && (picked.effort ?? askTokens(title, current));
}

async function askTokens(title: string, current: Effort | undefined): Promise<Effort | undefined> {
  const text = await askText({
    title,
    prompt: t('At most this many tokens for thinking'),
    value: typeof current === 'number' ? String(current) : '8000',
    validateInput: typed =>
      typeof effortIn(typed) === 'number'
        ? undefined
        : t('Enter a whole number from {0} to {1}.', 1_024, 64_000),
  });
  return text === undefined ? undefined : effortIn(text);
}
