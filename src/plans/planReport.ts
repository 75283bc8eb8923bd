/** Folds a plan's journal to what a person judges it by: each story's attempts with their checks, verdicts and costs. Reads no disk. */
import type { JournalLine } from '@telos/protocol/plan';
import type { AttemptReport, CheckReport, PlanReport, StoryReport } from '@telos/protocol/planPage';
import type { Usage } from '@telos/protocol/run';
import { addedUsage } from '@telos/protocol/usage';
import type { PlanState } from './planState.ts';
import type { StoryState } from './storyState.ts';

type Attempt = { -readonly [Key in keyof AttemptReport]: AttemptReport[Key] } & { usage?: Usage };

/** Returns the report. What checks printed is in it for the story `detailed` alone. */
export function reportOf(lines: readonly JournalLine[], state: PlanState, detailed?: string): PlanReport {
  const attempts = new Map<string, Attempt[]>();
  for (const line of lines)
    if ('story' in line && line.story !== undefined) {
      const own = attempts.get(line.story) ?? [];
      attempts.set(line.story, own);
      foldAttempt(own, line);
    }
  const { goal, phase, phaseWhy, base, branch, workedMs, usage, finished } = state;
  return {
    goal,
    phase,
    workedMs,
    ...(phaseWhy !== undefined && { why: phaseWhy }),
    ...(base !== undefined && { base }),
    ...(branch !== undefined && { branch }),
    ...(usage && { cost: usage.cost }),
    ...(finished && { finished }),
    stories: state.stories.map(story =>
      storyReport(story, attempts.get(story.story.id) ?? [], story.story.id === detailed),
    ),
  };
}

function storyReport(state: StoryState, attempts: readonly Attempt[], isDetailed: boolean): StoryReport {
  const { story, status, passed, accepted, commits, usage, why } = state;
  const commands = new Map(story.checks.map(({ name, command }) => [name, command]));
  const checkReport = (check: CheckReport): CheckReport => {
    const command = commands.get(check.name);
    return {
      ...check,
      output: isDetailed ? check.output : '',
      ...(command !== undefined && { command }),
    };
  };
  return {
    id: story.id,
    title: story.title,
    status,
    items: story.items.map(({ number, text }) => ({
      number,
      text,
      ...(passed.has(number) ? { closed: 'passed' } : accepted.has(number) ? { closed: 'accepted' } : {}),
    })),
    commits: commits.map(({ commit }) => commit),
    attempts: attempts.map(({ usage: used, ...attempt }) => ({
      ...attempt,
      ...(used && { cost: used.cost }),
      checks: attempt.checks.map(checkReport),
    })),
    ...(usage && { cost: usage.cost }),
    ...(why !== undefined && { why }),
  };
}

function foldAttempt(attempts: Attempt[], line: JournalLine): void {
  if (line.type === 'attempt_started') {
    attempts.push({ attempt: line.attempt, checks: [], steps: [] });
    return;
  }
  const last =
    'attempt' in line ? attempts.findLast(({ attempt }) => attempt === line.attempt) : attempts.at(-1);
  if (!last) return;
  switch (line.type) {
    case 'job_given':
      last.worker = line.worker;
      break;
    case 'step_started':
      last.steps = [...last.steps, { step: line.step, runId: line.runId }];
      break;
    case 'step_ended':
      if (line.usage) last.usage = addedUsage(last.usage, line.usage);
      break;
    case 'snapshot':
      last.change = { files: line.files, added: line.added, removed: line.removed };
      break;
    case 'check_ended': {
      const { name, exitCode, ms, output, suspicious, outside } = line;
      const check: CheckReport = {
        name,
        exitCode,
        ms,
        output,
        ...(suspicious !== undefined && { suspicious }),
        ...(outside && { outside }),
      };
      last.checks = [...last.checks.filter(other => other.name !== name), check];
      break;
    }
    case 'tamper':
      last.tamper = { findings: line.findings, isDenied: line.decision === 'denied' };
      break;
    case 'verdict':
      last.verdict = { approved: line.approved, text: line.text };
      break;
    case 'attempt_ended':
      last.status = line.status;
      if (line.details) last.details = line.details;
      break;
  }
}
