/** Implements `telos runs`: lists, shows, exports, replays, renames and deletes stored runs. */

import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import {
  type ExportFormat,
  exportedConversation,
  figuresOf,
  inputText,
  paced,
  partsOf,
  RunHistory,
  type RunPart,
  type RunSummary,
  requestOf,
  type StoredRun,
  skippedText,
  timeText,
  titleOf,
} from '@telos/engine/records';
import { Telos } from '@telos/engine/telos';
import { type ConfigOptions, configFor, writeNamed } from './cliConfig.ts';
import { jsonPrinter, openTextPrinter } from './runPrinter.ts';
import { typedPath } from './surroundings.ts';
import { abortOnInterrupt, type Terminal } from './terminal.ts';
import { agrees } from './terminalHuman.ts';
import { exactText, sayError, table, terminalJson, terminalLine, terminalText } from './terminalText.ts';

export interface RunsOptions extends ConfigOptions {
  json?: boolean;
  limit?: string;
  search?: string;
  format?: ExportFormat;
  output?: string;
  /** An existing `output` is replaced. */
  force?: boolean;
  yes?: boolean;
  verbose?: boolean;
}

/** Lists stored runs, the newest first. Like all commands here, it returns the exit code. */
export async function runsCommand(options: RunsOptions, terminal: Terminal): Promise<number> {
  const limit = Number(options.limit ?? 20);
  if (!Number.isInteger(limit) || limit < 1) {
    terminal.say('--limit takes a whole number of at least 1.');
    return 2;
  }
  return withHistory(options, terminal, async history => {
    const runs = await wantedRuns(history, options.search, limit, terminal);
    const exitCode = sayUnread(history, terminal);
    if (options.json) {
      for (const run of runs) terminal.out(`${terminalJson({ ...run, title: titleOf(run) })}\n`);
      return exitCode;
    }
    if (runs.length === 0) {
      if (exitCode > 0 && !options.search) return exitCode;
      const what = options.search
        ? 'No stored run contains these words.'
        : 'No runs yet. Each run of `telos` and of the editor is stored.';
      terminal.say(what);
      return exitCode;
    }
    const rows = runs.map(run => [
      timeText(run.startedAt),
      run.runId.slice(0, 8),
      run.skill || '-',
      run.outcome.replaceAll('_', ' '),
      typeof run.usage?.cost === 'number' ? `$${run.usage.cost.toFixed(4)}` : '',
      titleOf(run),
    ]);
    terminal.out(`${table(['Time', 'Run', 'Skill', 'Outcome', 'Cost', 'Title'], rows, terminal.outWidth)}\n`);
    return exitCode;
  });
}

/** Names the files that are no runs, and returns the exit code. */
function sayUnread({ unread }: RunHistory, terminal: Terminal): number {
  for (const file of unread.slice(0, 5))
    terminal.say(terminal.style.yellow(`${exactText(file)} is not the file of a run, or cannot be read.`));
  if (unread.length > 5) terminal.say(terminal.style.yellow(`So are ${unread.length - 5} more.`));
  return unread.length > 0 ? 1 : 0;
}

async function wantedRuns(
  history: RunHistory,
  search: string | undefined,
  limit: number,
  terminal: Terminal,
): Promise<RunSummary[]> {
  if (!search) return (await history.list()).slice(0, limit);
  const { signal, release } = abortOnInterrupt(terminal, () => {});
  try {
    const runs: RunSummary[] = [];
    for await (const run of history.search(search, signal)) if (runs.push(run) >= limit) break;
    return runs;
  } finally {
    release();
  }
}

/** Shows what was asked, done and answered. */
export async function runsShowCommand(
  id: string | undefined,
  options: RunsOptions,
  terminal: Terminal,
): Promise<number> {
  return withRun(id, options, terminal, async run => {
    if (options.json) {
      terminal.out(`${terminalJson(run)}\n`);
      return 0;
    }
    const figures = figuresOf(run.summary).map(([name, value]) => `${name}: ${terminalLine(value)}`);
    terminal.out(`${terminalLine(titleOf(run.summary))}\n${figures.join('\n')}\n`);
    const request = requestOf(run);
    if (request) terminal.out(`\n> ${terminalText(request).replaceAll('\n', '\n> ')}\n`);
    for (const part of partsOf(run.events)) terminal.out(`\n${partText(part)}\n`);
    if (run.skippedLines > 0) terminal.say(terminal.style.yellow(skippedText(run.skippedLines)));
    return 0;
  });
}

/** Lines of a result that are shown. `--json` has all of them. */
const shownLines = 20;

function partText(part: RunPart): string {
  switch (part.kind) {
    case 'text':
      return terminalText(part.text.trim());
    case 'note':
      return `· ${terminalText(part.text)}`;
    case 'tool': {
      const { call, result, asked } = part;
      const notes = [result?.isError ? 'failed' : '', result ? '' : 'without a result', asked ?? ''].filter(
        Boolean,
      );
      const heading = `→ ${terminalLine(`${call.name} ${inputText(call)}`)}${notes.length > 0 ? ` (${notes.join(', ')})` : ''}`;
      const lines = terminalText(result?.content ?? '')
        .trimEnd()
        .split('\n');
      const more = lines.length > shownLines ? [`... ${lines.length - shownLines} more lines`] : [];
      const shown = [...lines.slice(0, shownLines), ...more].filter(Boolean).map(line => `  ${line}`);
      return [heading, ...shown].join('\n');
    }
  }
}

