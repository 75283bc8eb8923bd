/** The bot: hears what people want on Discord, lets in who may, and has their requests run one after the other for each person. */

import { setTimeout as wait } from 'node:timers/promises';
import type { Config } from '@telos/engine/config';
import { Interruption } from '@telos/engine/errors';
import { attachmentOf } from '@telos/engine/files';
import { Conversation, type RunRequest, storedConversation } from '@telos/engine/run';
import { Telos } from '@telos/engine/telos';
import type { Attachment } from '@telos/protocol/attachment';
import { counted, exactText, shortened } from '@telos/protocol/text';
import { BotClock } from './botClock.ts';
import { choicesFor, commands, type Desk, slashCommands } from './botCommands.ts';
import { BotState } from './botState.ts';
import { interruptedText } from './discordHuman.ts';
import { Gateway } from './gateway.ts';
import type { AnswerPlace } from './growingAnswer.ts';
import type { Call, Handlers, Said, SentFile, SlashCall, Typing } from './handlers.ts';
import { plainText } from './messageText.ts';
import { Questions } from './questions.ts';
import { type BotSettings, type Doing, limitedConfig, whyNot } from './settings.ts';

/** Requests of a person that wait for the one that runs. */
const mostWaiting = 3;
/** Between two lines that say to one person that too much waits, in milliseconds. */
const sayAgain = 60_000;
/** How long runs may take to end when the bot stops, in milliseconds. */
const endingTime = 8_000;

export interface BotParts {
  settings: BotSettings;
  config: Config;
  /** The variables that it was started with. The others in `config` are read from a file anew for each scheduled run. */
  env: Readonly<Record<string, string | undefined>>;
  log(line: string): void;
}

/** A request that waits or runs. */
interface Active {
  user: string;
  channel: string;
  stop: AbortController;
}

export class Bot {
  /** Resolves with the reason once Discord has ended the connection for good. */
  readonly closed: Promise<string>;
  readonly #settings: BotSettings;
  readonly #telos: Telos;
  readonly #gateway: Gateway;
  readonly #questions: Questions;
  readonly #state: BotState;
  readonly #clock: BotClock;
  readonly #log: (line: string) => void;
  readonly #active = new Set<Active>();
  /** The end of each person's latest request. */
  readonly #turns = new Map<string, Promise<void>>();
  readonly #conversations = new Map<string, Conversation>();
  readonly #saidFull = new Map<string, number>();
  #isStopping = false;

  constructor({ settings, config, env, log }: BotParts) {
    this.#settings = settings;
    this.#telos = Telos.open(limitedConfig(config, settings));
    this.#log = log;
    this.#state = new BotState(config.dataDir, log);
    let close: (why: string) => void = () => {};
    this.closed = new Promise(resolve => {
      close = resolve;
    });
    this.#gateway = new Gateway(settings, this.#handlers(close));
    this.#questions = new Questions(this.#gateway, this.#state);
    this.#clock = new BotClock({ settings, config, env, log, gateway: this.#gateway });
  }

  /** Connects, and resolves with a line about it once the bot is ready. Throws what Discord says against it. */
  async start(): Promise<string> {
    await this.#gateway.connect(this.#settings.token);
    const { guilds, name } = this.#gateway;
    await Promise.all(guilds.map(guild => this.#register(guild)));
    void this.#closeLeftovers();
    this.#clock.start();
    return `telos bot is ready as ${name}, in ${counted(guilds.length, 'server')}.`;
  }

  /** Ends all runs, whose work is kept, and the connection. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const { stop } of this.#active) stop.abort(new Interruption('The bot has ended.'));
    const ends = [...this.#turns.values(), this.#clock.stop()];
    await Promise.race([Promise.all(ends), wait(endingTime, undefined, { ref: false })]);
    this.#questions.end();
    await this.#telos.closeCommands();
    await this.#state.settled();
    await this.#gateway.close();
  }

  #handlers(closed: (why: string) => void): Handlers {
    return {
      slash: call => this.#slash(call),
      click: click => this.#admitted(click, () => this.#questions.click(click)),
      submitted: submission => this.#admitted(submission, () => this.#questions.submitted(submission)),
      typing: typing => this.#typing(typing),
      said: message => this.#said(message),
      joined: guild => this.#register(guild),
      failed: why => this.#log(why),
      closed,
    };
  }

  /** Registers the commands in a server in which the bot may answer. */
  async #register(guild: string): Promise<void> {
    const { guilds } = this.#settings;
    if (guilds && !guilds.includes(guild))
      return this.#log(`The server ${guild} is not among guilds, so nothing is answered there.`);
    await this.#gateway
      .register(guild, slashCommands)
      .catch(error => this.#log(`The commands could not be registered in ${guild}: ${error.message}`));
  }

  /** Says in channels that a run was cut off, and takes the buttons of old questions away. */
  async #closeLeftovers(): Promise<void> {
    const { running, questions } = this.#state.takeLeftovers();
    const log = (error: Error) => this.#log(error.message);
    for (const channel of new Set(running))
      await this.#gateway.post(channel, { content: interruptedText }).catch(log);
    for (const { channel, message } of questions)
      await this.#gateway.edit(channel, message, { buttons: [] }).catch(log);
  }

  /** Carries out what a person may do. Others get a no that only they see. */
  async #admitted(call: Call, carryOut: () => Promise<void>): Promise<void> {
    const why = whyNot(call, this.#settings);
    if (why === undefined) return carryOut();
    this.#ignored(call, why);
    await call.whisper({ content: 'You cannot use this bot here. Its owner decides who can, and where.' });
  }

  #ignored({ user, channel, guild }: Doing, why: string): void {
    this.#log(`Ignored ${user} in channel ${channel} of server ${guild ?? 'none'}: ${why}.`);
  }

