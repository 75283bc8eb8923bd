/** Reads the file in which another program keeps what a team has installed, so that it becomes a real lock. */

import { join, posix } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import { loadText } from '@telos/engine/files';
import { sentence } from '@telos/protocol/text';
import { fields, text } from './fetched.ts';

export interface FormerSkill {
  name: string;
  /** What `install` takes. Undefined for a source that Telos does not know. */
  source: string | undefined;
  problem?: string;
}

/** Returns the skills in `skills-lock.json` of a folder. Throws TelosError `pack` if it is missing or has another version. */
export async function readSkillsLock(folder: string): Promise<FormerSkill[]> {
  const file = join(folder, 'skills-lock.json');
  let lock: Readonly<Record<string, unknown>>;
  try {
    lock = fields(JSON.parse(await loadText(file)));
  } catch (error) {
    throw new TelosError('pack', [
      sentence('{0} cannot be read ({1}).', file, error instanceof Error ? error.message : String(error)),
      sentence('Nothing was installed.'),
    ]);
  }
  if (lock['version'] !== 1)
    throw new TelosError('pack', [
      sentence(
        '{0} has version {1}; this Telos reads version 1.',
        file,
        JSON.stringify(lock['version'] ?? null),
      ),
      sentence('Nothing was installed.'),
    ]);
  return Object.entries(fields(lock['skills'])).map(([name, entry]) => formerSkill(name, fields(entry)));
}

function formerSkill(name: string, entry: Readonly<Record<string, unknown>>): FormerSkill {
  const [source, url, kind] = [
    text(entry['source']) ?? '',
    text(entry['sourceUrl']),
    text(entry['sourceType']) ?? '',
  ];
  const ref = text(entry['ref']) === undefined ? '' : `@${text(entry['ref'])}`;
  const folder = posix.dirname(text(entry['skillPath']) ?? 'SKILL.md');
  const path = folder === '.' ? '' : `/${folder.replace(/^\.?\//, '')}`;
  switch (kind) {
    case 'github':
      return { name, source: `github:${source.replace(/\.git$/, '')}${path}${ref}` };
    case 'git':
    case 'gitlab': {
      const address = url ?? source;
      return { name, source: `${/^[\w-]+@/.test(address) ? '' : 'git+'}${address}${ref}#${name}` };
    }
    case 'local':
      return { name, source: `${source}${path}` };
    case 'well-known':
      return { name, source: `${url ?? source}#${name}` };
    default:
      return {
        name,
        source: undefined,
        problem: `its kind of source, ${JSON.stringify(kind)}, is not one that Telos installs from`,
      };
  }
}
