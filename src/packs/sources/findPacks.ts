/** Looks in a tree of files for what can be installed, in a fixed order of which the first hit wins. */

import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import { isSkippedFolder, loadRegularFile } from '@telos/engine/files';
import { findSkills, hasHooks, openSkill, packSkills, partsNotRun, skillFileIn } from '@telos/engine/skills';
import { type Sentence, sentence } from '@telos/protocol/text';
import { fields, text } from './fetched.ts';
import { type Candidate, pluginsIn } from './marketplace.ts';
import { readPluginManifest } from './pluginManifest.ts';
import { UnclearSource } from './sourceText.ts';

export interface FoundPacks {
  /** What decided, in words. */
  way: string;
  candidates: readonly Candidate[];
}

const deepest = 5;
/** A pack has at most this many files, and so has a tree. */
const mostFolders = 5000;

const pluginSchema = /^https:\/\/(?:[\w-]+\.)*agent-plugins\.org\//;

/**
 * Returns what is in the folder `path` of a tree. `usual` names a pack that has no name of its own. With `alone`, the tree is nothing
 * but a fetched catalogue. Throws TelosError `pack` if there is nothing, or if a manifest that decides cannot be read.
 */
export async function findPacks(
  root: string,
  path: string,
  usual: string,
  alone = false,
): Promise<FoundPacks> {
  const base = join(root, path);
  if (!(await isFolder(base)))
    throw new TelosError('pack', [
      sentence('The source has no folder {0}.', JSON.stringify(path)),
      sentence('Nothing was installed.'),
    ]);
  const found =
    (await plugin(base, path, 'plugin.json', usual, true)) ??
    (await catalogue(base, path, alone)) ??
    (await plugin(base, path, '.plugin/plugin.json', usual)) ??
    (await plugin(base, path, '.claude-plugin/plugin.json', usual)) ??
    (await plugin(base, path, 'plugin.json', usual)) ??
    (await pack(base, path, usual)) ??
    bareSkill(base, path, usual) ??
    (await collected(base, path, usual)) ??
    (await searched(base, path, usual)) ??
    loose(base, path, usual);
  if (found) return found;
  throw new TelosError('pack', [whyNothing(base), sentence('Nothing was installed.')]);
}

/** Says what there is in place of skills, as far as it is known. */
function whyNothing(base: string): Sentence {
  const others = partsNotRun(base);
  return others.length > 0
    ? sentence(
        'It has no skills, commands, agents, MCP servers or hooks that could run, only {0}.',
        others.join(', '),
      )
    : sentence(
        'There is no skill in it: no SKILL.md, no agent.toml, and no plugin with skills, commands or agents down to {0} folders deep.',
        deepest,
      );
}

/**
 * Returns the one that is meant. Throws UnclearSource with the names if there are several and none is named, or if none has the name.
 * A name may also be that of a skill within a pack.
 */
export function chosen(
  { candidates, way }: FoundPacks,
  name: string | undefined,
  root: string,
  sourceOf: (name: string) => string,
): Candidate {
  if (name === undefined) {
    if (candidates.length === 1) return candidates[0]!;
    throw new UnclearSource(
      `It holds ${candidates.length} packs (${way}).`,
      candidates.map(one => sourceOf(one.name)),
    );
  }
  const named = candidates.find(candidate => candidate.name === name);
  if (named) return named;
  const skills = candidates.flatMap(candidate => skillsOf(root, candidate));
  const skill = skills.filter(one => one.id === name || one.name === name);
  if (skill.length === 1)
    return { name: skill[0]!.id, description: skill[0]!.description, path: skill[0]!.path };
  const names = [...candidates.map(one => one.name), ...skills.map(one => one.id)];
  throw new UnclearSource(`It has nothing called '${name}' (${way}).`, [...new Set(names)].map(sourceOf));
}

/** Returns the skills of a candidate, with their folders in the tree. */
export function skillsOf(
  root: string,
  { path, skills, elsewhere }: Candidate,
): { id: string; name: string; description: string; path: string }[] {
  if (elsewhere) return [];
  const base = join(root, path);
  const open = skills
    ? skills.flatMap(folder => skillIn(join(base, folder), folder.split('/').at(-1) ?? folder) ?? [])
    : packSkills(base).skills.filter(({ dir }) => dir !== base);
  return open.filter(isAlone).map(skill => ({
    id: skill.id,
    name: skill.name,
    description: skill.description,
    path: skill.dir.slice(root.length + 1).replaceAll('\\', '/'),
  }));
}

/** A command or role of a plugin is not installed alone: it may need the others. */
const isAlone = ({ kind }: { kind?: unknown }): boolean => kind === undefined;

function skillIn(folder: string, id: string): ReturnType<typeof openSkill> | undefined {
  const file = skillFileIn(folder);
  return file ? openSkill(file, 'user', id, folder) : undefined;
}

