/** Describes agents and their skills as plain data, with the files that they came from, and reads agent.toml. */

import { basename, dirname, isAbsolute, join, relative } from 'node:path';
import type { SkillRef } from '@telos/protocol/run';
import { type Sentence, sentence, spoken } from '@telos/protocol/text';
import { type Config, expandPath, roundsIn } from '../config.ts';
import { mostRounds } from '../core/limits.ts';
import { isInside, realPlace } from '../files/paths.ts';
import { isSensitive, whatObeys } from '../files/sensitiveNames.ts';
import { type Diagnostic, lineOfKey, readToml, textDefects, textOf, worded } from '../files/settingsFile.ts';

/** A way to get what is missing. Shown, never run unasked. */
export interface InstallStep {
  /** A command to copy. Undefined if the author gives only words. */
  command: string | undefined;
  label: string;
  /** Programs that it installs. Empty if not specified. */
  bins: readonly string[];
  /** Systems that it is for. Empty for all. */
  os: readonly NodeJS.Platform[];
}

/**
 * Something that is missing for a skill. `what` names it, `reason` is why the skill wants it, `nextStep` what a person can do. Each is a
 * sentence or less. A `file` cannot be read at all; a `script` is one that the text names.
 */
export interface Missing {
  kind: 'file' | 'os' | 'program' | 'package' | 'script' | 'variable' | 'setting' | 'tool';
  what: string;
  reason: string;
  nextStep: string;
  /** Those of `what`, `reason` and `nextStep`, for a frontend that translates. A name is as it is. */
  sentences: Readonly<Record<'reason' | 'nextStep', Sentence>> & { readonly what?: Sentence };
  /** Commands to copy. Never run unasked. */
  commands: readonly string[];
}

/** Returns what is missing, in English and as sentences. `what` is a name, or words. */
export function missingWords(
  what: string | Sentence,
  reason: Sentence,
  nextStep: Sentence,
): Pick<Missing, 'what' | 'reason' | 'nextStep' | 'sentences'> {
  const isName = typeof what === 'string';
  return {
    what: isName ? what : spoken([what]),
    reason: spoken([reason]),
    nextStep: spoken([nextStep]),
    sentences: { ...(!isName && { what }), reason, nextStep },
  };
}

/** Returns `one, or another`. */
export const alternatives = (commands: readonly string[]): string | Sentence =>
  commands
    .slice(1)
    .reduce<string | Sentence>((all, one) => sentence('{0}, or {1}', all, one), commands[0] ?? '');

/** Requirements of a skill on the machine, from its `metadata`. */
export interface RuntimeMetadata {
  /** `anyBins` lists programs of which one is enough. `config` lists settings of another runner. */
  requires: Readonly<Record<'bins' | 'anyBins' | 'env' | 'config', readonly string[]>> & {
    /** Packages of Python. */
    readonly pip?: readonly string[];
  };
  /** Systems that the skill runs on. Empty for any. */
  os: readonly NodeJS.Platform[];
  /** True if the skill can run whatever `requires` says. The system still counts. */
  always: boolean;
  primaryEnv: string | undefined;
  emoji: string | undefined;
  homepage: string | undefined;
  install: readonly InstallStep[];
}

/** Source of a skill. Among equal names, project wins over user, and user over builtin. */
export type SkillSource = 'project' | 'user' | 'linked' | 'builtin';

/**
 * A `commands/*.md` of a plugin, which runs when it is named; an `agents/*.md`, to which a skill of the plugin may hand a step; or what
 * runs of a plugin that has nothing but MCP servers.
 */
export type SkillKind = 'command' | 'role' | 'servers';

/**
 * A SKILL.md, or a command or role of a plugin. Its id is the folder's name, or that of the file of a command or role. The file is read and parsed when a property below the line is first used. So listing
 * thousands of skills by name stays cheap.
 */
