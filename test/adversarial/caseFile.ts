/** The format of the adversarial cases, with their repetitions written out. */
import { readCases as readList } from '../harness/caseFile.ts';

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

/** The part of a case that says how it is carried out. Its name and its sentences do not. */
export type CaseInput = Pick<AdversarialCase, 'area' | 'input'>;

export const readCases = (file: string): AdversarialCase[] =>
  readList(file, entry => {
    const { id, area, input, expected } = entry as unknown as Partial<AdversarialCase>;
    return id && area && typeof input?.kind === 'string' && typeof expected?.decision === 'string'
      ? (entry as unknown as AdversarialCase)
      : undefined;
  });

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

export const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};

export const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter(item => typeof item === 'string') : [];
