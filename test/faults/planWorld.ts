/** A plan in a real repository for the fault harness, and the invariants of plans as somebody sees them who knows none of our code. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';
import { processesWith } from './processTable.ts';

/** What a runner is told. */
export interface PlanOrder {
  repo: string;
  plan: string;
  script: string;
  /** A line for each step of a model that was paid. */
  paid: string;
  slots: number;
  /** Kill the process when it comes to this point; the first is 1. */
  killAt?: number;
  trace?: boolean;
  keepSlots?: boolean;
}

export interface ScriptedAttempt {
  files: Record<string, string>;
  /** The reviewer says no. */
  denied?: boolean;
  /** The boxes that it approves; all of them if missing. */
  items?: number[];
  /** A process of it goes on running. */
  leaves?: boolean;
}

export interface RunnerReport {
  passed: number;
  msPerStory: number;
  kept: { dir: string; why: string }[];
  points: number;
  names: string[];
  busy?: number;
}

/** A line of the journal, as somebody reads it who knows only that it is JSON. */
interface SeenLine {
  seq: number;
  type: string;
  key: string;
  story: string;
  tree: string;
  commit: string;
  exitCode: number;
  approved: boolean;
  part?: boolean;
}

const processScript = join(import.meta.dirname, 'planProcess.ts');
const mark = 'TELOS_PLAN_RUNNER=';

export class PlanWorld {
  readonly folder: TempFolder;
  readonly repo: string;
  readonly env: Record<string, string>;
  readonly order: PlanOrder;
  readonly stories: number;
  readonly problems: string[] = [];
  kills = 0;
  #before: string;
  readonly #base: string;
  /** What an outsider knew at a kill: contents of work that lay in slots, and steps that had ended. */
  readonly #work = new Map<string, string>();
  readonly #ended = new Map<string, number>();

  private constructor(folder: TempFolder, stories: number, slots: number) {
    this.folder = folder;
    this.stories = stories;
    this.repo = join(folder.path, 'bakery');
    this.env = {
      PATH: process.env['PATH'] ?? '',
      HOME: folder.path,
      XDG_CACHE_HOME: join(folder.path, 'cache'),
      GIT_CONFIG_NOSYSTEM: '1',
    };
    const [script, paid] = [join(folder.path, 'script.json'), join(folder.path, 'paid.log')];
    this.order = { repo: this.repo, plan: 'bakery', script, paid, slots };
    this.#base = existsSync(this.repo) ? this.git('rev-parse', 'HEAD') : '';
    this.#before = existsSync(this.repo) ? this.personsState() : '';
  }

  /** Makes a repository with a person's own unfinished work, and a plan. */
  static make(stories: number, slots: number): PlanWorld {
    const folder = tempFolder();
    const repo = join(folder.path, 'bakery');
    const plain = new PlanWorld(folder, stories, slots);
    mkdirSync(repo);
    const files: Record<string, string> = { 'README.md': '# Bakery\n', '.gitignore': 'dist/\n' };
    for (let index = 0; index < 20; index++) files[`src/old${index}.txt`] = `old ${index}\n`;
    writeAll(repo, files);
    plain.git('init', '-q', '-b', 'main');
    plain.git('config', 'user.name', 'Ada');
    plain.git('config', 'user.email', 'ada@example.com');
    plain.git('add', '-A');
    plain.git('commit', '-qm', 'Begin');
    writeAll(repo, { 'README.md': 'stashed' });
    plain.git('stash', '-q');
    writeAll(repo, { 'src/old1.txt': 'edited\n', 'staged.txt': 'staged\n', 'dist/x': 'ignored' });
    plain.git('add', 'staged.txt');
    writeAll(repo, { 'staged.txt': 'and edited again\n', 'notes/new.txt': 'untracked\n' });
    writeAll(join(repo, '.telos'), { '.gitignore': '*\n' });
    const plan = join(repo, '.telos/plans/bakery');
    const script: Record<string, ScriptedAttempt[]> = {};
    for (let number = 1; number <= stories; number++) {
      const id = `US-${String(number).padStart(3, '0')}`;
      script[id] = scriptOf(number);
      const after = number % 4 === 0 ? `depends_on: [US-${String(number - 1).padStart(3, '0')}]\n` : '';
      const boxes = '- [ ] 1. The file is there\n- [ ] 2. It is whole\n';
      writeAll(plan, {
        [`prds/${String(number).padStart(3, '0')}-s.md`]: `---\nid: ${id}\n${after}---\n# Story ${number}\n${boxes}`,
      });
    }
    writeFileSync(plain.order.script, JSON.stringify(script));
    writeFileSync(plain.order.paid, '');
    return new PlanWorld(folder, stories, slots);
  }

