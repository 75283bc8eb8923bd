/** Finds every agent and skill on disk: user packs, skills of trusted workspaces, linked folders and built-in skills. */

import { existsSync, readdirSync } from 'node:fs';
import { basename, join, relative, sep } from 'node:path';
import { type Sentence, sentence } from '@telos/protocol/text';
import type { Config } from '../config.ts';
import { isSkippedFolder } from '../files/globPattern.ts';
import { hostServerFile } from '../files/hostPlugin.ts';
import { type Diagnostic, worded } from '../files/settingsFile.ts';
import { type Agent, type AgentToml, readAgentToml, type SkillSource, workingDirProblem } from './agent.ts';
import { type AgentEntry, type AgentsToml, readAgentsToml } from './agentsToml.ts';
import { markDisabled, readDisabled } from './disabledSkills.ts';
import {
  findSkillSteps,
  foldersIn,
  isLock,
  markShadowed,
  runInSlices,
  runNow,
  type Steps,
} from './findSkills.ts';
import { type PackSkills, packSkillSteps } from './packSkills.ts';
import { hasHooks, hasProjectHooks } from './readHooks.ts';
import { type FileSkill, openSkill } from './skillFile.ts';
import {
  formerWork,
  ownFolderNames,
  type ProjectLimit,
  personFolder,
  projectLimit,
  type WantedWork,
  workFolderOf,
} from './workFolders.ts';

/** An Agent whose skills know their names without being parsed. Used within the engine. */
export interface FileAgent extends Agent {
  readonly skills: readonly FileSkill[];
}

export interface Discovery {
  /** Sorted by name. An agent without skills is included only with the reason as a diagnostic. */
  agents: readonly FileAgent[];
  /** `[defaults] default_agent` of agents.toml, if it names an agent. */
  defaultAgent: string | undefined;
  /** Defects that belong to no single agent. */
  diagnostics: readonly Diagnostic[];
}

/** Fields of an agent before the defaults are filled in. Later sources overwrite earlier ones. */
export interface AgentFields extends WantedWork {
  source: SkillSource;
  skills: readonly FileSkill[];
  /** `<packDir>/skills` if missing. */
  skillsDir?: string | undefined;
  /** The first skill's description if missing. */
  description?: string | undefined;
  /** `<packDir>/mcp.json` if the key is missing and that file exists. */
  mcpConfig?: string | undefined;
  /** See `Agent`. */
  projectDir?: string;
  maxRounds?: number | undefined;
  diagnostics?: readonly Diagnostic[];
}

/** Returns all agents, sorted by name. See `Discovery.agents`. */
export function discoverAgents(config: Config): readonly FileAgent[] {
  return discover(config).agents;
}

/** Finds all agents and skills. Never throws: a defect is a diagnostic, and the rest loads. */
export function discover(config: Config): Discovery {
  return runNow(discoverySteps(config));
}

/** Does the same with pauses for other work, which thousands of skills need. */
export async function discoverInSlices(config: Config): Promise<Discovery> {
  return runInSlices(discoverySteps(config));
}

function* discoverySteps(config: Config): Steps<Discovery> {
  const found = new Map<string, AgentFields>();
  // The packs of version 3. One that was installed again since is in the skills folder and wins.
  yield* addPacks(join(config.dataDir, 'agents'), found, config);
  yield* addPacks(config.skillsDir, found, config);
  addShared(yield* personal(config), found);
  addShared(yield* builtin(config), found);
  const toml = readAgentsToml(config);
  const diagnostics = [...toml.diagnostics];
  for (const entry of toml.entries) diagnostics.push(...(yield* applyEntry(entry, found, toml, config)));
  for (const folder of config.workspaceFolders) {
    const limit = projectLimit(folder.path, diagnostics);
    const roots = skillFoldersIn([folder.path, ...partsOf([folder.path])]);
    const fields = yield* fromRoots(folder.name, roots, 'project', limit);
    const description = `Skills of the workspace folder ${folder.name}`;
    const place = {
      packDir: folder.path,
      workingDir: folder.path,
      chosenBy: 'user' as const,
      isForeign: true,
    };
    addShared(
      fields && { ...fields, ...place, description, ...ownMcpConfig(folder.path, limit) },
      found,
      'workspace',
    );
  }
  addShared(yield* ofProject(config, diagnostics), found, 'project');
  const fields = [...found.values()];
  const folders = ownFolderNames(fields, config.workingRoot);
  const places = { ...config, personDir: personFolder(config) };
  const agents = fields.map(each => {
    const folder = folders.get(each);
    const agent = agentOf(each, places, folder);
    const former = formerWork(each, agent, folders.values(), config.workingRoot, folder);
    return former ? agentOf({ ...each, diagnostics: [...agent.diagnostics, former] }, places, folder) : agent;
  });
  agents.sort((a, b) => (a.name < b.name ? -1 : 1));
  markDisabled(agents, readDisabled(config));
  markShadowed(agents);
  const { defaultAgent } = toml;
  if (defaultAgent === undefined || found.has(defaultAgent)) return { agents, defaultAgent, diagnostics };
  const words = worded(sentence("default_agent is '{0}', and there is no agent of that name.", defaultAgent));
  diagnostics.push({ severity: 'error', code: 'agents-toml-default', ...words, file: toml.file, line: 1 });
  return { agents, defaultAgent: undefined, diagnostics };
}

