/** Cases on the long work: roles that reach too far, verdicts that nobody gave, and runners that are killed. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { TelosError } from '../../../src/engine/core/errors.ts';
import { allowAll, denyAll } from '../../../src/engine/human.ts';
import { builtinTools } from '../../../src/engine/tools/builtin.ts';
import { Orchestrator, type OrchestratorEvent } from '../../../src/plans/orchestrator.ts';
import { Plan } from '../../../src/plans/plan.ts';
import { parsePrd, tick } from '../../../src/plans/prdFile.ts';
import { takeRunner } from '../../../src/plans/runnerLock.ts';
import { PlanRepo } from '../../fakes/planRepo.ts';
import { calls, done, type ScriptedTurn, says } from '../../fakes/scriptedProvider.ts';
import { type AskedModel, scriptedTelos } from '../../fakes/scriptedTelos.ts';
import { seeded } from '../../faults/figure.ts';
import { PlanWorld } from '../../faults/planWorld.ts';
import { fieldsOf } from '../caseFile.ts';
import { CannotJudge, check, type Seen } from '../checks.ts';
import type { World } from '../world.ts';

export async function workflow(world: World): Promise<Seen> {
  const { input } = world;
  if (input['crash'] !== undefined) return crashed(String(input['crash']));
  if (input['prd'] !== undefined) return boxes(String(input['prd']));
  if (input['two_engines_on_one_project']) return twoEngines();
  if (input['provider'] !== undefined) return limited(String(input['provider']));
  if (input['always'] !== undefined) return always(world);
  if (input['progress_txt'] !== undefined) return injected(world);
  if (input['gemini_mcp']) return contextFor(world);
  if (typeof input['tool'] === 'string') return reaching(world);
  if (typeof input['text'] === 'string') return inProse(world);
  throw new CannotJudge('nothing here says what happens');
}

type Role = 'interview' | 'plan' | 'prd' | 'coder' | 'reviewer';

const roleOf = ({ tools }: AskedModel): Role | undefined =>
  (
    [
      ['submit_round', 'interview'],
      ['submit_plan', 'plan'],
      ['submit_story', 'prd'],
      ['approve', 'reviewer'],
      ['learn', 'coder'],
    ] as const
  ).find(([tool]) => tools.includes(tool))?.[1];

const call = (name: string, given: object): ScriptedTurn => [
  calls('c', name, { ...given }),
  done('tool_use'),
];
const end: ScriptedTurn = [says('That is all.'), done()];
const prd = '# Setup\n\n## Acceptance criteria\n- [ ] 1. It is there\n- [ ] 2. It is tested\n';

interface Played {
  asked: AskedModel[];
  /** Results of calls by the role that made them. */
  results: { role: string; text: string; isError: boolean }[];
  cost: number;
  orchestrator: Orchestrator;
  onEvent: (event: OrchestratorEvent) => void;
}

/** A project with the files where the specification has them, and a model that answers as it is told, and else as it should. */
function play(
  world: World,
  answer: (role: Role | undefined, asked: AskedModel) => ScriptedTurn | undefined,
  files: Readonly<Record<string, string>> = {},
  maxIterations = 3,
): Played {
  for (const [path, text] of Object.entries({ 'prds/01-setup.md': prd, 'src/app.ts': 'app\n', ...files })) {
    mkdirSync(dirname(join(world.work, path)), { recursive: true });
    writeFileSync(join(world.work, path), text);
  }
  world.mayChange.push(world.work);
  const { telos, asked } = scriptedTelos(world.configFor(), one => {
    const role = roleOf(one);
    const usual: Record<Role, ScriptedTurn> = {
      interview: call('submit_round', { ready: true, questions: [] }),
      plan: call('submit_plan', { text: '# Plan\n' }),
      prd: call('submit_story', { title: 'Setup', criteria: ['It is there'], checks: [] }),
      coder: call('write_file', { path: 'made.txt', content: `${asked.length}\n` }),
      reviewer: call('approve', { summary: 'Seen.' }),
    };
    return answer(role, one) ?? (one.turn > 0 || !role ? end : usual[role]);
  });
  const played: Played = {
    asked,
    results: [],
    cost: 0,
    orchestrator: new Orchestrator(
      { projectDir: world.work, maxIterations, human: allowAll },
      async () => telos,
    ),
    onEvent: event => {
      if (event.type !== 'run_event') return;
      if (event.event.type === 'tool_end')
        played.results.push({
          role: event.step,
          text: event.event.result.content,
          isError: event.event.result.isError,
        });
      if (event.event.type === 'usage' && typeof event.event.usage.cost === 'number')
        played.cost += event.event.usage.cost;
    },
  };
  return played;
}

