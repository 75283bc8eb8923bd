/** A repository with a plan in it, the command line, and a model that answers each step of each story as a test wants it. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MachineSeal } from '../../src/plans/machineSeal.ts';
import { PlanFolder } from '../../src/plans/planFolder.ts';
import {
  type CliHome,
  type CliResult,
  cliHome,
  type OngoingCli,
  type RunningCli,
} from '../cli/cliProcess.ts';
import {
  type AnthropicTurn,
  type FakeServer,
  type ReceivedRequest,
  startAnthropicServer,
} from '../fakes/anthropicServer.ts';
import { copyRepo, textsIn } from '../fakes/repoCopy.ts';

/** The files of the sample project. */
export const bakery = textsIn(fileURLToPath(new URL('../../media/plan-demo/project', import.meta.url)));

/** Answers the request number `turn` (from 0) of a step, in its attempt (from 1). Undefined ends the step without a word. */
export type StepAnswers = (
  turn: number,
  attempt: number,
  request: ReceivedRequest,
) => AnthropicTurn | undefined;

/** What a story is checked with unless it says otherwise. It starts no Node. */
export const usualChecks = { there: 'ls src' };
/** For what is about tests. */
export const nodeTests = { tests: 'node --test' };

/** By story and role: `US-001 coder`, `US-001 reviewer`; or by role alone: `coder`. */
export type StepModel = Readonly<Record<string, StepAnswers>>;

export interface StoryText {
  id: string;
  title?: string;
  touches?: readonly string[];
  dependsOn?: readonly string[];
  /** Commands by name. */
  checks?: Readonly<Record<string, string>>;
  criteria?: readonly string[];
}

export interface PlanWorld {
  home: CliHome;
  /** The person's checkout. */
  repo: string;
  server: FakeServer;
  /** The environment that leads to the model, for what runs in this process. */
  env: Readonly<Record<string, string>>;
  /** Requests of one step, in their order. */
  requestsOf(story: string, role: string): ReceivedRequest[];
  /** Calls a command of plans in this process. */
  plan(...args: readonly string[]): Promise<CliResult>;
  /** As `plan`, while it goes on. */
  call(...args: readonly string[]): OngoingCli;
  /** Starts it in a process of its own, for what is about processes. */
  start(...args: readonly string[]): RunningCli;
  git(...args: readonly string[]): string;
  /** The file below the plan's folder. */
  file(path: string): string;
  /** Changes plan.json. */
  set(more: Readonly<Record<string, unknown>>): void;
  journal(): { type: string; [key: string]: unknown }[];
  /** Writes the journal anew, as this machine would. */
  rewrite(lines: readonly object[]): Promise<void>;
  /** The plan's folder, whose words are sealed for this machine. */
  folder(): PlanFolder;
  /** Everything of the person's that a plan must leave alone: files, index, HEAD, stash, and refs of others. */
  checkout(): string;
  close(): Promise<void>;
}

/** Returns the ids of the stories that passed, as prd.json has them. */
export const passed = ({ file }: PlanWorld): string[] =>
  JSON.parse(file('prd.json')).userStories.flatMap(({ id, passes }: { id: string; passes: boolean }) =>
    passes ? [id] : [],
  );

/** Returns how the attempts ended, in their order. */
export const statuses = ({ journal }: Pick<PlanWorld, 'journal'>) =>
  journal().flatMap(line => (line.type === 'attempt_ended' ? [line['status']] : []));

export const calls = (name: string, input: object): AnthropicTurn => ({ toolCalls: [{ name, input }] });

export const writes = (files: Readonly<Record<string, string>>): AnthropicTurn => ({
  toolCalls: Object.entries(files).map(([path, content]) => ({
    name: 'write_file',
    input: { path, content },
  })),
});
export const runs = (command: string): AnthropicTurn => calls('run_command', { command });
export const approves = (items?: readonly number[]): AnthropicTurn =>
  calls('approve', { summary: 'The criteria are met.', ...(items && { items }) });
export const denies = (reason: string): AnthropicTurn => calls('deny', { reason });

/** Makes one call and then says that it is done. */
export const once =
  (turn: AnthropicTurn): StepAnswers =>
  number =>
    number === 0 ? turn : { text: ['Done.'] };

/** A reviewer who approves everything. */
export const agreeable: StepModel = { reviewer: once(approves()) };

