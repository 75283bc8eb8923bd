/** Says which other programs do not load a skill, and why. */
import { asSaid } from '@telos/protocol/text';
import { readRegularFile } from '../files/regularFile.ts';
import { type Diagnostic, worded } from '../files/settingsFile.ts';
import type { Skill } from './agent.ts';
import { fieldText, findKey, parseSkillFile, withoutMark } from './frontmatter.ts';
import { descriptionProblems, problemsElsewhere } from './packSkills.ts';

/** Fields of the specification at agentskills.io. Its own checker refuses any other. */
const standardFields: ReadonlySet<string> = new Set([
  ...['name', 'description', 'license', 'compatibility', 'metadata', 'allowed-tools'],
]);
/** In characters. */
const longestCompatibility = 500;

/** VS Code says nothing of a skill that it leaves out. */
const byName = 'VS Code, OpenCode';
const byDescription = 'VS Code, OpenCode, Codex';
const byStandard = 'skills-ref validate';

/** Returns a hint for each reason for which another program does not load the skill; none for a command or role. Never throws. */
export function portabilityOf({
  file,
  id,
  kind,
  dir,
}: Pick<Skill, 'file' | 'id' | 'kind' | 'dir'>): Diagnostic[] {
  if (kind !== undefined) return [];
  const folder = dir.split(/[\\/]/).at(-1) ?? id;
  let bytes: Buffer;
  try {
    bytes = readRegularFile(file);
  } catch {
    // What cannot be read is a defect that is told anyway.
    return [];
  }
  const text = withoutMark(bytes.toString('utf8'));
  const { fields } = parseSkillFile(text, file);
  const described = descriptionProblems(fields['description']);
  const found: { hosts: string; why: string; key: string }[] = problemsElsewhere(bytes, folder).map(why => ({
    ...(described.includes(why)
      ? { hosts: byDescription, key: 'description' }
      : { hosts: byName, key: 'name' }),
    why,
  }));
  const compatibility = fieldText(fields['compatibility']) ?? '';
  if (compatibility.length > longestCompatibility) {
    const why = `has a compatibility of more than ${longestCompatibility} characters`;
    found.push({ hosts: byStandard, why, key: 'compatibility' });
  }
  for (const key of Object.keys(fields).filter(name => !standardFields.has(name)))
    found.push({ hosts: byStandard, why: `has the field \`${key}\``, key });
  return found.map(({ hosts, why, key }) => ({
    severity: 'info',
    code: 'portable',
    ...worded(asSaid(`It is not loaded by ${hosts}: it ${why}.`)),
    file,
    line: findKey(text, key) ?? 1,
  }));
}
