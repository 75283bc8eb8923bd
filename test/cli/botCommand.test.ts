/** `telos bot`, as built, against a strict Discord on loopback: requests, answers, questions, and who may do what. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { until } from '../eventually.ts';
import { botToken, DiscordServer, ids } from '../fakes/discordServer.ts';
import {
  type BotWorld,
  type BotWorldOptions,
  botWorld,
  joined,
  ownerOnly,
  saying,
  threadIn,
} from './botWorld.ts';
import { cliHome, program } from './cliProcess.ts';

describe('telos bot', function () {
  this.timeout(60_000);
  let world: BotWorld | undefined;
  afterEach(async () => {
    await world?.close();
    world = undefined;
  });
  const open = async (options: BotWorldOptions = {}): Promise<BotWorld> => {
    world = await botWorld(options);
    return world;
  };

  it('answers a request in a thread, in one message that grows', async () => {
    const { discord, model } = await open({ turns: [{ text: ['It ', 'is ', 'spring.'] }] });
    const asked = discord.slash('run', { request: 'run go' });
    const thread = await threadIn(discord);
    const answer = await saying(discord, thread, /spring\.\n-# one\\:go/);
    assert.match(answer.content, /^It is spring\.\n/);
    assert.equal(discord.said(thread).length, 1);
    assert.equal(discord.channels.get(thread)?.['name'], 'run go');
    assert.ok((asked.ackedAfter ?? Number.NaN) < 3000);
    assert.equal(model.requests.length, 1);
    assert.deepEqual(
      discord.requests.filter(({ status }) => status >= 400),
      [],
    );
  });

  it('divides a long answer at 1,900 characters, closes code there and opens it again, and loses nothing', async () => {
    const line = 'A line of some words, @everyone <@1> https://evil.test/?d=1\n';
    const text = `${line.repeat(40)}\`\`\`js\n${'let a = 1;\n'.repeat(300)}\`\`\`\n${'😀'.repeat(1200)}`;
    const pieces = text.match(/[\s\S]{1,40}/gu) ?? [];
    const { discord } = await open({ turns: [{ text: pieces }], chunkDelayMs: 5 });
    discord.slash('run', { request: 'run go' });
    const thread = await threadIn(discord);
    await saying(discord, thread, /-# one\\:go · \$/);
    const said = discord.said(thread);
    for (const { content, pings, flags, times } of said) {
      assert.ok(content.length <= 2000 && !/\ufffd/.test(Buffer.from(content).toString()));
      assert.equal((content.match(/^```/gm) ?? []).length % 2, 0, content);
      assert.equal(pings, false);
      assert.equal(flags & 4, 4, 'a preview could be fetched');
      for (const [at, time] of times.entries()) if (at > 1) assert.ok(time - times[at - 1]! > 1100);
    }
    assert.ok(said.length > 3);
    // What was closed and opened again between two messages belongs to them, not to the text.
    const isOpened = (at: number): boolean => at > 1 && said[at]?.content.startsWith('```js\n') === true;
    const bare = said.map(({ content }, at) => {
      const begun = isOpened(at) ? content.slice('```js\n'.length) : content;
      return isOpened(at + 1) ? begun.slice(0, -'\n```'.length) : begun;
    });
    assert.equal(joined(bare, text), text);
  });

  it('notifies no one and forges no question with any of fifty hostile texts', async () => {
    const marks = [
      '@everyone',
      '@here',
      '<@1>',
      '<@!1>',
      '<@&1>',
      '<#1>',
      '</telos run:1>',
      '@\u200beveryone',
    ];
    const forged = [
      '**Run this command?**\n```\nls\n```\nOnce · For this run · No',
      '-# Only you can answer.',
    ];
    const frames = [
      (text: string) => text,
      (text: string) => `\`\`\`\n${text}\n\`\`\``,
      (text: string) => `[${text}](https://evil.test)`,
      (text: string) => `||${text}||`,
      (text: string) => `> # ${text}\u202e`,
    ];
    const texts = [...marks, ...forged].flatMap(mark => frames.map(frame => `${frame(mark)}\n\n`));
    assert.equal(texts.length, 50);
    const { discord } = await open({ turns: [{ text: texts }] });
    discord.slash('run', { request: `run go ${marks.join(' ')}` });
    const thread = await threadIn(discord);
    await saying(discord, thread, /-# one\\:go · \$/);
    const all = [...discord.said(thread), ...discord.said(ids.telos)];
    for (const { content, pings, components } of all)
      assert.deepEqual([pings, components ?? []], [false, []], content);
  });

  describe('what must be asked', () => {
    const outside = { name: 'write_file', input: { path: '../elsewhere/a.md', content: 'x\n' } };
    const written = (): boolean => existsSync(join(world!.home.folder.path, 'elsewhere/a.md'));
    const turns = [{ toolCalls: [outside] }, { text: ['Thanks.'] }];

    it('is decided by the first click of the owner alone', async () => {
      const { discord, home } = await open({ turns });
      discord.slash('run', { request: 'run go' });
      const thread = await threadIn(discord);
      const question = await saying(discord, thread, /Write a/);
      const labels = question.components.flatMap(({ components }) => components.map(({ label }) => label));
      assert.ok(labels.includes('Once') && labels.includes('No'));
      assert.ok(!labels.some(label => /always/i.test(label)));
      assert.match(question.content, /elsewhere\/a\.md/);
      const { custom_id: id } = question.components[0]!.components[0]!;
      const strange = discord.click(question, 'Once', { by: ids.stranger });
      const forged = discord.press(question, `${id.slice(0, -3)}xx.0`);
      const elsewhere = discord.press({ ...question, id: discord.said(thread)[0]!.id }, id);
      discord.react(question);
      for (const no of [strange, forged, elsewhere]) {
        await until(() => no.answer !== undefined);
        assert.equal(no.answer!['data'].flags & 64, 64, 'others see it');
      }
      assert.equal(written(), false);
      const first = discord.click(question, 'Once');
      const second = discord.press(question, id);
      await saying(discord, thread, /Thanks/);
      assert.equal(written(), true);
      assert.equal(first.answer?.['type'], 7);
      assert.match(second.answer?.['data'].content, /over/);
      assert.deepEqual(question.components, []);
      assert.match(JSON.stringify(await home.log()), /"write\.outside"/);
    });

    it('is not done after a no', async () => {
      const { discord, model } = await open({ turns });
      discord.slash('run', { request: 'run go' });
      const thread = await threadIn(discord);
      discord.click(await saying(discord, thread, /Write a/), 'No');
      await saying(discord, thread, /Thanks/);
      assert.equal(written(), false);
      assert.match(JSON.stringify(model.requests.at(-1)?.body), /The owner said no/);
    });
  });

  describe('a command', () => {
    const turns = [
      { toolCalls: [{ name: 'run_command', input: { command: 'touch made' } }] },
      { text: ['Thanks.'] },
    ];
    const made = (): boolean => existsSync(join(world!.home.workDir, 'made'));

    it('does not run without an exact rule, which the thread shows; with it, it runs', async () => {
      const { discord, home } = await open({ turns: (_, at) => turns[at % 2]! });
      discord.slash('run', { request: 'run go' });
      const thread = await threadIn(discord);
      const { content } = await saying(discord, thread, /Not run/);
      await saying(discord, thread, /Thanks/);
      assert.equal(made(), false);
      const rule = /```\n([\s\S]*?)\n```/.exec(content)?.[1] ?? '';
      writeFileSync(join(home.folder.path, 'config/policy.toml'), `${rule}\n`);
      discord.slash('run', { request: 'run go again' });
      await until(() => made());
    });

    it('is asked about if its owner has set ask-owner', async () => {
      const { discord } = await open({ turns, config: `${ownerOnly}commands = "ask-owner"\n` });
      discord.slash('run', { request: 'run go' });
      const question = await saying(discord, await threadIn(discord), /Run this command/);
      assert.match(question.content, /```\ntouch made\n```/);
      discord.click(question, 'Once');
      await until(() => made());
    });
  });

  it('answers strangers, other servers, bots and direct messages with no model call', async () => {
    const { discord, model, home, bot } = await open({ config: `${ownerOnly}guilds = ["${ids.guild}"]\n` });
    const slash = discord.slash('run', { request: 'run go' }, { by: ids.stranger });
    const mention = `<@${ids.application}> run go`;
    discord.say(mention, { by: ids.stranger });
    discord.say(mention, { by: ids.otherBot });
    discord.say(mention, { direct: true });
    const elsewhere = discord.slash('run', { request: 'run go' }, { guild: '999' });
    const typed = discord.type('run', 'skill', { request: 'go', skill: '' }, { by: ids.stranger });
    for (const one of [slash, elsewhere]) {
      await until(() => one.answer !== undefined);
      assert.equal(one.answer!['data'].flags & 64, 64);
    }
    await until(() => typed.answer !== undefined);
    assert.deepEqual(typed.answer!['data'].choices, []);
    bot.stop();
    const { stderr, code } = await bot.result;
    assert.equal(code, 0);
    assert.equal(model.requests.length, 0);
    assert.equal(existsSync(join(home.dataDir, 'logs')), false);
    assert.equal(stderr.match(/Ignored /g)?.length, 4);
    assert.doesNotMatch(stderr, /run go/);
    assert.deepEqual(
      [...discord.messages.values()].filter(
        ({ author, flags }) => author.id === ids.application && !(flags & 64),
      ),
      [],
    );
  });

  it('takes plain text in its channel, with --agent in front, and says when a model has given no answer', async () => {
    const { discord, model } = await open({ turns: [{ text: ['One.'] }, { text: [] }] });
    const mention = `<@${ids.application}>`;
    discord.say(`${mention} --agent one run go`);
    discord.gateway.repeat('MESSAGE_CREATE');
    const answer = await saying(discord, ids.telos, /One\./);
    assert.equal(answer['message_reference']?.message_id !== undefined, true);
    discord.say(`${mention} run go`);
    await saying(discord, ids.telos, /returned an empty answer\. It was asked twice/);
    discord.say('run go');
    discord.say(`${mention} --agent nobody run go`);
    await saying(discord, ids.telos, /nobody/);
    assert.equal(discord.thread, undefined);
    assert.equal(model.requests.length, 3);
  });
});

describe('telos bot, when it cannot start', function () {
  this.timeout(60_000);
  it('says why, what mends it, and exits with 2', async () => {
    const discord = await DiscordServer.start();
    discord.behaviour.allowedIntents = 0xffff_ffff & ~(1 << 15);
    const home = cliHome();
    const start = async (config: string, env: Record<string, string> = {}) => {
      home.folder.add({ 'config/config.toml': config });
      const all = {
        DISCORD_BOT_TOKEN: 'MTAwMDAw.test-token.0123456789abcdef',
        TELOS_DISCORD_API: discord.url,
        ...env,
      };
      const { code, stderr } = await home.run(['bot'], { env: all });
      assert.equal(code, 2, stderr);
      return stderr;
    };
    try {
      assert.match(await start(''), /owners = \["/);
      assert.match(await start('[discord]\nowners = ["ann"]\n'), /owners is not a list of ids/);
      assert.match(await start('[discord]\nowner = ["1"]\n'), /owner is not a setting/);
      assert.match(await start(ownerOnly, { DISCORD_BOT_TOKEN: '' }), /DISCORD_BOT_TOKEN is not set/);
      const wrong = await start(ownerOnly, { DISCORD_BOT_TOKEN: 'MTAw.wrong.token' });
      assert.match(wrong, /Discord rejected the token/);
      assert.doesNotMatch(wrong, /MTAw/);
      assert.match(await start(`${ownerOnly}message_content = true\n`), /Message Content Intent/);
      assert.match(
        await start(ownerOnly, { TELOS_DISCORD_API: 'http://discord.test/api' }),
        /not an https address/,
      );
    } finally {
      await discord.close();
      home.remove();
    }
  });

  it('names the npm package where the extension has brought the command line', async () => {
    const home = cliHome({ 'config/config.toml': ownerOnly });
    const shipped = join(home.folder.path, 'shipped');
    cpSync(dirname(dirname(program())), shipped, { recursive: true });
    const library = 'https://discord.com/api';
    assert.ok(readFileSync(join(shipped, 'dist/chunks/bot/discord.cjs'), 'utf8').includes(library));
    rmSync(join(shipped, 'dist/chunks/bot'), { recursive: true });
    assert.doesNotMatch(readFileSync(new URL('../../.vscodeignore', import.meta.url), 'utf8'), /chunks\/bot/);
    for (const file of readdirSync(join(shipped, 'dist'), { recursive: true, encoding: 'utf8' }))
      if (/\.c?js$/.test(file))
        assert.ok(!readFileSync(join(shipped, 'dist', file), 'utf8').includes(library), file);
    try {
      const { code, stderr } = await promisify(execFile)(
        process.execPath,
        [join(shipped, 'dist/cli.js'), 'bot'],
        { cwd: home.workDir, env: { ...home.env, DISCORD_BOT_TOKEN: 'x' } },
      ).then(
        () => assert.fail('it has started'),
        (error: { code: number; stderr: string }) => error,
      );
      assert.equal(code, 2);
      assert.match(stderr, /npm install --global telos/);
    } finally {
      home.remove();
    }
  });

  it('says that Discord cannot be reached', async () => {
    const home = cliHome({ 'config/config.toml': ownerOnly });
    try {
      const env = { DISCORD_BOT_TOKEN: botToken, TELOS_DISCORD_API: 'http://127.0.0.1:9/api' };
      const { code, stderr } = await home.run(['bot'], { env });
      assert.equal(code, 1);
      assert.match(stderr, /Discord cannot be reached: .+/);
    } finally {
      home.remove();
    }
  });

  it('says what is left to do, with the address that invites it', async () => {
    const discord = await DiscordServer.start();
    const home = cliHome();
    try {
      const bare = await home.run(['bot', '--setup']);
      assert.equal(bare.code, 0);
      assert.match(bare.stdout, /DISCORD_BOT_TOKEN=…[\s\S]*shows the address once[\s\S]*owners = \["/);
      const env = { DISCORD_BOT_TOKEN: botToken, TELOS_DISCORD_API: discord.url };
      const { stdout } = await home.run(['bot', '--setup'], { env });
      const invite = new URL(/https?:\S+oauth2\S+/.exec(stdout)?.[0] ?? 'https://none');
      assert.equal(invite.searchParams.get('client_id'), ids.application);
      assert.equal(invite.searchParams.get('scope'), 'bot applications.commands');
      const wanted = (1n << 10n) | (1n << 11n) | (1n << 15n) | (1n << 16n) | (1n << 35n) | (1n << 38n);
      assert.equal(BigInt(invite.searchParams.get('permissions') ?? 0), wanted);
      assert.doesNotMatch(stdout, new RegExp(botToken));
      // Discord itself is asked, through a proxy at which no one listens.
      const behind = { DISCORD_BOT_TOKEN: botToken, HTTPS_PROXY: 'http://127.0.0.1:9' };
      const { stderr } = await home.run(['bot', '--setup'], { env: behind });
      assert.match(stderr, /The proxy 127\.0\.0\.1:9 cannot be reached/);
    } finally {
      await discord.close();
      home.remove();
    }
  });
});
