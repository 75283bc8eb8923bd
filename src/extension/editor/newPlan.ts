/** Brings a plan from its goal to its card: asks the interviewer's questions, and has plan.md and the stories written. */

import { randomUUID } from 'node:crypto';
import { newToken } from '@telos/engine/run';
import type { Plan } from '@telos/plans/plan';
import { isUnanswered, mostRounds } from '@telos/plans/run';
import { readJournal } from '@telos/plans/state';
import type { FormField } from '@telos/protocol/form';
import * as vscode from 'vscode';
import { askText } from '../base/askText.ts';
import type { ChatStage } from '../base/chatWork.ts';
import { plainLabel } from '../base/labels.ts';

/** Asks a model while the person sees what for. Rejects if it fails or was stopped. */
export type AskModel = <Result>(
  what: string,
  ask: (signal: AbortSignal) => Promise<Result>,
) => Promise<Result>;

/** Asks for the goal of a new plan. Undefined if the person closed the question. */
export async function askGoal(): Promise<string | undefined> {
  const goal = await askText({
    title: vscode.l10n.t('New Plan'),
    prompt: vscode.l10n.t('What do you want to build? One sentence is enough; Telos asks for details.'),
  });
  return goal?.trim() || undefined;
}

/** What going on with a plan needs. */
export interface GoingOn {
  ask: AskModel;
  /** Shows the card, on which the plan is accepted and run. */
  showCard: () => Promise<void>;
  /** Where the interview asks. Without one, it is left open. */
  stage?: ChatStage | undefined;
}

/** Does what comes next for a plan that has no stories yet, up to where the person decides. Returns what waits, in a sentence. */
export async function goOn(plan: Plan, { ask, showCard, stage }: GoingOn): Promise<string> {
  const name = plainLabel(plan.name);
  const { t } = vscode.l10n;
  for (;;) {
    switch ((await plan.look()).state.phase) {
      case 'interviewing':
        if (!stage || !(await interview(plan, ask, stage)))
          return t('The interview waits. It goes on when you run the plan {0}.', name);
        break;
      case 'planning': {
        const comments = await openComments(plan);
        await ask(t('Writing the plan {0}', name), signal => plan.write(signal, comments));
        break;
      }
      case 'plan_review':
        await openPlanFile(plan);
        return t(
          'The plan {0} is written. Approve plan.md above its first line, or request changes there.',
          name,
        );
      case 'splitting':
        await ask(t('Splitting {0} into stories', name), signal => plan.split(signal));
        break;
      case 'stories_review':
        await showCard();
        return t('{0} waits for your approval.', name);
      default:
        return '';
    }
  }
}

/** Shows plan.md if there is one. */
async function openPlanFile({ folder }: Plan): Promise<void> {
  // Read first: the engine refuses a file that is reached through a link.
  if (folder.read('plan.md') === undefined) return;
  await vscode.window.showTextDocument(vscode.Uri.file(folder.path('plan.md')), { preview: true });
}

/** Returns what the person wants changed in plan.md and what was not done yet. */
async function openComments({ folder }: Plan): Promise<readonly string[]> {
  const lines = await readJournal(folder.journal, folder.seal);
  const last = lines.findLast(({ type }) => type === 'plan_reviewed' || type === 'plan_written');
  return last?.type === 'plan_reviewed' && last.decision === 'changes' ? last.comments : [];
}

/** Asks one round. Returns false if the person left the form; then *Run Plan* goes on with the same questions. */
async function interview(plan: Plan, ask: AskModel, stage: ChatStage): Promise<boolean> {
  const said = vscode.l10n.t('Asking what must be known for {0}', plainLabel(plan.name));
  const rounds = (await readJournal(plan.folder.journal, plan.folder.seal)).filter(
    line => line.type === 'interview_round',
  );
  const last = rounds.at(-1)?.questions ?? [];
  const isOpen = last.length > 0 && isUnanswered(plan.transcript, last[0] ?? '');
  const noMoreQuestions = !isOpen && rounds.length >= mostRounds;
  const round = isOpen
    ? { questions: last, ready: false }
    : await ask(said, signal => plan.interview({ noMoreQuestions }, signal));
  if (round.ready) return true;
  const given = await askRound(round.questions, isOpen ? rounds.length : rounds.length + 1, stage);
  if (!given) return false;
  await plan.answer(round.questions, given.answers);
  if (given.isEnough) await ask(said, signal => plan.interview({ noMoreQuestions: true }, signal));
  return true;
}

/** The field that says that no more questions are wanted. */
const enough = 'enough';

/** Asks all questions of a round in one form. Returns undefined if the person left it. */
async function askRound(
  questions: readonly string[],
  round: number,
  stage: ChatStage,
): Promise<{ answers: string[]; isEnough: boolean } | undefined> {
  const { t } = vscode.l10n;
  const decision = await stage.ask({
    callId: randomUUID(),
    token: newToken(),
    tool: 'plan_interview',
    scopes: ['once'],
    subject: t('Questions, part {0} of at most {1}', round, mostRounds),
    rule: 'plan.interview',
    reason: t('Telos decides anything you leave empty.'),
    form: [
      ...questions.map(fieldOf),
      { kind: 'switch', name: enough, title: t('Start Planning'), isRequired: false, isButton: true },
    ],
  });
  stage.signal.throwIfAborted();
  if (!decision.allow) return undefined;
  const { content = {} } = decision;
  return {
    answers: questions.map((_, at) => String(content[`answer-${at}`] ?? '')),
    isEnough: content[enough] === true,
  };
}

function fieldOf(question: string, at: number): FormField {
  const { text, suggestion } = suggestionIn(question);
  const decide = { value: '', label: vscode.l10n.t('Decide for me') };
  return {
    kind: 'text',
    name: `answer-${at}`,
    title: text,
    isRequired: false,
    ...(suggestion !== undefined && { initial: suggestion }),
    offers: [...(suggestion === undefined ? [] : [{ value: suggestion, label: suggestion }]), decide],
  };
}

/** Returns the question without the answer that the interviewer suggests in brackets at its end, and that answer. */
function suggestionIn(question: string): { text: string; suggestion?: string } {
  const [, text, suggestion] =
    /^(.+?)\s*\((?:suggested|suggestion|suggested answer|default): ?([^()]{1,200})\)[.?]?\s*$/is.exec(
      question,
    ) ?? [];
  return text && suggestion ? { text, suggestion: suggestion.trim() } : { text: question };
}
