/** Sends the requests that go to a person's own choice of server: to the providers of models. */
import { proxyFor } from './wayOut.ts';

/** Behaves like the global `fetch`. Through a proxy it follows no redirect, and rejects with the errors of `requestThrough`. */
export async function fetchOut(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const proxy = proxyFor(new URL(input instanceof Request ? input.url : input));
  if (!proxy) return fetch(input, init);
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