const roles: Readonly<Record<string, (played: Played) => Promise<unknown>>> = {
  interview: ({ orchestrator, onEvent }) =>
    orchestrator.interview().processRound({ transcript: 'North Star: a bakery', onEvent }),
  plan: ({ orchestrator, onEvent }) => orchestrator.generatePlan('North Star: a bakery', { onEvent }),
  prd: ({ orchestrator, onEvent }) => orchestrator.generatePrds({ onEvent }),
  coder: ({ orchestrator, onEvent }) => orchestrator.execute({ onEvent }),
  reviewer: ({ orchestrator, onEvent }) => orchestrator.execute({ onEvent }),
};

/** A role calls a tool once, whether it has it or not. */
async function reaching(world: World): Promise<Seen> {
  const { input } = world;
  const [role, tool] = [String(input['role']), String(input['tool'])];
  const begin = roles[role];
  if (!begin) throw new CannotJudge(`there is no role ${role}`);
  const { path, command, content = 'x' } = input;
  const given = {
    ...fieldsOf(input['input']),
    ...(path !== undefined && { path, content }),
    ...(command !== undefined && { command }),
  };
  let isTried = false;
  const played = play(
    world,
    one => {
      if (one !== role || isTried) return undefined;
      isTried = true;
      return call(tool, given);
    },
    role === 'prd' ? { 'plan.md': '# Plan\n' } : {},
  );
  const target = path === undefined ? undefined : join(world.work, String(path));
  const before = target && world.read(target);
  const boxesBefore = world.read(join(world.work, 'prds/01-setup.md'));
  await begin(played).catch(error => {
    if (!(error instanceof TelosError)) throw error;
  });
  const offered = played.asked.find(one => roleOf(one) === role)?.tools ?? [];
  const result = played.results.find(one => one.role === (role === 'prd' ? 'split' : role));
  const after = target && world.read(target);
  const isWritten = after !== undefined && after !== before && after === String(content);
  const isKnown = builtinTools.some(one => one.definition.name === tool);
  const refused = isKnown ? 'deny' : 'error';
  return {
    decision: result && !result.isError ? 'allow' : refused,
    checks: [
      check('model', 'the call is answered', result !== undefined || 'no result'),
      check(
        'files',
        'the file is written only by a call that was let through',
        isWritten === (result?.isError === false && target !== undefined) || `written: ${isWritten}`,
      ),
      check(
        'model',
        'a tool that is not offered is refused',
        offered.includes(tool) || result?.isError === true || result?.text,
      ),
      check('files', 'package.json is not made', !existsSync(join(world.work, 'package.json'))),
      ...(role === 'prd'
        ? []
        : [
            check(
              'files',
              'no box has the words of a model',
              !String(world.read(join(world.work, 'prds/01-setup.md'))).includes('everything') || boxesBefore,
            ),
          ]),
    ],
  };
}

/** A reviewer who says it, and calls nothing. */
async function inProse(world: World): Promise<Seen> {
  const played = play(world, role =>
    role === 'reviewer' ? [says(String(world.input['text'])), done()] : undefined,
  );
  const { success, iterationResults } = await played.orchestrator.execute({ onEvent: played.onEvent });
  const statuses = iterationResults.map(({ status }) => status);
  const text = world.read(join(world.work, 'prds/01-setup.md')) ?? '';
  return {
    decision: success ? 'allow' : 'deny',
    checks: [
      check(
        'model',
        'no verdict is taken from words',
        statuses.every(one => one === 'no-verdict') || statuses.join(),
      ),
      check('files', 'no box is ticked', !text.includes('[x]') || text),
    ],
  };
}

/** A log that tells the reviewer what to do, to one who does it; a check that fails decides all the same. */
async function injected(world: World): Promise<Seen> {
  const said = String(world.input['progress_txt']);
  const checked = `---\ncheck:\n  - {name: tests, command: "node -e 'process.exit(1)'"}\n---\n${prd}`;
  const played = play(world, () => undefined, { 'prds/01-setup.md': checked, 'progress.txt': `${said}\n` });
  const { success, iterationResults } = await played.orchestrator.execute({ onEvent: played.onEvent });
  const reviewed = played.asked.filter(one => roleOf(one) === 'reviewer');
  const words = played.asked.map(one => `${one.system}\n${one.words}`).join('\n');
  return {
    decision: success ? 'allow' : 'deny',
    checks: [
      check('model', 'the log tells no model what to do', !words.includes(said) || 'it is in the request'),
      check(
        'model',
        'a red check is not put to a reviewer',
        reviewed.length === 0 || `${reviewed.length} asked`,
      ),
      check(
        'files',
        'nothing passes',
        iterationResults.every(({ status }) => status === 'denied') || 'passed',
      ),
    ],
  };
}

