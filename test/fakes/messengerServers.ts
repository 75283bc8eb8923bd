/** Services of messengers on loopback. Each takes exactly what the real one takes, and notes why it refused something. */
import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Heard {
  method: string;
  url: URL;
  headers: IncomingMessage['headers'];
  text: string;
}

/** Listens, and hands over each request with its text. */
async function serve(answer: (heard: Heard, response: ServerResponse) => void, port = 0) {
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const { method = '', headers } = request;
    const url = new URL(request.url ?? '/', 'http://here');
    answer({ method, url, headers, text: Buffer.concat(pieces).toString('utf8') }, response);
  });
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve));
  const close = () =>
    new Promise<void>(resolve => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

function json(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

export interface NtfyMessage {
  id: string;
  event: 'message';
  /** In seconds. */
  time: number;
  topic: string;
  message: string;
  title?: string;
  priority?: number;
  actions?: { action: string; label: string; url: string; method: string; body: string; clear: boolean }[];
}

/** ntfy: topics that are kept, streams of them, and one account. `press` does what the app on a phone does with a button. */
export async function ntfyServer(account: string | undefined = undefined) {
  const messages: NtfyMessage[] = [];
  const refused: string[] = [];
  const streams = new Map<ServerResponse, string>();
  let count = 0;
  const publish = (
    topic: string,
    fields: Omit<NtfyMessage, 'id' | 'event' | 'time' | 'topic'>,
  ): NtfyMessage => {
    const message: NtfyMessage = {
      id: `m${++count}`,
      event: 'message',
      time: Math.floor(Date.now() / 1000),
      topic,
      ...fields,
    };
    messages.push(message);
    for (const [stream, name] of streams) if (name === topic) stream.write(`${JSON.stringify(message)}\n`);
    return message;
  };
  const server = await serve(({ method, url, headers, text }, response) => {
    const refuse = (status: number, why: string): void => {
      refused.push(why);
      json(response, { code: status, http: status, error: why }, status);
    };
    const isOurs = account === undefined || headers.authorization === `Bearer ${account}`;
    const [, topic = '', form] = url.pathname.split('/');
    if (method === 'GET' && form === 'json') {
      if (!isOurs) return refuse(403, 'forbidden');
      if (!/^(?:\d+|m\d+)$/.test(url.searchParams.get('since') ?? ''))
        return refuse(400, 'invalid since parameter');
      streams.set(response, topic);
      response.on('close', () => streams.delete(response));
      response.writeHead(200, { 'content-type': 'application/x-ndjson' });
      response.write(`${JSON.stringify({ id: `o${++count}`, event: 'open', topic })}\n`);
      const since = url.searchParams.get('since') ?? '';
      const at = messages.findIndex(({ id }) => id === since);
      const later = at < 0 ? messages.filter(({ time }) => time >= Number(since)) : messages.slice(at + 1);
      for (const one of later) if (one.topic === topic) response.write(`${JSON.stringify(one)}\n`);
      return;
    }
    if (method !== 'POST') return refuse(404, 'page not found');
    // Everybody may write answers; who reads them checks their signature.
    if (topic !== '') return json(response, publish(topic, { message: text }));
    if (!isOurs) return refuse(403, 'forbidden');
    const why = faultIn(text);
    if (why !== undefined) return refuse(400, why);
    const { topic: wanted, ...fields } = JSON.parse(text) as NtfyMessage;
    json(response, publish(wanted, fields));
  });
  const press = async (message: NtfyMessage, label: string): Promise<void> => {
    const action = message.actions?.find(one => one.label === label);
    if (!action) throw new Error(`There is no button ${label}.`);
    await fetch(action.url, { method: action.method, body: action.body });
  };
  const cutStreams = (): void => {
    for (const stream of streams.keys()) stream.destroy();
  };
  return { ...server, messages, refused, streams, press, cutStreams };
}

/** Returns why ntfy would not take a message in JSON. */
function faultIn(text: string): string | undefined {
  const { topic, message, priority, tags, actions = [], title, ...more } = JSON.parse(text);
  if (Object.keys(more).length > 0) return `unknown fields ${Object.keys(more)}`;
  if (!/^[-_A-Za-z0-9]{1,64}$/.test(topic)) return 'invalid topic';
  if (Buffer.byteLength(message) > 4096) return 'message too large';
  if (![1, 2, 3, 4, 5].includes(priority)) return 'invalid priority';
  if (!Array.isArray(tags) || typeof title !== 'string') return 'invalid message';
  if (actions.length > 3) return 'too many actions';
  for (const { action, label, url, method, body, clear, ...rest } of actions) {
    if (action !== 'http' || !label || !/^https?:/.test(url) || Object.keys(rest).length > 0)
      return 'invalid action';
    if (method !== 'POST' || typeof body !== 'string' || typeof clear !== 'boolean') return 'invalid action';
  }
  return undefined;
}

export interface TelegramMessage {
  chat: string;
  message_id: number;
  text: string;
  buttons: { text: string; callback_data: string }[];
}

/** Telegram's bot API for one bot. `press` is what a user does with a button, whoever they are. */
export async function telegramServer(token: string) {
  const messages: TelegramMessage[] = [];
  const refused: string[] = [];
  const answered: { callback_query_id: string; text?: string }[] = [];
  const updates: { update_id: number; callback_query: object }[] = [];
  let polling: { response: ServerResponse; offset: number } | undefined;
  let count = 0;
  const deliver = (): void => {
    if (!polling) return;
    const { response, offset } = polling;
    const news = updates.filter(({ update_id }) => update_id >= offset);
    if (news.length === 0) return;
    polling = undefined;
    json(response, { ok: true, result: news });
  };
  const server = await serve(({ method, url, text }, response) => {
    const refuse = (status: number, description: string): void => {
      refused.push(description);
      json(response, { ok: false, error_code: status, description }, status);
    };
    const [, bot, call = ''] = url.pathname.split('/');
    if (bot !== `bot${token}`) return refuse(401, 'Unauthorized');
    if (method !== 'POST') return refuse(404, 'Not Found');
    const body = JSON.parse(text);
    const buttons = (body.reply_markup?.inline_keyboard ?? []).flat();
    const tooLong = buttons.find(
      (one: { callback_data: string }) => Buffer.byteLength(one.callback_data) > 64,
    );
    if (tooLong) return refuse(400, 'Bad Request: BUTTON_DATA_INVALID');
    if (body.text?.length > 4096) return refuse(400, 'Bad Request: message is too long');
    switch (call) {
      case 'sendMessage': {
        const message = { chat: String(body.chat_id), message_id: ++count, text: body.text, buttons };
        messages.push(message);
        return json(response, {
          ok: true,
          result: { message_id: count, chat: { id: Number(body.chat_id) } },
        });
      }
      case 'editMessageText': {
        const message = messages.find(
          one => one.message_id === body.message_id && one.chat === String(body.chat_id),
        );
        if (!message) return refuse(400, 'Bad Request: message to edit not found');
        Object.assign(message, { text: body.text, buttons });
        return json(response, { ok: true, result: { message_id: body.message_id } });
      }
      case 'answerCallbackQuery':
        answered.push(body);
        return json(response, { ok: true, result: true });
      case 'getUpdates': {
        if (polling) {
          const conflict = 'Conflict: terminated by other getUpdates request';
          json(polling.response, { ok: false, error_code: 409, description: conflict }, 409);
        }
        polling = { response, offset: body.offset ?? 0 };
        const mine = polling;
        response.on('close', () => {
          if (polling === mine) polling = undefined;
        });
        return deliver();
      }
      default:
        return refuse(404, 'Not Found');
    }
  });
  const press = (user: string, data: string): string => {
    const id = `q${++count}`;
    updates.push({ update_id: ++count, callback_query: { id, from: { id: Number(user) }, data } });
    deliver();
    return id;
  };
  return { ...server, messages, refused, answered, press, isPolled: () => polling !== undefined };
}

export interface WebhookNote {
  type: string;
  id: string;
  text?: string;
  dangerous?: boolean;
  answers?: Record<string, string>;
  outcome?: string;
}

/** The header of a signature, as the receiver of a webhook reckons it. */
export const signatureOf = (text: string, secret: string, seconds: string): string =>
  `sha256=${createHmac('sha256', secret).update(`${seconds}.${text}`).digest('hex')}`;

/** A receiver of a webhook, which checks each signature. With `polls`, the answer is asked for. */
export async function webhookReceiver(secret: string, polls = false) {
  const notes: WebhookNote[] = [];
  const refused: string[] = [];
  let answer: string | undefined;
  const server = await serve(({ method, url, headers, text }, response) => {
    const seconds = String(headers['x-telos-timestamp']);
    const signed = method === 'GET' ? url.pathname : text;
    if (headers['x-telos-signature'] !== signatureOf(signed, secret, seconds)) {
      refused.push('wrong signature');
      return json(response, {}, 401);
    }
    if (method === 'GET')
      return answer === undefined ? void response.writeHead(204).end() : json(response, { answer });
    notes.push(JSON.parse(text));
    json(response, polls ? { poll: `/answers/${notes.at(-1)?.id}` } : {});
  });
  const reply = (token: string): void => {
    answer = token;
  };
  return { ...server, notes, refused, reply };
}
