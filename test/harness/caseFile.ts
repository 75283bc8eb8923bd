/** Reads files of cases, and what is written in a case: values of JSON. */
import { readFileSync } from 'node:fs';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonRecord = { readonly [key: string]: Json };

/** Returns the cases of a file. Throws if it is not a list of them, and names the first entry that `caseIn` does not take. */
export function readCases<Case>(file: string, caseIn: (entry: JsonRecord) => Case | undefined): Case[] {
  const list: unknown = JSON.parse(readFileSync(file, 'utf8'));
  if (!Array.isArray(list)) throw new Error(`${file} is not a list of cases.`);
  return list.map((entry: unknown, index) => {
    const record = isRecord(entry) ? entry : {};
    const read = caseIn(record);
    if (read) return read;
    throw new Error(`${file}: entry ${index + 1} (${record['id'] ?? 'without id'}) is not a case.`);
  });
}

export const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Applies `change` to every string inside, names of fields included. */
export function mapText<Value>(value: Value, change: (text: string) => string): Value {
  if (typeof value === 'string') return change(value) as Value;
  if (Array.isArray(value)) return value.map(item => mapText(item, change)) as Value;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [change(key), mapText(item, change)]),
  ) as Value;
}
