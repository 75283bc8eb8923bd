/** Searches with ripgrep if there is one: it is many times faster and knows what a project ignores. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { findProgram, isProgram, type ProgramPlaces } from './programPath.ts';
import type { ToolContext } from './tool.ts';

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
export const searchTime = 10_000;
/** In bytes. Larger files are left out. */
export const maxFileSize = 4 * 1024 * 1024;
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
export async function searchWithRipgrep(
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
    errors = (errors + chunk).slice(0, 2000);
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
    ...(glob ? [`--glob=${glob}`] : []),
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
