/** Reads which places of the sources a test file has executed, from what V8 writes for NODE_V8_COVERAGE. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

interface Range {
  startOffset: number;
  endOffset: number;
  count: number;
}

/** The ranges of each file, one list for each process that has loaded it. */
export type Executed = ReadonlyMap<string, readonly (readonly Range[])[]>;

/** Returns what was executed of `files`, which are relative to `root`, by the processes that wrote to the folder. */
export function readCoverage(folder: string, root: string, files: Iterable<string>): Executed {
  const wanted = new Map([...files].map(file => [pathToFileURL(join(root, file)).href, file]));
  const executed = new Map<string, Range[][]>();
  for (const name of readdirSync(folder)) {
    for (const { url, functions } of scriptsIn(join(folder, name))) {
      const file = wanted.get(url);
      if (file === undefined) continue;
      executed.set(file, [...(executed.get(file) ?? []), functions.flatMap(({ ranges }) => ranges)]);
    }
  }
  return executed;
}

/** Returns true if a process has executed the place: the smallest range around it counts. Types are stripped without moving anything. */
export function hasExecuted(executed: Executed, file: string, offset: number): boolean {
  return (executed.get(file) ?? []).some(ranges => {
    const around = ranges.filter(({ startOffset, endOffset }) => startOffset <= offset && offset < endOffset);
    const size = ({ startOffset, endOffset }: Range): number => endOffset - startOffset;
    const [smallest] = around.sort((one, other) => size(one) - size(other));
    return (smallest?.count ?? 0) > 0;
  });
}

interface Script {
  url: string;
  functions: { ranges: Range[] }[];
}

/** Returns none for a file that a killed process has left half written. */
function scriptsIn(file: string): Script[] {
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) as { result?: Script[] }).result ?? [];
  } catch {
    return [];
  }
}
