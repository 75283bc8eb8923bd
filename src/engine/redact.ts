/** Keeps the values of secrets, in every form, out of everything that is shown or stored. */
import type { RunEvent } from '@telos/protocol/run';
import { deepestJson, tooDeep } from './jsonDepth.ts';
import { type FormMatch, formMatcher, formsOf, secretFinder, shortestSecret } from './secretForms.ts';

export { secretFinder };

const redactionMark = '[redacted]';

export interface Redactor {
  text(text: string): string;
  /** Adds secrets. From now on these are hidden as well. */
  learn(secrets: readonly string[]): void;
  /** Returns true if the text contains a secret, see `secretFinder`. */
  finds(text: string): boolean;
  /**
   * Returns a function that takes the events of one run in their order, and returns what may be shown now. Hides a secret that
   * is split over text deltas, too.
   */
  events(): (event: RunEvent) => RunEvent[];
}

/**
 * Returns a redactor that replaces every secret of at least eight characters with `[redacted]`.
 * Forms: as it is, URL-encoded, JSON-escaped, in hexadecimal, and in base64.
 * Base64 is found at any alignment inside a longer base64 text, also one that is broken into lines.
 * Each long line of a secret of several lines is also replaced alone.
 */
export function redactor(secrets: readonly string[]): Redactor {
  const known = new Set(secrets);
  let finder: ((text: string) => boolean) | undefined;
  let matches = formMatcher(formsOf(secrets));
  const text = (original: string): string =>
    known.size > 0 && original.length >= shortestSecret
      ? withoutBroken(withMarks(original, matches(original)), matches)
      : original;
  return {
    text,
    learn(more) {
      if (more.every(secret => known.has(secret))) return;
      for (const secret of more) known.add(secret);
      finder = undefined;
      matches = formMatcher(formsOf([...known]));
    },
    finds(searched) {
      finder ??= secretFinder([...known]);
      return finder(searched);
    },
    events: () =>
      eventRedactor(
        text,
        () => streamRedactor([...known]),
        () => known.size,
      ),
  };
}

/**
 * Matches a line break, as it is or as JSON writes it, with the indent of the next line. Bounded, so that no text makes it slow.
 */
const lineBreak = /(?:\r?\n|\\r\\n|\\n)[ \t]{0,40}/g;

/** Redacts secrets that are broken into lines, as programs do with encoded text. Indents do not hide them either. */
function withoutBroken(text: string, matches: Matches): string {
  if (!/[\n\\]/.test(text)) return text;
  const joined = text.replace(lineBreak, '');
  if (joined.length === text.length) return text;
  const placeOf = placesIn(text);
  return withMarks(text, matches(joined), ({ index, length }) => {
    const begin = placeOf(index);
    return { index: begin, length: placeOf(index + length - 1) + 1 - begin };
  });
}

type Matches = ReturnType<typeof formMatcher>;

/** Returns the text with a mark in place of each match. `placed` returns the place of a match in the text. */
function withMarks(text: string, matches: Iterable<FormMatch>, placed = (match: FormMatch) => match): string {
  let safe = '';
  let done = 0;
  for (const match of matches) {
    const { index, length } = placed(match);
    safe += text.slice(done, index) + redactionMark;
    done = index + length;
  }
  return safe + text.slice(done);
}

/** Returns a function that maps a place in the joined text to its place in the original. Must be called in order. */
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

/** Returns true if the name of a variable suggests a secret. */
export const isSecretName = (name: string): boolean =>
  /KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|WEBHOOK|NTFY_TOPIC|OTLP\w*_HEADERS|_(PAT|PASS|PWD|AUTH|JWT|COOKIE)$/i.test(
    name,
  );

/**
 * Returns the values of variables that are named like keys, and addresses with a password in them.
 * They must not reach an event, a log or an address.
 */
export function secretsIn(env: Readonly<Record<string, string>>): string[] {
  return Object.entries(env).flatMap(([name, value]) => {
    // Several headers are one value.
    if (/OTLP\w*_HEADERS$/i.test(name))
      return [value, ...value.split(',').map(one => one.replace(/^[^=]*=/, ''))];
    if (isSecretName(name)) return [value];
    const login = /^[a-z][\w+.-]*:\/\/[^\s/@:]*:([^\s/@]+)@/i.exec(value);
    // A short password is often a word of other texts too.
    return login ? [value, ...(login[1]!.length >= 12 ? [login[1]!] : [])] : [];
  });
}

