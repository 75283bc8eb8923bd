/** Remembers on this machine which tests were flaky in the last runs, since one run alone cannot tell a rare fault from a common one. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

/** How many runs are remembered, and in how many of them a test may be flaky before it fails the night. */
export const remembered = 10;
export const tolerated = 2;

interface Run {
  at: string;
  flaky: string[];
}

const usualFile = join(
  process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'),
  'telos-tests',
  'flaky.json',
);

/**
 * Adds a run, and returns in how many of the last ten runs, this one included, each of its flaky tests was flaky. A file that is missing
 * or broken counts as no runs.
 */
export function rememberFlakes(flaky: readonly string[], file = usualFile): Map<string, number> {
  const runs = [...readRuns(file), { at: new Date().toISOString(), flaky: [...new Set(flaky)] }].slice(
    -remembered,
  );
  mkdirSync(dirname(file), { recursive: true });
  const fresh = `${file}.${process.pid}`;
  writeFileSync(fresh, JSON.stringify(runs, undefined, 1));
  renameSync(fresh, file);
  return new Map(flaky.map(title => [title, runs.filter(run => run.flaky.includes(title)).length]));
}

function readRuns(file: string): Run[] {
  try {
    const runs: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return Array.isArray(runs) ? runs.filter(run => Array.isArray(run?.flaky)) : [];
  } catch {
    return [];
  }
}
