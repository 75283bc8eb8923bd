/**
 * Takes a plan over from a runner that was killed: ends what it left running, makes journal and branch agree, keeps the work that was
 * cut off, and says where each attempt goes on. Whatever it does can be cut off and done again.
 */

import { existsSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ProcessRow } from '@telos/engine/files';
import { processTable } from '@telos/engine/tools';
import type { PlanEvent } from '@telos/protocol/plan';
import { type Git, runnerMark } from './git.ts';
import type { Journal } from './journal.ts';
import { missingStories, planCommits } from './planCommits.ts';
import type { PlanFolder } from './planFolder.ts';
import { foldPlan, type PlanState } from './planState.ts';
import { parsePrd } from './prdFile.ts';
import type { RunnerLock } from './runnerLock.ts';
import type { Slots } from './slots.ts';
import { isWorkDone, noChange, type OpenAttempt, type StoryState } from './storyState.ts';

export interface Takeover {
  folder: PlanFolder;
  lock: Pick<RunnerLock, 'previous' | 'mark' | 'away'>;
  git: Git;
  slots: Slots;
  journal: Journal;
  /** Of the plan's settings. */
  branch: string;
  /** Jobs of workers are found again. Otherwise their attempts are over. */
  keepsJobs?: boolean;
}

/** Ref of the files of an attempt. */
export const attemptRef = (plan: string, story: string, attempt: number): string =>
  `refs/telos/${plan}/${story}/a${attempt}`;

/**
 * Brings the plan to where it can go on, and returns what was done for that, in sentences. Attempts that are still open afterwards have
 * their work in a commit, so that their work trees may be used for anything. Call it under the lock, before anything else writes.
 */
export async function recover(takeover: Takeover): Promise<string[]> {
  const { lock, slots, journal } = takeover;
  const what: string[] = [];
  await noteAway(lock, journal);
  if (lock.previous) {
    const ended = await endMarked(lock.mark);
    if (ended > 0)
      what.push(`Ended ${ended === 1 ? 'a process' : `${ended} processes`} that the last runner left.`);
  }
  for (const path of await slots.removeGitLocks()) what.push(`Removed ${path}, which a killed git left.`);
  what.push(...(await repairBranch(takeover)), ...(await agree(takeover)));
  for (const story of stateOf(takeover).stories) {
    if (!story.open) continue;
    if (story.open.commit !== undefined) await endApproved(takeover, story, story.open);
    else if (story.open.job && takeover.keepsJobs)
      what.push(`${story.story.id} goes on with its job on the worker ${story.open.job.worker}.`);
    else if (!(await canGoOn(takeover, story, story.open)))
      what.push(await endInterrupted(takeover, story, story.open));
    else what.push(`${story.story.id} goes on where its attempt ${story.open.attempt} was cut off.`);
  }
  what.push(...(await keepLeft(slots)));
  if (what.length > 0) await journal.append({ type: 'recovered', what });
  return what;
}

/** Time in which nothing worked on the plan is not charged to it. */
export async function noteAway(lock: Pick<RunnerLock, 'away'>, journal: Journal): Promise<void> {
  const ms = lock.away();
  if (ms > 0) await journal.append({ type: 'away', ms });
}

function stateOf({ folder, journal }: Takeover): PlanState {
  const stories = folder.readPrds().map(({ path, text }) => parsePrd(path, text).story);
  return foldPlan(journal.lines, stories);
}

/** In milliseconds. An orphaned git may be in the middle of a write, so it may end by itself. */
const patience = 5_000;
const termPatience = 1_000;

/** Ends every process that carries the mark of the plan's runners. Returns their number. Resolves when they are gone. */
export async function endMarked(mark: string): Promise<number> {
  const seen = new Set<number>();
  const start = performance.now();
  for (let tries = 0; tries < 400; tries++) {
    const rows = await markedProcesses(mark);
    if (rows.length === 0) break;
    const waited = performance.now() - start;
    for (const row of rows) {
      if (!seen.has(row.pid) && row.name !== 'git') signal(row, 'SIGTERM');
      seen.add(row.pid);
      if (waited > patience || (waited > termPatience && row.name !== 'git')) signal(row, 'SIGKILL');
    }
    await delay(25);
  }
  return seen.size;
}

async function markedProcesses(mark: string): Promise<ProcessRow[]> {
  const entry = Buffer.from(`${runnerMark}=${mark}`);
  const table = await processTable();
  const found = await Promise.all(
    table.rows.map(async row => {
      if (row.pid === process.pid) return [];
      return (await table.environmentOf(row))?.includes(entry) ? [row] : [];
    }),
  );
  return found.flat();
}

function signal({ pid }: ProcessRow, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended meanwhile.
  }
}

