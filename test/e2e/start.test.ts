/** `npm start` from outside: the address it prints, whom it lets in, and what it leaves behind. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { root } from '../vscode/paths.ts';
import { descendants, endTree, processTable } from '../vscode/processTree.ts';

interface Started {
  child: ChildProcess;
  output(): string;
  /** Resolves with the exit code. */
  ended: Promise<number | null>;
}

describe('npm start', () => {
  const started: Started[] = [];

  afterEach(async () => {
    for (const { child } of started.splice(0)) await endTree(child);
  });

  function start(...args: string[]): Started {
    const child = spawn(process.execPath, [join(root, 'test/vscode/start.ts'), '--no-open', ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString();
      });
    }
    const ended = new Promise<number | null>(resolve => child.once('close', resolve));
    const one = { child, output: () => output, ended };
    started.push(one);
    return one;
  }

  async function address(one: Started): Promise<URL> {
    for (;;) {
      const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(one.output()) ?? [];
      if (url) return new URL(url);
      assert.equal(one.child.exitCode, null, one.output());
      await new Promise(resolve => setTimeout(resolve, 50));
    }
  }

  it('serves the workbench to its own pages alone, and leaves no process and no folder after Ctrl-C', async () => {
    const one = start('--port', '0');
    const url = await address(one);
    assert.equal(await status(url, {}), 200);
    assert.equal(await status(url, { host: 'example.com' }), 403);
    assert.equal(await status(url, upgrade(url.origin)), 101);
    assert.equal(await status(url, upgrade('https://example.com')), 403);

    const [, world] = /The sample workspace is (.*);/.exec(one.output()) ?? [];
    assert.ok(world && existsSync(join(world, 'tasks.md')), 'the sample workspace is not there');
    const tree = await descendants(one.child.pid ?? 0);
    assert.ok(tree.length > 0);
    process.kill(-(one.child.pid ?? 0), 'SIGINT');
    assert.equal(await one.ended, 0, one.output());
    const living = new Set((await processTable()).map(({ pid }) => pid));
    assert.deepEqual(
      tree.filter(pid => living.has(pid)),
      [],
    );
    assert.equal(existsSync(world), false);
  });

  it('says that a port is taken, and which arguments there are', async () => {
    const holder = createServer();
    await new Promise<void>(resolve => holder.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = holder.address() as { port: number };
      const taken = start('--port', String(port));
      assert.equal(await taken.ended, 1);
      assert.match(taken.output(), new RegExp(`Port ${port} is taken`));
    } finally {
      holder.close();
    }
    const wrong = start('--prot', '1');
    assert.equal(await wrong.ended, 1);
    assert.match(wrong.output(), /--prot[\s\S]*Usage: npm start/);
  });
});

function upgrade(origin: string): Record<string, string> {
  return {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'c2l4dGVlbiBieXRlcyEhIQ==',
    origin,
  };
}

/** The status of the answer to a request with these headers. */
function status(url: URL, headers: Record<string, string>): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const path = '/?reconnectionToken=test&reconnection=false&skipWebSocketFrames=false';
    const asked = request(new URL('upgrade' in headers ? path : '/', url), { headers });
    asked.on('error', reject);
    asked.on('response', response => {
      response.resume();
      resolve(response.statusCode);
    });
    asked.on('upgrade', (response, socket) => {
      socket.destroy();
      resolve(response.statusCode);
    });
    asked.end();
  });
}
