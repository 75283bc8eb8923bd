/** ntfy: publishes a note with buttons that publish their answer to a second topic, which is read as a stream. */
import { StringDecoder } from 'node:string_decoder';
import { sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import type { CloseNote, Note, Wire } from './phone.ts';
import { fieldOf, keepTrying, reach, reachJson } from './reach.ts';

export interface NtfyPlace {
  server: string;
  topic: string;
  /** Of the user's account there. Never part of a note: whoever reads the topic would have it. */
  token: string | undefined;
}

/** Of a longer one a server makes a file. In bytes; its own limit is 4,096. */
const longest = 3_500;
/** Characters of a line of the stream. Answers are shorter than a hundredth. */
const longestLine = 65_536;
/** A server says every 45 seconds that it is still there. In milliseconds. */
const longestSilence = 120_000;
/** Urgent, and high. */
const priorities = { dangerous: 5, usual: 4 } as const;

/** The topic to which the buttons publish. */
export const answersTopic = (topic: string): string => `${topic}-answers`;

/** Returns the wire to a topic. */
export const ntfyWire = (place: NtfyPlace): Wire => ({
  name: 'ntfy',
  longest,
  open: (note, heard, signal) => open(place, note, heard, signal),
});

async function open(
  place: NtfyPlace,
  note: Note,
  heard: (token: string) => string,
  signal: AbortSignal,
): Promise<CloseNote> {
  // What is answered while the stream is being opened again is sent once more.
  let since = String(Math.floor(Date.now() / 1000));
  const listen = async (onOpen: () => void): Promise<void> => {
    for await (const message of messagesIn(place, since, signal, onOpen)) {
      since = message.id || since;
      heard(message.text);
    }
  };
  if (note.buttons.length > 0) await opened(listen, signal);
  const published = await reachJson('ntfy', publishing(place, note), signal);
  // A proxy or a page to log in answers with 200, too.
  if (typeof fieldOf(published, 'id') !== 'string')
    throw new TelosError('provider', [
      sentence('The server did not answer as ntfy does.'),
      sentence('Check the address, and whether this network wants a sign-in.'),
    ]);
  // The buttons of a note vanish on the phone that pressed one. On others, an answer counts for nothing.
  return async () => undefined;
}

/** Resolves once the stream is open, and rejects if it cannot be opened the first time. */
function opened(listen: (onOpen: () => void) => Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    void keepTrying(
      () =>
        listen(resolve).catch(error => {
          reject(error);
          throw error;
        }),
      signal,
    );
  });
}

const authorized = ({ token }: NtfyPlace): Record<string, string> =>
  token === undefined ? {} : { authorization: `Bearer ${token}` };

function publishing(place: NtfyPlace, { title, text, isDangerous, buttons }: Note) {
  const { server, topic } = place;
  const actions = buttons.map(({ label, token }) => ({
    action: 'http',
    label,
    url: `${server}/${answersTopic(topic)}`,
    method: 'POST',
    body: token,
    clear: true,
  }));
  const body = {
    topic,
    title,
    message: text,
    priority: isDangerous ? priorities.dangerous : priorities.usual,
    tags: [isDangerous ? 'warning' : 'question'],
    ...(actions.length > 0 && { actions }),
  };
  return {
    url: `${server}/`,
    method: 'POST' as const,
    headers: { 'content-type': 'application/json', ...authorized(place) },
    body: JSON.stringify(body),
  };
}

/** Yields the messages of the topic for answers. Throws when the stream ends or is silent for long, and as `reach`. */
async function* messagesIn(
  place: NtfyPlace,
  since: string,
  signal: AbortSignal,
  onOpen: () => void,
): AsyncGenerator<{ id: string; text: string }> {
  const url = `${place.server}/${answersTopic(place.topic)}/json?since=${encodeURIComponent(since)}`;
  const silent = new AbortController();
  const timer = setTimeout(() => silent.abort(), longestSilence);
  try {
    const call = { url, headers: authorized(place) };
    const response = await reach('ntfy', call, AbortSignal.any([signal, silent.signal]));
    onOpen();
    for await (const line of linesOf(response, () => timer.refresh())) {
      const message = messageIn(line);
      if (message) yield message;
    }
  } finally {
    clearTimeout(timer);
  }
  throw new Error('The stream has ended.');
}

async function* linesOf({ body }: Response, onPiece: () => void): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  for await (const piece of body ?? []) {
    onPiece();
    const lines = (rest + decoder.write(Buffer.from(piece))).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > longestLine) rest = '';
    yield* lines;
  }
}

function messageIn(line: string): { id: string; text: string } | undefined {
  try {
    const read: unknown = JSON.parse(line);
    const [event, id, text] = ['event', 'id', 'message'].map(name => fieldOf(read, name));
    return event === 'message' && typeof id === 'string' && typeof text === 'string'
      ? { id, text }
      : undefined;
  } catch {
    return undefined;
  }
}
