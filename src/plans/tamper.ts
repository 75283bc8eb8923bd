/**
 * Finds in a difference what would let work pass without being better: tests that are gone, skipped or emptied, and changed rules of
 * what checks it. Pure. It reads texts, so it finds what is written, never what is meant.
 */

import { basename } from 'node:path/posix';
import { globMatcher } from '@telos/engine/files';
import type { PlanCheck, StoryItem, TamperFinding, TamperKind } from '@telos/protocol/plan';
import {
  type FileChange,
  jsonFields,
  ownScript,
  type SetupRun,
  scriptsIn,
  scriptsOf,
  setupChanges,
} from './setupChanges.ts';

/** What guards against tampering knows of the plan. */
export interface Guarded {
  /** The checks that decide on the story. */
  checks: readonly PlanCheck[];
  /** Globs of files that no story may change. */
  protect: readonly string[];
  /** True if the project had tests before: then a new file that configures them is a change, too. */
  hadTests: boolean;
  /** What the setup of a work tree runs, which may be outside of the box. */
  setup?: SetupRun;
}

const testFolder = /(?:^|\/)(?:tests?|__tests__|specs?|e2e|cypress|testing)\//i;
const testFile =
  /(?:[._-](?:test|tests|spec|cy|e2e)\.[cm]?[jt]sx?|(?:^|\/)test_[^/]*\.py|_test\.(?:py|go|exs?|dart|c|cc|cpp|rb)|_spec\.rb|Tests?\.(?:java|kt|cs|php|swift|scala)|\.(?:feature|bats|t))$/;

/** Whether a path is that of a test, by its name or its folder. */
export const isTest = (path: string): boolean => testFile.test(path) || testFolder.test(path);

/** Whether the texts of a changed file are looked at. All others count by their names alone. */
export const isGuarded = (path: string, checks: readonly PlanCheck[]): boolean =>
  isTest(path) ||
  isRunnerConfig(path) ||
  hasLimits(path) ||
  isNamedBy(path, checks) ||
  isCodeFile(path) ||
  /(?:^|\/)composer\.json$/.test(path);

/** Returns what a difference has that a person should know before the work passes. */
export function tamperings(changes: readonly FileChange[], guarded: Guarded): TamperFinding[] {
  return changes.flatMap(change => [
    ...protectedFile(change, guarded.protect),
    ...goneTests(change),
    ...weakerTests(change),
    ...runnerConfig(change, guarded.hadTests),
    ...checkScripts(change, guarded.checks),
    ...(guarded.setup ? setupChanges(change, guarded.setup) : []),
    ...lowerLimits(change),
  ]);
}

/**
 * Returns the findings that no criterion names. A criterion speaks of a file by its path, or by its name if that is not a common
 * one. A protected file is only ever a person's to open.
 */
