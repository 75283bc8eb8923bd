/** Tells whether a text holds a secret, or a part of one, also where somebody has hidden it. */
import { beginningAt, formsOf, shortestSecret } from './secretForms.ts';

/** So many letters and digits of a long secret in a row are no chance. */
const telling = 16;
/** So many are none either where letters of both cases and digits take turns, as they do in no word. */
const tellingMixed = 12;

/** Letters and digits alone: what stands between them only hides what they are. */
const bare = (text: string): string => text.replace(/[^a-z\d]/gi, '');

/** An address that is a secret is told by what comes behind its host. */
const withoutHost = (form: string): string => form.replace(/^[a-z][\w+.-]*:\/\/[^/]*/i, '');

/** First and last line of a key are the same in every key. */
const withoutFrames = (secret: string): string =>
  secret.replace(/-----(?:BEGIN|END) [A-Z\d ]{1,40}-----/g, '');

const reversed = (text: string): string => [...text].reverse().join('');

const rot13 = (text: string): string =>
  text.replace(/[a-z]/gi, letter => {
    const code = letter.charCodeAt(0);
    return String.fromCharCode(code + ((code & 31) <= 13 ? 13 : -13));
  });

/** Every piece of that length, in lower case. */
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

/** Every piece by which a text is known to hold one of the secrets, in lower case. */
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
 * Says whether a text holds one of the secrets, or a telling piece of a long one: in any of those spellings, in base64 of base64, in another case,
 * backwards, in ROT13, with something between the letters, or behind up to three layers of percent escapes.
 */
export function secretFinder(secrets: readonly string[]): (text: string) => boolean {
  const written = secrets.map(secret => withoutFrames(secret).trim()).filter(Boolean);
  const long = written.filter(({ length }) => length >= shortestSecret);
  // What has many letters is found by its pieces.
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

/** Escapes that are no text are left as they stand. */
function withoutPercents(text: string): string {
  return text.replace(/(?:%[\da-f]{2})+/gi, escapes => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      return escapes;
    }
  });
}
