/** Lists the spellings of a secret and finds them in a text. One pass, however many there are. */

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
  return function* (text) {
    for (let index = 0; index + shortestSecret <= text.length; index++) {
      if (beginnings[beginningAt(text, index)] === 0) continue;
      const form = byHead
        .get(text.slice(index, index + shortestSecret))
        ?.find(candidate => text.startsWith(candidate, index));
      if (form === undefined) continue;
      yield { index, length: form.length };
      index += form.length - 1;
    }
  };
}

/** Returns a number of 16 bits, the same for the same three characters. */
export const beginningAt = (text: string, at: number): number =>
  ((text.charCodeAt(at) << 10) ^ (text.charCodeAt(at + 1) << 5) ^ text.charCodeAt(at + 2)) & 0xffff;
