/** Says from the log and the stored runs how each skill has done: how often it ran, how it was found, how it ended, what it cost. */
import type { RouteRule } from '@telos/protocol/run';
import { dayOf, eachRecord, figureIn, logDays, type SkillEndRecord } from './logFile.ts';
import { RunHistory } from './runHistory.ts';
import type { RunSummary } from './runSummary.ts';

/** What is known of a skill. `byHand` and `left` are known only of runs whose file is still there. */
export interface SkillUse {
  agent: string;
  skill: string;
  runs: number;
  /** Runs for which the person named or picked the skill, which routing alone did not choose. */
  byHand: number;
  /** Runs after which the conversation went on with another skill, or the same request ran with another one. */
  left: number;
  failed: number;
  /** Runs that the person stopped. */
  stopped: number;
  /** In US dollars, as far as it is known. */
  cost: number;
  /** Runs whose cost is not known. */
  unknownCosts: number;
  medianMs: number;
}

export interface SkillUses {
  /** First and last day of the period, as `2026-01-31`. */
  from: string;
  to: string;
  /** The most used first. Skills that did not run are not among them. */
  skills: readonly SkillUse[];
  /** Number of lines of the log that are not records. */
  skippedLines: number;
}

/** Rules by which the person says which skill it is. */
const handRules: ReadonlySet<RouteRule> = new Set(['chosen', 'explicit']);

/** Reads the last `days` days, including today, by the local calendar. Throws the error of the file system. */
export async function readSkillUse(dataDir: string, days: number, now = new Date()): Promise<SkillUses> {
  const dayBefore = (count: number): string =>
    dayOf(new Date(now.getFullYear(), now.getMonth(), now.getDate() - count));
  const [from, to] = [dayBefore(days - 1), dayBefore(0)];
  const summaries = new Map((await new RunHistory(dataDir).list()).map(run => [run.runId, run]));
  const left = leftRuns([...summaries.values()]);
  const groups = new Map<string, SkillEndRecord[]>();
  let skippedLines = 0;
  for (const { day, file } of logDays(dataDir)) {
    if (day < from || day > to) continue;
    skippedLines += await eachRecord(file, record => {
      if (record.event !== 'skill_end' || !record.agent || !record.skill) return;
      const key = JSON.stringify([record.agent, record.skill]);
      // The conversation, which may be long, is not kept.
      const group = groups.get(key) ?? [];
      group.push({ ...record, messages: [] });
      groups.set(key, group);
    });
  }
  const skills = [...groups.values()].map(records => useOf(records, summaries, left));
  return { from, to, skills: skills.sort(mostUsedFirst), skippedLines };
}

const mostUsedFirst = (one: SkillUse, other: SkillUse): number =>
  other.runs - one.runs || (one.skill < other.skill ? -1 : 1);

function useOf(
  records: readonly SkillEndRecord[],
  summaries: ReadonlyMap<string, RunSummary>,
  left: ReadonlySet<string>,
): SkillUse {
  const [first] = records;
  const count = (holds: (record: SkillEndRecord) => boolean): number => records.filter(holds).length;
  const times = records
    .map(({ duration_s }) => Math.max(0, figureIn(duration_s)) * 1000)
    .sort((a, b) => a - b);
  const middle = Math.floor(times.length / 2);
  const [low = 0, high = 0] = [times[times.length % 2 === 0 ? middle - 1 : middle], times[middle]];
  return {
    agent: first?.agent ?? '',
    skill: first?.skill ?? '',
    runs: records.length,
    byHand: count(({ run_id }) => handRules.has(summaries.get(run_id)?.rule ?? 'index')),
    left: count(({ run_id }) => left.has(run_id)),
    failed: count(({ outcome }) => outcome === 'failed'),
    stopped: count(({ outcome }) => outcome === 'cancelled'),
    cost: records.reduce((sum, { cost }) => sum + Math.max(0, figureIn(cost)), 0),
    unknownCosts: count(({ cost }) => typeof cost !== 'number'),
    medianMs: (low + high) / 2,
  };
}

/** Returns the runs behind which another one, with another skill, follows or takes their place. */
function leftRuns(all: readonly RunSummary[]): ReadonlySet<string> {
  const left = new Set<string>();
  const isOther = (one: RunSummary, next: RunSummary): boolean =>
    next.skill !== '' && (one.skill !== next.skill || one.agent !== next.agent);
  const byPlace = new Map<string, RunSummary>();
  const byId = new Map(all.map(run => [run.runId, run]));
  for (const run of [...all].reverse()) {
    const before = run.after === undefined ? undefined : byId.get(run.after);
    if (before && isOther(before, run)) left.add(before.runId);
    // Runs after the same one are siblings: the later takes the place of the earlier.
    const place = `${run.conversation}\n${run.after ?? ''}`;
    const sibling = byPlace.get(place);
    if (sibling && isOther(sibling, run)) left.add(sibling.runId);
    byPlace.set(place, run);
  }
  return left;
}
