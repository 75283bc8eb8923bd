/** Finds the skills of a pack, and says what keeps hosts that go by the standard from loading one. */
import { isUtf8 } from 'node:buffer';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { type Sentence, sentence } from '@telos/protocol/text';
import { isInside, realPlace } from '../files/paths.ts';
import { readRegularFile } from '../files/regularFile.ts';
import { pluginSchema } from '../files/settingsFile.ts';
import { findSkillSteps, foldersIn, runNow, type Steps } from './findSkills.ts';
import { parseSkillFile, splitFrontmatter, withoutMark } from './frontmatter.ts';
import { type FileSkill, openSkill } from './skillFile.ts';

export interface PackSkills {
  skills: readonly FileSkill[];
  /** Skills of a plugin that are not valid and that it goes without, with the reason as the rest of a sentence. */
  skipped: readonly { id: string; file: string; why: string }[];
}

/** Returns the skills below `skills/` of a pack. A plugin of agent-plugins.org has those one level deep that are valid, and no other. */
export const packSkills = (packDir: string): PackSkills => runNow(packSkillSteps(packDir));

/** Does the same, with a pause after some folders. */
export function* packSkillSteps(packDir: string): Steps<PackSkills> {
  if (pluginSchema(packDir) === undefined)
    return {
      skills: yield* findSkillSteps(join(packDir, 'skills'), 'user', { within: packDir }),
      skipped: [],
    };
  const skills: FileSkill[] = [];
  const skipped: { id: string; file: string; why: string }[] = [];
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
