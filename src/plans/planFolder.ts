/**
 * The folder of a plan: its files by name, its settings, and where plans are. Nothing in it is read or written through a link, as it
 * may have come with someone else's repository.
 */

import { lstatSync, readdirSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import {
  createWhole,
  errorCode,
  fileProblem,
  fileState,
  isInside,
  isLink,
  readRegularFile,
  writeWhole,
} from '@telos/engine/files';
import { sentence } from '@telos/protocol/text';
import { Journal } from './journal.ts';
import type { MachineSeal } from './machineSeal.ts';
import { defaultSettings, type PlanSettings, parseSettings } from './planSettings.ts';

/** What lies in a plan's folder for the machine alone. */
export const progressNames = [
  ...['journal.jsonl', 'attempts', 'checks', 'inbox', 'runner.*.lock', 'projection.json'],
] as const;

const mostFileBytes = 64 * 1024 * 1024;

export const isPlanName = (name: string): boolean => /^[a-z0-9-]{1,40}$/.test(name);

/** A story's file. */
export interface StoryFile {
  /** From the plan's folder. */
  path: string;
  text: string;
}

export class PlanFolder {
  readonly dir: string;
  readonly repo: string;
  /** Tells words of this machine from those that came with the folder. Without it, all that is there counts: a worker's own folder. */
  readonly seal: MachineSeal | undefined;
  /** As they were read last, by path. */
  #stories = new Map<string, { state: string | undefined; file: StoryFile }>();

  /** `root` is `.telos/plans/NAME`, or whatever folder the caller of the library named. */
  constructor(root: string, repo: string, seal?: MachineSeal) {
    this.dir = root;
    this.repo = repo;
    this.seal = seal;
  }

  /** The plan's name, as its refs and its branch have it. */
  get name(): string {
    return slug(basename(this.dir)) || 'plan';
  }

  path(...parts: readonly string[]): string {
    return join(this.dir, ...parts);
  }

  /** Throws TelosError `config` if it is a link. */
  get journal(): string {
    return this.own('journal.jsonl');
  }

  /** Returns the plan of that name. Throws TelosError `config` if there is none. */
  static open(repo: string, name: string, seal?: MachineSeal): PlanFolder {
    const folder = new PlanFolder(planPath(repo, name), repo, seal);
    folder.#refuseLinks();
    if (!isFolder(folder.dir)) {
      const names = PlanFolder.list(repo);
      const known =
        names.length > 0
          ? sentence('The plans here: {0}.', names.join(', '))
          : sentence('There are no plans here yet.');
      throw new TelosError('config', [sentence("There is no plan '{0}'.", name), known]);
    }
    return folder;
  }

  /** Makes the folder of a new plan and writes its first line. Throws TelosError `config` if the name is taken or is not one. */
  static async create(repo: string, name: string, goal: string, seal?: MachineSeal): Promise<PlanFolder> {
    const folder = new PlanFolder(planPath(repo, name), repo, seal);
    folder.#refuseLinks();
    await mkdir(folder.dir, { recursive: true });
    const ignore = `${progressNames.map(path => `/plans/*/${path}`).join('\n')}\n`;
    await createWhole(join(repo, '.telos', '.gitignore'), ignore);
    const journal = await Journal.open(folder.journal, seal);
    try {
      // A plan whose making was cut off before its first line is made now.
      if (journal.lines.length > 0)
        throw new TelosError('config', [
          sentence("There is a plan '{0}' already.", name),
          sentence('Choose another name, or go on with it.'),
        ]);
      await folder.saveSettings({ ...defaultSettings(name), ...(await folder.settings()) });
      await journal.append({ type: 'plan_created', name, goal });
    } finally {
      await journal.close();
    }
    return folder;
  }

  /** Returns the names of the plans of a repository, sorted. */
  static list(repo: string): string[] {
    const plans = join(repo, '.telos', 'plans');
    if (isLink(join(repo, '.telos')) || isLink(plans) || !isFolder(plans)) return [];
    const entries = readdirSync(plans, { withFileTypes: true });
    return entries
      .filter(entry => entry.isDirectory() && isPlanName(entry.name))
      .map(({ name }) => name)
      .sort();
  }

  /** Returns the text of a file of the plan, or undefined if it is missing. Throws TelosError `config` if it cannot be read. */
  read(...parts: readonly string[]): string | undefined {
    const path = this.own(...parts);
    try {
      return readRegularFile(path, mostFileBytes).toString('utf8');
    } catch (error) {
      if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return undefined;
      throw new TelosError('config', [fileProblem(error, path)], { cause: error });
    }
  }

  /**
   * Writes a file of the plan whole. `name` may have `/`. Set `again` for what is made of the journal, so can be made again after a power
   * cut. Throws TelosError `config` if it cannot be written.
   */
  async write(name: string, text: string, { again = false } = {}): Promise<void> {
    const path = this.own(...name.split('/'));
    try {
      await mkdir(dirname(path), { recursive: true });
      await writeWhole(path, text, undefined, !again);
    } catch (error) {
      throw new TelosError('config', [fileProblem(error, path)], { cause: error });
    }
  }

  /** Removes a file of the plan. One that is missing is fine. */
  async remove(name: string): Promise<void> {
    await rm(this.own(...name.split('/')), { force: true });
  }

  /** Returns the story files by path, in the order of their names. Those that are unchanged since the last time are not read. */
  readPrds(): StoryFile[] {
    const folder = this.own('prds');
    if (!isFolder(folder)) return [];
    const files = readdirSync(folder, { withFileTypes: true }).filter(
      entry => entry.isFile() && /\.md$/i.test(entry.name) && !entry.name.startsWith('.'),
    );
    const paths = files.map(({ name }) => `prds/${name}`).sort();
    const before = this.#stories;
    this.#stories = new Map();
    return paths.flatMap(path => {
      // Seen before it is read: a change in between is then found the next time.
      const state = fileState(this.path(path));
      const known = before.get(path);
      const file =
        state !== undefined && known?.state === state ? known.file : this.#storyFile(path, known?.file);
      if (file === undefined) return [];
      this.#stories.set(path, { state, file });
      return [file];
    });
  }

  /** Returns the file as it is already known if it says the same; undefined if it is missing. */
  #storyFile(path: string, known: StoryFile | undefined): StoryFile | undefined {
    const text = this.read(...path.split('/'));
    if (text === undefined) return undefined;
    return known?.text === text ? known : { path, text };
  }

  /** Returns what a person chose. What `plan.json` leaves out has its usual value. Throws TelosError `config` if it is wrong. */
  async settings(): Promise<PlanSettings> {
    const text = this.read('plan.json');
    if (text === undefined) return defaultSettings(this.name);
    return parseSettings(text, this.path('plan.json'), this.name);
  }

  saveSettings(settings: PlanSettings): Promise<void> {
    return this.write('plan.json', `${JSON.stringify(settings, undefined, 2)}\n`);
  }

  /** Returns the path of a file of the plan. Throws TelosError `config` if it is not below the folder, or leads through a link. */
  own(...parts: readonly string[]): string {
    const path = this.path(...parts);
    if (!isInside(this.dir, path))
      throw new TelosError('config', [sentence('{0} is not a file of the plan.', path)]);
    this.#refuseLinks(path);
    return path;
  }

  /** Follows the way from the repository, or from the plan's folder if that is elsewhere. */
  #refuseLinks(path = this.dir): void {
    const from = isInside(this.repo, this.dir) ? this.repo : this.dir;
    const names = path.slice(from.length).split(sep).filter(Boolean);
    for (let place = from; names.length > 0; ) {
      place = join(place, names.shift() ?? '');
      if (isLink(place))
        throw new TelosError('config', [
          sentence("{0} is a link, and Telos follows no links in a plan's folder; delete the link.", place),
        ]);
    }
  }
}

function planPath(repo: string, name: string): string {
  if (!isPlanName(name))
    throw new TelosError('config', [
      sentence("'{0}' is not a name for a plan.", name),
      sentence('Use up to 40 small letters, digits and hyphens, such as bakery-site.'),
    ]);
  return join(repo, '.telos', 'plans', name);
}

/** Returns a name for a plan with that goal. Empty if the goal has no letters that a name can have. */
export const slug = (text: string): string =>
  text
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 40)
    .replace(/-+$/, '');

const isFolder = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
