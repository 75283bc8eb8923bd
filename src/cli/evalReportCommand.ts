/** Implements `telos eval report`: the newest results of skills as a page, as JUnit, or beside earlier ones. */

import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { reasonOf, TelosError } from '@telos/engine/errors';
import {
  type Compared,
  compareResults,
  htmlReport,
  junitReport,
  readResults,
  type StoredResults,
} from '@telos/evals/report';
import { type ConfigOptions, configFor, mayWrite, writeNamed } from './cliConfig.ts';
import { exitCodes, shareCell, shareText } from './evalTable.ts';
import { typedPath } from './surroundings.ts';
import type { Terminal } from './terminal.ts';
import { errorText, table, terminalJson, terminalLine, terminalText } from './terminalText.ts';

export interface EvalReportOptions extends ConfigOptions {
  html?: string;
  junit?: string;
  /** Two folders of results, the earlier one first; or one in which an earlier version has run too. */
  compare?: string[];
  /** Existing files are replaced. */
  force?: boolean;
  json?: boolean;
}

/** Returns the exit code: 2 if there are no such results, 1 if a file cannot be written. */
export async function evalReportCommand(
  what: string | undefined,
  options: EvalReportOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return exitCodes.usage;
  const { html, junit, compare } = options;
  const typed = (path: string): string => typedPath(path, terminal.surroundings);
  try {
    if (compare) return comparison(compare.map(typed), options, terminal);
    const all = foldersOf(what, what && typed(what), config.dataDir).map(readResults);
    if (all.length === 0) {
      terminal.say(noResultsOf(what, config.dataDir));
      return exitCodes.usage;
    }
    if (html === undefined && junit === undefined) {
      terminal.out(options.json ? `${terminalJson(all)}\n` : summary(all, terminal));
      return exitCodes.passed;
    }
    const files = [
      ...(html === undefined ? [] : [{ file: typed(html), text: htmlReport(all) }]),
      ...(junit === undefined ? [] : [{ file: typed(junit), text: junitReport(all) }]),
    ];
    return (await writeAll(files, options.force, terminal)) ? exitCodes.passed : exitCodes.failed;
  } catch (error) {
    const isOurs = error instanceof TelosError;
    terminal.say(terminal.style.red(isOurs ? errorText(error) : terminalText(reasonOf(error))));
    return isOurs ? exitCodes.usage : exitCodes.failed;
  }
}

/** Writes the files, all or none of which may be written. Returns false if one was not, which was then said. */
async function writeAll(
  files: readonly { file: string; text: string }[],
  force: boolean | undefined,
  terminal: Terminal,
): Promise<boolean> {
  if (!files.every(({ file }) => mayWrite(file, force, terminal))) return false;
  for (const { file, text } of files) {
    if (!(await writeNamed(file, text, force, terminal))) return false;
    terminal.say(terminalText(`Wrote ${file}`));
  }
  return true;
}

function noResultsOf(what: string | undefined, dataDir: string): string {
  if (what === undefined || foldersOf(undefined, undefined, dataDir).length === 0)
    return 'There are no results of evals. `telos eval` makes some.';
  return `There are no results of evals of '${terminalLine(what)}'. \`telos eval report\` lists those that there are.`;
}

const hasResults = (folder: string): boolean => existsSync(join(folder, 'telos.json'));

/** Returns the folder, or those below it, that have results. */
const resultsBelow = (folder: string): string[] =>
  hasResults(folder) ? [folder] : foldersIn(folder).filter(hasResults);

/** Returns the folders of the results that are meant: `path`, those below it, or the newest of a skill or of each. */
function foldersOf(what: string | undefined, path: string | undefined, dataDir: string): string[] {
  const inside = path === undefined ? [] : resultsBelow(path);
  if (inside.length > 0) return inside;
  return foldersIn(join(dataDir, 'evals')).flatMap(folder => {
    const newest = foldersIn(folder).filter(hasResults).at(-1);
    if (newest === undefined) return [];
    if (what === undefined) return [newest];
    const { agent, skill } = readResults(newest);
    return [skill, `${agent}:${skill}`].includes(what) ? [newest] : [];
  });
}

function foldersIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .sort()
      .map(name => join(folder, name));
  } catch {
    return [];
  }
}

function summary(all: readonly StoredResults[], { outWidth }: Terminal): string {
  const hasEarlier = all.some(({ earlier }) => earlier !== undefined);
  const rows = all.flatMap(({ agent, skill, recordedAt, figures }) =>
    figures.models.map(({ model, with_skill, without_skill, old_skill }) => [
      terminalLine(`${skill} (${agent})`),
      terminalLine(model),
      shareCell(with_skill),
      shareCell(without_skill),
      ...(hasEarlier ? [shareCell(old_skill)] : []),
      recordedAt.slice(0, 16).replace('T', ' '),
    ]),
  );
  const earlier = hasEarlier ? ['Earlier'] : [];
  return `${table(['Skill', 'Model', 'With skill', 'Without', ...earlier, 'When (UTC)'], rows, outWidth)}\n`;
}

function comparison(
  [before, after, ...more]: readonly string[],
  { json }: EvalReportOptions,
  terminal: Terminal,
): number {
  const compared = before === undefined || more.length > 0 ? undefined : comparedIn(before, after);
  if (!compared) {
    terminal.say(
      '--compare needs two folders of results, the earlier one first, or one in which an earlier version has run too.',
    );
    return exitCodes.usage;
  }
  terminal.out(json ? `${terminalJson(compared)}\n` : comparisonText(compared, terminal));
  return compared.broke.length > 0 ? exitCodes.failed : exitCodes.passed;
}

/** Returns undefined if there is nothing to compare with. */
function comparedIn(before: string, after: string | undefined): Compared | undefined {
  const one = resultsIn(before);
  if (after !== undefined) return compareResults(one, resultsIn(after));
  return one.earlier === undefined ? undefined : compareResults(one, one, 'old_skill');
}

/** Returns the results in a folder, as `eval --output` writes it or of one skill. Throws TelosError `config` if they are not of one skill. */
function resultsIn(path: string): StoredResults {
  const [folder, ...more] = resultsBelow(path);
  if (folder === undefined)
    throw new TelosError('config', `There are no results of evals in ${path}. Name a folder of results.`);
  if (more.length === 0) return readResults(folder);
  const names = [folder, ...more].map(each => basename(each)).join(', ');
  throw new TelosError(
    'config',
    `${path} has results of several skills. Name the folder of one in it: ${names}.`,
  );
}

function comparisonText({ models, broke, mended }: Compared, { outWidth }: Terminal): string {
  const rows = models.map(one => [
    terminalLine(one.model),
    one.before ? shareText(one.before).trim() : '',
    one.after ? shareText(one.after).trim() : '',
    one.before && one.after ? (one.isSure ? 'yes' : 'may be chance') : '',
    `${one.tokens < 0 ? '-' : '+'}${Math.abs(one.tokens).toFixed(0)}`,
  ]);
  const lines = [
    table(['Model', 'Before', 'After', 'Differs', 'Tokens'], rows, outWidth),
    ...broke.map(name => terminalLine(`broke: ${name}`)),
    ...mended.map(name => terminalLine(`fixed: ${name}`)),
  ];
  return `${lines.join('\n')}\n`;
}
