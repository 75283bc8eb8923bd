/** Reads and applies the checks of an eval, which judge a run without a model. */

import { resolve } from 'node:path';
import { runInNewContext } from 'node:vm';
import { isInside, loadText, realPlace } from '@telos/engine/files';
import { beginningOf } from '@telos/protocol/text';

/** What is wanted of a text. */
interface TextWish {
  /** A regular expression of JavaScript; `(?i)` before it ignores case. */
  matches?: string;
  contains?: string;
}

/** A check as evals.json has it. Exactly one kind, with what belongs to it; `covers` is the expectation that needs no judge then. */
export type Check = { covers?: string } & (
  | ({ file: string; exists?: boolean; json?: string; equals?: unknown } & TextWish)
  | { answer: TextWish }
  | { tool: string; times?: { min?: number; max?: number } }
  | { not_tool: string }
  | { files_changed: string[] }
  | { max_tokens: number }
  | { max_cost: number }
  | { outcome: string }
  | { command: string[] }
);

/** What a run has come to, as far as checks and judges read it. */
export interface RunFacts {
  /** The folder in which it worked. Real and absolute. */
  workDir: string;
  outcome: string;
  /** The model's last words. */
  answer: string;
  /** How often each tool was called. */
  calls: ReadonlyMap<string, number>;
  /** Paths below the folder with `/`, sorted: made, changed or deleted. */
  changed: readonly string[];
  tokens: number;
  /** In US dollars when it was recorded. Undefined if it is not known. */
  cost: number | undefined;
}

/** An expectation or a check with its result. `passed` is undefined while nothing has graded it. */
export interface Graded {
  text: string;
  passed: boolean | undefined;
  evidence: string;
}

const kinds: Readonly<Record<string, readonly string[]>> = {
  file: ['exists', 'json', 'equals', 'matches', 'contains'],
  answer: [],
  tool: ['times'],
  not_tool: [],
  files_changed: [],
  max_tokens: [],
  max_cost: [],
  outcome: [],
  command: [],
};

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';
const isNumber = (value: unknown): boolean => typeof value === 'number' && value >= 0;
const areTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText);
const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isWish = (value: unknown): boolean =>
  isRecord(value) &&
  Object.entries(value).length > 0 &&
  Object.entries(value).every(([name, wish]) => ['matches', 'contains'].includes(name) && isText(wish)) &&
  isExpression(value['matches']);
const areTimes = (value: unknown): boolean =>
  isRecord(value) &&
  Object.entries(value).every(([name, times]) => ['min', 'max'].includes(name) && isNumber(times));

const valid: Readonly<Record<string, (value: unknown) => boolean>> = {
  file: isText,
  tool: isText,
  not_tool: isText,
  outcome: isText,
  contains: isText,
  covers: isText,
  answer: isWish,
  times: areTimes,
  files_changed: areTexts,
  max_tokens: isNumber,
  max_cost: isNumber,
  command: value => areTexts(value) && (value as string[]).length > 0,
  exists: value => typeof value === 'boolean',
  json: value => typeof value === 'string' && pathOf(value) !== undefined,
  equals: () => true,
  matches: value => isText(value) && isExpression(value),
};

/** Returns what is wrong with a check of the file, to be read behind its name; undefined if nothing is. */
export function checkProblem(value: unknown): string | undefined {
  if (!isRecord(value)) return 'is not an object.';
  const names = Object.keys(value).filter(name => name !== 'covers');
  const found = names.filter(name => Object.hasOwn(kinds, name));
  const [kind] = found;
  if (kind === undefined || found.length > 1)
    return `has ${kind === undefined ? 'none' : 'more than one'} of ${Object.keys(kinds).join(', ')}.`;
  const foreign = names.find(name => name !== kind && !kinds[kind]?.includes(name));
  if (foreign !== undefined) return `has a "${foreign}", which "${kind}" does not know.`;
  const wrong = Object.keys(value).find(name => valid[name]?.(value[name]) === false);
  if (wrong !== undefined) return `has a "${wrong}" that cannot be used.`;
  if ('json' in value !== 'equals' in value) return 'needs both "json" and "equals".';
  return undefined;
}

/** Returns a check in words, for a report. */
export function checkText(check: Check): string {
  const { covers, ...rest } = check;
  return covers ?? `check ${JSON.stringify(rest)}`;
}

