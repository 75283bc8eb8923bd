/** Lists and restores folders of the user that were replaced, removed or added. */

import { readdir, rm, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import { isLink } from './atomicWrite.ts';
import {
  contentsOf,
  differencesTo,
  type FolderDifference,
  type FolderRecord,
  isFolderId,
  listFolder,
  readRecord,
  recordFolder,
  replacedFolder,
} from './folderRecord.ts';
import { temporaryPrefix } from './globPattern.ts';
import { exists, recoverFolders, swapFolder } from './swapFolder.ts';

/** Number of days that a folder is kept. */
export const keptDays = 30;

export interface FolderState {
  record: FolderRecord;
  /**
   * `ready` to be undone. `edited`: the folder that was put there has changed. `occupied`: something is at the place of a removed
   * folder. `not_kept`: the old folder is missing.
   */
  state: 'ready' | 'edited' | 'occupied' | 'not_kept' | 'undone';
  /** Edits since then in the folder that was put there. Undefined if they are unknown. */
  edits: readonly FolderDifference[] | undefined;
  /** Changes that undoing makes to the folder that was put there. Undefined if the whole folder is added or removed. */
  brings: readonly FolderDifference[] | undefined;
}

export interface UndoneFolder {
  record: FolderRecord;
  /** Whether the edited folder is kept. It is restored when this undo is undone. */
  editedKept: boolean;
  /** Files that were not restored, because they were edited since. */
  leftAlone: readonly string[];
}

export class ReplacedFolders {
  readonly #dataDir: string;

  /** Creates the object without reading anything. */
  constructor({ dataDir }: { dataDir: string }) {
    this.#dataDir = dataDir;
  }

  /** Returns all records, the newest first, including those that are undone. */
  async list(): Promise<FolderRecord[]> {
    await recoverFolders(this.#dataDir);
    const ids = await this.#ids();
    const records = ids.flatMap(id => readRecord(this.#dataDir, id) ?? []);
    return records.sort((one, other) => (one.at < other.at ? 1 : -1));
  }

  /** Compares with the folders as they are now. Throws TelosError `config` if the id is unknown. */
  async look(id: string): Promise<FolderState> {
    const record = readRecord(this.#dataDir, id);
    if (!record)
      throw new TelosError('config', [sentence("No install or uninstall with the id '{0}' was found.", id)]);
    const { target, kept, left, undoneAt, identity } = record;
    const nothing = { record, edits: [], brings: undefined };
    if (undoneAt !== undefined) return { ...nothing, state: 'undone' };
    if (kept !== null && !exists(kept)) return { ...nothing, state: 'not_kept' };
    const brings = kept !== null && left ? await fromTo(left, kept) : undefined;
    if (!exists(target)) return { record, state: 'ready', edits: [], brings };
    if (identity === null && left === null)
      return { record, state: 'occupied', edits: undefined, brings: undefined };
    const edits = left ? await fromTo(left, target) : undefined;
    return { record, state: edits?.length === 0 ? 'ready' : 'edited', edits, brings };
  }

  /**
   * Restores the earlier folder by moving it. The current one is removed. An edited one is removed only with `force`, and is
   * kept. Throws TelosError `config` if undoing is not possible; then nothing was changed.
   */
  async undo(id: string, { force = false }: { force?: boolean } = {}): Promise<UndoneFolder> {
    const { record, state } = await this.look(id);
    if (state === 'undone') return { record, editedKept: false, leftAlone: [] };
    const isEdited = state === 'edited' || state === 'occupied';
    if (state === 'not_kept' || (isEdited && !force)) throw refusal(record, state);
    const { target, agent, kept, along } = record;
    const swapped = await swapFolder(this.#dataDir, {
      kind: 'undo',
      agent,
      target,
      from: kept,
      replaces: exists(target),
      undoes: record.id,
      prepare: async () => ({
        left: isEdited && kept !== null ? ((await contentsOf(kept)) ?? null) : null,
        along: along.map(({ before, after, ...file }) => ({ ...file, before: after, after: before })),
      }),
    });
    const aside = swapped.record.kept;
    // It may have been edited right before it was moved.
    const keepsAside = aside !== null && (isEdited || !(await this.#isAsLeft(record, aside)));
    if (!keepsAside) await this.#forget(swapped.record);
    return { record, editedKept: keepsAside, leftAlone: swapped.leftAlone };
  }

  /** Deletes folders that are older than `keptDays`. Never throws. */
  async sweep(now = Date.now()): Promise<void> {
    const oldest = now - keptDays * 24 * 60 * 60 * 1000;
    for (const id of await this.#ids()) {
      const record = readRecord(this.#dataDir, id);
      const changed = await stat(recordFolder(this.#dataDir, id)).catch(() => undefined);
      const at = record ? Date.parse(record.at) : (changed?.mtimeMs ?? now);
      if (at < oldest) await this.#forget(record ?? { id, kept: null });
    }
  }

  /** Returns the ids of all records. Behind a link there are none of ours, and nothing there is deleted. */
  async #ids(): Promise<string[]> {
    const folder = replacedFolder(this.#dataDir);
    return isLink(folder) ? [] : (await readdir(folder).catch(() => [])).filter(isFolderId);
  }

  /** Whether the folder that was moved aside is unchanged, so that it contains nothing of the user's. */
  async #isAsLeft({ left }: FolderRecord, place: string): Promise<boolean> {
    return left !== null && (await fromTo(left, place)).length === 0;
  }

  async #forget({ id, kept }: Pick<FolderRecord, 'id' | 'kept'>): Promise<void> {
    // Outside our own folder, only a name with this record's id is ours.
    const isOurs = kept !== null && basename(kept) === `${temporaryPrefix}kept-${id}`;
    if (isOurs) await rm(kept, { recursive: true, force: true }).catch(() => undefined);
    await rm(recordFolder(this.#dataDir, id), { recursive: true, force: true }).catch(() => undefined);
  }
}

/** Returns the changes that lead from these contents to those of `root`. */
async function fromTo(
  contents: Parameters<typeof differencesTo>[0],
  root: string,
): Promise<FolderDifference[]> {
  const listing = await listFolder(root);
  const back = await differencesTo(contents, root, listing);
  const reverse = { added: 'removed', changed: 'changed', removed: 'added' } as const;
  return back.map(({ path, change }) => ({ path, change: reverse[change] }));
}

function refusal({ agent, target }: FolderRecord, state: FolderState['state']): TelosError {
  const why = {
    edited: [
      sentence("Agent '{0}' was edited in the meantime.", agent),
      sentence('Its folder is {0}.', target),
    ],
    occupied: [sentence('The folder {0} was replaced in the meantime.', target)],
    not_kept: [sentence("The earlier folder of agent '{0}' is no longer stored.", agent)],
  }[state as 'edited' | 'occupied' | 'not_kept'];
  return new TelosError('config', [...why, sentence('Nothing was changed.')]);
}