/**
 * Returns the skills of the project that contains the current folder of the command line. The nearest folder wins. Its card is what a
 * trusted workspace is in the editor: nothing is written in the project before it is accepted.
 */
function* ofProject({ projectFolders }: Config, diagnostics: Diagnostic[]): Steps<AgentFields | undefined> {
  const projectDir = projectFolders.at(-1);
  if (projectDir === undefined) return undefined;
  const limit = projectLimit(projectDir, diagnostics);
  const parts = partsOf(projectFolders);
  const roots = skillFoldersIn([...projectFolders, ...parts]);
  const found = yield* fromRoots(basename(projectDir), roots, 'project', limit);
  const description = `Skills of the project ${basename(projectDir)}`;
  const fields = found ?? (hasProjectHooks(projectDir) ? ofHooksAlone(projectDir) : undefined);
  return fields && { ...fields, projectDir, description, ...ownMcpConfig(projectDir, limit) };
}

/** Returns the agent of a project that has no skills: the hooks of its settings run once they are accepted. */
const ofHooksAlone = (projectDir: string): AgentFields => ({
  ...{ name: basename(projectDir), packDir: join(projectDir, '.claude'), source: 'project', skills: [] },
  isForeign: true,
});

/** Folders of a repository that are looked into for the skills of its parts, and how deep. */
const mostParts = 300;
const deepestPart = 2;

/** Returns the folders below the current one that have skills of their own, as the packages of a monorepo do. None outside of a repository. */
function partsOf([current, ...around]: readonly string[]): string[] {
  const top = around.at(-1) ?? current;
  if (current === undefined || top === undefined || !existsSync(join(top, '.git'))) return [];
  const parts: string[] = [];
  let folders = [current];
  let looks = 0;
  for (let depth = 0; depth <= deepestPart; depth++) {
    const below: string[] = [];
    for (const folder of folders) {
      if (++looks > mostParts) return parts;
      const entries = foldersHere(folder);
      if (depth > 0 && entries.some(name => holders.includes(name))) parts.push(folder);
      below.push(
        ...entries
          .filter(name => !name.startsWith('.') && !isSkippedFolder(name))
          .map(name => join(folder, name)),
      );
    }
    folders = below;
  }
  return parts;
}

/** Returns the names of the folders in one. No link is followed: it would lead to folders twice. */
function foldersHere(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true });
    return entries
      .filter(entry => entry.isDirectory())
      .map(({ name }) => name)
      .sort();
  } catch {
    return [];
  }
}

const holders: readonly string[] = ['.claude', '.agents', '.github', '.opencode'];

const skillFoldersIn = (folders: readonly string[]): string[] =>
  folders.flatMap(folder => holders.map(name => join(folder, name, 'skills')));

/** Folders of the home folder in which runners keep the skills of a user, each below its `skills`. */
const personalHolders = ['.claude', '.agents', '.copilot', '.codex'] as const;

/**
 * Fills in the defaults. `folder` is the name of the agent's own working folder. The description is read from the first skill
 * when it is used.
 */
