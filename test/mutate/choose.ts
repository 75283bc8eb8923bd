/** Chooses breaks by a seed: the same seed and the same sources give the same breaks. */
import { roomOf } from '../importRules.ts';
import { shortName } from '../map.ts';
import type { Break } from './breaks.ts';

/** A break that changes nothing which a user could notice, by the text of its line. */
export interface Equivalent {
  file: string;
  line: string;
  kind: Break['kind'];
  reason: string;
}

/** Returns the files of a room by its name in the map (`chat` is `extension/chat`), or the file itself if a path was given. */
export function filesOf(room: string, files: readonly string[]): string[] {
  return files
    .filter(file => {
      const name = shortName(roomOf(file));
      return file === room || name === room || name.endsWith(`/${room}`);
    })
    .sort();
}

/** Returns at most `count` of the breaks. */
export function chooseBreaks(breaks: readonly Break[], seed: number, count: number): Break[] {
  const random = randomNumbers(seed);
  const left = [...breaks];
  const chosen: Break[] = [];
  while (chosen.length < count && left.length > 0) {
    chosen.push(...left.splice(Math.floor(random() * left.length), 1));
  }
  return chosen;
}

export const isEquivalent = (one: Break, known: readonly Equivalent[]): boolean =>
  known.some(({ file, line, kind }) => file === one.file && line === one.before && kind === one.kind);

/** Returns numbers from 0 up to 1. They depend on the seed alone (a xorshift of 32 bits after a mix). */
function randomNumbers(seed: number): () => number {
  let state = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ (seed >>> 13)) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32;
  };
}
