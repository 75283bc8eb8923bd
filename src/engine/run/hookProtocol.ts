/** The words between a run and its hooks, as Claude Code documents them: what a hook reads, and what its exit code and its output mean. */
import { resolve } from 'node:path';
import type { JsonObject, ToolCall, ToolResult } from '@telos/protocol/run';
import { type Sentence, sentence } from '@telos/protocol/text';
import { expandPath } from '../config.ts';
import { globMatcher } from '../files/globPattern.ts';
import { realPlace } from '../files/paths.ts';
import { cutMiddle, escapeInvisible } from '../files/plainText.ts';
import type { McpToolFacts } from '../mcp/tools.ts';
import { type Hook, matcherOf } from '../skills/readHooks.ts';
import { toolAliases } from '../skills/skillFields.ts';
import type { LineEnd } from '../tools/command.ts';

/** A call as hooks know it. */
export interface HookCall {
  /** The first is the one that the hook reads; a matcher may mean any. */
  names: readonly [string, ...string[]];
  input: JsonObject;
}

interface Places {
  workingDir: string;
  home: string;
}

const ownNames: Readonly<Record<string, string>> = {
  run_command: 'Bash',
  read_file: 'Read',
  write_file: 'Write',
  edit_file: 'Edit',
  list_directory: 'LS',
  search_files: 'Grep',
  glob: 'Glob',
  fetch_url: 'WebFetch',
  use_skill: 'Task',
  update_todos: 'TodoWrite',
  ask_user: 'AskUserQuestion',
};

/** Returns the call as a hook reads it. `facts` are those of a server's tool. */
export function hookCall({ name, input }: ToolCall, places: Places, facts?: McpToolFacts): HookCall {
  if (facts) return { names: [`mcp__${facts.server}__${facts.tool}`, name], input };
  const own = Object.hasOwn(ownNames, name) ? ownNames[name] : undefined;
  const aliases = toolAliases[name]?.filter(alias => /^[A-Z]/.test(alias)) ?? [];
  const written = name === 'edit_file' && Array.isArray(input['edits']) ? 'MultiEdit' : (own ?? name);
  const more = name === 'use_skill' ? ['Agent', 'Skill'] : [];
  return {
    names: [written, ...new Set([...aliases, ...more, name])],
    input: hookInput(name, input, places),
  };
}

function hookInput(tool: string, input: JsonObject, places: Places): JsonObject {
  const { path, old_text, new_text, edits, timeout_s: seconds, background, ...rest } = input;
  const { workingDir, home } = places;
  const named = typeof path === 'string' ? resolve(expandPath(path, home, workingDir)) : undefined;
  // No link leads a file past a hook that knows it by its name.
  const file = named && (realPlace(named) ?? named);
  switch (tool) {
    case 'read_file':
    case 'write_file':
      return { ...rest, file_path: file ?? '' };
    case 'edit_file':
      return { ...rest, file_path: file ?? '', ...editOf({ old_text, new_text, edits }) };
    case 'list_directory':
    case 'search_files':
    case 'glob':
      return { ...rest, path: file ?? workingDir };
    case 'run_command':
      return {
        ...rest,
        ...(typeof seconds === 'number' && { timeout: seconds * 1000 }),
        ...(background === true && { run_in_background: true }),
      };
    case 'use_skill':
      return { subagent_type: input['skill'], prompt: input['request'], ...input };
    default:
      return input;
  }
}

/** Returns a call with the input that a hook wants it to have, which is that of `hookInput`. */
export function withHookInput(call: ToolCall, wanted: JsonObject, facts?: McpToolFacts): ToolCall {
  const { file_path: file, old_string, new_string, edits, timeout, run_in_background, ...rest } = wanted;
  if (facts) return { ...call, input: wanted };
  const input: JsonObject = {
    ...rest,
    ...(file !== undefined && { path: file }),
    ...(old_string !== undefined && { old_text: old_string }),
    ...(new_string !== undefined && { new_text: new_string }),
    ...(Array.isArray(edits) && { edits: edits.map(each => ownEdit(Object(each))) }),
  };
  if (call.name !== 'run_command') return { ...call, input };
  const seconds = typeof timeout === 'number' && { timeout_s: timeout / 1000 };
  return {
    ...call,
    input: { ...input, ...seconds, ...(run_in_background === true && { background: true }) },
  };
}

const ownEdit = ({ old_string, new_string, ...rest }: Record<string, unknown>): JsonObject =>
  ({ old_text: old_string, new_text: new_string, ...rest }) as JsonObject;

const editOf = ({ old_text, new_text, edits }: Record<string, unknown>): JsonObject => ({
  ...(old_text !== undefined && { old_string: old_text }),
  ...(new_text !== undefined && { new_string: new_text }),
  ...(Array.isArray(edits) && { edits: edits.map(each => renamed(Object(each))) }),
});

const renamed = ({ old_text, new_text, ...rest }: Record<string, unknown>): JsonObject =>
  ({ old_string: old_text, new_string: new_text, ...rest }) as JsonObject;

/** Returns what a call has returned, as a hook reads it. */
export function hookResponse({ input }: HookCall, { content, isError }: ToolResult): JsonObject {
  const file = input['file_path'];
  return {
    success: !isError,
    content,
    ...(typeof file === 'string' && { filePath: file }),
    ...('command' in input && { stdout: content, stderr: '', interrupted: false }),
  };
}

