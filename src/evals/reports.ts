/** Writes stored results of evals as a page for people and as JUnit for CI, and compares two of them. */
import type { ModelFigures } from './benchmark.ts';
import type { Configuration } from './evalWorld.ts';
import type { StoredResults, StoredRun } from './resultFiles.ts';
import { problemsOf } from './runEval.ts';
import type { Share } from './runTriggers.ts';

/** Characters that XML has no place for at all. */
const unwritable =
  /[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;

const signs: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '\n': '&#10;',
};

/** Returns the text for a place between tags or in an attribute of HTML and XML. */
export const escapedMarkup = (text: unknown): string =>
  String(text)
    .replace(unwritable, '\u{FFFD}')
    .replace(/[&<>"'\n]/g, sign => signs[sign] ?? sign);

const percent = (share: number): string => `${(share * 100).toFixed(0)}%`;

const shareText = (share: Share | undefined): string =>
  share ? `${share.passed}/${share.n} (${percent(share.low)} to ${percent(share.high)})` : '';

const nameOf = ({ name, model, run }: StoredRun): string =>
  `${name} · ${model || 'not recorded'} · run ${run}`;

/** Returns the results as JUnit. Runs without the skill are left out, as they need not pass. */
export function junitReport(all: readonly StoredResults[]): string {
  const suites = all.map(({ agent, skill, runs }) => {
    const mine = runs.filter(({ configuration }) => configuration === 'with_skill');
    const failures = mine.filter(({ status, passed }) => status === 'graded' && !passed).length;
    const errors = mine.filter(({ status }) => status !== 'graded').length;
    const cases = mine.map(run => {
      const problems = problemsOf(run);
      const kind = run.status === 'graded' ? 'failure' : 'error';
      const said = run.passed
        ? ''
        : `<${kind} message="${escapedMarkup(problems[0] ?? '')}">${escapedMarkup(problems.join('\n'))}</${kind}>`;
      const time = (run.durationMs / 1000).toFixed(3);
      const classname = escapedMarkup(`${agent}.${skill}`);
      return `    <testcase name="${escapedMarkup(nameOf(run))}" classname="${classname}" time="${time}">${said}</testcase>`;
    });
    return [
      `  <testsuite name="${escapedMarkup(`${skill} (${agent})`)}" tests="${mine.length}" failures="${failures}" errors="${errors}">`,
      ...cases,
      '  </testsuite>',
    ].join('\n');
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n${suites.join('\n')}\n</testsuites>\n`;
}

const style = `body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1f2328;background:#fff}
table{border-collapse:collapse;margin:1rem 0}th,td{border:1px solid #d0d7de;padding:.3rem .7rem;text-align:left;vertical-align:top}
.failed{color:#b42318}.passed{color:#1a7f37}@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}th,td{border-color:#30363d}.failed{color:#ff7b72}.passed{color:#3fb950}}`;

/** Returns the results as a page that needs nothing else and runs nothing. */
export function htmlReport(all: readonly StoredResults[]): string {
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Evals</title>',
    // What the page shows was written by models and strangers.
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src \'unsafe-inline\'">',
    `<style>${style}</style></head><body><h1>Evals</h1>`,
    ...all.map(sectionOf),
    '</body></html>\n',
  ].join('\n');
}

const columns: Readonly<Record<Configuration, string>> = {
  with_skill: 'with',
  without_skill: 'without',
  old_skill: 'earlier',
};

function sectionOf(results: StoredResults): string {
  const { agent, skill, skillDigest, recordedAt, earlier, figures, runs } = results;
  const { models, saysNothing, flaky } = figures;
  const more = earlier === undefined ? '' : '<th>Earlier</th><th>Change</th>';
  return [
    `<h2>${escapedMarkup(skill)} (${escapedMarkup(agent)})</h2>`,
    `<p>${escapedMarkup(recordedAt)} · digest ${escapedMarkup(skillDigest.slice(0, 12))}${earlier === undefined ? '' : ` · earlier version: ${escapedMarkup(earlier)}`}</p>`,
    `<table><tr><th>Model</th><th>With skill</th><th>Without</th><th>Gain</th>${more}<th>All runs pass</th><th>Tokens</th><th>$ per run</th><th>Time</th></tr>`,
    ...models.map(model => rowOf(model, earlier !== undefined)),
    '</table>',
    ...saysNothing.map(text => `<p>Says nothing, as it passes in both: ${escapedMarkup(text)}</p>`),
    ...flaky.map(({ text, passed, n }) => `<p>Flaky: ${escapedMarkup(text)} (${passed} of ${n})</p>`),
    '<table><tr><th>Run</th><th>Skill</th><th>Result</th><th></th></tr>',
    ...runs.map(
      run =>
        `<tr><td>${escapedMarkup(nameOf(run))}</td><td>${columns[run.configuration]}</td><td class="${run.passed ? 'passed' : 'failed'}">${run.passed ? 'passed' : run.status === 'graded' ? 'failed' : run.status}</td><td>${problemsOf(run).map(escapedMarkup).join('<br>')}</td></tr>`,
    ),
    '</table>',
  ].join('\n');
}

function rowOf(figures: ModelFigures, hasEarlier: boolean): string {
  const { model, with_skill, without_skill, old_skill, gain, change } = figures;
  const cells = [
    model,
    shareText(with_skill?.runs),
    shareText(without_skill?.runs),
    gain === undefined ? '' : signed(gain),
    ...(hasEarlier ? [shareText(old_skill?.runs), change === undefined ? '' : signed(change)] : []),
    shareText(with_skill?.always),
    with_skill?.tokens.toFixed(0) ?? '',
    with_skill?.cost?.toFixed(4) ?? '',
    with_skill ? `${(with_skill.ms / 1000).toFixed(1)} s` : '',
  ];
  return `<tr>${cells.map(cell => `<td>${escapedMarkup(cell)}</td>`).join('')}</tr>`;
}

const signed = (share: number): string => `${share < 0 ? '-' : '+'}${Math.abs(share * 100).toFixed(0)}`;

/** How a figure of one model differs between two results. */
export interface Comparison {
  model: string;
  before: Share | undefined;
  after: Share | undefined;
  /** True if the intervals do not touch, so that chance alone hardly explains it. */
  isSure: boolean;
  /** Mean change of tokens a run. */
  tokens: number;
}

export interface Compared {
  models: readonly Comparison[];
  /** Evals whose runs with the skill all passed in one of the two and not in the other. */
  broke: readonly string[];
  mended: readonly string[];
}

/** Compares the runs with the skill of two results, or those of a result with its runs of the earlier version. */
export function compareResults(
  before: StoredResults,
  after: StoredResults,
  column: 'with_skill' | 'old_skill' = 'with_skill',
): Compared {
  const names = [...new Set([...before.figures.models, ...after.figures.models].map(({ model }) => model))];
  const figuresOf = ({ figures }: StoredResults, model: string): ModelFigures | undefined =>
    figures.models.find(one => one.model === model);
  const models = names.map((model): Comparison => {
    const [old, now] = [figuresOf(before, model)?.[column], figuresOf(after, model)?.with_skill];
    const [one, other] = [old?.runs, now?.runs];
    const isSure = Boolean(one && other && (one.high < other.low || other.high < one.low));
    return { model, before: one, after: other, isSure, tokens: (now?.tokens ?? 0) - (old?.tokens ?? 0) };
  });
  const [was, is] = [passingIn(before, column), passingIn(after, 'with_skill')];
  const both = [...was.keys()].filter(name => is.has(name));
  return {
    models,
    broke: both.filter(name => was.get(name) && !is.get(name)),
    mended: both.filter(name => !was.get(name) && is.get(name)),
  };
}

function passingIn({ runs }: StoredResults, column: Configuration): Map<string, boolean> {
  const passing = new Map<string, boolean>();
  for (const { configuration, name, passed } of runs)
    if (configuration === column) passing.set(name, passed && passing.get(name) !== false);
  return passing;
}
