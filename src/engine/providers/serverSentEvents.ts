/**
 * Decodes the bytes of an event stream. The SDKs can do this too, but they pass each event through two async generators.
 * With long answers that is half of the time. They also hide whether a stream was complete or merely stopped.
 */

export interface ServerSentEvent {
  /** Empty if the stream gave none. */
  name: string;
  data: string;
}

/** Decodes one stream. Bytes may be split anywhere, also within a character. */
export class EventStreamDecoder {
  readonly #text = new TextDecoder();
  /** The beginning of a line whose end has not arrived yet. */
  #rest = '';
  #name = '';
  #data: string | undefined;

  /** Returns the events that these bytes complete, in order. Comments and empty events are left out. */
  push(bytes: Uint8Array): ServerSentEvent[] {
    const text = this.#rest + this.#text.decode(bytes, { stream: true });
    const events: ServerSentEvent[] = [];
    let start = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      this.#readLine(
        text.charCodeAt(end - 1) === 13 ? text.slice(start, end - 1) : text.slice(start, end),
        events,
      );
      start = end + 1;
    }
    this.#rest = text.slice(start);
    return events;
  }

  #readLine(line: string, events: ServerSentEvent[]): void {
    if (line === '') {
      if (this.#data) events.push({ name: this.#name, data: this.#data });
      this.#name = '';
      this.#data = undefined;
      return;
    }
    if (line.startsWith('data:')) {
      const value = fieldValue(line, 5);
      this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
    } else if (line.startsWith('event:')) this.#name = fieldValue(line, 6);
  }
}

/** Returns the value of a field. One space after the colon belongs to the format. */
function fieldValue(line: string, start: number): string {
  return line.slice(line.charCodeAt(start) === 32 ? start + 1 : start);
}
