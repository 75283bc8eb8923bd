/** Fakes the proxy of a company: it alone can resolve names that end in `.test`, and it wants a login if it is given one. */
import { createServer, request as requestHttp } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';

export interface FakeProxy {
  /** Address of the proxy, without a login. */
  url: string;
  /** `CONNECT host:port`, or the method and the whole address, in the order of arrival. */
  asked: string[];
  close(): Promise<void>;
}

export interface ProxyOptions {
  /** The port of this machine behind each name. */
  ports: Readonly<Record<string, number>>;
  /** `name:password` that each request must bring. */
  login?: string;
  /** The connection is cut after this many bytes of an answer. */
  cutAfterBytes?: number;
}

/** Starts the proxy. It answers 502 for a name that it does not know. */
export async function startProxy({ ports, login, cutAfterBytes }: ProxyOptions): Promise<FakeProxy> {
  const asked: string[] = [];
  const sockets = new Set<Duplex>();
  const isKnown = (given: string | undefined): boolean =>
    login === undefined || given === `Basic ${Buffer.from(login).toString('base64')}`;
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    if (!isKnown(request.headers['proxy-authorization'])) return void response.writeHead(407).end('Log in.');
    // A path alone is a request to the proxy itself.
    const url = URL.canParse(request.url ?? '') ? new URL(request.url ?? '') : undefined;
    const port = url && ports[url.hostname];
    if (!url || !port) return void response.writeHead(502).end();
    const { 'proxy-authorization': _login, ...headers } = request.headers;
    const onward = requestHttp({
      host: '127.0.0.1',
      port,
      method: request.method,
      path: url.pathname + url.search,
      headers,
    });
    onward.once('error', () => response.destroy());
    onward.once('response', answer => {
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      let passed = 0;
      answer.on('data', (chunk: Buffer) => {
        passed += chunk.length;
        const isEnough = cutAfterBytes !== undefined && passed >= cutAfterBytes;
        response.write(chunk, () => isEnough && response.destroy());
      });
      answer.on('end', () => response.end());
    });
    request.pipe(onward);
  });
  server.on('connect', (request, socket) => {
    asked.push(`CONNECT ${request.url}`);
    socket.on('error', () => socket.destroy());
    if (!isKnown(request.headers['proxy-authorization']))
      return socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
    const port = ports[request.url?.split(':')[0] ?? ''];
    if (!port) return socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
    const onward = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      onward.pipe(socket).pipe(onward);
    });
    onward.on('error', () => socket.destroy());
  });
  server.on('connection', socket => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>(settle => server.listen(0, '127.0.0.1', settle));
  const close = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    await new Promise(settle => server.close(settle));
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, close };
}
