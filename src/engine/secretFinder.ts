/** Finds a secret, or a part of one, in a text, even if it was hidden on purpose. */
import { beginningAt, formsOf, shortestSecret } from './secretForms.ts';

/** This number of letters and digits of a long secret in a row is not chance. */
const telling = 16;
/** This number is not chance either if upper case, lower case and digits alternate as in no word. */
const tellingMixed = 12;

/** Returns the letters and digits only. Characters between them only hide them. */
const bare = (text: string): string => text.replace(/[^a-z\d]/gi, '');

/** Returns the form without its host. An address that is a secret is recognized by the part after its host. */
const withoutHost = (form: string): string => form.replace(/^[a-z][\w+.-]*:\/\/[^/]*/i, '');

/** Returns the secret without the first and last line of a key. These are the same in every key. */
const withoutFrames = (secret: string): string =>
  secret.replace(/-----(?:BEGIN|END) [A-Z\d ]{1,40}-----/g, '');

const reversed = (text: string): string => [...text].reverse().join('');

const rot13 = (text: string): string =>
  text.replace(/[a-z]/gi, letter => {
    const code = letter.charCodeAt(0);
    return String.fromCharCode(code + ((code & 31) <= 13 ? 13 : -13));
  });

/** Yields every piece of that length, in lower case. */
function* piecesOf(
  form: string,
  length: number,
  isTelling = (_piece: string): boolean => true,
): Generator<string> {
  const text = bare(withoutHost(form));
  for (let at = 0; at + length <= text.length; at++) {
    const piece = text.slice(at, at + length);
    if (isTelling(piece)) yield piece.toLowerCase();
  }
}

const isMixed = (piece: string): boolean =>
  (piece.match(/[a-z](?=[A-Z\d])|[A-Z](?=\d)|\d(?=[A-Za-z])/g)?.length ?? 0) >= 3;

const turned = (text: string): string[] => [reversed(text), rot13(text), reversed(rot13(text))];

/** Returns every piece that identifies one of the secrets in a text, in lower case. */
function tellingPieces(secrets: readonly string[]): Set<string> {
  const inBase64 = secrets
    .map(secret => Buffer.from(secret).toString('base64'))
    .filter(form => form.length >= telling);
  const plain = secrets.map(withoutHost);
  const pieces = new Set<string>();
  const add = (forms: readonly string[], length: number, isTelling?: typeof isMixed): void => {
    for (const form of forms) for (const piece of piecesOf(form, length, isTelling)) pieces.add(piece);
  };
  add([...formsOf([...secrets, ...inBase64]), ...[...plain, ...inBase64].flatMap(turned)], telling);
  add([...plain, ...plain.flatMap(turned)], tellingMixed, isMixed);
  return pieces;
}

/**
 * Returns a function that finds one of the secrets, or a telling piece of a long one, in a text.
 * Finds any spelling of `formsOf`, base64 of base64, another case, reversed text and ROT13.
 * Also finds letters with something between them, and text under up to three layers of percent escapes.
 */
export function secretFinder(secrets: readonly string[]): (text: string) => boolean {
  const written = secrets.map(secret => withoutFrames(secret).trim()).filter(Boolean);
  const long = written.filter(({ length }) => length >= shortestSecret);
  // A form with many letters is found by its pieces.
  const whole = [...formsOf(written), ...long.flatMap(turned)]
    .filter(form => bare(withoutHost(form)).length < telling)
    .map(form => form.toLowerCase());
  // Made at the first address, which most runs do not have.
  let pieces: Set<string> | undefined;
  const beginnings = new Uint8Array(1 << 16);
  const holdsPiece = (text: string): boolean => {
    const letters = bare(text).toLowerCase();
    if (!pieces) {
      pieces = tellingPieces(long);
      for (const piece of pieces) beginnings[beginningAt(piece, 0)] = 1;
    }
    for (let at = 0; at + tellingMixed <= letters.length; at++) {
      if (beginnings[beginningAt(letters, at)] === 0) continue;
      if (pieces.has(letters.slice(at, at + tellingMixed))) return true;
      if (pieces.has(letters.slice(at, at + telling))) return true;
    }
    return false;
  };
  return text => {
    if (long.length === 0) return false;
    let unescaped = text;
    for (let layer = 0; layer < 4; layer++) {
      const lower = unescaped.toLowerCase();
      if (whole.some(form => lower.includes(form)) || holdsPiece(unescaped)) return true;
      const next = withoutPercents(unescaped);
      if (next === unescaped) return false;
      unescaped = next;
    }
    return false;
  };
}

/** Decodes percent escapes. Escapes that are not text are left as they are. */
function withoutPercents(text: string): string {
  return text.replace(/(?:%[\da-f]{2})+/gi, escapes => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      return escapes;
    }
  });
}
