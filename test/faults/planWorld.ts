/** A plan in a real repository for the fault harness, and the invariants of plans as somebody sees them who knows none of our code. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { loadConfig } from '../../src/engine/config.ts';
import { denyAll } from '../../src/engine/human.ts';
import { Telos } from '../../src/engine/telos.ts';
import { openPlan } from '../../src/plans/plan.ts';
import { acceptPlanCard } from '../../src/plans/planCard.ts';
import type { PlanRunEnd } from '../../src/plans/planRun.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';
import { faultyStory, idOf, prdOf, type ScriptedAttempt, type ScriptedStory } from './planScript.ts';
import { processesWith } from './processTable.ts';

/** What a runner is told. */
export interface PlanOrder {
  repo: string;
  plan: string;
  script: string;
  /** A line for each step of a model that was paid. */
  paid: string;
  /** A line for each point at which it was killed. */
  killed: string;
  slots: number;
  /** Kill the process at the first point of this lane at which none was killed before. The points of a plan are spread over `lanes`. */
  killAt?: { lane: number; lanes: number };
  /** Leave the work trees as they are at the end. */
  keepSlots?: boolean;
  /** The clock of the process is so far behind. */
  clockBackMs?: number;
  /** File that gets what was sent to the model. */
  requests?: string;
}

/** What a model was sent, as JSON. */
export interface SentRequest {
  step: string;
  /** The system text and the tools. */
  fixed: string;
  messages: string;
}

export interface RunnerReport {
  end: PlanRunEnd;
  /** When the run began, in ISO 8601. */
  began: string;
  /** Time of the run, and of all appends to the journal in it. */
  ms: number;
  journalMs: number;
  /** How often it came to each point. */
  points: Record<string, number>;
  /** Its memory at the start of each step, in bytes. */
  rss: number[];
}

/** A line of the journal, as somebody reads it who knows only that it is JSON. */
interface SeenLine {
  seq: number;
  type: string;
  ts: string;
  ms: number;
  key: string;
  story: string;
  tree: string;
  commit: string;
  exitCode: number;
  approved: boolean;
  part?: boolean;
}

const mark = 'TELOS_PLAN_RUNNER=';

let built: Promise<string> | undefined;

/** The runner's process in files that start at once: it is started some hundred times. */
function processScript(): Promise<string> {
  built ??= buildScript();
  return built;
}

async function buildScript(): Promise<string> {
  const folder = tempFolder();
  process.once('exit', () => folder.remove());
  await build({
    ...{
      bundle: true,
      splitting: true,
      platform: 'node',
      format: 'esm',
      target: 'node22',
      logLevel: 'error',
    },
    entryPoints: [join(import.meta.dirname, 'planProcess.ts')],
    outExtension: { '.js': '.mjs' },
    outdir: folder.path,
    mainFields: ['module', 'main'],
    alias: { yaml: join(import.meta.dirname, '../../node_modules/yaml/browser/index.js') },
  });
  return join(folder.path, 'planProcess.mjs');
}

export class PlanWorld {
  readonly folder: TempFolder;
  readonly repo: string;
  readonly env: Record<string, string>;
  readonly order: PlanOrder;
  /** By id. */
  readonly stories: ReadonlyMap<string, ScriptedStory>;
  readonly problems: string[] = [];
  kills = 0;
  readonly #process: string;
  #before = '';
  #base = '';
  /** What an outsider knew at a kill: contents of work that lay in slots, and steps that had ended. */
  readonly #work = new Map<string, string>();
  readonly #ended = new Map<string, number>();

  private constructor(folder: TempFolder, stories: PlanWorld['stories'], slots: number, script: string) {
    this.folder = folder;
    this.stories = stories;
    this.repo = join(folder.path, 'bakery');
    this.#process = script;
    this.env = {
      PATH: process.env['PATH'] ?? '',
      HOME: folder.path,
      XDG_CACHE_HOME: join(folder.path, 'cache'),
      TELOS_DATA_DIR: join(folder.path, 'data'),
      TELOS_CONFIG_DIR: join(folder.path, 'config'),
      TELOS_SKILLS_DIR: join(folder.path, 'skills'),
      GIT_CONFIG_NOSYSTEM: '1',
    };
    const file = (name: string): string => join(folder.path, name);
    this.order = {
      repo: this.repo,
      plan: 'bakery',
      script: file('script.json'),
      slots,
      paid: file('paid.log'),
      killed: file('killed.log'),
    };
  }

