/** Reads what a project says to the roles of its plans. It counts only once a person has accepted it with the plan's card. */
import { join } from 'node:path';
import type { StepName } from '../../protocol/plan.ts';
import { TelosError } from '../errors.ts';
import { isLink } from '../files/atomicWrite.ts';
import { describeFileError, errorCode } from '../files/paths.ts';
import { readRegularFile } from '../files/settingsFile.ts';

export interface RoleText {
  role: StepName;
  /** Relative to the repository, with `/`. */
  file: string;
  text: string;
}

const roles: readonly StepName[] = [
  ...(['interview', 'plan', 'split', 'orchestrator', 'coder', 'crm', 'marketing'] as const),
  ...(['image-generator', 'reviewer'] as const),
];

/** In bytes. More would crowd out the story. */
const longestText = 32 * 1024;

/** Returns the project's own texts. Throws TelosError `config` for a file that cannot be read, is a link or is too long. */
export function readRoles(repo: string): RoleText[] {
  const folders = [join(repo, '.telos'), join(repo, '.telos', 'roles')];
  return roles.flatMap(role => {
    const file = `.telos/roles/${role}.md`;
    const path = join(repo, ...file.split('/'));
    const link = [...folders, path].find(isLink);
    if (link !== undefined)
      throw new TelosError(
        'config',
        `${link} is a link, and Telos follows no links to the texts of roles; delete the link.`,
      );
    try {
      const text = readRegularFile(path, longestText).toString('utf8').trim();
      return text === '' ? [] : [{ role, file, text }];
    } catch (error) {
      if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return [];
      throw new TelosError('config', describeFileError(error, path), { cause: error });
    }
  });
}
