/** Keeps what a command writes within limits, for the model, and makes it text for a person who watches. */

import { StringDecoder } from 'node:string_decoder';
import { withOutput } from '@telos/protocol/liveText';
import type { ToolResult } from '@telos/protocol/run';
import { grouped } from '@telos/protocol/text';
import {
  decodeUtf8,
  describeBinary,
  looksBinary,
  withoutPartialEnd,
  withoutPartialStart,
} from '../files/plainText.ts';

/** One stream of a command. Keeps at most `limit` bytes (an even number), half of them from the beginning. */
export class OutputCapture {
  readonly #half: number;
  readonly #head: Buffer[] = [];
  #headSize = 0;
  /**
   * The last bytes in a ring, created when the head is full. The next byte goes to `#total - #headSize` modulo its size.
   */
  #tail: Buffer | undefined;
  #total = 0;

  constructor(limit: number) {
    this.#half = limit / 2;
  }

  /** All bytes received, kept or not. */
  get total(): number {
    return this.#total;
  }

  /** True if a part between the beginning and the end was not kept. */
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

  /**
   * Returns the kept output as text without its last newlines. Says how much was left out, and describes binary output
   * instead of showing it.
   */
  text(): string {
    const head = Buffer.concat(this.#head);
    if (looksBinary(head)) return describeBinary('output', head, this.#total);
    const tail = this.#tailBytes();
    const leftOut = this.#total - head.length - tail.length;
    if (leftOut === 0) return trimmed(asShown(decodeUtf8(Buffer.concat([head, tail]))));
    const note = `[Cut: ${grouped(leftOut)} of ${grouped(this.#total)} bytes are left out here.]`;
    const [begin, end] = [decodeUtf8(withoutPartialEnd(head)), decodeUtf8(withoutPartialStart(tail))];
    return `${asShown(begin)}\n${note}\n${trimmed(asShown(end))}`;
  }

  #tailBytes(): Buffer {
    const size = this.#total - this.#headSize;
    if (this.#tail === undefined) return Buffer.alloc(0);
    if (size <= this.#half) return this.#tail.subarray(0, size);
    const next = size % this.#half;
    return Buffer.concat([this.#tail.subarray(next), this.#tail.subarray(0, next)]);
  }
}

/** Returns what a terminal would show: without colours, and of a line that is written again and again its last state. */
const asShown = (text: string): string =>
  /[\x1b\x9b\r]/.test(text) ? withOutput('', text.replace(sequence, ''), Number.POSITIVE_INFINITY) : text;

const trimmed = (text: string): string => text.replace(/(?:\r?\n)+$/, '');

export interface CommandStreams {
  stdout: OutputCapture;
  stderr: OutputCapture;
}

/** Returns the result for the model. `code` is undefined if the command was stopped. */
export function reportOn(
  { stdout, stderr }: CommandStreams,
  code: number | undefined,
  note: string | undefined,
): ToolResult {
  const errors = stderr.text();
  const parts = [
    stdout.text(),
    errors === '' ? '' : `[stderr]\n${errors}`,
    note ?? '',
    code === undefined || code === 0 ? '' : `[exit code: ${code}]`,
  ];
  const content = parts.filter(part => part !== '').join('\n\n');
  const isCut = stdout.isCut || stderr.isCut;
  return {
    content: content === '' ? '(no output)' : content,
    isError: code !== 0,
    ...(isCut ? { wholeSize: stdout.total + stderr.total } : {}),
  };
}

/** In milliseconds. What ends sooner is shown with its result alone. */
const firstAfter = 300;
/** Time between two texts. In milliseconds. */
const interval = 50;
/** Most bytes that one text is made of. Of a flood, no one can read more. */
const mostAtOnce = 16 * 1024;
/** Most characters of an unfinished escape sequence that wait for their end. */
const longestOpen = 256;

/** Sequences with which a program colors text, moves the cursor or names the window. */
const sequence =
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[PX^_][^\x1b]*\x1b\\|\x1b[ -/]*[0-OQ-WYZ\\`-~]/g;
/** The beginning of a sequence at the end of a text. */
const openSequence = /(?:\x1b|(?:\x1b\[|\x9b)[0-?]*[ -/]*|\x1b[\]PX^_][^\x07\x1b]*\x1b?|\x1b[ -/]+)$/;
const controls = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;

type StreamName = 'stdout' | 'stderr';

/** Turns what a running command writes into text for a person who watches: plain, bounded, and a few times a second. */
export class LiveOutput {
  readonly #show: (text: string) => void;
  readonly #began = performance.now();
  readonly #plain = { stdout: new PlainText(), stderr: new PlainText() };
  #waiting: { stream: StreamName; chunk: Buffer }[] = [];
  #bytes = 0;
  #isCut = false;
  #hasShown = false;
  #timer: NodeJS.Timeout | undefined;

  /** `show` gets the text since its last call, without escape sequences. A carriage return begins the line again. */
  constructor(show: (text: string) => void) {
    this.#show = show;
  }

  add(stream: StreamName, chunk: Buffer): void {
    this.#waiting.push({ stream, chunk });
    this.#bytes += chunk.length;
    while (this.#bytes > mostAtOnce && this.#waiting.length > 1) {
      this.#bytes -= this.#waiting.shift()?.chunk.length ?? 0;
      this.#isCut = true;
    }
    const early = this.#began + firstAfter - performance.now();
    this.#timer ??= setTimeout(() => this.#flush(), Math.max(interval, early));
    this.#timer.unref();
  }

  /** Shows the rest, if anything was shown before. Call it when the command has ended. */
  end(): void {
    clearTimeout(this.#timer);
    if (this.#hasShown) this.#flush();
  }

  #flush(): void {
    this.#timer = undefined;
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#bytes = 0;
    let text = '';
    if (this.#isCut) for (const plain of Object.values(this.#plain)) plain.reset();
    for (const { stream, chunk } of waiting) {
      if (chunk.length > mostAtOnce) this.#isCut = true;
      text += this.#plain[stream].of(chunk.subarray(-mostAtOnce));
    }
    // What was cut may begin in the middle of a sequence, or of something that must not be shown.
    if (this.#isCut) text = text.includes('\n') ? `…\n${text.slice(text.indexOf('\n') + 1)}` : '…\n';
    this.#isCut = false;
    if (text === '') return;
    this.#hasShown = true;
    this.#show(text);
  }
}

/** Decodes one stream and takes out what steers a terminal, also where a chunk ends in the middle of it. */
class PlainText {
  #decoder = new StringDecoder('utf8');
  #open = '';
  #isBinary = false;

  /** Forgets what is unfinished. */
  reset(): void {
    this.#decoder = new StringDecoder('utf8');
    this.#open = '';
  }

  of(chunk: Buffer): string {
    this.#isBinary ||= chunk.includes(0);
    if (this.#isBinary) return '';
    const text = (this.#open + this.#decoder.write(chunk)).replace(sequence, '');
    const open = openSequence.exec(text)?.[0] ?? '';
    this.#open = open.length > longestOpen ? '' : open;
    return text.slice(0, text.length - open.length).replace(controls, '');
  }
}
