/** Keeps the values of secrets out of everything that is shown or kept, in whatever form they come by. */
import type { RunEvent } from '../protocol/run.ts';

const redactionMark = '[redacted]';

/** Shorter values are ordinary words too often; replacing them would garble text without hiding anything. */
const shortestSecret = 8;

export interface Redactor {
  text(text: string): string;
  /** From now on these are hidden as well. */
  learn(secrets: readonly string[]): void;
  /** See `secretFinder`. */
  finds(text: string): boolean;
  /** The events without the secrets, a secret that is split over text deltas included. */
  events(events: AsyncIterable<RunEvent>): AsyncIterable<RunEvent>;
}

/**
 * Replaces every secret of at least eight characters with `[redacted]`: as it is, URL-encoded, JSON-escaped, in hexadecimal, and in base64
 * at any alignment inside a longer base64 text, also one that is broken into lines.
 */
export function redactor(secrets: readonly string[]): Redactor {
  const known = new Set(secrets);
  let finder: ((text: string) => boolean) | undefined;
  let pattern = patternOf(formsOf(secrets));
  const text = (original: string): string =>
    pattern ? withoutBroken(original.replace(pattern, redactionMark), pattern) : original;
  return {
    text,
    learn(more) {
      if (more.every(secret => known.has(secret))) return;
      for (const secret of more) known.add(secret);
      finder = undefined;
      pattern = patternOf(formsOf([...known]));
    },
    finds(searched) {
      finder ??= secretFinder([...known]);
      return finder(searched);
    },
    events: events =>
      redactedEvents(
        events,
        text,
        () => streamRedactor([...known]),
        () => known.size,
      ),
  };
}

/** The end of a line, as it is or as JSON writes it, with what indents the next; bounded, so that no text makes it slow. */
const lineBreak = /(?:\r?\n|\\r\\n|\\n)[ \t]{0,40}/g;

/** Without the secrets that are broken into lines, as programs do it with what they encode; indents do not hide them either. */
function withoutBroken(text: string, pattern: RegExp): string {
  const joined = text.replace(lineBreak, '');
  if (joined.length === text.length || joined.search(pattern) < 0) return text;
  const placeOf = placesIn(text);
  let safe = '';
  let done = 0;
  for (const { index, 0: found } of joined.matchAll(pattern)) {
    const begin = placeOf(index);
    const end = placeOf(index + found.length - 1) + 1;
    safe += text.slice(done, begin) + redactionMark;
    done = end;
  }
  return safe + text.slice(done);
}

/** Where in the text stands what stands at a place of it once its lines are joined; to be asked in order. */
function placesIn(text: string): (at: number) => number {
  const breaks = text.matchAll(lineBreak);
  let leftOut = 0;
  let next = breaks.next();
  return at => {
    while (!next.done && next.value.index - leftOut <= at) {
      leftOut += next.value[0].length;
      next = breaks.next();
    }
    return at + leftOut;
  };
}

/** So many letters and digits of a long secret in a row are no chance. */
const telling = 16;

/** Letters and digits alone: what stands between them only hides what they are. */
const bare = (text: string): string => text.toLowerCase().replace(/[^a-z\d]/g, '');

/** Every piece of that length. An address that is a secret is told by what comes behind its host. */
function piecesOf(forms: Iterable<string>): Set<string> {
  const pieces = new Set<string>();
  for (const form of forms) {
    const text = bare(form.replace(/^[a-z][\w+.-]*:\/\/[^/]*/i, ''));
    for (let at = 0; at + telling <= text.length; at++) pieces.add(text.slice(at, at + telling));
  }
  return pieces;
}

/**
 * Says whether a text holds one of the secrets, or a telling piece of a long one: in any of those spellings, in base64 of base64, in another case, with
 * something between the letters, or behind up to three layers of percent escapes.
 */
