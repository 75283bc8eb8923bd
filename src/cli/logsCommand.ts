/** Implements `telos logs`: lists runs, shows the conversation of one, and follows the log. */

import { watch } from 'node:fs';
import { join } from 'node:path';
import { makeOwnFolders } from '../engine/files/ownFolder.ts';
import {
  dayOf,
  LogReader,
  type LogRecord,
  logDays,
  mayStillRun,
  readLog,
  type SkillEndRecord,
} from '../engine/records/logFile.ts';
import type { ContentBlock, Message } from '../protocol/run.ts';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { abortOnInterrupt, type Terminal } from './terminal.ts';
import { table, terminalJson, terminalLine, terminalText } from './terminalText.ts';

export interface LogsOptions extends ConfigOptions {
  json?: boolean;
  limit?: string;
}

/** The summary of one run's records. */
interface LoggedRun {
  id: string;
  /** ISO 8601 time of its first record. */
  ts: string;
  agent: string | null;
  skill: string | null;
  /** The process that runs it. */
  pid?: number;
  end?: SkillEndRecord;
}

/** Returns the outcome. A run without an end is still running, or its process is gone. */
const outcomeOf = (run: LoggedRun): string =>
  run.end?.outcome ?? (mayStillRun(run) ? 'running' : 'interrupted');

/** Lists the last runs, the newest first. Returns the exit code. */
export async function logsCommand(options: LogsOptions, terminal: Terminal): Promise<number> {
  const limit = Number(options.limit ?? 20);
  if (!Number.isInteger(limit) || limit < 1) {
    terminal.say('--limit takes a whole number from 1 on.');
    return 2;
  }
  const config = configFor(options, terminal);
  if (!config) return 2;
  const runs = await lastRuns(config.dataDir, limit, terminal);
  if (options.json) {
    for (const run of runs) terminal.out(`${terminalJson(runJson(run))}\n`);
    return 0;
  }
  if (runs.length === 0) {
    terminal.say(terminalText(`No runs yet; they will be written to ${join(config.dataDir, 'logs')}.`));
    return 0;
  }
  const rows = runs.map(run => [
    localTime(run.ts),
    run.id.slice(0, 8),
    run.agent ?? '-',
    run.skill ?? '-',
    run.end ? `${run.end.duration_s.toFixed(1)} s` : '',
    typeof run.end?.cost === 'number' ? `$${run.end.cost.toFixed(4)}` : '',
    outcomeOf(run),
  ]);
  const headings = ['Time', 'Run', 'Agent', 'Skill', 'Duration', 'Cost', 'Outcome'];
  terminal.out(`${table(headings, rows, terminal.outWidth)}\n`);
  return 0;
}

/** Prints the conversation of one run, named by the beginning of its id, or of the last run. Returns the exit code. */
export async function logsShowCommand(
  id: string | undefined,
  options: LogsOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const run = (await lastRuns(config.dataDir, Number.POSITIVE_INFINITY, terminal, id ?? '')).find(
    candidate => candidate.end,
  );
  if (!run?.end) {
    const what = id === undefined ? 'No run has ended yet' : `No run that has ended begins with '${id}'`;
    terminal.say(terminalText(`${what}; \`telos logs\` lists the runs.`));
    return 1;
  }
  if (options.json) {
    terminal.out(`${terminalJson(run.end)}\n`);
    return 0;
  }
  for (const message of run.end.messages) terminal.out(messageText(message));
  terminal.endLine();
  if (run.end.error) terminal.say(terminal.style.red(terminalText(run.end.error)));
  return 0;
}

/** Prints each record of today's log as it is written, until Ctrl-C. Returns the exit code. */
export async function logsFollowCommand(options: LogsOptions, terminal: Terminal): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const { signal, release } = abortOnInterrupt(() => {});
  try {
    await followLog(config.dataDir, signal, record => {
      if (options.json) return terminal.out(`${terminalJson(record)}\n`);
      return terminal.out(`${terminalLine(recordText(record))}\n`);
    });
  } finally {
    release();
  }
  return 0;
}

