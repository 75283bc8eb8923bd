/** The engine's one door: what there is to run, which skill a request means, and the run itself as a stream of events. */
import type { RouteReason, RunEvent, SkillRef } from '../protocol/run.ts';
import type { Agent, Skill } from './agents/agent.ts';
import type { Config } from './config.ts';
import type { Human } from './human.ts';

/** A text that the user had selected when they asked. */
export interface Selection {
  /** Absolute path, or the name of an unsaved document. */
  file: string;
  text: string;
  /** First line, counted from 1. */
  line: number;
  language: string;
}

export interface RunRequest {
  /** What the person said; may be empty when `skill` is set. */
  text: string;
  /** Only this agent's skills are considered. */
  agent?: string;
  /** This skill runs, without routing. */
  skill?: SkillRef;
  selection?: Selection;
  /** The run's model turns are written to this file, for the provider `replay`. Absolute path. */
  recordTo?: string;
}

export type RouteResult =
  | { agent: Agent; skill: Skill; reason: RouteReason }
  | { agent: undefined; skill: undefined; suggestions: readonly SkillRef[] };

export class Telos {
  readonly config: Config;

  private constructor(config: Config) {
    this.config = config;
  }

  /** Reads nothing yet; the skills are looked for at the first question. */
  static open(config: Config): Telos {
    return new Telos(config);
  }

  /** All agents with at least one skill, sorted by name. Read afresh unless nothing has changed. */
  async agents(): Promise<readonly Agent[]> {
    throw new Error('unfinished');
  }

  /** Which skill a request means, and why. Throws TelosError `config` when `request.agent` is not known. */
  async route(_request: RunRequest, _signal: AbortSignal): Promise<RouteResult> {
    throw new Error('unfinished');
  }

  /**
   * Runs a request. Never throws: whatever goes wrong is in the last event. To stop, abort the signal and read on to the end;
   * the run's log record is written even if the reader walks away.
   */
  run(_request: RunRequest, _human: Human, _signal: AbortSignal): AsyncIterable<RunEvent> {
    throw new Error('unfinished');
  }

  /** The next request sees the files as they are then. */
  refresh(): void {}
}