export function unjustified(
  findings: readonly TamperFinding[],
  items: readonly Pick<StoryItem, 'text'>[],
): TamperFinding[] {
  const isNamed = (file: string): boolean => {
    const names = [file, basename(file)].map(name => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    const pattern = new RegExp(`(?<![\\w/.-])(?:\\./)?(?:${names.join('|')})(?![\\w/-]|\\.\\w)`);
    return items.some(({ text }) => pattern.test(text));
  };
  return findings.filter(({ kind, file }) => kind === 'protected' || !isNamed(file));
}

const finding = (kind: TamperKind, file: string, detail: string): TamperFinding => ({ kind, file, detail });

function protectedFile({ path, from }: FileChange, protect: readonly string[]): TamperFinding[] {
  const matchers = protect.map(glob => globMatcher(glob));
  const file = [from, path].find(one => one !== undefined && matchers.some(fits => fits(one)));
  return file === undefined ? [] : [finding('protected', file, 'It is protected by the plan.')];
}

function goneTests({ status, path, from }: FileChange): TamperFinding[] {
  if (status === 'deleted' && isTest(path)) return [finding('test-deleted', path, 'It was deleted.')];
  if (status === 'renamed' && from !== undefined && isTest(from) && !isRunAs(from, path))
    return [finding('test-deleted', from, `It was moved to ${path}, where it is no longer a test.`)];
  return [];
}

/** Whether a test that is moved still runs: what finds it looks at the ending, or at the folder. */
const isRunAs = (from: string, to: string): boolean =>
  testFile.test(from) ? testFile.test(to) : testFolder.test(to);

/** Ways to leave a test out, or to run it alone. */
const skips =
  /\b(?:it|test|describe|context|suite|Deno\.test)\s*\.\s*(?:skip|only|todo|fails|failing|skipIf|runIf|concurrent\.skip|skip\.each|only\.each)\b|\b(?:xit|xtest|xdescribe|xcontext|fit|fdescribe|fcontext)\s*\(|\bt\.(?:skip|Skip|SkipNow|Skipf|todo)\s*\(|\bthis\.skip\s*\(|\b(?:skip|todo|only)\s*:\s*(?:true|['"`])|@(?:pytest\.mark\.(?:skip|skipif|xfail)|unittest\.(?:skip|skipIf|expectedFailure)|skip|Ignore|Disabled)\b|\bpytest\.(?:skip|xfail|importorskip)\s*\(|\bself\.skipTest\s*\(|#\[ignore\b|\bmarkTestSkipped\b|\bmarkTestIncomplete\b|\[(?:Fact|Theory)\(Skip\b|\[Ignore\b|\bXCTSkip\b|\b(?:pending|skip)\s+['"]|\bexit\s*\(\s*0\s*\)|\bprocess\.exitCode\s*=\s*0|\bos\._exit\s*\(\s*0/g;

const assertions =
  /\b(?:assert\w*|expect\w*|should\w*|XCTAssert\w*|EXPECT_\w+|ASSERT_\w+|Assert|verify|require)\s*(?:[.(!]|<[^>\n]*>\s*\()|^\s*assert\s|\bt\.(?:is|not|deepEqual|equal|equals|ok|true|false|throws\w*|Error\w*|Fatal\w*|Fail\w*|same|match|regex|like)\s*\(/gm;

/** Assertions that hold whatever is tested. */
const empty =
  /\b(?:expect|assert(?:\.ok|\.isTrue|\.equal|\.strictEqual|\.isOk)?|assertTrue|self\.assertTrue)\s*\(\s*(?:true|True|1|!0|'[^']*'|"[^"]*")\s*(?:,\s*(?:true|True|1)\s*)?\)|^\s*assert\s+(?:True|1)\b/gm;

const cases =
  /\b(?:it|test|specify|scenario)\s*(?:\.each\b[^(]*)?\(\s*['"`[]|^\s*(?:async\s+)?def test_\w*|^func (?:Test|Benchmark|Fuzz)\w*|@(?:Test|ParameterizedTest)\b|#\[(?:\w+::)?test\]|^\s*Scenario:/gm;

const count = (pattern: RegExp, text: string): number => text.match(pattern)?.length ?? 0;

/** Comments do not test. The text of a URL is cut on both sides alike. */
const withoutComments = (text: string): string =>
  text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|[\s;{}(])(?:\/\/|#(?!\[)).*$/gm, '$1');

function weakerTests({ path, before, after, status, from }: FileChange): TamperFinding[] {
  if (after === undefined || !isTest(path) || status === 'deleted') return [];
  const [old, now] = [withoutComments(before ?? ''), withoutComments(after)];
  const found: TamperFinding[] = [];
  if (count(skips, now) > count(skips, old)) {
    const added = now.match(skips)?.at(-1)?.trim() ?? '';
    found.push(finding('test-skipped', path, `It leaves tests out now: ${added}`));
  }
  if (before === undefined) return found;
  const file = from ?? path;
  const [fewer, more] = [count(cases, now), count(cases, old)];
  if (fewer < more) found.push(finding('test-deleted', file, `It has ${fewer} tests in place of ${more}.`));
  const [left, had] = [now, old].map(text => count(assertions, text) - count(empty, text)) as [
    number,
    number,
  ];
  if (left < had)
    found.push(finding('fewer-assertions', file, `It asserts ${left} things in place of ${had}.`));
  return found;
}

const runnerFile =
  /(?:^|\/)(?:jest\.config\.\w+|jest\.setup\.\w+|vitest\.(?:config|workspace)\.\w+|\.mocharc(?:\.\w+)?|karma\.conf\.\w+|playwright\.config\.\w+|cypress\.(?:config\.\w+|json)|ava\.config\.\w+|\.taprc|wdio\.conf\.\w+|pytest\.ini|tox\.ini|noxfile\.py|conftest\.py|phpunit\.xml(?:\.dist)?|\.rspec|nightwatch\.conf\.\w+|web-test-runner\.config\.\w+|\.nycrc(?:\.\w+)?|\.c8rc(?:\.\w+)?|\.coveragerc|bunfig\.toml|nextest\.toml)$/;

const isRunnerConfig = (path: string): boolean => runnerFile.test(path);

/** Parts of files that hold other things as well, and configure tests. */
const runnerParts: readonly (readonly [file: RegExp, parts: (text: string) => string])[] = [
  [/(?:^|\/)package\.json$/, text => jsonParts(text, ['jest', 'mocha', 'ava', 'nyc', 'c8', 'tap', 'vitest'])],
  [/(?:^|\/)pyproject\.toml$/, text => tables(text, /^\[tool\.(?:pytest|coverage|tox)/)],
  [/(?:^|\/)setup\.cfg$/, text => tables(text, /^\[(?:tool:pytest|coverage)/)],
  [/(?:^|\/)vite\.config\.\w+$/, text => /\btest\s*:\s*\{[\s\S]*?\n {0,2}\}/.exec(text)?.[0] ?? ''],
];

function runnerConfig(
  { path, from, status, before = '', after = '' }: FileChange,
  hadTests: boolean,
): TamperFinding[] {
  const file = from ?? path;
  if (isRunnerConfig(file) || isRunnerConfig(path)) {
    if (status === 'added')
      return hadTests ? [finding('runner-config', path, 'It is new, and decides which tests run.')] : [];
    return [finding('runner-config', file, `It decides which tests run, and was ${status}.`)];
  }
  const parts = runnerParts.find(([name]) => name.test(file))?.[1];
  if (!parts || status === 'added' || parts(before) === parts(after)) return [];
  return parts(before) === '' && !hadTests
    ? []
    : [finding('runner-config', file, 'What it says about running tests was changed.')];
}

function jsonParts(text: string, keys: readonly string[]): string {
  const fields = jsonFields(text);
  const own = keys.filter(key => fields[key] !== undefined).map(key => [key, fields[key]]);
  return own.length === 0 ? '' : JSON.stringify(own);
}

/** Returns the tables of a TOML or INI file whose heading fits, as they are written. */
const tables = (text: string, heading: RegExp): string =>
  text
    .split(/^(?=\[)/m)
    .filter(part => heading.test(part))
    .map(part => part.trim())
    .join('\n');

function checkScripts(change: FileChange, checks: readonly PlanCheck[]): TamperFinding[] {
  const { path, from, status, before = '', after = '' } = change;
  const file = from ?? path;
  if (/(?:^|\/)package\.json$/.test(file)) {
    const [old, now] = [scriptsIn(before), scriptsIn(after)];
    return scriptsOf(checks, old).flatMap(name => {
      if (old[name] === now[name]) return [];
      const what = now[name] === undefined ? 'gone' : `now "${now[name]}"`;
      return [finding('check-script', file, `The script "${name}" is ${what}; it was "${old[name]}".`)];
    });
  }
  const isRules =
    /(?:^|\/)(?:GNUmakefile|[Mm]akefile|[Jj]ustfile|Taskfile\.ya?ml|Rakefile|build\.gradle(?:\.kts)?|pom\.xml)$/.test(
      file,
    );
  const runsRules = checks.some(({ command }) => /\b(?:make|just|task|rake|gradle\w*|mvnw?)\b/.test(command));
  if ((isRules && runsRules) || isNamedBy(file, checks))
    return status === 'added'
      ? []
      : [finding('check-script', file, `A check runs it, and it was ${status}.`)];
  return [];
}

/** Whether a check names the file as a script of its own. What else it names is what it checks. */
function isNamedBy(path: string, checks: readonly Pick<PlanCheck, 'command'>[]): boolean {
  if (isTest(path) || !ownScript.test(path)) return false;
  return checks.some(({ command }) =>
    command.split(/[\s;&|<>()'"`=]+/).some(word => word.replace(/^\.\//, '') === path),
  );
}

const limitsFile =
  /(?:^|\/)(?:package\.json|pyproject\.toml|setup\.cfg|tox\.ini|\.coveragerc|\.nycrc(?:\.\w+)?|\.c8rc(?:\.\w+)?|codecov\.ya?ml|\.codecov\.ya?ml|(?:jest|vitest|vite|karma)\.conf(?:ig)?\.\w+|\.?eslint(?:rc)?(?:\.config)?(?:\.\w+)?|biome\.jsonc?|tslint\.json|\.pylintrc|ruff\.toml|\.flake8|mypy\.ini|clippy\.toml|\.rubocop\.ya?ml|\.golangci\.ya?ml|phpstan\.neon|tsconfig(?:\.\w+)?\.json|Makefile|\.github\/workflows\/\S+)$/;

const hasLimits = (path: string): boolean => limitsFile.test(path);

const codeFile = /\.(?:[cm]?[jt]sx?|py|rb|go|rs|java|kt|cs|php|swift|scala|c|cc|cpp|h|vue|svelte)$/;
const isCodeFile = (path: string): boolean => codeFile.test(path);

/** Comments that switch off the checks of a whole file. */
const switchedOff =
  /\/\*\s*eslint-disable\s*\*\/|\/\/\s*@ts-nocheck|biome-ignore-all|#\s*(?:flake8: noqa|ruff: noqa|pylint: (?:skip-file|disable=all)|mypy: ignore-errors|type: ignore\s*$)|#!\[allow\(warnings|\/\*\s*istanbul ignore file|v8 ignore file|pragma: no cover file/g;

/** Limits of which more is stricter, and those of which less is. */
const minimums =
  /["']?\b(branches|functions|lines|statements|fail[_-]under|cov-fail-under|threshold|minimum_coverage|min(?:imum)?[_-]?coverage|target)\b["']?\s*[:=\s]\s*["']?(\d+(?:\.\d+)?)/g;
const maximums =
  /["']?(max-warnings|max[_-]?complexity|max[_-]line[_-]length|max-lines|maxWarnings)["']?\s*[:=,\s]\s*[["']?(-?\d+)/g;

/** Rules that are off. */
const off =
  /["'][@\w/-]+["']\s*:\s*\[?\s*(?:["']off["']|0\b)|["']?strict\w*["']?\s*:\s*false|\b(?:ignore|disable|extend-ignore)\s*=\s*\S/g;

function lowerLimits({ path, from, status, before, after }: FileChange): TamperFinding[] {
  if (after === undefined || status === 'deleted') return [];
  const file = from ?? path;
  const found: TamperFinding[] = [];
  if (isCodeFile(path) && count(switchedOff, after) > count(switchedOff, before ?? '')) {
    const [added = ''] = after.match(switchedOff) ?? [];
    found.push(finding('lower-limit', path, `It switches off checks for the whole file: ${added}`));
  }
  if (!hasLimits(file) || before === undefined) return found;
  for (const [pattern, isMinimum] of [
    [minimums, true],
    [maximums, false],
  ] as const)
    for (const [name, [old, now]] of limitsIn(pattern, before, after)) {
      const isLower = isMinimum ? now < old : now > old || (now < 0 && old >= 0);
      if (isLower) found.push(finding('lower-limit', file, `${name} is ${now} in place of ${old}.`));
    }
  if (/package\.json$|Makefile$/.test(file)) return found;
  const [more, less] = [count(off, after), count(off, before)];
  if (more > less) found.push(finding('lower-limit', file, `${more - less} more of its rules are off.`));
  return found;
}

/** Returns the limits of both texts by name and place, with a missing one as no limit at all. */
function limitsIn(pattern: RegExp, before: string, after: string): Map<string, readonly [number, number]> {
  const isMinimum = pattern === minimums;
  const all = (text: string): Map<string, number> => {
    const counts = new Map<string, number>();
    const found = new Map<string, number>();
    for (const [, name = '', value = ''] of text.matchAll(pattern)) {
      const at = (counts.get(name) ?? 0) + 1;
      counts.set(name, at);
      found.set(at === 1 ? name : `${name} (${at})`, Number(value));
    }
    return found;
  };
  const [old, now] = [all(before), all(after)];
  return new Map(
    [...old].map(([name, value]) => [name, [value, now.get(name) ?? (isMinimum ? 0 : Infinity)]]),
  );
}
