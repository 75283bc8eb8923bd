/** The format of the skills in `cases.yaml`: what lies in a skill, what its text has an agent do, and what must have come of it. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** One thing that the skill's text has an agent do. Exactly one of the first six says what. `<word>` is filled in from the run. */
export interface Step {
  read?: string;
  /** Lists a folder. */
  list?: string;
  glob?: string;
  /** A pattern that is searched for in `path`. */
  search?: string;
  path?: string;
  run?: string;
  write?: string;
  content?: string;
  /** A tool by any name, with its arguments. */
  use?: string;
  with?: Readonly<Record<string, string | number | boolean>>;
  /** What the result has to hold. The model cannot know, so it does not try again for that. */
  says?: string;
  /** The skill's text does not name it; another file does. */
  unnamed?: boolean;
}

export interface SkillCase {
  name: string;
  /** Its special feature, in the terms of the tables. */
  shape: string;
  /** More lines of the front matter. */
  front?: string;
  text: string;
  /** Below the skill's folder. None has its exec bit. */
  files?: Readonly<Record<string, string>>;
  /** A folder of that name with the skill in `skills/`, and more in it in `beside`. */
  pack?: boolean;
  beside?: Readonly<Record<string, string>>;
  /** The pack is a plugin, whose manifest is made unless `beside` has one; its text is that of a skill or of a command. */
  plugin?: 'skill' | 'command';
  /** The folder that holds the skill's folder; the skills folder of Telos if missing. `{project}` and `~` are filled in. */
  place?: string;
  /** A folder with a published skill, in place of `text` and `files`. */
  from?: string;
  /** Files of the person's project. */
  person?: Readonly<Record<string, string>>;
  /** The project is a repository with these commits. */
  git?: readonly string[];
  /** Folder of the project that is the current folder. */
  stands?: string;
  /** Variables that the person has set. */
  env?: Readonly<Record<string, string>>;
  /** Words for `<word>`, of the first and of the second run; `<project>` is the person's folder. `{project}` is filled in. */
  runs: readonly Readonly<Record<string, string>>[];
  steps: readonly Step[];
  /** Files that must be there after a run, with a text that each holds. In the current folder, `~/…` or `{work}/…`. */
  makes?: Readonly<Record<string, string>>;
  /** Its own script adds files to its folder; that is said, and nothing more. */
  adds?: boolean;
  /** It cannot work here; a pattern of what must be named before the model is asked. */
  missing?: string;
}

/** Throws if the file does not hold cases, and names the first that does not fit. */
export function readCases(file: string): SkillCase[] {
  const list: unknown = parse(readFileSync(file, 'utf8'));
  if (!Array.isArray(list)) throw new Error(`${file} does not hold a list of skills.`);
  for (const [index, one] of (list as Partial<SkillCase>[]).entries()) {
    if (!one.name || !one.steps || one.runs?.length !== 2 || (one.text ?? one.from) === undefined)
      throw new Error(`${file}: case ${index + 1} (${one.name}) needs a name, a text, steps and two runs.`);
    for (const step of one.steps) checkNamed(one as SkillCase, step);
  }
  return list as SkillCase[];
}

/** Throws if the skill's text does not name what the step does: no model would do that. */
function checkNamed({ name, text, runs }: SkillCase, step: Step): void {
  const named = mainWords(step);
  if (text === undefined || step.unnamed || named.startsWith('{project}')) return;
  if (!text.includes(named) && !Object.keys(runs[0] ?? {}).includes(named.slice(1, -1)))
    throw new Error(`The text of ${name} does not name '${named}'.`);
}

/** Returns the path, pattern or command as the text has it. */
export function mainWords(step: Step): string {
  const given = step.with ?? {};
  const main = given['command'] ?? given['file_path'] ?? given['pattern'] ?? given['path'];
  return String(step.read ?? step.list ?? step.glob ?? step.search ?? step.run ?? step.write ?? main ?? '');
}

/** The three kinds of calls that the table counts, and the rest. */
export type CallKind = 'read' | 'command' | 'write' | 'look';

export function kindOf(tool: string): CallKind {
  const name = tool.toLowerCase();
  if (/^(read|read_file|view)$/.test(name)) return 'read';
  if (/^(bash|exec|run_command|shell)$/.test(name)) return 'command';
  return /^(write|edit|write_file|edit_file)$/.test(name) ? 'write' : 'look';
}