export function agentOf(
  fields: AgentFields,
  config: Config & { personDir?: string | undefined },
  folder?: string,
): FileAgent {
  const { name, packDir, source, skills, projectDir, isForeign = false, diagnostics = [] } = fields;
  const { mcpConfig } = 'mcpConfig' in fields ? fields : ownMcpConfig(packDir);
  return {
    name,
    get description() {
      return fields.description ?? skills[0]?.description ?? '';
    },
    skills,
    packDir,
    skillsDir: fields.skillsDir ?? join(packDir, 'skills'),
    ...workFolderOf(fields, config, folder),
    source,
    isForeign,
    ...(projectDir === undefined ? {} : { projectDir }),
    ...(mcpConfig ? { mcpConfig } : {}),
    ...(fields.maxRounds === undefined ? {} : { maxRounds: fields.maxRounds }),
    diagnostics,
  };
}

/**
 * Returns `<packDir>/mcp.json` if it exists and may be read. A folder that Telos has exported keeps settings that other hosts cannot
 * read, such as variables, in a separate file, which is returned instead. A plugin for other hosts has another file.
 */
export function ownMcpConfig(packDir: string, limit?: ProjectLimit): Pick<AgentFields, 'mcpConfig'> {
  const exported = join(packDir, exportedFolder, 'mcp.json');
  const own = existsSync(exported) ? exported : join(packDir, 'mcp.json');
  // What a project's .mcp.json names are the servers of another host, not of its skills.
  const mcpConfig = existsSync(own) ? own : limit ? undefined : hostServerFile(packDir);
  return { mcpConfig: mcpConfig && limit?.refuses(mcpConfig) !== true ? mcpConfig : undefined };
}

/**
 * Adds the packs of a folder. If two have one name, the one whose folder has that name wins, else the later folder. The clash is
 * reported.
 */
function* addPacks(folder: string, found: Map<string, AgentFields>, config: Config): Steps<void> {
  for (const entry of foldersIn(folder)) {
    const fields = yield* readPack(join(folder, entry), config);
    if (!fields) continue;
    const other = found.get(fields.name);
    // The user's settings for an agent's name must not apply to any pack that takes the name.
    const isOther = other?.packFolder === fields.name && fields.packFolder !== fields.name;
    const [hidden, shown] = other && isOther ? [fields, other] : [other, fields];
    const diagnostics = [...(shown.diagnostics ?? []), ...(hidden ? [clash(hidden, shown)] : [])];
    found.set(fields.name, { ...shown, diagnostics });
  }
}

function clash(hidden: AgentFields, shown: AgentFields): Diagnostic {
  return {
    severity: 'warning',
    code: 'agent-name-clash',
    ...worded(
      sentence("Two packs are called '{0}': {1} is not used.", shown.name, hidden.packDir),
      sentence('Give one of them another `name` in its agent.toml.'),
    ),
    file: join(hidden.packDir, 'agent.toml'),
    line: 1,
  };
}

/** Reads a folder with a `skills` folder, or with its own SKILL.md. Returns undefined for any other folder. */
function* readPack(packDir: string, config: Config): Steps<AgentFields | undefined> {
  const { skills: listed, skipped } = yield* packSkillSteps(packDir);
  const lost = listed.length === 0 ? fileBehindLostLink(packDir) : undefined;
  const skills = lost === undefined ? listed : [openSkill(lost, 'user', undefined, packDir)];
  // The hooks of one without skills run where the person wants them.
  const isEmpty = skills.length === 0 && skipped.length === 0;
  if (isEmpty && !hasHooks(packDir)) return undefined;
  const toml = withOwnWorkingDir(readAgentToml(packDir), packDir, config);
  const isForeign = !isTelosPack(packDir);
  const movedOut = isForeign && hasFilesAround(packDir);
  return {
    ...toml,
    packDir,
    packFolder: basename(packDir),
    chosenBy: 'pack',
    source: 'user',
    skills,
    isForeign,
    ...(movedOut && { movedOut }),
    diagnostics: [...toml.diagnostics, ...skipped.map(goesWithout)],
  };
}

const goesWithout = ({ id, file, why }: PackSkills['skipped'][number]): Diagnostic => ({
  severity: 'warning',
  code: 'plugin-skill',
  ...(file.endsWith('plugin.json')
    ? worded(sentence("'{0}' {1}.", id, why), sentence('Correct the manifest of the plugin.'))
    : worded(
        [sentence("The skill '{0}' {1}.", id, why), sentence('The plugin leaves out such a skill.')],
        sentence('Correct the file to include the skill.'),
      )),
  file,
  line: 1,
});

