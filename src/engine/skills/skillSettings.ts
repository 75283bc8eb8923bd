/**
 * Reads and writes what a skill runs with: its model, how much that thinks, its limits and its mode. The author says it in agent.toml,
 * the person in agents.toml, for all skills of the agent or below `[skills.<name>]` for one. The frontmatter names the model, too, and the
 * role as which a skill runs apart.
 */
import { join } from 'node:path';
import { type RunMode, runModes } from '@telos/protocol/run';
import { type Sentence, sentence } from '@telos/protocol/text';
import { type Config, effortIn } from '../config.ts';
import type { Effort } from '../core/ports.ts';
import { readToml, type TomlTable, tableOf } from '../files/settingsFile.ts';
import type { Agent } from './agent.ts';
import { readAgentsToml, setAgentValue } from './agentsToml.ts';
import { fieldText } from './frontmatter.ts';
import type { FileSkill } from './skillFile.ts';

/** Limits of a run, as the configuration names them. */
export type SkillLimits = Partial<Record<'maxCost' | 'maxTokens' | 'maxMinutes', number>>;

export interface SkillSettings {
  /** `provider:model`, or a model of the provider that is set. An author may not choose the provider. */
  model?: string;
  /** True if the author has chosen the model, whose reader may have another provider. */
  isAuthorsModel?: boolean;
  effort?: Effort;
  mode?: RunMode;
  budget: SkillLimits;
}

/** The keys of the files, by their setting. */
const limitKeys = { max_cost: 'maxCost', max_tokens: 'maxTokens', max_minutes: 'maxMinutes' } as const;

const skillSettingKeys = ['model', 'effort', 'mode', 'max_cost', 'max_tokens', 'max_minutes'] as const;
export type SkillSettingKey = (typeof skillSettingKeys)[number];

/** Returns the settings of a skill, and what cannot be used of what the files say. The person's words count more than the author's. */
export function skillSettings(
  config: Config,
  { name, packDir, source }: Agent,
  { id: skillId, fields }: Pick<FileSkill, 'id' | 'fields'>,
  role: SkillRole | undefined,
): { settings: SkillSettings; problems: Sentence[] } {
  const authors = source === 'project' ? {} : readToml(join(packDir, 'agent.toml'), 'agent-toml', []).table;
  const problems: Sentence[] = [];
  const tables: [TomlTable, boolean][] = [
    [authors, false],
    [ofFrontmatter(role?.fields ?? {}), false],
    [ofFrontmatter(fields), false],
    [skillTable(authors, skillId), false],
    [personsTable(config, name), true],
    [skillTable(personsTable(config, name), skillId), true],
  ];
  const settings: SkillSettings = { budget: {} };
  for (const [table, isPersons] of tables) take(table, isPersons, settings, problems);
  return { settings, problems };
}

/** Returns what the person has set for a skill, or for all skills of its agent. */
export function ownSkillSettings(config: Config, agent: string, skillId: string): SkillSettings {
  const settings: SkillSettings = { budget: {} };
  const own = personsTable(config, agent);
  for (const table of [own, skillTable(own, skillId)]) take(table, true, settings, []);
  return settings;
}

/** Writes one setting of a skill into the person's agents.toml, or removes it. Throws TelosError `config` if that cannot be done safely. */
export async function setSkillSetting(
  { configDir }: Pick<Config, 'configDir'>,
  agent: string,
  skillId: string,
  key: SkillSettingKey,
  value: string | number | undefined,
): Promise<void> {
  await setAgentValue(join(configDir, 'agents.toml'), agent, key, value, ['skills', skillId]);
}

/** A project's own file says nothing here: it could choose who reads what the person writes. */
function personsTable(config: Config, agent: string): TomlTable {
  const { file, ofProject } = readAgentsToml(config);
  const { table } = ofProject ? { table: {} } : readToml(file, 'agents-toml', []);
  return tableOf(tableOf(table, 'agents') ?? {}, agent) ?? {};
}

