/**
 * A model that takes a skill at its word: it makes the calls with the paths and commands as the text has them, and tries once more,
 * with the absolute paths that the prompt names, if one is not found. It never tries again after a no.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { extname, isAbsolute, join } from 'node:path';
import type { AnthropicTurn, ReceivedRequest } from '../fakes/anthropicServer.ts';
import { type CallKind, kindOf, mainWords, type Step } from './caseFile.ts';

interface ScriptedCall {
  name: string;
  input: Readonly<Record<string, unknown>>;
}

/** The result of one step. */
export interface StepResult {
  kind: CallKind;
  /** The call as written, in words. */
  call: string;
  asWritten: boolean;
  worked: boolean;
  /** Results for the model, attempt by attempt. */
  told: string[];
}

export interface LiteralModel {
  turn(request: ReceivedRequest): AnthropicTurn;
  results: StepResult[];
}

/** `words` fills in `<word>`; `slug` is the skill's name. */
export function literalModel(
  steps: readonly Step[],
  words: Readonly<Record<string, string>>,
  slug: string,
): LiteralModel {
  const results: StepResult[] = [];
  let at = -1;
  let again = false;
  let prompt = '';
  let body = '';
  const start = (): AnthropicTurn => {
    at += 1;
    again = false;
    const step = steps[at];
    if (!step) return { text: ['Done.'] };
    const call = callOf(step, words, body);
    const input = Object.values(call.input).map(String).join(' ').slice(0, 200);
    results.push({
      kind: kindOf(call.name),
      call: `${call.name} ${input}`,
      asWritten: false,
      worked: false,
      told: [],
    });
    return { toolCalls: [call] };
  };
  return {
    results,
    turn({ body: { system, messages } }) {
      prompt = textOf(system);
      if (at < 0) {
        body = textOf(messages[0].content);
        return start();
      }
      const step = steps[at];
      const result = results[at];
      if (!step || !result) return { text: ['Done.'] };
      const { content, isError } = lastResult(messages);
      const worked = !isError && content.includes(fillIn(step.says ?? '', words));
      result.told.push(content);
      result.worked = worked;
      if (worked) result.asWritten = !again;
      if (!isError || again || isRefusal(content)) return start();
      again = true;
      const first = callOf(step, words, body);
      const second = withAbsolutePaths(first, prompt, slug);
      return JSON.stringify(second) === JSON.stringify(first) ? start() : { toolCalls: [second] };
    },
  };
}

export const fillIn = (text: string, words: Readonly<Record<string, string>>): string =>
  text.replace(/<(\w+)>/g, (all, name: string) => words[name] ?? all);

const isRefusal = (content: string): boolean => /^(Denied|Not allowed)/.test(content);

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return Array.isArray(content) ? content.map(block => String(block?.text ?? '')).join('\n') : '';
}

function lastResult(messages: readonly { content: unknown }[]): { content: string; isError: boolean } {
  const blocks = messages.at(-1)?.content;
  const block = Array.isArray(blocks) ? blocks.find(each => each.type === 'tool_result') : undefined;
  return { content: textOf(block?.content), isError: block?.is_error === true };
}

/** Returns the call as the delivered text has it: a placeholder that was filled in there counts as filled in. */
function callOf(step: Step, words: Readonly<Record<string, string>>, body: string): ScriptedCall {
  const main = mainWords(step);
  const delivered = fillIn(asDelivered(main, body), words);
  if (step.use !== undefined) {
    const input = Object.entries(step.with ?? {}).map(([key, value]) => {
      if (typeof value !== 'string') return [key, value];
      return [key, value === main ? delivered : fillIn(value, words)];
    });
    return { name: step.use, input: Object.fromEntries(input) };
  }
  if (step.read !== undefined) return { name: 'read_file', input: { path: delivered } };
  if (step.list !== undefined) return { name: 'list_directory', input: { path: delivered } };
  if (step.glob !== undefined) return { name: 'glob', input: { pattern: delivered } };
  if (step.run !== undefined) return { name: 'run_command', input: { command: delivered } };
  if (step.write !== undefined)
    return { name: 'write_file', input: { path: delivered, content: fillIn(step.content ?? '', words) } };
  const input = {
    pattern: delivered,
    ...(step.path === undefined ? {} : { path: fillIn(step.path, words) }),
  };
  return { name: 'search_files', input };
}

const placeholder =
  /\$?\{baseDir\}|\$\{CLAUDE_(?:SKILL_DIR|PLUGIN_ROOT|PLUGIN_DATA|PROJECT_DIR|SESSION_ID)\}/;

function asDelivered(written: string, body: string): string {
  if (!placeholder.test(written)) return written;
  const pattern = written
    .split(new RegExp(placeholder, 'g'))
    .map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('([^`\\n]*?)');
  return new RegExp(pattern).exec(body)?.[0] ?? written;
}

/** Returns the call with what it names found in the folders of the prompt, and a script put behind its interpreter. */
function withAbsolutePaths({ name, input }: ScriptedCall, prompt: string, slug: string): ScriptedCall {
  const folders = [...new Set(prompt.match(/\/[^\s,;:'"`]+/g) ?? [])]
    .map(path => path.replace(/[.)]+$/, ''))
    .filter(path => statSync(path, { throwIfNoEntry: false })?.isDirectory());
  const isCommand = kindOf(name) === 'command';
  const changed = Object.entries(input).map(([key, value]) => {
    if (typeof value !== 'string' || !/^(path|file_path|command)$/.test(key)) return [key, value];
    return [key, isCommand ? commandOf(value, folders, slug) : (found(value, folders, slug) ?? value)];
  });
  return { name, input: Object.fromEntries(changed) };
}

/** Returns the absolute path of a file that is there in one of the folders, whatever another runner puts before it. */
function found(path: string, folders: readonly string[], slug: string): string | undefined {
  if (isAbsolute(path) && existsSync(path)) return path;
  const own = path.replace(
    new RegExp(`^(?:.*/)?skills/${slug}/|^(?:\\$\\{?\\w+\\}?|\\{\\w+\\}|<\\w+>)/|^\\./`),
    '',
  );
  return [own, path]
    .flatMap(each => folders.map(folder => join(folder, each)))
    .find(each => existsSync(each));
}

function commandOf(command: string, folders: readonly string[], slug: string): string {
  let first = true;
  return command.replace(/[^\s'"|<>&;()=]+/g, word => {
    const path = word.includes('/') || word.includes('.') ? found(word, folders, slug) : undefined;
    const interpreter = first && path && extname(path) ? interpreterOf(path) : '';
    first = false;
    return path === undefined ? word : interpreter + path;
  });
}

function interpreterOf(path: string): string {
  const [line = ''] = readFileSync(path, 'utf8').split('\n');
  if (!line.startsWith('#!')) return '';
  return `${/python|node|bash|sh\b/.exec(line)?.[0] ?? 'sh'} `.replace('python ', 'python3 ');
}