/** Makes a repository with the sample project, and the plan `site` with the stories, its card accepted. */
export async function planWorld(stories: readonly StoryText[], model: StepModel): Promise<PlanWorld> {
  const { turns, requestsOf } = answersOf(model);
  const server = await startAnthropicServer({ turns });
  const home = cliHome();
  const repo = join(home.workDir, 'bakery');
  copyRepo(repo, bakery);
  const env = {
    ...{
      TELOS_DEFAULTS: 'specified',
      ANTHROPIC_BASE_URL: server.url,
      ANTHROPIC_API_KEY: 'key-for-a-test-0123456789',
      TELOS_PROVIDER: 'anthropic',
    },
    XDG_CACHE_HOME: join(home.folder.path, 'cache'),
  };
  const git = (...args: readonly string[]): string =>
    execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', ...args], {
      cwd: repo,
      env: { PATH: process.env['PATH'] ?? '', HOME: home.folder.path },
      encoding: 'utf8',
    });
  const world: PlanWorld = {
    home,
    repo,
    server,
    env,
    git,
    requestsOf,
    plan: (...args) => world.call(...args).result,
    call: (...args) => home.call(['plan', ...args, '--cwd', repo], { env }),
    start: (...args) => home.start(['plan', ...args, '--cwd', repo], { env }),
    file: path => readFileSync(join(repo, '.telos/plans/site', path), 'utf8'),
    set: more => {
      const settings = { ...JSON.parse(world.file('plan.json')), ...more };
      writeFileSync(join(repo, '.telos/plans/site/plan.json'), JSON.stringify(settings));
    },
    journal: () =>
      world
        .file('journal.jsonl')
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line, (key, value) => (key === 'seal' ? undefined : value))),
    rewrite: async lines => {
      const { seal, journal } = world.folder();
      await seal?.ready();
      const sealed = lines.map(line => seal?.sealed('journal site', JSON.stringify(line)));
      writeFileSync(journal, `${sealed.join('\n')}\n`);
    },
    folder: () => PlanFolder.open(repo, 'site', new MachineSeal(home.dataDir)),
    checkout: () => checkoutOf(repo, git),
    close: async () => {
      await server.close();
      home.remove();
    },
  };
  if (stories.length > 0) await withStories(world, stories);
  return world;
}

/** Returns what a server answers for the model, and what it was asked so far. */
export function answersOf(model: StepModel): {
  turns: (request: ReceivedRequest) => AnthropicTurn;
  requestsOf: PlanWorld['requestsOf'];
} {
  const seen = new Map<string, number>();
  const steps = new Map<string, ReceivedRequest[]>();
  return {
    requestsOf: (story, role) => steps.get(`${story} ${role}`) ?? [],
    turns: request => {
      const { story, role } = stepOf(request);
      const key = `${story} ${role}`;
      steps.set(key, [...(steps.get(key) ?? []), request]);
      const turn = (request.body?.messages ?? []).filter(
        ({ role: who }: { role: string }) => who === 'assistant',
      ).length;
      if (turn === 0) seen.set(key, (seen.get(key) ?? 0) + 1);
      const answers = model[key] ?? model[role];
      return answers?.(turn, seen.get(key) ?? 1, request) ?? {};
    },
  };
}

async function withStories(world: PlanWorld, stories: readonly StoryText[]): Promise<void> {
  await world.plan('new', 'A better bakery', '--name', 'site', '--no-more-questions');
  for (const [index, story] of stories.entries()) {
    const path = join(world.repo, '.telos/plans/site/prds', `0${index + 1}-story.md`);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, storyText(story));
  }
  const { code, stderr } = await world.plan('approve', 'site', '--card', '--yes');
  if (code !== 0) throw new Error(stderr);
}

export function storyText({ id, title, touches, dependsOn, checks, criteria }: StoryText): string {
  const named = Object.entries(checks ?? usualChecks);
  return [
    '---',
    `id: ${id}`,
    ...(dependsOn ? [`depends_on: ${JSON.stringify(dependsOn)}`] : []),
    ...(touches ? [`touches: ${JSON.stringify(touches)}`] : []),
    'check:',
    ...named.map(([name, command]) => `  - {name: ${name}, command: ${JSON.stringify(command)}}`),
    '---',
    `# ${title ?? `Story ${id}`}`,
    '',
    '## Acceptance criteria',
    ...(criteria ?? ['It is there']).map((text, at) => `- [ ] ${at + 1}. ${text}`),
    '',
  ].join('\n');
}

/** Which step a request belongs to: its tools say the role, its words the story. */
function stepOf({ body }: ReceivedRequest): { story: string; role: string } {
  const tools = new Set((body?.tools ?? []).map(({ name }: { name: string }) => name));
  const marks = [
    ...([
      ['approve', 'reviewer'],
      ['submit_round', 'interview'],
      ['submit_plan', 'plan'],
    ] as const),
    ...([
      ['submit_story', 'split'],
      ['delegate', 'orchestrator'],
      ['learn', 'coder'],
    ] as const),
  ];
  const role = marks.find(([tool]) => tools.has(tool))?.[1] ?? 'unknown';
  const first = JSON.stringify(body?.messages?.[0] ?? '');
  return { story: /US-\d+[a-z]?/.exec(first)?.[0] ?? '', role };
}

export function checkoutOf(repo: string, git: PlanWorld['git']): string {
  const hash = createHash('sha256');
  const add = (folder: string): void => {
    for (const entry of readdirSync(join(repo, folder), { withFileTypes: true }).sort((a, b) =>
      a.name < b.name ? -1 : 1,
    )) {
      const path = join(folder, entry.name);
      if (path === '.git' || path === '.telos') continue;
      if (entry.isDirectory()) add(path);
      else hash.update(`${path}\0`).update(readFileSync(join(repo, path)));
    }
  };
  add('.');
  hash.update(readFileSync(join(repo, '.git/HEAD')));
  hash.update(git('ls-files', '--stage'));
  hash.update(git('stash', 'list'));
  const refs = git('for-each-ref', '--format=%(refname) %(objectname)').split('\n');
  hash.update(refs.filter(ref => !/^refs\/(heads\/)?telos\//.test(ref)).join('\n'));
  return hash.digest('hex');
}