export function secretFinder(secrets: readonly string[]): (text: string) => boolean {
  const forms = new Set(formsOf(secrets).map(form => form.toLowerCase()));
  // Made at the first address, which most runs do not have.
  let pieces: Set<string> | undefined;
  const holdsPiece = (text: string): boolean => {
    const letters = bare(text);
    const inBase64 = secrets.map(secret => Buffer.from(secret.trim()).toString('base64'));
    pieces ??= piecesOf([...formsOf(secrets), ...formsOf(inBase64.filter(form => form.length >= telling))]);
    for (let at = 0; at + telling <= letters.length; at++)
      if (pieces.has(letters.slice(at, at + telling))) return true;
    return false;
  };
  return text => {
    if (forms.size === 0) return false;
    let unescaped = text;
    for (let layer = 0; layer < 4; layer++) {
      const lower = unescaped.toLowerCase();
      for (const form of forms) if (lower.includes(form)) return true;
      if (holdsPiece(unescaped)) return true;
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

/** By what its name says. */
export const isSecretName = (name: string): boolean =>
  /KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|WEBHOOK|_(PAT|PASS|PWD|AUTH|JWT|COOKIE)$/i.test(
    name,
  );

/** Values of variables that are named like keys, and addresses with a password in them; they must not reach an event, a log or an address. */
export function secretsIn(env: Readonly<Record<string, string>>): string[] {
  return Object.entries(env).flatMap(([name, value]) => {
    if (isSecretName(name)) return [value];
    const login = /^[a-z][\w+.-]*:\/\/[^\s/@:]*:([^\s/@]+)@/i.exec(value);
    // A short password is a word of other texts too.
    return login ? [value, ...(login[1]!.length >= 12 ? [login[1]!] : [])] : [];
  });
}

/** Redacts a text that arrives in pieces, holding back only what could be the beginning of a secret. */
export interface StreamRedactor {
  /** Takes the next piece and returns what is safe to show now; may be empty. */
  push(delta: string): string;
  /** Returns what was held back; the next piece begins a new text. */
  flush(): string;
}

/** However the text is cut, the pieces together read as `redactor` would have made of the whole, but for a secret that is broken into lines. */
export function streamRedactor(secrets: readonly string[]): StreamRedactor {
  const forms = formsOf(secrets);
  const pattern = patternOf(forms);
  const longest = forms[0]?.length ?? 0;
  const byFirstCharacter = new Map<string, string[]>();
  for (const form of forms) {
    const first = form.charAt(0);
    byFirstCharacter.set(first, [...(byFirstCharacter.get(first) ?? []), form]);
  }
  let held = '';

  /** Where the longest end of `text` begins that a secret could go on from; the text's length when there is none. */
  const openFrom = (text: string, from: number): number => {
    for (let start = Math.max(from, text.length - longest + 1); start < text.length; start++) {
      const candidates = byFirstCharacter.get(text.charAt(start));
      if (!candidates) continue;
      const rest = text.slice(start);
      if (candidates.some(form => form.length > rest.length && form.startsWith(rest))) return start;
    }
    return text.length;
  };

  return {
    push(delta) {
      if (!pattern) return delta;
      const text = held + delta;
      let safe = '';
      let done = 0;
      let open = openFrom(text, 0);
      for (const match of text.matchAll(pattern)) {
        // A match inside the open end may still grow into a longer secret.
        if (match.index >= open) break;
        safe += text.slice(done, match.index) + redactionMark;
        done = match.index + match[0].length;
        if (done > open) open = openFrom(text, done);
      }
      held = text.slice(open);
      return safe + text.slice(done, open);
    },
    flush() {
      const rest = pattern ? held.replace(pattern, redactionMark) : held;
      held = '';
      return rest;
    },
  };
}

/** A copy in which every string, names of properties included, went through `change`. */
export function mapStrings<T>(value: T, change: (text: string) => string): T {
  return mapped(value, change) as T;
}

function mapped(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map(item => mapped(item, change));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [change(name), mapped(item, change)]),
  );
}

async function* redactedEvents(
  events: AsyncIterable<RunEvent>,
  redact: (text: string) => string,
  newStream: () => StreamRedactor,
  countKnown: () => number,
): AsyncGenerator<RunEvent> {
  let stream = newStream();
  let known = countKnown();
  for await (const event of events) {
    let held = '';
    if (countKnown() !== known) {
      known = countKnown();
      held = stream.flush();
      stream = newStream();
    }
    if (event.type === 'text') {
      const text = stream.push(held + event.text);
      if (text) yield { type: 'text', text };
      continue;
    }
    const rest = redact(held) + stream.flush();
    if (rest) yield { type: 'text', text: rest };
    yield mapStrings(event, redact);
  }
}

/** All spellings under which the secrets are looked for, longest first, so that no shorter one leaves a tail behind. */
function formsOf(secrets: readonly string[]): string[] {
  const forms = new Set<string>();
  for (const secret of secrets) {
    for (const value of [secret, secret.trim()]) {
      if (value.length >= shortestSecret) for (const form of spellings(value)) forms.add(form);
    }
  }
  return [...forms].filter(form => form.length >= shortestSecret).sort((a, b) => b.length - a.length);
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

/** The characters that stay the same wherever the secret stands in a longer base64 text, `shift` bytes behind a group's start. */
function base64Inside(secret: string, shift: number): string {
  const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(secret)]);
  const whole = Math.floor((bytes.length * 8) / 6);
  return bytes.toString('base64').slice(shift === 0 ? 0 : shift + 1, whole);
}

function patternOf(forms: readonly string[]): RegExp | undefined {
  if (forms.length === 0) return undefined;
  return new RegExp(forms.map(form => form.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|'), 'g');
}
