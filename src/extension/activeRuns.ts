/** The runs of one chat that have not ended: the one that it shows, and those of conversations that it has left behind. */
import { Interruption } from '../engine/errors.ts';

/** The chat's own; one that is only played again; or one of another place, which is watched. */
export type RunKind = 'own' | 'replay' | 'elsewhere';

interface ActiveRun {
  kind: RunKind;
  controller: AbortController;
  done: Promise<void>;
}

export class ActiveRuns {
  readonly #changed: () => void;
  readonly #all = new Set<ActiveRun>();
  #shown: ActiveRun | undefined;

  /** `changed` is told when the shown run has started or ended. */
  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** What kind of run is shown; undefined while none goes on. */
  get kind(): RunKind | undefined {
    return this.#shown?.kind;
  }

  /** Settles with the end of the shown run. */
  get done(): Promise<void> {
    return this.#shown?.done ?? Promise.resolve();
  }

  /**
   * Starts a run, which is the shown one from now on. `flush` is called at its end, `next` behind that where it is still shown, with whether it
   * was stopped. `work` never throws.
   */
  start(
    kind: RunKind,
    work: (signal: AbortSignal) => Promise<void>,
    { flush, next }: { flush(): void; next(isStopped: boolean): void },
  ): void {
    const controller = new AbortController();
    const run: ActiveRun = { kind, controller, done: Promise.resolve() };
    this.#shown = run;
    this.#all.add(run);
    this.#changed();
    run.done = work(controller.signal).finally(() => {
      flush();
      this.#all.delete(run);
      if (this.#shown !== run) return;
      this.#shown = undefined;
      this.#changed();
      next(controller.signal.aborted);
    });
  }

  /** Aborts the shown run; it reports its own end. */
  abort(): void {
    this.#shown?.controller.abort();
  }

  /** The same, and it is no longer shown. */
  leave(): void {
    this.abort();
    this.#shown = undefined;
  }

  /** Ends every run and waits until each has said so. */
  async end(): Promise<void> {
    for (const run of this.#all) run.controller.abort(new Interruption());
    await Promise.all([...this.#all].map(run => run.done));
  }
}
