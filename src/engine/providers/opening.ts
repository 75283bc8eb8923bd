/** Tells an answer that comes from something else than the model's server: a network's sign-in page, a proxy, another program. */
import { TelosError } from '../errors.ts';

/** To ask again would bring the same. */
export class NoEventStream extends TelosError {}

/** Characters of a strange answer that a person is shown. */
const shown = 160;
/** Characters in which an error says what it has to say. */
const kept = 16_384;

/** How an answer begins. */
export class Opening {
  readonly #type: string;
  #text = '';
  readonly #decoder = new TextDecoder();

  constructor(response: Response) {
    this.#type = (response.headers.get('content-type') ?? '').split(';')[0]!.trim();
  }

  add(bytes: Uint8Array): void {
    if (this.#text.length < kept) this.#text += this.#decoder.decode(bytes, { stream: true });
  }

  /** The answer, where it begins as JSON does; undefined for all others. */
  get json(): string | undefined {
    return this.#text.trimStart().startsWith('{') ? this.#text : undefined;
  }

  /** The error to tell of an answer without a single event that says itself to be something else; undefined for all others. */
  strangerThan(label: string): NoEventStream | undefined {
    if (this.#type === '' || this.#type === 'text/event-stream') return undefined;
    const begins = this.#text.slice(0, shown).replace(/\s+/g, ' ').trim();
    const message = `What answered is not an event stream of ${label} but ${this.#type}: “${begins}”. Check the address, and whether the network wants a sign-in or a proxy stands in between.`;
    return new NoEventStream('provider', message);
  }
}
