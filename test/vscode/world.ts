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

/** Copies of the sample workspace and pack (or of `skills`), and the extension as it was built last. */
export async function freshWorld(sources: { skills?: string; workspace?: string } = {}): Promise<World> {
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
    remove: () => rm(dir, { recursive: true, force: true, maxRetries: 5 }),
  };
  try {
    await cp(sources.workspace ?? join(root, 'media', 'demo', 'workspace'), world.workspace, {
      recursive: true,
    });
    await cp(sources.skills ?? join(root, 'media', 'demo', 'skills'), world.skills, { recursive: true });
    await mkdir(world.data);
    await installExtension(world);
    return world;
  } catch (error) {
    await world.remove();
    throw error;
  }
}

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
