/**
 * Implements the Human outside the chat view. A question is a list to pick from, which no key that was meant for a text answers. Denying is
 * the first item and the effect of Escape.
 */

import type { Human } from '@telos/engine/run';
import { describeCard } from '@telos/protocol/agentCard';
import { describeQuestion, describeWhy } from '@telos/protocol/describe';
import { type FormField, type FormValue, readTyped, type Typed } from '@telos/protocol/form';
import {
  type ApprovalDecision,
  type ApprovalRequest,
  type ApprovalScope,
  leaveBox,
  skipped,
} from '@telos/protocol/run';
import * as vscode from 'vscode';
import { askPick, askText } from '../base/askText.ts';
import { plainLabel, translated } from '../base/labels.ts';

interface Answer extends vscode.QuickPickItem {
  /** Missing for the item that shows the whole question, after which it is asked again. */
  decision?: ApprovalDecision;
}

/** The longest subject that fits on a line of the list. A longer one can be shown as a document. In characters. */
const shortSubject = 160;

const scopeLabels: Readonly<Record<ApprovalScope, string>> = {
  once: vscode.l10n.t('Allow Once'),
  run: vscode.l10n.t('Allow for This Run'),
  always: vscode.l10n.t('Always Allow'),
};

const allowLabel = (scope: ApprovalScope, { forConversation }: ApprovalRequest): string =>
  scope === 'run' && forConversation ? vscode.l10n.t('Allow for This Conversation') : scopeLabels[scope];

const denied: ApprovalDecision = { allow: false, reason: 'The user denied this.' };
const dismissed: ApprovalDecision = { allow: false, reason: 'The user closed the question without a yes.' };

export const pickHuman: Human = {
  approve: (request, signal) => withToken(signal, token => approve(request, token)),
  ask: (questions, signal) => withToken(signal, token => ask(questions, token)),
};

async function approve(request: ApprovalRequest, token: vscode.CancellationToken): Promise<ApprovalDecision> {
  if (request.choices?.length === 0) {
    const [answer = ''] = await ask([request.subject], token);
    return answer === '' ? skipped : { allow: true, scope: 'once', answer };
  }
  while (!token.isCancellationRequested) {
    const pick = await askPick(
      answersTo(request),
      {
        title: plainLabel(`Telos: ${describeQuestion(request, vscode.l10n.t)}`),
        placeHolder: plainLabel(`${request.subject}${request.folder ? ` (in ${request.folder})` : ''}`, 300),
      },
      token,
    );
    if (!pick) return request.choices || request.form ? skipped : dismissed;
    if (pick.decision?.allow && request.form) return fillIn(request.form, token);
    if (pick.decision) return pick.decision;
    await showWhole(request);
  }
  return dismissed;
}

/** Returns the answers to a question of the skill. */
const choicesOf = (choices: readonly string[]): Answer[] =>
  choices.map(answer => ({
    label: plainLabel(answer, 300),
    decision: { allow: true, scope: 'once', answer },
  }));
/** Asks the fields of a form one after the other. Escape sends nothing. */
async function fillIn(
  fields: readonly FormField[],
  token: vscode.CancellationToken,
): Promise<ApprovalDecision> {
  const content: [string, FormValue][] = [];
  for (const field of fields) {
    const typed = await askField(field, token);
    if (typed === undefined) return skipped;
    const { value, problem } = readTyped(field, typed);
    if (problem) return skipped;
    if (value !== undefined) content.push([field.name, value]);
  }
  return { allow: true, scope: 'once', content: Object.fromEntries(content) };
}

/** Returns what was typed or chosen; undefined if the person cancels. */
async function askField(field: FormField, token: vscode.CancellationToken): Promise<Typed | undefined> {
  const title = plainLabel(field.title);
  const placeHolder = plainLabel(field.description ?? '', 300);
  const options = { title, placeHolder, ignoreFocusOut: true };
  if (field.kind === 'text' || field.kind === 'number')
    return askText(
      {
        title,
        prompt: placeHolder,
        value: field.initial === undefined ? '' : String(field.initial),
        validateInput: text => {
          const { problem } = readTyped(field, text);
          return problem && translated(problem);
        },
      },
      token,
    );
  if (field.kind === 'switch') {
    const items = [
      { label: vscode.l10n.t('Yes'), value: true },
      { label: vscode.l10n.t('No'), value: false },
    ];
    const first = field.initial === true ? items : items.reverse();
    return (await vscode.window.showQuickPick(first, options, token))?.value;
  }
  const initial = field.kind === 'choice' ? [field.initial] : (field.initial ?? []);
  const items = field.options.map(({ value, label }) => ({
    label: plainLabel(label),
    value,
    picked: initial.includes(value),
  }));
  if (field.kind === 'choice') return (await vscode.window.showQuickPick(items, options, token))?.value;
  const picked = await vscode.window.showQuickPick(items, { ...options, canPickMany: true }, token);
  return picked?.map(({ value }) => value);
}

function answersTo(request: ApprovalRequest): Answer[] {
  if (request.choices && request.choices.length > 0) return choicesOf(request.choices);
  const { subject, scopes, diff, card, danger } = request;
  const no: Answer = {
    label: `$(circle-slash) ${vscode.l10n.t('Deny')}`,
    detail: plainLabel(describeWhy(request, vscode.l10n.t), 300),
    decision: denied,
  };
  const yes = scopes.map(
    (scope): Answer => ({
      label: `$(${danger ? 'warning' : 'check'}) ${allowLabel(scope, request)}`,
      detail: plainLabel(subject, 300),
      decision: { allow: true, scope },
    }),
  );
  const isWhole = plainLabel(subject, shortSubject) === subject && diff === undefined && !card;
  const look: Answer = {
    label: `$(eye) ${vscode.l10n.t('Show all of it')}`,
    detail: vscode.l10n.t('Opens it as a document, then asks again'),
  };
  const leave: Answer = {
    label: `$(link-external) ${vscode.l10n.t('Run Outside the Sandbox…')}`,
    detail: vscode.l10n.t('Refuses the host. You are asked before the command runs there.'),
    decision: leaveBox,
  };
  return [no, ...(isWhole ? [] : [look]), ...yes, ...(request.mayLeave ? [leave] : [])];
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

/**
 * Asks the questions, once the person wants to answer: a box that opened by itself would take the words that are typed elsewhere. A missing
 * answer is empty.
 */
async function ask(questions: readonly string[], token: vscode.CancellationToken): Promise<string[]> {
  const answers: string[] = [];
  const [first] = questions;
  if (first === undefined) return answers;
  const answer = { label: `$(comment) ${vscode.l10n.t('Answer...')}`, detail: plainLabel(first, 300) };
  if (!(await askPick([answer], { title: vscode.l10n.t('Telos asks') }, token)))
    return questions.map(() => '');
  for (const question of questions) {
    const answer = token.isCancellationRequested
      ? undefined
      : await askText({ title: vscode.l10n.t('Telos asks'), prompt: plainLabel(question, 500) }, token);
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
