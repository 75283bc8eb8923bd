/** Puts the answer of a run on a selection or a file somewhere other than the chat. */

import type { RunRequest } from '@telos/engine/run';
import * as vscode from 'vscode';
import { acknowledge } from '../base/acknowledge.ts';
import { describeError, plainLabel } from '../base/labels.ts';
import { describeEnd, type NativeRuns } from './editorRuns.ts';
import { pickHuman } from './quickPickHuman.ts';

export type OutputTarget = 'chat' | 'document' | 'replace' | 'insert' | 'clipboard';

/** A selection as it was when the run began. */
export interface SelectedPlace {
  document: vscode.TextDocument;
  range: vscode.Range;
  text: string;
}

interface TargetItem extends vscode.QuickPickItem {
  target: OutputTarget;
  /** True if it needs a selection that can be edited. */
  inPlace?: boolean;
}

const lastTargetKey = 'telos.lastTarget';

const targets: readonly TargetItem[] = [
  {
    target: 'chat',
    label: `$(comment-discussion) ${vscode.l10n.t('Chat')}`,
    detail: vscode.l10n.t('Shows the run as it goes'),
  },
  {
    target: 'document',
    label: `$(new-file) ${vscode.l10n.t('New Document')}`,
    detail: vscode.l10n.t('Opens the answer as Markdown'),
  },
  {
    target: 'replace',
    label: `$(replace) ${vscode.l10n.t('Replace the Selection')}`,
    detail: vscode.l10n.t('Undo restores it'),
    inPlace: true,
  },
  {
    target: 'insert',
    label: `$(insert) ${vscode.l10n.t('Insert After the Selection')}`,
    detail: vscode.l10n.t('On lines of its own'),
    inPlace: true,
  },
  {
    target: 'clipboard',
    label: `$(clippy) ${vscode.l10n.t('Clipboard')}`,
    detail: vscode.l10n.t('Copies the answer'),
  },
];

export const placeOf = ({ document, selection }: vscode.TextEditor): SelectedPlace => ({
  document,
  range: new vscode.Range(selection.start, selection.end),
  text: document.getText(selection),
});

/** Asks for the target, the last used one first. Returns undefined if the person cancels. */
export async function pickTarget(
  memory: vscode.Memento,
  hasSelection: boolean,
): Promise<OutputTarget | undefined> {
  const last = memory.get<OutputTarget>(lastTargetKey);
  const offered = targets.filter(({ inPlace }) => hasSelection || !inPlace);
  const items = [
    ...offered
      .filter(({ target }) => target === last)
      .map(item => ({ ...item, description: vscode.l10n.t('last used') })),
    ...offered.filter(({ target }) => target !== last),
  ];
  const picked = await vscode.window.showQuickPick(items, {
    title: vscode.l10n.t('Where do you want the answer?'),
    matchOnDetail: true,
  });
  if (picked) await memory.update(lastTargetKey, picked.target);
  return picked?.target;
}

/** Runs the request with a progress notification, and puts the model's last words at the target. */
export async function deliver(
  runs: NativeRuns,
  request: RunRequest,
  target: Exclude<OutputTarget, 'chat'>,
  place: SelectedPlace | undefined,
): Promise<void> {
  try {
    const answer = await answerWithProgress(runs, request);
    if (answer !== undefined) await put(answer, target, place);
  } catch (error) {
    void vscode.window.showErrorMessage(plainLabel(describeError(error), 1_000));
  }
}

/** Returns the answer, or undefined if the person has stopped the run. Rejects if it failed. */
async function answerWithProgress(runs: NativeRuns, request: RunRequest): Promise<string | undefined> {
  const title = `Telos: ${plainLabel(request.skill?.skill ?? vscode.l10n.t('finds a skill'), 60)}`;
  const place = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
  return vscode.window.withProgress(place, async (progress, token) => {
    let answer = '';
    const end = await runs.run(request, pickHuman, token, event => {
      if (event.type === 'routed')
        progress.report({ message: plainLabel(vscode.l10n.t('{0} of {1}', event.skill, event.agent)) });
      // Words before a call are about the work, not its result.
      if (event.type === 'tool_start') {
        answer = '';
        progress.report({ message: plainLabel(event.call.name) });
      }
      if (event.type === 'text') answer += event.text;
    });
    if (end.outcome === 'cancelled') return undefined;
    const problem = describeEnd(end);
    if (problem !== undefined) throw new Error(problem);
    if (answer.trim() === '')
      throw new Error(
        vscode.l10n.t('The run finished without an answer. Run it again, or choose another model.'),
      );
    return answer.trim();
  });
}

async function put(
  answer: string,
  target: Exclude<OutputTarget, 'chat'>,
  place: SelectedPlace | undefined,
): Promise<void> {
  if (target === 'clipboard') {
    await vscode.env.clipboard.writeText(answer);
    vscode.window.setStatusBarMessage(vscode.l10n.t('Telos has copied the answer.'), 5_000);
    return;
  }
  if (target !== 'document' && place && (await edit(answer, target, place))) return;
  const document = await vscode.workspace.openTextDocument({ content: answer, language: 'markdown' });
  await vscode.window.showTextDocument(document);
  if (target !== 'document') {
    acknowledge(
      vscode.l10n.t('The selected text has changed while the skill ran, so the answer is in a new document.'),
    );
  }
}

/** Edits the document. Returns false and changes nothing if the selected text has changed since. */
async function edit(
  answer: string,
  target: 'replace' | 'insert',
  { document, range, text }: SelectedPlace,
): Promise<boolean> {
  if (document.isClosed || document.getText(range) !== text) return false;
  const change = new vscode.WorkspaceEdit();
  if (target === 'replace') change.replace(document.uri, range, answer);
  else change.insert(document.uri, range.end, `\n\n${answer}\n`);
  return vscode.workspace.applyEdit(change);
}
