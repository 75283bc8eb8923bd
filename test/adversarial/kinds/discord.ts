/** Cases on Discord: who is heard, what an answer may do there, and what happens in a flood. The bot speaks to a Discord on loopback. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Bot } from '../../../src/bot/bot.ts';
import { readBotSettings } from '../../../src/bot/settings.ts';
import { TelosError } from '../../../src/engine/core/errors.ts';
import { eventually, gate, until } from '../../eventually.ts';
import { type AnthropicTurn, startAnthropicServer } from '../../fakes/anthropicServer.ts';
import { botToken, DiscordServer, ids, type SentMessage } from '../../fakes/discordServer.ts';
import type { FakeServer } from '../../fakes/loopback.ts';
import { type Fields, fieldsOf, textsOf } from '../caseFile.ts';
import { applying, CannotJudge, check, type Seen } from '../checks.ts';
import type { World } from '../world.ts';

/** Ids of the cases as the fake Discord has them. */
const known: Readonly<Record<string, string>> = {
  111: ids.owner,
  222: ids.stranger,
  333: ids.otherBot,
  900: ids.guild,
  901: ids.telos,
};
const idOf = (id: unknown): string => known[String(id)] ?? `${id}`.padStart(18, '9');

/** One bot with its Discord and its model, in this process. The log also names servers that it is let into. */
interface Stage {
  discord: DiscordServer;
  model: FakeServer;
  log: string[];
  world: World;
}

async function onStage(
  world: World,
  turns: AnthropicTurn[],
  play: (stage: Stage) => Promise<Seen>,
): Promise<Seen> {
  const given = fieldsOf(world.input['config']);
  const lists = ['owners', 'guilds', 'channels'].map(
    name => `${name} = ${JSON.stringify(textsOf(given[name]).map(idOf))}`,
  );
  const agents = textsOf(given['agents']);
  const more = [`users = ["${ids.user}"]`, `agents = ${JSON.stringify(agents)}`, 'message_content = true'];
  world.put(join(world.cfg, 'config.toml'), ['[discord]', ...lists, ...more].join('\n'));
  for (const agent of [...agents, 'personal-vault'])
    world.put(
      join(world.skills, agent, 'skills/frontpage/SKILL.md'),
      '---\ndescription: Shows the frontpage.\n---\nShow it.\n',
    );
  const [discord, model] = await Promise.all([DiscordServer.start(), startAnthropicServer({ turns })]);
  const config = world.configFor({
    DISCORD_BOT_TOKEN: botToken,
    TELOS_DISCORD_API: discord.url,
    TELOS_ROUTING_MODE: 'local',
    ANTHROPIC_API_KEY: 'sk-ant-test-0123456789',
    TELOS_DEFAULTS: 'specified',
    ANTHROPIC_BASE_URL: model.url,
  });
  const log: string[] = [];
  const bot = new Bot({
    settings: readBotSettings(config),
    config,
    env: config.env,
    log: line => log.push(line),
  });
  try {
    await bot.start();
    return await play({ discord, model, log, world });
  } finally {
    await bot.stop();
    await Promise.all([discord.close(), model.close()]);
  }
}

export async function discordEvent(world: World): Promise<Seen> {
  const { input } = world;
  const event = fieldsOf(input['event']);
  if (input['repeat'] !== undefined) return flood(world, Number(fieldsOf(input['repeat'])['count']));
  if (input['http'] !== undefined) return limited(world);
  if (input['run'] !== undefined) return onStage(world, commandTurns, stage => refusedCommand(stage, event));
  if (event['type'] !== undefined) return onStage(world, outsideTurns, stage => forgedYes(stage, event));
  const reply = typeof input['reply'] === 'string' ? input['reply'] : 'It is there.';
  const pieces = reply.match(/[\s\S]{1,100}/gu) ?? [];
  const isReply = input['reply'] !== undefined;
  return onStage(world, [{ text: pieces }], stage => heard(stage, event, isReply ? reply : undefined));
}

