/** What there is to run: agents and their skills, as plain data with the file they came from. */

import type { SkillRef } from '../../protocol/run.ts';
import type { Diagnostic } from '../files/diagnostic.ts';

/** A way to get what is missing. Shown, never run unasked. */
export interface InstallStep {
  /** A command to copy; undefined where the author only gives words. */
  command: string | undefined;
  label: string;
  /** The programs that it brings; empty where that is not said. */
  bins: readonly string[];
  /** Only for these systems; empty for all. */
  os: readonly NodeJS.Platform[];
}

/** What a skill's `metadata` says about the machine that it wants. */
export interface RuntimeMetadata {
  /** `anyBins`: one of them is enough. `config`: settings of another runner. */
  requires: Readonly<Record<'bins' | 'anyBins' | 'env' | 'config', readonly string[]>>;
  /** Empty for any system. */
  os: readonly NodeJS.Platform[];
  /** It is fit to run whatever `requires` says; the system still counts. */
  always: boolean;
  primaryEnv: string | undefined;
  emoji: string | undefined;
  homepage: string | undefined;
  install: readonly InstallStep[];
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
  /**
   * The folder in which the skill's own folder must really lie to be read unasked: it was laid there by its author, and a link out of it is
   * the author's choice. Undefined for a skill that belongs to nothing.
   */
  readonly within?: string | undefined;
  /** The skill of the same name that runs in its place, unless this one's agent is named. */
  readonly shadowedBy?: SkillRef;
  // ----
  /** The frontmatter's `name`, an alias; the id where there is none. */
  readonly name: string;
  readonly description: string;
  /** Where the author gave no description: what the text itself says first, for listings and the search index. */
  readonly synopsis: string | undefined;
  /** Everything behind the frontmatter. */
  readonly body: string;
  /** What the skill needs of the machine, and how it presents itself. */
  readonly metadata: RuntimeMetadata;
  /** False where pickers leave it out (`user-invocable: false`). */
  readonly userInvocable: boolean;
  /** False where it only runs when it is named (`disable-model-invocation: true`). */
  readonly modelInvocable: boolean;
  /** `allowed-tools`, one entry for each tool or pattern, as written; undefined where nothing is said. */
  readonly allowedTools: readonly string[] | undefined;
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
  /**
   * Where workingDir really lies within this folder, it is used unasked; elsewhere its card names it, and each use is asked about until that
   * is accepted. Undefined where the user has chosen workingDir, or is in it.
   */
  readonly unaskedWithin?: string;
  readonly source: SkillSource;
  readonly mcpConfig?: string;
  /** Defects of the agent's own files (agent.toml, agents.toml); those of a skill stand at the skill. */
  readonly diagnostics: readonly Diagnostic[];
}
