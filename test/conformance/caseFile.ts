/** The format of the conformance cases: what is given, what is done, and what must be seen then. */
import { readFileSync } from 'node:fs';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonRecord = { readonly [key: string]: Json };

export interface ConformanceCase {
  id: string;
  /** `suite`, `observed`, `spec`, or `defect`, whose `then` is what is wanted and not what the original did. */
  kind: string;
  given: JsonRecord;
  when: JsonRecord & { readonly op: string };
  then: JsonRecord;
}

/** Throws for a file that is not a list of cases, and names the first that is none. */
export function readCases(file: string): ConformanceCase[] {
  const list: unknown = JSON.parse(readFileSync(file, 'utf8'));
  if (!Array.isArray(list)) throw new Error(`${file} is not a list of cases.`);
  return list.map((value: unknown, index) => {
    const { id, kind, given, when, then } = isRecord(value) ? value : {};
    if (typeof id !== 'string' || !isRecord(when) || typeof when['op'] !== 'string' || !isRecord(then)) {
      throw new Error(`${file}: case ${index + 1} needs an id, when.op and then.`);
    }
    return {
      id,
      kind: String(kind ?? ''),
      given: isRecord(given) ? given : {},
      when: when as ConformanceCase['when'],
      then,
    };
  });
}

export const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The strings of a list; none where there is no list. */
export const strings = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);

/** A record's entries as text, `null` as undefined. */
export const texts = (value: unknown): Record<string, string | undefined> =>
  isRecord(value)
    ? Object.fromEntries(
        Object.entries(value).map(([key, text]) => [key, text === null ? undefined : String(text)]),
      )
    : {};
