/**
 * Reads the `.env` of the config folder, where people keep keys and variables of their MCP servers.
 * Merges it into the environment.
 */

// biome-ignore lint/style/noRestrictedImports: the settings are below the room of the files, so the kind and the size are looked at here
import { readFileSync, statSync } from 'node:fs';
import { type Sentence, sentence } from '@telos/protocol/text';
import { reasonOf } from './core/errors.ts';

export interface EnvFile {
  file: string;
  /** Has no prototype, so that a name never refers to an inherited property. */
  variables: Readonly<Record<string, string>>;
  /**
   * Why the file could not be read, or should not stay as it is.
   * Undefined if there is no problem or no file.
   */
  problem?: readonly Sentence[];
}

/** Far larger than any file written by hand. */
const mostBytes = 4 * 1024 * 1024;

/** Reads the file. Never throws: a file that exists but cannot be read is a problem to show. */
export function readEnvFile(file: string): EnvFile {
  try {
    const stats = statSync(file);
    if (!stats.isFile()) throw new Error('It is a pipe, a socket, a device or a folder, not a file.');
    if (stats.size > mostBytes) throw new Error(`It has ${stats.size} bytes; the maximum is ${mostBytes}.`);
    const variables = parseEnvText(readFileSync(file, 'utf8'));
    if (process.platform === 'win32' || (stats.mode & 0o077) === 0) return { file, variables };
    return {
      file,
      variables,
      problem: [
        sentence('{0} contains keys, and other users of this machine can read it.', file),
        sentence('Restrict it: {0}', `chmod 600 ${file}`),
      ],
    };
  } catch (error) {
    const none = { file, variables: emptyVariables() };
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return none;
    return {
      ...none,
      problem: [
        sentence('{0} could not be read ({1}), so its variables are not set.', file, reasonOf(error)),
      ],
    };
  }
}

/**
 * Parses one `NAME=value` a line, with or without `export`. Quotes around a whole value are removed, and so is a comment behind a
 * value: a `#` after a blank. Nothing else is special: no escapes, no other variables.
 * The last of equal names wins; lines without `=` are skipped.
 */
export function parseEnvText(text: string): Record<string, string> {
  const variables = emptyVariables();
  for (const line of text.replace(/^\uFEFF/, '').split(/\r?\n/)) {
    const match = /^\s*(?:export\s+)?([^\s=#][^\s=]*)\s*=(.*)$/.exec(line);
    if (!match) continue;
    const [, name = '', rest = ''] = match;
    const value = rest.trim();
    const quoted = /^(["'])(.*)\1(?:\s+#.*)?$/.exec(value)?.[2];
    variables[name] = quoted ?? value.replace(/(?:^|\s+)#.*$/, '');
  }
  return variables;
}

/**
 * Matches the variables that are settings of Telos. For these the process's own value wins, as for every setting.
 * Any other variable is one that the user has written for Telos's skills and servers.
 * It wins over a value that happens to be exported in the shell.
 */
const settingVariable =
  /^(?:TELOS|ANTHROPIC|OPENAI|OLLAMA|GEMINI|GOOGLE|OPENROUTER|AZURE_OPENAI|AWS_BEARER|CLOUD_ML|CLAWHUB|DISCORD|TRANSACTOID)_/;

/** Returns true if `name` comes from `.env` rather than from the process. A setting that is exported empty counts as not set. */
export function envFileWins(
  name: string,
  variables: EnvFile['variables'],
  environment: Readonly<Record<string, string>>,
): boolean {
  if (variables[name] === undefined) return false;
  return !settingVariable.test(name) || !environment[name];
}

/** Returns the variables in force: those of the process, replaced by those of the file if the file wins. */
export function mergeEnvironment(
  environment: Readonly<Record<string, string>>,
  { variables }: EnvFile,
): Record<string, string> {
  const merged: Record<string, string> = { ...environment };
  for (const [name, value] of Object.entries(variables)) {
    if (envFileWins(name, variables, environment)) merged[name] = value;
  }
  return merged;
}

const emptyVariables = (): Record<string, string> => Object.create(null) as Record<string, string>;
