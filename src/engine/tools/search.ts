/**
 * Defines the tool that finds text in files. Uses ripgrep if there is one, else searches line by line with the same result.
 */

import { spawn } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { basename, dirname, join, relative, sep } from 'node:path';
import { createContext, Script } from 'node:vm';
import type { ToolResult } from '@telos/protocol/run';
import { beginningOf, grouped, shortened } from '@telos/protocol/text';
import { globMatcher, longestGlob } from '../files/globPattern.ts';
import { openRegularFile } from '../files/openFile.ts';
import { PathProblem } from '../files/paths.ts';
import { byteCount, escapeInvisible } from '../files/plainText.ts';
import { isSensitive } from '../files/sensitiveNames.ts';
import { decodeText, formOf } from '../files/textEncoding.ts';
import { countTime, type FoundFile, isOffLimits, prefixOf, type WalkState, walkFiles } from './glob.ts';
import { findProgram, isProgram, type ProgramPlaces } from './programPath.ts';
import {
  orProblem,
  readableFolders,
  type Tool,
  type ToolContext,
  targetOf,
  textProperty,
  toolError,
} from './tool.ts';

/** Lines of one call, and characters of one line. */
const maxLines = 200;
const maxLineLength = 300;
/** Characters of an expression. */
const longestPattern = 10_000;
/** Time limit per file in our own search, in milliseconds: a pattern can be written so that it never ends. */
const fileTime = 250;
/** Characters of a line that our own search examines. */
const searchedLength = 10_000;

export const searchFilesTool: Tool = {
  definition: {
    name: 'search_files',
    description:
      'Finds lines that match a regular expression, as path:line: text, at most 200. Skips .git, node_modules and secrets.',
    inputSchema: {
      type: 'object',
      properties: {
        pattern: textProperty(),
        path: textProperty('The folder or file; the working folder if left out.'),
        glob: { type: 'string', description: 'Only such files: *.md, src/**/*.ts.' },
        ignore_case: { type: 'boolean' },
      },
      required: ['pattern'],
    },
  },
  access: 'read',
  longest: { pattern: longestPattern, glob: longestGlob },
  execute: (input, context) => orProblem(context, () => search(input, context)),
};

async function search(input: Readonly<Record<string, unknown>>, context: ToolContext): Promise<ToolResult> {
  const root = await targetOf(input['path'] ?? '.', context, readableFolders(context));
  const stats = await stat(root).catch(() => undefined);
  if (!stats) return toolError(`${root} does not exist.`);
  const glob = typeof input['glob'] === 'string' && input['glob'] !== '' ? input['glob'] : undefined;
  const isFolder = stats.isDirectory();
  if (!isFolder && stats.size > maxFileSize)
    return toolError(
      `${basename(root)} has ${byteCount(stats.size)}; files larger than ${byteCount(maxFileSize)} are not searched. Use run_command with grep.`,
    );
  const base = isFolder ? root : dirname(root);
  const request: SearchRequest = {
    pattern: String(input['pattern']),
    base,
    file: isFolder ? undefined : basename(root),
    glob,
    ignoreCase: input['ignore_case'] === true,
  };
  const prefix = await prefixOf(base, context);
  const lines: FoundLine[] = [];
  let count = 0;
  let countUntil = Number.POSITIVE_INFINITY;
  let last = { path: '', isHidden: false };
  const take: TakeLine = (path, line, text) => {
    // A file that the call names was decided on by the policy.
    if (path !== last.path)
      last = { path, isHidden: path !== root && (isSensitive(path) || isOffLimits(path, context)) };
    if (last.isHidden) return true;
    count++;
    if (count === maxLines) countUntil = performance.now() + countTime;
    if (count > maxLines) return performance.now() < countUntil;
    lines.push({ path, line, text: shownLine(text) });
    return true;
  };
  const program = findRipgrep(context);
  const end = program
    ? await searchWithRipgrep(program, request, take, context)
    : await searchByOurselves(request, take, context);
  if ('problem' in end) return toolError(`The search failed: ${end.problem}`);
  const note: string[] = [];
  if (end.isCut) note.push('[Cut: there may be more. Search a smaller folder, or for something rarer.]');
  else if (count > lines.length)
    note.push(
      `[Cut: these are the first ${lines.length} of ${grouped(count)} lines. Search a smaller folder, or for something rarer.]`,
    );
  const kept = program ? await inTheirFiles(lines) : lines;
  if (kept.length === 0) return { content: ['No line matches.', ...note].join('\n'), isError: false };
  const nameOf = (path: string): string =>
    escapeInvisible(prefix + relative(base, path).split(sep).join('/'));
  const shown = kept.map(({ path, line, text }) => `${nameOf(path)}:${line}: ${text}`);
  return { content: [...shown, ...note].join('\n'), isError: false };
}

