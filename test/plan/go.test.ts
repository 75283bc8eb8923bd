/** `telos plan go` brings projects as they are from a goal to a merged branch, and goes on where it was left. */
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { tempFolder } from '../fakes/tempFolder.ts';
import { skipBecause } from '../skipBecause.ts';
import { agreeable, calls, once, type PlanWorld, planWorld, type StepModel, writes } from './planWorld.ts';

/** One story, which adds a file; its check needs what the worktrees are set up with. */
const oneStory = (command: string, path = 'src/added.js'): StepModel => ({
  ...agreeable,
  interview: once(calls('submit_round', { ready: true, questions: [] })),
  plan: once(calls('submit_plan', { text: '# Plan\n\nNorth Star: one more file.\n' })),
  split: once(
    calls('submit_story', {
      title: 'Add a file',
      criteria: [`${path} is there`],
      touches: [path],
      checks: [{ name: 'works', command: `test -f ${path} && ${command}` }],
    }),
  ),
  coder: once(writes({ [path]: 'added\n' })),
});

describe('telos plan go', function () {
  this.timeout(180_000);
  let world: PlanWorld;
  let close: (() => void)[] = [];
  afterEach(async () => {
    for (const end of close) end();
    close = [];
    await world.close();
  });

  const add = (files: Readonly<Record<string, string | Buffer>>, dir = world.repo): void => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(dir, path)), { recursive: true });
      writeFileSync(join(dir, path), text);
    }
  };
  const commit = (): void => {
    world.git('add', '--all');
    world.git('commit', '-qm', 'the project');
  };
  /** From the goal to a branch that has it, in one command and without a question. */
  const goes = async (path = 'src/added.js'): Promise<string> => {
    const { code, stderr } = await world.plan('go', 'One more file', '--name', 'site', '--yes', '--merge');
    assert.equal(code, 0, stderr);
    assert.match(stderr, /site: done, 1 of 1 stories passed[\s\S]*Merged into main/);
    assert.equal(world.git('show', `main:${path}`), 'added\n');
    assert.deepEqual(
      world.journal().filter(({ type }) => type === 'question_parked'),
      [],
    );
    assert.equal(world.git('status', '--porcelain', '--', ':!.telos').trim(), '');
    return stderr;
  };

  it('brings a project with packages of a registry, in workspaces, to a merged branch', async () => {
    world = await planWorld([], oneStory('node packages/app/run.js'));
    const registry = await registryWith('tiny-part', 'module.exports = 1;\n');
    close.push(() => registry.server.close());
    add({
      '.gitignore': 'node_modules\n.telos\n',
      '.npmrc': `registry=${registry.url}\n`,
      'package.json': '{"name":"shop","version":"1.0.0","workspaces":["packages/*"]}',
      'packages/lib/package.json': '{"name":"lib","version":"1.0.0"}',
      'packages/lib/index.js': "module.exports = require('tiny-part') + 1;\n",
      'packages/app/package.json':
        '{"name":"app","version":"1.0.0","dependencies":{"lib":"1.0.0","tiny-part":"1.0.0"}}',
      'packages/app/run.js': "process.exitCode = require('lib') === 2 ? 0 : 1;\n",
    });
    await program(world, 'npm', 'install', '--package-lock-only', '--ignore-scripts');
    commit();
    const said = await goes();
    assert.match(said, /Setup commands:\n {2}npm ci\n/);
  });

  it('brings a workspace of pnpm to a merged branch', async function () {
    const pnpm = new URL('../../node_modules/pnpm', import.meta.url);
    if (!existsSync(pnpm)) return skipBecause(this, 'pnpm is not installed');
    world = await planWorld([], oneStory('pnpm --filter app run works'));
    // No program of a project is used: the user has it elsewhere.
    const own = join(world.home.folder.path, '.local/share/pnpm');
    cpSync(pnpm, own, { recursive: true });
    symlinkSync('pnpm.cjs', join(own, 'bin/pnpm'));
    world.home.env['PATH'] = `${join(own, 'bin')}:${process.env['PATH']}`;
    const registry = await registryWith('tiny-part', 'module.exports = 1;\n');
    close.push(() => registry.server.close());
    add({
      '.gitignore': 'node_modules\n.telos\n',
      '.npmrc': `registry=${registry.url}\n`,
      'pnpm-workspace.yaml': 'packages:\n  - packages/*\n',
      'package.json': '{"name":"shop","version":"1.0.0","private":true}',
      'packages/lib/package.json': '{"name":"lib","version":"1.0.0","dependencies":{"tiny-part":"1.0.0"}}',
      'packages/lib/index.js': "module.exports = require('tiny-part') + 1;\n",
      'packages/app/package.json':
        '{"name":"app","version":"1.0.0","scripts":{"works":"node run.js"},"dependencies":{"lib":"workspace:*"}}',
      'packages/app/run.js': "process.exitCode = require('lib') === 2 ? 0 : 1;\n",
    });
    await program(world, join(own, 'bin/pnpm'), 'install', '--lockfile-only', '--ignore-scripts');
    commit();
    const said = await goes();
    assert.match(said, /Setup commands:\n {2}pnpm install --frozen-lockfile\n/);
  });

  it('brings a Go module that needs another to a merged branch', async function () {
    if (!isThere('go')) return skipBecause(this, 'Go is not installed');
    world = await planWorld([], oneStory('go test ./...', 'src/added.txt'));
    const proxy = tempFolder();
    close.push(() => proxy.remove());
    makeModule(proxy.path);
    await program(
      world,
      'go',
      'env',
      '-w',
      `GOPROXY=file://${proxy.path}`,
      'GOSUMDB=off',
      'GOFLAGS=-modcacherw',
    );
    add({
      '.gitignore': '.telos\n',
      'go.mod': 'module example.com/shop\n\ngo 1.19\n\nrequire example.com/part v1.0.0\n',
      'shop.go': 'package shop\n\nimport "example.com/part"\n\nfunc Two() int { return part.One + 1 }\n',
      'shop_test.go':
        'package shop\n\nimport "testing"\n\nfunc TestTwo(t *testing.T) {\n\tif Two() != 2 {\n\t\tt.Fail()\n\t}\n}\n',
    });
    await program(world, 'go', 'mod', 'tidy');
    commit();
    const said = await goes('src/added.txt');
    assert.match(said, /Setup commands:\n {2}go mod download\n/);
  });

  it('brings a project of 25,900 files to a merged branch', async () => {
    world = await planWorld([], oneStory('test -f files/d7/f104.txt'));
    const files = Array.from({ length: 25_900 }, (_, at) => [`files/d${at % 97}/f${at}.txt`, `${at}\n`]);
    add({ '.gitignore': '.telos\n', ...Object.fromEntries(files) });
    commit();
    await goes();
  });

  it('brings a Python project with an environment and a wheel to a merged branch', async () => {
    world = await planWorld([], oneStory('.venv/bin/python -c "import tinypart"', 'src/added.txt'));
    add({
      '.gitignore': '.venv\n.telos\n__pycache__\n',
      'requirements.txt': '--no-index\n--find-links wheels\ntinypart==1.0\n',
      'wheels/.keep': '',
    });
    makeWheel(join(world.repo, 'wheels'));
    commit();
    const said = await goes('src/added.txt');
    assert.match(said, /python3 -m venv \.venv/);
  });

  it('brings a project with a submodule and pointers of Git LFS to a merged branch', async () => {
    world = await planWorld([], oneStory('test -f lib/part.js && grep -q git-lfs big.bin'));
    const part = tempFolder();
    close.push(() => part.remove());
    const git = (...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', ...args], {
        cwd: part.path,
      });
    git('init', '-q');
    add({ 'part.js': 'part\n' }, part.path);
    git('add', '.');
    git('commit', '-qm', 'part');
    world.home.folder.add({ '.gitconfig': '[protocol "file"]\n\tallow = always\n' });
    world.git('submodule', '--quiet', 'add', part.path, 'lib');
    const oid = '4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393';
    add({
      '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n',
      'big.bin': `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize 12345\n`,
      '.gitignore': '.telos\n',
    });
    commit();
    const said = await goes();
    assert.match(said, /git submodule update --init --recursive/);
    assert.match(said, /only a pointer of Git LFS/);
  });

  it('stops where only the user can say more, and the same command goes on', async () => {
    let answered = '';
    world = await planWorld([], {
      ...oneStory('true'),
      interview: (turn, _attempt, { body }) => {
        answered = JSON.stringify(body.messages[0]);
        const ready = answered.includes('A: sqlite');
        return turn > 0 ? {} : calls('submit_round', { ready, questions: ready ? [] : ['Which database?'] });
      },
    });
    const asked = await world.plan('go', 'One more file', '--name', 'site');
    assert.equal(asked.code, 3, asked.stderr);
    assert.match(asked.stderr, /1\. Which database\?[\s\S]*interview\.md, then: telos plan go --name site\n/);
    const file = join(world.repo, '.telos/plans/site/interview.md');
    assert.match(readFileSync(file, 'utf8'), /\nQ: Which database\?\nA: \n$/);
    writeFileSync(file, readFileSync(file, 'utf8').replace(/A: \n$/, 'A: sqlite\n'));
    const shown = await world.plan('go', 'One more file');
    assert.equal(shown.code, 3, shown.stderr);
    const page =
      /Going on with the plan 'site'[\s\S]*North Star: one more file[\s\S]*US-001 Add a file \(1 criterion\)[\s\S]*works: test -f[\s\S]*telos plan go --name site --yes/;
    assert.match(shown.stderr, page);
    const requests = world.server.requests.length;
    const done = await world.plan('go', '--name', 'site', '--yes');
    assert.equal(done.code, 0, done.stderr);
    assert.match(done.stderr, /Next: telos plan finish site --merge/);
    assert.ok(
      world.server.requests.slice(requests).every(({ body }) => !toolsOf(body).includes('submit_story')),
    );
    const merged = await world.plan('go', '--squash');
    assert.equal(merged.code, 0, merged.stderr);
    assert.match((await world.plan('go')).stderr, /^site: done, merged into main as one commit/m);
    const both = await world.plan('go', 'x', '--merge', '--squash');
    assert.equal(both.code, 2);
  });
});

