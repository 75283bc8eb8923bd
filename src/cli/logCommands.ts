/** Implements what reads the log: `telos cost`, and `telos runs --follow`. */

import { watch } from 'node:fs';
import { join } from 'node:path';
import { makeOwnFolders } from '@telos/engine/files';
import {
  LogReader,
  type LogRecord,
  readSkillUse,
  readSpending,
  type SkillEndRecord,
  type Spending,
  type Spent,
  type SpentBy,
} from '@telos/engine/records';
import { Telos } from '@telos/engine/telos';
import { counted } from '@telos/protocol/text';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { abortOnInterrupt, type Terminal } from './terminal.ts';
import { table, terminalJson, terminalLine, terminalText } from './terminalText.ts';

export interface CostOptions extends ConfigOptions {
  days?: string;
  json?: boolean;
}

/** Prints the cost by day, agent, skill and model, and returns the exit code. */
export async function costCommand(options: CostOptions, terminal: Terminal): Promise<number> {
  const days = daysOf(options, terminal);
  const config = days === undefined ? undefined : configFor(options, terminal);
  if (days === undefined || !config) return 2;
  const spending = await readSpending(config.dataDir, days);
  const { from, to, total, skippedLines } = spending;
  if (skippedLines > 0) terminal.say(skippedText(skippedLines));
  if (options.json) {
    terminal.out(`${terminalJson(spending)}\n`);
    return 0;
  }
  const span = days === 1 ? `on ${to}` : `from ${from} to ${to}`;
  if (total.runs === 0) {
    terminal.say(terminalText(`No runs ${span}; they are logged in ${config.dataDir}/logs.`));
    return 0;
  }
  terminal.out(`${tables(spending, terminal.outWidth)}\n`);
  if (total.unknownRuns > 0) {
    const runs = total.unknownRuns === 1 ? 'one run' : `${total.unknownRuns} runs`;
    const why = 'no price of the model is listed, or it did not say how many tokens it used.';
    terminal.say(terminal.style.yellow(`What ${runs} cost is not known: ${why}`));
  }
  return 0;
}

/** Returns undefined after a complaint. */
function daysOf(options: CostOptions, terminal: Terminal): number | undefined {
  const days = Number(options.days ?? 30);
  if (Number.isInteger(days) && days >= 1 && days <= 100_000) return days;
  terminal.say('--days takes a whole number of at least 1.');
  return undefined;
}

/** Prints how each skill has done, and which did not run, and returns the exit code. */
export async function skillUseCommand(
  options: CostOptions & { agent?: string },
  terminal: Terminal,
): Promise<number> {
  const days = daysOf(options, terminal);
  const config = days === undefined ? undefined : configFor(options, terminal);
  if (days === undefined || !config) return 2;
  const { skills: all, from, to, skippedLines } = await readSkillUse(config.dataDir, days);
  const isMeant = ({ agent }: { agent: string }): boolean =>
    options.agent === undefined || agent === options.agent;
  const skills = all.filter(isMeant);
  const installed = (await Telos.open(config).agents()).flatMap(({ name, skills: own }) =>
    own.map(({ id }) => ({ agent: name, skill: id })),
  );
  const unused = installed.filter(
    one => isMeant(one) && !skills.some(({ agent, skill }) => agent === one.agent && skill === one.skill),
  );
  if (skippedLines > 0) terminal.say(skippedText(skippedLines));
  if (options.json) {
    terminal.out(`${terminalJson({ from, to, skills, unused, skippedLines })}\n`);
    return 0;
  }
  const headings = ['Skill', 'Agent', 'Runs', 'By hand', 'Left', 'Failed', 'Stopped', 'Cost', 'Median'];
  const rows = skills.map(use => [
    terminalLine(use.skill),
    terminalLine(use.agent),
    ...[use.runs, use.byHand, use.left, use.failed, use.stopped].map(String),
    costText({
      knownCost: use.cost,
      runs: use.runs,
      unknownRuns: use.unknownCosts,
      cost: use.unknownCosts > 0 ? 'unknown' : use.cost,
    }),
    `${(use.medianMs / 1000).toFixed(1)} s`,
  ]);
  if (rows.length > 0) terminal.out(`${table(headings, rows, terminal.outWidth)}\n`);
  else terminal.say(terminalText(`No skill ran from ${from} to ${to}.`));
  if (rows.length > 0 && unused.length > 0)
    terminal.say(`${counted(unused.length, 'skill')} did not run from ${from} to ${to}; --json names them.`);
  return 0;
}

