/** Implements `telos undo [change]`: shows what a run, an install or an uninstall has changed, and reverts it. */

import { readlink } from 'node:fs/promises';
import { TelosError } from '@telos/engine/errors';
import { loadRegularFile, looksBinary, statsAt } from '@telos/engine/files';
import { readSummary, runPath, timeText, titleOf } from '@telos/engine/records';
import { Telos } from '@telos/engine/telos';
import {
  type ChangedFile,
  type ChangeStore,
  type FolderDifference,
  type FolderRecord,
  type FolderState,
  hasUndo,
  type RunChanges,
  unifiedDiff,
} from '@telos/engine/undo';
import { counted } from '@telos/protocol/text';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { readLine } from './keyboard.ts';
import type { Terminal } from './terminal.ts';
import { agrees } from './terminalHuman.ts';
import { exactText, table, terminalText } from './terminalText.ts';

export interface UndoOptions extends ConfigOptions {
  yes?: boolean;
  list?: boolean;
  force?: boolean;
  show?: boolean;
  others?: boolean;
}

/** Returns the exit code: 0 if the files are as before the run, 1 if they are not. */
export async function undoCommand(
  id: string | undefined,
  options: UndoOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const telos = Telos.open(config);
  const store = telos.changes;
  if (options.list) return listChanges(telos, terminal);
  const { runId, folderId } = await changeNamed(id, telos);
  if (folderId !== undefined) return undoFolderCommand(folderId, options, telos, terminal);
  if (runId === undefined) {
    terminal.say('There is nothing to undo. Changes are kept for 30 days.');
    return 1;
  }
  const changes = await store.of(runId);
  if (changes.undoneAt === undefined && !hasUndo(changes)) {
    terminal.say(
      `The files of run ${runId.slice(0, 8)} are as they were before it; there is nothing to undo.`,
    );
    for (const path of changes.madeRepositories) terminal.say(terminal.style.yellow(exactText(stays(path))));
    return 0;
  }
  if (options.show) {
    for (const file of changes.files) terminal.out(await diffOf(file, changes, store));
    return 0;
  }
  if (changes.undoneAt !== undefined) {
    terminal.say(`The ${kindOf(changes)} ${runId.slice(0, 8)} is undone already.`);
    return 0;
  }
  return undo(changes, options, store, terminal);
}

async function undo(
  changes: RunChanges,
  { yes = false, others = false }: UndoOptions,
  store: ChangeStore,
  terminal: Terminal,
): Promise<number> {
  const { restores } = changes;
  terminal.say(`${restores ? 'The restore' : 'Run'} ${changes.runId.slice(0, 8)} changed:`);
  if (restores)
    terminal.say(`  ${counted(restores.length, 'request')} left out, which the conversation gets back`);
  for (const file of changes.files) terminal.say(`  ${lineFor(file)}`);
  for (const path of changes.repositories) terminal.say(exactText(`  M ${path}  (branches, tags and index)`));
  for (const { path, before } of changes.folders)
    terminal.say(exactText(`  ${before === null ? 'A' : 'D'} ${path}/`));
  const mixed = await store.writtenInTurn(changes.runId);
  for (const sentence of [...notUndone(changes), ...mixed.map(alsoWritten)])
    terminal.say(terminal.style.yellow(exactText(sentence)));
  const isBlocked = changes.files.some(file => wordsFor(file) !== undefined);
  if (!isBlocked || others) {
    const question = `Make these files what they were before the ${kindOf(changes)}? [y/N] `;
    if (!yes && !(await saysYes(question, terminal))) {
      terminal.say(
        `Nothing was undone. ${terminal.canAsk ? '' : 'Use --yes to undo without being asked.'}`.trim(),
      );
      return 1;
    }
  }
  const result = await store.undo(changes.runId, { others });
  if (result.outcome === 'refused') {
    terminal.say(
      terminal.style.red(`Nothing was undone: files are not as the ${kindOf(changes)} left them.`),
    );
    terminal.say('See what differs with --show; undo only the other files with --others.');
    return 1;
  }
  if (result.outcome === 'already_undone') return 0;
  const count = result.restored.length + result.removed.length;
  terminal.say(`Undone: ${count} ${count === 1 ? 'file' : 'files'} restored`);
  if (result.problem !== undefined) terminal.say(terminal.style.red(terminalText(result.problem)));
  return result.problem === undefined && !isBlocked ? 0 : 1;
}

const alsoWritten = (path: string): string =>
  `Another run has written ${path} too, before the last write of this one or after its first. Undo brings back what was there before this run, whoever wrote it.`;

const kindOf = ({ restores }: RunChanges): string => (restores ? 'restore' : 'run');

const stays = (repository: string): string =>
  `A command made the Git repository ${repository}. It stays; remove it if you do not need it.`;

/** Returns what the run did besides, in sentences. */
export const notUndone = ({
  ranCommands,
  movedBranch,
  madeRepositories,
}: Omit<RunChanges, 'runId' | 'at'>): string[] => [
  ...(ranCommands
    ? [
        'Commands that worked in the folder directly, or tools of others, ran too. What they changed is not known, and is not undone.',
      ]
    : []),
  ...(movedBranch ? ['A command made a commit or moved a branch. That is not undone.'] : []),
  ...madeRepositories.map(stays),
];

/**
 * Returns the run or the folder that `id` means. Both are missing if there is no change at all. Throws TelosError `config`
 * for an id that matches none, or several.
 */
