/** Shows a run's file changes in the editor's own diff editor, and undoes them. */

import { basename } from 'node:path';
import type { ChangedFile, RunChanges } from '@telos/engine/undo';
import * as vscode from 'vscode';
import { acknowledge, complain } from '../base/acknowledge.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError, plainLabel } from '../base/labels.ts';

/** Scheme of files as they were before a run: `telos-before:<path>?<run id>`. */
const beforeScheme = 'telos-before';
/** The number of files that a question names at most. */
const mostNamed = 12;

/** The argument of the commands. Both fields may be missing. */
interface RunFile {
  runId?: string;
  /** Absolute path. */
  path?: string;
}

export class RunChangesView implements vscode.Disposable {
  readonly #current: CurrentTelos;
  readonly #undone = new vscode.EventEmitter<string>();
  readonly #registered: vscode.Disposable;

  /** Fires with the id of a run or a restore whose files are as they were before it. */
  readonly onDidUndo = this.#undone.event;

  constructor(current: CurrentTelos) {
    this.#current = current;
    this.#registered = vscode.Disposable.from(
      this.#undone,
      vscode.workspace.registerFileSystemProvider(beforeScheme, new FilesBefore(current), {
        isReadonly: true,
      }),
    );
  }

  dispose(): void {
    this.#registered.dispose();
  }

  /** Shows what `target`, the argument of a command, names. Shows the person an error that the engine throws. */
  showTarget(target: unknown): Promise<void> {
    return this.#reportingFailure(() => this.show(fileIn(target)));
  }

  /** Undoes what `target`, the argument of a command, names. Shows the person an error that the engine throws. */
  undoTarget(target: unknown): Promise<void> {
    return this.#reportingFailure(() => this.undo(fileIn(target)));
  }

  /** Opens the diff of one file, or of all files that the run changed. */
  async show(target: RunFile): Promise<void> {
    const changes = await this.#changesOf(target);
    if (!changes) return;
    const files = changes.files.filter(({ path }) => target.path === undefined || path === target.path);
    const [only] = files;
    if (target.path !== undefined && only) {
      const name = plainLabel(basename(only.path));
      const title = vscode.l10n.t('{0} (before the run ↔ now)', name);
      const now = isThere(only) ? vscode.Uri.file(only.path) : nothingLike(only.path);
      await vscode.commands.executeCommand('vscode.diff', beforeUri(changes, only), now, title);
      return;
    }
    if (!only) {
      acknowledge(vscode.l10n.t('The earlier content of this file is not stored.'));
      return;
    }
    const shown = files.filter(file => file.before || isThere(file));
    if (shown.length === 0) {
      acknowledge(vscode.l10n.t('The files that this run created have been deleted.'));
      return;
    }
    await vscode.commands.executeCommand(
      'vscode.changes',
      vscode.l10n.t('Changes of a Run'),
      shown.map(file => [
        vscode.Uri.file(file.path),
        file.before ? beforeUri(changes, file) : undefined,
        isThere(file) ? vscode.Uri.file(file.path) : undefined,
      ]),
    );
  }

  /** Asks, and then restores the files as they were before the run. */
  async undo(target: RunFile): Promise<void> {
    const changes = await this.#changesOf(target);
    if (!changes) return;
    const { runId, files } = changes;
    if (changes.undoneAt !== undefined) {
      this.#undone.fire(runId);
      acknowledge(
        changes.restores
          ? vscode.l10n.t('This restore is undone already.')
          : vscode.l10n.t('This run is undone already.'),
      );
      return;
    }
    const blocked = files.flatMap(file => reasonAgainst(file) ?? []);
    if (blocked.length > 0) return this.#refuse(changes, blocked);
    const undoLabel = vscode.l10n.t('Undo');
    const question = changes.restores
      ? vscode.l10n.t('Undo this restore? The requests and these files come back as they were before it.')
      : vscode.l10n.t('Undo this run? These files are restored to their state before it.');
    const { changes: store } = await this.#current.openTelos();
    const others = [...notUndone(changes), ...alsoWritten(await store.writtenInTurn(changes.runId))];
    const repositories = changes.repositories.map(path =>
      vscode.l10n.t('{0} (branches, tags and index)', shortPath(path)),
    );
    const lines = [...files.map(nameWithChange), ...repositories];
    const detail = [...named(lines), ...(others.length > 0 ? ['', ...others] : [])];
    const answer = await vscode.window.showWarningMessage(
      question,
      { modal: true, detail: detail.join('\n') },
      undoLabel,
    );
    if (answer === undoLabel) await this.#undo(changes, false);
  }

  /** Asks `question`, and then restores the files of these runs, the latest first. What cannot be restored is named. */
  undoAll(
    runIds: readonly string[],
    question = vscode.l10n.t('Undo all that this conversation has changed? These files are restored.'),
  ): Promise<void> {
    return this.#reportingFailure(async () => {
      const { changes: store } = await this.#current.openTelos();
      const all = await Promise.all(runIds.map(id => store.of(id)));
      const open = all.filter(({ undoneAt }) => undoneAt === undefined);
      const paths = [...new Set(open.flatMap(({ files }) => files.map(({ path }) => path)))];
      const undo = vscode.l10n.t('Undo All');
      const answer = await vscode.window.showWarningMessage(
        question,
        { modal: true, detail: named(paths.map(shortPath)).join('\n') },
        undo,
      );
      if (answer !== undo) return;
      const left = new Set<string>();
      let count = 0;
      for (const { runId } of open) {
        const blocked = (await store.of(runId)).files.filter(file => reasonAgainst(file) !== undefined);
        for (const { path } of blocked) left.add(path);
        if (blocked.some(({ path }) => isUnsaved(path))) continue;
        const result = await store.undo(runId, { others: true });
        if (result.outcome === 'undone') count += result.restored.length + result.removed.length;
        if (store.undoneAmong([runId]).length > 0) this.#undone.fire(runId);
      }
      if (left.size > 0)
        complain(
          vscode.l10n.t(
            'Restored files: {0}. Left as they are, since they were changed afterwards: {1}',
            count,
            named([...left].map(shortPath)).join(', '),
          ),
        );
      else acknowledge(vscode.l10n.t('Undone: {0} files restored', count));
    });
  }

  async #undo(changes: RunChanges, others: boolean): Promise<void> {
    const { runId } = changes;
    const telos = await this.#current.openTelos();
    const result = await telos.changes.undo(runId, { others });
    if (result.outcome === 'refused')
      return this.#refuse(
        result.changes,
        result.blocked.flatMap(file => reasonAgainst(file) ?? []),
      );
    if (telos.changes.undoneAmong([runId]).length > 0) this.#undone.fire(runId);
    if (result.outcome === 'already_undone') return;
    const count = result.restored.length + result.removed.length;
    if (result.problem !== undefined) {
      const [many, why] = [String(count), plainLabel(result.problem, 500)];
      complain(vscode.l10n.t('Only some files were undone: {0}. {1}', many, why));
      return;
    }
    const done =
      count === 1
        ? vscode.l10n.t('Undone: 1 file restored')
        : vscode.l10n.t('Undone: {0} files restored', count);
    acknowledge([done, ...notUndone(changes)].join(' '));
  }

  async #refuse(changes: RunChanges, reasons: readonly string[]): Promise<void> {
    const show = vscode.l10n.t('Show Changes');
    const others = vscode.l10n.t('Undo the Others');
    const isSome = changes.files.some(file => file.state === 'ready' && reasonAgainst(file) === undefined);
    const hasUnsaved = changes.files.some(({ path }) => isUnsaved(path));
    const message = vscode.l10n.t('Nothing was undone: {0}', named(reasons).join(', '));
    // Unsaved changes are safe only as long as their file is kept.
    const choices = isSome && !hasUnsaved ? [show, others] : [show];
    const answer = await vscode.window.showWarningMessage(message, { modal: true }, ...choices);
    if (answer === show) await this.show({ runId: changes.runId });
    if (answer === others) await this.#undo(changes, true);
  }

  /** Returns the run's changes. Returns undefined if there are none, after showing a message. */
  async #changesOf({ runId }: RunFile): Promise<RunChanges | undefined> {
    const { changes } = await this.#current.openTelos();
    const id = runId ?? (await changes.latest());
    if (id !== undefined) return changes.of(id);
    acknowledge(vscode.l10n.t('No run has changed a file in the last 30 days.'));
    return undefined;
  }

  async #reportingFailure(act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      const why = describeError(error);
      complain(plainLabel(why, 500));
    }
  }
}

