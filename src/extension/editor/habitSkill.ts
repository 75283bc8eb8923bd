/** Offers to save as a skill what the user does often: a model writes it, its evals pass, and the user keeps or discards it. */

import { Telos } from '@telos/engine/telos';
import {
  declineHabit,
  type Habit,
  habitCost,
  habitRequest,
  newHabit,
  proveSkill,
  readHabit,
  type WrittenSkill,
  writeHabitSkill,
} from '@telos/evals/fromRuns';
import type { EvalModel } from '@telos/evals/suite';
import { roughCost } from '@telos/protocol/usage';
import * as vscode from 'vscode';
import { acknowledge, complain } from '../base/acknowledge.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { inProgress } from '../base/inProgress.ts';
import { describeError, plainLabel, t } from '../base/labels.ts';
import { offerWritten } from './proposedEdit.ts';

/** Returns the habit that a run has just made one. Undefined if there is none, or the setting is off. Never throws. */
export async function habitBehind(runId: string, current: CurrentTelos): Promise<Habit | undefined> {
  const { config } = await current.openTelos();
  return config.suggestsSkills ? newHabit(runId, config).catch(() => undefined) : undefined;
}

/** Offers no skill of this habit again. Never throws. */
export async function declineOffer(habit: Habit, current: CurrentTelos): Promise<void> {
  await declineHabit(habit, (await current.openTelos()).config).catch(error =>
    complain(plainLabel(describeError(error), 500)),
  );
}

/** Has the skill written and tested after a yes to the price, and shows it. Never throws. */
export async function saveHabit(habit: Habit, current: CurrentTelos): Promise<void> {
  try {
    const telos = await current.openTelos();
    const model: EvalModel | undefined = await telos.asideModel();
    if (!model) {
      acknowledge(t('A recording answers instead of a model, so no skill can be written.'), {
        title: t('Choose Model...'),
        act: () => vscode.commands.executeCommand('telos.chooseModel'),
      });
      return;
    }
    const material = await readHabit(habit, telos);
    if (!material) return complain(t('Too few of these runs can still be read.'));
    const request = habitRequest(material);
    const requests = material.runs.map(run => `• ${plainLabel(run.request, 100)}`);
    const price = habitCost(request, model);
    const cost =
      price === 'unknown'
        ? t('What it costs is not known.')
        : t('It costs {0}.', roughCost(price, vscode.l10n.t));
    const name = plainLabel(model.provider.model, 60);
    const detail = [
      ...requests,
      '',
      t('The model reads these runs and writes the skill. Then its evals run with the model.'),
      `${cost} ${t('Nothing is kept before you agree.')}`,
    ].join('\n');
    const yes = t('Write Skill');
    const question = t('Ask {0} to write the skill {1}?', name, plainLabel(habit.name, 60));
    if ((await vscode.window.showInformationMessage(question, { modal: true, detail }, yes)) !== yes) return;
    const proven = await inProgress(
      t('{0} is writing the skill {1}', name, plainLabel(habit.name, 60)),
      signal =>
        writeProven(
          () => writeHabitSkill(material, request, model, telos.config, signal),
          telos,
          model,
          signal,
        ),
    );
    await offerWritten(current, proven.written, proven.passed);
  } catch (error) {
    if (error instanceof vscode.CancellationError) return;
    if (error instanceof Error && error.name === 'AbortError') return;
    complain(plainLabel(describeError(error), 500));
  }
}

/** Returns a written skill whose evals pass. Throws the errors of `proveSkill`; then nothing is left of it. */
async function writeProven(
  write: () => Promise<WrittenSkill>,
  { config }: Telos,
  model: EvalModel,
  signal: AbortSignal,
): Promise<{ written: WrittenSkill; passed: number }> {
  const written = await write();
  try {
    const parts = { config, open: Telos.open.bind(Telos) };
    return { written, passed: (await proveSkill(written, model, parts, signal)).length };
  } catch (error) {
    await written.remove();
    throw error;
  }
}
