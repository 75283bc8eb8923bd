/** Times one call of a server's tool. */

/** Time limits, in milliseconds. */
export interface McpLimits {
  /** From a server's start to the list of its tools. */
  connectMs: number;
  /** How long a call may take without a progress message. */
  callMs: number;
  /** How long a call may take that reports its progress. */
  longestCallMs: number;
}

/** Ends a call that takes too long, or that reports no progress. Stands still while a person is asked. */
export class CallClock {
  readonly #limits: McpLimits;
  readonly #over: (reason: Error) => void;
  #comesOn = false;
  #asked = 0;
  /** What the whole call still has, and since when that runs. */
  #left: number;
  #since = performance.now();
  #whole: NodeJS.Timeout | undefined;
  #silence: NodeJS.Timeout | undefined;
  /** Says why the call was ended. */
  overText = '';

  constructor(limits: McpLimits, over: (reason: Error) => void) {
    this.#limits = limits;
    this.#over = over;
    this.#left = limits.longestCallMs;
    this.#start();
  }

  heard(): void {
    this.#comesOn = true;
    if (this.#asked === 0) this.#listen();
  }

  pause(): void {
    if (this.#asked++ > 0) return;
    this.#left -= performance.now() - this.#since;
    this.#clear();
  }

  resume(): void {
    if (--this.#asked === 0) this.#start();
  }

  stop(): void {
    this.#clear();
    this.#asked = Number.POSITIVE_INFINITY;
  }

  #start(): void {
    this.#since = performance.now();
    const { longestCallMs } = this.#limits;
    this.#whole = setTimeout(
      () => this.#end(`did not finish within ${longestCallMs / 1000} s`),
      Math.max(0, this.#left),
    );
    this.#listen();
  }

  #listen(): void {
    const { callMs } = this.#limits;
    const what = this.#comesOn ? 'reported no progress for' : 'did not answer within';
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.#end(`${what} ${callMs / 1000} s`), callMs);
  }

  #end(text: string): void {
    this.overText = text;
    this.#over(new Error('The call took too long.'));
  }

  #clear(): void {
    clearTimeout(this.#whole);
    clearTimeout(this.#silence);
  }
}
