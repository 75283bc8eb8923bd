/** Writes into the source of a plan that was taken over what is done by now. Nothing else of the source changes. */

import { randomUUID } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { TelosError } from '@telos/engine/errors';
import { fileProblem, PathProblem, readRegularFile, replaceFile } from '@telos/engine/files';
import type { ChangeStore } from '@telos/engine/undo';
import { asSaid, sentence } from '@telos/protocol/text';
import type { Adopted, AdoptedStory, DoneMark } from './adopt.ts';
import type { PlanState } from './planState.ts';
import { isOver, type StoryState } from './storyState.ts';

/** A mark that is to be set, and the words that it stands beside. */
export interface WantedMark {
  mark: DoneMark;
  story: string;
  text: string;
}

/** Returns the marks that the plan has earned and its source does not have, and the stories that the source words otherwise. */
export function wantedMarks(
  { stories }: Adopted,
  state: PlanState,
): { wanted: WantedMark[]; unknown: string[] } {
  const wanted: WantedMark[] = [];
  const unknown: string[] = [];
  for (const one of stories) {
    const known = state.story(one.story.id);
    if (!known || !isSame(one, known)) {
      unknown.push(one.story.title);
      continue;
    }
    const { id, title, items } = known.story;
    const isWhole = isDone(known, state);
    const set = (mark: DoneMark | undefined, text: string): void => {
      if (mark && !mark.done) wanted.push({ mark, story: id, text });
    };
    for (const [at, { number, text }] of items.entries())
      if (isWhole || known.passed.has(number) || known.accepted.has(number)) set(one.marks[at], text);
    if (isWhole) set(one.mark, title);
  }
  return { wanted, unknown };
}

function isSame({ story }: AdoptedStory, known: StoryState): boolean {
  const words = ({ title, items }: AdoptedStory['story']) => [title, ...items.map(({ text }) => text)];
  return isDeepStrictEqual(words(story), words(known.story));
}

/** What was left out is not done. What was split is done with all of its parts. */
function isDone({ status, into }: StoryState, state: PlanState): boolean {
  if (!into || into.length === 0) return isOver(status) && status !== 'skipped';
  return into.every(id => {
    const part = state.story(id);
    return part !== undefined && isDone(part, state);
  });
}

/**
 * Sets the marks, and returns the id by which the change can be undone. Throws TelosError `config` if a file has changed since it was
 * read or cannot be written; files before it are written then.
 */
export async function writeMarks(wanted: readonly WantedMark[], changes: ChangeStore): Promise<string> {
  const id = randomUUID();
  const keeper = changes.keeper(id);
  const plans = [...new Set(wanted.map(({ mark }) => mark.file))].map(file => {
    try {
      const path = realpathSync(file);
      const marks = wanted.flatMap(({ mark }) => (mark.file === file ? [mark] : []));
      return { path, bytes: withMarks(readRegularFile(path), marks, file) };
    } catch (error) {
      if (error instanceof TelosError) throw error;
      throw new TelosError('config', [fileProblem(error, file)], { cause: error });
    }
  });
  for (const { path, bytes } of plans) {
    try {
      await replaceFile(path, bytes, keeper);
    } catch (error) {
      if (!(error instanceof PathProblem)) throw error;
      throw new TelosError('config', [asSaid(error.message)], { cause: error });
    }
  }
  return id;
}

/** Works on bytes, so that whatever else is in the file stays as it is. Each byte is one character of `text`. */
function withMarks(bytes: Buffer, marks: readonly DoneMark[], file: string): Buffer {
  let text = bytes.toString('latin1');
  const places = marks.map(({ at }) => placeOf(text, at));
  if (places.some(place => place === undefined))
    throw new TelosError('config', [
      sentence('{0} has changed since it was read.', file),
      sentence('Nothing was written; try again.'),
    ]);
  const sorted = places.flatMap(place => place ?? []).sort((one, other) => other.from - one.from);
  for (const { from, to, word } of sorted) text = text.slice(0, from) + word + text.slice(to);
  return Buffer.from(text, 'latin1');
}

interface Place {
  from: number;
  to: number;
  word: string;
}

function placeOf(text: string, at: DoneMark['at']): Place | undefined {
  if ('path' in at) {
    const found = valuesIn(text).get(JSON.stringify(at.path));
    return found && { ...found, word: JSON.stringify(at.done) };
  }
  let start = 0;
  for (let line = 0; line < at.line; line++) {
    start = text.indexOf('\n', start) + 1;
    if (start === 0) return undefined;
  }
  const from = text.indexOf('[', start) + 1;
  return text.slice(from, from + 2) === ' ]' ? { from, to: from + 1, word: 'x' } : undefined;
}

/** Returns where JSON has its texts, numbers and words, by their paths. Of values with the same path the last counts, as for a parser. */
function valuesIn(text: string): Map<string, { from: number; to: number }> {
  const found = new Map<string, { from: number; to: number }>();
  const path: (string | number)[] = [];
  let isKey = false;
  for (const { 0: token, index } of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/gs)) {
    const last = path.length - 1;
    switch (token) {
      case '{':
      case '[':
        path.push(token === '{' ? '' : 0);
        isKey = token === '{';
        break;
      case '}':
      case ']':
        path.pop();
        isKey = false;
        break;
      case ',':
        if (typeof path[last] === 'number') path[last] += 1;
        else isKey = true;
        break;
      case ':':
        isKey = false;
        break;
      default:
        if (isKey) path[last] = JSON.parse(Buffer.from(token, 'latin1').toString('utf8'));
        else found.set(JSON.stringify(path), { from: index, to: index + token.length });
    }
  }
  return found;
}
