import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findBox } from '../../src/engine/box/findBox.ts';
import { resultsAt } from '../../src/plans/commitChecks.ts';
import { dirtyFiles } from '../../src/plans/gitCheckouts.ts';
import { defaultSettings } from '../../src/plans/planSettings.ts';
import { preflight, setupDigest } from '../../src/plans/preflight.ts';
import type { CheckResult, Story } from '../../src/protocol/plan.ts';
import { PlanRepo } from '../fakes/planRepo.ts';
import { tempFolder } from '../fakes/tempFolder.ts';

describe('preflight', () => {
  let plan: PlanRepo;
  afterEach(() => plan.remove());

  async function look(
    stories: readonly Partial<Story>[],
    more: Parameters<typeof PlanRepo.make>[1] = {},
    files = {},
    known: ReadonlyMap<string, CheckResult> = new Map(),
  ) {
    plan = await PlanRepo.make(stories, more, files);
    writeFileSync(join(plan.repo, 'src/mine.js'), 'mine');
    const { folder, git, slots, settings, base } = plan.parts;
    const parts = {
      folder,
      git,
      slots,
      settings,
      base,
      stories: plan.state.stories.map(({ story }) => story),
    };
    const around = { problems: [], dirtyFiles: await dirtyFiles(git), env: {}, config: plan.config };
    return preflight({ ...parts, ...around, known }, new AbortController().signal);
  }
  const check = (name: string, command: string, more = {}) => ({ name, command, ...more });

  it('runs each check once on the commit that the plan begins with, and sees no file that is not in it', async () => {
    const unit = check('unit', 'echo ran >> ../ran.txt; node --test');
    const seen = await look([{ checks: [unit] }, { checks: [unit, check('own', 'test -f src/mine.js')] }]);
    assert.deepEqual(
      seen.event.checks.map(({ name, exitCode }) => [name, exitCode]),
      [
        ['unit', 0],
        ['own', 1],
      ],
    );
    assert.deepEqual(seen.red, []);
    assert.deepEqual(seen.stops, []);
    assert.equal(seen.hadTests, true);
    assert.equal(seen.atBase.get(unit.command)?.exitCode, 0);
    assert.ok(seen.event.dirtyFiles.includes('src/mine.js'));
  });

  it('tells what is red already from what is not built yet', async () => {
    const broken = "import test from 'node:test';\ntest('a', () => { throw new Error('old'); });\n";
    const seen = await look(
      [
        { checks: [check('unit', 'node --test'), check('shared', 'exit 3')] },
        {
          checks: [
            check('shared', 'exit 3'),
            check('new', 'node src/new.js'),
            check('tdd', 'node --test --no-warnings', { red: true }),
          ],
        },
      ],
      { checks: [check('whole', 'exit 4')] },
      { 'test/old.test.js': broken },
    );
    assert.deepEqual(seen.red.map(({ name }) => name).sort(), ['shared', 'unit', 'whole']);
  });

  it('runs the checks in a box where one works, and outside only what fails there and passes outside', async () => {
    const elsewhere = tempFolder({ 'data.txt': 'needed' });
    const [inside, needs, red] = [
      check(
        'inside',
        `touch ${elsewhere.path}/made; git update-ref refs/heads/moved HEAD; git log -1 && test -f src/add.js`,
      ),
      check('needs', `cat ${elsewhere.path}/data.txt`),
      check('red', `cat ${elsewhere.path}/missing.txt`),
    ];
    const seen = await look([{ checks: [inside, needs, red] }]);
    const { works } = await findBox({ env: plan.config.env });
    const of = ({ command }: { command: string }) => seen.atBase.get(command);
    assert.deepEqual([of(inside)?.exitCode, of(needs)?.exitCode, of(red)?.exitCode], [0, 0, 1]);
    assert.deepEqual([of(inside)?.outside, of(needs)?.outside], [undefined, works ? true : undefined]);
    assert.equal(existsSync(join(elsewhere.path, 'made')), !works);
    assert.equal(existsSync(join(plan.repo, '.git/refs/heads/moved')), !works);
    const told =
      /The check "needs" fails in the sandbox for commands and passes outside of it, so it runs outside\./;
    assert.equal(told.test(seen.event.problems.join('\n')), works);
    elsewhere.remove();
  });

  it('says in a sentence what hinders the plan', async () => {
    const seen = await look([{ checks: [], items: [] }, { checks: [check('x', 'no-such-program-at-all')] }]);
    const text = seen.event.problems.join('\n');
    assert.match(text, /US-001 has no check/);
    assert.match(text, /US-001 has no criteria/);
    assert.deepEqual(seen.stops.length, 1);
  });

  it('stops with the sentence that helps where a check lacks a program, a package or the network', async () => {
    const seen = await look(
      [
        {
          checks: [
            check('lint', 'no-such-linter src'),
            check('unit', 'node src/uses.js'),
            check('net', "echo 'getaddrinfo EAI_AGAIN api.example.com'; exit 1"),
            check('new', './bin/new-tool'),
            check('own', 'node src/not-built-yet.js'),
            check('brings', 'no-such-tool-yet', { red: true }),
          ],
        },
      ],
      {},
      {
        'package.json': '{"name":"shop","dependencies":{"left-pad":"1"}}',
        'package-lock.json': '{}',
        'src/uses.js': "require('left-pad');",
      },
    );
    assert.deepEqual(
      seen.stops.map(one => /^The check "(\w+)" cannot run in a worktree: (.*?)[.(,]/.exec(one)?.slice(1)),
      [
        ['lint', 'the program no-such-linter was not found'],
        ['unit', 'the package left-pad is not installed'],
        ['net', 'it tries to reach the network '],
      ],
    );
    for (const one of seen.stops) assert.match(one, /telos plan setup --plan shop 'npm ci'$/);
  });

  it('says how a check may leave the sandbox where the project is set up', async () => {
    const net = check('net', "echo 'getaddrinfo EAI_AGAIN api.example.com'; exit 1");
    const fetched = check('fetched', "echo 'npx: EAI_AGAIN'; false npx");
    const seen = await look([{ checks: [net, fetched] }], { setup: ['true'] });
    assert.equal(seen.stops.length, 1);
    assert.match(seen.stops[0] ?? '', /"net" .*network \(api\.example\.com\).*outside: true/);
  });

  it('holds only for the way in which the work trees are set up', () => {
    const settings = defaultSettings('shop');
    const other = { ...settings, setup: ['npm ci'] };
    assert.notEqual(setupDigest(settings), setupDigest(other));
    assert.equal(setupDigest(other), setupDigest({ ...other, protect: ['x'] }));
  });

  it('says how a program of the packages is called that no one else has', async () => {
    plan = await PlanRepo.make([{ checks: [check('kept', 'own-tool --version')] }], { setup: ['true'] });
    mkdirSync(join(plan.repo, 'node_modules/.bin'), { recursive: true });
    writeFileSync(join(plan.repo, 'node_modules/.bin/own-tool'), '#!/bin/sh\n', { mode: 0o755 });
    const { folder, git, slots, settings, base } = plan.parts;
    const stories = plan.state.stories.map(({ story }) => story);
    const around = { problems: [], dirtyFiles: [], env: {}, config: plan.config, known: new Map() };
    const parts = { folder, git, slots, settings, base, stories, ...around };
    const { stops } = await preflight(parts, new AbortController().signal);
    assert.deepEqual(stops, [
      'The check "kept" cannot run in a worktree: the program own-tool was not found. It stands in node_modules alone: write "npx own-tool".',
    ]);
  });

  it('does not begin where the setup fails', async () => {
    const seen = await look([{}], { setup: ['echo no network; exit 5'] });
    assert.match(seen.stops.join('\n'), /exit code 5 while the worktree was set up[\s\S]*no network/);
    assert.deepEqual(seen.event.checks, []);
  });

  it('runs no check whose result is known from when the plan began', async () => {
    const [old, fresh] = [check('old', 'echo again > ../again.txt'), check('new', 'test -f src/add.js')];
    const known = new Map([[old.command, { name: 'old', exitCode: 7, ms: 1, output: 'so it was' }]]);
    const seen = await look([{ checks: [old, fresh] }], {}, {}, known);
    assert.deepEqual(
      [old, fresh].map(({ command }) => seen.atBase.get(command)?.exitCode),
      [7, 0],
    );
    assert.deepEqual(
      new Set(seen.event.checks.map(({ command }) => command)),
      new Set([old.command, fresh.command]),
    );
  });

  it('runs each check on the files of the commit alone, also where looking at them takes longer than the checks', async () => {
    await look([{}]);
    const { slots, settings, base } = plan.parts;
    let looks = 0;
    const slow = Object.assign(Object.create(slots), {
      ...Object.fromEntries(
        (['openSlot', 'boxOf', 'environmentOf', 'needsSetup', 'noteSetup'] as const).map(name => [
          name,
          slots[name].bind(slots),
        ]),
      ),
      reset: async (...args: Parameters<typeof slots.reset>) => {
        looks += 1;
        await delay(600);
        return slots.reset(...args);
      },
    });
    const at = async (...checks: readonly string[]) => {
      looks = 0;
      const wanted = checks.map((command, index) => check(String(index), command));
      const parts = { slots: slow, settings, base, env: {}, config: plan.config };
      const { results } = await resultsAt(parts, base, wanted, new AbortController().signal, 'base');
      return checks.map(command => results.get(command)?.result.exitCode);
    };
    assert.deepEqual(await at('true', 'test -f src/add.js', ': none'), [0, 0, 0]);
    assert.equal(looks, 2);
    for (const path of ['left.txt', 'out/left.txt']) {
      const leaves = `mkdir -p out && echo left > ${path}`;
      assert.deepEqual(await at(leaves, `test -f ${path}`, `test ! -f ${path}`), [0, 1, 0]);
    }
    assert.deepEqual(
      await at('echo x >> src/add.js', 'grep -x x src/add.js', 'rm src/add.js', 'ls src/add.js'),
      [...[0, 1, 0, 0]],
    );
  });

  it('installs packages that a commit of the plan brings without their scripts', async () => {
    const show = 'echo "ignoring: $npm_config_ignore_scripts" > out/setup.txt';
    await look(
      [{}],
      { setup: [`mkdir -p out; ${show}`], slot: { copy: [], link: [], keep: ['out'], ports: 10 } },
      { 'package-lock.json': '{}' },
    );
    const { slots, settings, base, git } = plan.parts;
    const parts = { slots, settings, base, env: {}, config: plan.config };
    const text = check('text', 'cat out/setup.txt');
    const at = async (commit: string): Promise<string | undefined> => {
      const { results } = await resultsAt(parts, commit, [text], new AbortController().signal, new Map());
      return results.get(text.command)?.result.output;
    };
    assert.equal(await at(base), 'ignoring:');
    writeFileSync(join(plan.repo, 'package-lock.json'), '{"a":1}');
    plan.shell('git', 'commit', '-qam', 'more');
    const more = (await git.tip('HEAD'))!;
    assert.equal(await at(more), 'ignoring: true');
    assert.equal(await at(base), 'ignoring:');
  });
});