function fileIn(target: unknown): RunFile {
  if (typeof target !== 'object' || target === null) return {};
  const { runId, path } = target as Readonly<Record<string, unknown>>;
  return {
    ...(typeof runId === 'string' && { runId }),
    ...(typeof path === 'string' && { path }),
  };
}

/** Returns which files another run has written too, in a sentence. */
const alsoWritten = (paths: readonly string[]): string[] =>
  paths.length === 0
    ? []
    : [
        vscode.l10n.t(
          'Another run has written these files too, and undo brings back what was there before this one, whoever wrote it: {0}',
          named(paths.map(shortPath)).join(', '),
        ),
      ];

/** Returns what the run did besides, in sentences. */
export function notUndone({
  ranCommands,
  movedBranch,
  madeRepositories,
}: Omit<RunChanges, 'runId' | 'at'>): string[] {
  const { t } = vscode.l10n;
  return [
    ...(ranCommands
      ? [
          t(
            'Commands that worked in the folder directly, or tools of others, ran too. What they changed is not known, and is not undone.',
          ),
        ]
      : []),
    ...(movedBranch ? [t('A command made a commit or moved a branch. That is not undone.')] : []),
    ...madeRepositories.map(path =>
      t('A command made the Git repository {0}. It stays; remove it if you do not need it.', shortPath(path)),
    ),
  ];
}