/** Whether a pack was made for Telos: it has an agent.toml or an mcp.json. A plugin of another host has neither. */
export function isTelosPack(packDir: string): boolean {
  const names = namesIn(packDir);
  return names.includes('agent.toml') || names.includes('mcp.json');
}

/**
 * Whether a pack's skills may need files around them: it was made for Telos, or has files of its own beside `skills/`. What only
 * tells people about the pack does not count, and neither do hidden files.
 */
export function hasFilesAround(packDir: string): boolean {
  const names = namesIn(packDir);
  const hasOwn = names.includes('skills') && names.some(name => name !== 'skills' && !tellsPeople.test(name));
  return hasOwn || isTelosPack(packDir);
}

/** Folder of what only Telos reads in an exported agent, by the name under which VS Code knows the extension. */
export const exportedFolder = 'telos.telos';

const tellsPeople =
  /^(\..*|_meta\.json|plugin\.json|__pycache__|node_modules|(readme|licen[cs]e|copying|notice|changelog|contributing|security|authors|third_party_notices|code_of_conduct)\b.*)$/i;

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Returns the SKILL.md below a link that leads nowhere, since reading it reports the problem. Returns undefined otherwise. */
const fileBehindLostLink = (packDir: string): string | undefined =>
  existsSync(packDir) || isLock(basename(packDir)) ? undefined : join(packDir, 'SKILL.md');

/** Removes a working folder that no pack may have. The agent then works in its own folder. */
function withOwnWorkingDir(toml: AgentToml, packDir: string, config: Config): AgentToml {
  const { name, workingDir } = toml;
  const problem = workingDir === undefined ? undefined : workingDirProblem(workingDir, packDir, config);
  if (problem === undefined) return toml;
  const diagnostic: Diagnostic = {
    severity: 'warning',
    code: 'agent-working-dir',
    ...worded(
      sentence(
        "The pack wants to work in '{0}', which {1}, so it works in its own folder instead.",
        workingDir ?? '',
        problem,
      ),
      sentence(
        'If you want it to work there, write `working_dir` under {0} into your own agents.toml.',
        `[agents.${JSON.stringify(name)}]`,
      ),
    ),
    file: join(packDir, 'agent.toml'),
    line: toml.workingDirLine,
  };
  return { ...toml, workingDir: undefined, diagnostics: [...toml.diagnostics, diagnostic] };
}

/** Returns the skills that other runners keep in the home folder. */
function* personal({ home }: Config): Steps<AgentFields | undefined> {
  const roots = personalHolders.map(name => join(home, name, 'skills'));
  const fields = yield* fromRoots('personal', roots, 'user');
  return fields && { ...fields, description: 'Skills of your own that other runners know too' };
}

function* builtin({ builtinSkillsDir }: Config): Steps<AgentFields | undefined> {
  const fields = builtinSkillsDir && (yield* fromRoots('telos', [builtinSkillsDir], 'builtin'));
  return fields ? { ...fields, description: 'Skills that come with Telos' } : undefined;
}

/**
 * Returns an agent whose skills are in several folders, or undefined if these contain none. Among equal ids, the first folder's
 * skill has the id and shadows the others. The others are named by their path.
 */