/** Returns the result of a check. `command` carries one out and returns why it failed. Never throws. */
export async function applyCheck(
  check: Check,
  facts: RunFacts,
  command: (words: readonly string[]) => Promise<string | undefined>,
): Promise<Graded> {
  const text = checkText(check);
  const result = (passed: boolean, evidence: string): Graded => ({ text, passed, evidence });
  try {
    if ('file' in check) return result(...(await fileResult(check, facts.workDir)));
    if ('answer' in check) return result(fits(facts.answer, check.answer), shown(facts.answer));
    if ('tool' in check) {
      const { min = 1, max = Number.POSITIVE_INFINITY } = check.times ?? {};
      const times = facts.calls.get(check.tool) ?? 0;
      // "At most twice" does not ask for it to be called at all.
      const least = check.times?.max !== undefined && check.times.min === undefined ? 0 : min;
      return result(times >= least && times <= max, `${check.tool} was called ${times} times.`);
    }
    if ('not_tool' in check) {
      const times = facts.calls.get(check.not_tool) ?? 0;
      return result(times === 0, `${check.not_tool} was called ${times} times.`);
    }
    if ('files_changed' in check) {
      const wanted = [...check.files_changed].sort();
      const isSame = JSON.stringify(wanted) === JSON.stringify(facts.changed);
      return result(isSame, `changed: ${facts.changed.join(', ') || 'nothing'}`);
    }
    if ('max_tokens' in check) return result(facts.tokens <= check.max_tokens, `${facts.tokens} tokens`);
    if ('max_cost' in check) {
      if (facts.cost === undefined) return result(false, 'The cost is not known.');
      return result(facts.cost <= check.max_cost, `$${facts.cost.toFixed(4)}`);
    }
    if ('outcome' in check) return result(facts.outcome === check.outcome, `outcome: ${facts.outcome}`);
    const problem = await command(check.command);
    return result(problem === undefined, problem ?? 'The command ended with 0.');
  } catch (error) {
    return result(false, error instanceof Error ? error.message : String(error));
  }
}

async function fileResult(
  check: Extract<Check, { file: string }>,
  workDir: string,
): Promise<[passed: boolean, evidence: string]> {
  const { file, exists = true, json, equals } = check;
  const path = resolve(workDir, file);
  if (!isInside(workDir, realPlace(path) ?? path)) return [false, `${file} leads out of the folder.`];
  const content = await loadText(path).catch(() => undefined);
  if (content === undefined) return [!exists, `${file} is not there.`];
  if (!exists) return [false, `${file} is there.`];
  if (json !== undefined) {
    const found = valueAt(JSON.parse(content), pathOf(json) ?? []);
    return [JSON.stringify(found) === JSON.stringify(equals), `${json} is ${shown(JSON.stringify(found))}`];
  }
  return [fits(content, check), shown(content)];
}

function fits(text: string, { matches, contains }: TextWish): boolean {
  if (contains !== undefined && !text.includes(contains)) return false;
  return matches === undefined || isMatch(text, matches);
}

/** How long an expression may look, in milliseconds. Some take ages on purpose. */
const patienceMs = 1000;

/** Throws if the expression takes too long. */
function isMatch(text: string, matches: string): boolean {
  const [source, flags] = expressionOf(matches);
  return (
    runInNewContext(
      'new RegExp(source, flags).test(text)',
      { source, flags, text },
      { timeout: patienceMs },
    ) === true
  );
}

function expressionOf(matches: string): [source: string, flags: string] {
  const [whole = '', flags = ''] = /^\(\?([ims]+)\)/.exec(matches) ?? [];
  return [matches.slice(whole.length), flags];
}

function isExpression(value: unknown): boolean {
  if (value === undefined) return true;
  try {
    return new RegExp(...expressionOf(String(value))) instanceof RegExp;
  } catch {
    return false;
  }
}

/** Returns the steps of a path such as `$.rows[0].name`. Undefined if it is none. */
function pathOf(path: string): string[] | undefined {
  if (!/^\$(?:\.[\w-]+|\[\d+\])*$/.test(path)) return undefined;
  return [...path.matchAll(/\.([\w-]+)|\[(\d+)\]/g)].map(([, name, index]) => name ?? index ?? '');
}

function valueAt(value: unknown, steps: readonly string[]): unknown {
  return steps.reduce<unknown>((inner, step) => {
    if (Array.isArray(inner) && step === 'length') return inner.length;
    return typeof inner === 'object' && inner !== null && Object.hasOwn(inner, step)
      ? (inner as Record<string, unknown>)[step]
      : undefined;
  }, value);
}

/** In characters. More is not read in a report. */
const longestShown = 300;
const shown = (text: string | undefined): string => beginningOf((text ?? 'nothing').trim(), longestShown);