function tables({ byDay, byAgent, bySkill, byModel, total }: Spending, width: number | undefined): string {
  const parts: readonly [string, readonly SpentBy[]][] = [
    ['Day', byDay],
    ['Agent', byAgent],
    ['Skill', bySkill],
    ['Model', byModel],
  ];
  return parts
    .map(([heading, rows], index) => {
      const last = index === parts.length - 1 ? [cells('Total', total)] : [];
      const lines = [...rows.map(row => cells(row.name, row)), ...last];
      return table([heading, ...figures], lines, width);
    })
    .join('\n\n');
}

const figures = ['Runs', 'In', 'Cached', 'Out', 'Cost'];

function cells(name: string, spent: Spent): string[] {
  const { runs, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = spent;
  const tokens = [inputTokens, cacheReadTokens + cacheWriteTokens, outputTokens];
  return [name, String(runs), ...tokens.map(String), costText(spent)];
}

/** Words a cost. An unknown part is never silently left out of a sum. */
function costText({
  cost,
  knownCost,
  runs,
  unknownRuns,
}: Pick<Spent, 'cost' | 'knownCost' | 'runs' | 'unknownRuns'>): string {
  if (cost !== 'unknown') return `$${cost.toFixed(4)}`;
  return unknownRuns === runs ? 'unknown' : `$${knownCost.toFixed(4)} + ${unknownRuns} unknown`;
}

const skippedText = (lines: number): string =>
  lines === 1
    ? 'One line of the log cannot be read and was skipped.'
    : `${lines} lines of the log cannot be read and were skipped.`;

/** Prints each record of today's log as it is written, until Ctrl-C. Returns the exit code. */
export async function followCommand(
  options: ConfigOptions & { json?: boolean },
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const { signal, release } = abortOnInterrupt(terminal, () => {});
  try {
    await followLog(config.dataDir, signal, record => {
      terminal.out(`${options.json ? terminalJson(record) : terminalLine(recordText(record))}\n`);
    });
  } finally {
    release();
  }
  return 0;
}

/** Passes on new records until the signal aborts. Throws the error of the file system. */
async function followLog(
  dataDir: string,
  signal: AbortSignal,
  onRecord: (record: LogRecord) => void,
): Promise<void> {
  const folder = join(dataDir, 'logs');
  makeOwnFolders(folder);
  const reader = new LogReader(dataDir, 'end');
  const watcher = watch(folder);
  const readOn = async (): Promise<void> => {
    for await (const { records } of reader.readOn()) records.forEach(onRecord);
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

function recordText(record: LogRecord): string {
  const run = `${timeOf(record.ts)} ${record.run_id.slice(0, 8)}`;
  switch (record.event) {
    case 'skill_start':
      return `${run} ${record.skill} of ${record.agent} starts (${record.provider} ${record.model})`;
    case 'tool_call':
      return `${run} ${record.is_error ? '✗' : '→'} ${record.tool}`;
    case 'model_call':
      return `${run} ${record.cost === 'unknown' ? 'a cost that is not known' : `$${record.cost.toFixed(4)}`}`;
    case 'skill_end':
      return `${run} ${callText(record)}${record.outcome}${record.error ? `: ${record.error}` : ''}`;
  }
}

/** Names who asked a question that did not come from a run. */
const callText = ({ call }: SkillEndRecord): string =>
  call ? `${call.provider} ${call.model}, asked by the ${call.door}: ` : '';

/** Returns the local time of the day, such as `09:30`. */
function timeOf(iso: string): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return iso;
  return [date.getHours(), date.getMinutes()].map(part => String(part).padStart(2, '0')).join(':');
}
