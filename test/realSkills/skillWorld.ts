/** One person's machine: a home folder, a project with the current folder, and one skill. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import type { SkillCase } from './caseFile.ts';

/** `pack` is a folder of the skills folder; `dot` has `working_dir = "."` in the person's agents.toml besides. */
export type Layout = 'pack' | 'dot';

/** Folders that a skill and its files are put into, beside those of others. */
export interface Places {
  home: string;
  project: string;
  /** The skills folder of Telos. */
  skills: string;
  remove(): void;
}

export interface SkillWorld {
  home: string;
  project: string;
  /** The current folder. */
  stands: string;
  /** The folder that must not change: the skill's, or that of its pack. */
  packDir: string;
  /** Words of a run with `{project}` filled in, and `project`. */
  wordsOf(run: number): Record<string, string>;
  /** Absolute path of a file that the case names. */
  placeOf(path: string): string;
  /** Paths of the files of the pack that are new since the world was made, and of those that are not as they were. */
  packChanges(): { added: string[]; changed: string[] };
  remove(): void;
}

export function skillWorld(one: SkillCase, layout: Layout, places = freshPlaces()): SkillWorld {
  const { home, project, skills } = places;
  const stands = join(project, one.stands ?? '');
  const place = one.place === undefined ? skills : expand(one.place, home, project);
  const packDir = join(place, one.name);
  const skillDir = one.pack || one.plugin ? join(packDir, 'skills', one.name) : packDir;
  mkdirSync(stands, { recursive: true });
  put(project, one.person ?? {});
  if (one.plugin === 'command') put(packDir, { [`commands/${one.name}.md`]: commandText(one) });
  else if (one.from === undefined) put(skillDir, { 'SKILL.md': skillText(one), ...one.files });
  else cpSync(one.from, skillDir, { recursive: true });
  put(packDir, one.beside ?? {});
  if (one.plugin && !Object.keys(one.beside ?? {}).some(path => path.endsWith('plugin.json')))
    put(packDir, { '.claude-plugin/plugin.json': `{"name": "${one.name}", "description": "Ours"}\n` });
  if (layout === 'dot')
    put(home, { '.config/telos/agents.toml': `[agents.${one.name}]\nworking_dir = "."\n` });
  if (one.git) commitAll(project, one.git);
  const ownWork = existsSync(join(packDir, 'agent.toml')) && layout === 'pack';
  const published = marksBelow(packDir);
  const work = ownWork ? join(home, 'obsidian/telos', one.name) : stands;
  return {
    home,
    project,
    stands,
    packDir,
    wordsOf: run => ({
      ...Object.fromEntries(
        Object.entries(one.runs[run] ?? {}).map(([key, word]) => [key, word.replace('{project}', project)]),
      ),
      project,
    }),
    placeOf: path =>
      path.startsWith('{work}/') ? join(work, path.slice(7)) : join(expand(path, home, stands)),
    packChanges() {
      const now = marksBelow(packDir);
      return {
        added: [...now.keys()].filter(path => !published.has(path)),
        changed: [...published].filter(([path, mark]) => now.get(path) !== mark).map(([path]) => path),
      };
    },
    remove: places.remove,
  };
}

function freshPlaces(): Places {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'telos-real-')));
  const home = join(base, 'home');
  return {
    home,
    project: join(home, 'work/kettle'),
    skills: join(home, '.skills'),
    remove: () => rmSync(base, { recursive: true, force: true }),
  };
}

function expand(path: string, home: string, project: string): string {
  if (path.startsWith('~')) return join(home, path.slice(1));
  return path.startsWith('{project}') ? path.replace('{project}', project) : join(project, path);
}

function skillText({ name, front = '', text, shape }: SkillCase): string {
  const description = JSON.stringify(`Helps with ${name.replaceAll('-', ' ')} (${shape}).`);
  const own = /^name:/m.test(front) ? '' : `name: ${name}\n`;
  return `---\n${own}description: ${description}\n${front}---\n# ${name}\n\n${text}`;
}

const commandText = ({ front = '', text }: SkillCase): string =>
  front === '' ? text : `---\n${front}---\n${text}`;

/** Throws if another skill's world has put another file there. */
function put(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    const place = join(folder, path);
    if (existsSync(place) && readFileSync(place, 'utf8') !== text) throw new Error(`${place} is taken.`);
    mkdirSync(dirname(place), { recursive: true });
    writeFileSync(place, text);
  }
}

function commitAll(folder: string, messages: readonly string[]): void {
  const git = (...args: string[]): void => {
    const own = [
      '-c',
      'user.name=Person',
      '-c',
      'user.email=person@example.com',
      '-c',
      'commit.gpgsign=false',
    ];
    execFileSync('git', [...own, ...args], { cwd: folder, stdio: 'ignore' });
  };
  git('init', '-q');
  git('add', '-A');
  for (const message of messages) git('commit', '-q', '--allow-empty', '-m', message);
}

function marksBelow(folder: string): Map<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => !entry.isDirectory())
    .map(entry => join(entry.parentPath, entry.name));
  const hash = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex');
  return new Map(files.map(path => [relative(folder, path), hash(path)]));
}
