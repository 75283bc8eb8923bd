/** What programs import from `telos`: the engine, and the long work on top of it. Little is loaded before it is used. */
import { resolve } from 'node:path';
import { type Config, loadConfig, Telos } from './engine/telos.ts';
import { Orchestrator, type OrchestratorOptions } from './engine/workflow/orchestrator.ts';

export * from './engine/telos.ts';
export type {
  CallOptions,
  InterviewRound,
  InterviewRunner,
  IterationResult,
  OrchestratorEvent,
  OrchestratorOptions,
  RalphResult,
  WrittenVerdict,
} from './engine/workflow/orchestrator.ts';

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
