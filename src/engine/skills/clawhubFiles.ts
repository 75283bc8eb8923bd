/** Writes the files by which ClawHub's own client knows what is installed, in the shape that it reads. */

import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type AlongFile, contentsOf, type FolderContents } from '../files/folderRecord.ts';
import { canonicalJson, clawhubEntryIn } from '../files/lockText.ts';
import { loadText, readText } from '../files/regularFile.ts';
import type { Resolved } from './lockFile.ts';

type FromClawhub = Extract<Resolved, { kind: 'clawhub' }>;

/** Adds `.clawhub/origin.json` to the folder of a skill of ClawHub that is about to be placed in `skillsDir` under this name. */
export async function addClawhubOrigin(
  folder: string,
  resolved: Resolved,
  skillsDir: string,
  name: string,
): Promise<void> {
  if (resolved.kind !== 'clawhub') return;
  const text = originText(await contentsOf(folder), resolved, Date.now());
  const known = await loadText(join(skillsDir, name, '.clawhub', 'origin.json')).catch(() => '');
  await mkdir(join(folder, '.clawhub'), { recursive: true });
  // With its time, the same version would look like another one.
  await writeFile(join(folder, '.clawhub', 'origin.json'), isSameOrigin(known, text) ? known : text);
}

function isSameOrigin(one: string, other: string): boolean {
  const plain = (text: string): string => text.replace(/"installedAt": \d+/, '');
  return plain(one) === plain(other);
}

/** Returns the change of ClawHub's lock file for a skill of ClawHub that is placed, or removed if `resolved` is missing. */
export function clawhubChanges(name: string, resolved: Resolved | undefined, skillsDir: string): AlongFile[] {
  if (resolved && resolved.kind !== 'clawhub') return [];
  const file = join(skillsDir, '.clawhub', 'lock.json');
  const before = entryAt(file, name);
  if (!resolved && before === null) return [];
  const after = resolved && {
    version: resolved.version,
    installedAt: Date.now(),
    ...(resolved.ownerHandle && { ownerHandle: resolved.ownerHandle }),
  };
  return [{ file, before, after: after ? canonicalJson(after) : null, entry: name, isClawhub: true }];
}

/** Returns the entry as it is now. A file that cannot be read has none, and is left alone. */
function entryAt(file: string, name: string): string | null {
  try {
    return clawhubEntryIn(readText(file), name);
  } catch {
    return null;
  }
}

function originText(
  contents: FolderContents = {},
  { registry, slug, ownerHandle, version }: FromClawhub,
  installedAt: number,
): string {
  const files = Object.entries(contents).filter(
    ([path, value]) => value.startsWith('sha256:') && !isHidden(path),
  );
  // Its client sorts in this way, and compares.
  files.sort(([one], [other]) => one.localeCompare(other));
  const fingerprint = createHash('sha256')
    .update(files.map(([path, value]) => `${path}:${value.slice(7, 71)}`).join('\n'))
    .digest('hex');
  const origin = {
    version: 1,
    registry,
    slug,
    ...(ownerHandle && { ownerHandle }),
    installedVersion: version,
    installedAt,
    fingerprint,
  };
  return `${JSON.stringify(origin, null, 2)}\n`;
}

const isHidden = (path: string): boolean =>
  path.split('/').some(part => part.startsWith('.') || part === 'node_modules');
