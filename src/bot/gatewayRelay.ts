/** Leads the bot's lasting connection to Discord through a proxy, of which discord.js knows nothing: through a way on this machine. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { openTunnel, proxyFor } from '@telos/engine/tools';

export interface GatewayRelay {
  /** Returns the address to connect to in place of Discord's: its own, unless a proxy leads there. */
  addressFor(gateway: string): string;
  close(): void;
}

/** Starts the way. No other program knows its addresses. */
export async function startRelay(): Promise<GatewayRelay> {
  const secret = randomBytes(24).toString('hex');
  const sockets = new Set<Duplex>();
  const keep = <One extends Duplex>(socket: One): One => {
    sockets.add(socket);
    return socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
  };
  const server = createServer((_, response) => void response.writeHead(404).end());
  server.on('upgrade', (request, socket, head) => {
    keep(socket);
    const [, given, place] = (request.url ?? '').split(/[/?]/);
    if (given !== secret || !place) return void socket.destroy();
    lead(request, new URL(decodeURIComponent(place)), keep).then(
      onward => {
        onward.write(head);
        onward.on('close', () => socket.destroy());
        socket.on('close', () => onward.destroy());
        onward.pipe(socket).pipe(onward);
      },
      // The library tries again, and says that it was not let in.
      () => socket.end('HTTP/1.1 502 Bad Gateway\r\nconnection: close\r\n\r\n'),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    addressFor: gateway =>
      proxyFor(webAddress(new URL(gateway)))
        ? `ws://127.0.0.1:${port}/${secret}/${encodeURIComponent(gateway)}`
        : gateway,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** Returns the address by which proxies know a gateway. */
const webAddress = ({ protocol, host }: URL): URL =>
  new URL(`${protocol === 'wss:' ? 'https' : 'http'}://${host}/`);

/** Returns the connection to Discord, on which the request has been made. Rejects with the errors of `openTunnel`. */
async function lead(
  { url = '', rawHeaders }: IncomingMessage,
  gateway: URL,
  keep: <One extends Duplex>(socket: One) => One,
): Promise<Duplex> {
  const address = webAddress(gateway);
  const proxy = proxyFor(address);
  if (!proxy) throw new Error('No proxy leads there any more.');
  const tunnel = keep(await openTunnel(address, proxy, undefined));
  const onward = keep(gateway.protocol === 'wss:' ? await secured(tunnel, gateway.hostname) : tunnel);
  const headers = rawHeaders.map((text, at) =>
    at % 2 === 0 ? `${text}: ` : `${/^host$/i.test(rawHeaders[at - 1] ?? '') ? gateway.host : text}\r\n`,
  );
  const path = gateway.pathname + url.replace(/^[^?]*/, '');
  onward.write(`GET ${path} HTTP/1.1\r\n${headers.join('')}\r\n`);
  return onward;
}

async function secured(socket: Socket, host: string): Promise<Duplex> {
  const safe = connectTls({ socket, servername: host, host });
  await once(safe, 'secureConnect');
  return safe;
}
