/** Has the evals of the Testing view run on workers, which ask the model with keys of their own. */

import type { Telos } from '@telos/engine/telos';
import { type EvalResult, liveSuite, plannedRuns, type SkillEvals } from '@telos/evals/suite';
import {
  databaseAddress,
  FleetDatabase,
  loadDbos,
  modelElsewhere,
  remoteSlots,
} from '@telos/fleet/executors';
import * as vscode from 'vscode';
import { plainLabel, t } from '../base/labels.ts';
import type { WorkersAccess } from './workers.ts';

/**
 * Yields the results of the runs, after a yes to the model that is set. `say` gets what happens, such as that no worker is there. Yields
 * nothing after a no. Throws if the model is none that workers can have a key for, or if the database cannot be used.
 */
export async function* runOnWorkers(
  suite: readonly SkillEvals[],
  telos: Telos,
  { url, version }: WorkersAccess,
  say: (line: string) => void,
  signal: AbortSignal,
): AsyncGenerator<EvalResult> {
  const { name, model: chosen } = await telos.provider();
  const model = modelElsewhere(`${name}:${chosen}`);
  if (!model) throw new Error(t('Choose a model of a provider first: workers cannot ask {0}.', name));
  const options = {
    models: [model],
    judge: model,
    runs: 1,
    withBaseline: false,
    maxCost: undefined,
    keeps: false,
  };
  const runs = plannedRuns(suite, options).length;
  const yes = t('Run on Workers');
  const question =
    runs === 1
      ? t('Run 1 eval with {0} on workers?', plainLabel(chosen))
      : t('Run {0} evals with {1} on workers?', runs, plainLabel(chosen));
  const detail = t('The workers ask the model with keys of their own, within the budgets of their owners.');
  if ((await vscode.window.showInformationMessage(question, { modal: true, detail }, yes)) !== yes) return;
  await loadDbos(telos.config.dataDir);
  const database = await FleetDatabase.open(databaseAddress(url), say, signal);
  try {
    const slots = remoteSlots({ database, version, label: undefined, waits: false, log: say });
    yield* liveSuite(suite, options, slots, signal);
  } finally {
    await database.close();
  }
}