async function lastRuns(
  dataDir: string,
  limit: number,
  terminal: Terminal,
  idPrefix = '',
): Promise<LoggedRun[]> {
  const runs = new Map<string, LoggedRun>();
  for (const { day, file } of logDays(dataDir).reverse()) {
    const { records, skipped } = await readLog(file);
    if (skipped > 0) terminal.say(skippedLogText(skipped, `${day}.jsonl`));
    for (const run of runsOf(records).reverse()) {
      if (!run.id.startsWith(idPrefix)) continue;
      const later = runs.get(run.id);
      // The run continued past midnight.
      if (later) later.ts = run.ts;
      else runs.set(run.id, run);
    }
    if (runs.size >= limit) break;
  }
  return [...runs.values()].slice(0, limit);
}

/** Words how many lines were skipped. `of` names their source: `the log`, or one of its files. */
export function skippedLogText(lines: number, of: string): string {
  return lines === 1
    ? `One line of ${of} cannot be read and was skipped.`
    : `${lines} lines of ${of} cannot be read and were skipped.`;
}

function runsOf(records: readonly LogRecord[]): LoggedRun[] {
  const runs = new Map<string, LoggedRun>();
  for (const record of records) {
    // No run took place. `telos cost` shows what the question cost.
    if (record.event === 'skill_end' && (record.routing?.alone || record.call)) continue;
    const id = String(record.run_id ?? '');
    const run = runs.get(id) ?? { id, ts: record.ts, agent: null, skill: null };
    if (record.event !== 'tool_call') {
      run.agent = record.agent;
      run.skill = record.skill;
    }
    if (record.event === 'skill_start' && typeof record.pid === 'number') run.pid = record.pid;
    if (record.event === 'skill_end') run.end = record;
    runs.set(id, run);
  }
  return [...runs.values()];
}

function runJson(run: LoggedRun): object {
  const { end, pid, ...known } = run;
  if (!end) return { ...known, outcome: outcomeOf(run) };
  const { messages, ts, event, run_id, agent, skill, ...rest } = end;
  return { ...known, ended: ts, ...rest };
}

function localTime(iso: string): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return iso;
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${dayOf(date)} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

function messageText({ role, content }: Message): string {
  const blocks: readonly ContentBlock[] =
    typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  return blocks.map(block => terminalText(blockText(role, block))).join('');
}

function blockText(role: Message['role'], block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return `[${role}] ${block.text}\n`;
    case 'tool_use':
      return `→ ${block.name} ${JSON.stringify(block.input)}\n`;
    case 'tool_result': {
      const text =
        typeof block.content === 'string'
          ? block.content
          : block.content.map(part => (part.type === 'text' ? part.text : '[image]')).join('\n');
      return `${block.is_error ? '✗' : '←'} ${text}\n`;
    }
    case 'image':
      return `[${role}] [image]\n`;
    default:
      return '';
  }
}

function recordText(record: LogRecord): string {
  const time = localTime(record.ts).slice(-5);
  switch (record.event) {
    case 'skill_start':
      return `${time} ${record.run_id.slice(0, 8)} ${record.skill} of ${record.agent} starts (${record.provider} ${record.model})`;
    case 'tool_call':
      return `${time} ${record.run_id.slice(0, 8)} ${record.is_error ? '✗' : '→'} ${record.tool}`;
    case 'skill_end':
      return `${time} ${record.run_id.slice(0, 8)} ${callText(record)}${record.outcome}${record.error ? `: ${record.error}` : ''}`;
  }
}

/** Names who asked a question that did not come from a run. */
const callText = ({ call }: SkillEndRecord): string =>
  call ? `${call.provider} ${call.model}, asked by the ${call.door}: ` : '';

/** Passes on new records until the signal aborts. Throws what the file system reports. */
export async function followLog(
  dataDir: string,
  signal: AbortSignal,
  onRecord: (record: LogRecord) => void,
): Promise<void> {
  const folder = join(dataDir, 'logs');
  makeOwnFolders(folder);
  const reader = new LogReader(dataDir, 'end');
  const watcher = watch(folder);
  const readOn = async (): Promise<void> => {
    for (const record of (await reader.readOn()).records) onRecord(record);
  };
  let reading = Promise.resolve();
  try {
    await new Promise<void>((resolve, reject) => {
      watcher.on('error', reject);
      watcher.on('change', () => {
        reading = reading.then(readOn).catch(reject);
      });
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  } finally {
    watcher.close();
  }
}
