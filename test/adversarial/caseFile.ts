/** The cases of a file, with their repetitions written out. */
import { readFileSync } from 'node:fs';

export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };
export type Fields = Record<string, JsonValue | undefined>;

export interface AdversarialCase {
  id: string;
  area: string;
  /** `kind` names how it is carried out; the rest is literal input. */
  input: Fields & { kind: string };
  expected: { decision: string; must?: string[]; must_not?: string[] };
  why?: string;
}

/** What of a case tells how it is carried out; its name and its sentences do not. */
export type CaseInput = Pick<AdversarialCase, 'area' | 'input'>;

/** Throws for a file that is not a list of cases, and names the first entry that is none. */
export function readCases(file: string): AdversarialCase[] {
  const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
  if (!Array.isArray(value)) throw new Error(`${file} is not a list of cases.`);
  for (const [index, entry] of value.entries()) {
    const { id, area, input, expected } = (entry ?? {}) as Partial<AdversarialCase>;
    if (!id || !area || typeof input?.kind !== 'string' || typeof expected?.decision !== 'string')
      throw new Error(`${file}: entry ${index + 1} (${id ?? 'without id'}) is no case.`);
  }
  return value as AdversarialCase[];
}

/** `{{repeat:text:n}}`, and `{{for:i:a:b}}...{{end}}` in which `{{i}}` is the number. */
export function withRepetitions(text: string): string {
  return text
    .replace(/\{\{for:(\w+):(\d+):(\d+)\}\}(.*?)\{\{end\}\}/gs, (_, name, from, to, body) => {
      const rounds = Array.from(
        { length: Number(to) - Number(from) + 1 },
        (_unused, at) => Number(from) + at,
      );
      return rounds.map(round => String(body).replaceAll(`{{${name}}}`, String(round))).join('');
    })
    .replace(/\{\{repeat:(.*?):(\d+)\}\}/gs, (_, piece, count) => String(piece).repeat(Number(count)));
}

/** Applies `change` to every string inside. */
export function mapText<Value>(value: Value, change: (text: string) => string): Value {
  if (typeof value === 'string') return change(value) as Value;
  if (Array.isArray(value)) return value.map(item => mapText(item, change)) as Value;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [change(key), mapText(item, change)]),
  ) as Value;
}

export const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};

export const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter(item => typeof item === 'string') : [];
