/**
 * Runs the stories of a plan: in a process of its own, which goes on when the window is closed, or in this window if that is what the
 * person wants or if a model of the editor itself is to be asked. What ran in a window that has ended goes on in the next one.
 */

import { join } from 'node:path';
import type { Telos } from '@telos/engine/telos';
import type { Plan } from '@telos/plans/plan';
import { type PlanRunEnd, type RunOrder, runDetached } from '@telos/plans/run';
import { interruptedWhy, type PlanSettings } from '@telos/plans/state';
import * as vscode from 'vscode';
import { acknowledge } from '../base/acknowledge.ts';
import { editorRipgrep } from '../base/editorRipgrep.ts';
import { plainLabel } from '../base/labels.ts';
import { lmModels, lmProviderName } from './lmProvider.ts';
import { isCutOff, type PlanNode } from './planItem.ts';
import { goesOnRed } from './planQuestions.ts';
import type { PlansTree } from './plansTree.ts';
import type { WorkersAccess } from './workers.ts';

/** Whether the plan can run apart from this window. */
export async function runsApart(telos: Telos, settings: PlanSettings): Promise<boolean> {
  if (vscode.workspace.getConfiguration('telos').get<boolean>('plans.keepRunning') === false) return false;
  return !(await asksEditor(telos, settings));
}

/** Whether a model of the editor itself is asked. */
async function asksEditor(telos: Telos, settings: PlanSettings): Promise<boolean> {
  const { name } = await telos.provider();
  const models = [settings.model, settings.reviewModel, settings.escalateModel];
  return name === lmProviderName || models.some(model => model?.startsWith(lmProviderName));
}

/** In the memory of the workspace: folders of the plans that run in its window. */
const hereKey = 'telos.plans.here';

/** Notes that the plan runs in this window, or that it does not any more. What the window does not take back, the next one goes on with. */
export async function noteHere(memory: vscode.Memento, dir: string, isHere: boolean): Promise<void> {
  const others = (memory.get<string[]>(hereKey) ?? []).filter(one => one !== dir);
  await memory.update(hereKey, isHere ? [...others, dir] : others);
}

/** Calls `goOn` for each plan that the end of its window has cut off, once nothing works on it any more. */
export function goOnHere(
  tree: PlansTree,
  memory: vscode.Memento,
  goOn: (node: PlanNode) => void,
): vscode.Disposable {
  const left = new Set(memory.get<string[]>(hereKey) ?? []);
  const look = (): void => {
    if (!vscode.workspace.isTrusted) return;
    for (const dir of left) {
      const node = tree.plans.find(({ folder }) => folder.dir === dir);
      if (node?.isLive) continue;
      left.delete(dir);
      if (node && wasCutOff(node)) goOn(node);
      else void noteHere(memory, dir, false);
    }
  };
  const looking = tree.onDidLook(look);
  look();
  return looking;
}

/** False for what rests by itself, or because a person wanted it to. */
function wasCutOff(node: PlanNode): boolean {
  const { phase, phaseWhy, isHeld } = node.look?.state ?? {};
  if (isHeld) return false;
  return phase === 'ready' || isCutOff(node) || (phase === 'stopped' && phaseWhy === interruptedWhy);
}

/** Resolves once the models that the plan asks are there. Extensions bring theirs some time after the window has opened. */
export async function modelsAreThere(telos: Telos, settings: PlanSettings): Promise<void> {
  if (!(await asksEditor(telos, settings))) return;
  await new Promise<void>(resolve => {
    const look = async (): Promise<void> => {
      if ((await lmModels()).length === 0) return;
      changing.dispose();
      resolve();
    };
    const changing = vscode.lm.onDidChangeChatModels(look);
    void look();
  });
}

interface Wanted {
  settings: PlanSettings;
  /** Restarts failed stories. */
  isRetry: boolean;
  /** The last story that is worked on; all are if it is missing. */
  until?: string | undefined;
  workers?: WorkersAccess | undefined;
}

/** More stories at a time than one runner can bring together. */
const mostOnWorkers = 64;

/** Runs the plan in a process of its own. Resolves when that has ended, if this window is still there. */
export async function runApart(
  { folder }: Plan,
  telos: Telos,
  extensionUri: vscode.Uri,
  { settings, isRetry, until, workers }: Wanted,
): Promise<PlanRunEnd> {
  const ripgrep = editorRipgrep(vscode.env.appRoot);
  const order: RunOrder = {
    config: telos.config,
    repo: folder.repo,
    plan: folder.name,
    slots: workers ? mostOnWorkers : settings.parallel,
    ...(workers && { workers }),
    ...(isRetry && { retry: true }),
    ...(until !== undefined && { until }),
    ...(ripgrep && { ripgrep }),
  };
  const program = join(extensionUri.fsPath, 'dist', 'runner.js');
  const heard = (line: string): void => acknowledge(plainLabel(line, 300));
  const end = await runDetached(program, order, heard);
  if (end.kind !== 'red' || !(await goesOnRed(end.checks))) return end;
  return runDetached(program, { ...order, goOnRed: true }, heard);
}

/** Runs the plan in this window. */
export const runHere = (
  plan: Plan,
  { settings, isRetry, until }: Wanted,
  signal: AbortSignal,
): Promise<PlanRunEnd> =>
  plan.run(
    {
      slots: settings.parallel,
      // Questions wait in the tree instead of in a dialog that no one sees.
      unattended: true,
      ...(isRetry && { retry: true }),
      ...(until !== undefined && { until }),
      goOnRed: goesOnRed,
    },
    signal,
  );
