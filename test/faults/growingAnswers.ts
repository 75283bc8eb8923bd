/**
 * Answers on Discord that grow by random pieces, to a Discord that is slow and fails at times: what is shown never goes back, no message
 * is too long, no character is cut, and in the end all of it is there, in no message too many.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { GrowingAnswer, type Sender } from '../../src/bot/growingAnswer.ts';
import { answerText, mostCharacters, splitMessage } from '../../src/bot/messageText.ts';
import { hasUnpairedSurrogate } from '../fakes/refusals.ts';
import { type Extent, type Figure, seeded } from './figure.ts';
import type { Given } from './measurements.ts';
import { type Dice, diceOf } from './randomModel.ts';

/** A mark of a fence with a word that nothing else has, since it is said again in the next message. */
const fences = ['```§\n', '\n```\n', '~~~~\n', '````§\n'];
const pieces = [
  'word ',
  'longer words here ',
  '\n\n',
  '\n',
  '\r\n',
  '\r',
  'const a = 1;\n',
  '😀',
  '👩‍👩‍👧',
  '\u202e',
  '| a | b |\n',
  '# head\n',
  '<@123> ',
  '**bold** ',
  '> quote\n',
  '- item\n',
  '   ',
];

interface Seen {
  answers: number;
  messages: number;
  edits: number;
  longest: number;
  problems: string[];
}

export async function growingFigures(extent: Extent, { seed }: Given): Promise<Figure[]> {
  const [answers, texts] = extent === 'whole' ? [300, 3_000] : [10, 50];
  const seen: Seen = { answers: 0, messages: 0, edits: 0, longest: 0, problems: [] };
  // They only wait for their pace.
  await Promise.all(
    Array.from({ length: answers }, (_, at) => grow(seed * 1_000 + at, extent === 'whole' ? 25 : 3, seen)),
  );
  const splits = Array.from({ length: texts }, (_, at) => splitProblems(seed * 10_000 + at)).flat();
  const figure = (name: string, on: string, found: readonly string[]): Figure => ({
    name,
    value: `seed ${seed}: ${on}: ${found.length}${found.length > 0 ? ` (${found.slice(0, 3).join('; ')})` : ''}`,
    limit: 'none',
    met: found.length === 0,
  });
  return [
    figure(
      'a growing answer on Discord: goes back, is too long, is cut or loses something',
      `${seen.answers} answers in ${seen.messages} messages with ${seen.edits} edits, the longest of ${seen.longest} characters`,
      seen.problems,
    ),
    figure('texts that are divided anew as they grow', `${texts} texts, piece by piece`, splits),
  ];
}

/** Returns what draws any piece. One text in three has no line ends, so that messages end within words and characters. */
function piecesOf(dice: Dice): () => string {
  const hasLines = !dice.oneIn(3);
  return () => (hasLines ? pieceOf(dice) : pieceOf(dice).replace(/[`~§\r\n]+/g, ' '));
}

const pieceOf = (dice: Dice): string => {
  if (dice.oneIn(12)) return dice.oneOf(fences);
  if (dice.oneIn(10)) return 'x'.repeat(1 + dice.below(700));
  if (dice.oneIn(40)) return '😀'.repeat(1 + dice.below(400));
  return dice.oneOf(pieces);
};

/** Everything but the marks of fences and white space, which dividing adds or leaves out. */
const bareText = (text: string): string => text.replace(/[`~§\s\u200b]/g, '');

async function grow(seed: number, seconds: number, seen: Seen): Promise<void> {
  const dice = diceOf(seeded(seed));
  const shown = new Shown(dice, problem => seen.problems.push(`answer ${seed}: ${problem}`));
  const answer = new GrowingAnswer(shown, { channel: 'c' });
  const next = piecesOf(dice);
  let text = '';
  // Some begin so that the pace falls on other places.
  await delay(dice.below(1_000));
  const steps = 4 + dice.below(Math.max(1, seconds * 2));
  for (let step = 0; step < steps; step++) {
    for (let count = dice.below(30); count > 0; count--) {
      const piece = next();
      text += piece;
      answer.add(piece);
    }
    if (dice.oneIn(6)) answer.state(dice.oneOf(['reads a file', '**__::@@'.repeat(20)]));
    if (dice.oneIn(10)) {
      answer.pause();
      text += '\n';
    }
    await delay(dice.below(900));
  }
  await answer.end('Done');
  const bare = bareText(answerText(text));
  if (bareText(shown.text()) !== bare) shown.tell('in the end it is not what was said');
  seen.answers++;
  seen.messages += shown.messages.length;
  seen.edits += shown.edits;
  seen.longest = Math.max(seen.longest, shown.longest);
}

/** What a reader sees. Judges each change. */
class Shown implements Sender {
  readonly messages: string[] = [];
  readonly tell: (problem: string) => void;
  readonly #dice: Dice;
  /** The most that was shown. */
  #shown = '';
  #isBehind = false;
  edits = 0;
  longest = 0;

  constructor(dice: Dice, tell: (problem: string) => void) {
    this.#dice = dice;
    this.tell = tell;
  }

  /** All messages without the line of the state. */
  text(): string {
    return this.messages.map(message => message.replace(/(?:^|\n)-# .*$/, '')).join('\n');
  }

  async post(_channel: string, { content }: { content: string }): Promise<string> {
    await this.#request();
    this.#change(content, () => this.messages.push(content));
    return String(this.messages.length - 1);
  }

  async edit(_channel: string, id: string, { content = '' }: { content?: string }): Promise<void> {
    await this.#request();
    this.edits++;
    const at = Number(id);
    if (at < this.messages.length - 1) this.tell(`message ${at + 1} changes when the next one is there`);
    this.#change(content, () => {
      this.messages[at] = content;
    });
  }

  async #request(): Promise<void> {
    await delay(this.#dice.below(200));
    if (this.#dice.oneIn(30)) throw new Error('socket hang up');
  }

  #change(content: string, make: () => void): void {
    make();
    const now = bareText(this.text());
    const isBehind = !now.startsWith(this.#shown);
    if (isBehind && this.#isBehind) this.tell('what was shown goes back');
    // A line that no longer fits moves on: the very next change shows it in the next message.
    this.#isBehind = isBehind;
    if (!isBehind) this.#shown = now;
    if (content.length > mostCharacters) this.tell(`a message has ${content.length} characters`);
    if (hasUnpairedSurrogate(content)) this.tell('a character is cut in half');
    if (content.trim() === '') this.tell('a message is empty');
    this.longest = Math.max(this.longest, content.length);
  }
}

/** Of a text that grows, all messages but the last one stay, and their number never falls. */
function splitProblems(seed: number): string[] {
  const dice = diceOf(seeded(seed));
  const next = piecesOf(dice);
  let text = '';
  let before: readonly string[] = [];
  for (let count = 0; count < 200; count++) {
    text += next();
    // Half of a line end is not shown.
    const parts = splitMessage(answerText(text.replace(/\r$/, '')));
    const changed = before.slice(0, -1).findIndex((part, at) => part !== parts[at]);
    if (changed >= 0 || parts.length < before.length)
      return [`text ${seed}, piece ${count + 1}: ${before.length} messages became ${parts.length}`];
    if (hasUnpairedSurrogate(parts)) return [`text ${seed}: a character is cut in half`];
    before = parts;
  }
  return [];
}
