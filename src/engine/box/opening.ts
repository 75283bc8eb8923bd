/** Reads the first bytes of a connection: what it speaks, and the host that it names. */

/** What a client begins with. `names` are those that a TLS greeting gives for its server; undefined if it cannot be read. */
export type Opening = { speaks: 'tls'; names: readonly string[] | undefined } | { speaks: 'http' | 'other' };

/** Returns how the bytes begin, or undefined if there are too few of them to tell. */
export function openingOf(bytes: Buffer): Opening | undefined {
  if (bytes.length === 0) return undefined;
  if (bytes[0] === handshakeRecord) {
    const hello = clientHello(bytes);
    if (hello === 'more') return undefined;
    return { speaks: 'tls', names: hello && serverNames(hello) };
  }
  const start = bytes.toString('latin1', 0, 32);
  if (/^[A-Z]+ /.test(start)) return { speaks: 'http' };
  return /^[A-Z]{1,24}$/.test(start) ? undefined : { speaks: 'other' };
}

const handshakeRecord = 22;
const clientHelloMessage = 1;
const serverNameExtension = 0;

/** Returns the body of a ClientHello, `more` if it has not arrived whole, or undefined if it is none. It may fill several records. */
function clientHello(bytes: Buffer): Buffer | 'more' | undefined {
  const parts: Buffer[] = [];
  let size = 0;
  for (let at = 0; ; ) {
    if (bytes.length < at + 5)
      return bytes.length === at || bytes[at] === handshakeRecord ? 'more' : undefined;
    const length = bytes.readUInt16BE(at + 3);
    if (bytes[at] !== handshakeRecord || bytes[at + 1] !== 3 || length === 0) return undefined;
    const part = bytes.subarray(at + 5, at + 5 + length);
    parts.push(part);
    size += part.length;
    const message = Buffer.concat(parts, size);
    if (size > 0 && message[0] !== clientHelloMessage) return undefined;
    if (size >= 4 && size >= 4 + message.readUIntBE(1, 3))
      return message.subarray(4, 4 + message.readUIntBE(1, 3));
    if (part.length < length) return 'more';
    at += 5 + length;
  }
}

/** Returns the host names of a ClientHello in lower case, or undefined if it is malformed. */
function serverNames(hello: Buffer): readonly string[] | undefined {
  try {
    // Version and random bytes, then the session, the ciphers and the compressions.
    let at = 34;
    at += 1 + hello.readUInt8(at);
    at += 2 + hello.readUInt16BE(at);
    at += 1 + hello.readUInt8(at);
    if (at === hello.length) return [];
    const end = at + 2 + hello.readUInt16BE(at);
    if (end !== hello.length) return undefined;
    const names: string[] = [];
    for (at += 2; at < end; ) {
      const length = hello.readUInt16BE(at + 2);
      const next = at + 4 + length;
      if (next > end) return undefined;
      if (hello.readUInt16BE(at) === serverNameExtension)
        names.push(...namesIn(hello.subarray(at + 4, next)));
      at = next;
    }
    return names;
  } catch {
    return undefined;
  }
}

/** Returns the names of an extension. Throws if it is malformed. */
function namesIn(list: Buffer): string[] {
  const names: string[] = [];
  if (list.readUInt16BE(0) !== list.length - 2) throw new RangeError('The list of names has another length.');
  for (let at = 2; at < list.length; ) {
    const length = list.readUInt16BE(at + 1);
    if (list.readUInt8(at) !== 0 || at + 3 + length > list.length)
      throw new RangeError('A name is not a host.');
    names.push(list.toString('latin1', at + 3, at + 3 + length).toLowerCase());
    at += 3 + length;
  }
  return names;
}

/** The version that a SOCKS client begins with. */
export const socksVersion = 5;

/** Answers of SOCKS, by what they say. The address in them is never used. */
export const socksAnswers = {
  noLogin: Buffer.from([socksVersion, 0]),
  login: Buffer.from([socksVersion, 2]),
  loggedIn: Buffer.from([1, 0]),
  wrongLogin: Buffer.from([1, 1]),
  noCommonLogin: Buffer.from([socksVersion, 0xff]),
  connected: Buffer.from([socksVersion, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
  refused: Buffer.from([socksVersion, 2, 0, 1, 0, 0, 0, 0, 0, 0]),
  unreachable: Buffer.from([socksVersion, 4, 0, 1, 0, 0, 0, 0, 0, 0]),
  unsupported: Buffer.from([socksVersion, 7, 0, 1, 0, 0, 0, 0, 0, 0]),
};

/** Returns which ways to log in a greeting offers, and its length; undefined if it is not whole. */
export function socksGreeting(
  bytes: Buffer,
): { length: number; noLogin: boolean; login: boolean } | undefined {
  if (bytes.length < 2 || bytes.length < 2 + bytes[1]!) return undefined;
  const length = 2 + bytes[1]!;
  const offered = bytes.subarray(2, length);
  return { length, noLogin: offered.includes(0), login: offered.includes(2) };
}

/** Returns the name and the password of a SOCKS login as `name:password`, and its length; undefined if it is not whole. */
export function socksLogin(bytes: Buffer): { length: number; login: string } | undefined {
  const second = 2 + (bytes[1] ?? 0);
  if (bytes.length <= second || bytes.length < second + 1 + bytes[second]!) return undefined;
  const length = second + 1 + bytes[second]!;
  const [name, password] = [bytes.subarray(2, second), bytes.subarray(second + 1, length)];
  return { length, login: `${name.toString('latin1')}:${password.toString('latin1')}` };
}

/** Returns where a SOCKS request leads, as `host:port`, and its length; undefined if it is not whole. */
export function socksRequest(bytes: Buffer): { length: number; authority: string | undefined } | undefined {
  if (bytes.length < 5) return undefined;
  const kind = bytes[3]!;
  const start = kind === 3 ? 5 : 4;
  const size = kind === 1 ? 4 : kind === 4 ? 16 : kind === 3 ? bytes[4]! : 0;
  const length = start + size + 2;
  if (bytes.length < length) return undefined;
  // Only a connection of the client can be made: no one may connect to it, and datagrams are not checked.
  if (bytes[0] !== socksVersion || bytes[1] !== 1 || size === 0) return { length, authority: undefined };
  const address = bytes.subarray(start, start + size);
  const host =
    kind === 1 ? [...address].join('.') : kind === 3 ? address.toString('latin1') : `[${groupsOf(address)}]`;
  return { length, authority: `${host}:${bytes.readUInt16BE(start + size)}` };
}

const groupsOf = (address: Buffer): string => address.toString('hex').match(/.{4}/g)!.join(':');
