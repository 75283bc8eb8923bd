/** Finds stored objects of Git that are not what their names say: whoever stores that content next would get something else. */
import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { createInflate, inflateSync } from 'node:zlib';
import { openRegularFile } from '../files/openFile.ts';
import { statsAt } from '../files/paths.ts';
import { readRegularFile } from '../files/regularFile.ts';
import { gitEnvironment, gitSettings, runGit } from '../tools/gitStart.ts';
import type { LayerFile } from './layerRead.ts';

const isLoose = /\/\.git\/(?:.*\/)?objects\/([\da-f]{2})\/([\da-f]{38}|[\da-f]{62})$/;
const isPack = /\/\.git\/(?:.*\/)?objects\/pack\/pack-[\da-f]+\.\w+$/;

/** In bytes. A smaller file is read at once; what it unpacks to is limited by how it is packed. */
const smallObject = 64 * 1024;

/**
 * Returns those of the files of repositories that are stored objects or packs and hold something else. `git` is the person's own program;
 * without it, no pack counts. Never throws.
 */
export async function falseObjects(
  files: readonly LayerFile[],
  git: string | undefined,
): Promise<ReadonlySet<LayerFile>> {
  const found = new Set<LayerFile>();
  const packs = new Map<string, LayerFile[]>();
  for (const file of files) {
    const [, folder, name] = isLoose.exec(file.path) ?? [];
    if (file.after && folder !== undefined && !(await isObject(file.after.at, `${folder}${name}`)))
      found.add(file);
    if (file.after && isPack.test(file.path)) {
      const pack = file.path.replace(/\.\w+$/, '');
      packs.set(pack, [...(packs.get(pack) ?? []), file]);
    }
  }
  for (const [pack, parts] of packs) {
    const index = parts.find(({ path }) => path === `${pack}.idx`)?.after?.at;
    // What is added to a pack that is there only helps to find what is in it.
    if (index === undefined && statsAt(`${pack}.idx`)) continue;
    const isWhole = index !== undefined && git !== undefined && (await isVerified(git, index));
    if (!isWhole) for (const part of parts) found.add(part);
  }
  return found;
}

async function isObject(path: string, hash: string): Promise<boolean> {
  const sum = createHash(hash.length > 40 ? 'sha256' : 'sha1');
  try {
    const { handle, size } = await openRegularFile(path);
    try {
      if (size <= smallObject) sum.update(inflateSync(readRegularFile(path)));
      else
        for await (const chunk of handle.createReadStream({ autoClose: false }).pipe(createInflate()))
          sum.update(chunk);
    } finally {
      await handle.close();
    }
    return sum.digest('hex') === hash;
  } catch {
    return false;
  }
}

/** Has Git count all objects of a pack again. No setting of the person's or of a repository counts. */
async function isVerified(git: string, index: string): Promise<boolean> {
  const format = basename(index).length > 'pack-.idx'.length + 40 ? 'sha256' : 'sha1';
  const own = { GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null', GIT_DEFAULT_HASH: format };
  const args = [...gitSettings(), 'verify-pack', `--object-format=${format}`, index];
  const ended = runGit(git, args, { cwd: '/', env: gitEnvironment({}, own) });
  return (await ended.catch(() => undefined))?.code === 0;
}