const toolsOf = (body: { tools?: { name: string }[] }): string[] =>
  (body.tools ?? []).map(({ name }) => name);

/** Not at once: the registry answers in this process. */
const program = async ({ repo, home }: PlanWorld, name: string, ...args: string[]): Promise<void> => {
  const env = { PATH: process.env['PATH'] ?? '', HOME: home.folder.path };
  await promisify(execFile)(name, args, { cwd: repo, env });
};

const isThere = (name: string): boolean => spawnSync(name, ['version']).error === undefined;

/** A registry on this machine with one package. */
async function registryWith(name: string, code: string): Promise<{ url: string; server: Server }> {
  const folder = tempFolder();
  writeFileSync(join(folder.path, 'package.json'), JSON.stringify({ name, version: '1.0.0' }));
  writeFileSync(join(folder.path, 'index.js'), code);
  execFileSync('npm', ['pack', '--silent', '--offline'], { cwd: folder.path, stdio: 'ignore' });
  const tarball = readFileSync(join(folder.path, `${name}-1.0.0.tgz`));
  folder.remove();
  const server = createServer(({ url: path = '' }, response) => {
    if (path.endsWith('.tgz')) return void response.end(tarball);
    if (path !== `/${name}`) return void response.writeHead(404).end('{}');
    const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
    const dist = { tarball: `${url}/${name}/-/${name}-1.0.0.tgz`, integrity };
    const versions = { '1.0.0': { name, version: '1.0.0', dist } };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ name, 'dist-tags': { latest: '1.0.0' }, versions }));
  });
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, server };
}

