/** Turns events into what a screen reader announces: whole sentences, no tokens, no code. Pure. */
import { describeQuestion, describeRoute, describeWhy, type RunEvent } from '../src/protocol/run.ts';
import { t } from './host.ts';
import { describeOutcome, fitsText } from './wording.ts';

/** Text that was received but is not a complete sentence yet. */
export interface Speech {
  readonly rest: string;
  readonly inCode: boolean;
}

export const initialSpeech: Speech = { rest: '', inCode: false };

/** Returns the sentences to announce now, and the state to keep for later. */
export function announcementsFor(speech: Speech, event: RunEvent): { speech: Speech; say: string[] } {
  if (event.type === 'text') return hearText(speech, event.text);
  const pending = endOfText(speech);
  const announcement = announce(event);
  if (announcement === undefined) return { speech, say: [] };
  return { speech: initialSpeech, say: announcement ? [...pending, announcement] : pending };
}

/**
 * Returns the announcement of an event. Undefined keeps a half sentence waiting; an empty string ends it without further words.
 */
function announce(event: RunEvent): string | undefined {
  switch (event.type) {
    case 'run_start':
      return '';
    case 'routed':
      return [describeRoute(event.agent, event.skill, event.reason, t), fitsText(event.skill, event.reason)]
        .filter(Boolean)
        .map(sentence => `${sentence}.`)
        .join(' ');
    case 'step':
      return `${event.skill}: ${event.detail}`;
    case 'notice':
      return event.message;
    case 'tool_start':
      return '';
    case 'approval_request':
      return `${describeQuestion(event.request, t)} ${describeWhy(event.request, t)}`;
    case 'question_request':
      return event.questions.join(' ');
    case 'retry':
      return t('Waiting: {0}', event.why);
    case 'run_end':
      return event.error
        ? `${describeOutcome(event.outcome)}: ${event.error.message}`
        : `${describeOutcome(event.outcome)}.`;
    default:
      return undefined;
  }
}

function hearText(speech: Speech, delta: string): { speech: Speech; say: string[] } {
  let { inCode } = speech;
  let rest = speech.rest + delta;
  const say: string[] = [];
  for (;;) {
    const cut = /\n|[.!?]["')\]]?\s/.exec(rest);
    if (!cut) break;
    const piece = rest.slice(0, cut.index + cut[0].length);
    rest = rest.slice(piece.length);
    if (/^\s*(```|~~~)/.test(piece)) {
      inCode = !inCode;
      if (inCode) say.push(t('Code block.'));
    } else if (!inCode) {
      const words = spoken(piece);
      if (words) say.push(words);
    }
  }
  return { speech: { rest, inCode }, say };
}

function endOfText(speech: Speech): string[] {
  const words = speech.inCode ? '' : spoken(speech.rest);
  return words ? [words] : [];
}

function spoken(markdown: string): string {
  const text = markdown
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/^\s*(#{1,6}\s|[-*+]\s|>\s?|\|)/, '')
    .replace(/[*_`]{1,3}|\|/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return /[\p{L}\p{N}]/u.test(text) ? text : '';
}
