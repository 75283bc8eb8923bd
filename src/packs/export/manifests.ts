/** Writes the manifests of an export: Agent Plugins 1.0, Claude Code, VS Code, and a catalog of several. */

import { dirname, join } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import { hooksInManifest, readRegularFile, readText } from '@telos/engine/files';
import { type Agent, exportedFolder, hasHooks, problemsElsewhere } from '@telos/engine/skills';
import { sentence } from '@telos/protocol/text';
import type { AgentFiles, FileToPack } from './agentFiles.ts';
import { portableName } from './portableSkill.ts';

const schemas = 'https://agent-plugins.org/schemas/1.0.0';
const version = '1.0.0';
/** Names of catalogs that Claude Code keeps for its maker. */
const reserved =
  /^(?:agent-skills|anthropic-(?:marketplace|plugins)|claude-code-(?:marketplace|plugins)|claude-plugins-official|life-sciences|knowledge-work-plugins)$|anthropic|official|^claude/;

/** Returns why others refuse an agent's name, as a sentence, or undefined if they take it. */
export function pluginNameProblem(name: string): string | undefined {
  const fits = name.length <= 64 && /^(?!.*(?:--|\.\.))[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/.test(name);
  if (fits) return undefined;
  return `Other hosts take names of small letters, digits, hyphens and dots only, not '${name}'. Install the agent under another one, such as ${portableName(name) || 'my-agent'}, and export that.`;
}

const json = (value: object): Buffer => Buffer.from(`${JSON.stringify(value, undefined, 2)}\n`);
const file = (path: string, bytes: Buffer): FileToPack => ({ path, bytes, executable: false });

/** Returns the files of the folder that Claude Code, VS Code, Copilot and Telos install. */
export function pluginFiles(agent: Agent, content: AgentFiles): FileToPack[] {
  const { portable, withVariables } = content.servers;
  const about = aboutAgent(agent, content);
  const workingDir = workingDirOf(content);
  const named = hasHooks(agent.packDir) ? hooksInManifest(agent.packDir)?.value : undefined;
  const hooks = named === undefined ? {} : { hooks: named };
  const extensions =
    workingDir === undefined ? {} : { extensions: { [exportedFolder]: { working_dir: workingDir } } };
  return [
    ...content.files,
    file('plugin.json', json({ $schema: `${schemas}/plugin.schema.json`, ...about, ...extensions })),
    file('.claude-plugin/plugin.json', json({ ...about, ...hooks })),
    ...(Object.keys(portable).length > 0
      ? [file('mcp.json', json({ $schema: `${schemas}/mcp.schema.json`, mcpServers: portable }))]
      : []),
    ...(Object.keys(withVariables).length > 0
      ? [file('.mcp.json', json({ mcpServers: withVariables }))]
      : []),
    ...readme(agent, content),
  ];
}

/** Returns the files of a VS Code extension that has nothing but skills, or nothing but the plugin if it has more. */
export function packageOf(agent: Agent, content: AgentFiles): FileToPack[] {
  const isWholePlugin =
    Object.keys(content.servers.portable).length > 0 ||
    agent.skills.some(({ kind }) => kind !== undefined) ||
    hasHooks(agent.packDir);
  const { name, version: number, description, license } = aboutAgent(agent, content);
  const skills = content.skills.map(({ id }) => ({ path: `./skills/${id}/SKILL.md` }));
  const manifest = {
    name: portableName(name),
    displayName: name,
    publisher: 'telos-export',
    version: number,
    description,
    ...(license === undefined ? {} : { license }),
    engines: { vscode: '^1.110.0' },
    categories: ['AI', 'Chat'],
    // With both, VS Code lists every skill twice.
    contributes: isWholePlugin ? { chatPlugins: [{ path: './' }] } : { chatSkills: skills },
  };
  const files = isWholePlugin ? pluginFiles(agent, content) : [...content.files, ...readme(agent, content)];
  return [...files.filter(({ path }) => path !== 'package.json'), file('package.json', json(manifest))];
}

/** Returns the catalog of the agents that lie beside it. Throws TelosError `pack` for a name that others refuse. */
export function marketplaceText(name: string, agents: readonly Agent[]): string {
  if (portableName(name) !== name || reserved.test(name))
    throw new TelosError('pack', [
      sentence(
        "A catalog cannot be called '{0}': small letters, digits and single hyphens, and no name that Claude Code keeps for its maker.",
        name,
      ),
      sentence('Nothing was written.'),
    ]);
  const plugins = agents.map(({ name: agent, description }) => ({
    name: agent,
    source: `./${agent}`,
    description: oneLine(description),
    version,
  }));
  const metadata = { description: `Agents: ${agents.map(agent => agent.name).join(', ')}`, version };
  return json({ name, owner: { name }, metadata, plugins }).toString();
}

interface About {
  name: string;
  version: string;
  description: string;
  author: { name: string };
  license?: string;
}

function aboutAgent({ name, description }: Agent, { files }: AgentFiles): About {
  const text = files.find(({ path }) => /^licen[cs]e\b/i.test(path))?.bytes.toString('utf8') ?? '';
  const license =
    /^\s*(?:The )?(MIT|ISC) License/i.exec(text)?.[1] ??
    (/Apache License\s+Version 2\.0/.test(text) ? 'Apache-2.0' : undefined);
  return {
    name,
    version,
    description: oneLine(description) || `The agent ${name}`,
    author: { name },
    ...(license === undefined ? {} : { license }),
  };
}

/** Returns the working folder as the pack's own file names it. */
function workingDirOf({ files }: AgentFiles): string | undefined {
  const text = files.find(({ path }) => path === 'agent.toml')?.bytes.toString('utf8');
  return /^working_dir\s*=\s*["'](.*)["']/m.exec(text ?? '')?.[1];
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim();

/** Returns a README made from the descriptions, unless there is one. */
function readme({ name, description }: Agent, { files, skills, servers }: AgentFiles): FileToPack[] {
  if (files.some(({ path }) => /^readme\b/i.test(path))) return [];
  const names = Object.keys(servers.withVariables);
  const lines = [
    `# ${name}`,
    '',
    oneLine(description),
    '',
    ...skills.map(skill => `- **${skill.id}**: ${oneLine(skill.description)}`),
    ...(names.length > 0 ? ['', `MCP servers: ${names.join(', ')}`] : []),
  ];
  return [file('README.md', Buffer.from(`${lines.join('\n')}\n`))];
}

/**
 * Returns true if VS Code can use the agent's own folder: it has the portable manifest, and its skills lie where that expects them.
 * False for a project's agent, whose files others can change.
 */
export function isPlugin({ source, packDir, skills }: Agent): boolean {
  if (source === 'project' || skills.some(({ dir }) => dirname(dir) !== join(packDir, 'skills')))
    return false;
  try {
    const { $schema } = JSON.parse(readText(join(packDir, 'plugin.json')));
    return (
      /^https:\/\/agent-plugins\.org\/schemas\/.*\/plugin\.schema\.json$/.test($schema) &&
      skills.every(({ id, file }) => problemsElsewhere(readRegularFile(file), id).length === 0)
    );
  } catch {
    return false;
  }
}
