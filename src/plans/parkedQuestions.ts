/** Asks the person during a story, and lets a question wait in the journal if no one is there. */

import { createHash } from 'node:crypto';
import type { Human } from '@telos/engine/run';
import { describeWhy } from '@telos/protocol/describe';
import type { ParkedQuestion, PlanEvent } from '@telos/protocol/plan';
import type { ApprovalDecision, ApprovalRequest } from '@telos/protocol/run';

export interface Parking {
  story: string;
  /** True if no one answers now. */
  isAway: boolean;
  answers: () => ReadonlyMap<string, string>;
  note: (event: PlanEvent) => Promise<unknown>;
  /** Asks the person by their messengers. Resolves to undefined if nobody answers there. */
  askAway: (request: ApprovalRequest, signal: AbortSignal) => Promise<ApprovalDecision | undefined>;
}

/** Returns the same id for the same question of a story, so that it is asked once, and its answer found again. */
const idOf = (story: string, text: string): string =>
  `${story}-${createHash('sha256').update(text).digest('hex').slice(0, 10)}`;

/** Returns the answer; undefined if the question waits now. */
export async function askOrPark(
  human: Human,
  question: Omit<ParkedQuestion, 'id' | 'story'> & { id?: string },
  { story, isAway, answers, note }: Omit<Parking, 'askAway'>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const id = question.id ?? idOf(story, question.text);
  const known = answers().get(id);
  if (known !== undefined) return known;
  const [answer = ''] = isAway ? [] : await human.ask([withChoices(question)], signal);
  if (answer.trim() !== '') return answer;
  if (!signal.aborted) await note({ type: 'question_parked', question: { ...question, id, story } });
  return undefined;
}

/** Returns the question with the answers that there are to choose from. */
export const withChoices = ({ text, choices = [] }: Pick<ParkedQuestion, 'text' | 'choices'>): string =>
  choices.length > 0 ? `${text} (${choices.join(' / ')})` : text;

/** What counts as a yes in a person's answer. */
export const yes = /^\s*(?:y|yes|ja|ok|allow|once)\b/i;

/** Returns a Human for a story. With no one there, what would be asked is noted, refused for now, and waits for its answer. */
export function parkingHuman(human: Human, parking: Parking): Human {
  if (!parking.isAway) return human;
  return {
    isAway: true,
    approve: async (request, signal) => {
      const { tool, subject } = request;
      const text = `May ${parking.story} use ${tool} for this? ${subject}\n${describeWhy(request)}`;
      const id = idOf(parking.story, `${tool}\0${subject}`);
      const elsewhere = parking.answers().has(id) ? undefined : await parking.askAway(request, signal);
      if (elsewhere) return elsewhere;
      const answer = await askOrPark(human, { id, text, choices: ['yes', 'no'], tool }, parking, signal);
      if (answer === undefined)
        return { allow: false, reason: 'No one can answer now. The question waits for the person.' };
      return yes.test(answer)
        ? { allow: true, scope: 'once' }
        : { allow: false, reason: `Denied with this answer: ${answer}` };
    },
    ask: (questions, signal) => human.ask(questions, signal),
  };
}
