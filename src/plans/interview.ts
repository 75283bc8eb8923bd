/** Asks what must be known before a plan is written: the words of a round, its answer, and the transcript that grows with it. */

import { TelosError } from '@telos/engine/errors';
import type { JsonObject } from '@telos/protocol/run';
import { sentence } from '@telos/protocol/text';

export interface InterviewRound {
  /** Empty if enough is known. */
  questions: readonly string[];
  /** True if a plan can be written. */
  ready: boolean;
}

/** Questions of one round, and rounds with questions before a plan is written anyway. */
const mostQuestions = 5;
export const mostRounds = 4;
/** In characters. A longer transcript is a mistake of the caller, and would cost a person dearly. */
const longestTranscript = 400_000;

/** Asks the interviewer one thing and returns what it said: the input of its last `submit_round`, or else its text. */
export type AskInterviewer = (words: string) => Promise<{ submitted?: JsonObject; text: string }>;

/** Runs the rounds of one interview. It keeps the latest transcript, so that a plan is written from that one. */
export class Interview {
  readonly #ask: AskInterviewer;
  #transcript = '';
  #rounds: number;

  /** `rounds` counts those that have asked something before, which an earlier process may have done. */
  constructor(ask: AskInterviewer, rounds = 0) {
    this.#ask = ask;
    this.#rounds = rounds;
  }

  /** The latest transcript. Empty before the first round. */
  get transcript(): string {
    return this.#transcript;
  }

