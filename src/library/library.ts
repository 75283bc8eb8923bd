/** Exports for programs that import `telos`: the engine, and plans on top of it. Little is loaded before it is used. */

import { basename, resolve } from 'node:path';
import { endedByReader } from '@telos/engine/run';
import { type Config, denyAll, type Human, loadConfig, Telos } from '@telos/engine/telos';
import { Orchestrator, type OrchestratorOptions } from '@telos/plans/orchestrator';
import type { Plan as EnginePlan } from '@telos/plans/plan';
import type { PlanRunEnd, PlanRunOptions } from '@telos/plans/run';
import { importJournal, type PlanLook } from '@telos/plans/state';
import type { JournalLine, SteerCommand } from '@telos/protocol/plan';

export * from '@telos/engine/telos';
export type {
  CallOptions,
  InterviewRound,
  InterviewRunner,
  IterationResult,
  OrchestratorEvent,
  OrchestratorOptions,
  RalphResult,
  WrittenVerdict,
} from '@telos/plans/orchestrator';
export type { PlanRunEnd, PlanRunOptions } from '@telos/plans/run';
export type { PlanLook } from '@telos/plans/state';
export type { JournalLine, PlanEvent, SteerCommand } from '@telos/protocol/plan';

export interface TelosOrchestratorOptions extends OrchestratorOptions {
  /** The settings. Defaults to those of the environment, as seen from the project. */
  config?: Config | undefined;
}

/**
 * Interviews, plans, splits the plan into stories and builds them:
 * `interview()`, `generatePlan()`, `generatePrds()`, `execute()`, or the last three at once as `planAndExecute()`.
 */
export class TelosOrchestrator extends Orchestrator {
  constructor(options: TelosOrchestratorOptions) {
    super(options, async () =>
      Telos.open(options.config ?? loadConfig({ cwd: resolve(options.projectDir) })),
    );
  }
}

/** Yields the lines of a plan's journal as they are written. Returns the state in which the plan ends. */
export type PlanStream = AsyncGenerator<JournalLine, PlanRunEnd>;

export interface RunPlanOptions extends Partial<PlanRunOptions> {
  /** Is asked before anything risky. If missing, questions wait in the plan. */
  human?: Human;
  signal?: AbortSignal;
}

/** A plan in a repository: `.telos/plans/NAME`. It is the one that `telos plan` works with. */
export class Plan {
  readonly #dir: string;
  readonly #config: Config | undefined;

  private constructor(dir: string, config: Config | undefined) {
    this.#dir = resolve(dir);
    this.#config = config;
  }

  /** Opens the plan whose folder is `dir`. Reads nothing yet. */
  static open(dir: string, { config }: { config?: Config } = {}): Plan {
    return new Plan(dir, config);
  }

  async #opened(human: Human): Promise<EnginePlan> {
    const { openPlan } = await import('@telos/plans/plan');
    const repo = resolve(this.#dir, '../../..');
    const telos = Telos.open(this.#config ?? loadConfig({ cwd: repo }));
    return openPlan(repo, basename(this.#dir), { runs: telos, human, by: 'other' });
  }

  /** Returns the plan's state. Throws TelosError `config` if there is no such plan. */
  async look(): Promise<PlanLook> {
    return (await this.#opened(denyAll)).look();
  }

  /** Tells the plan's runner something, in whatever process that is. Returns false if none works on it now. Throws TelosError `config` for what cannot be done then. */
  async steer(command: SteerCommand): Promise<boolean> {
    return (await this.#opened(denyAll)).steer(command);
  }

  /**
   * Works on the stories until the plan rests, or its reader leaves. Its card must have been accepted on this machine. Throws TelosError for
   * what hinders every plan in this repository.
   */
  run({ signal = new AbortController().signal, ...options }: RunPlanOptions = {}): PlanStream {
    return endedByReader(stop => this.#run(options, stop), signal);
  }

  async *#run({ human = denyAll, ...options }: RunPlanOptions, signal: AbortSignal): PlanStream {
    const plan = await this.#opened(human);
    const { followJournal } = await importJournal();
    const { lines } = await plan.look();
    const over = new AbortController();
    const left = new AbortController();
    const end = plan
      .run({ slots: 1, unattended: human === denyAll, ...options }, AbortSignal.any([signal, left.signal]))
      .finally(() => over.abort());
    // Awaited below; without this, a failure before that would end the process.
    end.catch(() => undefined);
    try {
      for await (const line of followJournal(plan.folder.journal, over.signal, plan.folder.seal))
        if (line.seq > lines) yield line;
    } finally {
      left.abort();
      await end.catch(() => undefined);
    }
    return end;
  }
}
