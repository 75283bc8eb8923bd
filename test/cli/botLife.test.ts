/** A `telos bot` that is disturbed: lost connections, late tokens, a kill, a Discord that is down, many at once. And its other commands. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { inTime } from '../adversarial/checks.ts';
import { eventually, gate, until } from '../eventually.ts';
import type { AnthropicTurn } from '../fakes/anthropicServer.ts';
import { ids } from '../fakes/discordServer.ts';
import {
  type BotProcess,
  type BotWorld,
  type BotWorldOptions,
  botProcess,
  botWorld,
  joined,
  ownerOnly,
  saying,
  threadIn,
} from './botWorld.ts';

describe('telos bot, disturbed', function () {
  this.timeout(90_000);
  let world: BotWorld | undefined;
  afterEach(async () => {
    await world?.close();
    world = undefined;
  });
  const open = async (options: BotWorldOptions = {}): Promise<BotWorld> => {
    world = await botWorld(options);
    return world;
  };
  const openProcess = async (options: BotWorldOptions = {}): Promise<BotProcess> => {
    const opened = await botProcess(options);
    world = opened;
    return opened;
  };

  /** A turn whose text stops in the middle until the gate opens. */
  const held = (until: Promise<unknown>): AnthropicTurn => ({
    text: ['First half, ', 'second half.'],
    hold: { behind: 'First', until },
  });

  it('runs once and says all of it, whatever happens to the connection', async () => {
    const times = process.env['TELOS_NIGHTLY'] === '1' ? 50 : 4;
    const text = Array.from({ length: 500 + 40 * times }, (_, at) => `Line ${at}.`).join('\n');
    const { discord, model, home } = await open({
      turns: [{ text: text.match(/[\s\S]{1,10}/g) ?? [] }],
      chunkDelayMs: 15,
      prepare: ({ behaviour }) => {
        behaviour.tokenMs = 1000;
      },
    });
    discord.slash('run', { request: 'run go' });
    const thread = await threadIn(discord);
    for (let time = 0; time < times; time++) {
      discord.gateway.disturb((['drop', 'reconnect', 'invalidate', 'drop'] as const)[time % 4]!);
      await delay(200 + Math.random() * 400);
      discord.gateway.repeat('INTERACTION_CREATE');
    }
    await saying(discord, thread, /-# one\\:go · \$/, 60_000);
    assert.equal(
      joined(
        discord.said(thread).map(({ content }) => content),
        text,
      ),
      text,
    );
    assert.equal(model.requests.length, 1);
    assert.equal((await home.log()).filter(({ event }) => event === 'skill_start').length, 1);
    assert.equal([...discord.channels.values()].filter(({ type }) => type === 11).length, 1);
  });

  it('does not run what Discord no longer waits for', async () => {
    const { discord, model } = await open({
      prepare: ({ behaviour }) => {
        behaviour.ackMs = -1;
      },
    });
    discord.slash('run', { request: 'run go' });
    await until(() =>
      discord.requests.some(({ request, status }) => /callback/.test(request) && status === 404),
    );
    await delay(300);
    assert.equal(model.requests.length, 0);
  });

  it('acknowledges twenty at once within half a second while an answer grows', async () => {
    const free = gate();
    const { discord } = await open({ turns: [held(free.opened), { text: ['Done.'] }] });
    discord.slash('run', { request: 'run go' });
    await saying(discord, await threadIn(discord), /First/);
    const asked = Array.from({ length: 20 }, (_, at) =>
      discord.slash(at % 2 === 0 ? 'skills' : 'route', at % 2 === 0 ? {} : { request: 'run go' }),
    );
    await until(() => asked.every(({ ackedAfter }) => ackedAfter !== undefined));
    const times = asked.map(({ ackedAfter = Number.NaN }) => ackedAfter).sort((a, b) => a - b);
    assert.ok(times[18]! < inTime(500), `the slowest but one took ${times[18]} ms`);
    assert.match(asked[0]!.answer?.['data'].content, /one\\:go/);
    assert.match(asked[1]!.answer?.['data'].content, /go/);
    free.open();
    await saying(discord, discord.thread!, /second half/);
  });

  it('has the requests of a person wait for each other, not for those of others', async () => {
    const free = gate();
    const { discord, model } = await open({
      config: `${ownerOnly}users = ["${ids.user}"]\n`,
      turns: [held(free.opened), { text: ['Mine.'] }, { text: ['Next.'] }],
    });
    discord.slash('run', { request: 'run go' });
    await until(() => model.requests.length === 1);
    discord.slash('run', { request: 'run go later' });
    discord.slash('run', { request: 'run go too' }, { by: ids.user });
    await eventually(() => assert.equal(model.requests.length, 2));
    await saying(discord, await threadIn(discord), /Mine\./);
    await delay(200);
    assert.equal(model.requests.length, 2);
    const many = [1, 2, 3].map(() => discord.slash('run', { request: 'run go' }));
    await until(() => many.every(({ answer }) => answer !== undefined));
    assert.match(many[2]!.answer?.['data'].content, /wait already/);
    assert.equal(many[2]!.answer?.['data'].flags & 64, 64);
    free.open();
    await until(() => model.requests.length === 5);
  });

  it('is stopped by its person, and by nobody else', async () => {
    const { discord } = await open({
      config: `${ownerOnly}users = ["${ids.user}"]\n`,
      turns: [held(new Promise(() => {}))],
    });
    discord.slash('run', { request: 'run go' });
    const thread = await threadIn(discord);
    await saying(discord, thread, /First/);
    const other = discord.slash('stop', {}, { by: ids.user, channel: thread });
    await until(() => other.answer !== undefined);
    assert.match(other.answer?.['data'].content, /You have no running requests\./);
    const own = discord.slash('stop', {}, { channel: thread });
    await saying(discord, thread, /First half, \n-# .*cancelled/);
    assert.match(own.answer?.['data'].content, /Stopped: 1 request/);
  });

  it('goes on with the conversation in a thread, also after a kill, and takes old buttons away', async () => {
    const outside = { name: 'write_file', input: { path: '../elsewhere/a.md', content: 'x\n' } };
    const { discord, model, bot, home, restart } = await openProcess({
      turns: [{ text: ['One.'] }, { toolCalls: [outside] }, { text: ['Three.'] }],
    });
    const mention = `<@${ids.application}>`;
    discord.slash('run', { request: 'run go' });
    const thread = await threadIn(discord);
    await saying(discord, thread, /One\.\n-# one\\:go · \$/);
    discord.say(`${mention} and then`, { channel: thread });
    const question = await saying(discord, thread, /Write a/);
    await until(() => readFileSync(join(home.dataDir, 'discord.json'), 'utf8').includes(question.id));
    const { custom_id: id } = question.components[0]!.components[0]!;
    bot.child.kill('SIGKILL');
    await bot.result;
    await restart();
    await saying(discord, thread, /The bot has ended/);
    await until(() => question.components.length === 0);
    assert.match(question.content, /Write a/);
    const late = discord.press(question, id);
    await until(() => late.answer !== undefined);
    assert.match(late.answer?.['data'].content, /over/);
    assert.equal(existsSync(join(home.folder.path, 'elsewhere/a.md')), false);
    discord.say(`${mention} go on`, { channel: thread });
    await saying(discord, thread, /Three\./);
    const { messages } = model.requests.at(-1)!.body;
    assert.match(JSON.stringify(messages), /One\.[\s\S]*and then[\s\S]*go on/);
  });

  it('reads replies without a mention where message_content is set', async () => {
    const { discord, model } = await open({
      config: `${ownerOnly}message_content = true\n`,
      turns: [{ text: ['One.'] }, { text: ['Two.'] }],
    });
    discord.say('run go');
    await saying(discord, ids.telos, /One\./);
    discord.say('nothing for the bot', { channel: ids.general });
    discord.slash('run', { request: 'run go' }, { channel: ids.general });
    const thread = await threadIn(discord);
    await saying(discord, thread, /Two\./);
    discord.say('and then', { channel: thread });
    await until(() => model.requests.length === 3);
    assert.match(JSON.stringify(model.requests[2]?.body.messages), /Two\.[\s\S]*and then/);
    assert.doesNotMatch(JSON.stringify(model.requests[2]?.body.messages), /One\./);
  });

  it('says in the thread that it stops, ends in time, and keeps what was done', async () => {
    const { discord, bot, home } = await openProcess({ turns: [held(new Promise(() => {}))] });
    discord.slash('run', { request: 'run go' });
    const thread = await threadIn(discord);
    await saying(discord, thread, /First/);
    bot.stop();
    assert.equal((await bot.result).code, 0);
    await saying(discord, thread, /First half, [\s\S]*The bot has ended/);
    const { stdout } = await home.run(['runs', 'show']);
    assert.match(stdout, /First half/);
  });

  it('brings the answer when Discord is back', async () => {
    const free = gate();
    const { discord } = await open({ turns: [held(free.opened)] });
    discord.slash('run', { request: 'run go' });
    const thread = await threadIn(discord);
    await saying(discord, thread, /First/);
    discord.behaviour.isDown = true;
    free.open();
    await delay(3000);
    discord.behaviour.isDown = false;
    await eventually(() => assert.match(discord.said(thread)[0]?.content ?? '', /second half/), 30_000);
    assert.equal(discord.said(thread).length, 1);
  });

  it('answers in the channel where it may make no thread, and names the permission', async () => {
    const { discord, bot } = await open({
      prepare: ({ behaviour }) => {
        behaviour.denied = { [ids.telos]: ['thread'], [ids.general]: ['send', 'thread'] };
      },
    });
    discord.slash('run', { request: 'run go' });
    await saying(discord, ids.telos, /Create Public Threads/);
    await saying(discord, ids.telos, /Done\./);
    discord.slash('run', { request: 'run go' }, { channel: ids.general });
    await bot.says('Send Messages in Threads. telos runs show has it.');
  });
});

describe('telos bot, its other commands', function () {
  this.timeout(90_000);
  let world: BotWorld | undefined;
  afterEach(async () => {
    await world?.close();
    world = undefined;
  });
  const open = async (options: BotWorldOptions = {}): Promise<BotWorld> => {
    world = await botWorld(options);
    return world;
  };
  const openProcess = async (options: BotWorldOptions = {}): Promise<BotProcess> => {
    const opened = await botProcess(options);
    world = opened;
    return opened;
  };

  it('are registered once, and completed while a person types', async () => {
    const { discord, bot, restart } = await openProcess({
      files: {
        'skills/two/skills/plan/SKILL.md': '---\nname: plan\ndescription: Plans the whole week\n---\nPlan.\n',
      },
    });
    const puts = () => discord.requests.filter(({ request }) => /^PUT .*commands$/.test(request)).length;
    assert.equal(puts(), 1);
    const typed = discord.type('run', 'skill', { request: 'plan the week', skill: '' });
    const agents = discord.type('run', 'agent', { agent: 'tw' });
    await until(() => typed.answer !== undefined && agents.answer !== undefined);
    assert.equal(typed.answer?.['data'].choices[0].value, 'two:plan');
    assert.deepEqual(
      agents.answer?.['data'].choices.map(({ value }: { value: string }) => value),
      ['two'],
    );
    discord.slash('run', { request: 'now', skill: 'two:plan' });
    await saying(discord, await threadIn(discord), /-# two\\:plan · \$/);
    bot.stop();
    await bot.result;
    await restart();
    assert.equal(puts(), 1);
  });

  it('take a text file with a request as material, and no other file', async () => {
    const { discord, model } = await open();
    discord.slashWithFile('run go', 'notes.md', Buffer.from('Buy milk. /telos skills'));
    await saying(discord, await threadIn(discord), /Done\./);
    assert.match(JSON.stringify(model.requests[0]?.body.messages), /notes\.md[\s\S]*Buy milk/);
    const refused: [string, Buffer, object?][] = [
      ['program', Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0, 1])],
      ['picture.png', Buffer.from('89504e470d0a1a0a0000000d', 'hex')],
      ['large.txt', Buffer.alloc(2 ** 21, 'x')],
      ['small.txt', Buffer.alloc(2 ** 21, 'x'), { size: 3 }],
      ['elsewhere.txt', Buffer.from('x'), { url: 'http://169.254.169.254/latest' }],
    ];
    for (const [name, bytes, more] of refused) {
      const before = discord.thread;
      discord.slashWithFile('run go', name, bytes, more);
      await until(() => discord.thread !== before);
      await saying(discord, discord.thread ?? '', new RegExp(name.replace('.', '\\\\?.')));
    }
    assert.equal(model.requests.length, 1);
  });

  it('send the files of a run after a yes, and undo it', async () => {
    const write = { name: 'write_file', input: { path: 'a.md', content: 'Hello.\n' } };
    const { discord, home } = await open({ turns: [{ toolCalls: [write] }, { text: ['Done.'] }] });
    discord.slash('run', { request: 'run go' });
    const thread = await threadIn(discord);
    const offer = await saying(discord, thread, /Written by this run/);
    assert.match(offer.content, /a\\?\.md/);
    discord.click(offer, 'Send here');
    const sent = await saying(discord, thread, /^1 file/);
    await until(() => sent.files[0] === 'Hello.\n');
    assert.equal(sent.attachments[0]?.filename, 'a.md');
    const runs = discord.slash('runs');
    await until(() => runs.answer !== undefined);
    assert.match(runs.answer?.['data'].content, /run go/);
    discord.slash('undo', {}, { channel: thread });
    discord.click(await saying(discord, thread, /Undo run/), 'Undo');
    await saying(discord, thread, /as they were before/);
    assert.equal(existsSync(join(home.workDir, 'a.md')), false);
  });

  it('do not send a file that is no longer as the run left it', async () => {
    const write = { name: 'write_file', input: { path: 'a.md', content: 'Hello.\n' } };
    const { discord, home } = await open({ turns: [{ toolCalls: [write] }, { text: ['Done.'] }] });
    discord.slash('run', { request: 'run go' });
    const thread = await threadIn(discord);
    const offer = await saying(discord, thread, /Written by this run/);
    home.folder.add({ 'work/a.md': 'other words' });
    discord.click(offer, 'Send here');
    await saying(discord, thread, /None of them/);
  });

  it('put a question of the skill with its answers, and with words of one’s own', async () => {
    const ask = (question: string, choices: string[]) => ({
      toolCalls: [{ name: 'ask_user', input: { question, choices } }],
    });
    const { discord, model } = await open({
      turns: [ask('Which colour?', ['red', 'green']), ask('How many?', []), { text: ['Thanks.'] }],
    });
    discord.slash('run', { request: 'run go' });
    const thread = await threadIn(discord);
    discord.click(await saying(discord, thread, /Which colour/), '2. green');
    const opened = discord.click(await saying(discord, thread, /How many/), 'Answer …');
    await until(() => opened.answer !== undefined);
    discord.submit(opened, 'a dozen');
    await saying(discord, thread, /Thanks/);
    const said = JSON.stringify(model.requests.at(-1)?.body);
    assert.match(said, /The user answers: green/);
    assert.match(said, /The user answers: a dozen/);
  });

  it('have the buttons only below the whole of what is asked, in a file if it is long', async () => {
    const command = `echo ${'x'.repeat(3000)} \u202e; echo end`;
    const { discord } = await open({
      config: `${ownerOnly}commands = "ask-owner"\n`,
      turns: [{ toolCalls: [{ name: 'run_command', input: { command } }] }, { text: ['Thanks.'] }],
    });
    discord.slash('run', { request: 'run go' });
    const thread = await threadIn(discord);
    const question = await saying(discord, thread, /Run this command/);
    await until(() => question.files.length === 1);
    assert.match(question.files[0]!, new RegExp(`${'x'.repeat(3000)} <U\\+202E>; echo end`));
    assert.ok(question.components.length > 0);
    discord.click(question, 'No');
    await saying(discord, thread, /Thanks/);
  });

  it('refuse what belongs to owners', async () => {
    const { discord } = await open({ config: `${ownerOnly}users = ["${ids.user}"]\n` });
    for (const name of ['runs', 'undo']) {
      const asked = discord.slash(name, {}, { by: ids.user });
      await until(() => asked.answer !== undefined);
      assert.match(asked.answer?.['data'].content, /Only an owner/);
    }
  });

  it('say which skills are meant, and run the one that is chosen', async () => {
    const { discord, home } = await open({
      files: {
        'skills/two/skills/week/SKILL.md':
          '---\nname: week\ndescription: Reviews notes of the week\n---\nGo.\n',
        'skills/two/skills/day/SKILL.md': '---\nname: day\ndescription: Reviews notes of the day\n---\nGo.\n',
      },
    });
    discord.slash('run', { request: 'review my notes' });
    const thread = await threadIn(discord);
    const question = await saying(discord, thread, /Which skill/);
    discord.click(question, 'two:day');
    await saying(discord, thread, /-# two\\:day · \$/);
    // A kill now would not call anything interrupted.
    const kept = (): string => readFileSync(join(home.dataDir, 'discord.json'), 'utf8');
    await until(() => kept().includes('"running":[]'));
  });

  it('show the sentence that mends it when no model is set up, and nothing else runs', async () => {
    const { discord } = await open({ more: { ANTHROPIC_API_KEY: '', TELOS_PROVIDER: 'anthropic' } });
    discord.slash('run', { request: 'run go' });
    await saying(discord, await threadIn(discord), /telos key/);
  });

  it('are run by the clock too, and what they asked is said to the owner, once', async () => {
    const asking = { name: 'write_file', input: { path: '../elsewhere/a.md', content: 'x\n' } };
    const due = new Date(Date.now() - 300_000).toTimeString().slice(0, 'hh:mm'.length);
    const since = new Date(Date.now() - 3_600_000).toISOString();
    const schedule = (home: string, digest: string) => ({
      ...{
        version: 1,
        id: 'go',
        request: 'run go',
        skill: { agent: 'one', skill: 'go' },
        at: `daily ${due}`,
      },
      cwd: home,
      digest,
      missed: 'once',
      clock: 'none',
      since,
      failures: 0,
    });
    const { discord, home, env } = await open({ turns: [{ toolCalls: [asking] }, { text: ['Done.'] }] });
    const { stdout } = await home.run(['trust', 'one', '--json', '--yes'], { env });
    const { digest } = JSON.parse(stdout.slice(0, stdout.lastIndexOf('}') + 1)) as { digest: string };
    home.folder.add({ 'data/schedules/go.json': JSON.stringify(schedule(home.workDir, digest)) });
    const told = await saying(discord, ids.telos, /\*\*run go\*\* needs you/, 40_000);
    assert.match(told.content, /elsewhere\/a\.md\n/);
    assert.match(told.content, new RegExp(`<@${ids.owner}>$`));
    assert.deepEqual(told['allowed_mentions'], { parse: [], users: [ids.owner] });
    assert.equal(existsSync(join(home.folder.path, 'elsewhere/a.md')), false);
    const kept = JSON.parse(readFileSync(join(home.dataDir, 'schedules/go.json'), 'utf8'));
    assert.equal(kept.last.outcome, 'completed');
    assert.equal(discord.said(ids.telos).filter(({ content }) => /needs you/.test(content)).length, 1);
  });

  it('run nothing more once the runs of the day have cost what they may', async () => {
    const { discord, model } = await open({ config: `${ownerOnly}max_cost_per_day = 0.00001\n` });
    discord.slash('run', { request: 'run go' });
    await saying(discord, await threadIn(discord), /Done\.\n-# one\\:go · \$/);
    const first = discord.thread;
    discord.slash('run', { request: 'run go' });
    await until(() => discord.thread !== first);
    await saying(discord, discord.thread ?? '', /TELOS\\_MAX\\_COST\\_PER\\_DAY|limit|budget/i);
    assert.equal(model.requests.length, 1);
  });
});
