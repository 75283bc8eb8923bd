/**
 * Runs the stories of a plan: in a process of its own, which goes on when the window is closed, or in this window if that is what the
 * person wants or if a model of the editor itself is to be asked.
 */
import { join } from 'node:path';
import * as vscode from 'vscode';
import type { Telos } from '../../engine/telos.ts';
import { type RunOrder, runDetached } from '../../engine/workflow/detachedRun.ts';
import type { Plan } from '../../engine/workflow/plan.ts';
import type { PlanRunEnd } from '../../engine/workflow/planRun.ts';
import type { PlanSettings } from '../../engine/workflow/planSettings.ts';
import { editorRipgrep } from '../base/editorRipgrep.ts';
import { lmProviderName } from './lmProvider.ts';
import { goesOnRed } from './planQuestions.ts';

/** Whether the plan can run apart from this window. */
export async function runsApart(telos: Telos, settings: PlanSettings): Promise<boolean> {
  if (vscode.workspace.getConfiguration('telos').get<boolean>('plans.keepRunning') === false) return false;
  const { name } = await telos.provider();
  const models = [settings.model, settings.reviewModel, settings.escalateModel];
  return name !== lmProviderName && !models.some(model => model?.startsWith(lmProviderName));
}

interface Wanted {
  settings: PlanSettings;
  /** Begins stories anew that have failed. */
  isRetry: boolean;
}

/** Runs the plan in a process of its own. Resolves when that has ended, if this window is still there. */
export async function runApart(
  { folder }: Plan,
  telos: Telos,
  extensionUri: vscode.Uri,
  { settings, isRetry }: Wanted,
): Promise<PlanRunEnd> {
  const ripgrep = editorRipgrep(vscode.env.appRoot);
  const order: RunOrder = {
    ...{ config: telos.config, repo: folder.repo, plan: folder.name, slots: settings.parallel },
    ...(isRetry && { retry: true }),
    ...(ripgrep && { ripgrep }),
  };
  const program = join(extensionUri.fsPath, 'dist', 'runner.js');
  const end = await runDetached(program, order);
  if (end.kind !== 'red' || !(await goesOnRed(end.checks))) return end;
  return runDetached(program, { ...order, goOnRed: true });
}

/** Runs the plan in this window. */
export const runHere = (
  plan: Plan,
  { settings, isRetry }: Wanted,
  signal: AbortSignal,
): Promise<PlanRunEnd> =>
  plan.run(
    {
      slots: settings.parallel,
      // Questions wait in the tree instead of in a dialog that nobody sees.
      unattended: true,
      ...(isRetry && { retry: true }),
      goOnRed: goesOnRed,
    },
    signal,
  );
