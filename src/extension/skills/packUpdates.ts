/** Implements `Telos: Check for Skill Updates...`, and pins agents so that updates pass them over. */

import { lockPath } from '@telos/engine/skills';
import { placeOffer, setPinned } from '@telos/packs/install';
import { type PackUpdate, updatesFor } from '@telos/packs/lock';
import * as vscode from 'vscode';
import { acknowledge } from '../base/acknowledge.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { plainLabel } from '../base/labels.ts';
import { said } from './agentPacks.ts';
import { agrees, withFetchProgress } from './offers.ts';
import type { AgentNode, SkillTree } from './skillTree.ts';

interface UpdateItem extends vscode.QuickPickItem {
  update?: PackUpdate;
}

/** Looks for newer versions of what was installed from elsewhere, and installs those that the person picks. */
export const checkForUpdates = (current: CurrentTelos, tree: SkillTree): Promise<void> =>
  said(async () => {
    const found: PackUpdate[] = [];
    try {
      const isDone = await collect(current, found);
      if (!isDone) return;
      tree.updates = new Map(found.flatMap(({ name, to, offer }) => (offer ? [[name, to]] : [])));
      const updated: string[] = [];
      for (const update of await pickUpdates(found))
        if (await install(update)) updated.push(`${update.name} ${update.to}`);
      if (updated.length === 0) return;
      tree.updates = new Map(
        [...tree.updates].filter(([name]) => !updated.some(one => one.startsWith(`${name} `))),
      );
      await current.refresh();
      acknowledge(vscode.l10n.t('Updated: {0}', plainLabel(updated.join(', '), 300)));
    } finally {
      for (const { offer } of found) await offer?.dispose();
    }
  });

async function collect(current: CurrentTelos, found: PackUpdate[]): Promise<boolean> {
  const { config } = await current.openTelos();
  const done = await withFetchProgress(
    vscode.l10n.t('Checking for skill updates'),
    async (signal, progress) => {
      for await (const update of updatesFor({ config }, [], { signal, progress })) found.push(update);
      return true;
    },
  );
  return done === true;
}

/** Lists what is new. Says so if nothing is, with what could not be looked for. */
async function pickUpdates(found: readonly PackUpdate[]): Promise<readonly PackUpdate[]> {
  const fresh = found.filter(({ state }) => state === 'changed' || state === 'edited');
  const others = found
    .filter(({ state }) => state === 'pinned' || state === 'failed' || state === 'moved')
    .map(update => `${update.name}: ${othersText(update)}`);
  if (fresh.length === 0) {
    const all =
      found.length === 0
        ? vscode.l10n.t('No agent was installed from another source, so there is nothing to update.')
        : vscode.l10n.t('No updates.');
    acknowledge(plainLabel([all, ...others].join(' '), 500));
    return [];
  }
  const items: UpdateItem[] = [
    ...fresh.map(update => ({
      label: plainLabel(update.name),
      description: plainLabel(`${update.from} → ${update.to}`),
      detail: plainLabel(detailOf(update), 300),
      picked: update.state === 'changed',
      update,
    })),
    ...others.map(text => ({ label: plainLabel(text), kind: vscode.QuickPickItemKind.Separator })),
  ];
  const picked = await vscode.window.showQuickPick(items, {
    title: vscode.l10n.t('Skill Updates'),
    placeHolder: vscode.l10n.t('Each is shown before it is installed'),
    canPickMany: true,
  });
  return (picked ?? []).flatMap(({ update }) => update ?? []);
}

function othersText({ state, problem = '', from }: PackUpdate): string {
  return state === 'pinned' ? vscode.l10n.t('pinned to {0}', from) : problem;
}

function detailOf({ state, files, card }: PackUpdate): string {
  if (state === 'edited')
    return vscode.l10n.t('You have edited {0}', files.map(({ path }) => path).join(', '));
  return card.join('  ');
}

/** Asks on a page, and returns whether the update was installed. The old folder is kept for undo. */
async function install({ offer }: PackUpdate): Promise<boolean> {
  const agreed = offer && (await agrees(offer));
  if (!agreed) return false;
  await placeOffer(agreed.offer, { agreed: agreed.offer.plan.token, allowHigh: true });
  return true;
}

/** Makes updates pass an agent over, or not. */
export const pinAgent = (current: CurrentTelos, { agent }: AgentNode, isPinned: boolean): Promise<void> =>
  said(async () => {
    const { config } = await current.openTelos();
    if (!(await setPinned(lockPath(config), agent.name, isPinned)))
      acknowledge(vscode.l10n.t('{0} was not installed from another source.', plainLabel(agent.name)));
    await current.refresh();
  });
