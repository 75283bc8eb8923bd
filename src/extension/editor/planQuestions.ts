/** Asks the person about a plan that runs: a question of a story, words for its model, an amount, and a yes before a story is settled. */

import type { CheckResult, FinishKind, ParkedQuestion, Story } from '@telos/protocol/plan';
import * as vscode from 'vscode';
import { askText } from '../base/askText.ts';
import { plainLabel, visibleText } from '../base/labels.ts';

/** The longest question that a list can show above its answers. In characters. */
const shortQuestion = 300;

interface AnswerItem extends vscode.QuickPickItem {
  choice?: string;
  act?: 'look' | 'own';
}

/** Asks a question of a story, with its offered answers or for words of the person's own. Undefined if the person closed it. */
export async function askFor({ text, choices = [] }: ParkedQuestion): Promise<string | undefined> {
  const { t } = vscode.l10n;
  const title = t('Telos asks');
  const isWhole = plainLabel(text, shortQuestion) === text;
  const items: AnswerItem[] = [
    ...(isWhole ? [] : [{ label: `$(eye) ${t('Show all of it')}`, act: 'look' as const }]),
    ...choices.map(choice => ({ label: plainLabel(choice, 200), choice })),
    { label: `$(edit) ${t('Answer in your own words...')}`, act: 'own' },
  ];
  for (;;) {
    const prompt = plainLabel(text, shortQuestion);
    const picked = await vscode.window.showQuickPick(items, { title, prompt, ignoreFocusOut: true });
    if (picked?.act === 'own') {
      const given = await askText({ title, prompt });
      return given?.trim() || undefined;
    }
    if (picked?.act !== 'look') return picked?.choice;
    const document = await vscode.workspace.openTextDocument({ content: visibleText(text) });
    await vscode.window.showTextDocument(document, { preview: true });
  }
}

/** Asks for words for the model that works on a story, or on all of a plan. */
export async function askWords(name: string): Promise<string | undefined> {
  const text = await askText({
    title: vscode.l10n.t('Message to {0}', plainLabel(name)),
    prompt: vscode.l10n.t('Reaches the model before its next step'),
  });
  return text?.trim() || undefined;
}

/** Asks whether a story is to be skipped, begun again or accepted. */
export async function settles(
  kind: 'skip' | 'redo' | 'accept' | 'split',
  { id, title }: Story,
): Promise<boolean> {
  const story = plainLabel(`${id} ${title}`, 120);
  const { t } = vscode.l10n;
  const words: Readonly<Record<typeof kind, readonly [question: string, detail: string, yes: string]>> = {
    skip: [
      t('Skip {0}?', story),
      t('The plan goes on without it. Stories that depend on it cannot begin.'),
      t('Skip'),
    ],
    redo: [
      t('Redo {0}?', story),
      t('It starts over. What it has changed so far stays in the plan’s branch and its patches.'),
      t('Redo'),
    ],
    split: [
      t('Split {0}?', story),
      t('A model splits it into smaller stories, with the checks that you have approved.'),
      t('Split'),
    ],
    accept: [
      t('Accept {0}?', story),
      t('It counts as done even if its checks or its review failed. It is marked as accepted by you.'),
      t('Accept'),
    ],
  };
  const [question, detail, yes] = words[kind];
  return (await vscode.window.showWarningMessage(question, { modal: true, detail }, yes)) === yes;
}

/** Asks whether a plan is to be ended so. Merging and keeping need no question: both can be taken back with git. */
export async function agreesToFinish(how: FinishKind, branch: string): Promise<boolean> {
  const { t } = vscode.l10n;
  const words: Readonly<
    Partial<Record<FinishKind, readonly [question: string, detail: string, yes: string]>>
  > = {
    pr: [
      t('Open a pull request for {0}?', branch),
      t('This pushes the branch to your remote and opens a pull request with gh, where others can see them.'),
      t('Open Pull Request'),
    ],
    drop: [
      t('Discard {0}?', branch),
      t('This deletes the branch with what has passed. The patches of the attempts are kept.'),
      t('Discard'),
    ],
  };
  const asked = words[how];
  if (!asked) return true;
  const [question, detail, yes] = asked;
  return (await vscode.window.showWarningMessage(question, { modal: true, detail }, yes)) === yes;
}

/** Asks for what is added to the budget of a plan, in US dollars. */
export async function askAmount(plan: string): Promise<number | undefined> {
  const isAmount = (text: string): boolean => Number(text) > 0 && Number.isFinite(Number(text));
  const given = await askText({
    title: vscode.l10n.t('Raise the Budget of {0}', plainLabel(plan)),
    prompt: vscode.l10n.t('In US dollars, on top of its limit'),
    value: '5',
    validateInput: text => (isAmount(text) ? undefined : vscode.l10n.t('Enter an amount such as 5 or 0.50.')),
  });
  return given === undefined ? undefined : Number(given);
}

/** Asks whether to begin although checks fail before anything was changed. */
export async function goesOnRed(red: readonly CheckResult[]): Promise<boolean> {
  const begin = vscode.l10n.t('Start Anyway');
  const names = red.map(({ name }) => plainLabel(name, 60)).join(', ');
  const detail = vscode.l10n.t('Stories that name these checks pass only once they do.');
  const question = vscode.l10n.t('Before anything was changed, these checks fail: {0}', names);
  return (await vscode.window.showWarningMessage(question, { modal: true, detail }, begin)) === begin;
}
