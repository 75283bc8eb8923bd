/**
 * A webhook: posts a signed note to an address of the user's. The answer comes back to a port of this machine, signed with the same secret, or
 * is asked for at the address that the webhook names.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { AnswerBox } from './answerBox.ts';
import type { CloseNote, Note, Wire } from './phone.ts';
import { fieldOf, keepTrying, reachJson, WhileOpen } from './reach.ts';

export interface WebhookPlace {
  url: string;
  secret: string;
  /** Port of 127.0.0.1 on which answers are heard. Undefined if they are only asked for. */
  port: number | undefined;
}

/** In bytes. */
const longest = 60_000;
/** How often an answer is asked for, and a port that is taken is tried again. In milliseconds. */
const interval = 2_000;
/** How old a signed answer may be, in seconds. */
const oldest = 300;
/** Of an answer that comes in, in bytes. */
const mostBody = 4_096;

/** Returns the wire to a webhook. `box` has the questions of all processes, since a port has one listener. */
export function webhookWire(place: WebhookPlace, box: AnswerBox): Wire {
  const listening = new WhileOpen(signal => {
    void keepTrying(() => listen(place, box, signal), signal, interval);
  });
  return {
    name: 'webhook',
    longest,
    async open(note, heard, signal): Promise<CloseNote> {
      if (place.port !== undefined) {
        box.await(note.id, heard, signal);
        listening.hold(signal);
      }
      const taken = await post(place, bodyOf(note), signal);
      const poll = pollAddress(fieldOf(taken, 'poll'), place.url);
      if (poll !== undefined) void keepTrying(() => look(place, poll, heard, signal), signal);
      return async outcome => {
        const over = { type: 'question_over', id: note.id, outcome };
        await post(place, over, AbortSignal.timeout(interval)).catch(() => undefined);
      };
    },
  };
}

const bodyOf = ({ id, title, text, isDangerous, buttons, until }: Note): object => ({
  type: 'question',
  ...{ id, title, text },
  dangerous: isDangerous,
  until: until.toISOString(),
  answers: Object.fromEntries(buttons.map(({ answer, token }) => [answer, token])),
});

/** Returns the headers that say who sent a text, and when. A signature covers the time, so that an old text cannot be sent again. */
export function signed(text: string, secret: string, seconds = Math.floor(Date.now() / 1000)) {
  const mac = createHmac('sha256', secret).update(`${seconds}.${text}`).digest('hex');
  return { 'x-telos-timestamp': String(seconds), 'x-telos-signature': `sha256=${mac}` };
}

function post(place: WebhookPlace, body: object, signal: AbortSignal): Promise<unknown> {
  const text = JSON.stringify(body);
  const headers = { 'content-type': 'application/json', ...signed(text, place.secret) };
  return reachJson('webhook', { url: place.url, method: 'POST', headers, body: text }, signal);
}

/** Of the webhook's own server: no answer leads anywhere else. */
function pollAddress(named: unknown, url: string): string | undefined {
  if (typeof named !== 'string' || !URL.canParse(named, url)) return undefined;
  const address = new URL(named, url);
  return address.origin === new URL(url).origin ? address.href : undefined;
}

async function look(
  { secret }: WebhookPlace,
  url: string,
  heard: (token: string) => string,
  signal: AbortSignal,
): Promise<void> {
  const headers = signed(new URL(url).pathname, secret);
  const answer = fieldOf(await reachJson('webhook', { url, headers }, signal), 'answer');
  if (typeof answer === 'string') heard(answer);
  await delay(interval, undefined, { signal }).catch(() => undefined);
}

/** Listens until the signal aborts. Rejects if the port is taken: by another process of Telos, which hears for this one too. */
function listen({ port, secret }: WebhookPlace, box: AnswerBox, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer((request, response) => {
      void bodyText(request)
        .then(async text => {
          const token = isSigned(request, text, secret) ? fieldOf(parsed(text), 'answer') : undefined;
          if (typeof token !== 'string') return response.writeHead(404).end();
          const said = await box.put(token);
          response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ said }));
        })
        .catch(() => response.destroy());
    });
    const close = (): void => {
      server.close(() => resolve());
      server.closeAllConnections();
    };
    server.once('error', reject);
    signal.addEventListener('abort', close, { once: true });
    if (signal.aborted) return close();
    server.listen(port, '127.0.0.1');
  });
}

async function bodyText(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size > mostBody) throw new Error('The answer is too long.');
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

function isSigned({ method, headers }: IncomingMessage, text: string, secret: string): boolean {
  const seconds = Number(headers['x-telos-timestamp']);
  if (method !== 'POST' || !(Math.abs(Date.now() / 1000 - seconds) <= oldest)) return false;
  const ours = Buffer.from(signed(text, secret, seconds)['x-telos-signature']);
  const theirs = Buffer.from(String(headers['x-telos-signature']));
  return ours.length === theirs.length && timingSafeEqual(ours, theirs);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