  /** Makes a repository with a person's own unfinished work, and a plan whose card is accepted. */
  static async make(
    count: number,
    slots: number,
    scriptOf: (number: number) => ScriptedStory = faultyStory,
  ): Promise<PlanWorld> {
    const numbers = Array.from({ length: count }, (_, index) => index + 1);
    const stories = new Map(numbers.map(number => [idOf(number), scriptOf(number)]));
    const world = new PlanWorld(tempFolder(), stories, slots, await processScript());
    const { repo } = world;
    mkdirSync(repo);
    const files: Record<string, string> = { 'README.md': '# Bakery\n', '.gitignore': 'dist/\n' };
    for (let index = 0; index < 20; index++) files[`src/old${index}.txt`] = `old ${index}\n`;
    writeAll(repo, files);
    world.git('init', '-q', '-b', 'main');
    world.git('config', 'user.name', 'Ada');
    world.git('config', 'user.email', 'ada@example.com');
    world.git('add', '-A');
    world.git('commit', '-qm', 'Begin');
    writeAll(repo, { 'README.md': 'stashed' });
    world.git('stash', '-q');
    writeAll(repo, { 'src/old1.txt': 'edited\n', 'staged.txt': 'staged\n', 'dist/x': 'ignored' });
    world.git('add', 'staged.txt');
    writeAll(repo, { 'staged.txt': 'and edited again\n', 'notes/new.txt': 'untracked\n' });
    writeAll(join(repo, '.telos'), { '.gitignore': '*\n' });
    const prds = join(repo, '.telos/plans/bakery/prds');
    for (const [id, story] of stories) writeAll(prds, { [`${id.slice(3)}-s.md`]: prdOf(id, story) });
    const script = [...stories].map(([id, { attempts }]) => [id, attempts]);
    writeFileSync(world.order.script, JSON.stringify(Object.fromEntries(script)));
    writeFileSync(world.order.paid, '');
    await world.#begin();
    return world;
  }

  /** Returns the same world in a folder of its own, at its beginning. */
  async copy(): Promise<PlanWorld> {
    const folder = tempFolder();
    cpSync(this.folder.path, folder.path, { recursive: true, preserveTimestamps: true });
    const world = new PlanWorld(folder, this.stories, this.order.slots, this.#process);
    // A copied file has another inode, so git would look at each again.
    world.git('update-index', '-q', '--refresh', '--ignore-missing', '--unmerged');
    await world.#begin();
    return world;
  }

  async #begin(): Promise<void> {
    const { env, repo } = this;
    const config = loadConfig({ env, home: this.folder.path, cwd: repo });
    const caller = { runs: Telos.open(config), human: denyAll, by: 'cli' as const };
    const plan = openPlan(repo, this.order.plan, caller);
    await acceptPlanCard(config, plan.folder, await plan.card());
    this.#base = this.git('rev-parse', 'HEAD');
    this.#before = this.personsState();
  }

  /** Returns how the plan seems to somebody who opens it now, and how long they waited for that. In milliseconds. */
  async look(): Promise<{ lines: number; ms: number }> {
    const { env, repo } = this;
    const config = loadConfig({ env, home: this.folder.path, cwd: repo });
    const start = performance.now();
    const caller = { runs: Telos.open(config), human: denyAll, by: 'editor' as const };
    const { lines } = await openPlan(repo, this.order.plan, caller).look();
    return { lines, ms: performance.now() - start };
  }

  git(...args: readonly string[]): string {
    try {
      return execFileSync('git', args, {
        cwd: this.repo,
        env: this.env,
        encoding: 'utf8',
        maxBuffer: 64 * 1024 * 1024,
        stdio: ['ignore', 'pipe', 'pipe'],
      }).trim();
    } catch (error) {
      if (args[0] === 'update-index') return '';
      throw error;
    }
  }

