import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Git } from '../../src/plans/git.ts';
import { lfsPointers } from '../../src/plans/gitCheckouts.ts';
import { problemsOf } from '../../src/plans/gitProblems.ts';
import { PlanFolder } from '../../src/plans/planFolder.ts';
import { detectSetup, proposeSetup } from '../../src/plans/projectSetup.ts';
import { type GitRepo, gitRepo } from '../fakes/gitRepo.ts';

const needs = '{"devDependencies":{"ava":"6"}}';
const venv = ['python3 -m venv .venv'];

describe('what a work tree of a project needs', () => {
  let repo: GitRepo;
  afterEach(() => repo.remove());
  const look = (files: Record<string, string>) => {
    repo = gitRepo({ 'README.md': 'x', ...files });
    return detectSetup(new Git(repo.path, repo.env));
  };

  const shapes: readonly (readonly [string, Record<string, string>, readonly string[], readonly string[]])[] =
    [
      ['npm', { 'package.json': needs, 'package-lock.json': '{}' }, ['npm ci'], ['node_modules']],
      [
        'a broken package.json',
        { 'package.json': '{', 'package-lock.json': '{' },
        ['npm ci'],
        ['node_modules'],
      ],
      [
        'a workspace of pnpm',
        { 'package.json': '{}', 'pnpm-lock.yaml': '', 'pnpm-workspace.yaml': '', 'a/package.json': needs },
        ['pnpm install --frozen-lockfile'],
        ['node_modules'],
      ],
      [
        'old yarn',
        { 'package.json': needs, 'yarn.lock': '' },
        ['yarn install --frozen-lockfile'],
        ['node_modules'],
      ],
      [
        'new yarn',
        { 'package.json': '{"packageManager":"yarn@4.1.0"}', 'yarn.lock': '' },
        ['yarn install --immutable'],
        ['node_modules'],
      ],
      ['bun', { 'package.json': needs, 'bun.lock': '' }, ['bun install --frozen-lockfile'], ['node_modules']],
      ['no lock file', { 'package.json': needs }, ['npm install --no-package-lock'], ['node_modules']],
      ['a package.json that needs nothing', { 'package.json': '{"name":"x"}' }, [], []],
      ['uv', { 'pyproject.toml': '', 'uv.lock': '' }, ['uv sync --frozen'], ['.venv']],
      [
        'poetry',
        { 'pyproject.toml': '', 'poetry.lock': '' },
        ['POETRY_VIRTUALENVS_IN_PROJECT=1 poetry install --no-interaction'],
        ['.venv'],
      ],
      [
        'requirements',
        { 'requirements.txt': 'x', 'requirements-dev.txt': 'y' },
        [...venv, '.venv/bin/python -m pip install -r requirements-dev.txt -r requirements.txt'],
        ['.venv'],
      ],
      ['Go', { 'go.mod': 'module x', 'go.sum': '' }, ['go mod download'], []],
      ['Rust', { 'Cargo.toml': '', 'Cargo.lock': '' }, ['cargo fetch --locked'], ['target']],
      [
        'a site beside a service',
        {
          'requirements.txt': '',
          'web/package-lock.json': '{}',
          'web/package.json': needs,
          'test/fixtures/package-lock.json': '{}',
        },
        [...venv, '.venv/bin/python -m pip install -r requirements.txt', 'cd web && npm ci'],
        ['.venv', 'node_modules'],
      ],
      ['nothing', {}, [], []],
    ];
  for (const [name, files, setup, keep] of shapes)
    it(`is found for ${name}`, async () => {
      const found = await look(files);
      assert.deepEqual([found.setup, found.slot.keep], [setup, keep]);
    });

  it('runs a package manager that only the project brings, in its version, and the one of the user where there is one', async () => {
    const files = { 'package.json': '{"devDependencies":{"pnpm":"^9.1.0"}}', 'pnpm-lock.yaml': '' };
    await look({ ...files, '.gitignore': 'node_modules\nbin\n' });
    const bin = join(repo.path, '..', `bin-of-${basename(repo.path)}`);
    const setup = async (PATH: string): Promise<readonly string[]> =>
      (await detectSetup(new Git(repo.path, { ...repo.env, PATH }))).setup;
    try {
      mkdirSync(bin);
      const git = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim();
      symlinkSync(git, join(bin, 'git'));
      assert.deepEqual(await setup(bin), ['npx -y pnpm@9.1.0 install --frozen-lockfile']);
      repo.add({ 'node_modules/.bin/pnpm': '', 'node_modules/pnpm/package.json': '{"version":"9.3.1"}' });
      const inProject = join(repo.path, 'node_modules/.bin');
      chmodSync(join(inProject, 'pnpm'), 0o755);
      assert.deepEqual(await setup(`${inProject}:${bin}`), ['npx -y pnpm@9.3.1 install --frozen-lockfile']);
      repo.add({ 'node_modules/pnpm/package.json': '{"version":"9; echo"}' });
      assert.deepEqual(await setup(bin), ['npx -y pnpm install --frozen-lockfile']);
      writeFileSync(join(bin, 'pnpm'), '#!/bin/sh\n', { mode: 0o755 });
      assert.deepEqual(await setup(bin), ['pnpm install --frozen-lockfile']);
    } finally {
      rmSync(bin, { recursive: true, force: true });
    }
  });

  it('is an environment of its own for a Python project in which the user has one', async () => {
    assert.deepEqual((await look({ 'pyproject.toml': '' })).setup, []);
    repo.add({ '.venv/pyvenv.cfg': '' });
    const { setup } = await detectSetup(new Git(repo.path, repo.env));
    assert.deepEqual(setup, [...venv, '.venv/bin/python -m pip install -e .']);
  });

  it('are the files that git ignores and the project reads: .env, and what .worktreeinclude names', async () => {
    await look({
      '.gitignore': '.env*\n!.env.example\n*.local\nbuild/\n',
      '.env.example': 'K=',
      '.worktreeinclude': 'a.local\nREADME.md\nbuild/\n',
    });
    repo.add({
      '.env': 'K=1',
      '.env.test': 'K=2',
      '.env.bak': '',
      'web/.env.local': '',
      'a.local': '',
      'b.local': '',
      'build/x': '',
    });
    const { slot } = await detectSetup(new Git(repo.path, repo.env));
    assert.deepEqual(slot.copy, ['.env', '.env.test', 'a.local', 'web/.env.local']);
  });

  it('is written to plan.json once, and never over what the user has chosen', async () => {
    await look({ 'package.json': needs, 'package-lock.json': '{}' });
    const folder = await PlanFolder.create(repo.path, 'shop', 'g');
    const git = new Git(repo.path, repo.env);
    await proposeSetup(folder, git);
    assert.deepEqual((await folder.settings()).setup, ['npm ci']);
    await folder.saveSettings({ ...(await folder.settings()), setup: ['mine'] });
    assert.equal(await proposeSetup(folder, git), undefined);
    assert.deepEqual((await folder.settings()).setup, ['mine']);
  });

  it('are pointers where the objects of Git LFS are not here, and that is said', async () => {
    const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n';
    await look({ '.gitattributes': '*.bin filter=lfs\n', 'big.bin': pointer, 'text.txt': pointer });
    const git = new Git(repo.path, repo.env);
    assert.deepEqual(await lfsPointers(git), ['big.bin']);
    const problems = await problemsOf(repo.path, { env: repo.env });
    assert.match(problems.map(({ text }) => text).join(' '), /big\.bin is only a pointer .*git lfs pull/);
    writeFileSync(join(repo.path, 'big.bin'), 'content');
    assert.deepEqual(await lfsPointers(git), []);
  });
});