interface FoundLine {
  path: string;
  line: number;
  /** As it is shown. */
  text: string;
}

const shownLine = (text: string): string => shortened(text.trimEnd(), maxLineLength);

/**
 * Returns the lines that are in the files themselves. ripgrep opens a file by its path, and a command that runs meanwhile can put a link
 * into that, which leads to a file that no one may read.
 */
async function inTheirFiles(found: readonly FoundLine[]): Promise<FoundLine[]> {
  const files = new Map<string, readonly string[]>();
  for (const { path } of found) if (!files.has(path)) files.set(path, await linesOf(path));
  return found.filter(({ path, line, text }) => shownLine(files.get(path)?.[line - 1] ?? '') === text);
}

async function searchByOurselves(
  { pattern, base, file, glob, ignoreCase }: SearchRequest,
  take: TakeLine,
  context: ToolContext,
): Promise<SearchEnd> {
  const expression = expressionOf(pattern, ignoreCase);
  if (typeof expression === 'string') return { problem: expression };
  const matching = lineMatcher(expression);
  const isWanted = glob === undefined ? () => true : globMatcher(glob.replace(/^!/, ''), true);
  const isTurned = glob?.startsWith('!') ?? false;
  const deadline = performance.now() + searchTime;
  const state: WalkState = { isCut: false };
  const one: readonly FoundFile[] = file === undefined ? [] : [{ path: join(base, file), name: file }];
  const files = file === undefined ? walkFiles(base, context, state) : one;
  for await (const { path, name } of files) {
    if (file === undefined && (isWanted(name) === isTurned || isSensitive(path))) continue;
    if (performance.now() > deadline) return { isCut: true };
    const lines = await linesOf(path);
    if (lines.length === 0) continue;
    const found = matching(lines);
    if (!found) return { problem: 'the expression takes too long. Avoid repetitions inside repetitions.' };
    for (const index of found) if (!take(path, index + 1, lines[index] ?? '')) return { isCut: true };
  }
  return { isCut: state.isCut };
}