export interface Skill {
  readonly id: string;
  /** Folder of the skill. Absolute path. */
  readonly dir: string;
  /** Absolute path of the SKILL.md. */
  readonly file: string;
  /** Undefined for a SKILL.md. */
  readonly kind?: SkillKind | undefined;
  readonly source: SkillSource;
  /**
   * Folder that must really contain the skill's own folder, for the skill to be read unasked. The author put the skill there, so
   * a link out of it is the author's choice. Undefined for a skill that belongs to nothing.
   */
  readonly within?: string | undefined;
  /** The skill of the same name that runs in its place, unless this one's agent is named. */
  readonly shadowedBy?: SkillRef;
  /** True if the person has disabled it: it is neither routed nor offered, and runs only if it is addressed in full. */
  readonly isDisabled?: boolean;
  // ----
  /** The frontmatter's `name`, an alias. The id if it is missing. */
  readonly name: string;
  readonly description: string;
  /** First statement of the text, for listings and the search index. Undefined if the author gave a description. */
  readonly synopsis: string | undefined;
  /** Everything after the frontmatter. */
  readonly body: string;
  /** Requirements of the skill on the machine, and its presentation. */
  readonly metadata: RuntimeMetadata;
  /** False if pickers leave it out (`user-invocable: false`). */
  readonly userInvocable: boolean;
  /** False if it runs only when it is named (`disable-model-invocation: true`), as all commands and roles do. */
  readonly modelInvocable: boolean;
  /** `allowed-tools`, one entry for each tool or pattern, as written. Undefined if missing. */
  readonly allowedTools: readonly string[] | undefined;
  /** `tools` of a role, in the same form: it gets no others. Undefined if it gets all. */
  readonly onlyTools?: readonly string[] | undefined;
  /** `disallowed-tools`, in the same form. */
  readonly disallowedTools?: readonly string[] | undefined;
  /** `max_rounds`, from 1 to 500. Undefined if missing or not such a number. */
  readonly maxRounds?: number | undefined;
  /** `argument-hint`: what belongs behind the skill's name, such as `[crate]`. */
  readonly argumentHint?: string | undefined;
  /** True for `context: fork`: it sees nothing of the conversation, of which only its answer becomes a part. */
  readonly runsApart?: boolean;
  /** `arguments`: names for the words behind the skill's own name, in their order. */
  readonly argumentNames?: readonly string[];
  /** `hooks`, as written. Undefined if missing. */
  readonly hooks?: unknown;
  readonly diagnostics: readonly Diagnostic[];
}

export interface Agent {
  readonly name: string;
  readonly description: string;
  /** Sorted by id. */
  readonly skills: readonly Skill[];
  /** Folder of the agent. The commands of a pack of Telos run here, unless it works in the current folder. */
  readonly packDir: string;
  /**
   * True for skills that were written for any runner: they work in the current folder, and their commands run in workingDir.
   * False for a pack of Telos, which has an agent.toml or an mcp.json.
   */
  readonly isForeign?: boolean;
  /** True if workingDir is the current folder because nothing, or `working_dir = "."`, says otherwise. Commands run there, too. */
  readonly worksHere?: boolean;
  /** The project whose files brought the agent. Its card names it; until that is accepted, each write in it is asked about. */
  readonly projectDir?: string;
  /** Folder of its skills: `<packDir>/skills`, unless they are elsewhere or in several places. */
  readonly skillsDir: string;
  /** Root of the file tools. Absolute path. */
  readonly workingDir: string;
  /**
   * If workingDir is really within this folder, it is used unasked. Otherwise the agent's card names it, and each use is asked
   * about until that is accepted. Undefined if the user has chosen workingDir, or is in it.
   */
  readonly unaskedWithin?: string;
  readonly source: SkillSource;
  readonly mcpConfig?: string;
  /** `max_rounds` of its agent.toml, for skills that set none. */
  readonly maxRounds?: number | undefined;
  /** Defects of the agent's own files (agent.toml, agents.toml). Those of a skill are in the skill's diagnostics. */
  readonly diagnostics: readonly Diagnostic[];
}

export interface AgentToml {
  /** The folder's name if the file gives none. */
  name: string;
  description: string | undefined;
  /** Text as written: `.`, or a path that may start with `~`. If undefined, the default. */
  workingDir: string | undefined;
  /** Line of the working_dir, counted from 1. */
  workingDirLine: number;
  /** Rounds of a run before it asks whether to go on, if the file sets them. */
  maxRounds: number | undefined;
  diagnostics: readonly Diagnostic[];
}

/**
 * Returns the content of the pack's agent.toml, or the defaults if the file is missing. `consequence` says what happens if it cannot
 * be read.
 */
