/**
 * Cuts what a server writes into messages of one line each. The SDK's own buffer copies and searches all it has with every piece that arrives, which
 * holds everything up for seconds when a line has many megabytes.
 */

export class MessageBuffer<Message> {
  readonly #read: (line: string) => Message;
  readonly #maxBytes: number;
  /** Pieces of the line that has no end yet, and then, in `#lines`, whole lines. */
  #pieces: Buffer[] = [];
  #size = 0;
  #lines: string[] = [];

  /** `read` makes a message of a line, and may throw; a line that is longer than `maxBytes` is an error. */
  constructor(read: (line: string) => Message, maxBytes: number) {
    this.#read = read;
    this.#maxBytes = maxBytes;
  }

  /** Throws when the line that is being written has become too long; then all is forgotten. */
  append(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, from)) {
      this.#keep(chunk.subarray(from, end));
      this.#lines.push(Buffer.concat(this.#pieces).toString('utf8').replace(/\r$/, ''));
      this.#pieces = [];
      this.#size = 0;
      from = end + 1;
    }
    this.#keep(chunk.subarray(from));
  }

  /** The next message, or null while there is none. Throws what `read` throws; that line is gone then. */
  readMessage(): Message | null {
    const line = this.#lines.shift();
    return line === undefined ? null : this.#read(line);
  }

  clear(): void {
    this.#pieces = [];
    this.#size = 0;
    this.#lines = [];
  }

  #keep(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#size += piece.length;
    if (this.#size > this.#maxBytes) {
      this.clear();
      throw new Error(`one message has more than ${this.#maxBytes} bytes`);
    }
    this.#pieces.push(piece);
  }
}
