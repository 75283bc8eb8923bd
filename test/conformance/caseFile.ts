/** The format of the conformance cases: what is given, what is done, and what must be seen then. */
import { isRecord, type JsonRecord, readCases as readList } from '../harness/caseFile.ts';

export { isRecord, type Json, type JsonRecord } from '../harness/caseFile.ts';

export interface ConformanceCase {
  id: string;
  /** `suite`, `observed`, `spec`, or `defect`, whose `then` is what is wanted and not what the original did. */
  kind: string;
  given: JsonRecord;
  when: JsonRecord & { readonly op: string };
  then: JsonRecord;
}

export const readCases = (file: string): ConformanceCase[] =>
  readList(file, ({ id, kind, given, when, then }) =>
    typeof id === 'string' && isRecord(when) && typeof when['op'] === 'string' && isRecord(then)
      ? {
          id,
          kind: String(kind ?? ''),
          given: isRecord(given) ? given : {},
          when: when as ConformanceCase['when'],
          then,
        }
      : undefined,
  );

/** The strings of a list; none where there is no list. */
export const strings = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);

/** A record's entries as text, `null` as undefined. */
export const texts = (value: unknown): Record<string, string | undefined> =>
  isRecord(value)
    ? Object.fromEntries(
        Object.entries(value).map(([key, text]) => [key, text === null ? undefined : String(text)]),
      )
    : {};
