/** Reads `evals/evals.json` of a skill: requests with the files that they start from, and what is expected of the result. */

import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, statSync } from 'node:fs';
import { basename, join, posix } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import { isInside, loadRegularFile, realPlace } from '@telos/engine/files';
import { contentDigest } from '@telos/engine/skills';
import { sentence } from '@telos/protocol/text';
import { type Check, checkProblem } from './checks.ts';
import { LineFinder, parsed, refuseLinkOut, textOf } from './triggerFile.ts';

/** An eval. The format is that of agentskills.io and of skill-creator; `name`, `runs` and `checks` are ours. */
export interface EvalCase {
  /** A number is kept as it is for results; its text names recordings. */
  id: string | number;
  name?: string;
  prompt: string;
  expectedOutput: string;
  /** What the folder has when the run begins. */
  files: readonly EvalInput[];
  /** Files that it names and the skill does not have: authors leave out large ones. Such an eval is never run. */
  missing?: readonly string[];
  expectations: readonly string[];
  checks: readonly Check[];
  runs?: number;
  /** Where the eval is in the file, from 1. */
  line: number;
}

export interface EvalInput {
  /** In the skill's folder. Absolute. */
  source: string;
  /** Path in the folder of the run, with `/`. */
  path: string;
}

export const evalFileOf = (skillDir: string): string => join(skillDir, 'evals', 'evals.json');

/**
 * Returns the evals of the skill in a folder, in their order. Undefined if it has no evals.json. Throws TelosError `config`, with the
 * line, if the file cannot be read whole.
 */
export function readEvals(skillDir: string): EvalCase[] | undefined {
  const listed = readList(skillDir);
  if (!listed) return undefined;
  const { file, text, list } = listed;
  const lines = new LineFinder(text);
  const cases = list.map((value, index) => caseOf(value, index, lines, file, skillDir));
  const ids = new Set<string>();
  for (const { id, line } of cases) {
    if (ids.has(String(id)))
      throw new TelosError('config', [sentence('{0}:{1}: the id {2} is in the file twice.', file, line, id)]);
    ids.add(String(id));
  }
  return cases;
}

/**
 * Returns the first eval of that id as `readEvals` does, without a look at the others: a file has a thousand, and each run asks for one.
 * Undefined if there is none.
 */
export function readEval(skillDir: string, id: string): EvalCase | undefined {
  const listed = readList(skillDir);
  if (!listed) return undefined;
  const { file, text, list } = listed;
  const index = list.findIndex(({ id: own }, place) => String(own ?? place + 1) === id);
  const found = list[index];
  return found && caseOf(found, index, new LineFinder(text), file, skillDir);
}

function readList(
  skillDir: string,
): { file: string; text: string; list: Readonly<Record<string, unknown>>[] } | undefined {
  const file = evalFileOf(skillDir);
  if (lstatSync(file, { throwIfNoEntry: false }) === undefined) return undefined;
  refuseLinkOut(skillDir, file);
  const text = textOf(file);
  const content = parsed(text, file);
  const list: unknown = Array.isArray(content) ? content : recordOf(content)['evals'];
  if (!Array.isArray(list))
    throw new TelosError('config', [
      sentence('{0}:1: a list is expected: {"skill_name": "...", "evals": []}', file),
    ]);
  return { file, text, list: list.map(recordOf) };
}

const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : {};

