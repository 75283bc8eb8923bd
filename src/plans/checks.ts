/** Runs the checks of a plan in a slot, and tells a check that passed from one that found nothing to check. */

import { createWriteStream, existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { finished } from 'node:stream/promises';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { realPlace } from '@telos/engine/files';
import type { StepBox } from '@telos/engine/run';
import { importCommandBox, importFindBox } from '@telos/engine/sandbox';
import {
  type AskHost,
  type CommandBox,
  type CommandStart,
  commandEnvironment,
  type EnclosedCommand,
  runLine,
} from '@telos/engine/tools';
import type { CheckResult, PlanCheck } from '@telos/protocol/plan';
import { endOf, sentence } from '@telos/protocol/text';
import { personPlaces } from './gitProgram.ts';

/** Where checks run. All paths are absolute. */
export interface CheckPlace {
  /** The slot, or the project. */
  dir: string;
  /** Added to the environment, such as `TELOS_SLOT`. */
  env?: Readonly<Record<string, string>>;
  /** Encloses the checks, but for those whose command is in `outside`. Missing if they have the person's rights. */
  box?: CommandBox;
  outside?: ReadonlySet<string>;
  /** Returns the file that gets the whole output of a check. */
  outputFile?: (check: PlanCheck) => string;
}

/** In milliseconds. */
const usualTimeoutMs = 60_000;
/** Bytes of the output's end that are kept with the result. The file has all of it. */
const keptBytes = 8 * 1024;
/** In bytes. A file gets no more of an output that floods. */
const mostInFile = 64 * 1024 * 1024;

/**
 * Runs one check without any key in its environment, and leaves nothing running. One that the user lets out of the sandbox is tried once
 * outside if it fails there. Throws the abort reason on abort. Whatever else goes wrong is a result that has not passed.
 */
export async function runCheck(
  check: PlanCheck,
  place: CheckPlace,
  config: BoxConfig,
  signal: AbortSignal,
): Promise<CheckResult> {
  const result = await runOnce(check, place, config, signal);
  const mayLeave = check.outside && config.sandbox !== 'required' && isEnclosed(check, place);
  if (result.exitCode === 0 || !mayLeave) return result;
  const { box: _, ...bare } = place;
  return runOnce(check, bare, config, signal);
}

/** Whether the check has run in a sandbox there. */
export const isEnclosed = ({ command }: PlanCheck, { box, outside }: CheckPlace): boolean =>
  box !== undefined && !outside?.has(command) && !(box instanceof CheckBox && !box.isUsed);

async function runOnce(
  check: PlanCheck,
  place: CheckPlace,
  config: BoxConfig,
  signal: AbortSignal,
): Promise<CheckResult> {
  const started = performance.now();
  const tail = new Tail();
  const file = await openOutput(place.outputFile?.(check));
  const folders = checkFolders(config, place.dir);
  const env = { ...commandEnvironment({ ...config.env, HOME: config.home }, folders), ...place.env };
  const timeoutMs = check.timeoutS === undefined ? usualTimeoutMs : check.timeoutS * 1000;
  try {
    const box = place.outside?.has(check.command) ? undefined : place.box;
    const context = { ...folders, env, signal, ...(box && { box }) };
    const end = await runLine(check.command, context, { timeoutMs }, chunk => {
      tail.add(chunk);
      file?.write(chunk);
    });
    const [code, note] = 'refusal' in end ? [undefined, end.refusal] : [end.code, end.note];
    const output = [tail.text(), note].filter(Boolean).join('\n');
    const ms = Math.round(performance.now() - started);
    return { name: check.name, exitCode: code ?? null, ms, output };
  } finally {
    await file?.end();
  }
}

export interface ChecksOptions {
  /** What the checks were like before anything was done, by their command. */
  atBase?: ReadonlyMap<string, CheckResult>;
  /** Gives the folder the same files again, so that a check that fails may run once more. */
  again?: () => Promise<unknown>;
}

/** In milliseconds. One that takes longer is not worth a second run. */
const longestTwice = 10 * 60_000;
/** In characters. */
const longestFlaky = 2_000;

/** Returns the result of a second run on the same files if the first has failed and the second passes; otherwise the first. */
export async function triedAgain(
  first: CheckResult,
  again: () => Promise<unknown>,
  run: () => Promise<CheckResult>,
): Promise<CheckResult> {
  if (first.exitCode === 0 || first.exitCode === null || first.exitCode === 127 || first.ms > longestTwice)
    return first;
  await again();
  const second = await run();
  return second.exitCode === 0 ? { ...second, flaky: endOf(first.output, longestFlaky) } : first;
}

/** Runs the checks one after the other and stops at the first that fails. Each result is passed on as it comes. */
export async function runChecks(
  checks: readonly PlanCheck[],
  place: CheckPlace,
  config: BoxConfig,
  signal: AbortSignal,
  onResult: (result: CheckResult) => Promise<void>,
  { atBase = new Map(), again }: ChecksOptions = {},
): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  for (const check of checks) {
    const first = await runCheck(check, place, config, signal);
    const result = again
      ? await triedAgain(first, again, () => runCheck(check, place, config, signal))
      : first;
    const why = result.exitCode === 0 ? suspicionOf(result, atBase.get(check.command)) : undefined;
    const checked = why === undefined ? result : { ...result, suspicious: why };
    results.push(checked);
    await onResult(checked);
    if (checked.exitCode !== 0) break;
  }
  return results;
}

