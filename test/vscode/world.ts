/** A fresh world for one VS Code: its profile, its extensions, a workspace and skills, all in one folder that goes away afterwards. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from '../eventually.ts';
import { root } from './paths.ts';

export interface World {
  /** Holds everything below. */
  dir: string;
  workspace: string;
  /** The folder in `TELOS_SKILLS_DIR`. */
  skills: string;
  /** The folder in `TELOS_DATA_DIR`; the logs are in `logs` below it. */
  data: string;
  profile: string;
  extensions: string;
  /** The installed Telos, in `extensions`. */
  extension: string;
  remove(): Promise<void>;
}

/** What belongs to the installed extension, as `.vscodeignore` leaves it. */
const shipped = [
  'package.json',
  'package.nls.json',
  'package.nls.de.json',
  'l10n',
  'README.md',
  'LICENSE',
  'CHANGELOG.md',
  'dist',
  'media',
];

/** Folders to copy, in place of the sample workspace and of the sample pack. */
export interface WorldSources {
  skills?: string;
  workspace?: string;
}

/**
 * Copies of the sample workspace and pack (or of `sources`), and the extension as it was built last. `others` are folders of other
 * extensions, by the names of the installed ones.
 */
export async function freshWorld(
  sources: WorldSources = {},
  others: Readonly<Record<string, string>> = {},
): Promise<World> {
  if (!existsSync(join(root, 'dist', 'extension.js'))) {
    throw new Error('dist/extension.js is missing: run "npm run build" first.');
  }
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'telos-')));
  const world = {
    dir,
    workspace: join(dir, 'workspace'),
    skills: join(dir, 'skills'),
    data: join(dir, 'data'),
    profile: join(dir, 'profile'),
    extensions: join(dir, 'extensions'),
    extension: join(dir, 'extensions', `${manifest.publisher}.${manifest.name}-${manifest.version}`),
    remove: () => remove(dir),
  };
  try {
    await installExtension(world);
    for (const [name, folder] of Object.entries(others))
      await cp(folder, join(world.extensions, name), { recursive: true });
    await fillWorld(world, sources);
    return world;
  } catch (error) {
    await world.remove();
    throw error;
  }
}

/**
 * Makes a world as it is at first, also one in which a VS Code has worked: what a person, a window or Telos has left goes away. The
 * installed extensions and what the server itself keeps in its profile stay.
 */
export async function fillWorld(world: World, sources: WorldSources): Promise<void> {
  const kept = [world.profile, world.extensions];
  for (const name of await readdir(world.dir)) {
    const path = join(world.dir, name);
    if (!kept.includes(path)) await remove(path);
  }
  for (const part of ['User', 'Machine']) await remove(join(world.profile, part));
  const demo = join(root, 'media', 'demo');
  await cp(sources.workspace ?? join(demo, 'workspace'), world.workspace, { recursive: true });
  await cp(sources.skills ?? join(demo, 'skills'), world.skills, { recursive: true });
  await mkdir(world.data);
}

const remove = (path: string): Promise<void> => rm(path, { recursive: true, force: true, maxRetries: 5 });

/** Resolves with the file of a kept run once it holds the words: what streams is written about once a second. */
export function keptRun({ data }: World, words: string): Promise<string> {
  const folder = join(data, 'runs');
  return eventually(async () => {
    const names = await readdir(folder).catch(() => []);
    const texts = await Promise.all(names.map(name => readFile(join(folder, name), 'utf8')));
    const found = texts.find(text => text.includes(words));
    assert.ok(found !== undefined, `no kept run holds "${words}"`);
    return found;
  });
}

/** The variables that lead Telos into the world; all others stay as they are. */
export function worldVariables(world: World): Record<string, string> {
  return { TELOS_SKILLS_DIR: world.skills, TELOS_DATA_DIR: world.data };
}

/** For tests: the world and nothing of the user's own, so that no key and no setting of theirs changes what happens. */
export function testVariables(world: World): Record<string, string> {
  const { PATH = '', LANG = 'en_US.UTF-8', SystemRoot } = process.env;
  return {
    PATH,
    LANG,
    HOME: world.dir,
    TELOS_CONFIG_DIR: join(world.dir, 'config'),
    // Whether a command is asked about must not depend on this machine. A test about the box turns it on.
    TELOS_SANDBOX: 'off',
    // VS Code's packager, for a test in the extension host, which finds no package.
    TELOS_TEST_PACKAGER: fileURLToPath(import.meta.resolve('@vscode/vsce/vsce')),
    ...worldVariables(world),
    ...(SystemRoot ? { SystemRoot } : {}),
  };
}

/** A copy, not a link: uninstalling it in the window must not reach the sources. */
async function installExtension(world: Pick<World, 'extension' | 'extensions'>): Promise<void> {
  for (const part of shipped) {
    if (existsSync(join(root, part)))
      await cp(join(root, part), join(world.extension, part), { recursive: true });
  }
  const opener = join(root, 'test', 'vscode', 'opener');
  await cp(opener, join(world.extensions, 'telos.telos-opener-0.0.1'), { recursive: true });
}
