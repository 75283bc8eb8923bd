/** Writes a proposal that a person keeps, so that it can be undone like the changes of a run. */

import { randomUUID } from 'node:crypto';
import { TelosError } from '@telos/engine/errors';
import { loadRegularFile, PathProblem, realPlace, replaceFile, type WriteKeeper } from '@telos/engine/files';
import type { ChangeStore } from '@telos/engine/undo';
import { asSaid, sentence } from '@telos/protocol/text';
import type { Proposal } from './proposal.ts';
import { refuseLinkOut } from './triggerFile.ts';

/**
 * Replaces the text of the skill in one step, and returns the id that undoes it. Throws TelosError `config` if the file is no longer as
 * the proposal found it, or cannot be written; then nothing was changed.
 */
export async function keepProposal(
  { skill, before, after }: Proposal,
  changes: Pick<ChangeStore, 'keeper'>,
): Promise<string> {
  refuseLinkOut(skill.dir, skill.file);
  const id = `improve-${randomUUID()}`;
  const keeper = changes.keeper(id);
  if (!keeper)
    throw new TelosError('config', [
      sentence('Nothing was kept: the old text could not be stored for undo.'),
    ]);
  const old = Buffer.from(before);
  let wasChanged = false;
  const guarded: WriteKeeper = {
    async keep(write) {
      const now = await loadRegularFile(write.place).catch(() => undefined);
      wasChanged = !now?.equals(old);
      if (wasChanged) throw new PathProblem('unusable', 'It was changed in the meantime.');
      return keeper.keep(write);
    },
    noteCommand: () => keeper.noteCommand(),
    takeProblem: () => keeper.takeProblem(),
  };
  try {
    await replaceFile(realPlace(skill.file) ?? skill.file, Buffer.from(after), guarded);
  } catch (error) {
    if (!(error instanceof PathProblem)) throw error;
    const why = wasChanged
      ? [sentence('{0} was changed in the meantime.', skill.file), sentence('Improve the skill again.')]
      : [asSaid(error.message)];
    throw new TelosError('config', [sentence('The proposal was not kept.'), ...why], { cause: error });
  }
  return id;
}
