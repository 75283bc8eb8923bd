/** Runs what is due while the editor is open, for schedules that no clock of the system starts. */

import { Interruption } from '@telos/engine/errors';
import { dueTime, isRunning, runIfDue, type Schedule, Schedules } from '@telos/engine/schedule';
import * as vscode from 'vscode';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError } from '../base/labels.ts';
import { untrustedMessage } from '../editor/editorRuns.ts';

/** In milliseconds. */
const lookInterval = 15_000;

export class ScheduleClock implements vscode.Disposable {
  readonly #current: CurrentTelos;
  readonly #log: vscode.LogOutputChannel;
  readonly #changed: () => Promise<void>;
  readonly #controller = new AbortController();
  readonly #running = new Map<string, Promise<void>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(current: CurrentTelos, log: vscode.LogOutputChannel, changed: () => Promise<void>) {
    this.#current = current;
    this.#log = log;
    this.#changed = changed;
  }

  /** Looks for what is due, now and from now on. In Restricted Mode nothing runs. */
  start(): void {
    this.#timer ??= setInterval(() => this.#look(), lookInterval);
    this.#look();
  }

  /** Runs one now. Rejects if it cannot begin, as in Restricted Mode. */
  async runNow(id: string): Promise<void> {
    if (!vscode.workspace.isTrusted) throw new Error(untrustedMessage);
    const { config } = await this.#current.openTelos();
    await this.#run(new Schedules(config.dataDir).get(id), true);
  }

  /** Stops its runs and waits for their end. */
  async end(): Promise<void> {
    this.dispose();
    await Promise.allSettled(this.#running.values());
  }

  dispose(): void {
    clearInterval(this.#timer);
    this.#controller.abort(new Interruption());
  }

  #look(): void {
    this.#due().catch(error => this.#log.error(`Schedules could not be read: ${describeError(error)}`));
  }

  async #due(): Promise<void> {
    if (!vscode.workspace.isTrusted || this.#controller.signal.aborted) return;
    const { config } = await this.#current.openTelos();
    const { schedules } = new Schedules(config.dataDir).list();
    const due = schedules.filter(one => one.clock === 'none' && dueTime(one, new Date()) && !isRunning(one));
    for (const one of due) await this.#run(one, false);
  }

  async #run(schedule: Schedule, isByHand: boolean): Promise<void> {
    const { id, cwd, maxCost } = schedule;
    if (this.#running.has(id)) return;
    const run = this.#carryOut(id, isByHand, cwd, maxCost);
    this.#running.set(id, run);
    try {
      await run;
    } finally {
      this.#running.delete(id);
      await this.#changed();
    }
  }

  async #carryOut(id: string, isByHand: boolean, cwd: string, maxCost: string | undefined): Promise<void> {
    const [telos, { config }] = await Promise.all([
      this.#current.openAt(cwd, maxCost),
      this.#current.openTelos(),
    ]);
    await runIfDue(id, isByHand, {
      schedules: new Schedules(config.dataDir),
      open: () => telos,
      signal: this.#controller.signal,
      note: event => {
        if (event.type === 'run_start') void this.#changed();
      },
    });
  }
}
