/** Answers questions for addresses as a case wants it, one set of answers after the other, on a loopback of its own network. */
import { createSocket } from 'node:dgram';
import { fieldsOf } from './caseFile.ts';

/** The names that the servers of this process were asked for. */
export const namesAsked = new Set<ReadonlyMap<string, number>>();

/** `names` is `{host: [address, ...]}`, or `{host: [[first answer], [second answer]]}`. */
export async function startNameServer(names: unknown): Promise<ReadonlyMap<string, number>> {
  // How often, by name.
  const asked = new Map<string, number>();
  const socket = createSocket('udp4');
  socket.on('message', (question, peer) => {
    const { name, end } = nameIn(question);
    const type = question.readUInt16BE(end);
    const given = fieldsOf(names)[name];
    const rounds = Array.isArray(given) ? (Array.isArray(given[0]) ? given : [given]) : [];
    const round = asked.get(name) ?? 0;
    const addresses = type === 1 ? (rounds[Math.min(round, rounds.length - 1)] ?? []) : [];
    if (type === 1) asked.set(name, round + 1);
    socket.send(
      answerTo(question, end + 4, addresses as string[], rounds.length > 0),
      peer.port,
      peer.address,
    );
  });
  await new Promise<void>(resolve => socket.bind(53, '127.0.0.1', resolve));
  socket.unref();
  return asked;
}

function nameIn(question: Buffer): { name: string; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = question[at] ?? 0; length > 0; length = question[at] ?? 0) {
    labels.push(question.toString('latin1', at + 1, at + 1 + length).toLowerCase());
    at += length + 1;
  }
  return { name: labels.join('.'), end: at + 1 };
}

function answerTo(question: Buffer, end: number, addresses: readonly string[], known: boolean): Buffer {
  const head = Buffer.from(question.subarray(0, end));
  head.writeUInt16BE(known ? 0x8180 : 0x8183, 2);
  head.writeUInt16BE(addresses.length, 6);
  head.writeUInt32BE(0, 8);
  const records = addresses.map(address =>
    Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)]),
  );
  return Buffer.concat([head, ...records]);
}