/** Redacts a text that arrives in pieces. Holds back only a part that could be the beginning of a secret. */
export interface StreamRedactor {
  /** Takes the next piece and returns the text that is safe to show now. May be empty. */
  push(delta: string): string;
  /** Returns the text that was held back. The next piece begins a new text. */
  flush(): string;
}

/**
 * Returns a redactor for pieces of a text. However the text is cut, the result is what `redactor` makes of the whole.
 * The exception is a secret that is broken into lines.
 */
export function streamRedactor(secrets: readonly string[]): StreamRedactor {
  const forms = formsOf(secrets);
  const matches = formMatcher(forms);
  const longest = forms[0]?.length ?? 0;
  const byFirstCharacter = new Map<string, string[]>();
  for (const form of forms) {
    const first = form.charAt(0);
    byFirstCharacter.set(first, [...(byFirstCharacter.get(first) ?? []), form]);
  }
  let held = '';

  /**
   * Returns the start of the longest end of `text` that could be the beginning of a secret.
   * Returns the text's length if there is none.
   */
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
      if (forms.length === 0) return delta;
      const text = held + delta;
      let safe = '';
      let done = 0;
      let open = openFrom(text, 0);
      for (const match of matches(text)) {
        // A match inside the open end may still grow into a longer secret.
        if (match.index >= open) break;
        safe += text.slice(done, match.index) + redactionMark;
        done = match.index + match.length;
        if (done > open) open = openFrom(text, done);
      }
      held = text.slice(open);
      return safe + text.slice(done, open);
    },
    flush() {
      const rest = withMarks(held, matches(held));
      held = '';
      return rest;
    },
  };
}

/** Far deeper than any value made here. Values from outside have a lower limit, applied where they are read. */
const deepestMapped = 4 * deepestJson;

/**
 * Returns a copy in which every string, including property names, went through `change`. A part that is too deep becomes a note.
 */
export function mapStrings<T>(value: T, change: (text: string) => string): T {
  return mapped(value, change, deepestMapped) as T;
}

function mapped(value: unknown, change: (text: string) => string, levels: number): unknown {
  if (typeof value === 'string') return change(value);
  if (value === null || typeof value !== 'object') return value;
  if (levels === 0) return tooDeep;
  if (Array.isArray(value)) return value.map(item => mapped(item, change, levels - 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [change(name), mapped(item, change, levels - 1)]),
  );
}

/** Returns a function for the events of one run. A part of a text that may become a secret waits for the next event. */
function eventRedactor(
  redact: (text: string) => string,
  newStream: () => StreamRedactor,
  countKnown: () => number,
): (event: RunEvent) => RunEvent[] {
  let stream = newStream();
  let known = countKnown();
  let kind: 'text' | 'reasoning' = 'text';
  const isDelta = (event: RunEvent): event is Extract<RunEvent, { type: typeof kind }> =>
    event.type === 'text' || (event.type === 'reasoning' && event.durationMs === undefined);
  const outputs = new Map<string, StreamRedactor>();
  let knownToOutputs = known;
  return event => {
    if (event.type === 'tool_output') {
      // The older ones do not know every secret.
      if (countKnown() !== knownToOutputs) outputs.clear();
      knownToOutputs = countKnown();
      return outputOf(event, outputs, newStream);
    }
    if (event.type === 'tool_start') outputs.delete(event.call.id);
    // What was held back of its output is in its result.
    if (event.type === 'tool_end') outputs.delete(event.callId);
    let held = '';
    if (countKnown() !== known) {
      known = countKnown();
      held = stream.flush();
      stream = newStream();
    }
    const pushed = (text: string): RunEvent[] => {
      const safe = stream.push(text);
      return safe ? [{ type: kind, text: safe }] : [];
    };
    if (isDelta(event) && event.type === kind) return pushed(held + event.text);
    const rest = redact(held) + stream.flush();
    const before: RunEvent[] = rest ? [{ type: kind, text: rest }] : [];
    if (!isDelta(event)) return [...before, mapStrings(event, redact)];
    kind = event.type;
    return [...before, ...pushed(event.text)];
  };
}

/** Returns what may be shown now of a command's output. */
function outputOf(
  event: Extract<RunEvent, { type: 'tool_output' }>,
  outputs: Map<string, StreamRedactor>,
  newStream: () => StreamRedactor,
): RunEvent[] {
  const stream = outputs.get(event.callId) ?? newStream();
  outputs.set(event.callId, stream);
  const text = stream.push(event.text);
  return text === '' ? [] : [{ ...event, text }];
}
