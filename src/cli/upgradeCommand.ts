/** Implements `telos upgrade`, and the notice of a newer version in `telos doctor`. */
import { join } from 'node:path';
import type { Config } from '@telos/engine/config';
import { reasonOf, TelosError } from '@telos/engine/errors';
import { loadText, readText, writeOwn } from '@telos/engine/files';
import { reachFor, resolveSource } from '@telos/packs/install';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { abortOnInterrupt, cancelledExitCode, type Terminal } from './terminal.ts';
import { exactText, terminalLine } from './terminalText.ts';
import { folderOf, type OwnPackage, wayInstalled } from './wayInstalled.ts';

const dayMs = 86_400_000;
/** How long the doctor waits for the registry, in milliseconds. */
const patienceMs = 3_000;

/** Says how this Telos is upgraded, and asks the registry whether there is a newer one. Returns 1 if that is not known then. */
export async function upgradeCommand(
  options: ConfigOptions,
  terminal: Terminal,
  packageFile: URL,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const own = ownPackage(packageFile);
  const way = wayInstalled(folderOf(packageFile), own);
  const how = `${exactText(way.says)}\n\n    ${way.command}\n`;
  if (!way.isPublished) {
    terminal.out(`This is Telos ${own.version}. ${how}`);
    return 0;
  }
  const { signal, release } = abortOnInterrupt(terminal, () => {});
  try {
    const newest = await askNewest(own.name, config, signal);
    await keep(config, newest);
    if (!isNewer(newest, own.version)) terminal.out(`This is Telos ${own.version}, the newest version.\n`);
    else terminal.out(`Telos ${terminalLine(newest)} is there, and this is ${own.version}. ${how}`);
    return 0;
  } catch (error) {
    if (signal.aborted) return cancelledExitCode;
    terminal.say(terminalLine(`Whether there is a newer version is not known: ${firstSentence(error)}`));
    terminal.out(`This is Telos ${own.version}. ${how}`);
    return 1;
  } finally {
    release();
  }
}

/**
 * Returns the sentence for a newer version, if one is known. Asks the registry at most once a day. Returns undefined, and asks nobody,
 * where nobody reads it or the user does not want it. Never throws.
 */
export async function upgradeNotice(
  config: Config,
  terminal: Terminal,
  packageFile: URL,
): Promise<string | undefined> {
  try {
    if (!isWanted(config, terminal)) return undefined;
    const own = ownPackage(packageFile);
    if (!wayInstalled(folderOf(packageFile), own).isPublished) return undefined;
    const newest = await knownNewest(own.name, config);
    if (newest === undefined || !isNewer(newest, own.version)) return undefined;
    return `Telos ${terminalLine(newest)} is there, and this is ${own.version}. \`telos upgrade\` says how to get it.`;
  } catch {
    return undefined;
  }
}

function isWanted({ env }: Config, { canAsk, outWidth }: Terminal): boolean {
  const isOff = /^(?:off|false|no|0)$/i.test(env['TELOS_UPDATE_CHECK'] ?? '');
  const isBuild = env['CI'] !== undefined && !/^(?:|false|0)$/i.test(env['CI']);
  return canAsk && outWidth !== undefined && !isOff && !isBuild;
}

const ownPackage = (packageFile: URL): OwnPackage => JSON.parse(readText(packageFile)) as OwnPackage;

/** What the registry said last, and when it was asked. `version` is missing if it did not answer. */
interface Kept {
  askedAt: number;
  version?: string | undefined;
}

const fileOf = ({ dataDir }: Config): string => join(dataDir, 'newest.json');

async function knownNewest(name: string, config: Config): Promise<string | undefined> {
  const kept = await readKept(config);
  const age = Date.now() - (kept?.askedAt ?? 0);
  // A clock that was set back must not keep it from being asked for years.
  if (kept && age >= 0 && age < dayMs) return kept.version;
  const newest = await askNewest(name, config, AbortSignal.timeout(patienceMs)).catch(() => undefined);
  await keep(config, newest ?? kept?.version);
  return newest ?? kept?.version;
}

async function readKept(config: Config): Promise<Kept | undefined> {
  try {
    const { askedAt, version } = JSON.parse(await loadText(fileOf(config))) as Partial<Kept>;
    if (typeof askedAt !== 'number') return undefined;
    return { askedAt, version: typeof version === 'string' ? version : undefined };
  } catch {
    return undefined;
  }
}

const keep = (config: Config, version: string | undefined): Promise<unknown> =>
  writeOwn(fileOf(config), JSON.stringify({ askedAt: Date.now(), version } satisfies Kept)).catch(
    () => false,
  );

/** Throws TelosError if the registry does not answer, or has no such package. */
async function askNewest(name: string, config: Config, signal: AbortSignal): Promise<string> {
  const source = { kind: 'npm', package: name } as const;
  const { version } = await resolveSource(source, await reachFor(source, config, { signal }));
  if (version === undefined || parts(version) === undefined)
    throw new Error(`The registry names '${version ?? ''}' as its version.`);
  return version;
}

function firstSentence(error: unknown): string {
  if (!(error instanceof TelosError)) return reasonOf(error);
  return error.message.replace(/ *Nothing was installed\.$/, '');
}

const parts = (version: string): number[] | undefined =>
  /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:[-+]|$)/.exec(version)?.slice(1).map(Number);

/** Returns whether a version comes after another one. One that is tried before its release comes before it. */
export function isNewer(version: string, than: string): boolean {
  const [a = [], b = []] = [parts(version), parts(than)];
  const at = a.findIndex((part, index) => part !== b[index]);
  if (at >= 0) return (a[at] ?? 0) > (b[at] ?? 0);
  return than.includes('-') && !version.includes('-');
}
