/** Builds the engine's configuration from the options of the command line. */

import { closeSync, lstatSync, openSync, type Stats, statSync, writeSync } from 'node:fs';
import { type Config, loadConfig } from '@telos/engine/config';
import { describeFileError, errorCode, isInside, readRegularFile, writeWhole } from '@telos/engine/files';
import { isSecretName } from '@telos/engine/policy';
import { projectFoldersAt } from '@telos/engine/skills';
import { type Surroundings, typedPath } from './surroundings.ts';
import type { Terminal } from './terminal.ts';
import { errorText, terminalText } from './terminalText.ts';

/** Options as they were given. Paths may be relative to the folder of the call. */
export interface ConfigOptions {
  model?: string;
  provider?: string;
  cwd?: string;
  /** How a skill is found, for commands that accept it. */
  routing?: string;
  replay?: string;
  maxCost?: string;
  maxTokens?: string;
  maxMinutes?: string;
  maxRounds?: string;
  effort?: string;
  sandbox?: string;
  /** A request that no skill fits is answered without one, unasked. */
  answer?: boolean;
}

/** Returns the absolute folder of the call, or undefined if it no longer exists. */
function folderOfCall(wanted: string | undefined, surroundings: Surroundings): string | undefined {
  try {
    return wanted === undefined ? surroundings.cwd() : typedPath(wanted, surroundings);
  } catch {
    return undefined;
  }
}

/**
 * Returns the configuration. Returns undefined if the folder of the call, or that of `--cwd`, does not exist. That was then
 * reported, and is wrong usage.
 */
export function configFor(options: ConfigOptions, terminal: Terminal): Config | undefined {
  const { surroundings } = terminal;
  const cwd = folderOfCall(options.cwd, surroundings);
  if (cwd === undefined) {
    terminal.say('The current folder no longer exists. Change to another one first.');
    return undefined;
  }
  if (options.cwd !== undefined && !statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) {
    terminal.say(`--cwd: the folder ${terminalText(cwd)} does not exist.`);
    return undefined;
  }
  const read = loadConfig({
    env: surroundings.env,
    cwd,
    model: options.model,
    provider: options.provider ?? (options.replay === undefined ? undefined : 'replay'),
    replayFile: options.replay === undefined ? undefined : typedPath(options.replay, surroundings),
    routingMode: options.routing,
    maxCost: options.maxCost,
    maxTokens: options.maxTokens,
    maxMinutes: options.maxMinutes,
    maxRounds: options.maxRounds,
    effort: options.effort,
    sandbox: options.sandbox,
    answerWithoutSkill: options.answer ? 'always' : undefined,
  });
  const config: Config = { ...read, projectFolders: projectFoldersAt(read) };
  if (surroundings.env === process.env) hideStartEnvironment(isSecretName);
  for (const { message } of config.problems) terminal.say(terminal.style.yellow(terminalText(message)));
  return config;
}

/** For a write whose file is not known. */
const diskFull =
  'The disk is full. What was written before is kept: free some space, and call the same again.';

/**
 * Returns the words of an error that no command expected. One of the file system leaves out the system's call, and names the
 * variable that sets another folder if it is in one of Telos's own.
 */
export function unexpectedText(error: unknown, { surroundings }: Pick<Terminal, 'surroundings'>): string {
  const path = error instanceof Error && 'path' in error ? error.path : undefined;
  if (typeof path !== 'string') return errorCode(error) === 'ENOSPC' ? diskFull : errorText(error);
  const { dataDir, configDir, skillsDir } = loadConfig({ env: surroundings.env, cwd: surroundings.cwd() });
  const own = [
    [dataDir, 'its data', 'TELOS_DATA_DIR'],
    [configDir, 'its settings', 'TELOS_CONFIG_DIR'],
    [skillsDir, 'your skills', 'TELOS_SKILLS_DIR'],
  ] as const;
  const [folder, what, variable] = own.find(([place]) => isInside(place, path)) ?? [];
  const next = folder && ` Telos keeps ${what} in ${folder}; ${variable} sets another folder.`;
  return terminalText(describeFileError(error, path) + (next ?? ''));
}

/**
 * Returns true if a command may write the file that a person named. Says why not: it is there and `force` was not given, or it can be no
 * file. `--yes` does not allow it, since with `--yes` a run may do everything else too.
 */
export function mayWrite(file: string, force: boolean | undefined, terminal: Terminal): boolean {
  const [entry, stats] = [lookAt(lstatSync, file), lookAt(statSync, file)];
  const why = stats?.isDirectory()
    ? 'is a folder. Name a file.'
    : stats && !stats.isFile()
      ? 'is not a regular file. Name another file.'
      : entry && !force
        ? 'already exists. Name another file, or use --force to replace it. Nothing was written.'
        : undefined;
  if (why !== undefined) terminal.say(terminalText(`${file} ${why}`));
  return why === undefined;
}

/** Returns undefined also for what cannot be looked at. Writing it says why. */
function lookAt(look: typeof lstatSync | typeof statSync, file: string): Stats | undefined {
  try {
    return look(file, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Writes the file that a person named, in one step. Returns false, and says why, if it was not written. */
export async function writeNamed(
  file: string,
  text: string,
  force: boolean | undefined,
  terminal: Terminal,
): Promise<boolean> {
  const isFree = (): boolean => mayWrite(file, force, terminal);
  if (!isFree()) return false;
  try {
    return await writeWhole(file, text, isFree);
  } catch (error) {
    terminal.say(terminal.style.red(terminalText(`${describeFileError(error, file)} Nothing was written.`)));
    return false;
  }
}

/** Index in /proc/self/stat, counted after the program's name in parentheses. */
const addressOfEnvironment = 47;

/**
 * Overwrites the values of the variables that `isSecret` names in the memory where the system keeps them. `process.env`
 * keeps its values. Never throws.
 */
export function hideStartEnvironment(isSecret: (name: string) => boolean): void {
  if (process.platform !== 'linux') return;
  try {
    const block = readRegularFile('/proc/self/environ');
    const spans = [...secretSpans(block, isSecret)];
    if (spans.length === 0) return;
    const stat = readRegularFile('/proc/self/stat').toString('latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const start = Number(fields[addressOfEnvironment]);
    const memory = openSync('/proc/self/mem', 'r+');
    try {
      for (const { name, from, to } of spans) {
        // Setting the variable again moves it elsewhere, so its old place is no longer in use.
        const value = process.env[name];
        if (value === undefined) continue;
        process.env[name] = value;
        writeSync(memory, Buffer.alloc(to - from, 'x'), 0, to - from, start + from);
      }
    } finally {
      closeSync(memory);
    }
  } catch {
    // If the system denies access to our own memory, nothing is worse than before.
  }
}

/** Yields the positions of secret values in the block, in bytes. */
function* secretSpans(
  block: Buffer,
  isSecret: (name: string) => boolean,
): Generator<{ name: string; from: number; to: number }> {
  for (let at = 0; at < block.length; ) {
    const end = block.indexOf(0, at);
    const to = end < 0 ? block.length : end;
    const equals = block.indexOf(0x3d, at);
    if (equals > at && equals + 1 < to) {
      const name = block.toString('utf8', at, equals);
      if (isSecret(name)) yield { name, from: equals + 1, to };
    }
    at = to + 1;
  }
}
