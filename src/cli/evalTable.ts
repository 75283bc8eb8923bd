/** Says what evals have come to: a line a model, what failed, what says nothing, and the exit code. */

import type { SkillResults } from '@telos/evals/report';
import { type EvalResult, hasPassed, problemsOf } from '@telos/evals/suite';
import { type ColumnFigures, figuresOf, type Share } from '@telos/evals/triggers';
import type { Terminal } from './terminal.ts';
import { table, terminalLine, terminalText, toType } from './terminalText.ts';

export const exitCodes = { passed: 0, failed: 1, usage: 2, stale: 3, budget: 4 } as const;

/** Returns a share as "9/10   90%  (60 to 98%)", with its 95% interval. */
export function shareText({ passed, n, low, high }: Share): string {
  const percent = (share: number): string => (share * 100).toFixed(0);
  return `${`${passed}/${n}`.padStart(7)} ${percent(passed / n).padStart(4)}%  (${percent(low)} to ${percent(high)}%)`;
}

/** Returns the lines of one skill's runs. */
export function evalLines(
  { one, results, folder, earlier }: SkillResults,
  { baseline }: { baseline?: string | undefined },
  terminal: Terminal,
): string {
  const { style, outWidth } = terminal;
  const { models, saysNothing, flaky } = figuresOf(results);
  const hasEarlier = earlier !== undefined;
  const rows = models.map(({ model, with_skill, without_skill, old_skill, gain, change }) => [
    terminalLine(model),
    shareCell(with_skill),
    shareCell(without_skill),
    signed(gain),
    ...(hasEarlier ? [shareCell(old_skill), signed(change)] : []),
    with_skill?.always ? `${with_skill.always.passed}/${with_skill.always.n}` : '',
    with_skill ? tokensText(with_skill.tokens) : '',
    with_skill?.cost === undefined ? '' : with_skill.cost.toFixed(4),
    with_skill ? `${(with_skill.ms / 1000).toFixed(1)} s` : '',
  ]);
  const more = hasEarlier ? ['Earlier', 'Change'] : [];
  const headings = [
    'Runs',
    'With skill',
    'Without',
    'Gain',
    ...more,
    'All runs',
    'Tokens',
    '$ per run',
    'Time',
  ];
  const title = terminalLine(`${one.skill.id} (${one.agent.name})`);
  const lines = [
    title,
    ...(rows.length > 0 ? [table(headings, rows, outWidth)] : []),
    ...(hasEarlier ? [style.dim(terminalLine(`  Earlier: ${earlier}`))] : []),
    ...results
      .flatMap(result => problemLines(result))
      .map(line => `  ${style.red('✗')} ${terminalLine(line)}`),
    ...saysNothing.map(text => `  ${terminalLine(`says nothing (passes in both): "${text}"`)}`),
    ...flaky.map(({ text, passed, n }) => `  ${terminalLine(`flaky: "${text}" ${passed} of ${n}`)}`),
    ...staleHint(results, one.skill.id, baseline),
    style.dim(terminalText(`  ${folder}`)),
  ];
  return `${lines.join('\n')}\n\n`;
}

const signed = (share: number | undefined): string =>
  share === undefined ? '' : `${share < 0 ? '-' : '+'}${Math.abs(share * 100).toFixed(0)}`;

export const shareCell = (column: ColumnFigures | undefined): string =>
  column?.runs ? shareText(column.runs).trim() : '';

const tokensText = (tokens: number): string =>
  tokens < 1000 ? tokens.toFixed(0) : `${(tokens / 1000).toFixed(1)}k`;

/** Returns what is wrong with a run, a line each. Without the skill, or with an earlier version, a run need not pass. */
export function problemLines(result: EvalResult): string[] {
  const { eval: known, run, status, configuration } = result;
  const isFine = status === 'graded' && (configuration !== 'with_skill' || hasPassed(result));
  const earlier = configuration === 'old_skill' ? ', earlier version' : '';
  const which = `line ${known.line}: ${known.name ?? `eval ${known.id}`}${earlier}${run > 1 ? `, run ${run}` : ''}`;
  const sign = status === 'graded' ? ':' : '';
  return isFine ? [] : problemsOf(result).map(problem => `${which}${sign} ${problem}`);
}

function staleHint(results: readonly EvalResult[], skill: string, baseline: string | undefined): string[] {
  const stale = results.filter(({ status }) => status === 'stale');
  if (stale.length === 0) return [];
  const needs = baseline !== undefined && stale.some(({ configuration }) => configuration === 'old_skill');
  return [
    `  To record again: ${toType('eval', '--record', ...(needs ? ['--baseline', baseline] : []), skill)}`,
  ];
}