/** After a power cut the branch may name a commit that the disk has only in part. It goes back to the last whole one. */
async function repairBranch(takeover: Takeover): Promise<string[]> {
  const { git, journal, branch } = takeover;
  const { base } = stateOf(takeover);
  if (base === undefined) return [];
  const ref = `refs/heads/${branch}`;
  const loose = join(await git.commonDir(), ref);
  const named = await git.run(['rev-parse', '--verify', '--quiet', ref], { allow: [1, 128] });
  if (named.code !== 0 && !existsSync(loose)) return [];
  if (named.code === 0 && (await isWhole(git, named.stdout.trim(), base))) return [];
  const commits = journal.lines.flatMap(line => (line.type === 'story_passed' ? [line.commit] : []));
  for (const commit of [...commits.reverse(), base]) {
    if (!(await isWhole(git, commit, base))) continue;
    if (existsSync(loose)) await rename(loose, `${loose}.broken-${Date.now().toString(36)}`);
    await git.run(['update-ref', '-m', 'telos: the last whole commit', ref, commit]);
    return [
      `The branch ${branch} named a commit that the disk does not have whole, so it is back at ${commit}.`,
    ];
  }
  return [];
}

/** Whether everything is there that a commit has beyond the base. */
async function isWhole(git: Git, commit: string, base: string): Promise<boolean> {
  const args = ['rev-list', '--objects', '--quiet', '--end-of-options', commit, `^${base}`];
  return (await git.run(args, { allow: [1, 128] })).code === 0;
}

/** Makes the journal say what the branch has: the branch is right. */
async function agree(takeover: Takeover): Promise<string[]> {
  const { git, folder, journal, branch } = takeover;
  const { base } = stateOf(takeover);
  if (base === undefined) return [];
  const onBranch = await planCommits(git, base, branch, folder.name);
  const known = new Set(journal.lines.flatMap(line => (line.type === 'story_passed' ? [line.commit] : [])));
  const what: string[] = [];
  for (const { story, commit, items, isPart } of onBranch.filter(one => !known.has(one.commit))) {
    const attempt = stateOf(takeover).story(story)?.open?.attempt;
    const event: PlanEvent = { type: 'story_passed', story, items, commit, recovered: true };
    await journal.append({
      ...event,
      ...(isPart && { part: true }),
      ...(attempt !== undefined && { attempt }),
    });
    what.push(`${story} was on the branch already (${commit.slice(0, 10)}).`);
  }
  // What the branch does not have any more is to be done again.
  for (const { story, why, items } of missingStories(stateOf(takeover).stories, onBranch, branch)) {
    await journal.append({ type: 'story_reopened', story, why, by: 'engine', ...(items && { items }) });
    what.push(`${story} is open again: ${why}.`);
  }
  return what;
}

/** Keeps the work of a step that had ended: it was paid for. Returns false if nothing is there with which the attempt could go on. */
async function canGoOn(
  { git, folder, slots, journal }: Takeover,
  { story: { id } }: StoryState,
  { attempt, slot: number, parent, snapshot, worked, job }: OpenAttempt,
): Promise<boolean> {
  if (snapshot) return isWhole(git, snapshot.commit, parent);
  // Its files were never here.
  if (job) return false;
  const slot = isWorkDone(worked) ? await slots.find(number) : undefined;
  if (!slot) return false;
  const ref = attemptRef(folder.name, id, attempt);
  const kept = await slots.snapshot(slot, { ref, parent, message: `${id}: attempt ${attempt}` });
  const of = { story: id, attempt };
  await journal.append(
    kept ? { type: 'snapshot', ...of, ...kept } : { type: 'attempt_ended', ...of, ...noChange },
  );
  return true;
}

async function endApproved(
  { journal }: Takeover,
  { story, status }: StoryState,
  open: OpenAttempt,
): Promise<void> {
  const approved = status === 'passed' ? 'approved' : 'approved-partial';
  const details = open.verdict?.text ?? 'It was on the branch already.';
  await journal.append({
    type: 'attempt_ended',
    story: story.id,
    attempt: open.attempt,
    status: approved,
    details,
  });
}

async function endInterrupted(
  { folder, slots, journal }: Takeover,
  { story }: StoryState,
  { attempt, parent, slot: number, job }: OpenAttempt,
): Promise<string> {
  const slot = job ? undefined : await slots.find(number);
  const ref = attemptRef(folder.name, story.id, attempt);
  const message = `${story.id}: attempt ${attempt}, cut off`;
  const kept = slot && (await slots.snapshot(slot, { ref, parent, message }));
  const patch = kept && (await slots.savePatch(`${story.id}.a${attempt}`, parent, kept.commit));
  const details =
    patch === undefined
      ? 'It was cut off before it changed a file.'
      : `It was cut off; its work is kept in ${patch}.`;
  await journal.append({ type: 'attempt_ended', story: story.id, attempt, status: 'interrupted', details });
  return `${story.id}, attempt ${attempt}: ${details}`;
}

/** Work that lies in no attempt's work tree, of a person who tried something there for example. */
async function keepLeft(slots: Slots): Promise<string[]> {
  const what: string[] = [];
  for (const number of slots.numbers()) {
    const slot = await slots.find(number);
    const ref = slot && (await slots.keepUnknown(slot));
    if (ref !== undefined) what.push(`What lay in slot ${number} is kept as ${ref}.`);
  }
  return what;
}
