/** Holds the schedules of the window: starts what runs while the editor is open, and carries out their commands. Both load on first use. */
import type * as vscode from 'vscode';
import { complain } from '../base/acknowledge.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError, plainLabel } from '../base/labels.ts';
import type { RunsTree } from './runsTree.ts';
import type { ScheduleParts } from './scheduleActions.ts';
import type { ScheduleClock } from './scheduleClock.ts';

/** The editor's memory that something is scheduled, so that other windows load nothing for it. */
const memoryKey = 'telos.schedules';

type Actions = typeof import('./scheduleActions.ts');

export class ScheduleDesk implements vscode.Disposable {
  readonly #context: ScheduleParts['context'];
  readonly #current: CurrentTelos;
  readonly #log: vscode.LogOutputChannel;
  readonly #tree: RunsTree;
  #clock: Promise<ScheduleClock> | undefined;

  constructor(
    context: ScheduleParts['context'],
    current: CurrentTelos,
    log: vscode.LogOutputChannel,
    tree: RunsTree,
  ) {
    this.#context = context;
    this.#current = current;
    this.#log = log;
    this.#tree = tree;
    if (context.globalState.get(memoryKey) !== undefined) void this.#start();
  }

  /** Keeps whether anything is scheduled, and looks for what is due from now on if so. */
  follow(count: number): void {
    const isKnown = this.#context.globalState.get(memoryKey) !== undefined;
    if (isKnown !== count > 0) void this.#context.globalState.update(memoryKey, count > 0 || undefined);
    if (count > 0) void this.#start();
  }

  /** Returns the handler of a command on a node of this kind. It does nothing with any other: a tree may have been redrawn under a menu. */
  on =
    <Node extends { kind: string }>(
      kind: Node['kind'],
      act: (actions: Actions, parts: ScheduleParts, node: Node) => Promise<void>,
    ) =>
    async (node?: Node): Promise<void> => {
      if (node?.kind !== kind) return;
      try {
        await act(await import('./scheduleActions.ts'), this.#parts(), node);
      } catch (error) {
        complain(plainLabel(describeError(error), 500));
      }
    };

  /** Stops what runs, and waits for its end. */
  async end(): Promise<void> {
    await (await this.#clock)?.end();
  }

  dispose(): void {
    void this.#clock?.then(clock => clock.dispose());
  }

  #parts(): ScheduleParts {
    return {
      context: this.#context,
      current: this.#current,
      changed: () => this.#tree.refresh(),
      runNow: async id => (await this.#start()).runNow(id),
    };
  }

  async #start(): Promise<ScheduleClock> {
    this.#clock ??= import('./scheduleClock.ts').then(({ ScheduleClock }) => {
      const clock = new ScheduleClock(this.#current, this.#log, () => this.#tree.refresh());
      clock.start();
      return clock;
    });
    return this.#clock;
  }
}
