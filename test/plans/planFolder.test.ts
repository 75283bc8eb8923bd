import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readJournal } from '../../src/plans/journal.ts';
import { isPlanName, PlanFolder, slug } from '../../src/plans/planFolder.ts';
import { isBranch } from '../../src/plans/planSettings.ts';
import { type GitRepo, gitRepo } from '../fakes/gitRepo.ts';

describe('the folder of a plan', () => {
  let repo: GitRepo;
  beforeEach(() => {
    repo = gitRepo();
  });
  afterEach(() => repo.remove());

  it('is made once, listed, and keeps its machine state out of git', async () => {
    const folder = await PlanFolder.create(repo.path, 'bakery', 'Sell bread');
    assert.deepEqual(PlanFolder.list(repo.path), ['bakery']);
    const [first] = await readJournal(folder.journal);
    assert.deepEqual([first?.type, folder.name], ['plan_created', 'bakery']);
    await assert.rejects(PlanFolder.create(repo.path, 'bakery', 'again'), /There is a plan 'bakery' already/);
    repo.add({
      '.telos/plans/bakery/inbox/1.json': '{}',
      '.telos/plans/bakery/runner.1.lock': '',
      '.telos/plans/bakery/checks/a.txt': '',
      '.telos/plans/bakery/prds/01-a.md': '',
    });
    repo.git('add', '-A');
    assert.deepEqual(repo.git('diff', '--cached', '--name-only').split('\n'), [
      '.telos/.gitignore',
      '.telos/plans/bakery/plan.json',
      '.telos/plans/bakery/prds/01-a.md',
    ]);
  });

  it('leaves a .gitignore that is there as it is', async () => {
    repo.add({ '.telos/.gitignore': 'mine\n' });
    await PlanFolder.create(repo.path, 'bakery', 'g');
    assert.equal(readFileSync(join(repo.path, '.telos/.gitignore'), 'utf8'), 'mine\n');
  });

  it('is made whole where its making was cut off', async () => {
    mkdirSync(join(repo.path, '.telos/plans/bakery'), { recursive: true });
    const folder = await PlanFolder.create(repo.path, 'bakery', 'g');
    assert.equal((await readJournal(folder.journal)).length, 1);
  });

  it('takes names that are safe in a path, a ref and a branch', async () => {
    for (const name of ['..', 'a/b', '', 'A', 'ä', 'x'.repeat(41), '.git']) {
      assert.equal(isPlanName(name), false, name);
      assert.throws(() => PlanFolder.open(repo.path, name), /is not a name for a plan/);
    }
    const wrong = (): unknown => PlanFolder.open(repo.path, 'none');
    assert.throws(wrong, /There is no plan 'none'\. There are no plans here yet\.$/);
    await PlanFolder.create(repo.path, 'bakery', 'A shop');
    assert.throws(wrong, /There is no plan 'none'\. The plans here: bakery\.$/);
    assert.equal(slug('Eine Bäckerei: Brot & mehr!'), 'eine-backerei-brot-mehr');
  });

  for (const place of ['.telos', '.telos/plans', '.telos/plans/bakery', '.telos/plans/bakery/prds']) {
    it(`follows no link at ${place}`, async () => {
      const elsewhere = join(repo.folder.path, 'elsewhere');
      mkdirSync(join(elsewhere, 'plans/bakery/prds'), { recursive: true });
      mkdirSync(join(elsewhere, 'bakery/prds'), { recursive: true });
      writeFileSync(join(elsewhere, 'plan.json'), '{}');
      writeFileSync(join(elsewhere, '01-secret.md'), 'secret');
      mkdirSync(join(repo.path, place, '..'), { recursive: true });
      symlinkSync(elsewhere, join(repo.path, place));
      const folder = new PlanFolder(join(repo.path, '.telos/plans/bakery'), repo.path);
      assert.throws(() => folder.readPrds(), /is a link/);
      await assert.rejects(folder.write('prds/01-a.md', 'x'), /is a link/);
      assert.equal(existsSync(join(elsewhere, '01-a.md')), false);
    });
  }

  it('writes through no link and reads no file outside', async () => {
    const folder = await PlanFolder.create(repo.path, 'bakery', 'g');
    symlinkSync(join(repo.path, 'README.md'), folder.path('prd.json'));
    await assert.rejects(folder.write('prd.json', '{}'), /is a link/);
    assert.throws(() => folder.read('prd.json'), /is a link/);
    assert.throws(() => folder.read('..', '..', '..', 'README.md'), /is not a file of the plan/);
    assert.equal(readFileSync(join(repo.path, 'README.md'), 'utf8'), '# Bakery\n');
  });

  it('reads the settings that a person writes, and says what is wrong with them', async () => {
    const folder = await PlanFolder.create(repo.path, 'bakery', 'g');
    const usual = await folder.settings();
    assert.deepEqual([usual.branch, usual.parallel, usual.slot.ports], ['telos/bakery', 1, 10]);
    await folder.write(
      'plan.json',
      '{"branch":"feature/bread","parallel":4,"checks":["npm test",{"name":"types","command":"tsc"}],"slot":{"link":["./node_modules/"]},"limits":{"maxCost":5}}',
    );
    const settings = await folder.settings();
    assert.deepEqual(settings.checks, [
      { name: 'check 1', command: 'npm test' },
      { name: 'types', command: 'tsc' },
    ]);
    assert.deepEqual(
      [settings.branch, settings.slot.link, settings.limits],
      ['feature/bread', ['node_modules'], { maxCost: 5 }],
    );
    const wrong = {
      branch: '--force',
      parallel: 99,
      slot: { copy: ['../secret', '/etc/passwd', '.git/config'] },
      limits: { maxCost: 'much' },
      setup: 'npm ci',
    };
    await folder.write('plan.json', JSON.stringify(wrong));
    const said = await folder.settings().then(
      () => '',
      (error: Error) => error.message,
    );
    for (const part of [
      '--force',
      'parallel',
      '../secret',
      '/etc/passwd',
      '.git/config',
      'maxCost',
      'setup',
      'Correct it',
    ])
      assert.ok(said.includes(part), `${part} in ${said}`);
    await folder.write('plan.json', '{');
    await assert.rejects(folder.settings(), /is not JSON/);
  });

  it('names branches that git takes and no option', () => {
    for (const name of ['telos/x', 'a', 'feature/b.c-d']) assert.equal(isBranch(name), true, name);
    for (const name of ['-x', 'a..b', 'a.lock', 'a/', 'refs/heads/a', 'HEAD', 'a b', 'a//b', 'a\nb', ''])
      assert.equal(isBranch(name), false, name);
  });
});
