/** Compares what a case wants with what was observed: objects as subsets, lists by element, `"*"` with anything there is. */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isRecord, type Json, type JsonRecord, strings } from './caseFile.ts';
import type { CaseWorld } from './caseWorld.ts';

/** Observations of an operation by name. Nothing else can be expected. */
export type Observed = Readonly<Record<string, unknown>>;

type Check = (wanted: Json, observed: Observed, world: CaseWorld) => string | undefined;

/** Words of `then` that say something about an observation instead of naming one. The rest is compared by its own name. */
const checks: Readonly<Record<string, Check>> = {
  contains: (wanted, { content }) => missing(wanted, content),
  contains_ci: (wanted, { content }) => missing(strings(wanted).map(fold), fold(String(content))),
  not_contains: (wanted, { content }) => present(wanted, content),
  starts_with: (wanted, { content }) =>
    String(content).startsWith(String(wanted))
      ? undefined
      : `starts with ${show(String(content).slice(0, 60))}`,
  ends_with: (wanted, { content }) =>
    String(content).endsWith(String(wanted)) ? undefined : `ends with ${show(String(content).slice(-60))}`,
  equals: (wanted, { content }) => difference(wanted, content),
  order: (wanted, { content, order }) => {
    if (order !== undefined) return difference(wanted, order);
    const places = strings(wanted).map(part => String(content).indexOf(part));
    const inTurn = places.every((place, index) => place > (places[index - 1] ?? -1));
    return inTurn ? undefined : `they are at ${places.join(', ')}`;
  },
  matches: (wanted, { path, content }) =>
    new RegExp(String(wanted)).test(String(path ?? content))
      ? undefined
      : `${show(path ?? content)} does not match ${show(wanted)}`,
  stdout_contains: (wanted, { stdout }) => missing(wanted, stdout),
  output_contains: (wanted, { output }) => missing(wanted, output),
  message_contains: (wanted, { message }) => missing([wanted], message),
  system_mentions: (wanted, { system }) => missing(wanted, system),
  user_message_lists: (wanted, { userMessage }) => missing(wanted, userMessage),
  user_message_ends_with: (wanted, { userMessage }) =>
    String(userMessage).endsWith(String(wanted))
      ? undefined
      : `ends with ${show(String(userMessage).slice(-60))}`,
  first_user_contains: (wanted, { firstUser }) => missing(wanted, firstUser),
  body_lacks: (wanted, { body }) => keysIn(wanted, body),
  request_lacks: (wanted, { request }) => keysIn(wanted, request),
  keys: (wanted, { record }) => {
    const absent = strings(wanted).filter(key => !isRecord(record) || !(key in record));
    return absent.length > 0 ? `has no key ${absent.join(', ')}` : undefined;
  },
  duration_at_least: (wanted, { duration }) =>
    typeof duration === 'number' && duration >= Number(wanted) ? undefined : `is ${show(duration)}`,
  file_equals: (wanted, { base }) => {
    const files = isRecord(wanted) ? Object.entries(wanted) : [];
    const textOf = (path: string): string => {
      try {
        return readFileSync(join(String(base), path), 'utf8');
      } catch {
        return '(missing)';
      }
    };
    const wrong = files.filter(([path, text]) => textOf(path) !== text);
    return wrong.length > 0
      ? wrong.map(([path]) => `${path} is ${show(textOf(path))}`).join('; ')
      : undefined;
  },
  executable: (wanted, { base }) => {
    const isExecutable = (path: string): boolean =>
      ((statSync(join(String(base), path), { throwIfNoEntry: false })?.mode ?? 0) & 0o111) !== 0;
    const plain = strings(wanted).filter(path => !isExecutable(path));
    return plain.length > 0 ? `cannot be run: ${plain.join(', ')}` : undefined;
  },
  present: (wanted, { base }, world) => absentIn(wanted, folder(base, world), world),
  exists: (wanted, { base }, world) => absentIn(wanted, folder(base, world), world),
  absent: (wanted, { base }, world) => existingIn(wanted, folder(base, world), world),
  tmp_exists: (wanted, _observed, world) => absentIn(wanted, world.tmp, world),
  tmp_absent: (wanted, _observed, world) => existingIn(wanted, world.tmp, world),
  tmp_file_equals: (wanted, _observed, world) => {
    const files = isRecord(wanted) ? Object.entries(wanted) : [];
    const wrong = files.filter(([path, text]) => world.read(path) !== text);
    return wrong.length > 0
      ? wrong.map(([path]) => `${path} is ${show(world.read(path))}`).join('; ')
      : undefined;
  },
  prompt_contains: (wanted, { prompt, prompts }) =>
    isRecord(wanted)
      ? Object.entries(wanted)
          .map(([number, parts]) => missing(parts, (prompts as string[])[Number(number) - 1]))
          .find(fault => fault !== undefined)
      : missing(wanted, prompt),
  tools_include: (wanted, { tools }) => lacking(wanted, tools),
  tools_exclude: (wanted, { tools }) => {
    const there = strings(wanted).filter(name => strings(tools).includes(name));
    return there.length > 0 ? `has ${there.join(', ')}` : undefined;
  },
  reply_contains: (wanted, { reply }) => missing(wanted, reply),
  error_contains: (wanted, { error }) => missing(wanted, error),
  progress_contains: (wanted, { progress }) => missing(wanted, progress),
  lines_between: (wanted, { lines }) => {
    const [least = 0, most = 0] = Array.isArray(wanted) ? wanted.map(Number) : [];
    return Number(lines) >= least && Number(lines) <= most ? undefined : `has ${show(lines)} lines`;
  },
  columns: inOrder,
  columns_v3: inOrder,
  columns_v4_code: inOrder,
  throws: (wanted, { throws, message }) => {
    if (typeof wanted === 'string') return difference(wanted, throws);
    const has = throws !== undefined && throws !== false;
    return has === wanted ? undefined : `${has ? `threw ${show(message ?? throws)}` : 'nothing was thrown'}`;
  },
};

