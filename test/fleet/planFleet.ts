/** A plan of a person without a key, and workers with theirs: each a process with a home of its own, over one database and one git server. */
import { type ChildProcess, execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findBox } from '../../src/engine/box/findBox.ts';
import type { CliResult, RunningCli } from '../cli/cliProcess.ts';
import {
  type AnthropicTurn,
  type FakeServer,
  type ReceivedRequest,
  startAnthropicServer,
} from '../fakes/anthropicServer.ts';
import { answersOf, checkoutOf, type StepModel, type StoryText, storyText } from '../plan/planWorld.ts';
import { skipBecause } from '../skipBecause.ts';
import { type FleetHome, type FleetWorld, openFleet } from './fleetWorld.ts';
import { type GitDaemon, startGitDaemon } from './gitDaemon.ts';

export interface FleetPlan {
  /** The person's checkout. */
  repo: string;
  home: FleetHome;
  /** Address of its remote. */
  url: string;
  /** Digest of the plan's card. */
  digest: string;
  git(...args: readonly string[]): string;
  plan(...args: readonly string[]): RunningCli;
  /** `telos plan run --workers`. */
  run(...args: readonly string[]): RunningCli;
  journal(): { type: string; [key: string]: unknown }[];
  /** The file below the plan's folder. */
  file(path: string): string;
  /** Ids of the stories that have a commit on the plan's branch, one for each commit. */
  passed(): string[];
  /** Everything of the person's that a plan must leave alone. */
  checkout(): string;
}

export interface PlanFleet {
  fleet: FleetWorld;
  daemon: GitDaemon;
  /** Sets what the model answers. Returns what was asked of it so far. */
  serve(model: StepModel, stallMs?: number): Promise<ReturnType<typeof answersOf>['requestsOf']>;
  /** Makes a repository with a remote and a plan `site` whose card is accepted. */
  person(stories: readonly StoryText[], settings?: object): Promise<FleetPlan>;
  /** Starts a worker in a home of its own that has accepted the plan's card. */
  worker(plan: FleetPlan, args?: readonly string[], home?: FleetHome): Promise<RunningCli>;
  requests(): number;
  clear(): Promise<void>;
  close(): Promise<void>;
}

/** A test in which workers build stories. Where no box works they do not, which a test of its own holds, and this one is skipped. */
export function itBuilds(title: string, test: (this: Mocha.Context) => Promise<void>): void {
  it(title, async function () {
    const finding = await findBox({ env: { PATH: process.env['PATH'] ?? '' } });
    if (finding.works) return test.call(this);
    skipBecause(this, `no sandbox works here: ${finding.why}`);
    this.skip();
  });
}

/** Opens one fleet for the tests of a `describe`, and ends what each of them has started. It is there when they run. */
export function planFleetOfTests(): { readonly world: PlanFleet } {
  const here = {} as { world: PlanFleet };
  before(async () => {
    here.world = await openPlanFleet();
  });
  afterEach(() => here.world.clear());
  after(() => here.world.close());
  return here;
}

export async function openPlanFleet(): Promise<PlanFleet> {
  const [fleet, daemon] = [await openFleet(), await startGitDaemon()];
  let server: FakeServer | undefined;
  let repositories = 0;
  let workers: RunningCli[] = [];
  const key = (): Record<string, string> => ({
    TELOS_PROVIDER: 'anthropic',
    ANTHROPIC_BASE_URL: server?.url ?? '',
    ANTHROPIC_API_KEY: 'key-of-the-worker-0123456789',
    TELOS_MODEL: 'claude-test',
  });
  const world: PlanFleet = {
    fleet,
    daemon,
    requests: () => server?.requests.length ?? 0,
    async serve(model, stallMs = 0) {
      await server?.close();
      const { turns, requestsOf } = answersOf(model);
      const slow = (request: ReceivedRequest): AnthropicTurn => ({
        ...turns(request),
        ...(stallMs > 0 && { stallMs }),
      });
      server = await startAnthropicServer({ turns: slow });
      return requestsOf;
    },
    async person(stories, settings = {}) {
      const home = fleet.home({});
      const name = `bakery-${++repositories}`;
      const url = daemon.repository(name);
      return withPlan(fleet, home, url, stories, settings);
    },
    async worker(plan, args = [], home = fleet.home({})) {
      const accepted = await home.runProcess(['worker', 'accept', plan.digest, '--yes'], {
        program: fleet.program,
      });
      if (accepted.code !== 0) throw new Error(accepted.stderr);
      const env = { TELOS_DATABASE_URL: fleet.postgres.url, ...key() };
      const words = [fleet.program, 'worker', '--repository', plan.url, ...args];
      // With a process group of its own, as each machine has.
      const worker = home.start(words, { node: 'setsid', program: process.execPath, env });
      workers.push(worker);
      await worker.says('takes jobs');
      return worker;
    },
    async clear() {
      for (const { child } of workers) if (child.exitCode === null) kill(child, 'group');
      await Promise.all(workers.map(({ result }) => result));
      workers = [];
      await fleet.clear();
      await server?.close();
      server = undefined;
    },
    async close() {
      await world.clear();
      await daemon.remove();
      await fleet.close();
    },
  };
  return world;
}