function makeWheel(folder: string): void {
  const lines = [
    'import sys, zipfile',
    "z = zipfile.ZipFile(sys.argv[1] + '/tinypart-1.0-py3-none-any.whl', 'w')",
    "z.writestr('tinypart.py', 'part = 1\\n')",
    "d = 'tinypart-1.0.dist-info/'",
    "z.writestr(d + 'METADATA', 'Metadata-Version: 2.1\\nName: tinypart\\nVersion: 1.0\\n')",
    "z.writestr(d + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')",
    "z.writestr(d + 'RECORD', 'tinypart.py,,\\n' + d + 'METADATA,,\\n' + d + 'WHEEL,,\\n' + d + 'RECORD,,\\n')",
    'z.close()',
  ];
  execFileSync('python3', ['-c', lines.join('\n'), folder]);
}

/** A folder that serves one Go module, as a proxy of modules does. */
function makeModule(folder: string): void {
  const place = join(folder, 'example.com/part/@v');
  mkdirSync(place, { recursive: true });
  const mod = 'module example.com/part\n\ngo 1.19\n';
  writeFileSync(join(place, 'list'), 'v1.0.0\n');
  writeFileSync(join(place, 'v1.0.0.info'), '{"Version":"v1.0.0","Time":"2024-01-01T00:00:00Z"}');
  writeFileSync(join(place, 'v1.0.0.mod'), mod);
  const lines = [
    'import sys, zipfile',
    "z = zipfile.ZipFile(sys.argv[1] + '/v1.0.0.zip', 'w')",
    "z.writestr('example.com/part@v1.0.0/go.mod', sys.argv[2])",
    "z.writestr('example.com/part@v1.0.0/part.go', 'package part\\n\\nconst One = 1\\n')",
    'z.close()',
  ];
  execFileSync('python3', ['-c', lines.join('\n'), place, mod]);
}
