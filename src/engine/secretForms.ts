/** Lists the spellings of a secret, and finds them in a text, even in parts or hidden on purpose. */

/**
 * Minimum length of a secret. Shorter values are ordinary words too often.
 * Replacing them would garble text without hiding anything.
 */
export const shortestSecret = 8;

/**
 * Minimum length of a line of a secret of several lines. A shorter line may be anything.
 * One of this length identifies the secret by itself.
 */
const shortestLine = 24;

/** Returns all spellings of the secrets, longest first, so that no shorter one leaves a tail behind. */
export function formsOf(secrets: readonly string[]): string[] {
  const forms = new Set<string>();
  for (const secret of secrets) {
    for (const value of [secret, secret.trim(), ...linesOf(secret)]) {
      if (value.length >= shortestSecret) for (const form of spellings(value)) forms.add(form);
    }
  }
  return [...forms].filter(form => form.length >= shortestSecret).sort((a, b) => b.length - a.length);
}

/**
 * Returns the long lines of a secret of several lines, such as a private key.
 * Variables may also contain line ends as `\n` in two characters.
 */
function linesOf(secret: string): string[] {
  const lines = secret.split(/[\r\n]+|(?:\\r)?\\n/).map(line => line.trim());
  return lines.length > 1 ? lines.filter(line => line.length >= shortestLine) : [];
}

function spellings(secret: string): string[] {
  const url = encodeURIComponent(Buffer.from(secret).toString());
  const form = new URLSearchParams({ s: secret }).toString().slice(2);
  const base64 = [0, 1, 2].map(shift => base64Inside(secret, shift));
  base64.push(Buffer.from(secret).toString('base64'));
  const hex = Buffer.from(secret).toString('hex');
  return [
    secret,
    JSON.stringify(secret).slice(1, -1),
    ...[hex, hex.toUpperCase()],
    ...[url, form].flatMap(text => [text, text.replace(/%../g, hex => hex.toLowerCase())]),
    ...base64.flatMap(text => [text, text.replaceAll('+', '-').replaceAll('/', '_')]),
  ];
}

/**
 * Returns the characters that stay the same wherever the secret is in a longer base64 text.
 * The secret begins `shift` bytes after the start of a group.
 */
function base64Inside(secret: string, shift: number): string {
  const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(secret)]);
  const whole = Math.floor((bytes.length * 8) / 6);
  return bytes.toString('base64').slice(shift === 0 ? 0 : shift + 1, whole);
}

export interface FormMatch {
  index: number;
  length: number;
}

/**
 * Finds forms in a text from left to right, the longest at each place, none inside another.
 * `forms` have at least eight characters each and are sorted longest first.
 * A pattern of all of them would be slow, and too large for a key of many lines.
 */
export function formMatcher(forms: readonly string[]): (text: string) => Generator<FormMatch, void> {
  const byHead = new Map<string, string[]>();
  const beginnings = new Uint8Array(1 << 16);
  for (const form of forms) {
    const head = form.slice(0, shortestSecret);
    const those = byHead.get(head);
    if (those) those.push(form);
    else byHead.set(head, [form]);
    beginnings[beginningAt(form, 0)] = 1;
  }
  // In the loop, a function that uses its index would cost memory for every character.
  const formAt = (text: string, index: number): string | undefined =>
    byHead
      .get(text.slice(index, index + shortestSecret))
      ?.find(candidate => text.startsWith(candidate, index));
  return function* (text) {
    for (let index = 0; index + shortestSecret <= text.length; index++) {
      if (beginnings[beginningAt(text, index)] === 0) continue;
      const form = formAt(text, index);
      if (form === undefined) continue;
      yield { index, length: form.length };
      index += form.length - 1;
    }
  };
}

/** Returns a number of 16 bits, the same for the same three characters. */
const beginningAt = (text: string, at: number): number =>
  ((text.charCodeAt(at) << 10) ^ (text.charCodeAt(at + 1) << 5) ^ text.charCodeAt(at + 2)) & 0xffff;

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