/** One line for each word of `then` that is not as it was observed; none when the case passes. */
export function differences(then: JsonRecord, observed: Observed, world: CaseWorld): string[] {
  const found = Object.entries(then).flatMap(([word, wanted]) => {
    const check = checks[word];
    const fault = check ? check(wanted, observed, world) : difference(wanted, observed[word]);
    return fault === undefined ? [] : [`${word}: ${fault}`];
  });
  const foreseen = ['throws', 'rejected', 'future'].some(word => word in then);
  if (observed['throws'] === undefined || foreseen) return found;
  return [...found, `threw ${show(observed['message'] ?? observed['throws'])}`];
}

/** Returns the difference in words, or undefined if there is none. */
export function difference(wanted: Json, observed: unknown, path = ''): string | undefined {
  const at = path ? `${path} ` : '';
  if (wanted === '*') return observed === undefined ? `${at}is missing` : undefined;
  if (wanted === null)
    return observed === null || observed === undefined ? undefined : `${at}is ${show(observed)}, not null`;
  if (Array.isArray(wanted)) {
    if (!Array.isArray(observed)) return `${at}is ${show(observed)}, not a list`;
    if (observed.length !== wanted.length) return `${at}is ${show(observed)}, not ${show(wanted)}`;
    for (const [index, item] of wanted.entries()) {
      const found = difference(item, observed[index], `${path}[${index}]`);
      if (found) return found;
    }
    return undefined;
  }
  if (isRecord(wanted)) {
    if (typeof observed !== 'object' || observed === null)
      return `${at}is ${show(observed)}, not ${show(wanted)}`;
    for (const [key, item] of Object.entries(wanted)) {
      const inner = (observed as Record<string, unknown>)[key];
      const found =
        key === 'arguments' && sameJson(item, inner)
          ? undefined
          : difference(item, inner, path ? `${path}.${key}` : key);
      if (found) return found;
    }
    return undefined;
  }
  return wanted === observed ? undefined : `${at}is ${show(observed)}, not ${show(wanted)}`;
}

/** Arguments of a call are JSON text: what they say counts, not where the blanks are. */
function sameJson(wanted: Json, observed: unknown): boolean {
  if (typeof wanted !== 'string' || typeof observed !== 'string') return false;
  try {
    return JSON.stringify(JSON.parse(wanted)) === JSON.stringify(JSON.parse(observed));
  } catch {
    return false;
  }
}

function inOrder(wanted: Json, { columns }: Observed): string | undefined {
  const seen = strings(columns);
  let from = 0;
  for (const name of strings(wanted)) {
    const at = seen.indexOf(name, from);
    if (at < 0) return `the columns are ${seen.join(', ')}`;
    from = at + 1;
  }
  return undefined;
}

const fold = (text: string): string => text.toLowerCase();
const folder = (base: unknown, world: CaseWorld): string =>
  typeof base === 'string' ? base : join(world.root, 'nowhere');

function missing(wanted: unknown, text: unknown): string | undefined {
  const lacking = strings(wanted).filter(part => typeof text !== 'string' || !text.includes(part));
  return lacking.length > 0 ? `${show(text)} lacks ${lacking.map(show).join(', ')}` : undefined;
}

function lacking(wanted: unknown, list: unknown): string | undefined {
  const absent = strings(wanted).filter(name => !strings(list).includes(name));
  return absent.length > 0 ? `${show(list)} lacks ${absent.join(', ')}` : undefined;
}

function present(wanted: unknown, text: unknown): string | undefined {
  const there = strings(wanted).filter(part => typeof text !== 'string' || text.includes(part));
  return there.length > 0 ? `${show(text)} holds ${there.map(show).join(', ')}` : undefined;
}

function keysIn(wanted: Json, record: unknown): string | undefined {
  if (!isRecord(record)) return 'nothing was sent';
  const there = strings(wanted).filter(key => key in record);
  return there.length > 0 ? `has ${there.join(', ')}` : undefined;
}

function absentIn(wanted: Json, base: string, world: CaseWorld): string | undefined {
  const absent = strings(wanted).filter(path => !world.exists(path, base));
  return absent.length > 0 ? `there is no ${absent.join(', ')}` : undefined;
}

function existingIn(wanted: Json, base: string, world: CaseWorld): string | undefined {
  if (base.endsWith('nowhere')) return 'nothing was looked at';
  const there = strings(wanted).filter(path => world.exists(path, base));
  return there.length > 0 ? `there is ${there.join(', ')}` : undefined;
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? 'missing';
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