  start(more: Partial<PlanOrder> = {}): { child: ChildProcess; report: Promise<RunnerReport | undefined> } {
    const child = spawn(process.execPath, [this.#process, JSON.stringify({ ...this.order, ...more })], {
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
    if (this.personsState() !== this.#before)
      this.problems.push(`I3: the person's work changed before kill ${this.kills}`);
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

  /** Names of the points at which it was killed. */
  killedAt(): string[] {
    if (!existsSync(this.order.killed)) return [];
    return readFileSync(this.order.killed, 'utf8').split('\n').filter(Boolean);
  }

  paidFor(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const key of readFileSync(this.order.paid, 'utf8').split('\n').filter(Boolean))
      counts.set(key, (counts.get(key) ?? 0) + 1);
    return counts;
  }

  /** Steps that were paid for beyond the one who builds and the one who reviews of each attempt in the script. */
  get repeated(): number {
    const needed = [...this.stories.values()].reduce((sum, { attempts }) => sum + 2 * attempts.length, 0);
    return [...this.paidFor().values()].reduce((sum, times) => sum + times, 0) - needed;
  }

  /** Ends of lines in the journal. */
  journalLines(): number {
    return this.#journalText().split('\n').length - 1;
  }

  #journalText(): string {
    const file = join(this.repo, '.telos/plans/bakery/journal.jsonl');
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  }

  journal(): SeenLine[] {
    return this.#journalText()
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
    const last = this.journal().at(-1);
    if (last?.type !== 'finished') {
      wrong(`it did not come to its end: ${JSON.stringify(last)}`);
      return;
    }
    if (this.personsState() !== this.#before)
      wrong("I3: the person's files, index, HEAD, stash or refs changed");
    const format =
      '%H %T %(trailers:key=Telos-Story,valueonly,separator=%x2C) | %(trailers:key=Telos-Part,valueonly,separator=%x2C)';
    const log = this.git('log', '--reverse', `--format=${format}`, `${this.#base}..telos/bakery`).split('\n');
    const commits = log.map(line => /^(\S+) (\S+) (\S*) ?\| ?(\S*)$/.exec(line)?.slice(1) ?? [line]);
    const ids = [...this.stories.keys()];
    const lines = this.journal();
    for (const id of ids) {
      const [own, parts] = [
        commits.filter(([, , story]) => story === id),
        commits.filter(([, , , part]) => part === id),
      ];
      if (own.length !== 1) wrong(`I1: ${id} has ${own.length} commits`);
      const wanted = this.#attemptsOf(id).filter(({ items }) => items).length;
      if (parts.length !== wanted) wrong(`I1: ${id} has ${parts.length} parts, not ${wanted}`);
      for (const [commit = '', tree = ''] of [...own, ...parts])
        this.#verifyCommit(id, commit, tree, lines, wrong);
    }
    this.#verifyFiles(ids, wrong);
    this.#verifyJournal(lines, ids, wrong);
    this.#verifyKept(wrong);
    const left = this.leftProcesses();
    if (left.length > 0) wrong(`I8: ${left.length} processes are left`);
    if (this.git('worktree', 'list').split('\n').length !== 1) wrong('work trees are left');
    this.git('fsck', '--no-dangling', '--connectivity-only');
  }

  /** Work that lay in a slot is in a commit, and what was paid was not paid again. */
  #verifyKept(wrong: (what: string) => void): void {
    const objects = new Set(
      this.git('rev-list', '--objects', '--all')
        .split('\n')
        .map(line => line.split(' ')[0]),
    );
    for (const [blob, path] of this.#work) if (!objects.has(blob)) wrong(`I6: ${path} is in no commit`);
    const paid = this.paidFor();
    for (const [key, times] of this.#ended)
      if ((paid.get(key) ?? 0) > times) wrong(`I7: ${key} was paid again after it had ended`);
    const mostRepeated = this.kills * this.order.slots;
    if (this.repeated > mostRepeated)
      wrong(`I7: ${this.repeated} steps were paid again after ${this.kills} kills`);
  }

  #attemptsOf(id: string): readonly ScriptedAttempt[] {
    return this.stories.get(id)?.attempts ?? [];
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
      wrong(`I2: denyAll reviewed what ${id} changes`);
  }

  /** What reviewers denied, once each, and nothing that somebody else wrote. */
  #verifyNotes(wrong: (what: string) => void): void {
    const lines = this.git('show', 'telos/bakery:AGENTS.md').split('\n');
    const notes = lines.filter(line => line !== '' && !line.startsWith('#'));
    for (const note of notes)
      if (!/^- The review of US-\d+ denied: \S/.test(note)) wrong(`a foreign note in AGENTS.md: ${note}`);
    if (new Set(notes).size < notes.length) wrong('AGENTS.md has a note twice');
  }

  /** Each byte on the branch is the base's or one that the script wrote for an approved attempt. */
  #verifyFiles(ids: readonly string[], wrong: (what: string) => void): void {
    const wanted = new Map<string, string>();
    for (const id of ids)
      for (const attempt of this.#attemptsOf(id))
        for (const [name, text] of Object.entries(attempt.denied ? {} : attempt.files))
          wanted.set(name, text);
    const all = this.git('diff', '--name-only', this.#base, 'telos/bakery').split('\n').sort();
    const changed = all.filter(name => name !== 'AGENTS.md');
    if (changed.length < all.length) this.#verifyNotes(wrong);
    if (changed.join() !== [...wanted.keys()].sort().join())
      wrong(`foreign files: ${changed.filter(name => !wanted.has(name)).join()}`);
    for (const [name, text] of wanted) {
      if (`${this.git('show', `telos/bakery:${name}`)}\n` !== text) wrong(`foreign bytes in ${name}`);
    }
    const file = JSON.parse(readFileSync(join(this.repo, '.telos/plans/bakery/prd.json'), 'utf8'));
    if (!file.userStories.every((story: { passes: boolean }) => story.passes))
      wrong('I1: prd.json does not say that all passed');
    // A kill in the middle of a write leaves a hidden file, which nobody takes for a story.
    const prds = readdirSync(join(this.repo, '.telos/plans/bakery/prds')).filter(name => name[0] !== '.');
    for (const name of prds)
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

function writeAll(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}
