/** Telegram's bot API: sends a note with buttons to the users who may answer, and hears them by long polling. */
import { sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import type { AnswerBox } from './answerBox.ts';
import type { CloseNote, Note, Wire } from './phone.ts';
import { fieldOf, keepTrying, reachJson, WhileOpen } from './reach.ts';

export interface TelegramPlace {
  /** Where the API is: Telegram's, or a server of the user's. */
  api: string;
  token: string;
  /** Ids of the users who are asked. Nobody else gets or answers anything. */
  users: readonly string[];
}

/** A message may have 4,096 characters. The rest is for its title and for how it ended. In bytes. */
const longest = 3_600;
/** How long Telegram holds a request for news, in seconds. */
const pollTime = 25;

interface SentNote {
  chat: string;
  message: number;
}

/** Returns the wire to a bot. `box` has the questions of all processes, since a bot has one listener. */
export function telegramWire(place: TelegramPlace, box: AnswerBox): Wire {
  const bot = new Bot(place, box);
  return { name: 'Telegram', longest, open: (note, heard, signal) => bot.open(note, heard, signal) };
}

class Bot {
  readonly #place: TelegramPlace;
  readonly #box: AnswerBox;
  /** The next piece of news. */
  #offset: number | undefined;
  /** Of two processes that poll, Telegram refuses one, which tries again later; what the other hears reaches it by the box. */
  readonly #listening = new WhileOpen(signal => void keepTrying(() => this.#poll(signal), signal));

  constructor(place: TelegramPlace, box: AnswerBox) {
    this.#place = place;
    this.#box = box;
  }

  async open(note: Note, heard: (token: string) => string, signal: AbortSignal): Promise<CloseNote> {
    const text = `${note.title}\n\n${note.text}`;
    const sent = await this.#send(note, text, signal);
    if (note.buttons.length > 0) {
      this.#box.await(note.id, heard, signal);
      this.#listening.hold(signal);
    }
    return async outcome => {
      const closed = AbortSignal.timeout(pollTime * 1000);
      const edits = sent.map(({ chat, message }) =>
        this.#call(
          'editMessageText',
          {
            chat_id: chat,
            message_id: message,
            text: `${text}\n\n${outcome}`,
            reply_markup: { inline_keyboard: [] },
          },
          closed,
        ).catch(() => undefined),
      );
      await Promise.all(edits);
    };
  }

  /** Throws the first refusal if no user has got it. */
  async #send({ buttons }: Note, text: string, signal: AbortSignal): Promise<SentNote[]> {
    const keys = buttons.map(({ label, token }) => ({ text: label, callback_data: token }));
    const sent = await Promise.allSettled(
      this.#place.users.map(async chat => {
        const message = await this.#call(
          'sendMessage',
          {
            chat_id: chat,
            text,
            link_preview_options: { is_disabled: true },
            ...(keys.length > 0 && { reply_markup: { inline_keyboard: [keys] } }),
          },
          signal,
        );
        return { chat, message: Number(fieldOf(message, 'message_id')) };
      }),
    );
    const taken = sent.flatMap(one => (one.status === 'fulfilled' ? [one.value] : []));
    const [refused] = sent.flatMap(one => (one.status === 'rejected' ? [one.reason as unknown] : []));
    if (taken.length === 0) throw refused;
    return taken;
  }

  async #poll(signal: AbortSignal): Promise<void> {
    const news = await this.#call(
      'getUpdates',
      {
        timeout: pollTime,
        allowed_updates: ['callback_query'],
        ...(this.#offset !== undefined && { offset: this.#offset }),
      },
      signal,
    );
    for (const update of Array.isArray(news) ? news : []) {
      const id = fieldOf(update, 'update_id');
      if (typeof id === 'number') this.#offset = id + 1;
      await this.#pressed(fieldOf(update, 'callback_query'), signal);
    }
  }

  /** Whoever is not among the users gets no word, not even a no. */
  async #pressed(query: unknown, signal: AbortSignal): Promise<void> {
    const from = String(fieldOf(fieldOf(query, 'from'), 'id'));
    const [id, token] = [fieldOf(query, 'id'), fieldOf(query, 'data')];
    if (!this.#place.users.includes(from) || typeof id !== 'string' || typeof token !== 'string') return;
    const said = await this.#box.put(token);
    const answer = { callback_query_id: id, ...(said !== undefined && { text: said }) };
    await this.#call('answerCallbackQuery', answer, signal).catch(() => undefined);
  }

  /** Returns the result. Throws TelosError `provider` for a refusal, in Telegram's words. */
  async #call(method: string, body: object, signal: AbortSignal): Promise<unknown> {
    const { api, token } = this.#place;
    const answer = await reachJson(
      'Telegram',
      {
        url: `${api}/bot${token}/${method}`,
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      },
      signal,
    );
    if (fieldOf(answer, 'ok') === true) return fieldOf(answer, 'result');
    throw new TelosError('provider', [sentence('{0} did not accept it.', 'Telegram')]);
  }
}
