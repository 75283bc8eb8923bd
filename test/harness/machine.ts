/** Makes a machine for one case: fresh folders that Telos is pointed at, and no model that answers by chance. */
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type Config, type ConfigOverrides, loadConfig } from '../../src/engine/config.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

type Variables = Readonly<Record<string, string | undefined>>;

/** All folders are real and absolute. */
export interface Machine {
  root: string;
  /** The root, to add files to. */
  folder: TempFolder;
  home: string;
  skills: string;
  config: string;
  data: string;
  /** The folder in which Telos is started. */
  work: string;
  /** Variables of a process on this machine. */
  env: Record<string, string>;
  loadConfig(env?: Variables, more?: ConfigOverrides): Config;
  /** Writes a file with its folders, and returns its path. A relative path is taken from `root`. */
  put(path: string, content: string | Uint8Array): string;
  /** Returns the text of a file, or undefined if it cannot be read. */
  read(path: string): string | undefined;
  remove(): void;
}

export type Folder = 'home' | 'skills' | 'config' | 'data' | 'work';

export interface MachineOptions {
  /** Relative to the root. */
  files?: Readonly<Record<string, string | Uint8Array>>;
  /** Folders that lie elsewhere than in a folder of their name below the root, which is also the home; relative to the root or absolute. */
  folders?: Partial<Record<Folder, string>>;
}

/** Only the home and the folder to work in exist at first. */
export function openMachine({ files = {}, folders = {} }: MachineOptions = {}): Machine {
  const temporary = tempFolder(files);
  const root = realpathSync(temporary.path);
  const at = (name: Folder, usual: string = name): string => resolve(root, folders[name] ?? usual);
  const home = at('home', '.');
  const [skills, config, data, work] = [at('skills'), at('config'), at('data'), at('work')];
  for (const folder of [home, work]) mkdirSync(folder, { recursive: true });
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    TELOS_SKILLS_DIR: skills,
    // Where Telos looks by itself, it is not told.
    ...(config !== join(home, '.config/telos') && { TELOS_CONFIG_DIR: config }),
    ...(data !== join(home, '.local/share/telos') && { TELOS_DATA_DIR: data }),
    // An Ollama that runs here would be asked.
    OLLAMA_BASE_URL: 'http://127.0.0.1:9/v1',
    // What is asked about where a command runs with all rights must not depend on this machine. Cases about the box turn it on.
    TELOS_SANDBOX: 'off',
  };
  return {
    root,
    folder: { ...temporary, path: root },
    home,
    skills,
    config,
    data,
    work,
    env,
    loadConfig: (variables = {}, more = {}) =>
      loadConfig({ env: { ...env, ...variables }, home, cwd: work, ...more }),
    put(path, content) {
      const file = resolve(root, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content);
      return file;
    },
    read(path) {
      const file = resolve(root, path);
      return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
    },
    remove: temporary.remove,
  };
}
