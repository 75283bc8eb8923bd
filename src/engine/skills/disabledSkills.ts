/** Keeps which skills a person has disabled, in the data folder. They stay listed, and run only if they are addressed in full. */
import { join } from 'node:path';
import type { SkillRef } from '@telos/protocol/run';
import { sentence } from '@telos/protocol/text';
import type { Config } from '../config.ts';
import { TelosError } from '../core/errors.ts';
import { editShared, readSettings } from '../files/settingsFile.ts';

type Place = Pick<Config, 'dataDir'>;

const fileIn = ({ dataDir }: Place): string => join(dataDir, 'skills', 'disabled.json');

/** Returns the disabled skills. Empty if the file is missing or broken. */
export function readDisabled(place: Place): readonly SkillRef[] {
  try {
    return refsIn(readSettings(fileIn(place))) ?? [];
  } catch {
    return [];
  }
}

/** Disables a skill, or enables it again. Throws TelosError `config` if the file is broken, and the errors of `editShared`. */
export async function setDisabled(ref: SkillRef, isDisabled: boolean, place: Place): Promise<void> {
  const file = fileIn(place);
  await editShared(file, text => {
    const before = refsIn(text || '[]');
    if (!before)
      throw new TelosError('config', [
        sentence('{0} is not a list of skills.', file),
        sentence('Delete it, then disable them again.'),
      ]);
    const others = before.filter(each => !isSame(each, ref));
    const { agent, skill } = ref;
    return `${JSON.stringify(isDisabled ? [...others, { agent, skill }] : others, undefined, 2)}\n`;
  });
}

/** Marks the skills that the person has disabled. A skill that they would shadow takes their place. */
export function markDisabled(
  agents: readonly {
    readonly name: string;
    readonly skills: readonly { id: string; isDisabled?: boolean }[];
  }[],
  disabled: readonly SkillRef[],
): void {
  for (const { agent, skill: id } of disabled) {
    const skill = agents.find(({ name }) => name === agent)?.skills.find(each => each.id === id);
    if (skill) skill.isDisabled = true;
  }
}

const isSame = (one: SkillRef, other: SkillRef): boolean =>
  one.agent === other.agent && one.skill === other.skill;

/** Returns undefined for a text that is not a list of skills. */
function refsIn(text: string): SkillRef[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value.filter(isRef) : undefined;
  } catch {
    return undefined;
  }
}

const isRef = (value: unknown): value is SkillRef =>
  typeof value === 'object' &&
  value !== null &&
  'agent' in value &&
  'skill' in value &&
  typeof value.agent === 'string' &&
  typeof value.skill === 'string';
