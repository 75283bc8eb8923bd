/** The end of `npm test`: what failed and why, what was flaky or skipped, and what each layer took. */
import type { LayerResult } from './layerRun.ts';
import { firstLines } from './outcomes.ts';
import { layers } from './table.ts';

export interface Run {
  results: readonly LayerResult[];
  isNight: boolean;
  /** In how many of the last ten runs a test was flaky, by its title. */
  flakes: ReadonlyMap<string, number>;
  /** Titles that were flaky too often, at night. */
  tooFlaky: readonly string[];
  /** What this machine could not run, and how to mend that. */
  notRun: readonly string[];
}

/** The whole summary has at most 100 lines. */
const shownFailures = 15;
const shownOthers = 8;

export interface Budget {
  name: string;
  /** CPU seconds. Undefined where the system does not tell them, or `types` did not run. */
  allowed: number | undefined;
  over: boolean;
}

/** Returns what each layer may take in this run. `types` is the measure, since machines differ by eight times. */
export function budgetsOf(results: readonly LayerResult[], isNight: boolean): Budget[] {
  const unit = results.find(one => one.name === 'types')?.cpuSeconds;
  return results.map(({ name, cpuSeconds }) => {
    const layer = layers.find(one => one.name === name);
    if (unit === undefined || cpuSeconds === undefined || !layer)
      return { name, allowed: undefined, over: false };
    const allowed = unit * (isNight ? layer.budget.night : layer.budget.day);
    return { name, allowed, over: cpuSeconds > allowed };
  });
}

export function drawSummary(run: Run): string {
  const { results, notRun } = run;
  const failed = results.flatMap(({ name, failed }) =>
    failed.map(one => `${name}: ${one.title}\n    ${firstLines(one.error ?? '', 2).slice(0, 300)}`),
  );
  const broken = results.filter(one => !one.ok && one.failed.length === 0);
  const lines = [
    ...section('Failed', [...broken.map(brokenLine), ...failed], shownFailures),
    ...section('Flaky: failed, then passed', flakyLines(run), shownOthers),
    ...section('Flaky in too many of the last ten runs', run.tooFlaky, shownOthers),
    ...section('Left open after the last test', leftLines(results), shownOthers),
    ...section('Skipped', skippedLines(results), shownOthers),
    ...section('Not run here', notRun, shownOthers),
    '',
    ...table(run),
    '',
    countsLine(results),
  ];
  return lines.join('\n');
}

function section(title: string, items: readonly string[], limit: number): string[] {
  if (items.length === 0) return [];
  const more = items.length > limit ? [`  and ${items.length - limit} more, in the logs`] : [];
  return ['', `${title}:`, ...items.slice(0, limit).map(item => `  ${item}`), ...more];
}

const brokenLine = ({ name, why, log }: LayerResult): string =>
  `${name}: ${why ?? 'no test says why.'}\n    All of its output: ${log}`;

const flakyLines = ({ results, flakes }: Run): string[] =>
  results.flatMap(({ name, flaky }) =>
    flaky.map(
      ({ title, firstError }) =>
        `${name}: ${title} (in ${flakes.get(title) ?? 1} of the last ten runs): ${firstLines(firstError, 1).slice(0, 200)}`,
    ),
  );

const leftLines = (results: readonly LayerResult[]): string[] =>
  results.flatMap(({ name, left }) => (left === undefined ? [] : [`${name}: ${left}`]));

const skippedLines = (results: readonly LayerResult[]): string[] =>
  results.flatMap(({ name, skipped }) =>
    skipped.length > 0
      ? [
          `${name}: ${
            skipped
              .map(one => one.title)
              .filter(Boolean)
              .join('; ')
              .slice(0, 600) || skipped.length
          }`,
        ]
      : [],
  );

function table({ results, isNight }: Run): string[] {
  const budgets = budgetsOf(results, isNight);
  const rows = results.map((result, at) => {
    const { allowed, over } = budgets[at]!;
    return [
      result.name.padEnd(15),
      (result.ok ? 'passed' : 'FAILED').padEnd(8),
      `${result.passed || ''}`.padStart(6),
      seconds(result.wallSeconds),
      seconds(result.cpuSeconds),
      seconds(allowed),
      over ? '  over its budget' : '',
    ].join('');
  });
  return ['layer          result    tests     wall      CPU   budget   (seconds)', ...rows];
}

const seconds = (value: number | undefined): string =>
  (value === undefined ? '-' : value.toFixed(0)).padStart(9);

/** A form that other programs read, too. */
function countsLine(results: readonly LayerResult[]): string {
  const sum = (count: (one: LayerResult) => number): number =>
    results.reduce((all, one) => all + count(one), 0);
  const failed = sum(one => (one.ok ? 0 : Math.max(1, one.failed.length)));
  return `${sum(one => one.passed)} passed, ${failed} failed, ${sum(one => one.skipped.length)} skipped`;
}
