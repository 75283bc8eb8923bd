/**
 * Implements the Human outside the chat view. A question is a list to pick from. Denying is the first item and the
 * effect of Escape.
 */
import * as vscode from 'vscode';
import type { Human } from '../../engine/human.ts';
import { describeCard } from '../../protocol/agentCard.ts';
import { describeQuestion, describeWhy } from '../../protocol/describe.ts';
import type { ApprovalDecision, ApprovalRequest, ApprovalScope } from '../../protocol/run.ts';
import { plainLabel } from '../base/labels.ts';

interface Answer extends vscode.QuickPickItem {
  /** Missing for the item that shows the whole question, after which it is asked again. */
  decision?: ApprovalDecision;
}

/** The longest subject that fits on a line of the list. A longer one can be shown as a document. In characters. */
const shortSubject = 160;

const scopeLabels: Readonly<Record<ApprovalScope, string>> = {
  once: vscode.l10n.t('Allow once'),
  run: vscode.l10n.t('Allow for this run'),
  always: vscode.l10n.t('Always allow'),
};

const denied: ApprovalDecision = { allow: false, reason: 'The user denied this.' };
const dismissed: ApprovalDecision = { allow: false, reason: 'The person closed the question without a yes.' };

export const pickHuman: Human = {
  approve: (request, signal) => withToken(signal, token => approve(request, token)),
  ask: (questions, signal) => withToken(signal, token => ask(questions, token)),
};

async function approve(request: ApprovalRequest, token: vscode.CancellationToken): Promise<ApprovalDecision> {
  while (!token.isCancellationRequested) {
    const pick = await vscode.window.showQuickPick(
      answersTo(request),
      {
        title: plainLabel(`Telos: ${describeQuestion(request, vscode.l10n.t)}`),
        placeHolder: plainLabel(`${request.subject}${request.folder ? ` (in ${request.folder})` : ''}`, 300),
        ignoreFocusOut: true,
      },
      token,
    );
    if (!pick) return dismissed;
    if (pick.decision) return pick.decision;
    await showWhole(request);
  }
  return dismissed;
}

function answersTo(request: ApprovalRequest): Answer[] {
  const { subject, scopes, diff, card, danger } = request;
  const no: Answer = {
    label: `$(circle-slash) ${vscode.l10n.t('Deny')}`,
    detail: plainLabel(describeWhy(request, vscode.l10n.t), 300),
    decision: denied,
  };
  const yes = scopes.map(
    (scope): Answer => ({
      label: `$(${danger ? 'warning' : 'check'}) ${scopeLabels[scope]}`,
      detail: plainLabel(subject, 300),
      decision: { allow: true, scope },
    }),
  );
  const isWhole = plainLabel(subject, shortSubject) === subject && diff === undefined && !card;
  const look: Answer = {
    label: `$(eye) ${vscode.l10n.t('Show all of it')}`,
    detail: vscode.l10n.t('Opens it as a document, then asks again'),
  };
  return [no, ...(isWhole ? [] : [look]), ...yes];
}

/** Shows the call in full, which the list cuts to a line. */
async function showWhole({
  tool,
  subject,
  folder,
  rule,
  reason,
  diff,
  card,
}: ApprovalRequest): Promise<void> {
  const parts = [
    folder
      ? vscode.l10n.t('{0} would do this in {1}:', tool, folder)
      : vscode.l10n.t('{0} would do this:', tool),
    subject,
    vscode.l10n.t('Asked by {0}: {1}', rule, reason),
    ...(card ? [describeCard(card).join('\n')] : []),
    ...(diff === undefined ? [] : [diff]),
  ];
  const document = await vscode.workspace.openTextDocument({ content: parts.join('\n\n'), language: 'diff' });
  await vscode.window.showTextDocument(document, { preview: true });
}

/** Asks the questions. A missing answer is empty. */
async function ask(questions: readonly string[], token: vscode.CancellationToken): Promise<string[]> {
  const answers: string[] = [];
  for (const question of questions) {
    const answer = token.isCancellationRequested
      ? undefined
      : await vscode.window.showInputBox(
          { title: vscode.l10n.t('Telos asks'), prompt: plainLabel(question, 500), ignoreFocusOut: true },
          token,
        );
    answers.push(answer ?? '');
  }
  return answers;
}

/** Closes a waiting list when the run is stopped. */
async function withToken<Result>(
  signal: AbortSignal,
  act: (token: vscode.CancellationToken) => Promise<Result>,
): Promise<Result> {
  const source = new vscode.CancellationTokenSource();
  const cancel = (): void => source.cancel();
  if (signal.aborted) cancel();
  signal.addEventListener('abort', cancel);
  try {
    return await act(source.token);
  } finally {
    signal.removeEventListener('abort', cancel);
    source.dispose();
  }
}
