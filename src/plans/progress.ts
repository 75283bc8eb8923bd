/** Writes `progress.txt`: a section for each attempt that ended, in their order. Nothing that it has is changed or removed. */
import type { AttemptStatus, JournalLine } from '@telos/protocol/plan';
import { oneLine } from './prdFile.ts';

export interface ProgressEntry {
  /** From 1, over the whole plan. */
  iteration: number;
  status: AttemptStatus;
  details: string;
  /** ISO 8601. */
  at: string;
  story?: string;
  attempt?: number;
  commit?: string;
}

/** The first lines of a new file. */
export const progressStart = '# Progress Log\n';

/** Returns one section, with an empty line before it. Details are one line, so that they cannot look like a section of their own. */
export function printProgress({
  iteration,
  status,
  details,
  at,
  story,
  attempt,
  commit,
}: ProgressEntry): string {
  const time = at.replace('T', ' ').replace(/\.\d+Z$/, ' UTC');
  const of = attempt === undefined ? '' : `, attempt ${attempt}`;
  return [
    '',
    `## Iteration ${iteration} — ${time}`,
    `- Status: ${status}`,
    `- Details: ${oneLine(details)}`,
    ...(story === undefined ? [] : [`- Story: ${story}${of}`]),
    ...(commit === undefined ? [] : [`- Commit: ${commit}`]),
    '',
  ].join('\n');
}

/** Returns the attempts that ended, as the journal has them. */
export function progressOf(lines: readonly JournalLine[]): ProgressEntry[] {
  const commits = new Map<string, string>();
  const entries: ProgressEntry[] = [];
  for (const line of lines) {
    if (line.type === 'story_passed') commits.set(`${line.story} ${line.attempt}`, line.commit);
    if (line.type !== 'attempt_ended') continue;
    const { story, attempt, status, details, ts: at } = line;
    const commit = commits.get(`${story} ${attempt}`);
    const iteration = entries.length + 1;
    entries.push({ iteration, status, details, at, story, attempt, ...(commit !== undefined && { commit }) });
  }
  return entries;
}

/** Returns the text with the sections that it lacks behind it. A person may have written into it. */
export function withProgress(text: string, entries: readonly ProgressEntry[]): string {
  const numbers = [...text.matchAll(/^## Iteration (\d+)\b/gm)].map(([, number]) => Number(number));
  const last = Math.max(0, ...numbers);
  const missing = entries.filter(({ iteration }) => iteration > last);
  if (missing.length === 0) return text;
  const start = text === '' ? progressStart : `${text.trimEnd()}\n`;
  return start + missing.map(printProgress).join('');
}
