/** Pushes what a plan's runner has for its remote: orders as they come, and the plan's branch behind each story that has passed. */

import { TelosError } from '@telos/engine/errors';
import { atMost } from '@telos/engine/run';
import type { Git } from '@telos/plans/gitRepository';
import { sentence } from '@telos/protocol/text';
import type { PlanRemote } from './planRemote.ts';

export interface PusherParts {
  git: Git;
  remote: PlanRemote;
  plan: string;
  branch: string;
  base: string;
  log: (line: string) => void;
  /** Aborts when the plan is over. */
  signal: AbortSignal;
}

/** How long the last push may take when the plan rests, and how long one waits for an order that it can go with. In milliseconds. */
const lastMs = 20_000;
const soonMs = 1_500;

export class PlanPusher {
  readonly remote: PlanRemote;
  readonly #parts: PusherParts;
  readonly #inTurn = atMost(1);
  /** Where the remote has the plan's branch. */
  #there: string | undefined;
  /** What goes with the next push. */
  #waiting = new Map<string, string>();
  #next: Promise<void> | undefined;
  #soon: NodeJS.Timeout | undefined;

  constructor(parts: PusherParts) {
    this.#parts = parts;
    this.remote = parts.remote;
  }

  /** Looks where the remote has the branch, and pushes the base. Throws TelosError `config` if another clone works on the plan. */
  async begin(): Promise<void> {
    const { plan, base, branch, signal } = this.#parts;
    this.#there = await this.remote.tip(`refs/heads/${branch}`, signal);
    await this.#refuseForeign(this.#there);
    await this.push(new Map([[`refs/telos/${plan}/base`, base]]), signal);
  }

  /** Pushes the refs, and the branch as it is now. What is asked for while another push runs goes with the next one. */
  async push(refs: ReadonlyMap<string, string>, signal: AbortSignal): Promise<void> {
    for (const [ref, commit] of refs) this.#waiting.set(ref, commit);
    this.#next ??= this.#inTurn(() => this.#pushWaiting());
    await this.#next;
    signal.throwIfAborted();
  }

  /** Has a ref deleted with the next push. */
  forget(ref: string): void {
    this.#waiting.set(ref, '');
  }

  /** The branch has moved. It is pushed with the next order, or soon if there is none. */
  branchMoved(): void {
    clearTimeout(this.#soon);
    this.#soon = setTimeout(() => {
      this.push(new Map(), this.#parts.signal).catch(() => undefined);
    }, soonMs);
  }

  /** Pushes what is left, for a moment. */
  async last(): Promise<void> {
    clearTimeout(this.#soon);
    const { signal, log } = this.#parts;
    if (signal.aborted) return;
    const late = new Promise<void>(done => setTimeout(done, lastMs).unref());
    await Promise.race([this.push(new Map(), signal).catch(error => log((error as Error).message)), late]);
  }

  async #pushWaiting(): Promise<void> {
    const refs = this.#waiting;
    this.#waiting = new Map();
    this.#next = undefined;
    const { git, branch, signal, log } = this.#parts;
    const ref = `refs/heads/${branch}`;
    for (;;) {
      const tip = await git.tip(ref);
      const lease =
        tip === undefined || tip === this.#there ? undefined : { ref, commit: tip, from: this.#there };
      if (await this.remote.push(refs, lease, signal)) {
        if (lease) this.#there = tip;
        return;
      }
      const there = await this.remote.tip(ref, signal);
      await this.#refuseForeign(there);
      if (there !== tip)
        log(`The remote ${this.remote.shown} had an earlier state of ${branch}. It gets the present one.`);
      this.#there = there;
    }
  }

  /** What the remote has must be a part of the branch here: only this clone puts anything on it. */
  async #refuseForeign(there: string | undefined): Promise<void> {
    const { git, branch, base } = this.#parts;
    if (there === undefined) return;
    const own = (await git.tip(`refs/heads/${branch}`)) ?? base;
    // Without the commit here, git has nothing to compare.
    const isKnown = (await git.tip(there)) !== undefined;
    const common = isKnown ? await git.run(['merge-base', there, own], { allow: [1] }) : undefined;
    if (common?.stdout.trim() === there) return;
    throw new TelosError('config', [
      sentence(
        'The branch {0} has commits on {1} that are not in it here: another clone works on this plan, or an earlier plan had this name.',
        branch,
        this.remote.shown,
      ),
      sentence(
        'Let one of them go on, delete the branch there, or give this plan another branch in plan.json.',
      ),
    ]);
  }
}
