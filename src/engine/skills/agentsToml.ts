/** Reads and edits agents.toml: the user's changes to their agents, and the agents that are elsewhere. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type Sentence, sentence } from '@telos/protocol/text';
import { type Config, expandPath } from '../config.ts';
import { TelosError } from '../core/errors.ts';
import type { AlongFile } from '../files/folderRecord.ts';
import {
  type Diagnostic,
  editShared,
  lineOfKey,
  parseToml,
  readToml,
  type TomlTable,
  tableOf,
  textDefects,
  textOf,
  tomlString,
  worded,
} from '../files/settingsFile.ts';
import { notFilledIn, tooWide } from './agent.ts';
import { liesWithin, meansHere } from './workFolders.ts';

/** A table `[agents.<name>]`. Paths are absolute, but a workingDir of `.`. Unknown keys are left alone. */
export interface AgentEntry {
  name: string;
  description: string | undefined;
  workingDir: string | undefined;
  mcpConfig: string | undefined;
  /** Folder of the agent's skills, which are read where they are. */
  skillsDir: string | undefined;
  /** A key of version 3. `installed` means a pack in `<data>/agents/<name>`. */
  mode: 'linked' | 'installed' | undefined;
  /** Line of its header, counted from 1. */
  line: number;
}

export interface AgentsToml {
  file: string;
  /** True for the project's own file, which is read if there is no config folder. */
  ofProject: boolean;
  entries: readonly AgentEntry[];
  defaultAgent: string | undefined;
  diagnostics: readonly Diagnostic[];
}

/** Reads the file in the config folder. If that folder does not exist, reads `config/agents.toml` in the folder of the call. */
export function readAgentsToml(config: Config): AgentsToml {
  const projectFile = join(config.cwd, 'config', 'agents.toml');
  const ofProject = !existsSync(config.configDir) && existsSync(projectFile);
  const file = ofProject ? projectFile : join(config.configDir, 'agents.toml');
  const problem = ofProject ? projectProblem(file, config) : undefined;
  if (problem !== undefined) {
    const unread = {
      severity: 'warning',
      code: 'agents-toml-outside',
      ...worded(problem),
      file,
      line: 1,
    } as const;
    return { file, ofProject, entries: [], defaultAgent: undefined, diagnostics: [unread] };
  }
  const read = readToml(file, 'agents-toml', [sentence('The agents were loaded without it.')]);
  const diagnostics = [...read.diagnostics];
  const entries: AgentEntry[] = [];
  for (const [name, value] of Object.entries(tableOf(read.table, 'agents') ?? {})) {
    const line = lineOf(read.text, name);
    if (typeof value !== 'object' || Array.isArray(value) || value instanceof Date) {
      const words = worded(
        sentence('{0} is not a table.', `agents.${name}`),
        sentence('Write {0}.', `[agents.${name}]`),
      );
      diagnostics.push({ severity: 'warning', code: 'agents-toml-entry', ...words, file, line });
      continue;
    }
    const place = { code: 'agents-toml-value', file, line };
    diagnostics.push(...textDefects(value, textKeys, place, name));
    const { entry, outside } = entryOf(name, value, line, ofProject, config);
    const written = textOf(value, 'working_dir') ?? '';
    const isChosen = entry.workingDir !== undefined && entry.workingDir !== '.';
    const wide = isChosen ? (notFilledIn(written) ?? tooWide(entry.workingDir ?? '', config)) : undefined;
    entries.push(wide === undefined ? entry : { ...entry, workingDir: undefined });
    if (wide !== undefined) {
      const words = worded(
        sentence(
          "No agent can work in '{0}', which {1}, so `working_dir` of '{2}' is not used.",
          written,
          wide,
          name,
        ),
        sentence('Write a folder for this agent alone, or "." for the folder in which Telos is called.'),
      );
      const at = { file, line: lineOfKey(read.text, 'working_dir', line) };
      diagnostics.push({ severity: 'error', code: 'agents-toml-working-dir', ...words, ...at });
    }
    for (const key of outside) {
      const words = worded([
        sentence("{0} of agent '{1}' leads out of this project, so it is not used.", key, name),
        sentence("A project's file may only name folders of the project."),
      ]);
      diagnostics.push({ severity: 'warning', code: 'agents-toml-outside', ...words, file, line });
    }
  }
  const defaultAgent = textOf(tableOf(read.table, 'defaults') ?? {}, 'default_agent');
  return { file, ofProject, entries, defaultAgent, diagnostics };
}

