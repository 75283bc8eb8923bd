/**
 * Resolves a call before it is decided on: which tool it means, and which files. What comes out is decided on, shown, logged and
 * run; nothing is resolved a second time.
 */

import { isAbsolute } from 'node:path';
import type { JsonObject, ToolCall } from '@telos/protocol/run';
import { shortened } from '@telos/protocol/text';
import { expandPath } from '../config.ts';
import { escapeInvisible } from '../files/plainText.ts';
import { isDeeper } from '../jsonDepth.ts';
import { toolNamed } from '../skills/skillFields.ts';
import { type MeantFolders, meantFile, placeInBox, type RunFolders, type Tool } from '../tools/tool.ts';
import { meantCommand } from './commandFiles.ts';
import { isBuiltin } from './subject.ts';

export interface ResolvedCall {
  call: ToolCall;
  /** Note for the model after the result: what ran in place of its words, and what was not understood. */
  notes: readonly string[];
}

/** Folders of the run that resolves the call. */
export type ResolveFolders = MeantFolders & RunFolders;

/** Returns the call as it is meant. Looks at names on the disk, reads no file and changes nothing. */
export function resolveCall(
  written: ToolCall,
  tools: readonly Pick<Tool, 'definition'>[],
  folders: ResolveFolders,
): ResolvedCall {
  const tool = toolFor(written.name, tools);
  if (tool === undefined || written.problem !== undefined) return { call: written, notes: [] };
  const { name, inputSchema } = tool.definition;
  const properties = (inputSchema['properties'] ?? {}) as Readonly<Record<string, unknown>>;
  if (!isBuiltin(name)) {
    const given = name === 'use_skill' ? stepInput(written.input) : written.input;
    const input = typedInput(given, properties);
    const isAsWritten = name === written.name && input === written.input;
    return { call: isAsWritten ? written : { ...written, name, input }, notes: [] };
  }
  const { input, notUnderstood } = understoodCall(name, written.input, properties);
  const notes: string[] = [];
  if (notUnderstood.length > 0)
    notes.push(
      `Not understood by ${name}, so without effect: ${notUnderstood.map(name => shown(name)).join(', ')}.`,
    );
  const resolved = withMeantFiles(name, input, folders, notes);
  return { call: { ...written, name, input: resolved }, notes };
}

/** Names that other runners give to the skill or role of a step, and to what it is to do. */
const stepAliases: Readonly<Record<'skill' | 'request', readonly string[]>> = {
  skill: ['skill', 'subagent_type', 'name', 'command'],
  request: ['request', 'prompt', 'args', 'arguments', 'description'],
};

