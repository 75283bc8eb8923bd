/** How Telos learns of a newer version, from a stand-in of the registry on loopback, and what it says then. */
import assert from 'node:assert/strict';
import { cpSync, existsSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { isNewer } from '../../src/cli/upgradeCommand.ts';
import { wayInstalled } from '../../src/cli/wayInstalled.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';
import { type CliHome, cliHome, program } from './cliProcess.ts';
import { openTerminalSession } from './screen.ts';

const sha512 = `sha512-${'a'.repeat(86)}==`;

describe('a newer version', function () {
  this.timeout(60_000);
  let home: CliHome;
  let registry: Server;
  let asked: string[];
  let newest: string;
  let status: number;
  let env: Record<string, string>;

  beforeEach(async () => {
    home = cliHome();
    asked = [];
    newest = '0.9.0';
    status = 200;
    registry = createServer(({ url = '' }, response) => {
      asked.push(url);
      const versions = { [newest]: { dist: { integrity: sha512 } } };
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ 'dist-tags': { latest: newest }, versions }));
    });
    await new Promise<void>(listening => registry.listen(0, '127.0.0.1', listening));
    const { port } = registry.address() as AddressInfo;
    env = { ...home.env, npm_config_registry: `http://127.0.0.1:${port}/` };
  });
  afterEach(() => {
    registry.close().closeAllConnections();
    home.remove();
  });

  /** Returns the program as npm installs it for all folders, published unless it says otherwise. */
  function installed(more: object = {}): string {
    const at = 'prefix/lib/node_modules/telos';
    cpSync(dirname(dirname(program())), join(home.folder.path, at), { recursive: true });
    const manifest = JSON.parse(readFileSync(join(home.folder.path, at, 'package.json'), 'utf8'));
    const own = { ...manifest, version: '0.5.0', private: undefined, ...more };
    home.folder.add({ [`${at}/package.json`]: JSON.stringify(own) });
    return join(home.folder.path, at, 'dist/cli.js');
  }

  const doctorOn = async (file: string, more: Record<string, string> = {}): Promise<string> => {
    const line = `'${process.execPath}' '${file}' doctor`;
    const session = openTerminalSession(line, { cwd: home.workDir, env: { ...env, ...more } });
    await session.ended();
    assert.match(session.screen.text, /Settings:/);
    return session.screen.text;
  };
  const notice = /Telos 0\.9\.0 is there, and this is 0\.5\.0\. `telos upgrade` says how to get it\./;

  it('is said by upgrade, with the command for this way of installing', async () => {
    const file = installed();
    const call = () => home.runProcess(['upgrade'], { program: file, env });
    const newer = await call();
    assert.equal(newer.code, 0, newer.stderr);
    assert.match(newer.stdout, /^Telos 0\.9\.0 is there, and this is 0\.5\.0\. It was installed by npm/);
    assert.match(newer.stdout, /^ {4}npm install --global telos@latest$/m);
    newest = '0.5.0';
    assert.equal((await call()).stdout, 'This is Telos 0.5.0, the newest version.\n');
    status = 500;
    const unknown = await call();
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /Whether there is a newer version is not known: /);
    assert.doesNotMatch(unknown.stderr, /installed/);
    assert.match(unknown.stdout, /npm install --global telos@latest/);
  });

  it('is not asked for where Telos was not published', async () => {
    const { code, stdout } = await home.runProcess(['upgrade'], {
      program: installed({ private: true }),
      env,
    });
    assert.deepEqual([code, asked], [0, []]);
    assert.match(stdout, /git pull && npm ci && npm pack/);
    assert.doesNotMatch(await doctorOn(installed({ private: true })), /is there/);
    assert.deepEqual(asked, []);
  });

  it('is said by the doctor on a terminal, which asks once a day', async () => {
    const file = installed();
    assert.match(await doctorOn(file), notice);
    assert.match(await doctorOn(file), notice);
    assert.deepEqual(asked, ['/telos']);
    const kept = join(home.dataDir, 'newest.json');
    assert.ok(existsSync(kept));
    home.folder.add({
      'data/newest.json': JSON.stringify({ askedAt: Date.now() - 90_000_000, version: '0.6.0' }),
    });
    assert.match(await doctorOn(file), notice);
    assert.equal(asked.length, 2);
    for (const wrong of ['{', '[]', '{"askedAt":"x"}', `{"askedAt":${Date.now() + 9e10}}`]) {
      home.folder.add({ 'data/newest.json': wrong });
      assert.match(await doctorOn(file), notice, wrong);
    }
  });

  it('is not asked for in pipes, by a build, or when it is switched off; a registry that refuses is asked once', async () => {
    const file = installed();
    for (const args of [['doctor'], ['doctor', '--json'], ['doctor', '--report'], ['agents']])
      assert.doesNotMatch((await home.runProcess(args, { program: file, env })).stderr, /is there/);
    assert.doesNotMatch(await doctorOn(file, { CI: 'true' }), /is there/);
    assert.doesNotMatch(await doctorOn(file, { TELOS_UPDATE_CHECK: 'off' }), /is there/);
    assert.deepEqual(asked, []);
    status = 503;
    for (const _ of [1, 2]) assert.doesNotMatch(await doctorOn(file), /is there|registry/);
    assert.deepEqual(asked.length, 1);
  });
});