  /**
   * Returns further questions, or that a plan can be written. `noMoreQuestions` asks no model. Throws TelosError if the model fails,
   * or if its answer says neither.
   */
  async processRound(transcript: string, noMoreQuestions = false): Promise<InterviewRound> {
    if (transcript.length > longestTranscript)
      throw new TelosError('config', [
        sentence(
          'The transcript has {0} characters; the maximum is {1}.',
          transcript.length,
          longestTranscript,
        ),
        sentence('Shorten it.'),
      ]);
    this.#transcript = transcript;
    if (noMoreQuestions || this.#rounds >= mostRounds) return { questions: [], ready: true };
    const { submitted, text } = await this.#ask(roundWords(transcript));
    const round = submitted ? roundIn(submitted) : parseRound(text);
    if (round.ready) return { questions: [], ready: true };
    if (round.questions.length === 0)
      throw new TelosError('provider', [
        sentence('The interviewer neither asked a question nor said that it is done.'),
        sentence('Ask again, or continue without more questions.'),
      ]);
    this.#rounds++;
    return { ...round, questions: round.questions.slice(0, mostQuestions) };
  }
}

const roundWords = (transcript: string): string =>
  [
    'This is what the person has said so far:',
    `<transcript>\n${transcript}\n</transcript>`,
    'Decide whether a plan can be written from this and from what you find in the project. Look before you ask: do not ask what the files answer.',
    `Call submit_round once: with ready true, or with two to ${mostQuestions} questions whose answers would change the architecture or the scope. Where you have no tools, answer with one JSON object instead: {"ready": false, "questions": ["…"]}.`,
  ].join('\n\n');

/**
 * Returns the round that a model's text has: a JSON object with `ready` or `questions` anywhere in it, also in the result of a
 * command line's JSON. A text without one is not ready and asks nothing. Throws TelosError `provider` for the result of a failed call.
 */
export function parseRound(output: string): InterviewRound {
  const envelope = objectFrom(output);
  if (envelope?.['is_error'] === true)
    throw new TelosError('provider', [
      sentence('The interviewer failed: {0}', String(envelope['result'] ?? '')),
    ]);
  const result = envelope && 'result' in envelope ? envelope['result'] : output;
  if (isObject(result)) return roundIn(result);
  const found = objectsIn(String(result)).find(object => 'ready' in object || 'questions' in object);
  return found ? roundIn(found) : { questions: [], ready: false };
}

function roundIn({ questions, ready }: JsonObject): InterviewRound {
  const list = Array.isArray(questions) ? questions : questions === undefined ? [] : [questions];
  const asked = list.filter(one => typeof one === 'string').map(one => one.trim());
  return { questions: asked.filter(Boolean), ready: ready === true };
}

/** Returns the first JSON object in a text, be it in prose or fenced, or undefined if it has none. */
export const jsonIn = (text: string): JsonObject | undefined => objectsIn(text)[0];

/** Objects of a text that are looked at. A text of nothing but braces would otherwise take quadratic time. */
const mostTries = 200;

/** Returns the JSON objects in a text, in their order. What is in braces and no JSON is passed over. */
function objectsIn(text: string): JsonObject[] {
  const found: JsonObject[] = [];
  let tries = 0;
  for (let at = text.indexOf('{'); at >= 0 && tries < mostTries; tries++) {
    const end = endOfObject(text, at);
    const object = end === undefined ? undefined : objectFrom(text.slice(at, end));
    if (object) found.push(object);
    at = text.indexOf('{', object && end !== undefined ? end : at + 1);
  }
  return found;
}

/** Returns the index after the brace that closes the one at `start`. Braces within strings do not count. */
function endOfObject(text: string, start: number): number | undefined {
  let depth = 0;
  let inString = false;
  for (let at = start; at < text.length; at++) {
    const sign = text[at];
    if (inString && sign === '\\') at++;
    else if (sign === '"') inString = !inString;
    else if (!inString && sign === '{') depth++;
    else if (!inString && sign === '}' && --depth === 0) return at + 1;
  }
  return undefined;
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function objectFrom(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the transcript with which an interview begins. */
export const openTranscript = (goal: string): string =>
  `North Star: ${oneLine(goal)}\n\nSummary: ${goal.trim()}\n`;

/**
 * Returns the transcript with the answers to further questions. An answer that is missing or skips the question leaves the choice to the
 * planner. Without answers, the questions wait for them.
 */
export function withAnswers(
  transcript: string,
  questions: readonly string[],
  answers: readonly string[] | undefined,
): string {
  const pairs = questions.map((question, index) => {
    const answer = answers?.[index]?.trim() ?? '';
    const said = answer === '' || isSkip(answer) ? leftOpen : oneLine(answer);
    return `Q: ${oneLine(question)}\nA: ${answers ? said : ''}\n`;
  });
  // Those that wait there already are not there twice.
  const others = questions.reduce(
    (sofar, question) => sofar.replaceAll(`\nQ: ${oneLine(question)}\nA: \n`, ''),
    transcript,
  );
  return [`${others.trimEnd()}\n`, ...pairs].join('\n');
}

/** Whether the question still waits for an answer in the transcript. */
export const isUnanswered = (transcript: string, question: string): boolean =>
  !transcript
    .split(`Q: ${oneLine(question)}\nA:`)
    .slice(1)
    .some(behind => (behind.split('\n')[0] ?? '').trim() !== '');

const leftOpen = 'Decide for me.';

/** Returns the transcript in which each question without an answer is left to the planner. */
export const decided = (transcript: string): string => transcript.replace(/^A:[^\S\n]*$/gm, `A: ${leftOpen}`);

/** A line break could pose as a question or an answer of its own. */
const oneLine = (text: string): string => text.trim().replace(/\s*[\r\n\u2028\u2029]+\s*/g, ' ');

/** Answers that skip a question, without blanks and apostrophes. */
const skips = new Set(
  [
    'no idea,idk,i dont know,dont know,not sure,im not sure,no clue,i have no idea',
    'skip,pass,next,whatever,doesnt matter,doesn matter,i dont care,no preference,none,nah,na,n/a,decide for me',
  ]
    .join()
    .replaceAll(' ', '')
    .split(','),
);

/** Returns true if an answer only says that the person leaves the question to someone else. */
export const isSkip = (answer: string): boolean => skips.has(answer.toLowerCase().replace(/[\s'’]/g, ''));

/** Returns true for the address of a repository on GitHub that can be cloned: `https://github.com/<owner>/<name>`. */
export function isRepositoryUrl(url: string): boolean {
  const names = /^https:\/\/github\.com\/([\w.-]+)\/([\w.-]+)$/.exec(url);
  if (!names || url.endsWith('\n')) return false;
  return names.slice(1).every(name => !/^\.+$/.test(name.replace(/\.git$/, '') || '.'));
}