/** Returns the expression, or what is wrong with it. */
function expressionOf(pattern: string, ignoreCase: boolean): RegExp | string {
  const flags = ignoreCase ? 'i' : '';
  try {
    return new RegExp(pattern, `${flags}u`);
  } catch {
    try {
      return new RegExp(pattern, flags);
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }
}

/** A regular expression cannot be stopped from within, but the VM context that runs it can. */
const matching =
  'lines.map((line, index) => (expression.test(line) ? index : -1)).filter(index => index >= 0)';

/** Returns a function that finds the matching lines. It returns undefined if that took too long. */
function lineMatcher(expression: RegExp): (lines: readonly string[]) => readonly number[] | undefined {
  const world = createContext({ lines: [] as readonly string[], expression });
  const script = new Script(matching);
  return lines => {
    world['lines'] = lines.map(line => line.slice(0, searchedLength));
    try {
      return script.runInContext(world, { timeout: fileTime }) as number[];
    } catch {
      return undefined;
    }
  };
}

/** Returns no lines for a file that cannot be read, is too large or is not text. */
async function linesOf(path: string): Promise<string[]> {
  try {
    const { handle, size } = await openRegularFile(path);
    try {
      if (size > maxFileSize) return [];
      const bytes = await handle.readFile();
      const form = formOf(bytes);
      return form === undefined
        ? []
        : decodeText(bytes, form)
            .replace(/\r?\n$/, '')
            .split(/\r?\n/);
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof PathProblem) return [];
    throw error;
  }
}

export { findProgram } from './programPath.ts';

export interface SearchRequest {
  pattern: string;
  /** Absolute and real: the folder, or the one that contains the file. */
  base: string;
  /** The file's name, if a single file is searched. */
  file: string | undefined;
  glob: string | undefined;
  ignoreCase: boolean;
}

/** Receives a line that matches; returns false to end the search. */
export type TakeLine = (path: string, line: number, text: string) => boolean;

export type SearchEnd = { isCut: boolean } | { problem: string };

/** Time limit of a search, in milliseconds. */
const searchTime = 10_000;
/** In bytes. Larger files are left out. */
const maxFileSize = 4 * 1024 * 1024;
/** Bytes of a line that are kept in the result. */
const maxColumns = 2000;

/** Returns the absolute path of ripgrep, or undefined if there is none. */
export function findRipgrep(context: ProgramPlaces & Pick<ToolContext, 'ripgrep'>): string | undefined {
  const { ripgrep } = context;
  return ripgrep !== undefined && isProgram(ripgrep) ? ripgrep : findProgram('rg', context);
}

/**
 * Searches with ripgrep. `program` never runs another one: it reads no configuration file. The only options from a model
 * are a pattern and a glob.
 */
async function searchWithRipgrep(
  program: string,
  request: SearchRequest,
  take: TakeLine,
  context: ToolContext,
): Promise<SearchEnd> {
  const child = spawn(program, argumentsFor(request), {
    cwd: request.base,
    env: context.env,
    stdio: ['ignore', 'pipe', 'pipe'],
    windowsHide: true,
  });
  let isCut = false;
  let errors = '';
  const stop = (): void => {
    isCut = true;
    child.kill('SIGKILL');
  };
  const timer = setTimeout(stop, searchTime);
  context.signal.addEventListener('abort', stop);
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    errors = beginningOf(errors + chunk, 2000);
  });
  const ended = new Promise<number | undefined>(done => {
    child.once('error', () => done(undefined));
    child.once('close', code => done(code ?? 0));
  });
  try {
    readLines(child.stdout.setEncoding('utf8'), request.base, (path, line, text) => {
      const wantsMore = !isCut && take(path, line, text);
      if (!wantsMore && !isCut) stop();
      return wantsMore;
    });
    const code = await ended;
    context.signal.throwIfAborted();
    if (code === undefined) return { problem: `${program} could not be started.` };
    if (code === 2 && !isCut && errors) return { problem: errors.trim() };
    return { isCut };
  } finally {
    clearTimeout(timer);
    context.signal.removeEventListener('abort', stop);
  }
}

function argumentsFor({ pattern, base, file, glob, ignoreCase }: SearchRequest): string[] {
  return [
    ...[
      '--no-config',
      '--no-messages',
      '--color=never',
      '--no-heading',
      '--with-filename',
      '--line-number',
      '--null',
      // The end of a line is before its CRLF, too.
      '--crlf',
    ],
    ...[
      '--hidden',
      '--sort=path',
      `--max-filesize=${maxFileSize}`,
      '--max-columns-preview',
      `--max-columns=${maxColumns}`,
    ],
    ...(base === '/' ? ['--one-file-system'] : []),
    ...(ignoreCase ? ['--ignore-case'] : []),
    // Also names that are written like it, such as [id].tsx.
    ...(glob ? [...new Set([glob, glob.replace(/[[\]]/g, '[$&]')])].map(one => `--glob=${one}`) : []),
    ...[
      '--glob=!**/.git/**',
      '--glob=!**/node_modules/**',
      `--regexp=${pattern}`,
      '--',
      file === undefined ? '.' : `./${file}`,
    ],
  ];
}

/** Parses `path NUL line : text`, one match a line. */
function readLines(stream: NodeJS.ReadableStream, base: string, take: TakeLine): void {
  let rest = '';
  let wantsMore = true;
  stream.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const [, path = '', number = '0', text = ''] = /^([^\0]*)\0(\d+):(.*)$/s.exec(line) ?? [];
      wantsMore = wantsMore && take(join(base, path), Number(number), text);
    }
  });
}
