/** Makes the folder in which one run of an eval works: fresh, with the eval's files, and a home of its own. */

import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import type { Config } from '@telos/engine/config';
import { isInside, loadRegularFile } from '@telos/engine/files';
import {
  contentDigest,
  type FileAgent,
  type FileSkill,
  hasFilesAround,
  isTelosPack,
  openSkill,
} from '@telos/engine/skills';
import type { EvalInput } from './evalFile.ts';

/**
 * `without_skill` is the same run with the skill away, `old_skill` with an earlier version of it. The names are those of
 * skill-creator.
 */
export const configurations = ['with_skill', 'without_skill', 'old_skill'] as const;
export type Configuration = (typeof configurations)[number];

/** A skill with its agent. */
export interface EvaluatedSkill {
  agent: FileAgent;
  skill: FileSkill;
}

/** Returns a skill of a folder as it would be installed: with the pack around it if there is one, or else by itself. */
export function asInstalled({ agent, skill }: EvaluatedSkill): EvaluatedSkill {
  const above = dirname(skill.dir);
  const pack = basename(above) === 'skills' ? dirname(above) : above;
  const servers = join(pack, 'mcp.json');
  if (!hasFilesAround(pack))
    return { agent: { ...agent, packDir: skill.dir, isForeign: true, skills: [skill] }, skill };
  const skills = agent.skills.filter(({ dir }) => isInside(pack, dir));
  const mcp = existsSync(servers) && { mcpConfig: servers };
  return {
    agent: { ...agent, packDir: pack, skillsDir: above, skills, isForeign: !isTelosPack(pack), ...mcp },
    skill,
  };
}

export interface EvalWorld {
  /** Real and absolute, like all folders of it. */
  workDir: string;
  home: string;
  /** The configuration of the run. Its rules and reviews are the person's own; what it keeps is gone with the world. */
  config: Config;
  /** The agent that runs, which works in the folder. */
  agent: FileAgent;
  skill: FileSkill;
  /** Returns the paths that are not as they were when the run began, sorted. */
  changed(): Promise<string[]>;
  remove(): Promise<void>;
}

/** Returns a world. Throws errors of the file system. */
export async function openWorld(
  { agent, skill }: EvaluatedSkill,
  files: readonly EvalInput[],
  configuration: Configuration,
  config: Config,
): Promise<EvalWorld> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'telos-eval-')));
  const [workDir, home, dataDir, plain] = ['work', 'home', 'data', 'plain'].map(name => join(root, name)) as [
    string,
    string,
    string,
    string,
  ];
  for (const folder of [workDir, home]) await mkdir(folder);
  for (const { source, path } of files) {
    await mkdir(dirname(join(workDir, path)), { recursive: true });
    await cp(source, join(workDir, path), { dereference: true });
  }
  const before = await digestsBelow(workDir);
  const { unaskedWithin: _within, projectDir: _project, ...own } = agent;
  const isWith = configuration !== 'without_skill';
  const runs = isWith ? skill : await nothingAt(plain);
  return {
    workDir,
    home,
    config: evalConfig(config, {
      cwd: workDir,
      home,
      dataDir,
      workingRoot: workDir,
      // They say what the run should come to.
      hiddenDirs: [join(skill.dir, 'evals')],
    }),
    agent: isWith
      ? { ...own, workingDir: workDir }
      : {
          name: 'assistant',
          description: '',
          packDir: plain,
          skillsDir: plain,
          workingDir: workDir,
          source: 'user',
          isForeign: true,
          diagnostics: [],
          skills: [runs],
        },
    skill: runs,
    async changed() {
      const after = await digestsBelow(workDir);
      const paths = new Set([...before.keys(), ...after.keys()]);
      return [...paths].filter(path => before.get(path) !== after.get(path)).sort();
    },
    remove: () => rm(root, { recursive: true, force: true }),
  };
}

/** Returns a skill that says nothing, in whose place the model works with the same tools and in the same folder. */
async function nothingAt(folder: string): Promise<FileSkill> {
  const dir = join(folder, 'assistant');
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, 'SKILL.md'), '---\nname: assistant\ndescription: Does what is asked.\n---\n');
  return openSkill(join(dir, 'SKILL.md'), 'user');
}

/** Returns the configuration of a run: nothing of the person's project, limits or habits counts, or no two machines would agree. */
function evalConfig(
  config: Config,
  places: Pick<Config, 'cwd' | 'home' | 'dataDir' | 'workingRoot' | 'hiddenDirs'>,
): Config {
  return {
    ...config,
    ...places,
    workspaceFolders: [],
    projectFolders: [],
    builtinSkillsDir: undefined,
    skillRoots: { project: undefined, user: undefined, builtin: undefined },
    provider: 'eval',
    model: undefined,
    replayFile: undefined,
    budget: {},
    efforts: {},
    maxRounds: undefined,
    contextWindow: undefined,
    routingMode: 'name',
    routingLearns: false,
  };
}

async function digestsBelow(folder: string): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  for (const entry of entries) {
    if (entry.isDirectory()) continue;
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(folder.length + 1).replaceAll('\\', '/');
    found.set(name, entry.isFile() ? contentDigest(await loadRegularFile(path)) : 'no file');
  }
  return found;
}