export function named(lines: readonly string[]): string[] {
  if (lines.length <= mostNamed) return [...lines];
  const more = String(lines.length - mostNamed + 1);
  return [...lines.slice(0, mostNamed - 1), vscode.l10n.t('and {0} more', more)];
}

export const shortPath = (path: string): string => plainLabel(vscode.workspace.asRelativePath(path), 200);

export function nameWithChange({ path, before }: ChangedFile): string {
  return before ? shortPath(path) : vscode.l10n.t('{0} (will be deleted)', shortPath(path));
}

function isThere({ state, before, isRemoved }: ChangedFile): boolean {
  if (state === 'as_before') return before !== null;
  if (isRemoved && state === 'ready') return false;
  return state !== 'deleted' && state !== 'replaced';
}

export const isUnsaved = (path: string): boolean =>
  vscode.workspace.textDocuments.some(
    ({ isDirty, uri }) => isDirty && uri.scheme === 'file' && uri.fsPath === path,
  );

/** Returns why a file cannot be undone, or undefined if it can. */
export function reasonAgainst({ path, state, isUndone }: ChangedFile): string | undefined {
  const name = shortPath(path);
  if (isUndone) return undefined;
  if (isUnsaved(path)) return vscode.l10n.t('{0} has changes that are not saved', name);
  switch (state) {
    case 'ready':
    case 'as_before':
      return undefined;
    case 'edited':
      return vscode.l10n.t('{0} has been edited since then', name);
    case 'deleted':
      return vscode.l10n.t('{0} has been deleted since then', name);
    case 'replaced':
      return vscode.l10n.t('{0} is no longer a file of its own', name);
    case 'not_kept':
      return vscode.l10n.t('the old content of {0} was not stored', name);
    case 'unreachable':
      return vscode.l10n.t('{0} cannot be read', name);
  }
}

const beforeUri = ({ runId }: RunChanges, { path, before }: ChangedFile): vscode.Uri =>
  before ? vscode.Uri.file(path).with({ scheme: beforeScheme, query: runId }) : nothingLike(path);

/** Returns an empty file of this name, for the side of a diff without a file. */
const nothingLike = (path: string): vscode.Uri => vscode.Uri.file(path).with({ scheme: beforeScheme });

/** Provides files rather than only texts, so that pictures are shown too. */
class FilesBefore implements vscode.FileSystemProvider {
  readonly #current: CurrentTelos;
  readonly #changed = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  /** Never fires, because stored files never change. */
  readonly onDidChangeFile = this.#changed.event;

  constructor(current: CurrentTelos) {
    this.#current = current;
  }

  async stat(uri: vscode.Uri): Promise<vscode.FileStat> {
    const { length } = await this.readFile(uri);
    return { type: vscode.FileType.File, ctime: 0, mtime: 0, size: length };
  }

  async readFile(uri: vscode.Uri): Promise<Uint8Array> {
    if (uri.query === '') return new Uint8Array();
    const { changes } = await this.#current.openTelos();
    const bytes = await changes.before(uri.query, uri.with({ scheme: 'file' }).fsPath).catch(() => undefined);
    if (!bytes) throw vscode.FileSystemError.FileNotFound(uri);
    return bytes;
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => undefined);
  }

  readDirectory(): [string, vscode.FileType][] {
    return [];
  }

  createDirectory(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  writeFile(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  delete(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  rename(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }
}