export function readAgentToml(
  packDir: string,
  consequence: readonly Sentence[] = [sentence('The agent was loaded without it.')],
): AgentToml {
  const file = join(packDir, 'agent.toml');
  const { text, table, diagnostics } = readToml(file, 'agent-toml', consequence);
  const place = { code: 'agent-toml-value', file, line: 1 };
  const passedOver = textDefects(table, ['name', 'description', 'working_dir'], place);
  const rounds = Object.hasOwn(table, 'max_rounds') ? table['max_rounds'] : undefined;
  return {
    name: textOf(table, 'name') ?? basename(packDir),
    description: textOf(table, 'description'),
    workingDir: textOf(table, 'working_dir'),
    workingDirLine: lineOfKey(text, 'working_dir'),
    maxRounds: roundsIn(rounds),
    diagnostics: [...diagnostics, ...passedOver, ...roundsDefects(rounds, { ...place, severity: 'warning' })],
  };
}

/** Returns a defect if the rounds that a file sets are not a number that a run can use. */
export const roundsDefects = (
  rounds: unknown,
  place: Pick<Diagnostic, 'severity' | 'code' | 'file' | 'line'>,
): Diagnostic[] =>
  rounds === undefined || roundsIn(rounds) !== undefined
    ? []
    : [
        {
          ...place,
          ...worded(
            sentence('max_rounds is not a number of steps, so it is not used.'),
            sentence(
              'Write a whole number from 1 to {0}, such as max_rounds = 60 in agent.toml or max_rounds: 60 in SKILL.md.',
              mostRounds,
            ),
          ),
        },
      ];

type Places = Pick<Config, 'home' | 'cwd' | 'configDir' | 'dataDir' | 'skillsDir'>;

const ofTheSystem =
  /^(\/private)?\/(etc|usr|opt|var\/(?!(folders|tmp|home)\/)\w+|bin|sbin|lib\w*|boot|dev|proc|sys|run|System|Library)(\/|$)|^[a-z]:\\(Windows|Program Files[^\\]*|ProgramData)(\\|$)/i;

/**
 * Returns why no agent works in the folder, whoever chose it, as the end of a sentence: it is a whole disk, or holds the home folder or what
 * Telos keeps. Returns undefined for any other folder. `path` is absolute.
 */
export function tooWide(
  path: string,
  { home, configDir, dataDir, skillsDir }: Omit<Places, 'cwd'>,
): Sentence | undefined {
  const place = realPlace(path);
  if (place === undefined) return sentence('leads nowhere');
  if (dirname(place) === place) return sentence('is a whole disk');
  const held = [home, configDir, dataDir, skillsDir].find(folder => isInside(place, real(folder)));
  return held === undefined ? undefined : sentence('holds all of {0}', held);
}

/** Returns why a folder cannot be meant as it is written, as the end of a sentence: only `~` is filled in. Undefined for any other. */
export const notFilledIn = (written: string): Sentence | undefined =>
  /^(?:\$|~[^/\\]|%\w+%)/.test(written)
    ? sentence('names a variable or the home of another, which is not filled in')
    : undefined;

/**
 * Returns why the folder that the pack names is not used, as the end of a sentence. Returns undefined if it can be used.
 * `written` is the text in the pack's own agent.toml. The user's agents.toml is not checked this way.
 */
export function workingDirProblem(written: string, packDir: string, places: Places): Sentence | undefined {
  const { home, cwd, skillsDir } = places;
  const unfilled = notFilledIn(written);
  if (unfilled !== undefined) return unfilled;
  const path = realPlace(expandPath(written, home, cwd));
  if (path === undefined) return sentence('leads nowhere');
  const own = real(packDir);
  // The agent's card decides what it may write in its own folder.
  if (path !== own && isInside(own, path)) return undefined;
  if (!/^~/.test(written) && !isAbsolute(written) && !isInside(real(cwd), path))
    return sentence('leads out of the folder in which Telos is called');
  const wide = tooWide(path, places);
  if (wide !== undefined) return wide;
  if (dirname(path) === dirname(dirname(path)) || ofTheSystem.test(path))
    return sentence('belongs to the system');
  if (isSensitive(path)) return sentence('is a place of keys and passwords');
  if (isInside(real(skillsDir), path)) return sentence('belongs to other agents');
  const [first = ''] = isInside(real(home), path) ? path.slice(real(home).length + 1).split(/[\\/]/) : [];
  if (first.startsWith('.')) return sentence('holds the settings of programs');
  if (/^(bin|library|appdata)$/i.test(first)) return sentence('holds programs and their settings');
  // Programs obey a file by its path from the working folder. A path from this folder would begin too deep.
  const file = `${path}/file`;
  if (whatObeys(file, isInside(real(cwd), path) ? relative(real(cwd), file) : file) !== undefined)
    return sentence('holds what other programs run or obey');
  return undefined;
}

const real = (path: string): string => realPlace(path) ?? path;