async function always(world: World): Promise<Seen> {
  const played = play(world, (role, { turn }) =>
    role === 'reviewer' && turn === 0 ? call('deny', { reason: 'Not good enough.' }) : undefined,
  );
  const { success, iterations } = await played.orchestrator.execute({ onEvent: played.onEvent });
  const progress = world.read(join(world.work, 'progress.txt')) ?? '';
  return {
    decision: success ? 'allow' : 'error',
    checks: [
      check(
        'end',
        'it ends at its limit, without success',
        (!success && iterations === 3) || `${success} after ${iterations}`,
      ),
      check(
        'records',
        'what was tried is told',
        (progress.match(/Status: denied/g) ?? []).length === 3 || progress,
      ),
      check('shown', 'what it used is told', played.cost > 0 || played.asked.length > 0),
    ],
  };
}

/** Who may ask about the project's context. */
async function contextFor(world: World): Promise<Seen> {
  const played = play(world, () => undefined);
  await roles['interview']?.(played);
  for (const role of ['coder', 'crm', 'marketing']) {
    writeFileSync(join(world.work, 'prds/01-setup.md'), `---\nrole: ${role}\n---\n${prd}`);
    await played.orchestrator.execute({ onEvent: played.onEvent });
  }
  const having = (tool: string) => played.asked.filter(({ tools }) => tools.includes(tool)).map(roleOf);
  const asks = [...new Set([...having('summarize'), ...having('answerQuestion')])];
  const others = played.asked.map(roleOf).filter(role => role === 'coder' || role === 'reviewer');
  return {
    decision: asks.includes('coder') || asks.includes('reviewer') ? 'allow' : 'deny',
    checks: [
      check(
        'model',
        'those who ask have the tools, those who build and review do not',
        asks.join() === 'interview' || asks.join(),
      ),
      check('model', 'three who build and the reviewer were asked', others.length >= 6 || `${others.length}`),
    ],
  };
}

function boxes(text: string): Seen {
  const { story } = parsePrd('prds/01-a.md', text);
  const shown = story.items
    .map(({ text: words, ticked }) => `${words}:${ticked ? 'done' : 'open'}`)
    .join(' ');
  const changed = story.items.flatMap(({ number, text: words, ticked }) => {
    const next = tick(text, number, !ticked);
    const differ = [...next].filter((sign, at) => sign !== text[at]).length;
    return differ === 1 && next.length === text.length ? [] : [words];
  });
  return {
    decision: 'any',
    checks: [
      check(
        'model',
        'open and done boxes are told apart',
        shown === 'a:open b:open c:done nested:open' || shown,
      ),
      check('files', 'a tick changes one sign and no other byte', changed.length === 0 || changed.join()),
    ],
  };
}

/** A second one that would work on a plan while the first does. */
async function twoEngines(): Promise<Seen> {
  const repo = await PlanRepo.make([{}]);
  try {
    const taken = await takeRunner(repo.folder, 'cli');
    if (taken.kind !== 'taken') throw new CannotJudge('the plan is taken already');
    const caller = { runs: repo.parts.runs, human: denyAll, by: 'cli' as const };
    const plan = new Plan(repo.folder, caller);
    const again = await takeRunner(repo.folder, 'cli');
    const holder = again.kind === 'busy' ? again.runner : undefined;
    const refused = await plan.interview({ noMoreQuestions: true }, new AbortController().signal).then(
      () => 'written',
      (error: Error) => error.message,
    );
    await taken.lock.release();
    const names = (text: string): boolean =>
      text.includes(String(process.pid)) && text.includes(holder?.since.slice(0, 10) ?? '?');
    return {
      decision: again.kind === 'busy' ? 'error' : 'allow',
      checks: [
        check(
          'shown',
          'the refusal names the process and since when it works',
          (refused !== 'written' && names(refused)) || refused,
        ),
        check(
          'records',
          'the holder is known by its process and its start',
          holder?.pid === process.pid && !Number.isNaN(Date.parse(holder.since)),
        ),
      ],
    };
  } finally {
    await repo.remove();
  }
}