const trailer = '%(trailers:key=Telos-Story,valueonly,separator=%x2C)';

/** Kills a worker alone, or with all that it has started. */
export function kill({ pid = 0 }: ChildProcess, what: 'alone' | 'group'): void {
  try {
    process.kill(what === 'group' ? -pid : pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}

async function withPlan(
  fleet: FleetWorld,
  home: FleetHome,
  url: string,
  stories: readonly StoryText[],
  settings: object,
): Promise<FleetPlan> {
  const repo = join(home.workDir, 'bakery');
  mkdirSync(join(repo, 'src'), { recursive: true });
  writeFileSync(join(repo, 'README.md'), '# Bakery\n');
  for (let index = 0; index < 20; index++) writeFileSync(join(repo, `src/old${index}.txt`), `old ${index}\n`);
  const git = (...args: readonly string[]): string =>
    execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', ...args], {
      cwd: repo,
      env: { PATH: process.env['PATH'] ?? '', HOME: home.folder.path },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    }).trim();
  git('init', '-q', '-b', 'main');
  git('add', '-A');
  git('commit', '-qm', 'A small bakery');
  git('remote', 'add', 'origin', url);
  writeFileSync(join(repo, 'src/old1.txt'), 'edited\n');
  writeFileSync(join(repo, 'untracked.txt'), 'untracked\n');
  const start = (...args: readonly string[]): RunningCli =>
    home.start(['plan', ...args, '--cwd', repo], {
      env: { TELOS_DATABASE_URL: fleet.postgres.url, XDG_CACHE_HOME: join(home.folder.path, 'cache') },
      program: fleet.program,
    });
  const done = async (...args: readonly string[]): Promise<CliResult> => {
    const result = await start(...args).result;
    if (result.code !== 0) throw new Error(`${args.join(' ')}: ${result.stderr}`);
    return result;
  };
  await done('new', 'A better bakery', '--name', 'site', '--no-more-questions');
  const folder = join(repo, '.telos/plans/site');
  for (const story of stories) {
    const path = join(folder, 'prds', `${story.id}.md`);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, storyText(story));
  }
  const chosen = JSON.parse(readFileSync(join(folder, 'plan.json'), 'utf8'));
  writeFileSync(join(folder, 'plan.json'), JSON.stringify({ ...chosen, ...settings }));
  const { stdout } = await done('approve', 'site', '--card', '--yes', '--json');
  const file = (path: string): string => readFileSync(join(folder, path), 'utf8');
  return {
    repo,
    home,
    url,
    git,
    plan: start,
    file,
    digest: JSON.parse(stdout).digest,
    run: (...args) => start('run', 'site', '--unattended', '--workers', ...args),
    journal: () =>
      file('journal.jsonl')
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line)),
    passed: () =>
      git('for-each-ref', '--format=%(refname)', 'refs/heads/telos/site') === ''
        ? []
        : git('log', '--reverse', `--format=${trailer}`, 'main..telos/site').split('\n').filter(Boolean),
    checkout: () => checkoutOf(repo, git),
  };
}

/** Returns so many stories that have nothing to do with each other, and a model that builds them. */
export function manyStories(count: number): { stories: StoryText[]; model: StepModel } {
  const stories = Array.from({ length: count }, (_, index): StoryText => {
    const id = `US-${String(index + 1).padStart(3, '0')}`;
    return { id, touches: [`${id}/**`], checks: { there: `grep -q done ${id}/work.txt` } };
  });
  return { stories, model: builders };
}

/** Each story reads, writes its own file, looks at it, and is approved. */
export const builders: StepModel = {
  coder: (turn, _attempt, request) => {
    const [id = ''] = /US-\d+/.exec(JSON.stringify(request.body.messages[0])) ?? [];
    if (turn === 0) return { toolCalls: [{ name: 'read_file', input: { path: 'README.md' } }] };
    if (turn === 1)
      return {
        toolCalls: [{ name: 'write_file', input: { path: `${id}/work.txt`, content: `${id} done\n` } }],
      };
    if (turn === 2) return { toolCalls: [{ name: 'read_file', input: { path: `${id}/work.txt` } }] };
    return { text: ['Done.'] };
  },
  reviewer: turn =>
    turn === 0
      ? { toolCalls: [{ name: 'approve', input: { summary: 'It is there.' } }] }
      : { text: ['Done.'] },
};
