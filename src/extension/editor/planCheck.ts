/** *Check Only*: runs the checks of a story in the person's checkout, without a model, and shows what they said. */

import type { Plan } from '@telos/plans/plan';
import type { CheckResult } from '@telos/protocol/plan';
import * as vscode from 'vscode';
import { acknowledge } from '../base/acknowledge.ts';
import { plainLabel, visibleText } from '../base/labels.ts';

/** Scheme of what checks have printed: `telos-check:/<story>.txt?<number>`. */
const scheme = 'telos-check';
/** By address. Lasts as long as the window, as the documents do. */
const texts = new Map<string, string>();
let isRegistered = false;

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
  const uri = keep(name, results.map(result => textOf(name, result)).join('\n'));
  const show = (preserveFocus: boolean) =>
    vscode.window.showTextDocument(uri, {
      preview: true,
      preserveFocus,
      viewColumn: vscode.ViewColumn.Beside,
    });
  const good = results.filter(({ exitCode }) => exitCode === 0).length;
  if (good < results.length) await show(true);
  acknowledge(t('Checks of {0} that pass in your checkout: {1} of {2}', name, good, results.length), {
    title: t('Show Output'),
    act: () => show(false),
  });
}

/** Returns the address of a document with the text, which no one can edit. */
function keep(story: string, text: string): vscode.Uri {
  if (!isRegistered)
    vscode.workspace.registerTextDocumentContentProvider(scheme, {
      provideTextDocumentContent: uri => texts.get(uri.toString()),
    });
  isRegistered = true;
  const uri = vscode.Uri.from({ scheme, path: `/${story}.txt`, query: String(texts.size) });
  texts.set(uri.toString(), text);
  return uri;
}

/** What a check printed is anybody's text: nothing of it is left invisible. */
function textOf(story: string, { name, exitCode, ms, output: printed }: CheckResult): string {
  const { t } = vscode.l10n;
  const end = exitCode === null ? t('did not end by itself') : t('exit code {0}', exitCode);
  const took = t('{0} s', (ms / 1000).toFixed(1));
  return `${story} · ${plainLabel(name)} · ${end} · ${took}\n${visibleText(printed).trimEnd()}\n`;
}