async function limited(said: string): Promise<Seen> {
  const [, status = '', seconds = ''] = /^(\d{3}) retry-after (\d+)$/.exec(said) ?? [];
  if (status !== '429') throw new CannotJudge(`a provider that says ${said}`);
  const repo = await PlanRepo.make([{}]);
  const stop = new AbortController();
  let requests = 0;
  try {
    const { telos } = scriptedTelos(repo.config, () => {
      requests++;
      return [
        new TelosError('rate_limit', 'Too many requests.', { retryAfterMs: Number(seconds) * 1000 }),
      ] as never;
    });
    const plan = new Plan(repo.folder, { runs: telos, human: denyAll, by: 'cli' });
    await plan.acceptCard(await plan.card());
    const running = plan.run({ slots: 1, unattended: true, goOnRed: async () => true }, stop.signal);
    const lines = () =>
      repo
        .read('journal.jsonl')
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line));
    for (let tries = 0; tries < 300 && !lines().some(({ type }) => type === 'waiting'); tries++)
      await delay(100);
    const waiting = lines().find(({ type }) => type === 'waiting');
    const asked = requests;
    await delay(1500);
    stop.abort();
    await running;
    const wait = Date.parse(waiting?.until) - Date.parse(waiting?.ts);
    return {
      decision: 'any',
      checks: [
        check(
          'records',
          'it notes until when it waits',
          Math.abs(wait - Number(seconds) * 1000) < 60_000 || `${wait}`,
        ),
        check(
          'model',
          'nothing is asked meanwhile',
          (requests === asked && asked <= 2) || `${requests} requests`,
        ),
      ],
    };
  } finally {
    stop.abort();
    await repo.remove();
  }
}

/** A runner that is killed: at the moment that is named, or as often as is said. */
async function crashed(when: string): Promise<Seen> {
  const count = Number(/\b(\d+) random points/.exec(when)?.[1] ?? 1);
  const isAtVerdict = /approve\(\)/.test(when);
  if (!isAtVerdict && count === 1) throw new CannotJudge(`a crash ${when}`);
  const plan = await PlanWorld.make(isAtVerdict ? 2 : 12, isAtVerdict ? 1 : 2);
  const random = seeded(count);
  const grown: string[] = [];
  let [progress, ticked] = ['', false];
  const progressNow = (): string => {
    const file = join(plan.repo, '.telos/plans/bakery/progress.txt');
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  };
  const moment = async (exit: Promise<unknown>): Promise<unknown> => {
    if (!isAtVerdict) return Promise.race([delay(100 + random() * 1500), exit]);
    const seen = () => plan.journal().some(({ type, approved }) => type === 'verdict' && approved);
    while (!seen()) await delay(5);
    return undefined;
  };
  try {
    for (let report: unknown; report === undefined && plan.problems.length === 0; ) {
      const runner = plan.start();
      if (plan.kills < count) {
        await moment(runner.report);
        if (runner.child.exitCode === null && runner.child.pid !== undefined) {
          process.kill(runner.child.pid, 'SIGKILL');
          await runner.report;
          if (isAtVerdict)
            ticked = /\[x\]/.test(readFileSync(join(plan.repo, '.telos/plans/bakery/prds/001-s.md'), 'utf8'));
          plan.noteKill();
          const now = progressNow();
          if (!now.startsWith(progress)) grown.push(`lost at kill ${plan.kills}`);
          progress = now;
          continue;
        }
      }
      report = await runner.report;
    }
    plan.verify();
    const commits = plan.git('log', '--format=%(trailers:key=Telos-Story,valueonly)', 'main..telos/bakery');
    const ids = commits.split(/\n+/).filter(Boolean).sort();
    return {
      decision: 'any',
      checks: [
        check('end', 'it comes to its end after every kill', plan.kills > 0 || 'it was not killed'),
        check(
          'records',
          'nothing is lost, done twice or paid twice',
          (plan.problems.length === 0 && ids.join() === [...plan.stories.keys()].sort().join()) ||
            `${plan.problems.join('; ')} ${ids.join()}`,
        ),
        check('files', 'the log only grows', grown.length === 0 || grown.join()),
        ...(isAtVerdict ? [check('files', 'the box was not ticked when it was killed', !ticked)] : []),
      ],
    };
  } finally {
    plan.remove();
  }
}