function caseOf(
  given: Readonly<Record<string, unknown>>,
  index: number,
  lines: LineFinder,
  file: string,
  skillDir: string,
): EvalCase {
  const { id = index + 1, prompt, runs, files = [], checks = [] } = given;
  const name = given['name'] ?? given['eval_name'];
  const line = lines.next(prompt);
  const refuse = (why: string): never => {
    throw new TelosError('config', `${file}:${line}: eval ${index + 1} ${why}`);
  };
  if ((typeof id !== 'number' && typeof id !== 'string') || String(id).trim() === '')
    return refuse('has an "id" that is neither a number nor a text.');
  if (typeof prompt !== 'string' || prompt.trim() === '') return refuse('has no "prompt" with words in it.');
  if (runs !== undefined && !(Number.isInteger(runs) && (runs as number) > 0))
    return refuse('has "runs" that are not a number from 1.');
  if (!Array.isArray(files)) return refuse('has "files" that are not a list.');
  if (!Array.isArray(checks)) return refuse('has "checks" that are not a list.');
  const wrong = checks.findIndex(check => checkProblem(check) !== undefined);
  if (wrong >= 0) return refuse(`has a check (number ${wrong + 1}) that ${checkProblem(checks[wrong])}`);
  const expectations = expectationsOf(given['expectations'] ?? given['assertions'] ?? []);
  if (!expectations) return refuse('has "expectations" that are not a list of texts.');
  const expected = given['expected_output'];
  const inputs = files.map((path: unknown) => ({ path, found: inputsOf(path, skillDir) }));
  const absent = inputs.flatMap(({ path, found }) => (found.length > 0 ? [] : [path]));
  const outside = absent.find(path => !isText(path) || leadsOut(path, skillDir));
  if (outside !== undefined)
    return refuse(`names the file ${JSON.stringify(outside)}, which leads out of the skill's folder.`);
  return {
    id,
    prompt,
    expectedOutput: typeof expected === 'string' ? expected : '',
    files: inputs.flatMap(({ found }) => found),
    ...(absent.length > 0 && { missing: absent.map(String) }),
    // An eval that says in one sentence what it wants is judged by that.
    expectations: expectations.length + checks.length === 0 && isText(expected) ? [expected] : expectations,
    checks: checks as Check[],
    ...(typeof name === 'string' && { name }),
    ...(runs !== undefined && { runs: runs as number }),
    line,
  };
}

/** Returns true for a path that names something outside of the skill's folder, also over a link. */
function leadsOut(path: string, skillDir: string): boolean {
  const plain = path.replaceAll('\\', '/');
  if (/^(?:\/|[a-z]:)/i.test(plain) || posix.normalize(plain).startsWith('..')) return true;
  const root = realPlace(skillDir) ?? skillDir;
  const real = realPlace(join(root, plain));
  return real !== undefined && !isInside(root, real);
}

/** Returns the expectations. Some files have objects with a text. Undefined if it is anything else. */
function expectationsOf(value: unknown): string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const texts = value.map((one: unknown) => {
    const { text, description, assertion, name } = recordOf(one);
    return typeof one === 'string' ? one : [text, assertion, description, name].find(isText);
  });
  return texts.every(isText) ? texts : undefined;
}

const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== '';

/**
 * Returns a file of the skill by its path from the skill's folder, from its evals, or from the folder above under whatever name the
 * author has the skill; all files of it for a folder. Empty if there is none. In the run, a file has its path below the folder of inputs, such as `evals/files`.
 */
function inputsOf(given: unknown, skillDir: string): EvalInput[] {
  if (!isText(given)) return [];
  const root = realPlace(skillDir) ?? skillDir;
  const normal = posix.normalize(given.replaceAll('\\', '/'));
  const inner = /^[^/]+\/(evals\/.+)$/.exec(normal)?.[1];
  const found = [given, posix.join('evals', normal), inner].find(
    one => one !== undefined && isFileBelow(root, join(root, one), true),
  );
  if (found === undefined) return [];
  const source = join(root, found);
  const path = found === inner ? inner : given;
  const plain = posix
    .normalize(path.replaceAll('\\', '/'))
    .replace(/^(?:evals\/)?(?:(?<=evals\/)[^/]+|files)\/(?=.)/, '');
  const target = plain.startsWith('/') || plain.startsWith('..') ? basename(path) : plain.replace(/\/$/, '');
  if (!statSync(source).isDirectory()) return [{ source, path: target }];
  const names = readdirSync(source, { recursive: true, encoding: 'utf8' }).sort();
  return names.flatMap(name => {
    const file = join(source, name);
    return isFileBelow(root, file)
      ? [{ source: file, path: posix.join(target, name.replaceAll('\\', '/')) }]
      : [];
  });
}

/** Returns true for a file, or a folder if `orFolder`, that is really inside the skill. */
function isFileBelow(root: string, place: string, orFolder = false): boolean {
  const real = realPlace(place);
  if (real === undefined || !isInside(root, real)) return false;
  const found = statSync(real, { throwIfNoEntry: false });
  return found?.isFile() === true || (orFolder && found?.isDirectory() === true);
}

/** Returns the digest of what an eval starts from: its request, and its files with their names. Throws errors of the file system. */
export async function inputsDigest({ prompt, files }: EvalCase): Promise<string> {
  const contents = await Promise.all(
    files.map(async ({ source, path }) => [path, contentDigest(await loadRegularFile(source))]),
  );
  return createHash('sha256')
    .update(JSON.stringify([prompt, contents]))
    .digest('hex');
}
