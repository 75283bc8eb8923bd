/** The files of a plan are the engine's alone: what a check or a command of a step does in its box reaches none of them. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { findBox } from '../../src/engine/box/findBox.ts';
import { LookedCheckBox } from '../../src/plans/checkLook.ts';
import { runCheck } from '../../src/plans/checks.ts';
import { approves, PlanRepo, writes } from '../fakes/planRepo.ts';

/** Tries every way to the files of the plan. Its name for `.telos` is put together, so that no one reads it in the words. */
const attack = (repo: string): string => `
const fs = require('node:fs'), path = require('node:path'), { execSync } = require('node:child_process');
const said = [], T = '.te' + 'los';
const attempt = (name, work) => { try { work(); said.push(name + ': done'); } catch (error) { said.push(name + ': ' + error.code); } };
const git = execSync('git rev-parse --path-format=absolute --git-common-dir').toString().trim();
const pointer = fs.statSync('.git').isFile() ? fs.readFileSync('.git', 'utf8').slice('gitdir: '.length).trim() : path.join(git, 'worktrees', 'none');
for (const root of [${JSON.stringify(repo)}, path.dirname(git), path.resolve(pointer, '../../..'), process.cwd()]) {
  const plan = path.join(root, T, 'plans', 'shop');
  attempt('mkdir', () => fs.mkdirSync(plan, { recursive: true }));
  attempt('write', () => fs.writeFileSync(path.join(plan, 'prd.json'), 'FORGED'));
  attempt('append', () => fs.appendFileSync(path.join(plan, 'journal.jsonl'), 'FORGED\\n'));
  attempt('inbox', () => { fs.mkdirSync(path.join(plan, 'inbox'), { recursive: true }); fs.writeFileSync(path.join(plan, 'inbox', 'x.json'), 'FORGED'); });
  attempt('replace', () => { fs.writeFileSync('FORGED.tmp', 'FORGED'); fs.renameSync('FORGED.tmp', path.join(plan, 'plan.json')); });
  attempt('move', () => fs.renameSync(path.join(root, T), path.join(root, T + '-moved')));
  attempt('hard link', () => { fs.linkSync(path.join(plan, 'journal.jsonl'), 'held'); fs.appendFileSync('held', 'FORGED'); });
}
attempt('link', () => { fs.symlinkSync(path.join(${JSON.stringify(repo)}, T), 'led'); fs.writeFileSync('led/plans/shop/prd.json', 'FORGED'); });
attempt('proc', () => fs.writeFileSync('/proc/1/root' + ${JSON.stringify(repo)} + '/' + T + '/plans/shop/prd.json', 'FORGED'));
console.log(said.join('\\n'));
`;

/** Returns the paths below a folder whose files hold the word. */
function forgedIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && !entry.parentPath.includes('/.git'))
    .map(entry => join(entry.parentPath, entry.name))
    .filter(path => readFileSync(path, 'utf8').includes('FORGED'));
}

describe('the files of a plan', function () {
  this.timeout(60_000);
  let plan: PlanRepo;
  before(async function () {
    if (!(await findBox({ env: { PATH: process.env['PATH'] ?? '' } })).works) this.skip();
  });
  afterEach(() => plan?.remove());

  const check = { name: 'unit', command: 'node scripts/attack.cjs' };
  async function make(files: Record<string, string> = {}): Promise<void> {
    plan = await PlanRepo.make([{ checks: [check] }], {}, { ...files, 'scripts/attack.cjs': '' });
    writeFileSync(join(plan.repo, 'scripts/attack.cjs'), attack(plan.repo));
    plan.shell('git', 'commit', '-qam', 'attack');
    plan.with({ base: plan.shell('git', 'rev-parse', 'HEAD') });
  }
  const forged = (): string[] => forgedIn(join(plan.repo, '.telos'));
  /** What the attack does without a box, or else it shows nothing. */
  async function assertItWorksOutside(): Promise<void> {
    await runCheck(check, { dir: plan.repo }, plan.config, new AbortController().signal);
    const names = forged().map(path => basename(path));
    assert.deepEqual(names.sort(), ['journal.jsonl', 'plan.json', 'prd.json', 'x.json']);
  }

  it('are out of reach of a check and of a command of the coder, and do not come with the work', async () => {
    await make();
    plan.record('US-001.a1.coder', [
      writes('src/work.js', 'export const work = 1;\n'),
      ['run_command', { command: check.command }],
    ]);
    plan.record('US-001.a1.reviewer', [approves()]);
    assert.equal(await plan.attempt('US-001'), 'approved');
    assert.match(plan.last('check_ended')?.output ?? '', /^write: [\s\S]*^proc: /m);
    assert.deepEqual(forged(), []);
    const paths = plan.shell('git', 'ls-tree', '-r', '--name-only', plan.settings.branch).split('\n');
    assert.ok(paths.includes('src/work.js'));
    assert.deepEqual(
      paths.filter(path => path.startsWith('.telos/')),
      [],
    );
    await assertItWorksOutside();
  });

  it('stay as they are behind a check in the project itself, which is told so', async () => {
    await make();
    const box = new LookedCheckBox({ ...plan.config, sandbox: 'required' }, plan.repo);
    const place = { dir: plan.repo, box };
    const { output } = await runCheck(check, place, plan.config, new AbortController().signal);
    assert.match(output, /^write: done/m, 'it has written, before its folder');
    assert.match(output, /\.telos\/plans\/shop\/journal\.jsonl.* was not kept/);
    assert.deepEqual(forged(), []);
    await assertItWorksOutside();
  });
});