  /** Returns the same world in a folder of its own, at its beginning. */
  copy(): PlanWorld {
    const folder = tempFolder();
    cpSync(this.folder.path, folder.path, { recursive: true, preserveTimestamps: true });
    const world = new PlanWorld(folder, this.stories, this.order.slots);
    // A copied file has another inode, so git would look at each again.
    world.git('update-index', '-q', '--refresh', '--ignore-missing', '--unmerged');
    world.#before = world.personsState();
    return world;
  }

  git(...args: readonly string[]): string {
    try {
      return execFileSync('git', args, {
        ...{ cwd: this.repo, env: this.env, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
        stdio: ['ignore', 'pipe', 'pipe'],
      }).trim();
    } catch (error) {
      if (args[0] === 'update-index') return '';
      throw error;
    }
  }

  start(more: Partial<PlanOrder> = {}): { child: ChildProcess; report: Promise<RunnerReport | undefined> } {
    const child = spawn(process.execPath, [processScript, JSON.stringify({ ...this.order, ...more })], {
      env: this.env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    let [stdout, stderr] = ['', ''];
    child.stdout?.on('data', part => {
      stdout += part;
    });
    child.stderr?.on('data', part => {
      stderr += part;
    });
    const report = new Promise<RunnerReport | undefined>(done => {
      child.once('close', (_code, signal) => {
        if (stdout !== '') return done(JSON.parse(stdout));
        if (signal !== 'SIGKILL') this.problems.push(`a runner broke off: ${stderr.slice(0, 1500)}`);
        done(undefined);
      });
    });
    return { child, report };
  }

  /** What an outsider sees right after a kill. */
  noteKill(): void {
    this.kills++;
    const root = join(this.env['XDG_CACHE_HOME'] ?? '', 'telos/worktrees');
    for (const path of existsSync(root) ? readdirSync(root, { recursive: true, encoding: 'utf8' }) : []) {
      const file = join(root, path);
      if (!/\/slot-\d+\/story/.test(file) || !lstatSync(file, { throwIfNoEntry: false })?.isFile()) continue;
      const text = readFileSync(file);
      const blob = createHash('sha1').update(`blob ${text.length}\0`).update(text).digest('hex');
      this.#work.set(blob, path);
    }
    const paid = this.paidFor();
    for (const line of this.journal())
      if (line.type === 'step_ended') this.#ended.set(line.key, paid.get(line.key) ?? 0);
  }

  paidFor(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const key of readFileSync(this.order.paid, 'utf8').split('\n').filter(Boolean))
      counts.set(key, (counts.get(key) ?? 0) + 1);
    return counts;
  }
  journal(): SeenLine[] {
    const file = join(this.repo, '.telos/plans/bakery/journal.jsonl');
    if (!existsSync(file)) return [];
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter(Boolean)
      .flatMap(line => {
        try {
          return [JSON.parse(line)];
        } catch {
          return [];
        }
      });
  }

  /** Everything of the person's: files, index, HEAD, stash, settings and every ref that is not the plan's. */
  personsState(): string {
    const parts: string[] = [];
    for (const name of readdirSync(this.repo, { recursive: true, encoding: 'utf8' }).sort()) {
      const isOwn =
        !name.startsWith('.telos') &&
        (!name.startsWith('.git/') || /^\.git\/(HEAD|index|config|ORIG_HEAD)$/.test(name));
      const path = join(this.repo, name);
      if (isOwn && lstatSync(path).isFile())
        parts.push(`${name} ${createHash('sha1').update(readFileSync(path)).digest('hex')}`);
    }
    const refs = this.git('for-each-ref', '--format=%(refname) %(objectname)').split('\n');
    return [
      ...parts,
      ...refs.filter(ref => !/^refs\/(heads\/)?telos\//.test(ref)),
      this.git('stash', 'list'),
    ].join('\n');
  }

  /** Looks at a plan that has been carried out, from outside. What is wrong is added to `problems`. */
  verify(): void {
    const wrong = (what: string): void => void this.problems.push(what);
    if (this.personsState() !== this.#before)
      wrong("I3: the person's files, index, HEAD, stash or refs changed");
    const format =
      '%H %T %(trailers:key=Telos-Story,valueonly,separator=%x2C) | %(trailers:key=Telos-Part,valueonly,separator=%x2C)';
    const log = this.git('log', '--reverse', `--format=${format}`, `${this.#base}..telos/bakery`).split('\n');
    const commits = log.map(line => /^(\S+) (\S+) (\S*) ?\| ?(\S*)$/.exec(line)?.slice(1) ?? [line]);
    const ids = Array.from(
      { length: this.stories },
      (_, index) => `US-${String(index + 1).padStart(3, '0')}`,
    );
    const lines = this.journal();
    for (const id of ids) {
      const [own, parts] = [
        commits.filter(([, , story]) => story === id),
        commits.filter(([, , , part]) => part === id),
      ];
      if (own.length !== 1) wrong(`I1: ${id} has ${own.length} commits`);
      const wanted = scriptOf(Number(id.slice(3))).filter(({ items }) => items).length;
      if (parts.length !== wanted) wrong(`I1: ${id} has ${parts.length} parts, not ${wanted}`);
      for (const [commit = '', tree = ''] of [...own, ...parts])
        this.#verifyCommit(id, commit, tree, lines, wrong);
    }
    this.#verifyFiles(ids, wrong);
    this.#verifyJournal(lines, ids, wrong);
    const objects = new Set(
      this.git('rev-list', '--objects', '--all')
        .split('\n')
        .map(line => line.split(' ')[0]),
    );
    for (const [blob, path] of this.#work) if (!objects.has(blob)) wrong(`I6: ${path} is in no commit`);
    const paid = this.paidFor();
    for (const [key, times] of this.#ended)
      if ((paid.get(key) ?? 0) > times) wrong(`I7: ${key} was paid again after it had ended`);
    const repeated = [...paid.values()].reduce((sum, times) => sum + times - 1, 0);
    if (repeated > this.kills) wrong(`I7: ${repeated} steps were paid again after ${this.kills} kills`);
    const left = this.leftProcesses();
    if (left.length > 0) wrong(`I8: ${left.length} processes are left`);
    if (this.git('worktree', 'list').split('\n').length !== 1) wrong('work trees are left');
    this.git('fsck', '--no-dangling', '--connectivity-only');
  }

  /** Processes that runners of this world have started. */
  leftProcesses(): { pid: number }[] {
    const own = new Set(processesWith('environ', `HOME=${this.folder.path}`).map(({ pid }) => pid));
    return processesWith('environ', mark).filter(({ pid }) => own.has(pid));
  }
  #verifyCommit(
    id: string,
    commit: string,
    tree: string,
    lines: readonly SeenLine[],
    wrong: (what: string) => void,
  ): void {
    const of = (type: string) => lines.filter(line => line.type === type && line.story === id);
    if (!of('check_ended').some(line => line.tree === tree && line.exitCode === 0))
      wrong(`I2: no check saw the tree of ${id}`);
    const reviewed = of('verdict').filter(line => line.approved);
    if (reviewed.some(line => line.tree === tree)) return;
    const patch = (from: string, to: string): string =>
      this.git('diff', '-U0', '--no-color', from, to).replace(/^(index|@@).*$/gm, '');
    const now = patch(`${commit}^`, commit);
    const snapshots = of('snapshot').filter(line => reviewed.some(verdict => verdict.tree === line.tree));
    if (!snapshots.some(line => patch(`${line.commit}^`, line.commit) === now))
      wrong(`I2: nobody reviewed what ${id} changes`);
  }

  /** Each byte on the branch is the base's or one that the script wrote for an approved attempt. */
  #verifyFiles(ids: readonly string[], wrong: (what: string) => void): void {
    const wanted = new Map<string, string>();
    for (const id of ids)
      for (const attempt of scriptOf(Number(id.slice(3))))
        for (const [name, text] of Object.entries(attempt.denied ? {} : attempt.files))
          wanted.set(name, text);
    const changed = this.git('diff', '--name-only', this.#base, 'telos/bakery').split('\n').sort();
    if (changed.join() !== [...wanted.keys()].sort().join())
      wrong(`foreign files: ${changed.filter(name => !wanted.has(name)).join()}`);
    for (const [name, text] of wanted) {
      if (`${this.git('show', `telos/bakery:${name}`)}\n` !== text) wrong(`foreign bytes in ${name}`);
    }
    const file = JSON.parse(readFileSync(join(this.repo, '.telos/plans/bakery/prd.json'), 'utf8'));
    if (!file.userStories.every((story: { passes: boolean }) => story.passes))
      wrong('I1: prd.json does not say that all passed');
    for (const name of readdirSync(join(this.repo, '.telos/plans/bakery/prds')))
      if (readFileSync(join(this.repo, '.telos/plans/bakery/prds', name), 'utf8').includes('[ ]'))
        wrong(`I1: ${name} has open boxes`);
  }
  #verifyJournal(lines: readonly SeenLine[], ids: readonly string[], wrong: (what: string) => void): void {
    const text = readFileSync(join(this.repo, '.telos/plans/bakery/journal.jsonl'), 'utf8');
    const torn = text.split('\n').filter(Boolean).length - lines.length;
    if (torn > this.kills) wrong(`I4: ${torn} torn lines after ${this.kills} kills`);
    lines.forEach((line, index) => {
      if (line.seq !== index + 1) wrong(`I4: line ${index + 1} has the number ${line.seq}`);
    });
    for (const id of ids) {
      const passed = lines.filter(line => line.type === 'story_passed' && line.story === id && !line.part);
      if (passed.length !== 1) wrong(`I1: the journal says ${passed.length} times that ${id} passed`);
      const open = lines.filter(line => line.type === 'attempt_started' && line.story === id).length;
      const ended = lines.filter(line => line.type === 'attempt_ended' && line.story === id).length;
      if (open !== ended) wrong(`I4: ${id} has ${open} attempts, of which ${ended} ended`);
    }
  }

  remove(): void {
    for (const { pid } of this.leftProcesses()) process.kill(pid, 'SIGKILL');
    this.folder.remove();
  }
}

/** Every fifth story is denied once, every sixth passes in two parts, every seventh leaves a process running. */
export function scriptOf(number: number): ScriptedAttempt[] {
  const text = (what: string): string => `${`story ${number} ${what}. `.repeat(40).trimEnd()}\n`;
  const whole: ScriptedAttempt = {
    files: { [`story/${number}.txt`]: text('whole'), [`story/deep/${number}/b.txt`]: text('deep') },
    ...(number % 7 === 0 && { leaves: true }),
  };
  if (number % 5 === 0) return [{ files: { [`story/${number}.txt`]: text('wrong') }, denied: true }, whole];
  if (number % 6 === 0) return [{ files: { [`story/${number}-part.txt`]: text('part') }, items: [1] }, whole];
  return [whole];
}

function writeAll(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}