/** Writes the conversation up to the run, to a file or to stdout. */
export async function runsExportCommand(
  id: string | undefined,
  options: RunsOptions,
  terminal: Terminal,
): Promise<number> {
  const { format = 'md', output, force } = options;
  return withRun(id, options, terminal, async ({ summary: { runId } }, history, config) => {
    const { text: redact } = await Telos.open(config).fullRedactor();
    const text = await exportedConversation(await history.conversation(runId, runId), format, redact);
    if (output === undefined) {
      terminal.out(terminal.outWidth === undefined ? text : onTerminal(text, format));
      return 0;
    }
    const file = typedPath(output, terminal.surroundings);
    if (!(await writeNamed(file, text, force, terminal))) return 1;
    terminal.say(terminalText(`Written to ${file}`));
    return 0;
  });
}

/** Returns what a terminal shows of an export. JSON itself escapes only some of the characters that steer one. */
const onTerminal = (text: string, format: ExportFormat): string =>
  format === 'md' ? terminalText(text) : text.replace(/.+/g, line => terminalJson(JSON.parse(line)));

function whenOf({ startedAt }: RunSummary): string {
  const time = new Date(startedAt);
  return Number.isNaN(time.getTime()) ? '' : ` of ${time.toLocaleString()}`;
}

/** Replays the events at a readable speed. No model is asked, and no tool runs. */
export async function runsReplayCommand(
  id: string | undefined,
  options: RunsOptions,
  terminal: Terminal,
): Promise<number> {
  return withRun(id, options, terminal, async ({ events, summary, skippedLines }) => {
    if (!options.json)
      terminal.say(terminalText(`This is a replay of a run${whenOf(summary)}: nothing runs.`));
    const print = options.json
      ? jsonPrinter(terminal)
      : await openTextPrinter(terminal, { verbose: options.verbose ?? false });
    // An interrupt only ends the replay.
    const { signal, release } = abortOnInterrupt(terminal, () => {});
    try {
      for await (const event of paced(events, signal)) {
        if (signal.aborted) break;
        print(event);
      }
    } finally {
      release();
    }
    terminal.endLine();
    if (skippedLines > 0) terminal.say(terminal.style.yellow(skippedText(skippedLines)));
    return 0;
  });
}

/** Renames a run. An empty title restores the run's first words. */
export async function runsRenameCommand(
  id: string,
  title: string,
  options: RunsOptions,
  terminal: Terminal,
): Promise<number> {
  return withRun(id, options, terminal, async ({ summary }, history) => {
    await history.rename(summary.runId, title);
    terminal.say(title.trim() ? terminalText(`Now called: ${terminalLine(title)}`) : 'Its name was removed.');
    return 0;
  });
}

/** Deletes a run. Asks first, unless `--yes` is given. */
export async function runsDeleteCommand(
  id: string,
  options: RunsOptions,
  terminal: Terminal,
): Promise<number> {
  return withRun(id, options, terminal, async ({ summary }, _history, config) => {
    const about = `This deletes what is kept of “${terminalLine(titleOf(summary), 60)}” (${timeText(summary.startedAt)}).`;
    const unattended = 'Nothing was changed. Use --yes to delete without being asked.';
    if (!options.yes && !(await agrees(about, 'Delete it?', unattended, terminal))) return 1;
    await Telos.open(config).deleteRun(summary.runId);
    terminal.say('Deleted. The log still counts what it cost: telos cost');
    return 0;
  });
}

/** Calls `use` with the history. Reports a failure and its reason, and returns exit code 1. */
async function withHistory(
  options: ConfigOptions,
  terminal: Terminal,
  use: (history: RunHistory, config: Config) => Promise<number>,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  try {
    return await use(new RunHistory(config.dataDir), config);
  } catch (error) {
    if (!(error instanceof TelosError)) throw error;
    return sayError(error, terminal);
  }
}

/** Calls `use` with the run whose id begins with `id`, or with the latest run if `id` is missing. */
async function withRun(
  id: string | undefined,
  options: ConfigOptions,
  terminal: Terminal,
  use: (run: StoredRun, history: RunHistory, config: Config) => Promise<number>,
): Promise<number> {
  return withHistory(options, terminal, async (history, config) => {
    const found = await history.find(id ?? '');
    const [run, other] = found;
    const isMeant = id === undefined || !other || run?.runId === id;
    if (run && isMeant) return use(await history.read(run.runId), history, config);
    const exitCode = run ? 0 : sayUnread(history, terminal);
    if (exitCode > 0) return exitCode;
    const what =
      id === undefined
        ? 'No runs yet.'
        : run
          ? `${found.length} runs begin with '${id}'; give more of the id.`
          : `Run '${id}' not found. \`telos runs\` lists the stored runs.`;
    terminal.say(terminalText(what));
    return 1;
  });
}
