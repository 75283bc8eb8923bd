/** The npm package as a stranger gets it: packed for real, installed without a network, run, imported and type-checked. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';
import { installedNodes, packageVersion } from './cliProcess.ts';
import { packTelos } from './packedTelos.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));

describe('the npm package', function () {
  this.timeout(180_000);
  let folder: TempFolder;
  let app: string;
  let tarball: string;
  let copy: string;
  const tool = (name: string): string => join(root, 'node_modules/.bin', name);

  before(async () => {
    folder = tempFolder({ 'app/package.json': '{"name":"app","type":"module"}', 'home/.keep': '' });
    app = join(folder.path, 'app');
    ({ tarball, copy } = await packTelos(folder.path));
    const cache = join(folder.path, 'empty-cache');
    await run('npm', ['install', '--offline', '--no-audit', '--no-fund', '--cache', cache, tarball], {
      cwd: app,
    });
  });
  after(() => folder.remove());

  it('writes no words of MCP servers to the console', () => {
    const dist = join(app, 'node_modules/telos/dist');
    const files = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter(name =>
      /\.(?:js|cjs|code)$/.test(name),
    );
    assert.ok(files.length > 50);
    for (const name of files)
      assert.doesNotMatch(readFileSync(join(dist, name), 'utf8'), /console\.\w+\([`"']\[mcp-sdk\]/, name);
  });

  it('brings the command line and the library, and no other package', async () => {
    const installed = readdirSync(join(app, 'node_modules')).filter(name => !name.startsWith('.'));
    assert.deepEqual(installed, ['telos']);
    const top = readdirSync(join(app, 'node_modules/telos')).sort();
    const pages = ['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md'];
    assert.deepEqual(top, [...pages, 'dist', 'docs', 'media', 'package.json']);
    const readme = readFileSync(join(app, 'node_modules/telos/README.md'), 'utf8');
    for (const [, page = ''] of readme.matchAll(/\]\((docs\/[^)#]+)/g))
      assert.ok(existsSync(join(app, 'node_modules/telos', page)), page);
    const { stdout } = await run('npx', ['telos', '--version'], { cwd: app });
    assert.equal(stdout.trim(), packageVersion());
    const help = await run('npx', ['telos-agent', 'execute', '--help'], { cwd: app });
    assert.match(help.stdout, /--max-iterations/);
  });

  for (const { version, path } of installedNodes()) {
    it(`plays the demo under Node ${version}`, async () => {
      const env = { PATH: process.env['PATH'] ?? '', HOME: join(folder.path, 'home'), TMPDIR: folder.path };
      const { stdout } = await run(path, [join(app, 'node_modules/telos/dist/cli.js'), 'demo'], {
        cwd: app,
        env,
      });
      assert.match(stdout, /Your plan is in `today\.md`/);
    });

    it(`builds a gallery of the sample under Node ${version}`, async () => {
      const env = { PATH: process.env['PATH'] ?? '', HOME: join(folder.path, 'home'), TMPDIR: folder.path };
      const telos = join(app, 'node_modules/telos');
      const site = join(folder.path, `gallery-${version}`);
      await run(
        path,
        [
          join(telos, 'dist/cli.js'),
          'gallery',
          'build',
          join(telos, 'media/demo/skills/kairos'),
          '--output',
          site,
        ],
        { cwd: app, env },
      );
      for (const name of ['index.html', 'gallery.css', 'gallery.js', 'index.json'])
        assert.ok(existsSync(join(site, name)), name);
    });

    it(`builds a story from a program under Node ${version}`, async () => {
      const turns = [
        { toolCalls: [{ name: 'write_file', input: { path: 'made.html', content: 'by a coder' } }] },
        { text: ['Done.'] },
        { toolCalls: [{ name: 'approve', input: { summary: 'Seen.' } }] },
        { text: ['Done.'] },
      ];
      const server = await startAnthropicServer({ turns });
      const shop = `shop-${version}`;
      folder.add({
        [`${shop}/prds/01-home.md`]: '# Home\n- [ ] there is a page\n',
        'app/builds.js': `
import { TelosOrchestrator, loadConfig } from 'telos';
const [projectDir, home, url] = process.argv.slice(2);
const env = { PATH: process.env.PATH, ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: 'test-key-0123456789' };
const orchestrator = new TelosOrchestrator({ projectDir, config: loadConfig({ env, home, cwd: projectDir }) });
const { success, iterations } = await orchestrator.execute();
console.log(JSON.stringify({ success, iterations }));
`,
      });
      try {
        const given = ['builds.js', join(folder.path, shop), join(folder.path, 'home'), server.url];
        const { stdout } = await run(path, given, { cwd: app });
        assert.deepEqual(JSON.parse(stdout), { success: true, iterations: 1 });
        assert.equal(readFileSync(join(folder.path, shop, 'made.html'), 'utf8'), 'by a coder');
      } finally {
        await server.close();
      }
    });

    it(`runs a skill from a program under Node ${version}`, async () => {
      const call = { name: 'write_file', input: { path: 'made.md', content: 'by a program' } };
      const server = await startAnthropicServer({ turns: [{ toolCalls: [call] }, { text: ['Done.'] }] });
      folder.add({
        'lib/skills/ada/agent.toml': 'working_dir = "."\n',
        'lib/skills/ada/skills/make/SKILL.md': '---\ndescription: Makes\n---\nMake it.\n',
        'lib/work/.keep': '',
        'app/program.js': `
import { Telos, loadConfig, denyAll, allowAll } from 'telos';
const [home, url] = process.argv.slice(2);
const env = { PATH: process.env.PATH, ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: 'test-key-0123456789', TELOS_SKILLS_DIR: home + '/skills' };
const telos = Telos.open(loadConfig({ env, home, cwd: home + '/work' }));
const types = [];
for await (const event of telos.run({ text: '/make' }, allowAll, new AbortController().signal)) types.push(event.type, event.outcome);
console.log(JSON.stringify({ types, denyAll: typeof denyAll.approve }));
`,
      });
      try {
        const lib = join(folder.path, 'lib');
        const { stdout } = await run(path, ['program.js', lib, server.url], { cwd: app });
        const { types, denyAll } = JSON.parse(stdout);
        assert.equal(denyAll, 'function');
        assert.deepEqual(types.slice(-2), ['run_end', 'completed']);
        assert.equal(readFileSync(join(lib, 'work/made.md'), 'utf8'), 'by a program');
      } finally {
        await server.close();
      }
    });
  }

  it('leaves the extension a VSIX of at most 3,000,000 bytes, with no part twice', async () => {
    const manifest = JSON.parse(readFileSync(join(copy, 'package.json'), 'utf8'));
    // It is built already.
    delete manifest.scripts['vscode:prepublish'];
    writeFileSync(join(copy, 'package.json'), JSON.stringify(manifest));
    const vsix = join(folder.path, 'telos.vsix');
    const { stdout } = await run(tool('vsce'), ['package', '--no-dependencies', '--out', vsix], {
      cwd: copy,
    });
    assert.match(stdout, /Packaged/);
    const size = statSync(vsix).size;
    assert.ok(size <= 3_000_000, `${size} bytes`);
    const { stdout: listed } = await run(tool('vsce'), ['ls', '--no-dependencies'], { cwd: copy });
    const parts = listed.split('\n').filter(name => /^dist\/chunks\/.*\.(?:js|code)$/.test(name));
    const large = parts.filter(name => statSync(join(copy, name)).size > 5_000).map(name => basename(name));
    const named = large
      .map(name => name.replace(/-[A-Z0-9]{8}(?=\.)/, ''))
      .filter(name => !/^chunk\./.test(name));
    assert.ok(named.includes('openai.js'), named.join(' '));
    const twice = named.filter((name, at) => named.indexOf(name) !== at);
    assert.deepEqual(twice, []);
  });

  it('has types that hold under --strict with the libraries checked too, also in the docs', async () => {
    folder.add({
      'app/uses.ts': `
import { type Human, loadConfig, denyAll, type RunEvent, Telos, TelosError, allowAll } from 'telos';
export const telos: Telos = Telos.open(loadConfig({ env: {} }));
export const human: Human = new Date().getDay() > 3 ? denyAll : allowAll;
export async function outcome(text: string): Promise<string | undefined> {
  const events: RunEvent[] = [];
  for await (const event of telos.run({ text }, human, new AbortController().signal)) events.push(event);
  const last = events.at(-1);
  return last?.type === 'run_end' ? last.outcome : undefined;
}
export const code = (error: unknown): string | undefined => (error instanceof TelosError ? error.code : undefined);
// @ts-expect-error: a request has words
telos.run({}, human, new AbortController().signal);
`,
      'app/orchestrates.ts': `
import { TelosOrchestrator, type RalphResult } from 'telos';
const orchestrator = new TelosOrchestrator({ projectDir: './myproject', contextDir: './notes', maxIterations: 10, model: 'opus', timeout: 900 });
const runner = orchestrator.interview();
export const { questions, ready } = await runner.processRound({ transcript: 'North Star: a bakery', noMoreQuestions: false });
export const paths: string[] = [await orchestrator.generatePlan(runner.getContext()), await orchestrator.generatePrds()];
export const result: RalphResult = await orchestrator.execute({ onEvent: event => console.log(event.type) });
export const [first]: readonly { status: string; details: string }[] = result.iterationResults;
export const facts: [boolean, number, number, string | null] = [result.success, result.iterations, result.denialStreak, result.error];
// @ts-expect-error: there is no orchestrator without a project
new TelosOrchestrator({});
`,
    });
    const types = ['--types', 'node', '--typeRoots', join(root, 'node_modules/@types')];
    const strict = ['--strict', '--noEmit', '--module', 'nodenext', '--target', 'es2023', ...types];
    const page = readFileSync(join(root, 'docs/library.md'), 'utf8');
    const examples = [...page.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, text = '']) => text);
    assert.ok(examples.length >= 2);
    for (const [at, text] of examples.entries()) folder.add({ [`app/example${at}.ts`]: text });
    const files = ['uses.ts', 'orchestrates.ts', ...examples.map((_, at) => `example${at}.ts`)];
    await run(tool('tsc'), [...strict, ...files], { cwd: app }).catch(error => assert.fail(error.stdout));
  });
});
