/** Where agents work and have worked: what lies there can be the work of a run, so that no program in it is found by its name. */
import { appendFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Config } from '../config.ts';
import { readRegularFile } from '../regularFile.ts';
import { isInside } from '../tools/paths.ts';
import type { Agent } from './agent.ts';

type Places = Pick<Config, 'cwd' | 'dataDir' | 'home' | 'workingRoot' | 'workspaceFolders'>;

/** Bytes of the file, and folders that are remembered, the latest. */
const mostBytes = 1024 * 1024;
const mostFolders = 1000;

/** One JSON string a line. */
const fileIn = (dataDir: string): string => join(dataDir, 'work-folders.jsonl');

/**
 * All folders of work that are known: where agents work and have worked, the folder of the call and those of the workspace. A folder of the call
 * that holds the home folder is none: nobody works there unasked, and all that people install for themselves lies below it.
 */
export function workFoldersOf(
  config: Places,
  agents: readonly Pick<Agent, 'workingDir' | 'source'>[],
): string[] {
  const { cwd, home, dataDir, workingRoot, workspaceFolders } = config;
  const ofProjects = agents.filter(({ source }) => source === 'project').map(({ workingDir }) => workingDir);
  const chosen = agents.filter(({ source }) => source !== 'project').map(({ workingDir }) => workingDir);
  const ofCall = [cwd, ...workspaceFolders.map(({ path }) => path), ...ofProjects];
  const all = [
    workingRoot,
    ...chosen,
    ...remembered(dataDir),
    ...ofCall.filter(each => !isInside(each, home)),
  ];
  return [...new Set(all)];
}

/** Remembers where a run works, for later runs of any agent. Never throws: a full disk ends no run. */
export function rememberWorkFolder({ dataDir, home }: Places, folder: string): void {
  if (isInside(folder, home) || remembered(dataDir).includes(folder)) return;
  const file = fileIn(dataDir);
  try {
    mkdirSync(dirname(file), { recursive: true });
    // A line that was cut by a crash ends here.
    appendFileSync(file, `\n${JSON.stringify(folder)}\n`);
  } catch {
    // The folders of the agents that there are now are known without it.
  }
}

function remembered(dataDir: string): string[] {
  try {
    const lines = readRegularFile(fileIn(dataDir), mostBytes).toString('utf8').split('\n');
    return lines.flatMap(pathIn).slice(-mostFolders);
  } catch {
    return [];
  }
}

function pathIn(line: string): string[] {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'string' ? [value] : [];
  } catch {
    return [];
  }
}
