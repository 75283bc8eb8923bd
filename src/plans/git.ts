/**
 * The objects and refs of a repository, and commits made of them. Nothing here touches the index, the HEAD or the files of the
 * person's own work tree.
 */

import { randomUUID } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import { sentence } from '@telos/protocol/text';
import { type Difference, differenceOptions, readDifference } from './gitDifference.ts';
import { type Environment, GitProgram, type Place } from './gitProgram.ts';
import { endsWith, GitTalk, isContents, isLine, sizeIn } from './gitTalk.ts';

/** The variable that everything carries that a plan's runner starts. A later runner ends what a killed one left. */
export const runnerMark = 'TELOS_PLAN_RUNNER';

/** What all work trees of a repository have in common. */
interface Shared {
  talk(name: TalkName): GitTalk;
  identity?: Promise<Identity>;
  commonDir?: Promise<string>;
  /** The last ones that were asked for, by their trees. Trees never change. */
  differences: Map<string, Promise<Difference>>;
  /** What was last found under a name that always means the same. */
  objects: Map<string, GitObject>;
  /** The last ones that were made or read, by their ids. */
  commits: Map<string, Commit>;
}

const talks = {
  objects: ['cat-file', '--batch-command'],
  differences: ['diff-tree', '--stdin', ...differenceOptions],
  refs: ['update-ref', '-m', 'telos', '--stdin'],
  commits: ['hash-object', '-t', 'commit', '-w', '--no-filters', '--stdin-paths'],
};

type TalkName = keyof typeof talks;

/** A name and an address, and the zone of the person's clock. */
interface Identity {
  author: string;
  committer: string;
  zone: string;
}

interface Commit {
  parents: string[];
  message: string;
}

interface GitObject {
  id: string;
  type: string;
  size: number;
}

const mostDifferences = 8;
const mostRemembered = 100;
/** A commit or a tree by its id, or what it has. */
const lasting = /^[0-9a-f]{40,64}[:^]/;

export class Git extends GitProgram {
  #shared: Shared;

  constructor(dir: string, env: Environment, place?: Place, project?: string) {
    super(dir, env, place, project);
    const open = new Map<TalkName, GitTalk>();
    const talk = (name: TalkName): GitTalk => {
      const known = open.get(name) ?? new GitTalk(() => this.spawn(talks[name]));
      open.set(name, known);
      return known;
    };
    this.#shared = { talk, differences: new Map(), objects: new Map(), commits: new Map() };
  }

  /** Returns the same for another work tree of the repository, whose own folder below `.git` is known. */
  at(place: Place): Git {
    const git = new Git(place.workTree, this.env, place, this.project);
    git.#shared = this.#shared;
    return git;
  }

