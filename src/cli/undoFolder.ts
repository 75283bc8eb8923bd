/** `telos undo` for an install or an uninstall, and the list of all that can be undone. */
import type { FolderDifference } from '../engine/changes/folderContents.ts';
import type { FolderRecord } from '../engine/changes/folderRecord.ts';
import type { FolderState } from '../engine/changes/replacedFolders.ts';
import { timeText } from '../engine/history/runText.ts';
import type { Telos } from '../engine/telos.ts';
import { agrees } from './agrees.ts';
import { table } from './table.ts';
import type { Terminal } from './terminal.ts';
import { exactText, terminalText } from './terminalText.ts';

export interface UndoFolderOptions {
  yes?: boolean;
  show?: boolean;
  force?: boolean;
}

/** Lines of a list that are shown with a question; `--show` has all of them. */
const shownLines = 20;

/** Returns the exit code: 0 when the folder is as before, 1 when it is not. */
export async function undoFolderCommand(
  id: string,
  { yes = false, show = false, force = false }: UndoFolderOptions,
  telos: Telos,
  terminal: Terminal,
): Promise<number> {
  const found = await telos.replaced.look(id);
  const { state, edits, record } = found;
  if (state === 'undone') {
    terminal.say(exactText(`${whatOf(record)} is undone already. Earlier changes: telos undo --list`));
    return 0;
  }
  if (show) {
    terminal.out(`${describe(found, Number.POSITIVE_INFINITY).map(exactText).join('\n')}\n`);
    return 0;
  }
  const isBlocked = state === 'edited' || state === 'occupied';
  const lines = [...describe(found, shownLines), ...(isBlocked ? blockedBy(state, edits ?? []) : [])];
  const isAsked = !yes && terminal.canAsk && (!isBlocked || force);
  if (!isAsked) for (const line of lines) terminal.say(exactText(line));
  if (isBlocked && !force) {
    terminal.say(
      terminal.style.red('Nothing was undone. --force undoes it, and keeps what is there now for undo.'),
    );
    return 1;
  }
  const unattended = 'Nothing was undone. Use --yes where nobody can be asked.';
  const about = lines.map(exactText).join('\n');
  if (!yes && !(await agrees(about, 'Undo it?', unattended, terminal))) return 1;
  const { editedKept, leftAlone } = await telos.undoFolder(id, { force });
  terminal.say(exactText(`Undone. Agent '${record.agent}' is as it was before.`));
  if (editedKept) terminal.say('What was there is kept; telos undo brings it back.');
  for (const file of leftAlone)
    terminal.say(
      terminal.style.yellow(exactText(`${file} was edited since, so its entry was not put back.`)),
    );
  return 0;
}

function blockedBy(state: FolderState['state'], edits: readonly FolderDifference[]): string[] {
  const what = state === 'edited' ? 'It was edited since' : 'There is another folder in its place now';
  const lines = capped(edits.map(changeText), shownLines).map(line => `  ${line}`);
  return [`${what}${lines.length > 0 ? ':' : '.'}`, ...lines];
}

function describe({ record, brings }: FolderState, limit: number): string[] {
  const { kept, target } = record;
  const lines = [`${whatOf(record)} on ${timeText(record.at)}`];
  if (kept === null) return [...lines, `Undoing it removes the folder ${target}; there was none before.`];
  lines.push(`Undoing it brings back what was at ${target} before.`);
  return [...lines, ...capped((brings ?? []).map(changeText), limit).map(line => `  ${line}`)];
}

function whatOf({ kind, agent, source }: FolderRecord): string {
  switch (kind) {
    case 'install':
      return `The install of agent '${agent}'${source === undefined ? '' : ` from ${source}`}`;
    case 'uninstall':
      return `The uninstall of agent '${agent}'`;
    case 'undo':
      return `The undo that replaced an edited agent '${agent}'`;
  }
}

const changeText = ({ path, change }: FolderDifference): string =>
  `${{ added: 'A', changed: 'M', removed: 'D' }[change]} ${path || '(the folder itself)'}`;

function capped(lines: readonly string[], limit: number): string[] {
  return lines.length <= limit
    ? [...lines]
    : [...lines.slice(0, limit), `and ${lines.length - limit} more; --show lists them`];
}

/** Runs, installs and uninstalls, the newest first. Returns the exit code. */
export async function listChanges({ changes, replaced }: Telos, terminal: Terminal): Promise<number> {
  const runIds = await changes.find('');
  const runs = await Promise.all(runIds.map(id => changes.of(id)));
  const rows = [
    ...runs.map(run => ({
      at: run.at,
      id: run.runId,
      what: `A run: ${run.files.length} ${run.files.length === 1 ? 'file' : 'files'}`,
      isUndone: run.undoneAt !== undefined,
    })),
    ...(await replaced.list()).map(record => ({
      at: record.at,
      id: record.id,
      what: whatOf(record),
      isUndone: record.undoneAt !== undefined,
    })),
  ].sort((one, other) => (one.at < other.at ? 1 : -1));
  if (rows.length === 0) {
    terminal.say('Nothing was changed, or it is too long ago: changes are kept for 30 days.');
    return 0;
  }
  const cells = rows.map(({ at, id, what, isUndone }) => [
    timeText(at),
    id.slice(0, 8),
    isUndone ? 'undone' : '',
    what,
  ]);
  terminal.out(terminalText(`${table(['Time', 'Change', '', 'What'], cells, terminal.outWidth)}\n`));
  return 0;
}
