/** Remembers on the disk which commands run in the background, so that the next start can say which of them ended with the program. */

import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beginningOf, shortened } from '@telos/protocol/text';
import { appendOwnLine, jsonLine } from '../files/jsonLines.ts';
import { isOwnerRunning, type Owned, ownerHere } from '../files/liveProcess.ts';
import { readText } from '../files/regularFile.ts';

const folderIn = (dataDir: string): string => join(dataDir, 'background');

/** In characters. */
const longestLine = 200;

/** Notes a command. Returns what `forgetStarted` takes; undefined if it cannot be noted. */
export function rememberStarted(dataDir: string, id: string, command: string): string | undefined {
  const file = join(folderIn(dataDir), `${process.pid}-${id}.txt`);
  try {
    appendOwnLine(file, `${JSON.stringify(ownerHere())}\n${shortened(command, longestLine)}`);
    return file;
  } catch {
    return undefined;
  }
}

export const forgetStarted = (file: string): void => rmSync(file, { force: true });

/** Returns the commands that ended because the program in which they ran ended, each once. */
export function endedWithProgram(dataDir: string): string[] {
  const folder = folderIn(dataDir);
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch {
    return [];
  }
  return names.flatMap(name => {
    const [, pid] = /^(\d+)-[\w-]+\.txt$/.exec(name) ?? [];
    if (pid === undefined) return [];
    try {
      const [head = '', ...words] = readText(join(folder, name)).split('\n');
      const owner = jsonLine(head, value => Object(value) as Owned['owner']);
      if (isOwnerRunning({ pid: Number(pid), ...(owner && { owner }) })) return [];
      // Earlier versions wrote the command alone.
      const command = beginningOf(
        (owner ? words : [head, ...words]).join('\n').replace(/\n$/, ''),
        longestLine,
      );
      rmSync(join(folder, name), { force: true });
      return [command];
    } catch {
      return [];
    }
  });
}