/** Returns where setup commands run. They fetch what the work tree needs, so they have no box unless the person wants one for each. */
export const setupPlace = ({ box, ...place }: CheckPlace, { sandbox }: BoxConfig): CheckPlace =>
  sandbox === 'required' && box ? { ...place, box } : place;

/** Returns the commands of checks that fail in the box and pass outside, as `atBase` has them by command. */
export const outsideOnly = (atBase: ReadonlyMap<string, CheckResult>): ReadonlySet<string> =>
  new Set([...atBase].flatMap(([command, { outside }]) => (outside ? [command] : [])));

/** What of a configuration decides on the box. */
export type BoxConfig = Pick<Config, 'env' | 'home'> &
  Partial<Pick<Config, 'sandbox' | 'dataDir' | 'configDir'>>;

/**
 * Returns the folders of checks in `dir`. No program of theirs, nor of the box, is found in another folder in which an agent works or has
 * worked: a file with its name there may be what a boxed command has written.
 */
export function checkFolders({ env, home }: BoxConfig, dir: string) {
  const { workFolders } = personPlaces({ ...env, HOME: home }, dir);
  return {
    workingDir: dir,
    packDir: dir,
    skillDir: dir,
    commandDir: dir,
    workFolders: [dir, ...workFolders],
  };
}

/**
 * What a work tree has of the person's. `copied` are paths in it, which may be secrets; `linked` lead out of it. What is `closed` no check
 * changes; absolute.
 */
export interface SlotFiles {
  copied?: readonly string[];
  linked?: readonly string[];
  closed?: readonly string[];
}

/** Returns what commands in the box find of the person's in the work tree `dir`. */
export const seenIn = (dir: string, { copied = [], linked = [] }: SlotFiles): Omit<StepBox, 'outside'> => ({
  shown: copied.map(path => join(realPlace(dir) ?? dir, path)),
  alsoReadable: linked.flatMap(path => realPlace(join(dir, path)) ?? []).filter(existsSync),
});

/** Runs checks in a box where one works. Where none does they have the person's rights, unless the person wants a box for each. */
export class CheckBox implements CommandBox {
  readonly #config: BoxConfig;
  readonly #dir: string;
  readonly #files: SlotFiles;
  #opening: Promise<CommandBox | undefined> | undefined;
  /** True when a command has been enclosed. */
  isUsed = false;

  constructor(config: BoxConfig, dir: string, files: SlotFiles = {}) {
    this.#config = config;
    this.#dir = dir;
    this.#files = files;
  }

  /** Returns whether commands are enclosed. Throws TelosError `config` if none can be although the person wants that for each. */
  async works(): Promise<boolean> {
    return (await this.#opened()) !== undefined;
  }

  async enclose(start: CommandStart, ask?: AskHost, layered?: boolean): Promise<EnclosedCommand> {
    const box = await this.#opened();
    if (!box) return { ...start, end: async () => ({ notes: [] }) };
    this.isUsed = true;
    return box.enclose(start, ask, layered);
  }

  #opened(): Promise<CommandBox | undefined> {
    this.#opening ??= this.#open();
    return this.#opening;
  }