const [skill, ending] = ['frontpage', /\n?-# hackernews[^\n]*:frontpage(?! …)[^\n…]*$/];

/** Makes what the event says happen. A text of one letter stands for any request. */
function say({ discord }: Stage, event: Fields): void {
  const author = fieldsOf(event['author']);
  const content = String(event['content']);
  const isDirect = event['guild_id'] === null;
  const guild = idOf(event['guild_id']);
  const channel = isDirect || guild === ids.guild ? idOf(event['channel_id']) : discord.otherServer(guild);
  discord.say(content === 'x' ? skill : content, {
    by: idOf(author['id']),
    channel,
    guild,
    direct: isDirect,
  });
}

/** Returns what the bot has said in all channels, and what only one person sees. */
const all = ({ discord }: Stage): SentMessage[] =>
  [...discord.messages.values()].filter(({ author }) => author.id === ids.application);

const ended = (stage: Stage): Promise<SentMessage> =>
  eventually(() => all(stage).findLast(({ content }) => ending.test(content)) ?? failed(stage));

function failed(stage: Stage): never {
  throw new Error(
    `no answer has ended: ${JSON.stringify(all(stage).map(({ content }) => content.slice(-80)))}`,
  );
}

async function heard(stage: Stage, event: Fields, reply: string | undefined): Promise<Seen> {
  const { discord, model, log } = stage;
  say(stage, event);
  // What is not answered is not answered for as long as an answer takes, which the owner then gets.
  const isOwner = fieldsOf(event['author'])['id'] === '111';
  const isHeard =
    isOwner && idOf(event['guild_id']) === ids.guild && !String(event['content']).includes('vault');
  if (isHeard) await ended(stage);
  else await delay(400);
  const sent = all(stage);
  const typing = discord.requests.filter(({ request }) => request.endsWith('/typing')).length;
  const content = String(event['content']);
  const decision = model.requests.length === 0 ? 'deny' : reply === undefined ? 'allow' : 'render';
  const isRefusal = isOwner && content.includes('vault');
  return {
    decision,
    checks: applying(
      isHeard &&
        check(
          'shown',
          'each message fits',
          sent.every(({ content: text }) => text.length <= 2000),
        ),
      isHeard &&
        check(
          'shown',
          'no one is notified',
          sent.every(({ pings }) => !pings),
        ),
      isHeard &&
        check(
          'network',
          'no preview is fetched',
          sent.every(({ flags }) => (flags & 4) !== 0),
        ),
      isHeard &&
        check(
          'shown',
          'no character is cut in two',
          sent.every(({ content: text }) => !/\ufffd/.test(Buffer.from(text).toString())),
        ),
      reply !== undefined &&
        check(
          'shown',
          'all of it is there',
          sent.map(one => one.content.replace(ending, '')).join('') === reply,
        ),
      !isHeard && check('model', 'no model is asked', model.requests.length === 0),
      !isHeard && !isRefusal && check('shown', 'nothing is said', sent.length === 0 && typing === 0),
      isRefusal && check('shown', 'says that it is not offered', /not offered/.test(sent[0]?.content ?? '')),
      !isHeard &&
        check(
          'records',
          'the log has no word of it',
          !log.join('\n').includes(content === 'x' ? skill : content),
        ),
      !isHeard &&
        !isRefusal &&
        event['guild_id'] !== null &&
        check('records', 'the log has one line', log.filter(line => line.startsWith('Ignored')).length === 1),
    ),
  };
}

const outsideTurns: AnthropicTurn[] = [
  { toolCalls: [{ name: 'write_file', input: { path: '../out/made.md', content: 'x\n' } }] },
  { text: ['That is all.'] },
];
const commandTurns: AnthropicTurn[] = [
  { toolCalls: [{ name: 'run_command', input: { command: 'id > made' } }] },
  { text: ['That is all.'] },
];

/** A stranger answers the owner's question. */
async function forgedYes(stage: Stage, event: Fields): Promise<Seen> {
  const { discord, world } = stage;
  discord.say(skill);
  const question = await eventually(
    () => all(stage).find(({ components }) => components.length > 0) ?? failed(stage),
  );
  const isReaction = event['type'] === 'MESSAGE_REACTION_ADD';
  const by = ids.stranger;
  const own = question.components[0]!.components[0]!.custom_id;
  if (isReaction) discord.react(question, by);
  const clicks = isReaction
    ? []
    : [own, String(event['custom_id'])].map(id => discord.press(question, id, { by }));
  await until(() => clicks.every(({ answer }) => answer !== undefined));
  await delay(200);
  const made = existsSync(join(world.root, 'out/made.md'));
  const isOpen = question.components.length > 0;
  return {
    decision: made || !isOpen ? 'allow' : 'deny',
    checks: applying(
      check('files', 'nothing is written', !made),
      check('shown', 'the question stays open for its owner', isOpen),
      clicks.length > 0 &&
        check(
          'shown',
          'only who clicked sees the no',
          clicks.every(({ answer }) => answer?.['data'].flags & 64),
        ),
    ),
  };
}

async function refusedCommand(stage: Stage, event: Fields): Promise<Seen> {
  say(stage, event);
  await ended(stage);
  const { model, world } = stage;
  const told = JSON.stringify(model.requests.at(-1)?.body);
  const made = existsSync(join(world.work, 'made'));
  const hasButtons = all(stage).some(({ components }) => components.length > 0);
  return {
    decision: made ? 'allow' : 'deny',
    checks: [
      check('processes', 'it does not run, and no one is asked', !made && !hasButtons),
      check('model', 'it is told the rule', /surface\.discord/.test(told)),
    ],
  };
}

/** Two hundred messages of one person while the first run hangs, and one of another person. */
async function flood(world: World, count: number): Promise<Seen> {
  const free = gate();
  const turns: AnthropicTurn[] = [
    { text: ['Held.', ' Free.'], hold: { behind: 'Held', until: free.opened } },
    { text: ['Mine.'] },
  ];
  return onStage(world, turns, async stage => {
    const { discord, model } = stage;
    discord.say(skill);
    await until(() => model.requests.length === 1);
    for (let sent = 1; sent < count; sent++) discord.say(skill);
    discord.say(skill, { by: ids.user });
    const other = await ended(stage);
    const before = model.requests.length;
    const said = all(stage).filter(({ content }) => /wait already/.test(content)).length;
    free.open();
    await until(() => model.requests.length === 5);
    await delay(300);
    return {
      decision: 'allow',
      checks: [
        check('shown', 'the flood gets one answer', said === 1 || `${said}`),
        check('model', 'few requests wait', model.requests.length === 5 || `${model.requests.length}`),
        check('end', 'another person is not held up', before === 2 && /Mine/.test(other.content)),
      ],
    };
  });
}

/** Discord says twice that it is too much. */
async function limited(world: World): Promise<Seen> {
  const text = Array.from({ length: 400 }, (_, at) => `Line ${at} of the answer.`).join('\n');
  return onStage(world, [{ text: text.match(/[\s\S]{1,100}/g) ?? [] }], async stage => {
    stage.discord.behaviour.refusals = { left: 2, seconds: 2.5 };
    const started = performance.now();
    stage.discord.say(skill);
    await ended(stage);
    const sent = all(stage).map(({ content }) => content.replace(ending, ''));
    return {
      decision: 'allow',
      checks: [
        check('time', 'waits', performance.now() - started > 2_500),
        check('shown', 'nothing is lost, and the order kept', sent.join('\n') === text),
      ],
    };
  });
}

/** Without an owner. */
export async function discordStart(world: World): Promise<Seen> {
  try {
    readBotSettings(world.configFor({ DISCORD_BOT_TOKEN: botToken }));
    return { decision: 'allow', checks: [] };
  } catch (error) {
    if (!(error instanceof TelosError)) throw new CannotJudge(String(error));
    return {
      decision: 'error',
      checks: [check('shown', 'says how to set it', /owners = \["\d+"\]/.test(error.message))],
    };
  }
}
