/** A git remote of which the connection is cut in one place after another. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { PlanRemote } from '../../src/fleet/stories/planRemote.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import { type GitDaemon, startGitDaemon } from './gitDaemon.ts';

/** Passes bytes on to a git server, and ends the first connection after so many bytes of an answer. */
async function cutter(target: URL, after: number) {
  let isCut = false;
  let answered = 0;
  const server = createServer(client => {
    const upstream = connect(Number(target.port), target.hostname);
    const end = (): void => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) socket.on('error', end).on('close', end);
    client.pipe(upstream);
    upstream.on('data', part => {
      if (isCut) return void client.write(part);
      const rest = after - answered;
      answered += part.length;
      if (part.length < rest) return void client.write(part);
      isCut = true;
      client.end(part.subarray(0, rest), end);
    });
  });
  // It does not keep the tests from ending where one fails.
  server.unref();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(target);
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    isCut: () => isCut,
    close: () => void server.close(),
  };
}

describe('a git remote', function () {
  this.timeout(120_000);
  const folder = tempFolder();
  let daemon: GitDaemon;
  let commit: string;
  const git = (...args: readonly string[]): string =>
    execFileSync('git', args, {
      cwd: folder.path,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    }).trim();

  before(async () => {
    daemon = await startGitDaemon();
    git('init', '-q', '-b', 'main');
    git('-c', 'user.name=A', '-c', 'user.email=a@b', 'commit', '-q', '--allow-empty', '-m', 'one');
    commit = git('rev-parse', 'main');
  });
  after(async () => {
    await daemon.remove();
    folder.remove();
  });

  const open = (url: string, log: string[] = []): PlanRemote =>
    new PlanRemote({ url, dir: folder.path, env: process.env, log: line => log.push(line) });
  const signal = AbortSignal.timeout(110_000);

  it('may end a connection anywhere, and is asked again', async () => {
    const target = new URL(daemon.repository('cut'));
    await open(target.href).push(new Map([['refs/telos/site/a', commit]]), undefined, signal);
    const places = [1, 3, 4, 20, 90, 130, 170, 200, 230, 260, 290];
    const cut = await Promise.all(
      places.map(async (place, index) => {
        const proxy = await cutter(target, place);
        const ref = `refs/telos/site/b${index}`;
        const log: string[] = [];
        const remote = open(proxy.url, log);
        if (index % 3 === 0) await remote.push(new Map([[ref, commit]]), undefined, signal);
        else if (index % 3 === 1) await remote.fetch(['refs/telos/site/a'], signal);
        else assert.equal(await remote.tip('refs/telos/site/a', signal), commit);
        proxy.close();
        return proxy.isCut() && log.length === 2;
      }),
    );
    assert.ok(cut.filter(Boolean).length > 6, `${cut}`);
  });

  it('is not asked again once it has refused', async () => {
    const log: string[] = [];
    const remote = open(daemon.repository('refused'), log);
    await assert.rejects(remote.fetch(['refs/telos/none'], signal), /couldn't find remote ref/);
    assert.deepEqual(log, []);
  });
});