/** Returns a step in the words of `use_skill`. What it is to do is the skill's own work if nothing says it. */
function stepInput(input: JsonObject): JsonObject {
  const named = (key: 'skill' | 'request'): unknown =>
    stepAliases[key].map(each => input[each]).find(value => typeof value === 'string' && value.trim() !== '');
  const skill = named('skill');
  if (typeof skill !== 'string') return input;
  return { skill: skill.replace(/^\//, ''), request: String(named('request') ?? `Carry out ${skill}.`) };
}

const shown = (text: string, most = 200): string => shortened(escapeInvisible(text), most);

/** What models put before the name of a tool that was given to them without it. */
const namespace = /^(?:functions?|default_api|tools?)[.:]+/i;

/** What a model's template leaves behind the name: its own mark, or the number of the call. */
const templateEnd = /(?:<\|.*|:\d+)$/s;

/** Returns the tool of this very name, or else the built-in one that other runners call so. */
function toolFor<Each extends Pick<Tool, 'definition'>>(
  name: string,
  tools: readonly Each[],
): Each | undefined {
  const named = (wanted: string | undefined): Each | undefined =>
    tools.find(({ definition }) => definition.name === wanted);
  const bare = name.replace(namespace, '').replace(templateEnd, '').trim();
  return named(name) ?? named(toolNamed(name)) ?? named(bare) ?? named(toolNamed(bare));
}

function withMeantFiles(
  name: string,
  input: JsonObject,
  folders: ResolveFolders,
  notes: string[],
): JsonObject {
  switch (name) {
    case 'read_file':
    case 'list_directory':
    case 'search_files':
      return withPath(input, folders, notes);
    case 'glob':
      return withPath(input['path'] === undefined ? withFolderOf(input, folders) : input, folders, notes);
    case 'write_file':
    case 'edit_file':
      return withWrittenPath(input, folders);
    case 'run_command':
      return withCommand(input, folders, notes);
    default:
      return input;
  }
}

function withPath(input: JsonObject, folders: ResolveFolders, notes: string[]): JsonObject {
  const { path } = input;
  if (typeof path !== 'string') return input;
  const meant = meantFile(path, folders.workingDir, folders);
  if (meant.path !== undefined) {
    notes.push(`${shown(path)} is ${shown(meant.path)}.`);
    return { ...input, path: meant.path };
  }
  const boxed = placeInBox(path, folders);
  if (boxed !== undefined) {
    notes.push(`${shown(path)} is the one that commands in the sandbox have: ${shown(boxed)}.`);
    return { ...input, path: boxed };
  }
  if (meant.twin !== undefined) {
    const literal = expandPath(path, folders.home, folders.workingDir);
    notes.push(`${shown(path)} is ${shown(literal)}; there is ${shown(meant.twin)} too.`);
  }
  return input;
}

/** Returns the search with the folder that its pattern begins with, if only another folder of the run has that. */
function withFolderOf(input: JsonObject, folders: ResolveFolders): JsonObject {
  const { pattern } = input;
  if (typeof pattern !== 'string') return input;
  const [, folder, rest] = /^((?:[^*?[\]{}()!/\\]+\/)+)(.+)$/s.exec(pattern) ?? [];
  if (folder === undefined || isAbsolute(folder)) return input;
  const { path } = meantFile(folder, folders.workingDir, folders);
  return path === undefined ? input : { ...input, path, pattern: rest };
}

/** A file that is written is where its path says. Only a name for the skill's folder is filled in. */
function withWrittenPath(input: JsonObject, folders: ResolveFolders): JsonObject {
  const { path } = input;
  if (typeof path !== 'string' || !/^[$<{]/.test(path)) return input;
  const meant = meantFile(path, folders.workingDir, folders);
  return meant.path === undefined ? input : { ...input, path: meant.path };
}

function withCommand(input: JsonObject, folders: ResolveFolders, notes: string[]): JsonObject {
  const { command, cwd } = input;
  const own: Record<string, unknown> = { ...input };
  let base = folders.commandDir;
  if (cwd === '') delete own['cwd'];
  else if (typeof cwd === 'string')
    own['cwd'] = base = meantFile(cwd, base, folders).path ?? expandPath(cwd, folders.home, base);
  if (typeof command !== 'string') return own;
  const { line, twins } = meantCommand(command, base, folders);
  if (own['cwd'] === undefined && line !== command && isOfPack(command, folders))
    return { ...own, cwd: folders.scriptDir };
  if (line !== command) notes.push(`Ran as: ${shown(line, 2000)}`);
  for (const { word, twin } of twins)
    notes.push(`${shown(word)} is the one in ${base}; there is ${shown(twin)} too.`);
  return { ...own, command: line };
}

/** Whether a command means files of the pack with the very words in which it is written, so that it was written to run there. */
const isOfPack = (command: string, folders: ResolveFolders): boolean =>
  folders.scriptDir !== undefined && meantCommand(command, folders.scriptDir, folders).line === command;

/** Other names of the arguments, in small letters and without signs, by the tool's own name and the argument's. */
const argumentAliases: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  read_file: { path: ['filepath', 'filename', 'file', 'targetfile'], offset: ['startline'] },
  write_file: {
    path: ['filepath', 'filename', 'file', 'targetfile'],
    content: ['contents', 'text', 'filetext'],
  },
  edit_file: {
    path: ['filepath', 'filename', 'file', 'targetfile'],
    old_text: ['oldstring', 'oldstr', 'old'],
    new_text: ['newstring', 'newstr', 'new'],
  },
  list_directory: { path: ['directory', 'dir', 'folder', 'dirpath', 'directorypath'] },
  search_files: {
    pattern: ['query', 'regex'],
    path: ['directory', 'dir', 'folder', 'filepath', 'file'],
    glob: ['include'],
    ignore_case: ['i', 'caseinsensitive'],
  },
  glob: { pattern: ['globpattern'], path: ['directory', 'dir', 'folder'] },
  run_command: {
    command: ['cmd', 'commandline'],
    cwd: ['workdir', 'workingdir', 'workingdirectory', 'directory', 'dir'],
    timeout_s: ['timeout', 'timeoutseconds', 'timeoutms', 'timeoutmillis'],
  },
  fetch_url: { url: ['uri', 'link', 'address'] },
};

/** Arguments that only tell people something, or ask for what is done anyway. */
const doneAnyway: Readonly<Record<string, readonly string[]>> = {
  run_command: ['description', 'explanation'],
  search_files: ['n'],
};

/** A call in Telos's own words. */
export interface UnderstoodCall {
  name: string;
  input: JsonObject;
  /** Names of the arguments that have no meaning here. */
  notUnderstood: readonly string[];
}

/**
 * Returns the call with the names of the tool `name`. `properties` are those of its schema. An argument under the tool's own name
 * wins over one under another name.
 */
function understoodCall(
  name: string,
  input: JsonObject,
  properties: Readonly<Record<string, unknown>>,
): UnderstoodCall {
  const own: Record<string, unknown> = {};
  const rest = Object.entries(input).filter(([key, value]) => {
    if (!Object.hasOwn(properties, key)) return true;
    const typed = typedLike(properties[key], value);
    if (typed !== null) own[key] = typed;
    return false;
  });
  const notUnderstood: string[] = [];
  for (const [key, value] of rest) {
    const plain = plainName(key);
    if (doneAnyway[name]?.includes(plain)) continue;
    const known = ownName(name, plain);
    if (known === undefined || !Object.hasOwn(properties, known) || Object.hasOwn(own, known))
      notUnderstood.push(key);
    else own[known] = inSeconds(plain, typedLike(properties[known], value));
  }
  return { name, input: own, notUnderstood };
}

const plainName = (key: string): string => key.toLowerCase().replace(/[^a-z\d]/g, '');

function ownName(tool: string, plain: string): string | undefined {
  const arguments_ = Object.entries(argumentAliases[tool] ?? {});
  return arguments_.find(([own, aliases]) => plainName(own) === plain || aliases.includes(plain))?.[0];
}

/** Some runners count in seconds and others in milliseconds. Half an hour is more seconds than any of them gives. */
function inSeconds(plain: string, value: unknown): unknown {
  if (!plain.startsWith('timeout') || typeof value !== 'number') return value;
  return /ms$|millis$/.test(plain) || value > 1800 ? value / 1000 : value;
}

/** Returns the input with values of the kinds that the schema wants, as far as there is one reading. The same input if all are. */
function typedInput(input: JsonObject, properties: Readonly<Record<string, unknown>>): JsonObject {
  const typed = Object.entries(input).map(([key, value]) => {
    const schema = Object.hasOwn(properties, key) ? properties[key] : undefined;
    return [key, typedLike(schema, value)] as const;
  });
  return typed.every(([key, value]) => value === input[key])
    ? input
    : (Object.fromEntries(typed) as JsonObject);
}

/** Models often write a number, a yes or a whole list as text, and a text as a number. */
function typedLike(schema: unknown, value: unknown): unknown {
  const types = typesOf(schema);
  if (typeof value === 'number' || typeof value === 'boolean')
    return types.length === 1 && types[0] === 'string' ? String(value) : value;
  if (typeof value !== 'string' || types.includes('string')) return value;
  if (types.includes('number') && /^\s*-?\d+(\.\d+)?\s*$/.test(value)) return Number(value);
  if (types.includes('integer') && /^\s*-?\d+\s*$/.test(value)) return Number(value);
  if (types.includes('boolean') && /^(true|false)$/.test(value)) return value === 'true';
  const wanted = types.includes('array') ? Array.isArray : types.includes('object') ? isObject : undefined;
  if (!wanted || !/^\s*[[{]/.test(value)) return value;
  try {
    const read: unknown = JSON.parse(value);
    return wanted(read) && !isDeeper(read) ? read : value;
  } catch {
    return value;
  }
}

/** Returns the types that a schema wants, as far as it names them. */
function typesOf(schema: unknown): unknown[] {
  if (!isObject(schema)) return [];
  const { type, anyOf } = schema as { type?: unknown; anyOf?: unknown };
  const either = Array.isArray(anyOf) ? anyOf.flatMap(typesOf) : [];
  return [...(type === undefined ? [] : [type].flat()), ...either];
}

const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