  /** Asks a process of git that stays for the next question. Throws TelosError `config` if it ends instead of answering. */
  async ask(name: TalkName, question: string, isWhole: Parameters<GitTalk['ask']>[1]): Promise<string> {
    try {
      return (await this.#shared.talk(name).ask(question, isWhole)).toString();
    } catch (error) {
      throw error instanceof TelosError ? error : this.notStarted(error as Error);
    }
  }

  /** Ends the processes that stay. */
  override async close(): Promise<void> {
    const names = Object.keys(talks) as TalkName[];
    await Promise.all([super.close(), ...names.map(name => this.#shared.talk(name).close())]);
  }

  /** The person's name for commits; one of Telos where git knows none. */
  #identity(): Promise<Identity> {
    this.#shared.identity ??= Promise.all(['AUTHOR', 'COMMITTER'].map(who => this.#identOf(who))).then(
      ([author = '', committer = '']) => ({
        author: author.replace(/ \d+ [+-]\d+$/, ''),
        committer: committer.replace(/ \d+ [+-]\d+$/, ''),
        zone: / ([+-]\d+)$/.exec(author)?.[1] ?? '+0000',
      }),
    );
    return this.#shared.identity;
  }

  async #identOf(who: string): Promise<string> {
    const args = ['-c', 'user.useConfigOnly=true', 'var', `GIT_${who}_IDENT`];
    const { code, stdout } = await this.call(args);
    return code === 0 ? stdout.trim() : 'Telos <telos@localhost> 0 +0000';
  }

  /** Returns for example `[2, 39, 5]`. Throws TelosError `config` if git cannot be started. */
  async version(): Promise<number[]> {
    const [, version = ''] = /(\d+(?:\.\d+)+)/.exec(await this.read(['version'])) ?? [];
    return version.split('.').map(Number);
  }

  /** Returns the commit that a ref or another name means, or undefined if there is none that can be read. */
  async tip(ref: string): Promise<string | undefined> {
    return (await this.#object(`${ref}^{commit}`))?.id;
  }

  async treeOf(commit: string): Promise<string> {
    const tree = await this.#object(`${commit}^{tree}`);
    if (!tree)
      throw new TelosError('config', [
        sentence('{0} is not a commit that can be read in {1}.', commit, this.dir),
      ]);
    return tree.id;
  }

  /** Each work tree has a HEAD of its own. */
  get #ownHead(): string {
    return this.place ? `worktrees/${basename(this.place.gitDir)}/HEAD` : 'HEAD';
  }

  async #object(name: string): Promise<GitObject | undefined> {
    if (/[\0\n]/.test(name)) return undefined;
    const { objects } = this.#shared;
    const before = objects.get(name);
    if (before) return before;
    const own = name.replace(/^HEAD\b/, this.#ownHead);
    const line = (await this.ask('objects', `info ${own}\n`, isLine)).trimEnd();
    const [id = '', type = ''] = line.split(' ');
    const size = sizeIn(line);
    if (size === undefined) return undefined;
    const object = { id, type, size };
    if (lasting.test(name)) remember(this.#shared.objects, name, object);
    return object;
  }

  /** Returns the text of a blob, such as `COMMIT:PATH`; undefined if there is none, or if it has more than `most` bytes. */
  async text(name: string, most = Number.POSITIVE_INFINITY): Promise<string | undefined> {
    const blob = await this.#object(name);
    if (blob?.type !== 'blob' || blob.size > most) return undefined;
    const answer = await this.ask('objects', `contents ${blob.id}\n`, isContents);
    const start = answer.indexOf('\n') + 1;
    return sizeIn(answer.slice(0, start - 1)) === undefined ? undefined : answer.slice(start, -1);
  }

  /** Returns the parents and the words of a commit; undefined if it cannot be read. */
  async commit(id: string): Promise<Commit | undefined> {
    const { commits } = this.#shared;
    const before = commits.get(id);
    if (before) return before;
    const answer = await this.ask('objects', `contents ${id}\n`, isContents);
    const [, type] = answer.split(' ', 2);
    const start = answer.indexOf('\n') + 1;
    const end = answer.indexOf('\n\n', start);
    if (type !== 'commit' || end < 0) return undefined;
    const parents = [...answer.slice(start, end).matchAll(/^parent (\S+)$/gm)].map(
      ([, parent = '']) => parent,
    );
    const commit = { parents, message: answer.slice(end + 2, -1) };
    remember(commits, id, commit);
    return commit;
  }

  /** Returns what differs between two commits or trees. */
  async difference(from: string, to: string): Promise<Difference> {
    const trees = `${await this.treeOf(from)} ${await this.treeOf(to)}`;
    const { differences } = this.#shared;
    const mark = randomUUID();
    const known =
      differences.get(trees) ??
      this.ask('differences', `${trees}\n${mark}\n`, endsWith(mark)).then(printed =>
        readDifference(printed.slice(0, -mark.length - 1)),
      );
    differences.set(trees, known);
    for (const old of [...differences.keys()].slice(0, -mostDifferences)) differences.delete(old);
    known.catch(() => differences.delete(trees));
    return known;
  }

  /** Makes a commit with the person's name. It is on no branch. */
  async commitTree(tree: string, parents: readonly string[], message: string): Promise<string> {
    const { author, committer, zone } = await this.#identity();
    const time = `${Math.floor(Date.now() / 1000)} ${zone}`;
    const ids = await Promise.all(parents.map(parent => this.#commitId(parent)));
    const words = `${message.replaceAll('\0', '').trimEnd()}\n`;
    const text = [
      `tree ${tree}`,
      ...ids.map(id => `parent ${id}`),
      ...[`author ${author} ${time}`, `committer ${committer} ${time}`, ''],
      words,
    ].join('\n');
    const file = join(tmpdir(), `telos-commit-${randomUUID()}`);
    try {
      await writeFile(file, text, { mode: 0o600, flag: 'wx' });
      const id = (await this.ask('commits', `${file}\n`, isLine)).trim();
      remember(this.#shared.objects, `${id}^{tree}`, { id: tree, type: 'tree', size: 0 });
      remember(this.#shared.commits, id, { parents: ids, message: words });
      return id;
    } finally {
      await rm(file, { force: true });
    }
  }

  async #commitId(name: string): Promise<string> {
    const id = /^[0-9a-f]{40,64}$/.test(name) ? name : await this.tip(name);
    if (id === undefined)
      throw new TelosError('config', [sentence('{0} is not a commit in {1}.', name, this.dir)]);
    return id;
  }

  /** Sets a ref of the plan's own, whatever it was. Throws TelosError `config` if git refuses. */
  setRef(ref: string, commit: string): Promise<void> {
    return this.#moveRef(`update ${ref} ${commit}`);
  }

  /** Points the HEAD of this work tree to a commit and to no branch. Changes no file. Throws TelosError `config` if git refuses. */
  setHead(commit: string): Promise<void> {
    return this.#moveRef(`option no-deref\nupdate ${this.#ownHead} ${commit}`);
  }

  async #moveRef(change: string): Promise<void> {
    await this.ask('refs', `start\n${change}\ncommit\n`, endsWith('commit: ok'));
  }

  /**
   * Moves a ref from the commit `old` to `next` in one step; `old` is undefined if it must not exist yet. Returns false if it is
   * elsewhere. Throws TelosError `config` if it cannot be moved for another reason.
   */
  async casRef(ref: string, next: string, old: string | undefined): Promise<boolean> {
    try {
      await this.#moveRef(`update ${ref} ${next} ${old ?? '0'.repeat(next.length)}`);
      return true;
    } catch (error) {
      if (!(error instanceof TelosError)) throw error;
      if ((await this.tip(ref)) !== old) return false;
      throw new TelosError('config', [sentence('{0} could not be moved: {1}', ref, error.message)], {
        cause: error,
      });
    }
  }

  /** Returns the absolute real path of the folder that all work trees of the repository share. */
  commonDir(): Promise<string> {
    this.#shared.commonDir ??= this.read(['rev-parse', '--git-common-dir']).then(dir =>
      realpathSync(resolve(this.dir, dir)),
    );
    return this.#shared.commonDir;
  }
}

function remember<Value>(known: Map<string, Value>, name: string, value: Value): void {
  known.set(name, value);
  for (const old of [...known.keys()].slice(0, -mostRemembered)) known.delete(old);
}
