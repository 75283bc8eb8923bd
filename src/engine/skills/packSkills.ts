/** Finds the skills of a pack, and says what keeps hosts that go by the standard from loading one. */
import { isUtf8 } from 'node:buffer';
import { type Dirent, existsSync, readdirSync, statSync } from 'node:fs';
import { basename, join, relative, sep } from 'node:path';
import { type Sentence, sentence } from '@telos/protocol/text';
import { hostServerFile, type NamedParts, namedParts } from '../files/hostPlugin.ts';
import { isInside, realPlace } from '../files/paths.ts';
import { readRegularFile } from '../files/regularFile.ts';
import { pluginSchema } from '../files/settingsFile.ts';
import { findSkillSteps, foldersIn, runNow, type Steps } from './findSkills.ts';
import { parseSkillFile, splitFrontmatter, withoutMark } from './frontmatter.ts';
import { type FileSkill, openSkill, skillFileIn } from './skillFile.ts';

export interface PackSkills {
  skills: readonly FileSkill[];
  /** Skills and other parts of a plugin that are not valid and that it goes without, with the reason as the rest of a sentence. */
  skipped: readonly { id: string; file: string; why: string }[];
}

/**
 * Returns what can run of a pack: the skills below `skills/` or its own SKILL.md, and the commands and roles of a plugin, or its servers alone. Where a
 * plugin.json names them, those alone count. A plugin of agent-plugins.org has the skills one level deep that are valid, and no other.
 */
export const packSkills = (packDir: string): PackSkills => runNow(packSkillSteps(packDir));

/** Does the same, with a pause after some folders. */
export function* packSkillSteps(packDir: string): Steps<PackSkills> {
  const isOfStandard = pluginSchema(packDir) !== undefined;
  const named = namedParts(packDir);
  const { skills, skipped } = yield* isOfStandard
    ? validSkills(packDir)
    : named.skills
      ? namedSkills(packDir, named.skills, named)
      : skillsBelow(packDir);
  if (named.isBroken && named.file !== undefined)
    skipped.push({
      id: relative(packDir, named.file),
      file: named.file,
      why: 'is not JSON, so the parts that it names are not known',
    });
  const own = skills.length === 0 ? skillFileIn(packDir) : undefined;
  if (own !== undefined) skills.push(openSkill(own, 'user', undefined, packDir));
  // What lies beside a lone SKILL.md is for that skill, and the standard knows neither commands nor roles.
  if (named.file === undefined && (isOfStandard || own !== undefined)) return { skills, skipped };
  for (const [part, kind] of [
    ['commands', 'command'],
    ['agents', 'role'],
  ] as const)
    for (const { id, path, file } of partFiles(packDir, part, named, skipped))
      skills.push(openSkill(file, 'user', skills.some(skill => skill.id === id) ? path : id, packDir, kind));
  const about = skills.length === 0 && hostServerFile(packDir) !== undefined ? named.file : undefined;
  if (about !== undefined) skills.push(openSkill(about, 'user', basename(packDir), packDir, 'servers'));
  return {
    skills: skills.sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)),
    skipped: shortened(skipped),
  };
}

/** Parts that a manifest names in vain and that are said one by one. */
const mostSaid = 5;

/** Returns the same, with one entry for all further parts that a manifest names in vain. */
function shortened(skipped: Found['skipped']): Found['skipped'] {
  const inVain = skipped.filter(({ why }) => why === notInIt);
  if (inVain.length <= mostSaid) return skipped;
  const [last] = inVain.slice(mostSaid - 1);
  const more = { id: `${last!.id} and ${inVain.length - mostSaid} more`, file: last!.file, why: notInIt };
  const said = inVain.slice(0, mostSaid - 1);
  return [...skipped.filter(each => each.why !== notInIt || said.includes(each)), more];
}

const notInIt = 'is named by the plugin and is not in it';

interface Found {
  skills: FileSkill[];
  skipped: { id: string; file: string; why: string }[];
}

function* skillsBelow(packDir: string): Steps<Found> {
  return {
    skills: yield* findSkillSteps(join(packDir, 'skills'), 'user', { within: packDir }),
    skipped: [],
  };
}

/** Returns the skills in the folders that a manifest names, each that of a skill or of several. */
function* namedSkills(packDir: string, paths: readonly string[], named: NamedParts): Steps<Found> {
  const [found, skipped]: [Found['skills'], Found['skipped']] = [[], []];
  for (const path of paths) {
    const folder = placeIn(packDir, path, named, skipped);
    if (folder === undefined) continue;
    const file = folder === packDir ? undefined : skillFileIn(folder);
    const skills = file
      ? [openSkill(file, 'user', undefined, packDir)]
      : yield* findSkillSteps(folder === packDir ? join(packDir, 'skills') : folder, 'user', {
          within: packDir,
        });
    for (const skill of skills)
      if (found.every(other => other.file !== skill.file)) {
        const isTaken = found.some(({ id }) => id === skill.id);
        const id = isTaken ? relative(packDir, skill.dir).split(sep).join('/') : skill.id;
        found.push(openSkill(skill.file, 'user', id, packDir));
      }
  }
  return { skills: found, skipped };
}

