/** Keeps the beginning and the end of what a command prints, however much it is, and puts it into words for the model. */
import {
  decodeUtf8,
  describeBinary,
  grouped,
  looksBinary,
  withoutPartialEnd,
  withoutPartialStart,
} from './plainText.ts';

/** One stream of a command; keeps at most `limit` bytes (an even number), half of them from the beginning. */
export class OutputCapture {
  readonly #half: number;
  readonly #head: Buffer[] = [];
  #headSize = 0;
  /** The last bytes in a ring, made when the head is full; the next byte goes to `#total - #headSize` modulo its size. */
  #tail: Buffer | undefined;
  #total = 0;

  constructor(limit: number) {
    this.#half = limit / 2;
  }

  /** All bytes that came, kept or not. */
  get total(): number {
    return this.#total;
  }

  /** Something between its beginning and its end was not kept. */
  get isCut(): boolean {
    return this.#total > 2 * this.#half;
  }

  add(chunk: Buffer): void {
    const forHead = chunk.subarray(0, this.#half - this.#headSize);
    if (forHead.length > 0) this.#head.push(forHead);
    this.#headSize += forHead.length;
    this.#total += forHead.length;
    const rest = chunk.subarray(forHead.length);
    if (rest.length > 0) this.#addToTail(rest);
  }

  #addToTail(chunk: Buffer): void {
    this.#tail ??= Buffer.alloc(this.#half);
    const end = this.#total + chunk.length;
    const kept = chunk.subarray(-this.#half);
    const position = (end - kept.length - this.#headSize) % this.#half;
    const copied = kept.copy(this.#tail, position);
    kept.copy(this.#tail, 0, copied);
    this.#total = end;
  }

  /** What was kept, as text without its last newlines; says what was left out, and says binary output instead of showing it. */
  text(): string {
    const head = Buffer.concat(this.#head);
    if (looksBinary(head)) return describeBinary('output', head, this.#total);
    const tail = this.#tailBytes();
    const leftOut = this.#total - head.length - tail.length;
    if (leftOut === 0) return trimmed(decodeUtf8(Buffer.concat([head, tail])));
    const note = `[Cut: ${grouped(leftOut)} of ${grouped(this.#total)} bytes are left out here.]`;
    return `${decodeUtf8(withoutPartialEnd(head))}\n${note}\n${trimmed(decodeUtf8(withoutPartialStart(tail)))}`;
  }

  #tailBytes(): Buffer {
    const size = this.#total - this.#headSize;
    if (this.#tail === undefined) return Buffer.alloc(0);
    if (size <= this.#half) return this.#tail.subarray(0, size);
    const next = size % this.#half;
    return Buffer.concat([this.#tail.subarray(next), this.#tail.subarray(0, next)]);
  }
}

const trimmed = (text: string): string => text.replace(/(?:\r?\n)+$/, '');
