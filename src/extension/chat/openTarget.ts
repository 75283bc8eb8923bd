/**
 * Decides what a click in the chat view may open. The view shows a model's words, so neither address nor path is
 * trusted.
 */

import { realpath, stat } from 'node:fs/promises';
import { isAbsolute, relative, resolve, sep } from 'node:path';

/**
 * Returns the address in normal form if its scheme is safe for a browser or mail program. Otherwise returns undefined.
 */
export function openableLink(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const parsed = new URL(url);
  return ['https:', 'http:', 'mailto:'].includes(parsed.protocol) ? parsed.href : undefined;
}

/**
 * Returns the real path of a regular file inside one of `folders`, with links resolved on both sides. Returns undefined
 * for everything else. A relative path starts at `base`.
 */
export async function openableFile(
  path: string,
  folders: readonly string[],
  base: string | undefined,
): Promise<string | undefined> {
  if (path.includes('\0') || (!isAbsolute(path) && base === undefined)) return undefined;
  const file = await realpathOrNothing(base === undefined ? path : resolve(base, path));
  if (file === undefined || !(await stat(file)).isFile()) return undefined;
  for (const folder of folders) {
    const root = await realpathOrNothing(folder);
    if (root !== undefined && isInside(file, root)) return file;
  }
  return undefined;
}

function isInside(file: string, folder: string): boolean {
  const way = relative(folder, file);
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

async function realpathOrNothing(path: string): Promise<string | undefined> {
  try {
    return await realpath(path);
  } catch {
    return undefined;
  }
}