  async #slash(call: SlashCall): Promise<void> {
    await this.#admitted(call, async () => {
      if (call.name === 'run') return this.#runCommand(call);
      if (call.name === 'plan') return (await import('./plans.ts')).planCommand(call, this.#desk);
      const command = Object.hasOwn(commands, call.name) ? commands[call.name] : undefined;
      await command?.(call, this.#desk);
    });
  }

  async #runCommand(call: SlashCall): Promise<void> {
    const { request = '', agent, skill } = call.options;
    const wanted = this.#wanted(request, agent, skill);
    if (typeof wanted === 'string') return call.whisper({ content: wanted });
    if (this.#isFull(call.user)) return call.whisper({ content: fullText });
    const isThread = call.parent !== undefined;
    const active = this.#reserve(call.user, call.channel);
    try {
      // A request that Discord no longer knows, or has sent twice, is not carried out: it takes one reply.
      const message = await call.reply({ content: `**Asked:** ${plainText(request, 500)}` });
      const place = isThread
        ? { channel: call.channel }
        : await this.#threadFor(call.channel, message, request);
      const attachments = call.file ? await this.#attached(call.file, place) : [];
      if (attachments) this.#enqueue(active, place, { ...wanted, attachments });
      else this.#active.delete(active);
    } catch (error) {
      this.#active.delete(active);
      throw error;
    }
  }

  /** Returns a person's file as material for the model. Says why not, and returns undefined, if it is not text that can be read. */
  async #attached(file: SentFile, place: AnswerPlace): Promise<readonly Attachment[] | undefined> {
    try {
      const attachment = attachmentOf({ name: file.name, bytes: await this.#gateway.download(file) });
      if (attachment.kind === 'text') return [attachment];
      throw new Error(`${file.name} was not attached: on Discord, only text is read.`);
    } catch (error) {
      const content = `**${plainText(error instanceof Error ? error.message : String(error))}**`;
      await this.#gateway.post(place.channel, { content });
      return undefined;
    }
  }

  async #said(message: Said): Promise<void> {
    const { id, channel, text, isMention, channelName, user } = message;
    const isOurThread = message.parent !== undefined && this.#hasConversation(channel);
    const isTextChannel = channelName === this.#settings.textChannel && message.parent === undefined;
    if (!isMention && !isOurThread && !isTextChannel) return;
    const why = whyNot(message, this.#settings);
    if (why !== undefined) return this.#ignored(message, why);
    if (text === '') return;
    const [, agent, rest] = /^--agent(?:\s+|=)(\S+)\s+([\s\S]+)$/.exec(text) ?? [];
    const wanted = this.#wanted(rest ?? text, agent);
    if (typeof wanted === 'string') return this.#tell(channel, id, wanted);
    if (this.#isFull(user)) return this.#saysFullAgain(user) ? this.#tell(channel, id, fullText) : undefined;
    const active = this.#reserve(user, channel);
    if (isTextChannel) return this.#enqueue(active, { channel, replyTo: id }, wanted);
    const isThread = message.parent !== undefined;
    this.#enqueue(active, isThread ? { channel } : await this.#threadFor(channel, id, text), wanted);
  }

  async #tell(channel: string, replyTo: string, content: string): Promise<void> {
    await this.#gateway.post(channel, { content, replyTo });
  }

  /** Returns the request, or why there is none. */
  #wanted(text: string, agent: string | undefined, skill?: string): RunRequest | string {
    const [of, name] = skill?.includes(':') ? skill.split(':', 2) : [agent, skill];
    if (of !== undefined && !this.#isOffered(of)) return `${plainText(of)} is not offered on Discord.`;
    if (skill !== undefined && (!of || !name))
      return 'Choose the skill from the list that Discord shows while you type.';
    return {
      text,
      origin: 'discord',
      asksCommands: this.#settings.asksCommands,
      ...(of !== undefined && { agent: of }),
      ...(of && name && { skill: { agent: of, skill: name } }),
    };
  }

  #isOffered(agent: string): boolean {
    return this.#settings.agents?.includes(agent) ?? true;
  }

  #isFull(user: string): boolean {
    return this.#isStopping || [...this.#active].filter(one => one.user === user).length > mostWaiting;
  }

  /** Returns true once a minute for someone, so that a flood gets one answer. */
  #saysFullAgain(user: string): boolean {
    const isSaid = performance.now() - (this.#saidFull.get(user) ?? Number.NEGATIVE_INFINITY) < sayAgain;
    if (!isSaid) this.#saidFull.set(user, performance.now());
    return !isSaid;
  }

  /** Returns a thread for the answer, or the channel itself where the bot may make none. Never throws. */
  async #threadFor(channel: string, message: string, request: string): Promise<AnswerPlace> {
    const name = shortened(exactText(request.replace(/\s+/g, ' ').trim()), 90) || 'telos';
    try {
      return { channel: await this.#gateway.startThread(channel, message, name) };
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#log(`No thread could be made in channel ${channel}: ${why}`);
      const content =
        'The answer comes here: to make threads, the bot needs the permission Create Public Threads.';
      await this.#gateway.post(channel, { content }).catch(problem => this.#log(problem.message));
      return { channel, replyTo: message };
    }
  }

  #hasConversation(channel: string): boolean {
    return this.#conversations.has(channel) || this.#state.runIn(channel) !== undefined;
  }

  /** Takes a place in the queue of a person. */
  #reserve(user: string, channel: string): Active {
    const active: Active = { user, channel, stop: new AbortController() };
    this.#active.add(active);
    return active;
  }

  /** Has the request run after the others of this person. */
  #enqueue(active: Active, place: AnswerPlace, request: RunRequest): void {
    active.channel = place.channel;
    const turn = (this.#turns.get(active.user) ?? Promise.resolve())
      .then(() => (active.stop.signal.aborted ? undefined : this.#carryOut(active, place, request)))
      .catch(error => this.#log(String(error)))
      .finally(() => this.#active.delete(active));
    this.#turns.set(active.user, turn);
  }

  async #carryOut({ user, channel, stop }: Active, place: AnswerPlace, request: RunRequest): Promise<void> {
    this.#telos.refresh();
    // An answer to a message begins again: such a channel is everyone's.
    const isThread = place.replyTo === undefined;
    const conversation = isThread ? await this.#conversationIn(channel) : new Conversation();
    if (isThread) this.#conversations.set(channel, conversation);
    const note = (event: Parameters<Conversation['note']>[0]): void => {
      conversation.note(event);
      if (event.type === 'run_start' && isThread) this.#state.goesOn(channel, event.runId);
    };
    this.#state.began(channel);
    try {
      const { runInChannel } = await import('./threadRun.ts');
      await runInChannel({ request: conversation.next(request), place, user, stop, note }, this.#desk);
    } finally {
      this.#state.ended(channel);
      await this.#telos.endCommands(conversation.id);
    }
  }

  async #conversationIn(channel: string): Promise<Conversation> {
    const known = this.#conversations.get(channel);
    if (known) return known;
    const run = this.#state.runIn(channel);
    const stored = run && (await storedConversation(run, this.#telos.config.dataDir).catch(() => undefined));
    return stored ? stored.conversation : new Conversation();
  }

  async #typing(typing: Typing): Promise<void> {
    const isAllowed = whyNot(typing, this.#settings) === undefined;
    await typing.offer(isAllowed ? await choicesFor(typing, this.#desk) : []);
  }

  get #desk(): Desk {
    const isOwner = (user: string): boolean => this.#settings.owners.includes(user);
    return {
      telos: this.#telos,
      gateway: this.#gateway,
      questions: this.#questions,
      log: this.#log,
      isOwner,
      isOffered: agent => this.#isOffered(agent),
      asksCommands: this.#settings.asksCommands,
      stop: (user, channel) => {
        const all = [...this.#active];
        const here = all.filter(one => one.channel === channel && (one.user === user || isOwner(user)));
        const chosen = here.length > 0 ? here : all.filter(one => one.user === user);
        for (const { stop } of chosen) stop.abort();
        return chosen.length;
      },
    };
  }
}

const fullText = 'Your requests wait already. /telos stop ends them.';
