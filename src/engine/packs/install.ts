/** Brings a folder of this machine into the skills folder: a pack, or a single skill. */
import { realpath, stat } from 'node:fs/promises';
import { basename, join, relative, sep } from 'node:path';
import { type AgentEntry, readAgentsToml } from '../agents/agentsToml.ts';
import { readAgentToml } from '../agents/agentToml.ts';
import { findSkills } from '../agents/findSkills.ts';
import { skillFileIn } from '../agents/skillFile.ts';
import { type Config, expandPath } from '../config.ts';
import { TelosError } from '../errors.ts';
import { setAgentValue } from './agentsTomlEdit.ts';
import { copyPack } from './copyPack.ts';
import { checkPackName } from './packName.ts';
import { replaceFolder } from './placeFolder.ts';

export interface InstalledPack {
  name: string;
  skillCount: number;
  /** Where it stands now. Absolute. */
  path: string;
  /** An earlier version stood there and is gone. */
  replaced: boolean;
  /** Links and special files that were not copied, as paths below the pack. */
  leftOut: readonly string[];
  /** For the person: `Installed agent '<name>' with <k> skills`. */
  summary: string;
}

/**
 * Installs a pack (a folder with `skills/` or an agent.toml) or a bare skill (a folder with a SKILL.md). Until the new version is
 * whole, nothing of the old one is touched. Throws TelosError `pack` for a folder or a name that will not do.
 */
export async function installPack(path: string, config: Config): Promise<InstalledPack> {
  const source = await sourceFolder(path, config);
  const { name, description, diagnostics } = readAgentToml(source);
  const broken = diagnostics[0];
  if (broken)
    throw new TelosError(
      'pack',
      `${broken.file}, line ${broken.line}: ${broken.message} ${broken.fix ?? ''}`,
    );
  if (!(await isPack(source))) throw noPack(source);
  checkPackName(name, name === basename(source) ? 'of the folder' : 'in its agent.toml');
  const older = installedByVersion3(name, config);
  const target = join(older ? join(config.dataDir, 'agents') : config.skillsDir, name);
  await checkApart(source, target);
  let skillCount = 0;
  let leftOut: readonly string[] = [];
  const replaced = await replaceFolder(target, async staged => {
    ({ leftOut } = await copyPack(source, staged));
    skillCount = findSkills(join(staged, 'skills'), 'user').length || (skillFileIn(staged) ? 1 : 0);
  });
  if (older && description) await setAgentValue(older.file, name, 'description', description);
  const summary = `Installed agent '${name}' with ${skillCount} skills`;
  return { name, skillCount, path: target, replaced, leftOut, summary };
}

async function sourceFolder(path: string, { home, cwd }: Config): Promise<string> {
  const folder = expandPath(path.trim() || '.', home, cwd);
  try {
    const source = await realpath(folder);
    if ((await stat(source)).isDirectory()) return source;
  } catch {
    throw new TelosError(
      'pack',
      `There is no folder ${folder}. Give the path of a pack, or of a folder with a SKILL.md.`,
    );
  }
  throw new TelosError('pack', `${folder} is no folder. Give the folder that it lies in.`);
}

async function isPack(source: string): Promise<boolean> {
  const there = (name: string): Promise<boolean> =>
    stat(join(source, name)).then(
      () => true,
      () => false,
    );
  return (await there('agent.toml')) || (await there('skills')) || skillFileIn(source) !== undefined;
}

function noPack(source: string): TelosError {
  const message = `${source} is no pack: it has no skills/<skill>/SKILL.md, no agent.toml and no SKILL.md. Give the folder that has one of them.`;
  return new TelosError('pack', message);
}

/** A pack of version 3 is replaced where it stands, since its entry in agents.toml points there. */
function installedByVersion3(name: string, config: Config): (AgentEntry & { file: string }) | undefined {
  const { entries, file, ofProject } = readAgentsToml(config);
  const entry = ofProject ? undefined : entries.find(candidate => candidate.name === name);
  return entry?.mode === 'installed' && !entry.skillsDir ? { ...entry, file } : undefined;
}

/** A folder cannot be copied into itself, and what stands in the skills folder already is installed. */
async function checkApart(source: string, target: string): Promise<void> {
  const folder = join(target, '..');
  const place = join(await realpath(folder).catch(() => folder), basename(target));
  if (source === place)
    throw new TelosError('pack', `${source} is installed already; it is read where it stands.`);
  const way = relative(source, place);
  if (way === '..' || way.startsWith(`..${sep}`) || /^[A-Za-z]:/.test(way)) return;
  throw new TelosError('pack', `${source} holds the skills folder itself. Give the folder of one pack.`);
}
