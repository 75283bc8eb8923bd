/** Gives a person without skills something to run: the pack that ships with Telos, copied beside their own. */
import { cp, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { placeFolder } from './placeFolder.ts';

/** Copies each agent of `samplesDir` into `skillsDir`; one that is there already stays as it is. Returns the names added. */
export async function addSamplePack(samplesDir: string, skillsDir: string): Promise<string[]> {
  const added: string[] = [];
  for (const entry of await readdir(samplesDir, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    const source = join(samplesDir, entry.name);
    const copy = (staged: string): Promise<void> => cp(source, staged, { recursive: true });
    if (await placeFolder(join(skillsDir, entry.name), copy)) added.push(entry.name);
  }
  return added;
}
