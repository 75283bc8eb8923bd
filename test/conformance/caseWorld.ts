/** The folders of one case: made for it alone, filled as the case says, and gone afterwards. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Config, type ConfigOverrides, loadConfig } from '../../src/engine/config.ts';
import { isRecord, type Json } from './caseFile.ts';

const places = ['tmp', 'home', 'skills', 'data', 'config', 'cwd'] as const;
type Place = (typeof places)[number];

/** `{tmp}` and its like are folders below `root`; `skills`, `data` and `config` are where Telos looks for them. */
export type CaseWorld = Readonly<Record<Place, string>> & {
  readonly root: string;
  /** Puts the folders in for `{tmp}` and its like, in every string. */
  fill<Value extends Json>(value: Value): Value;
  /** Writes files; a path that begins with `@skills/` and its like lies there, any other in `place`. */
  write(files: unknown, place?: Place): void;
  loadConfig(env?: Readonly<Record<string, string | undefined>>, more?: ConfigOverrides): Config;
  /** Undefined where there is no such file. Path below `place`. */
  read(path: string, place?: Place): string | undefined;
  exists(path: string, base: string): boolean;
  remove(): void;
};

export function caseWorld(): CaseWorld {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'telos-case-')));
  const folders = Object.fromEntries(places.map(name => [name, join(root, name)])) as Record<Place, string>;
  for (const name of ['tmp', 'home', 'cwd'] as const) mkdirSync(folders[name]);
  const put = (path: string, content: string | Buffer, place: Place): void => {
    const named = /^@(\w+)\/(.*)$/s.exec(path);
    const file = named ? join(folders[named[1] as Place], named[2] ?? '') : join(folders[place], path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  };
  return {
    ...folders,
    root,
    fill: value => fillIn(value, folders),
    write(files, place = 'tmp') {
      if (!isRecord(files)) return;
      for (const [path, content] of Object.entries(files)) put(path, String(content), place);
    },
    loadConfig: (env = {}, more = {}) =>
      loadConfig({
        env: {
          PATH: process.env['PATH'],
          TELOS_SKILLS_DIR: folders.skills,
          TELOS_CONFIG_DIR: folders.config,
          TELOS_DATA_DIR: folders.data,
          // No model of this machine may answer by chance.
          OLLAMA_BASE_URL: 'http://127.0.0.1:9/v1',
          ...env,
        },
        home: folders.home,
        cwd: folders.cwd,
        ...more,
      }),
    read(path, place = 'tmp') {
      const file = join(folders[place], path);
      return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
    },
    exists: (path, base) => existsSync(join(base, path)),
    remove: () => rmSync(root, { recursive: true, force: true }),
  };
}

/** What every case may say about its folders, whatever it does with them. */
export function fillWorld(world: CaseWorld, given: Readonly<Record<string, Json>>, filesGo: Place): void {
  world.write(given['files'], filesGo);
  world.write(given['already_installed'], 'skills');
  if (isRecord(given['bytes'])) {
    for (const [path, hex] of Object.entries(given['bytes'])) {
      const file = join(world[filesGo], path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, Buffer.from(String(hex), 'hex'));
    }
  }
  if (isRecord(given['links'])) {
    for (const [path, target] of Object.entries(given['links'])) {
      const link = join(world.tmp, path);
      mkdirSync(dirname(link), { recursive: true });
      symlinkSync(String(target), link);
    }
  }
  if (typeof given['agents_toml'] === 'string') world.write({ '@config/agents.toml': given['agents_toml'] });
  if (typeof given['env_file'] === 'string') world.write({ '@config/.env': given['env_file'] });
}

function fillIn<Value extends Json>(value: Value, folders: Readonly<Record<Place, string>>): Value {
  const filled = (item: Json): Json => {
    if (typeof item === 'string') {
      // In a pattern the braces are escaped, and the folder has to be.
      return item
        .replace(
          /\\\{(\w+)\\\}/g,
          (all, name: Place) => folders[name]?.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') ?? all,
        )
        .replace(/\{(\w+)\}/g, (all, name: Place) => folders[name] ?? all);
    }
    if (Array.isArray(item)) return item.map(filled);
    if (!isRecord(item)) return item;
    return Object.fromEntries(Object.entries(item).map(([key, inner]) => [key, filled(inner)]));
  };
  return filled(value) as Value;
}