  async #open(): Promise<CommandBox | undefined> {
    const { env, home, sandbox = 'off', dataDir, configDir } = this.#config;
    if (sandbox === 'off' || dataDir === undefined || configDir === undefined) return undefined;
    const dir = this.#dir;
    const folders = checkFolders(this.#config, dir);
    const { findBox } = await importFindBox();
    const finding = await findBox({ ...folders, env }, dataDir);
    if (!finding.works) {
      if (sandbox !== 'required') return undefined;
      throw new TelosError('config', [
        sentence(
          'Commands run in a sandbox only (telos.sandbox is required), and none works here: {0}',
          finding.why,
        ),
      ]);
    }
    const { commandBox } = await importCommandBox();
    const { shown, alsoReadable } = seenIn(dir, this.#files);
    return commandBox({
      finding,
      config: { home, env, dataDir, configDir },
      folders: { ...folders, alsoReadable },
      conversation: `checks ${dir}`,
      // What a plan commits, the engine commits.
      keepsRepository: true,
      unchanged: this.#files.closed ?? [],
      shown,
    });
  }
}

/** The last bytes of an output. */
class Tail {
  #bytes = Buffer.alloc(0);
  #total = 0;

  add(chunk: Buffer): void {
    this.#total += chunk.length;
    this.#bytes = Buffer.concat([this.#bytes, chunk]).subarray(-keptBytes);
  }

  text(): string {
    // Without the colors of a terminal.
    const plain = this.#bytes.toString('utf8').replace(/\u001b\[[\d;]*m/g, '');
    const isCut = this.#total > this.#bytes.length;
    return `${isCut ? '[…]\n' : ''}${isCut ? plain.replace(/^\uFFFD+/, '') : plain}`.trimEnd();
  }
}

async function openOutput(
  path: string | undefined,
): Promise<{ write(chunk: Buffer): void; end(): Promise<void> } | undefined> {
  if (path === undefined) return undefined;
  await mkdir(dirname(path), { recursive: true });
  const stream = createWriteStream(path, { mode: 0o600 });
  let written = 0;
  // The result is what counts. Without its file, it is the end of the output alone.
  const done = finished(stream).catch(() => undefined);
  return {
    write(chunk) {
      written += chunk.length;
      if (written <= mostInFile) stream.write(chunk);
    },
    async end() {
      stream.end();
      await done;
    },
  };
}

const ranNothing = [
  /\bno tests? (?:were )?(?:found|ran|run|to run|files? (?:were )?found|files|matched|cases)\b/i,
  /\b(?:found|ran|running|collected|executed) 0 (?:tests?|items|specs?|scenarios|examples)\b/i,
  /\b0 (?:tests?|passing|passed|specs?|examples|scenarios|test suites)\b/i,
  /^\W*tests:? +0(?: total)?$/im,
  /\[no test files\]/,
  /\bmissing script\b/i,
];

const ranSomething =
  /\b[1-9]\d* (?:tests?|passing|passed|specs?|examples?|scenarios?|assertions?)\b|\btests:? +[1-9]|\b(?:ran|running|collected) [1-9]|^ok\s+\S+\s+[\d.]+s|^ok \d+/im;

/** Returns true if an output tells of tests that ran. */
export const namesTests = (output: string): boolean => ranSomething.test(output);

/** Returns why an exit with 0 may mean nothing; undefined if it seems to mean what it says. */
export function suspicionOf({ output }: CheckResult, atBase: CheckResult | undefined): string | undefined {
  const found = ranNothing.map(sign => sign.exec(output)?.[0]).find(Boolean);
  if (found !== undefined && !ranSomething.test(output))
    return `It exited with 0, but says "${found.trim()}".`;
  if (output.trim() === '' && atBase?.exitCode === 0 && atBase.output.trim() !== '')
    return 'It exited with 0 and printed nothing; before the work it printed something.';
  const wasTested = atBase?.exitCode === 0 && ranSomething.test(atBase.output);
  if (wasTested && !ranSomething.test(output) && output.trim() !== '')
    return 'It exited with 0, but names no test that ran; before the work it did.';
  return undefined;
}
