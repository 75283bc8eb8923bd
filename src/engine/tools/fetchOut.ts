/** Sends the requests that go to a person's own choice of server: to the providers of models. */
import { beginningOf } from '@telos/protocol/text';
import { proxyFor } from './wayOut.ts';

/** Characters of an answer that is no stream. The longest are lists of models, and what Ollama says of one. */
const mostText = 16 * 1024 * 1024;
/** Characters of a refusal that are read. */
export const mostRefusal = 65_536;

/** Where Node's `fetch` keeps what sends its requests. Its documentation names no other way to it without a package of its own. */
const usual = Symbol.for('undici.globalDispatcher.1');

let patient: object | undefined;

/**
 * Returns how `fetch` waits for an answer for as long as its caller does: by itself it gives up after five minutes of silence. Nothing where
 * this runtime sends requests in another way.
 */
function withoutHaste(): RequestInit {
  try {
    void Request; // makes Node load what sends requests
    const kept = (globalThis as unknown as Record<symbol, object | undefined>)[usual];
    const Kind = kept?.constructor as (new (limits: object) => object) | undefined;
    patient ??= Kind && new Kind(noLimits);
    return (patient ? { dispatcher: patient } : {}) as RequestInit;
  } catch {
    return {};
  }
}

const noLimits = { headersTimeout: 0, bodyTimeout: 0 };

/** Behaves like the global `fetch`. Through a proxy it follows no redirect, and rejects with the errors of `requestThrough`. */
export async function fetchOut(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const proxy = proxyFor(new URL(input instanceof Request ? input.url : input));
  if (!proxy) return fetch(input, { ...withoutHaste(), ...init });
  const [{ requestThrough }, { responseOf }] = await Promise.all([
    import('./proxyTunnel.ts'),
    import('./checkedFetch.ts'),
  ]);
  const request = new Request(input, { ...init, redirect: 'manual' });
  const { method, signal } = request;
  const body = request.body === null ? undefined : Buffer.from(await request.arrayBuffer());
  const headers = {
    accept: '*/*',
    'accept-encoding': 'identity',
    ...Object.fromEntries(request.headers),
    ...(body && { 'content-length': body.length }),
  };
  return responseOf(await requestThrough(new URL(request.url), proxy, { method, headers, body, signal }));
}

/** As `fetchOut`, for an SDK, which reads a refusal to its end. */
export async function fetchForSdk(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const response = await fetchOut(input, init);
  if (response.ok || !response.body) return response;
  return new Response(await answerText(response, mostRefusal), response);
}

/** Returns the text of an answer, and no more than the beginning of one that is longer: a server may go on forever. */
export async function answerText(response: Response, most = mostText): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  const pieces: string[] = [];
  for (let length = 0; reader && length <= most; length += pieces.at(-1)?.length ?? 0) {
    const { value, done } = await reader.read();
    if (done) return beginningOf(pieces.join('') + decoder.decode(), most);
    pieces.push(decoder.decode(value, { stream: true }));
  }
  await reader?.cancel();
  return beginningOf(pieces.join(''), most);
}
