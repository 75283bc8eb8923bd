/** Reads how the words of a command run a script, and how such a script is started. */
import { open } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import type { AgentFile } from './agentReader.ts';

/**
 * Runs a module as `python -m` does, but looks for it, and for all that it imports, in the given folder and among what is
 * installed, never in the folder in which it runs: anything could be there.
 */
export const runModule = [
  'import os, runpy, site, sys',
  "sys.pycache_prefix = os.environ.get('PYTHONPYCACHEPREFIX')",
  'sys.dont_write_bytecode = not sys.pycache_prefix',
  'if sys.prefix == sys.base_prefix: site.addsitedir(site.getusersitepackages())',
  'root = sys.argv.pop(1)',
  'if root: sys.path.insert(0, root)',
  "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)",
].join('\n');

/** Programs that run a script given as their first word, with the file endings they take. */
const interpreters: readonly (readonly [name: RegExp, endings: readonly string[], flags?: RegExp])[] = [
  [/^(sh|dash)$/, ['.sh', '']],
  [/^bash$/, ['.sh', '.bash', '']],
  [/^zsh$/, ['.sh', '.zsh', '']],
  [/^python(3(\.\d{1,2})?)?$/, ['.py', ''], /^-[uBI]+$/],
  [/^node$/, ['.js', '.mjs', '.cjs', '.ts', '.mts', '']],
  [/^ruby$/, ['.rb', '']],
  [/^perl$/, ['.pl', '']],
  [/^php$/, ['.php', '']],
];

/** A variable that a command gives a value to. */
export type Assignment = readonly [name: string, value: string];

export interface ScriptCall {
  /** The interpreter as it is written; empty for a script that is run directly. */
  program: string;
  flags: readonly string[];
  script: string;
  module?: string;
  rest: readonly string[];
  assignments: readonly Assignment[];
}

/** Reads how words run a script: directly (with a `/`), by an interpreter, or as a module. Undefined if they run none. */
export function readCall(words: readonly string[]): ScriptCall | undefined {
  const isEnv = /^(\/usr\/bin\/)?env$/.test(words[0] ?? '');
  const assignments: [string, string][] = [];
  let at = isEnv ? 1 : 0;
  for (; isEnv; at++) {
    const [, name, value] = /^([A-Za-z_]\w*)=(.*)$/s.exec(words[at] ?? '') ?? [];
    if (name === undefined) break;
    assignments.push([name, value!]);
  }
  const program = words[at] ?? '';
  const name = /^(?:\/(?:usr\/(?:local\/)?)?bin\/)?([^/]+)$/.exec(program)?.[1] ?? '';
  const [, endings, flag] = interpreters.find(([each]) => each.test(name)) ?? [];
  if (!endings)
    return program.includes('/') && !isEnv
      ? { program: '', flags: [], script: program, rest: words.slice(at + 1), assignments }
      : undefined;
  const flags: string[] = [];
  while (flag?.test(words[++at] ?? '')) flags.push(words[at]!);
  if (flag === undefined) at++;
  const [script = '', ...rest] = words.slice(at);
  if (script === '-m' && name.startsWith('python') && flags.length === 0) {
    const [module = '', ...others] = rest;
    const isName = /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/.test(module);
    return isName ? { program, flags, script: '', module, rest: others, assignments } : undefined;
  }
  if (script === '' || script.startsWith('-') || !endings.includes(extname(script))) return undefined;
  return { program, flags: [...flags, ...cacheFlags(flags, name)], script, rest, assignments };
}

/** Python that ignores its variables would write what it compiles beside the script, which changes the agent's own folder. */
const cacheFlags = (flags: readonly string[], name: string): string[] =>
  name.startsWith('python') && flags.some(flag => flag.includes('I')) ? ['-B'] : [];

/** Returns the words that a script's first line puts before it, if the system does not do so itself because of its mode. */
export async function interpreterOf({ path, executable }: AgentFile): Promise<string[]> {
  if (executable) return [];
  const handle = await open(path);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(256), 0, 256, 0);
    const first = /^#![ \t]*(\/[^\r\n]*)\r?\n/.exec(buffer.toString('utf8', 0, bytesRead))?.[1]?.trim() ?? '';
    const [program = '', ...more] = first.split(/[ \t]+/);
    if (program === '') return [];
    const splits = basename(program) === 'env' && more[0] === '-S';
    // Apart from that, the system passes everything after the program as one word.
    return splits ? [program, ...more.slice(1)] : [program, ...(more.length > 0 ? [more.join(' ')] : [])];
  } finally {
    await handle.close();
  }
}