async function plugin(
  base: string,
  path: string,
  file: string,
  usual: string,
  isOfStandard = false,
): Promise<FoundPacks | undefined> {
  const manifest = await manifestIn(base, file);
  if (!manifest) return undefined;
  const schema = text(manifest['$schema']) ?? '';
  if (isOfStandard && !pluginSchema.test(schema)) return undefined;
  if (isOfStandard) {
    const { name, description, ignored } = readPluginManifest(manifest, file);
    const way = ignored.length === 0 ? file : `${file}, of which is ignored: ${ignored.join(', ')}`;
    return { way, candidates: [{ name, description, path }] };
  }
  // Many a repository has a plugin.json of something else, or one that leads nowhere.
  if (packSkills(base).skills.length === 0 && !hasHooks(base)) return undefined;
  const name = text(manifest['name']) ?? usual;
  return { way: file, candidates: [{ name, description: text(manifest['description']) ?? '', path }] };
}

const catalogues = [
  'marketplace.json',
  '.plugin/marketplace.json',
  '.github/plugin/marketplace.json',
  '.claude-plugin/marketplace.json',
];

async function catalogue(base: string, path: string, alone: boolean): Promise<FoundPacks | undefined> {
  for (const file of catalogues) {
    const manifest = await manifestIn(base, file);
    if (manifest)
      return {
        way: file,
        candidates: await pluginsIn(manifest, path, {
          alone,
          file,
          isFolder: inner => isFolder(join(base, inner)),
        }),
      };
  }
  return undefined;
}

async function pack(base: string, path: string, usual: string): Promise<FoundPacks | undefined> {
  const hasToml = await isFile(join(base, 'agent.toml'));
  if (!hasToml && findSkills(join(base, 'skills'), 'user').length === 0) return undefined;
  return { way: hasToml ? 'agent.toml' : 'skills/', candidates: [{ name: usual, description: '', path }] };
}

function bareSkill(base: string, path: string, usual: string): FoundPacks | undefined {
  const file = skillFileIn(base);
  if (!file) return undefined;
  const skill = openSkill(file, 'user', usual, base);
  return {
    way: 'SKILL.md',
    candidates: [{ name: path.split('/').at(-1) || usual, description: skill.description, path }],
  };
}

/** Commands, agents and hooks without a manifest, where there is nothing else. */
function loose(base: string, path: string, usual: string): FoundPacks | undefined {
  if (packSkills(base).skills.length === 0 && !hasHooks(base)) return undefined;
  return { way: 'commands/, agents/ and hooks/', candidates: [{ name: usual, description: '', path }] };
}

async function collected(base: string, path: string, usual: string): Promise<FoundPacks | undefined> {
  for (const folder of ['.agents/skills', '.claude/skills', '.github/skills', '.opencode/skills']) {
    const skills = findSkills(join(base, folder), 'user').map(({ dir }) =>
      dir.slice(base.length + 1).replaceAll('\\', '/'),
    );
    if (skills.length > 0) return asPack(base, path, usual, `${folder}/`, skills);
  }
  return undefined;
}

async function searched(base: string, path: string, usual: string): Promise<FoundPacks | undefined> {
  const skills: string[] = [];
  const folders = [''];
  for (const folder of folders) {
    if (folders.length > mostFolders) break;
    for (const entry of await readdir(join(base, folder), { withFileTypes: true })) {
      const below = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (!entry.isDirectory() || isSkippedFolder(entry.name)) continue;
      if (skillFileIn(join(base, below))) skills.push(below);
      else if (below.split('/').length < deepest) folders.push(below);
    }
  }
  return skills.length === 0
    ? undefined
    : asPack(base, path, usual, `a search down to ${deepest} folders deep`, skills.sort());
}

/** One skill is a pack by its folder. Several become the skills of one pack. */
function asPack(
  base: string,
  path: string,
  usual: string,
  way: string,
  skills: readonly string[],
): FoundPacks {
  const [only, ...more] = skills;
  if (only !== undefined && more.length === 0) {
    const name = only.split('/').at(-1) ?? usual;
    const description = skillIn(join(base, only), name)?.description ?? '';
    return { way, candidates: [{ name, description, path: path === '' ? only : `${path}/${only}` }] };
  }
  return { way, candidates: [{ name: usual, description: '', path, skills }] };
}

/** Largest manifest that is read. In bytes. */
const longestManifest = 4 * 1024 * 1024;

async function manifestIn(
  base: string,
  file: string,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const place = join(base, file);
  if (!(await isFile(place))) return undefined;
  const content = await loadRegularFile(place);
  if (content.length > longestManifest)
    throw new TelosError('pack', [
      sentence('{0} is too large to be read.', file),
      sentence('Nothing was installed.'),
    ]);
  try {
    return fields(JSON.parse(content.toString('utf8').replace(/^\ufeff/, '')));
  } catch (error) {
    throw new TelosError('pack', [
      sentence('{0} is not JSON ({1}).', file, error instanceof Error ? error.message : String(error)),
      sentence('Nothing was installed.'),
    ]);
  }
}

const isFile = (path: string): Promise<boolean> =>
  lstat(path).then(
    stats => stats.isFile(),
    () => false,
  );
const isFolder = (path: string): Promise<boolean> =>
  lstat(path).then(
    stats => stats.isDirectory(),
    () => false,
  );