/** Returns true if the hook is about the call. */
export function isAbout({ matcher, condition }: Hook, { names, input }: HookCall): boolean {
  const means = matcher === undefined ? () => true : matcherOf(matcher);
  if (!means || !names.some(means)) return false;
  const [, tool = '', within] = /^\s*([\w*]+)\s*(?:\((.*)\))?\s*$/s.exec(condition ?? '') ?? [];
  // A condition that cannot be read holds nothing back.
  if (tool === '') return true;
  if (tool !== '*' && !names.includes(tool)) return false;
  const subject = [input['command'], input['file_path'], input['path'], input['url']].find(
    each => typeof each === 'string',
  );
  if (within === undefined || /^\*{0,2}$/.test(within) || typeof subject !== 'string') return true;
  return 'command' in input ? commandFits(within, subject) : pathFits(within, subject);
}

/** Returns true if any of the commands of a line is like the pattern, in which `*` stands for anything. */
function commandFits(pattern: string, line: string): boolean {
  const [start = '', ...more] = pattern.replace(/\s*:\*$/, ' *').split('*');
  const fits = (command: string): boolean => {
    if (more.length === 0) return command === start;
    if (!`${command} `.startsWith(start)) return false;
    let at = start.length;
    return more.every(part => {
      const found = command.indexOf(part.trimEnd(), at);
      at = found + part.length;
      return found >= 0;
    });
  };
  return line.split(/&&|\|\||[;|\n&()]/).some(command => fits(command.trim()));
}

const pathFits = (pattern: string, path: string): boolean =>
  globMatcher(pattern.startsWith('/') ? pattern : `**/${pattern.replace(/^\.\//, '')}`)(
    path.replace(/^\//, ''),
  );

export interface HookAnswer {
  /** `deny` holds back what the event is about, `ask` wants a question before it. */
  verdict?: 'deny' | 'ask';
  /** Words for the model, with a verdict. */
  reason: string;
  /** Words for the model, whatever the verdict. */
  context?: string;
  /** What the call is to have as its input, with the names that hooks have for it. */
  input?: JsonObject;
  /** Why the whole run is to end. */
  stop?: string;
  /** Words for the person. */
  message?: string;
  /** Why nothing that it said counts, or not all. */
  problem?: Sentence;
}

/** In bytes, of each text that a model or a person reads. */
const longestWords = 10_000;
/** In bytes, of all that it prints. */
const longestOutput = 256 * 1024;

/** Events whose plain output is words for the model. */
const informing = /^(?:SessionStart|UserPromptSubmit)$/;

/** Returns what the end of a hook's command means. `seconds` is what it was given. */
export function hookAnswer(event: string, { streams, code, note }: LineEnd, seconds: number): HookAnswer {
  const { stdout, stderr } = streams;
  const reason = '';
  if (code === undefined)
    return {
      reason,
      problem:
        note?.includes('printed more') === true
          ? sentence('It printed too much and was stopped.')
          : sentence('It took longer than {0} s and was stopped.', seconds),
    };
  const [said, errors] = [stdout.text().trim(), stderr.text().trim()];
  if (code === 2) return { verdict: 'deny', reason: words(errors || said) || 'The hook gives no reason.' };
  if (code === 126 || code === 127)
    return { reason, problem: sentence('It cannot be run: {0}', firstLine(errors)) };
  if (code !== 0)
    return { reason, problem: sentence('It ended with exit code {0}: {1}', code, firstLine(errors || said)) };
  if (stdout.total > longestOutput)
    return { reason, problem: sentence('It printed {0} bytes, which are too many to read.', stdout.total) };
  const answer = said.startsWith('{') ? objectIn(said) : undefined;
  if (!answer) return { reason, ...(informing.test(event) && said !== '' && { context: words(said) }) };
  return answerIn(answer);
}

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

function answerIn(answer: Record<string, unknown>): HookAnswer {
  const own = Object(answer['hookSpecificOutput']) as Record<string, unknown>;
  const decision = own['permissionDecision'] ?? answer['decision'];
  const message = text(answer['systemMessage']);
  // Many an author has the same words for the person and the model.
  const why =
    text(own['permissionDecisionReason']) ?? text(answer['reason']) ?? message ?? 'The hook gives no reason.';
  const context = text(own['additionalContext']) ?? text(answer['additionalContext']);
  const verdict =
    decision === 'deny' || decision === 'block' ? 'deny' : decision === 'ask' ? 'ask' : undefined;
  return {
    reason: verdict === undefined ? '' : why,
    ...(verdict !== undefined && { verdict }),
    ...(context !== undefined && { context }),
    ...(message !== undefined && { message }),
    ...(answer['continue'] === false && { stop: text(answer['stopReason']) ?? why }),
    ...inputIn(own['updatedInput']),
  };
}

const inputIn = (value: unknown): Pick<HookAnswer, 'input' | 'problem'> => {
  if (value === undefined || value === null) return {};
  return typeof value === 'object' && !Array.isArray(value)
    ? { input: value as JsonObject }
    : { problem: sentence('Its updatedInput is not an object, so the call stays as it is.') };
};

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? words(value.trim()) : undefined;

/** Returns a text of a hook as it may be read: in its lines, and with nothing that is not seen. */
const words = (value: string): string =>
  cutMiddle(value, longestWords, bytes => ` [... of ${bytes} bytes ...] `)
    .split(/\r?\n/)
    .map(escapeInvisible)
    .join('\n');

const firstLine = (value: string): string =>
  words(value.split('\n', 1)[0] || 'it says nothing').slice(0, 300);