function* fromRoots(
  name: string,
  roots: readonly string[],
  source: SkillSource,
  limit?: ProjectLimit,
): Steps<AgentFields | undefined> {
  const byId = new Map<string, FileSkill>();
  const top = limit?.folder;
  let skillsDir: string | undefined;
  for (const root of roots) {
    const skills = yield* findSkillSteps(root, source, limit && { within: limit.folder, limit });
    if (skills.length > 0) skillsDir ??= root;
    for (const skill of skills) {
      if (!byId.has(skill.id)) {
        byId.set(skill.id, skill);
        continue;
      }
      const holder = join(root, '..');
      const place = top === undefined ? basename(holder) : relative(top, holder).split(sep).join('/');
      const path = `${place}/${skill.id}`;
      const shadowed = openSkill(skill.file, source, path, skill.within);
      shadowed.shadowedBy = { agent: name, skill: skill.id };
      byId.set(path, shadowed);
    }
  }
  if (skillsDir === undefined) return undefined;
  const skills = [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  return { name, packDir: skillsDir, skillsDir, source, skills, isForeign: true };
}

/** Adds an agent. Its name was not chosen by a person, so it gives way to another agent of that name. */
function addShared(fields: AgentFields | undefined, found: Map<string, AgentFields>, kind?: string): void {
  if (!fields) return;
  let { name } = fields;
  for (let count = 1; found.has(name); count++) {
    name = `${fields.name} (${kind ?? fields.source}${count > 1 ? ` ${count}` : ''})`;
  }
  for (const skill of fields.skills)
    if (skill.shadowedBy) skill.shadowedBy = { ...skill.shadowedBy, agent: name };
  found.set(name, { ...fields, name });
}

/** Applies one entry of agents.toml to what was found, or adds its linked agent. Returns the problems of the entry. */
function* applyEntry(
  entry: AgentEntry,
  found: Map<string, AgentFields>,
  { file, ofProject }: AgentsToml,
  config: Config,
): Steps<Diagnostic[]> {
  const { name, line, skillsDir } = entry;
  const report = (
    severity: Diagnostic['severity'],
    code: string,
    message: Sentence | readonly Sentence[],
  ): Diagnostic[] => [{ severity, code, ...worded(message), file, line }];
  const problems: Diagnostic[] = [];
  let base = found.get(name);
  if (skillsDir !== undefined) {
    const limit = ofProject ? projectLimit(config.cwd, problems) : undefined;
    const within = limit?.folder ?? skillsDir;
    const skills = yield* findSkillSteps(skillsDir, limit ? 'project' : 'linked', { within, limit });
    const diagnostics =
      skills.length > 0
        ? base?.diagnostics
        : report(
            'warning',
            'agent-linked-empty',
            sentence("There is no skill in {0}, the `skills_dir` of agent '{1}'.", skillsDir, name),
          );
    // A project's agent is not an agent of the user, whatever its name, and gets none of its folders.
    const fresh = { name, packDir: skillsDir, isForeign: !isTelosPack(skillsDir) };
    base = {
      ...(limit ? { ...fresh, ofProject, ...ownMcpConfig(skillsDir, limit) } : (base ?? fresh)),
      source: limit ? 'project' : 'linked',
      skills,
      skillsDir,
      ...(diagnostics ? { diagnostics } : {}),
    };
  } else if (!base && entry.mode === 'linked') {
    return report(
      'error',
      'agents-toml-linked',
      sentence("The linked agent '{0}' has no `skills_dir`, so it has no skills.", name),
    );
  } else if (!base && entry.mode === 'installed' && /^[\w][\w .-]*$/.test(name)) {
    const packDir = join(config.dataDir, 'agents', name);
    const message = [
      sentence("Agent '{0}' is listed as installed, but there is no skill in {1}.", name, packDir),
      sentence('Install it again, or remove its entry.'),
    ];
    base = {
      name,
      packDir,
      source: 'user',
      skills: [],
      diagnostics: report('warning', 'agent-missing', message),
    };
  }
  if (!base)
    return report(
      'info',
      'agents-toml-unknown',
      sentence("There is no agent '{0}', so its entry has no effect.", name),
    );
  const work = workOf(entry, base.packDir, ofProject, config);
  if ('problem' in work) problems.push(...report('warning', 'agent-working-dir', work.problem));
  found.set(name, {
    ...base,
    description: entry.description ?? base.description,
    ...('problem' in work ? {} : work),
    ...(entry.mcpConfig === undefined ? {} : { mcpConfig: entry.mcpConfig }),
  });
  return problems;
}

/** Returns where the entry says that the agent works, and who chose that. A project may choose less than a user. */
function workOf(
  { name, workingDir }: AgentEntry,
  packDir: string,
  ofProject: boolean,
  config: Config,
): Pick<WantedWork, 'workingDir' | 'chosenBy'> | { problem: Sentence } {
  if (workingDir === undefined) return {};
  if (!ofProject) return { workingDir, chosenBy: 'user' };
  const problem = workingDirProblem(workingDir, packDir, config);
  if (problem === undefined) return { workingDir, chosenBy: 'project' };
  return {
    problem: sentence(
      "The project wants agent '{0}' to work in {1}, which {2}, so it works in its own folder instead.",
      name,
      workingDir,
      problem,
    ),
  };
}