/** Returns why the project's own file is not read. Returns undefined if it is read. */
function projectProblem(file: string, { cwd, home, configDir }: Config): readonly Sentence[] | undefined {
  if (liesWithin(cwd, home))
    return [
      sentence('It is not read, since the folder is not a project: it contains your home folder.'),
      sentence('Your own agents are named in {0}.', join(configDir, 'agents.toml')),
    ];
  return liesWithin(cwd, file)
    ? undefined
    : [
        sentence('It leads out of the project, so it is not read.'),
        sentence("A project's file must be inside the project."),
      ];
}

const textKeys = ['description', 'working_dir', 'mcp_config', 'skills_dir', 'mode'];

/** Returns an entry without paths that reach beyond a stranger's project. `outside` lists the keys left out for that. */
function entryOf(
  name: string,
  table: TomlTable,
  line: number,
  ofProject: boolean,
  config: Config,
): { entry: AgentEntry; outside: string[] } {
  const outside: string[] = [];
  const path = (key: string, base: string): string | undefined => {
    const written = textOf(table, key);
    if (written === undefined) return undefined;
    const absolute = expandPath(written, config.home, base);
    if (!ofProject || liesWithin(config.cwd, absolute)) return absolute;
    outside.push(key);
    return undefined;
  };
  const fileBase = ofProject ? config.cwd : config.configDir;
  const mode = textOf(table, 'mode');
  const entry: AgentEntry = {
    name,
    description: textOf(table, 'description'),
    workingDir: meansHere(textOf(table, 'working_dir') ?? '') ? '.' : path('working_dir', config.cwd),
    mcpConfig: path('mcp_config', fileBase),
    skillsDir: path('skills_dir', fileBase),
    mode: mode === 'linked' || mode === 'installed' ? mode : undefined,
    line,
  };
  return { entry, outside };
}

/** Returns the line of an agent's header, for a person to find it. Returns 1 if the header is written differently. */
function lineOf(text: string, name: string): number {
  const headers = [`[agents.${name}]`, `[agents."${name}"]`];
  return (
    1 +
    Math.max(
      0,
      text.split('\n').findIndex(line => headers.includes(line.trim())),
    )
  );
}

/**
 * Removes `[agents.<name>]` and everything below it from the file, if it is still there. Returns the change, for undo. Throws
 * TelosError `config` if it cannot be done safely.
 */
export async function removeAgentEntry(file: string, name: string): Promise<AlongFile | undefined> {
  return edited(file, text => (holdsEntry(text, name) ? editedText(text, file, name, () => []) : text));
}

/**
 * Writes one value into `[agents.<name>]`, or into the table at `below` in it, which is added if it is missing. Removes the value if it
 * is undefined. Returns and throws as `removeAgentEntry` does.
 */