const skillTable = (table: TomlTable, skillId: string): TomlTable =>
  tableOf(tableOf(table, 'skills') ?? {}, skillId) ?? {};

/** Returns what a frontmatter says of the model. `inherit` says nothing, and `[1m]` wants a window that a model has or has not. */
function ofFrontmatter({ model, effort }: FileSkill['fields']): TomlTable {
  const named = typeof model === 'string' ? model.trim().replace(/\[1m\]$/, '') : model;
  const isNone = named === undefined || named === null || /^(?:inherit|default|)$/i.test(String(named));
  const level = effort === 'xhigh' ? 'max' : effort;
  return {
    ...(!isNone && { model: named }),
    ...(level !== undefined && level !== null && level !== 'inherit' && { effort: level }),
  } as TomlTable;
}

function take(table: TomlTable, isPersons: boolean, settings: SkillSettings, problems: Sentence[]): void {
  for (const key of skillSettingKeys) {
    const value = Object.hasOwn(table, key) ? table[key] : undefined;
    if (value === undefined) continue;
    if (!taken(key, value, isPersons, settings))
      problems.push(
        sentence('{0} is {1} in the settings of the skill, so it is not used.', key, JSON.stringify(value)),
      );
  }
}

/** Returns false if the value cannot be used. */
function taken(key: SkillSettingKey, value: unknown, isPersons: boolean, settings: SkillSettings): boolean {
  switch (key) {
    case 'model': {
      const isText = typeof value === 'string' && value.trim() !== '' && value.length < 200;
      // Who else reads a run is for the person to say.
      if (
        !isText ||
        (!isPersons &&
          /^(?:anthropic|openai|gemini|openrouter|azure|bedrock|vertex|ollama|vscode|replay):/i.test(value))
      )
        return false;
      settings.model = value.trim();
      settings.isAuthorsModel = !isPersons;
      return true;
    }
    case 'effort': {
      const effort = effortIn(value);
      if (effort !== undefined) settings.effort = effort;
      return effort !== undefined;
    }
    case 'mode': {
      const mode = runModes.find(each => each === value);
      if (mode) settings.mode = mode;
      return mode !== undefined;
    }
    default: {
      const isAmount = typeof value === 'number' && Number.isFinite(value) && value >= 0;
      if (isAmount) settings.budget[limitKeys[key]] = value;
      return isAmount;
    }
  }
}

/** What a role adds to the run of a skill. */
export type SkillRole = Pick<FileSkill, 'id' | 'dir' | 'body' | 'fields' | 'onlyTools' | 'disallowedTools'>;

const reading = ['Read', 'Grep', 'Glob', 'LS', 'WebFetch'];

/** Tools of the roles that Claude Code brings. */
const broughtRoles: Readonly<Record<string, readonly string[] | undefined>> = {
  explore: reading,
  plan: reading,
  'general-purpose': undefined,
};

/** Returns the role that a skill names with `agent`, which counts with `context: fork` alone, or what is wrong with it. */
export function roleOf(
  { fields, runsApart }: Pick<FileSkill, 'fields' | 'runsApart'>,
  skills: readonly FileSkill[],
): { role?: SkillRole; problem?: Sentence } {
  const name = fieldText(fields['agent'])?.trim() ?? '';
  if (!runsApart || name === '') return {};
  const id = name.split(':').at(-1) ?? name;
  const role = skills.find(each => each.kind === 'role' && (each.id === id || each.names.includes(id)));
  if (role) return { role };
  const key = name.toLowerCase();
  if (!Object.hasOwn(broughtRoles, key)) return { problem: sentence('Its agent {0} is unknown.', name) };
  const onlyTools = broughtRoles[key];
  return { role: { id: name, dir: '', body: '', fields: {}, onlyTools, disallowedTools: undefined } };
}