async function changeNamed(
  id: string | undefined,
  { changes, replaced }: Telos,
): Promise<{ runId?: string; folderId?: string }> {
  const folders = await replaced.list();
  if (id === undefined) {
    const runId = await changes.latest();
    const [folder] = folders;
    if (runId === undefined) return folder ? { folderId: folder.id } : {};
    const run = await changes.of(runId);
    // A change that is undone already comes second.
    const isFirst = folder && folder.at > run.at && (folder.undoneAt === undefined || !hasUndo(run));
    return isFirst ? { folderId: folder.id } : { runId };
  }
  const found = await changes.find(id);
  const meant = folders.filter(folder => folder.id.startsWith(id));
  if (found.length + meant.length > 1)
    throw new TelosError('config', `Several changes begin with '${id}'; give more of the id.`);
  if (meant[0]) return { folderId: meant[0].id };
  // The store reports an unknown id.
  return { runId: found[0] ?? (await changes.of(id)).runId };
}

export const lineFor = (file: ChangedFile): string => {
  const words = file.isUndone ? 'undone already' : wordsFor(file);
  return exactText(
    `${file.isRemoved ? 'D' : file.before ? 'M' : 'A'} ${file.path}${words ? `  (${words})` : ''}`,
  );
};

/** Returns why the file cannot be undone, or undefined if it can be or need not be. */
function wordsFor({ state, isUndone }: ChangedFile): string | undefined {
  if (isUndone) return undefined;
  switch (state) {
    case 'ready':
    case 'as_before':
      return undefined;
    case 'edited':
      return 'edited since then';
    case 'deleted':
      return 'deleted since then';
    case 'replaced':
      return 'a link or something else is in its place now';
    case 'not_kept':
      return 'its old content was not kept';
    case 'unreachable':
      return 'it cannot be read';
  }
}

async function diffOf(file: ChangedFile, { runId }: RunChanges, store: ChangeStore): Promise<string> {
  const { path, state } = file;
  const before = file.before ? await store.before(runId, path) : Buffer.alloc(0);
  const isThere = !/^(?:deleted|replaced|unreachable)$/.test(state) && statsAt(path) !== undefined;
  const after = isThere ? await contentAt(path).catch(() => Buffer.alloc(0)) : Buffer.alloc(0);
  const heading = exactText(
    `--- ${file.before ? `before ${path}` : '/dev/null'}\n+++ ${isThere ? path : '/dev/null'}\n`,
  );
  if (!before) return `${heading}The old content was not kept.\n`;
  if (looksBinary(before) || looksBinary(after))
    return before.equals(after) ? '' : `${heading}Binary files differ.\n`;
  const diff = unifiedDiff(before.toString('utf8'), after.toString('utf8'));
  return diff === '' ? '' : terminalText(heading + diff);
}

/** Returns the bytes of a file, or where a link leads. */
const contentAt = async (path: string): Promise<Buffer> =>
  statsAt(path)?.isSymbolicLink() ? Buffer.from(await readlink(path)) : loadRegularFile(path);

export async function saysYes(question: string, terminal: Terminal): Promise<boolean> {
  if (!terminal.canAsk) return false;
  const answer = await readLine(question, new AbortController().signal);
  return /^y(es)?$/i.test(answer?.trim() ?? '');
}

export interface UndoFolderOptions {
  yes?: boolean;
  show?: boolean;
  force?: boolean;
}

/** Lines of a list that are shown with a question. `--show` has all of them. */
const shownLines = 20;

/** Returns the exit code: 0 if the folder is as before, 1 if it is not. */
async function undoFolderCommand(
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
  const unattended = 'Nothing was undone. Use --yes to undo without being asked.';
  const about = lines.map(exactText).join('\n');
  if (!yes && !(await agrees(about, 'Undo it?', unattended, terminal))) return 1;
  const { editedKept, leftAlone } = await telos.undoFolder(id, { force });
  const what = leftAlone.length > 0 ? `The folder of agent '${record.agent}'` : `Agent '${record.agent}'`;
  terminal.say(exactText(`Undone. ${what} is as it was before.`));
  if (editedKept) terminal.say('The other folder was stored; telos undo restores it.');
  for (const file of leftAlone)
    terminal.say(
      terminal.style.yellow(exactText(`${file} has been edited since then, so its entry was not put back.`)),
    );
  return 0;
}

function blockedBy(state: FolderState['state'], edits: readonly FolderDifference[]): string[] {
  const what =
    state === 'edited' ? 'It has been edited since then' : 'There is another folder in its place now';
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

/** Returns what the run was asked for, or its title. Empty for a run that is not stored. */
function requestOf(runId: string, dataDir: string): string {
  const file = runPath(dataDir, runId);
  try {
    const summary = file === undefined ? undefined : readSummary(file);
    return summary ? `, “${titleOf(summary)}”` : '';
  } catch {
    return '';
  }
}

/** Lists runs, installs and uninstalls, the newest first. Returns the exit code. */
async function listChanges({ changes, replaced, config }: Telos, terminal: Terminal): Promise<number> {
  const runIds = await changes.find('');
  const runs = await Promise.all(runIds.map(id => changes.of(id)));
  const rows = [
    ...runs.map(run => ({
      at: run.at,
      id: run.runId,
      what: `A ${kindOf(run)}: ${counted(run.files.length, 'file')}${requestOf(run.runId, config.dataDir)}`,
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
    terminal.say('There is nothing to undo. Changes are kept for 30 days.');
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