describe('the way Telos was installed', () => {
  let folder: TempFolder;
  before(() => {
    folder = tempFolder({
      'clone/.git/HEAD': '',
      'shop/package.json': '{}',
      'shop/node_modules/@garden/telos/package.json': '{}',
      'prefix/lib/node_modules/telos/package.json': '{}',
    });
  });
  after(() => folder.remove());

  it('is told by its folder', () => {
    const own = { name: '@garden/telos', version: '1.0.0' };
    const commands = {
      '/opt/homebrew/Cellar/telos/1.0.0/libexec/lib/node_modules/@garden/telos': 'brew upgrade telos',
      '/nix/store/abc-telos-1.0.0/lib/node_modules/@garden/telos': 'nix profile upgrade telos',
      '/home/ada/.npm/_npx/1f/node_modules/@garden/telos': 'npx @garden/telos@latest',
      '/home/ada/.local/share/pnpm/global/5/node_modules/@garden/telos':
        'pnpm add --global @garden/telos@latest',
      '/home/ada/.bun/install/global/node_modules/@garden/telos': 'bun add --global @garden/telos@latest',
      '/home/ada/.config/yarn/global/node_modules/@garden/telos': 'yarn global add @garden/telos@latest',
      'C:\\Users\\ada\\AppData\\Local\\Yarn\\Data\\global\\node_modules\\@garden\\telos':
        'yarn global add @garden/telos@latest',
      [join(folder.path, 'shop/node_modules/@garden/telos')]: 'npm install @garden/telos@latest',
      [join(folder.path, 'prefix/lib/node_modules/telos')]: 'npm install --global @garden/telos@latest',
      [join(folder.path, 'clone')]: 'git pull && npm ci && npm run build',
      '/home/ada/.vscode/extensions/garden.telos-1.0.0':
        'In VS Code, run "Extensions: Check for Extension Updates".',
    };
    for (const [at, command] of Object.entries(commands))
      assert.equal(wayInstalled(at, own).command, command);
    const packed = wayInstalled('/usr/lib/node_modules/telos', { ...own, private: true });
    assert.deepEqual(
      [packed.isPublished, packed.command],
      [false, 'git pull && npm ci && npm pack && npm install --global ./telos-*.tgz'],
    );
  });

  it('has versions in their order', () => {
    const order = ['0.9.0-rc.1', '0.9.0', '0.10.0', '1.0.0', '1.0.1', '10.0.0'];
    for (const [at, version] of order.entries())
      for (const [other, than] of order.entries())
        assert.equal(isNewer(version, than), at > other, `${version} after ${than}`);
    assert.equal(isNewer('latest', '1.0.0'), false);
  });
});
