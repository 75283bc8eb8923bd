/** Reports what a user should know before a run: defects of its skill, what is missing, and where it works. */
import { join } from 'node:path';
import type { Remedy, RunEvent } from '@telos/protocol/run';
import { asMessage, type Sentence } from '@telos/protocol/text';
import type { Config } from '../config.ts';
import type { Diagnostic } from '../files/settingsFile.ts';
import type { Agent, Missing, Skill } from '../skills/agent.ts';

import { movedCode, worksIn } from '../skills/workFolders.ts';
import { missingNotice } from './prompt.ts';

/** Returns warnings about defects of the skill and about what is missing on this machine. */
export function defectsOf(skill: Skill, missing: readonly Missing[]): RunEvent[] {
  const errors = skill.diagnostics.filter(({ severity }) => severity === 'error');
  const notice = missingNotice(skill, missing);
  return [...errors.map(error => defectNotice(skill.file, error)), ...(notice ? [warning(notice)] : [])];
}

/** Says where an agent works, and how to change that if it is foreign and new there: neither its files nor a setting need have said so. */
export function placeOf(
  { isForeign, name, workingDir }: Agent,
  { configDir, cwd }: Config,
  isFirst: boolean,
): RunEvent {
  const remedy: Remedy = { kind: 'choose_folder', agent: name, file: join(configDir, 'agents.toml') };
  return {
    type: 'notice',
    level: 'info',
    ...asMessage(worksIn(workingDir, cwd)),
    ...(isForeign && isFirst && { remedy }),
  };
}

/** Says where the agent worked before, if its work may still be there. */
export const movedFrom = ({ diagnostics }: Agent): RunEvent[] =>
  diagnostics
    .filter(({ code }) => code === movedCode)
    .map(({ message, sentences = [], fixSentence }) => ({
      type: 'notice',
      level: 'info',
      ...(fixSentence ? asMessage(...sentences, fixSentence) : { message }),
    }));

/** Returns a warning about a defect in a file. */
export const defectNotice = (file: string, { message, sentences = [] }: Diagnostic): RunEvent =>
  warning({
    text: `{0}:${sentences.map((_, index) => ` {${index + 1}}`).join('') || ' {1}'}`,
    values: [file, ...(sentences.length > 0 ? sentences : [message])],
  });

const warning = (said: Sentence): RunEvent => ({ type: 'notice', level: 'warning', ...asMessage(said) });
