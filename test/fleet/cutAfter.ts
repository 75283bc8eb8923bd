/** Stands between a worker and its database, and ends one connection as a server that is being shut down does. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface Cutting {
  /** The database behind it. */
  url: string;
  /** From now on, the answer to the statement is the last that its connection gives. */
  begin(): void;
  /** How many connections it has ended: one at most. */
  cuts(): number;
  close(): Promise<void>;
}

/** A message of the server without an inquiry: terminating connection due to administrator command. */
const farewell = ((): Buffer => {
  const fields = Buffer.from(
    'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0',
  );
  const head = Buffer.from('E\0\0\0\0');
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
})();

/** The end of an answer within a transaction: the server is ready for the next statement. */
const isReady = (chunk: Buffer): boolean => chunk.subarray(-6).equals(Buffer.from('Z\0\0\0\x05T'));

export async function cutAfter(database: string, statement: string): Promise<Cutting> {
  const to = new URL(database);
  const sockets = new Set<Socket>();
  let [wanted, cuts] = [false, 0];
  const server = createServer(client => {
    const behind = connect(Number(to.port), to.hostname);
    let isLast = false;
    for (const socket of [client, behind]) {
      sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => client.destroy() && behind.destroy());
    }
    client.on('data', chunk => {
      if (wanted && cuts === 0 && chunk.includes(statement)) [isLast, cuts] = [true, 1];
      behind.write(chunk);
    });
    behind.on('data', chunk => {
      if (!isLast || !isReady(chunk)) client.write(chunk);
      else client.end(Buffer.concat([chunk, farewell]));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const from = new URL(database);
  from.port = String((server.address() as AddressInfo).port);
  return {
    url: from.href,
    begin() {
      wanted = true;
    },
    cuts: () => cuts,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise(resolve => server.close(resolve));
    },
  };
}
