/** Finds files for the words behind an @. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Folders that are looked into, and files that are offered. */
const [mostFolders, mostFiles] = [300, 50];
const isLeftOut = (name: string): boolean => name === 'node_modules' || name === '.git';

/** Returns paths from the folder that begin with the word, and those of files further down whose names do. Folders end in a slash. */
export async function filesBeginning(word: string, folder: string): Promise<string[]> {
  const at = word.lastIndexOf('/') + 1;
  const [place, name] = [word.slice(0, at), word.slice(at)];
  const here = (await entriesOf(join(folder, place)))
    .filter(entry => entry.name.startsWith(name) && (name !== '' || !entry.name.startsWith('.')))
    .map(entry => place + entry.name + (entry.isDirectory() ? '/' : ''));
  if (here.length > 0 || name.length < 2 || place !== '') return here.sort().slice(0, mostFiles);
  return further(name, folder);
}

/** A word that no path begins with is taken for one: there is nothing else that it could be. */
async function further(name: string, folder: string): Promise<string[]> {
  const found: string[] = [];
  const folders = [''];
  for (let at = 0; at < Math.min(folders.length, mostFolders); at++)
    for (const entry of await entriesOf(join(folder, folders[at]!))) {
      const path = folders[at]! + entry.name;
      if (entry.isDirectory() && !entry.name.startsWith('.')) folders.push(`${path}/`);
      else if (entry.isFile() && entry.name.toLowerCase().includes(name.toLowerCase())) found.push(path);
    }
  return found.sort().slice(0, mostFiles);
}

const entriesOf = async (folder: string) =>
  (await readdir(folder, { withFileTypes: true }).catch(() => [])).filter(({ name }) => !isLeftOut(name));
