/** What there is to run: agents and their skills, as plain data with the file they came from. */
import type { SkillRef } from '../../protocol/run.ts';

/** A defect in a file of the user, with what to do about it; never an exception. Lines count from 1. */
export interface Diagnostic {
  severity: 'error' | 'warning' | 'info';
  /** Stable and greppable, for example `frontmatter-unclosed`. */
  code: string;
  message: string;
  file: string;
  line: number;
  fix?: string;
}

/** Where a skill comes from; on equal names project wins over user, user over builtin. */
export type SkillSource = 'project' | 'user' | 'linked' | 'builtin';

/**
 * One SKILL.md. The folder's name is its id. The file is read and parsed when a property below the line is first asked for, so that listing
 * thousands of skills by name stays cheap.
 */
export interface Skill {
  readonly id: string;
  /** Absolute folder of the skill. */
  readonly dir: string;
  /** Absolute path of the SKILL.md. */
  readonly file: string;
  readonly source: SkillSource;
  /** The skill of the same name that runs in its place, unless this one's agent is named. */
  readonly shadowedBy?: SkillRef;
  // ----
  /** The frontmatter's `name`, an alias; the id where there is none. */
  readonly name: string;
  readonly description: string;
  /** Everything behind the frontmatter. */
  readonly body: string;
  readonly diagnostics: readonly Diagnostic[];
}

export interface Agent {
  readonly name: string;
  readonly description: string;
  /** Sorted by id. */
  readonly skills: readonly Skill[];
  /** The folder that holds the agent; commands run here unless the skill has files of its own. */
  readonly packDir: string;
  /** Where its skills lie; `<packDir>/skills`, unless they lie elsewhere or in several places. */
  readonly skillsDir: string;
  /** Root of the file tools, absolute. */
  readonly workingDir: string;
  readonly source: SkillSource;
  readonly mcpConfig?: string;
  /** Defects of the agent's own files (agent.toml, agents.toml); those of a skill stand at the skill. */
  readonly diagnostics: readonly Diagnostic[];
}
