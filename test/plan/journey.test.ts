/** The way of a plan from its first word, as somebody without an account or with any provider takes it. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type CliHome, type CliResult, cliHome } from '../cli/cliProcess.ts';
import { eventually } from '../eventually.ts';
import { type OpenaiTurn, startOpenaiServer } from '../fakes/openaiServer.ts';
import { copyRepo } from '../fakes/repoCopy.ts';
import { agreeable, bakery, calls, once, type PlanWorld, planWorld, writes } from './planWorld.ts';

const demo = fileURLToPath(new URL('../../media/plan-demo', import.meta.url));
const storyIds = (text: string): string[] => text.split(/\n+/).filter(Boolean).sort();
const trailers = '--format=%(trailers:key=Telos-Story,valueonly)';
const four = ['US-001', 'US-002', 'US-003', 'US-004'];

describe('the way of a plan', function () {
  this.timeout(120_000);
  let home: CliHome;
  beforeEach(() => {
    home = cliHome();
  });
  afterEach(() => home.remove());

  const git = (repo: string, ...args: readonly string[]): string =>
    execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', ...args], {
      cwd: repo,
      encoding: 'utf8',
      env: { PATH: process.env['PATH'] ?? '', HOME: home.folder.path },
    });
  const openBakery = (): string => {
    const repo = join(home.workDir, 'bakery');
    copyRepo(repo, bakery);
    return repo;
  };

  it('is shown without an account: four stories, a denial, a branch that merges', async () => {
    const env = { TMPDIR: home.folder.path, XDG_CACHE_HOME: join(home.folder.path, 'cache') };
    const { code, stdout, stderr } = await home.run(['plan', 'demo'], { env });
    assert.equal(code, 0, stderr);
    const branch = 'telos/bakery';
    assert.equal(stdout.trim().split('\n').at(-1), `The stories are on the branch ${branch}`);
    const made = readdirSync(home.folder.path).find(name => name.startsWith('telos-plan-')) ?? '';
    const repo = join(home.folder.path, made, 'bakery');
    assert.deepEqual(storyIds(git(repo, 'log', trailers, `main..${branch}`)), four);
    assert.match(stderr, /denied: /);
    assert.match(stderr, /done, 4 of 4 stories passed/);
    const next = /Next: cd (\S+) && telos (plan finish bakery --merge)$/m.exec(stderr);
    assert.equal(realpathSync(next?.[1] ?? ''), realpathSync(repo));
    const checked = await home.run(['plan', 'check', '--cwd', repo], { env });
    assert.equal(checked.code, 3);
    assert.match(checked.stderr, /not approved\.\n.*telos plan approve bakery --card/);
    const merged = await home.run([...(next?.[2] ?? '').split(' '), '--cwd', next?.[1] ?? ''], {
      env,
    });
    assert.equal(merged.code, 0, merged.stderr);
    execFileSync(process.execPath, ['--test'], { cwd: repo, stdio: 'ignore' });
  });

  it('begins with a few questions, whose answers stand in interview.md', async () => {
    const repo = openBakery();
    const plan = (...args: readonly string[]): Promise<CliResult> =>
      home.run(['plan', ...args, '--cwd', repo, '--replay', join(demo, 'model')]);
    const asked = await plan('new', 'Build a website for my bakery', '--name', 'site');
    assert.equal(asked.code, 3, asked.stderr);
    const questions = [...asked.stderr.matchAll(/^\d+\. (.+)$/gm)].map(([, text = '']) => text);
    assert.ok(questions.length >= 2 && questions.length <= 5, asked.stderr);
    const file = join(repo, '.telos/plans/site/interview.md');
    assert.match(readFileSync(file, 'utf8'), /^North Star: Build a website for my bakery\n\nSummary:/);
    const answers = questions.map(text => `Q: ${text}\nA: Yes\n`).join('\n');
    writeFileSync(file, `${readFileSync(file, 'utf8').trimEnd()}\n\n${answers}`);
    const ready = await plan('interview', 'site');
    assert.equal(ready.code, 0, ready.stderr);
    assert.match(ready.stderr, /telos plan write site/);
  });

  it('asks no model when no more questions are wanted, and takes further folders for its context', async () => {
    const repo = openBakery();
    const server = await startOpenaiServer({ turns: [{}] });
    try {
      const env = {
        OPENAI_BASE_URL: server.url,
        OPENAI_API_KEY: 'key-for-a-test-0123456789',
        TELOS_PROVIDER: 'openai',
      };
      const given = ['plan', 'new', 'A site', '--name', 'site', '--no-more-questions', '--cwd', repo];
      const absent = await home.run([...given, '--context', 'absent'], { env });
      assert.equal(absent.code, 1);
      assert.match(absent.stderr, /absent does not exist/);
      assert.equal(existsSync(join(repo, '.telos')), false);
      const { code, stderr } = await home.run([...given, '--context', '.'], { env });
      assert.equal(code, 0, stderr);
      assert.match((await home.run(['plan', 'show', '--cwd', repo])).stdout, /ready to be written/);
      assert.deepEqual(server.requests, []);
    } finally {
      await server.close();
    }
  });

  it('needs no feature of one vendor: a plain server of the OpenAI kind plans and builds the same stories', async () => {
    const repo = openBakery();
    const seen = new Map<string, number>();
    const server = await startOpenaiServer({ turns: ({ body }) => recorded(body, seen) });
    const env = {
      ...{
        OPENAI_BASE_URL: server.url,
        OPENAI_API_KEY: 'key-for-a-test-0123456789',
        TELOS_PROVIDER: 'openai',
      },
      XDG_CACHE_HOME: join(home.folder.path, 'cache'),
    };
    try {
      const plan = async (...args: readonly string[]): Promise<void> => {
        const { code, stderr } = await home.run(['plan', ...args, '--cwd', repo], { env });
        assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
      };
      await plan('new', 'A better bakery', '--name', 'bakery', '--no-more-questions');
      await plan('write');
      await plan('approve', '--plan', '--yes');
      await plan('split');
      await plan('approve', '--card', '--yes');
      await plan('run', '--parallel', '2', '--unattended');
      assert.deepEqual(storyIds(git(repo, 'log', trailers, 'main..telos/bakery')), four);
      await plan('finish', '--merge');
    } finally {
      await server.close();
    }
  });

  it('asks four rounds of questions at most, each from a command of its own', async () => {
    const world = await planWorld([], {
      interview: turn =>
        turn === 0 ? calls('submit_round', { ready: false, questions: ['And what else?'] }) : {},
    });
    try {
      const asked = [await world.plan('new', 'A better bakery', '--name', 'site')];
      while (asked.length < 4) asked.push(await world.plan('interview', 'site'));
      for (const { code, stderr } of asked) {
        assert.equal(code, 3, stderr);
        assert.match(stderr, /And what else\?/);
      }
      const before = world.server.requests.length;
      const { code, stderr } = await world.plan('interview', 'site');
      assert.equal(code, 0, stderr);
      assert.match(stderr, /telos plan write site/);
      assert.equal(world.server.requests.length, before);
    } finally {
      await world.close();
    }
  });

  describe('whose runner is killed', () => {
    let world: PlanWorld;
    afterEach(() => world.close());
    const slow = { text: ['Wait.'], stallMs: 60_000 };

    it('while it asks questions, asks them again', async () => {
      let isSlow = true;
      world = await planWorld([], {
        interview: turn =>
          isSlow ? slow : turn === 0 ? calls('submit_round', { ready: true, questions: [] }) : {},
      });
      const running = world.start('new', 'A better bakery', '--name', 'site');
      await eventually(() => assert.ok(world.server.requests.length > 0), 60_000);
      running.child.kill('SIGKILL');
      await running.result;
      isSlow = false;
      const { code, stderr } = await world.plan('interview', 'site');
      assert.equal(code, 0, stderr);
    });

    it('while a check or a review works, goes on behind what is paid for, and says what was put right', async () => {
      const flag = 'check-is-quick';
      let isSlow = true;
      world = await planWorld(
        [{ id: 'US-001', touches: ['src/a.js'], checks: { tests: `test -e "$HOME/${flag}" || sleep 60` } }],
        {
          ...agreeable,
          coder: once(writes({ 'src/a.js': '1\n' })),
          reviewer: (turn, ...rest) => (isSlow ? slow : agreeable['reviewer']?.(turn, ...rest)),
        },
      );
      world.home.folder.add({ [flag]: '' });
      const before = world.checkout();
      const killedAt = async (isThere: () => boolean): Promise<void> => {
        const running = world.start('run', 'site', '--unattended');
        await eventually(() => assert.ok(isThere()), 60_000);
        running.child.kill('SIGKILL');
        await running.result;
      };
      execFileSync('rm', [join(world.home.folder.path, flag)]);
      // The base is checked first: then it is quick.
      const ended = (step: string): boolean =>
        world.journal().some(line => line.type === 'step_ended' && line['step'] === step);
      const first = killedAt(() => ended('coder'));
      world.home.folder.add({ [flag]: '' });
      await eventually(() => assert.ok(world.requestsOf('US-001', 'coder').length > 0), 60_000);
      execFileSync('rm', [join(world.home.folder.path, flag)]);
      await first;
      world.home.folder.add({ [flag]: '' });
      await killedAt(() => world.requestsOf('US-001', 'reviewer').length > 0);
      isSlow = false;
      const { code, stderr } = await world.plan('run', 'site', '--unattended');
      assert.equal(code, 0, stderr);
      assert.equal(world.checkout(), before);
      assert.equal(
        world.requestsOf('US-001', 'coder').filter(({ body }) => body.messages.length === 1).length,
        1,
      );
      assert.equal(world.git('log', trailers, 'main..telos/site').trim(), 'US-001');
      const { stdout } = await world.plan('status', 'site');
      assert.match(stdout, /Recovered when it last began:\n {2}\S/);
    });
  });
});

/** Returns the turn of the demo's recording that the request is for. */
function recorded(body: Body, seen: Map<string, number>): OpenaiTurn {
  const tools = new Set((body.tools ?? []).map(({ function: { name } }) => name));
  const words = JSON.stringify(body.messages.find(({ role }) => role === 'user')?.content ?? '');
  const story = /US-\d+/.exec(words)?.[0] ?? '';
  const turn = body.messages.filter(({ role }) => role === 'assistant').length;
  const isConflict = words.includes('Bring the story');
  const whole = tools.has('submit_plan') ? 'plan' : tools.has('submit_story') ? 'split' : undefined;
  const step = tools.has('approve') ? 'reviewer' : isConflict ? 'conflict' : 'coder';
  if (turn === 0 && step === 'coder' && !whole) seen.set(story, (seen.get(story) ?? 0) + 1);
  const key = whole ?? `${story}.a${seen.get(story)}.${step}`;
  const lines = readFileSync(join(demo, 'model', `${key}.jsonl`), 'utf8')
    .trim()
    .split('\n');
  const { events } = JSON.parse(lines[turn + 1] ?? '{"events":[]}') as { events: RecordedEvent[] };
  const toolCalls = events.flatMap(({ call }) => (call ? [call] : []));
  return { text: events.flatMap(({ text }) => text ?? []), ...(toolCalls.length > 0 && { toolCalls }) };
}

interface Body {
  tools?: { function: { name: string } }[];
  messages: { role: string; content?: unknown }[];
}

interface RecordedEvent {
  text?: string;
  call?: { id: string; name: string; input: unknown };
}
