/** The machine of one case: made for it alone, filled as the case says, and gone afterwards. */
import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isRecord, mapText } from '../harness/caseFile.ts';
import { type Machine, openMachine } from '../harness/machine.ts';
import type { Json } from './caseFile.ts';

type Place = 'tmp' | 'home' | 'skills' | 'data' | 'config' | 'cwd';

/** `{tmp}` and its like are folders below `root`; `skills`, `data` and `config` are where Telos looks for them. */
export interface CaseWorld extends Omit<Machine, 'read'> {
  tmp: string;
  cwd: string;
  /** Puts the folders in for `{tmp}` and its like, in every string. */
  fill<Value extends Json>(value: Value): Value;
  /** Writes files; a path that begins with `@skills/` and its like lies there, any other in `place`. */
  write(files: unknown, place?: Place): void;
  /** Undefined where there is no such file. Path below `place`. */
  read(path: string, place?: Place): string | undefined;
  exists(path: string, base: string): boolean;
}

export function caseWorld(): CaseWorld {
  const machine = openMachine({ folders: { home: 'home', work: 'cwd' } });
  // The cases are of the specification, as are the models that they name.
  const specified = { TELOS_DEFAULTS: 'specified' };
  const { home, skills, data, config, work: cwd, put } = machine;
  const folders: Record<Place, string> = { home, skills, data, config, cwd, tmp: join(machine.root, 'tmp') };
  mkdirSync(folders.tmp);
  return {
    ...machine,
    ...folders,
    env: { ...machine.env, ...specified },
    loadConfig: (env, more) => machine.loadConfig({ ...specified, ...env }, more),
    fill: value => mapText(value, text => fillIn(text, folders)),
    write(files, place = 'tmp') {
      if (!isRecord(files)) return;
      for (const [path, content] of Object.entries(files)) {
        const named = /^@(\w+)\/(.*)$/s.exec(path);
        put(
          named ? join(folders[named[1] as Place], named[2] ?? '') : join(folders[place], path),
          String(content),
        );
      }
    },
    read: (path, place = 'tmp') => machine.read(join(folders[place], path)),
    exists: (path, base) => existsSync(join(base, path)),
  };
}

/** Puts the files of a case into its folders. */
export function fillWorld(world: CaseWorld, given: Readonly<Record<string, Json>>, filesGo: Place): void {
  world.write(given['files'], filesGo);
  world.write(given['already_installed'], 'skills');
  if (isRecord(given['bytes'])) {
    for (const [path, hex] of Object.entries(given['bytes']))
      world.put(join(world[filesGo], path), Buffer.from(String(hex), 'hex'));
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

function fillIn(text: string, folders: Readonly<Record<Place, string>>): string {
  // In a pattern the braces are escaped, and the folder has to be.
  return text
    .replace(
      /\\\{(\w+)\\\}/g,
      (all, name: Place) => folders[name]?.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') ?? all,
    )
    .replace(/\{(\w+)\}/g, (all, name: Place) => folders[name] ?? all);
}
