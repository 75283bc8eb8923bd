/** A small program that the box asks things, one after another, for as long as a conversation needs it. It keeps no process alive. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';

/** In milliseconds. */
const patience = 5000;

export class Helper {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #waiting: { until: string; done: (said: string) => void; fail: (error: Error) => void }[] = [];
  #said = '';
  #errors = '';
  #hasEnded = false;

  /** Starts it. It ends with its input, and so with this process. */
  constructor(program: string, args: readonly string[]) {
    this.#child = spawn(program, args, {
      cwd: '/',
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
      stdio: ['pipe', 'pipe', 'pipe'],
      // A signal that ends the group of Telos must not end it before what it serves.
      detached: true,
    });
    const { stdin, stdout, stderr } = this.#child;
    stdin.on('error', () => undefined);
    stdout.setEncoding('utf8').on('data', (text: string) => this.#hear(text));
    stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#errors = (this.#errors + text).slice(0, 1000);
    });
    const why = (): Error => new Error(this.#errors.trim().split('\n')[0] || 'it was ended');
    this.#child.on('error', error => this.#end(error)).on('close', () => this.#end(why()));
  }

  /** Says something to it, if given, and returns what it says next, up to `until`. Throws an Error if it has ended, or takes too long. */
  async ask(what: readonly (string | Uint8Array)[], until: string): Promise<string> {
    if (this.#hasEnded) throw new Error('it was ended');
    const late = setTimeout(() => this.#child.kill('SIGKILL'), patience);
    for (const each of this.#handles()) each.ref();
    try {
      return await new Promise<string>((done, fail) => {
        this.#waiting.push({ until, done, fail });
        for (const each of what) this.#child.stdin.write(each);
      });
    } finally {
      clearTimeout(late);
      if (this.#waiting.length === 0) for (const each of this.#handles()) each.unref();
    }
  }

  /** Says a line to which there is no answer. */
  say(line: string): void {
    if (!this.#hasEnded) this.#child.stdin.write(`${line}\n`);
  }

  close(): void {
    this.#child.stdin.end();
  }

  #hear(text: string): void {
    this.#said += text;
    for (let [next] = this.#waiting; next; [next] = this.#waiting) {
      const end = this.#said.indexOf(next.until);
      if (end < 0) return;
      this.#waiting.shift();
      next.done(this.#said.slice(0, end));
      this.#said = this.#said.slice(end + next.until.length);
    }
  }

  #end(error: Error): void {
    this.#hasEnded = true;
    for (const { fail } of this.#waiting.splice(0)) fail(error);
  }

  #handles(): { ref(): void; unref(): void }[] {
    return [this.#child, this.#child.stdin, this.#child.stdout, this.#child.stderr] as never;
  }
}
