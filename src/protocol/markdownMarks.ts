/** Reads the marks within a line of Markdown: emphasis, code and links. */

export type Mark = 'bold' | 'italic' | 'strike' | 'code' | 'link' | 'dim';

/** A part of a line with the marks that it has. */
export interface Piece {
  text: string;
  marks: readonly Mark[];
}

/**
 * Returns the pieces of a line's text, and what of it must wait for more. `before` is the character before it. A mark without its
 * other half is text. Underscores are too: they are in names, as in `__init__`.
 */
export function inline(text: string, isWhole: boolean, before = ''): { pieces: Piece[]; rest: string } {
  const pieces: Piece[] = [];
  const plain = (part: string): void => {
    const last = pieces.at(-1);
    if (last?.marks.length === 0) last.text += part;
    else pieces.push({ text: part, marks: [] });
  };
  let at = 0;
  while (at < text.length) {
    const next = text.slice(at).search(/[\\`*~![]/);
    if (next < 0) {
      plain(text.slice(at));
      return { pieces, rest: '' };
    }
    if (next > 0) plain(text.slice(at, at + next));
    at += next;
    const found = markAt(text, at, at === 0 ? before : text[at - 1]!, isWhole);
    if (found === 'unknown') return { pieces, rest: text.slice(at) };
    for (const piece of found.pieces)
      if (piece.marks.length > 0) pieces.push(piece);
      else plain(piece.text);
    at += found.length;
  }
  return { pieces, rest: '' };
}

type Found = { pieces: readonly Piece[]; length: number };

function markAt(text: string, at: number, before: string, isWhole: boolean): Found | 'unknown' {
  const rest = text.slice(at);
  const asText = (part: string): Found => ({ pieces: [{ text: part, marks: [] }], length: part.length });
  const orWait = (part: string): Found | 'unknown' => (isWhole ? asText(part) : 'unknown');
  const [sign] = rest;
  if (sign === '\\') {
    if (rest.length === 1) return orWait(sign);
    return /^[!-/:-@[-`{-~]/.test(rest[1]!)
      ? { pieces: [{ text: rest[1]!, marks: [] }], length: 2 }
      : asText(sign);
  }
  if (sign === '[' || sign === '!')
    return linkAt(rest, isWhole) ?? (rest === '!' ? orWait(sign) : asText(sign));
  const [run = ''] = /^(`+|\*+|~+)/.exec(rest) ?? [];
  if (run.length === rest.length) return orWait(run);
  if (sign === '`') {
    const close = closingTicks(rest, run);
    if (close < 0) return orWait(run);
    const code = rest.slice(run.length, close).replace(/^ (.*\S.*) $/, '$1');
    return { pieces: [{ text: code, marks: ['code'] }], length: close + run.length };
  }
  const marks = marksOf(run);
  const opens = marks && !/\s/.test(rest[run.length]!) && (run !== '*' || opensOne(before, rest[1]!));
  if (!opens) return asText(run);
  const close = closingRun(rest, run, isWhole);
  if (close === undefined) return orWait(run);
  const { pieces } = inline(rest.slice(run.length, close), true, run);
  return {
    pieces: pieces.map(piece => ({ ...piece, marks: [...marks, ...piece.marks] })),
    length: close + run.length,
  };
}

/** A single star is often meant as one: in names of files, in sums. */
const opensOne = (before: string, after: string): boolean =>
  !/[\p{L}\p{N}/*]/u.test(before) && /[\p{L}\p{N}"'“‘([`<$]/u.test(after);

function marksOf(run: string): readonly Mark[] | undefined {
  if (run.startsWith('~')) return run.length === 2 ? ['strike'] : undefined;
  return ([['italic'], ['bold'], ['bold', 'italic']] as const)[run.length - 1];
}

function closingTicks(rest: string, run: string): number {
  for (const { index, 0: ticks } of rest.slice(run.length).matchAll(/`+/g))
    if (ticks.length === run.length) return index + run.length;
  return -1;
}

/** Returns the place of the same run behind a word. Undefined if there is none, or if it is not known yet. */
function closingRun(rest: string, run: string, isWhole: boolean): number | undefined {
  const sign = run[0]!;
  for (let at = run.length; at < rest.length; at++) {
    if (rest[at] !== sign) continue;
    let length = 1;
    while (rest[at + length] === sign) length++;
    const after = rest[at + length];
    const isBehindWord = !/\s/.test(rest[at - 1]!) && rest[at - 1] !== '\\';
    const isWordEnd = run !== '*' || after === undefined || !/[\p{L}\p{N}]/u.test(after);
    if (length === run.length && isBehindWord && isWordEnd)
      return after === undefined && !isWhole ? undefined : at;
    at += length - 1;
  }
  return undefined;
}

/** Returns a link with its address, which a person must see. Undefined if it is none. */
function linkAt(rest: string, isWhole: boolean): Found | 'unknown' | undefined {
  const [whole, label, address] =
    /^!?\[([^\][]{0,300})\]\(<?([^\s)>]{0,800})>?(?:\s{1,3}["'][^"')]{0,300}["'])?\)/.exec(rest) ?? [];
  if (whole === undefined || label === undefined || address === undefined) {
    const mayBe = /^!?\[[^\][]{0,300}(?:\](?:\([^)]{0,800})?)?$/.test(rest);
    return mayBe && !isWhole ? 'unknown' : undefined;
  }
  const { pieces } = inline(label, true);
  const isSame = label === address || label === '' || `mailto:${label}` === address;
  if (isSame) return { pieces: [{ text: address, marks: ['link'] }], length: whole.length };
  return {
    pieces: [
      ...pieces.map(piece => ({ ...piece, marks: ['link' as const, ...piece.marks] })),
      { text: ` (${address})`, marks: ['dim'] },
    ],
    length: whole.length,
  };
}
