/** `telos key`: a key is asked for unseen, checked with its provider, and kept only if it works. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type CliHome, cliHome, program } from './cliProcess.ts';
import { openTerminalSession } from './screen.ts';

const good = 'sk-ant-good-0123456789';

describe('telos key', () => {
  let home: CliHome;
  let server: Server;
  let env: Record<string, string>;
  /** In place of the list of models. */
  let listed: string | undefined;
  const envFile = (): string => join(home.folder.path, 'config/.env');

  beforeEach(async () => {
    home = cliHome();
    listed = undefined;
    server = createServer(({ headers }, response) => {
      const isKnown = headers['x-api-key'] === good;
      response.writeHead(isKnown ? 200 : 401, { 'content-type': 'application/json' });
      response.end(listed ?? JSON.stringify({ data: [{ id: 'claude-a' }, { id: 'claude-b\x1b[2J' }] }));
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    env = { ...home.env, ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}` };
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
    home.remove();
  });

  /** Sends the key as a pipe does. */
  async function piped(key: string, args: string[]): Promise<{ code: number | null; said: string }> {
    const child = spawn(process.execPath, [program(), 'key', ...args], { env, cwd: home.workDir });
    child.stdin.end(`${key}\n`);
    const [out, side] = await Promise.all([text(child.stdout), text(child.stderr)]);
    return { code: child.exitCode, said: out + side };
  }

  it('keeps nothing of a key that is refused, and never shows it', async () => {
    const { said } = await piped('sk-ant-bad-0123456789', ['anthropic']);
    assert.match(said, /anthropic rejected this key\. Check it, or enter another one\. Nothing was saved\./);
    assert.equal(existsSync(envFile()), false);
    assert.doesNotMatch(said, /sk-ant/);
    assert.match(
      (await piped('two words', ['anthropic'])).said,
      /only letters, digits and signs, without spaces/,
    );
    assert.match(
      (await piped(good, ['nobody'])).said,
      /'nobody' is not a provider with a key\..*telos key anthropic/,
    );
  });

  it('keeps a key that works in its line of the file, for its owner alone', async () => {
    home.folder.add({ 'config/.env': '# mine\nANTHROPIC_API_KEY=old\nOTHER=1\n' });
    const { said } = await piped(good, ['ANTHROPIC']);
    assert.match(said, /The key works/);
    assert.equal(readFileSync(envFile(), 'utf8'), `# mine\nANTHROPIC_API_KEY=${good}\nOTHER=1\n`);
    assert.doesNotMatch(said, /sk-ant/);
  });

  it('says that a key works only where its server has said so', async () => {
    listed = '<html>Sign in to the network';
    const page = await piped(good, ['anthropic']);
    assert.match(page.said, /did not answer like a model's server .*Nothing was saved\./);
    assert.equal(existsSync(envFile()), false);
    listed = '{}';
    const { said } = await piped(good, ['anthropic']);
    assert.equal(existsSync(envFile()), true);
    assert.doesNotMatch(said, /works and was/);
    assert.match(said, /The key was saved in .* the first run shows whether it works\./);
  });

  it('asks on a terminal without showing the key, and offers the models', async () => {
    const session = openTerminalSession(`exec '${process.execPath}' '${program()}' key`, {
      cwd: home.workDir,
      env,
    });
    await session.shows(/1\. anthropic[\s\S]*Which provider\?/);
    await session.answers('1\n', /API key for anthropic/);
    session.type(`${good}\r`);
    await session.shows(/claude-a\n.*claude-b\\x1b\[2J[\s\S]*Which model\?/);
    await session.answers('claude-a\n', /The key works and was saved in/);
    assert.equal(await session.ended(), 0);
    assert.doesNotMatch(session.raw, /sk-ant/);
    const kept = readFileSync(envFile(), 'utf8');
    assert.equal(kept, `ANTHROPIC_API_KEY=${good}\nTELOS_PROVIDER=anthropic\nTELOS_MODEL=claude-a\n`);
    assert.equal(statSync(envFile()).mode & 0o077, 0);
  });
});