export async function setAgentValue(
  file: string,
  name: string,
  key: string,
  value: string | number | undefined,
  below: readonly string[] = [],
): Promise<AlongFile | undefined> {
  const line =
    value === undefined ? [] : [`${key} = ${typeof value === 'string' ? tomlString(value) : value}`];
  const header = `[${['agents', name, ...below].map(tomlKey).join('.')}]`;
  const edit = (lines: readonly string[]): string[] => {
    const isHeader = (text: string): boolean =>
      below.length === 0 ? ownHeader(name, false).test(text) : text.trim() === header;
    const start = lines.findIndex(isHeader);
    if (start < 0 && below.length === 0) return [header, ...line, '', ...lines];
    if (start < 0) return line.length === 0 ? [...lines] : [...trimmedEnd(lines), '', header, ...line, ''];
    const next = lines.findIndex((text, at) => at > start && /^\s*\[/.test(text));
    const end = next < 0 ? lines.length : next;
    const at = lines.findIndex(
      (text, each) => each > start && each < end && text.split('=')[0]?.trim() === key,
    );
    return at < 0
      ? [...lines.slice(0, start + 1), ...line, ...lines.slice(start + 1)]
      : [...lines.slice(0, at), ...line, ...lines.slice(at + 1)];
  };
  return edited(file, text => {
    if (holdsEntry(text, name)) return editedText(text, file, name, edit);
    return line.length === 0 ? text : withEntry(text, file, name, header, line.join(''));
  });
}

const tomlKey = (name: string): string => (/^[\w-]+$/.test(name) ? name : tomlString(name));

function trimmedEnd(lines: readonly string[]): readonly string[] {
  return lines.slice(0, lines.findLastIndex(text => text.trim() !== '') + 1);
}

/** Returns the text with a new entry at its end. */
function withEntry(text: string, file: string, name: string, header: string, line: string): string {
  const before = text === '' ? '' : `${text.replace(/\n*$/, '')}\n\n`;
  const changed = `${before}${header}\n${line}\n`;
  if (sameOthers(text, changed, name)) return changed;
  throw new TelosError('config', [
    sentence("{0} cannot be read, so {1} was not written for agent '{2}'.", file, line, name),
  ]);
}

async function edited(file: string, change: (text: string) => string): Promise<AlongFile | undefined> {
  let along: AlongFile | undefined;
  await editShared(file, text => {
    const after = change(text);
    along = after === text ? undefined : { file, before: text, after };
    return after;
  });
  return along;
}

/**
 * Whether the entry still exists, since another window may have removed it. True for a file that cannot be read, so that this is
 * reported.
 */
function holdsEntry(text: string, name: string): boolean {
  try {
    return Object.hasOwn(tableOf(parseToml(text), 'agents') ?? {}, name);
  } catch {
    return true;
  }
}

/** Edits the text by lines, so the result is parsed before it is written. Every other agent must be unchanged. */
function editedText(
  text: string,
  file: string,
  name: string,
  edit: (lines: readonly string[]) => readonly string[],
): string {
  const lines = text.split('\n');
  const isOwn = (line: string): boolean => ownHeader(name).test(line);
  const start = lines.findIndex(isOwn);
  let end = start + 1;
  while (end < lines.length && (!/^\s*\[/.test(lines[end] ?? '') || isOwn(lines[end] ?? ''))) end++;
  const edited = [...lines.slice(0, start), ...edit(lines.slice(start, end)), ...lines.slice(end)].join('\n');
  if (start < 0 || !sameOthers(text, edited, name)) {
    throw new TelosError('config', [
      sentence(
        "The entry of agent '{0}' in {1} is written in a way that Telos cannot change safely.",
        ...[name, file],
      ),
      sentence('Change {0} there by hand.', `[agents.${name}]`),
    ]);
  }
  return edited;
}

/** Matches the header of an agent's entry, and those of the tables below it unless these are left out. */
function ownHeader(name: string, withTables = true): RegExp {
  const quoted = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(
    `^\\s*\\[\\s*agents\\s*\\.\\s*(?:${quoted}|"${quoted}"|'${quoted}')\\s*${withTables ? '(?:\\.[^\\]]*)?' : ''}\\]`,
  );
}

function sameOthers(before: string, after: string, name: string): boolean {
  const others = (text: string): unknown => {
    const table = parseToml(text);
    const agents = { ...tableOf(table, 'agents') };
    delete agents[name];
    return { ...table, agents };
  };
  try {
    return isDeepStrictEqual(others(before), others(after));
  } catch {
    return false;
  }
}
