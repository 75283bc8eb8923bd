/**
 * Reads hooks: commands that run before and after the tools of a run, at its start and at its end. A plugin has them in
 * hooks/hooks.json or where its manifest says, a skill in its frontmatter, a project in its .claude/settings.json, and the person in
 * hooks.toml.
 */
import { existsSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { reasonOf } from '../core/errors.ts';
import { hooksInManifest, pluginRootOf } from '../files/hostPlugin.ts';
import { isInside, realPlace } from '../files/paths.ts';
import { readSettings, readToml } from '../files/settingsFile.ts';
import type { Agent, Skill } from './agent.ts';

/** The events at which hooks run, by the names that Claude Code gives them. `SubagentStop` is the end of a step. */
export const hookEvents = [
  ...(['SessionStart', 'UserPromptSubmit', 'PreToolUse', 'PostToolUse'] as const),
  ...(['PreCompact', 'Stop', 'SubagentStop', 'SessionEnd'] as const),
] as const;
export type HookEvent = (typeof hookEvents)[number];

export interface Hook {
  event: HookEvent;
  /** Names of tools, or what else the event has to match. As written; undefined for everything. */
  matcher: string | undefined;
  /** As written. */
  command: string;
  seconds: number;
  /** A further condition, such as `Bash(rm *)`. */
  condition: string | undefined;
  /** True if it runs at most once in a run. */
  once: boolean;
  /** Whose hook it is. Undefined for the person's own. */
  agent: string | undefined;
  /** The skill that brings it, if it is not the whole agent. */
  skill: string | undefined;
  /** The folder that `${CLAUDE_PLUGIN_ROOT}` means. */
  root: string;
  /** The folder that `${CLAUDE_PROJECT_DIR}` means, if it is not where the run works. */
  project?: string;
}

export interface FoundHooks {
  hooks: readonly Hook[];
  /** Files outside of the skills whose text makes the hooks. Absolute paths. */
  files: readonly string[];
  /** What is written as a hook and does not run, in sentences. */
  problems: readonly string[];
}

/** Seconds that a hook may take. Its own `timeout` can only be less. */
const mostSeconds = 60;
/** Of one file. */
const mostHooks = 100;
/** In characters. */
const longestCommand = 8_000;
const longestMatcher = 200;

type Origin = Pick<Hook, 'agent' | 'skill' | 'root' | 'project'> & { label: string };

type OfAgent = Pick<Agent, 'name' | 'packDir' | 'source' | 'projectDir'>;

/**
 * Returns the hooks of the pack itself, in whose folder they are, or those that a project has for Claude Code. A linked folder belongs to
 * the person's work, so it brings none. Never throws.
 */
export function packHooks({ name, packDir, source, projectDir }: OfAgent): FoundHooks {
  const [hooks, files, problems]: [Hook[], string[], string[]] = [[], [], []];
  if (source === 'project') return projectHooks(name, projectDir ?? packDir);
  if (source !== 'user' && source !== 'builtin') return { hooks, files, problems };
  const add = (value: unknown, file: string): void => {
    const label = relative(packDir, file);
    const found = hooksIn(value, { agent: name, skill: undefined, root: packDir, label });
    hooks.push(...found.hooks);
    problems.push(...found.problems);
  };
  const addFile = (named: string, from: string): void => {
    const place = realPlace(join(packDir, named.replaceAll(root$, '.')));
    if (place === undefined || !isInside(realPlace(packDir) ?? packDir, place))
      problems.push(`${from} names hooks in ${named}, which leads out of the plugin. They do not run.`);
    else if (!existsSync(place)) problems.push(`${from} names hooks in ${named}, which is not there.`);
    else if (!files.includes(place)) {
      files.push(place);
      const content = jsonOf(place);
      if (typeof content === 'string') problems.push(`${named} ${content}, so its hooks do not run.`);
      else add(content.value, join(packDir, named));
    }
  };
  if (existsSync(join(packDir, usualFile))) addFile(usualFile, usualFile);
  const manifest = hooksInManifest(packDir);
  if (!manifest) return { hooks, files, problems };
  const from = relative(packDir, manifest.file);
  for (const named of [manifest.value].flat())
    if (typeof named === 'string') addFile(named.replace(/^\.\//, ''), from);
    else if (named === undefined) problems.push(`${from} is not JSON, so its hooks do not run.`);
    else add(named, manifest.file);
  return { hooks, files, problems };
}

const projectFiles = ['.claude/settings.json', '.claude/settings.local.json'];

function projectHooks(agent: string, project: string): FoundHooks {
  const [hooks, problems]: [Hook[], string[]] = [[], []];
  for (const label of projectFiles) {
    const place = realPlace(join(project, label));
    if (place === undefined || !existsSync(place)) continue;
    const content = jsonOf(place);
    if (!isInside(realPlace(project) ?? project, place))
      problems.push(`${label} leads out of the project, so its hooks do not run.`);
    else if (typeof content === 'string') problems.push(`${label} ${content}, so its hooks do not run.`);
    else {
      const { hooks: value, disableAllHooks: isOff } = tableOf(content.value) ?? {};
      if (value === undefined || isOff === true) continue;
      const found = hooksIn(value, { agent, skill: undefined, root: project, project, label });
      hooks.push(...found.hooks);
      problems.push(...found.problems);
    }
  }
  return { hooks, files: [], problems };
}

/** Whether a project has hooks that can run. */
export const hasProjectHooks = (projectDir: string): boolean => projectHooks('', projectDir).hooks.length > 0;

/** Whether a folder is that of a plugin with hooks that can run. */
export const hasHooks = (packDir: string): boolean =>
  packHooks({ name: '', packDir, source: 'user' }).hooks.length > 0;

const usualFile = 'hooks/hooks.json';
const root$ = '$'.concat('{CLAUDE_PLUGIN_ROOT}');

function jsonOf(file: string): { value: unknown } | string {
  try {
    return { value: JSON.parse(readSettings(file)) };
  } catch (error) {
    // The parser's own message quotes the surrounding text, which may be a token.
    return error instanceof SyntaxError ? 'is not JSON' : `could not be read (${reasonOf(error)})`;
  }
}

/** Returns the hooks of a skill's frontmatter, of which `value` is the field `hooks`. */
export function skillHooks(
  value: unknown,
  { name, packDir }: Pick<OfAgent, 'name' | 'packDir'>,
  { id, dir }: Pick<Skill, 'id' | 'dir'>,
): FoundHooks {
  if (value === undefined || value === null) return none;
  const root = pluginRootOf({ packDir, skillDir: dir });
  return { ...hooksIn(value, { agent: name, skill: id, root, label: `${id}/SKILL.md` }), files: [] };
}

/** Returns the hooks of an agent: those of its pack, and those of its skills, which run with these alone. */
export function hooksOfAgent(agent: OfAgent & Pick<Agent, 'skills'>): FoundHooks {
  const all = [packHooks(agent), ...agent.skills.map(skill => skillHooks(skill.hooks, agent, skill))];
  return {
    hooks: all.flatMap(({ hooks }) => hooks),
    files: all.flatMap(({ files }) => files),
    problems: all.flatMap(({ problems }) => problems),
  };
}

const none: FoundHooks = { hooks: [], files: [], problems: [] };

/** Returns the path of the person's own hooks. */
export const ownHookFile = (configDir: string): string => join(configDir, 'hooks.toml');

export interface OwnHooks extends FoundHooks {
  /** Names of agents whose hooks run in each run, not with their own skills alone. */
  everywhere: readonly string[];
}

/** Returns the person's own hooks, from the tables `[[hook]]` of hooks.toml. Never throws. */
export function ownHooks(configDir: string): OwnHooks {
  const file = ownHookFile(configDir);
  if (!existsSync(file)) return { ...none, everywhere: [] };
  const { table, diagnostics } = readToml(file, 'hooks-toml', []);
  const label = basename(file);
  const problems = diagnostics.map(({ message, fix = '' }) => `${message} ${fix}`.trim());
  const entries: unknown = table['hook'] ?? [];
  const everywhere: unknown = table['everywhere'] ?? [];
  const names = Array.isArray(everywhere) ? everywhere.filter(name => typeof name === 'string') : [];
  if (!Array.isArray(everywhere) || names.length < everywhere.length)
    problems.push(`${label}: everywhere is a list of names of agents, such as ["guard"].`);
  if (!Array.isArray(entries) || Object.keys(table).some(key => key !== 'hook' && key !== 'everywhere'))
    problems.push(`${label}: each hook is a table [[hook]] with event and command.`);
  const hooks: Hook[] = [];
  const origin = { agent: undefined, skill: undefined, root: configDir, label };
  for (const entry of Array.isArray(entries) ? entries : []) {
    const { event, ...rest } = tableOf(entry) ?? {};
    const found = hooksIn({ [String(event)]: [{ matcher: rest['matcher'], hooks: [rest] }] }, origin);
    hooks.push(...found.hooks);
    problems.push(...found.problems);
  }
  return { hooks, files: [file], problems, everywhere: names };
}

/** Returns the hooks of an object that has lists of them by event, or has that object as `hooks`. */
function hooksIn(value: unknown, origin: Origin): Pick<FoundHooks, 'hooks' | 'problems'> {
  const [hooks, problems]: [Hook[], string[]] = [[], []];
  const table = tableOf(value);
  const events = tableOf(table?.['hooks']) ?? table;
  if (!events) return { hooks, problems: [`${origin.label}: its hooks are not an object of events.`] };
  for (const [event, groups] of Object.entries(events)) {
    // What describes the file is no event.
    if (!/^[A-Z]/.test(event)) continue;
    if (!isEvent(event))
      problems.push(`${origin.label}: Telos has no event ${event}, so its hooks do not run.`);
    else
      for (const group of Array.isArray(groups) ? groups : [groups])
        for (const found of hooksOfGroup(event, group, origin))
          if (typeof found === 'string') problems.push(`${origin.label}: ${found}`);
          else hooks.push(found);
  }
  if (hooks.length > mostHooks)
    problems.push(`${origin.label}: only the first ${mostHooks} of its ${hooks.length} hooks run.`);
  return { hooks: hooks.slice(0, mostHooks), problems: [...new Set(problems)].slice(0, mostHooks) };
}

const isEvent = (name: string): name is HookEvent => (hookEvents as readonly string[]).includes(name);

function hooksOfGroup(event: HookEvent, group: unknown, origin: Origin): (Hook | string)[] {
  const { matcher, hooks, ...own } = tableOf(group) ?? {};
  const entries = Array.isArray(hooks) ? hooks : [own];
  const written = typeof matcher === 'string' && !/^\*?$/.test(matcher) ? matcher : undefined;
  if (matcher !== undefined && typeof matcher !== 'string')
    return [`a matcher of ${event} is not text, so its hooks do not run.`];
  if (written !== undefined && !matcherOf(written))
    return [`the matcher ${JSON.stringify(written)} of ${event} cannot be used, so its hooks do not run.`];
  return entries.map(entry => {
    const { type = 'command', command, args, timeout, once, if: condition } = tableOf(entry) ?? {};
    if (type !== 'command')
      return `a hook of ${event} is of the type ${JSON.stringify(type)}; Telos runs commands only.`;
    if (typeof command !== 'string' || command.trim() === '' || command.includes('\0'))
      return `a hook of ${event} has no command, so it does not run.`;
    const words = Array.isArray(args) ? args.map(arg => ` '${String(arg).replaceAll("'", `'\\''`)}'`) : [];
    const line = command.trim() + words.join('');
    if (line.length > longestCommand) return `a command of ${event} is too long, so it does not run.`;
    const { label: _, ...whose } = origin;
    return {
      ...{ event, matcher: written, command: line, seconds: secondsOf(timeout), ...whose },
      condition: typeof condition === 'string' ? condition : undefined,
      once: once === true,
    };
  });
}

const secondsOf = (timeout: unknown): number => {
  const seconds = Number(timeout);
  return seconds > 0 ? Math.min(seconds, mostSeconds) : mostSeconds;
};

/**
 * Returns what tells whether a matcher means a name. Words alone are whole names; anything else is a regular expression. Returns
 * undefined for one that is none, or that could take long.
 */
export function matcherOf(matcher: string): ((name: string) => boolean) | undefined {
  if (/^[\w\s|,-]+$/.test(matcher)) {
    const names = matcher.split(/[|,]/).map(name => name.trim());
    return name => names.includes(name);
  }
  const repeats = matcher.match(/(?<!\\)[*+{]/g) ?? [];
  if (matcher.length > longestMatcher || repeats.length > 4 || /\)[*+{]|\\\d/.test(matcher)) return undefined;
  try {
    const expression = new RegExp(matcher);
    return name => expression.test(name);
  } catch {
    return undefined;
  }
}

/** Returns the line of the permissions that a hook is. */
export const hookLine = ({ event, matcher, command }: Hook): string =>
  `${event}${matcher === undefined ? '' : ` (${matcher})`}: ${command.replace(/\s*\n\s*/g, '; ')}`;

const tableOf = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;
