/** Reads what a skill of a habit is written from: its runs as they are stored, without anything that may be a secret. */

import { RunHistory, type StoredRun } from '@telos/engine/records';
import type { Telos } from '@telos/engine/telos';
import { caseFromRun, type RunCase } from './caseFromRun.ts';
import { fewestRuns, type Habit, programIn, usedRuns } from './habits.ts';

/** One run of a habit. */
export interface HabitRun extends RunCase {
  /** What the user said afterwards in the same conversation. */
  corrections: readonly string[];
  /** Commands that it ran, as they were. */
  commands: readonly string[];
}

export interface HabitMaterial {
  habit: Habit;
  runs: readonly HabitRun[];
  /** Programs that ran in them. */
  programs: ReadonlySet<string>;
}

const hidden = '[redacted]';
/** A word behind which a secret stands, and a word that is too mixed to be one. */
const assigned =
  /\b(pass(?:word|wd|phrase)?|passwort|kennwort|secret|token|api[-_ ]?key|access[-_ ]?key|key|schlüssel|auth(?:orization)?|bearer|pin)\b(["']?\s*(?:is|ist|:=|=>|[:=])\s*["']?|\s+["']?(?=\S*\d))([^\s"',;]{4,})/giu;
const mixed = /(?<![\w/.-])(?=[\w+=-]*\d)(?=[\w+=-]*[A-Za-z])[A-Za-z0-9_+=-]{16,}(?![\w/])/g;
const inAddress = /\b([a-z][\w+.-]*:\/\/)[^\s/@:]+:[^\s/@]+@/gi;
const keyBlock = /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g;

/** Returns the text without what may be a secret, also one that Telos was never told of. */
export const withoutSecrets = (text: string): string =>
  text
    .replace(keyBlock, hidden)
    .replace(inAddress, `$1${hidden}@`)
    .replace(assigned, `$1$2${hidden}`)
    .replace(mixed, hidden);

/** Reads the runs of a habit. One that cannot be read any more is left out. Undefined if fewer are left than make a habit. */
export async function readHabit(habit: Habit, telos: Telos): Promise<HabitMaterial | undefined> {
  const history = new RunHistory(telos.config.dataDir);
  const { text } = await telos.fullRedactor();
  const safe = (original: string): string => withoutSecrets(text(original));
  const all = await history.shown();
  const runs: HabitRun[] = [];
  for (const { runId, conversation, startedAt } of usedRuns(habit)) {
    const stored = await history.read(runId).catch(() => undefined);
    if (!stored) continue;
    const found = await caseFromRun(stored, telos.changes, safe);
    runs.push({
      ...found,
      ...startOf(found, stored),
      corrections: all
        .filter(run => run.conversation === conversation && run.startedAt > startedAt)
        .map(({ request }) => safe(request)),
      commands: commandsOf(stored).map(safe),
    });
  }
  if (runs.length < Math.min(fewestRuns, habit.runs.length)) return undefined;
  return { habit, runs, programs: new Set(runs.flatMap(run => run.commands.map(firstWord))) };
}

/**
 * Returns the files that a run started from, and its checks. A file that it replaced unread is left out, or an eval would find it there
 * without any work; one that it edited has to change again. Bytes that are not text may hold anything.
 */
function startOf({ files, checks }: RunCase, { events }: StoredRun): Pick<RunCase, 'files' | 'checks'> {
  const read = events.flatMap(event =>
    event.type === 'tool_start' && /^(?:read|edit)_file$/.test(event.call.name)
      ? [String(event.call.input['path'] ?? '').replaceAll('\\', '/')]
      : [],
  );
  const isRead = (path: string): boolean => read.some(one => one === path || one.endsWith(`/${path}`));
  const kept = files.filter(({ path, content }) => isRead(path) && !content.includes(0));
  const written = checks.flatMap(check => ('file' in check ? [check.file] : []));
  const isEdited = written.some(file => kept.some(({ path }) => path === file));
  return {
    files: kept,
    checks: isEdited ? [...checks, { files_changed: written }] : checks,
  };
}

const commandsOf = ({ events }: StoredRun): string[] =>
  events.flatMap(event =>
    event.type === 'tool_start' && event.call.name === 'run_command'
      ? [String(event.call.input['command'] ?? '')]
      : [],
  );

/** Returns the program of a command. */
export const firstWord = (command: string): string => programIn(command).split(' ')[0] ?? '';
