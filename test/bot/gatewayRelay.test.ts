/** The Discord bot behind a proxy: its requests, its lasting connection, and that connection again after it broke off. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { promisify } from 'node:util';
import { Gateway } from '../../src/bot/gateway.ts';
import type { Handlers } from '../../src/bot/handlers.ts';
import { followProxies } from '../../src/engine/tools/wayOut.ts';
import { eventually } from '../eventually.ts';
import { botToken, DiscordServer, ids } from '../fakes/discordServer.ts';
import { type FakeProxy, startProxy } from '../fakes/proxyServer.ts';
import { tempFolder } from '../fakes/tempFolder.ts';

describe('the bot behind a proxy', () => {
  const temp = tempFolder();
  let discord: DiscordServer;
  let proxy: FakeProxy;
  beforeEach(async () => {
    discord = await DiscordServer.start();
    discord.behaviour.gateways = ['ws://gateway.test', 'ws://again.test'];
    const { port } = new URL(discord.url);
    const names = ['api.test', 'gateway.test', 'again.test'];
    proxy = await startProxy({
      ports: Object.fromEntries(names.map(name => [name, Number(port)])),
      login: 'me:word',
    });
  });
  afterEach(async () => {
    followProxies({});
    await discord.close();
    await proxy.close();
  });
  after(() => temp.remove());

  const ignore = async (): Promise<void> => undefined;
  const handlers = (said: string[], failed: string[] = []): Handlers => ({
    slash: ignore,
    click: ignore,
    submitted: ignore,
    typing: ignore,
    said: async ({ text }) => void said.push(text),
    joined: ignore,
    failed: why => void failed.push(why),
    closed: why => void failed.push(why),
  });
  const withLogin = (login: string): Record<string, string> => ({
    HTTP_PROXY: proxy.url.replace('//', `//${login}@`),
  });

  it('reaches Discord, hears it, writes with files, and comes back by the other address', async () => {
    followProxies(withLogin('me:word'));
    const heard: string[] = [];
    const bot = new Gateway({ api: 'http://api.test/api', readsMessages: true }, handlers(heard));
    await bot.connect(botToken);
    try {
      const file = { name: 'a.txt', data: 'the file' };
      await bot.post(ids.telos, { content: 'with a file', files: [file] });
      assert.deepEqual(
        discord.said(ids.telos).map(({ content }) => content),
        ['with a file'],
      );
      discord.say('one');
      await eventually(() => assert.deepEqual(heard.slice(-1), ['one']));
      discord.gateway.disturb('drop');
      discord.say('two');
      await eventually(() => assert.deepEqual(heard.slice(-1), ['two']));
      assert.ok(
        discord.gateway.received.some(({ op }) => op === 6),
        'the session goes on',
      );
    } finally {
      await bot.close();
    }
    const ways = new Set(proxy.asked.map(one => one.replace(/^(\w+ (?:http:\/\/)?[\w.:]+).*/, '$1')));
    assert.deepEqual([...ways].sort(), [
      'CONNECT again.test:80',
      'CONNECT gateway.test:80',
      'GET http://api.test',
      'POST http://api.test',
    ]);
  });

  it('says that the proxy wants a login', async () => {
    followProxies(withLogin('me:other'));
    const bot = new Gateway({ api: 'http://api.test/api', readsMessages: false }, handlers([]));
    await assert.rejects(bot.connect(botToken), /The proxy 127\.0\.0\.1:\d+ wants a name and a password/);
  });

  it('asks for a secure connection inside of the tunnel, and looks at its certificate', async () => {
    const [cert, key] = [join(temp.path, 'server.pem'), join(temp.path, 'server.key')];
    const names = 'subjectAltName=DNS:api.test,DNS:gateway.test,DNS:again.test';
    const args = [
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-days',
      '2',
      '-subj',
      '/CN=api.test',
      '-addext',
      names,
    ];
    execFileSync('openssl', [...args, '-keyout', key, '-out', cert], { stdio: 'ignore' });
    const behind = Number(new URL(discord.url).port);
    discord.behaviour.gateways = ['wss://gateway.test', 'wss://again.test'];
    const safe = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, socket => {
      const onward = connect(behind, '127.0.0.1');
      for (const one of [socket, onward]) one.on('error', () => one.destroy());
      onward.pipe(socket).pipe(onward);
    });
    await new Promise<void>(resolve => safe.listen(0, '127.0.0.1', resolve));
    const { port } = safe.address() as AddressInfo;
    const tunnels = await startProxy({ ports: { 'api.test': port, 'gateway.test': port } });
    const at = (path: string): string => JSON.stringify(new URL(`../../src/${path}`, import.meta.url));
    const script = `
      const { followProxies } = await import(${at('engine/tools/wayOut.ts')});
      const { Gateway } = await import(${at('bot/gateway.ts')});
      followProxies(process.env);
      const nothing = async () => undefined;
      const handlers = { slash: nothing, click: nothing, submitted: nothing, typing: nothing, said: nothing, joined: nothing, failed: nothing, closed: nothing };
      const bot = new Gateway({ api: 'https://api.test/api', readsMessages: false }, handlers);
      await bot.connect(process.env.TOKEN).then(() => console.log(bot.name), error => console.log(error.message));
      await bot.close();`;
    const run = async (more: Record<string, string>): Promise<string> => {
      const env = { PATH: process.env['PATH'], HTTPS_PROXY: tunnels.url, TOKEN: botToken, ...more };
      return (await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { env }))
        .stdout;
    };
    try {
      assert.equal(await run({ NODE_EXTRA_CA_CERTS: cert }), 'telos\n');
      assert.deepEqual([...new Set(tunnels.asked)], ['CONNECT api.test:443', 'CONNECT gateway.test:443']);
      assert.match(await run({}), /certificate/i);
    } finally {
      await tunnels.close();
      safe.close();
    }
  });
});
