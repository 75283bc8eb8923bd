/** *Check Only*: runs the checks of a story in the person's checkout, without a model, and shows what they said. */
import * as vscode from 'vscode';
import type { Plan } from '../../engine/workflow/plan.ts';
import type { CheckResult } from '../../protocol/plan.ts';
import { acknowledge } from '../base/acknowledge.ts';
import { plainLabel, visibleText } from '../base/labels.ts';

let output: vscode.OutputChannel | undefined;

/** Throws the errors of `Plan.check`. */
export async function checkStory(plan: Plan, story: string): Promise<void> {
  const { t } = vscode.l10n;
  const name = plainLabel(story);
  const controller = new AbortController();
  const bar = {
    location: vscode.ProgressLocation.Notification,
    title: t('Running the checks of {0}', name),
    cancellable: true,
  };
  const results = await vscode.window.withProgress(bar, async (_progress, token) => {
    token.onCancellationRequested(() => controller.abort());
    return plan.check(story, controller.signal).catch(error => {
      if (controller.signal.aborted) return undefined;
      throw error;
    });
  });
  if (!results) return;
  if (results.length === 0) return acknowledge(t('{0} names no checks.', name));
  output ??= vscode.window.createOutputChannel(t('Telos Checks'));
  const shown = output;
  shown.clear();
  shown.append(results.map(result => textOf(name, result)).join('\n'));
  const good = results.filter(({ exitCode }) => exitCode === 0).length;
  if (good < results.length) shown.show(true);
  acknowledge(t('Checks of {0} that pass in your checkout: {1} of {2}', name, good, results.length), {
    title: t('Show Output'),
    act: () => shown.show(),
  });
}

/** What a check printed is anybody's text: nothing of it is left invisible. */
function textOf(story: string, { name, exitCode, ms, output: printed }: CheckResult): string {
  const { t } = vscode.l10n;
  const end = exitCode === null ? t('did not end by itself') : t('exit code {0}', exitCode);
  const took = t('{0} s', (ms / 1000).toFixed(1));
  return `${story} · ${plainLabel(name)} · ${end} · ${took}\n${visibleText(printed).trimEnd()}\n`;
}