/** Returns the real place of what a manifest names; undefined if it is not in the plugin, which is then said. */
function placeIn(
  packDir: string,
  path: string,
  { file = packDir }: NamedParts,
  skipped: Found['skipped'],
): string | undefined {
  const root = realPlace(packDir) ?? packDir;
  const place = realPlace(join(packDir, path));
  const isThere = place !== undefined && isInside(root, place) && existsSync(place);
  if (isThere) return join(packDir, relative(root, place));
  skipped.push({ id: path, file, why: notInIt });
  return undefined;
}

/** Depth to which folders of commands and roles are searched, and how many of each are taken. */
const deepestPart = 3;
const mostOfPart = 500;
/** Files that tell people about the folder. */
const tellsPeople = /^(?:readme|agents|claude|license|changelog|contributing)(?:\.\w+)?\.md$/i;

/** Returns the files of the commands or roles of a plugin, those of a folder sorted by their paths. */
function partFiles(
  packDir: string,
  part: 'commands' | 'agents',
  named: NamedParts,
  skipped: Found['skipped'],
): { id: string; path: string; file: string }[] {
  const files = new Set<string>();
  const add = (place: string, depth: number): void => {
    if (files.size >= mostOfPart) return;
    if (/\.md$/i.test(place) && statSync(place, { throwIfNoEntry: false })?.isFile()) {
      if (depth === 0 || !tellsPeople.test(basename(place))) files.add(place);
    } else if (depth <= deepestPart)
      for (const { name } of entriesOf(place)) {
        const inner = join(place, name);
        if (!name.startsWith('.') && isInside(realPlace(packDir) ?? packDir, realPlace(inner) ?? '/'))
          add(inner, depth + 1);
      }
  };
  for (const path of named[part] ?? [existsSync(join(packDir, part)) ? part : []].flat()) {
    const place = placeIn(packDir, path, named, skipped);
    if (place !== undefined) add(place, 0);
  }
  return [...files].map(file => {
    const path = relative(packDir, file).split(sep).join('/').replace(/\.md$/i, '');
    return { id: path.slice(path.lastIndexOf('/') + 1), path, file };
  });
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    return [];
  }
}

/** Returns the skills of a plugin of agent-plugins.org. */
function* validSkills(packDir: string): Steps<Found> {
  const [skills, skipped]: [Found['skills'], Found['skipped']] = [[], []];
  for (const id of foldersIn(join(packDir, 'skills'))) {
    const file = join(packDir, 'skills', id, 'SKILL.md');
    const why = problemOf(file, id, packDir);
    if (why === noSkill) continue;
    if (why === undefined) skills.push(openSkill(file, 'user', id, packDir));
    else skipped.push({ id, file, why });
    yield;
  }
  return { skills, skipped };
}

const noSkill = Symbol('no skill');
/** Far larger than any text that a model is given. In bytes. */
const mostBytes = 4 * 1024 * 1024;

function problemOf(file: string, id: string, packDir: string): string | typeof noSkill | undefined {
  if (!isInside(realPlace(packDir) ?? packDir, realPlace(file) ?? '/')) return 'leads out of the plugin';
  try {
    if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return noSkill;
    return problemsElsewhere(readRegularFile(file, mostBytes), id)[0];
  } catch {
    return 'cannot be read';
  }
}

const longestName = 64;

/** Returns what is wrong with the name of a skill, in a sentence. Returns undefined if nothing is. */
export function skillNameProblem(name: string): Sentence | undefined {
  if (name.length > longestName) return sentence('At most {0} characters, please.', longestName);
  return /^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)
    ? undefined
    : sentence('Lowercase letters, digits and single hyphens, for example weekly-report.');
}

/** In characters, as the specification of skills has it. */
export const longestDescription = 1024;

/** Returns what other hosts refuse, each as the end of a sentence. `id` is the name of the skill's folder. */
export function problemsElsewhere(bytes: Buffer, id: string): string[] {
  if (!isUtf8(bytes)) return ['is not text in UTF-8'];
  const text = withoutMark(bytes.toString('utf8'));
  const { fields, diagnostics } = parseSkillFile(text, `${id}/SKILL.md`);
  const { name, description } = fields;
  const broken = diagnostics.filter(({ severity }) => severity === 'error' || severity === 'warning');
  return [
    ...(skillNameProblem(id) === undefined
      ? []
      : [`is in a folder whose name others refuse: ${JSON.stringify(id)}`]),
    ...(splitFrontmatter(text) === undefined ? ['has no frontmatter'] : []),
    ...(name === id ? [] : [`is called ${JSON.stringify(name ?? '')}, not like its folder`]),
    ...descriptionProblems(description),
    ...broken.map(({ line, message }) => `has an error in line ${line}: ${message}`),
  ];
}

export function descriptionProblems(description: unknown): string[] {
  if (typeof description !== 'string' || description.trim() === '') return ['has no description'];
  return description.length > longestDescription
    ? [`has a description of more than ${longestDescription.toLocaleString('en-US')} characters`]
    : [];
}
