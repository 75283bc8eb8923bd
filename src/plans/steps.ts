/** Runs one step of a plan as an ordinary run, and returns what it has come to. */

import type { Config } from '@telos/engine/config';
import type { Budget, Human, RunRequest, StepBox } from '@telos/engine/run';
import type { Tool } from '@telos/engine/tools';
import type { PlanCheck, StepName } from '@telos/protocol/plan';
import type { RunError, RunEvent, RunOutcome, SkillRef, Usage } from '@telos/protocol/run';
import { addedUsage } from '@telos/protocol/usage';
import { systemOf } from './roles.ts';
import { isWorker, type StepAnswer, type StepPorts, toolsOf } from './stepTools.ts';

/** What a plan needs of the engine. `Telos` is one. */
export interface Runs {
  config: Config;
  run(request: RunRequest, human: Human, signal: AbortSignal): AsyncIterable<RunEvent>;
}

export interface StepCall {
  /** See `RunStep`. */
  key: string;
  name: StepName;
  /** What is asked of it. */
  words: string;
  /** The plan's name, under which its runs are kept. */
  plan: string;
  workingDir: string;
  alsoReadable?: readonly string[];
  closed?: readonly string[];
  /** The project's own text for the role. */
  roleText?: string | undefined;
  /** What all steps know of the plan: see `planText`. */
  planText?: string | undefined;
  /** Tools that answer questions about the project. Those who build and review get none. */
  contextTools?: readonly Tool[];
  ports?: StepPorts;
  commands?: readonly string[];
  commandsChanged?: ((command: string) => Promise<string | undefined>) | undefined;
  box?: StepBox;
  env?: Readonly<Record<string, string>>;
  mail?: (() => Promise<readonly string[]>) | undefined;
  skill?: SkillRef | undefined;
  model?: string | undefined;
  budget?: Budget | undefined;
  /** In milliseconds; 15 minutes if missing. What it waits for the person does not count. */
  timeoutMs?: number | undefined;
  maxRounds?: number;
  /** Folder to which its recording is written. */
  recordTo?: string | undefined;
  /** Called once its run and its model are known. Nothing is asked of the model before it has resolved. */
  onStart?: (started: { runId: string; model?: string }) => Promise<void>;
  onEvent?: (event: RunEvent) => void;
}

export interface StepEnd {
  outcome: RunOutcome;
  runId: string;
  /** The last words of the model. */
  text: string;
  /** The calls of the step's own tools that were in order, first to last. */
  answers: readonly StepAnswer[];
  /** Missing if no model was asked, or none that counts. */
  usage?: Usage;
  error?: RunError;
  /** It was ended since it took too long. */
  timedOut: boolean;
}

/** Rounds of the model, and the time of a step in milliseconds. */
const roundsOf = { worker: 60, other: 20 };
const usualTimeoutMs = 15 * 60_000;

/** The names of roles that Telos knows by itself. */
export const workerRoles = ['coder', 'marketing', 'crm', 'image-generator'] as const;

/** Returns the step and the skill that work on a story of that role. Any other name works as a coder. */
export function stepOfRole(role: string): { name: StepName; skill?: SkillRef } {
  const known = workerRoles.find(name => name === role);
  if (known) return { name: known };
  const [, agent, skill] = /^([^/]+)\/(.+)$/.exec(role) ?? [];
  return { name: 'coder', ...(agent && skill && { skill: { agent, skill } }) };
}

/** Runs the step to its end. Never throws: what went wrong is in the result. */
export async function runStep(
  runs: Runs,
  call: StepCall,
  human: Human,
  signal: AbortSignal,
): Promise<StepEnd> {
  const answers: StepAnswer[] = [];
  const clock = new StepClock(call.timeoutMs ?? usualTimeoutMs);
  const request = requestOf(withClock(call, clock), answers);
  const end: StepEnd = { outcome: 'failed', runId: '', text: '', answers, timedOut: false };
  let model: string | undefined;
  let isTold = false;
  const tellStart = async (): Promise<void> => {
    if (isTold) return;
    isTold = true;
    await call.onStart?.({ runId: end.runId, ...(model !== undefined && { model }) });
  };
  const events = runs.run(request, patient(human, clock), AbortSignal.any([signal, clock.signal]));
  for await (const event of events) {
    call.onEvent?.(event);
    switch (event.type) {
      case 'run_start':
        end.runId = event.runId;
        break;
      case 'routed':
        model = event.model;
        await tellStart();
        break;
      case 'usage':
        end.usage = addedUsage(end.usage, event.usage);
        break;
      case 'run_end':
        await tellStart();
        end.text = lastWords(event.messages);
        finish(end, event);
        break;
    }
  }
  clock.stop();
  end.timedOut = clock.signal.aborted && !signal.aborted && end.outcome === 'cancelled';
  return end;
}

/** What a step asks for is handed in by its tools, and many models have nothing to say behind that. */
function finish(end: StepEnd, { outcome, error }: Extract<RunEvent, { type: 'run_end' }>): void {
  const hasAnswered = error?.code === 'no_answer' && end.answers.length > 0;
  end.outcome = hasAnswered ? 'completed' : outcome;
  if (error && !hasAnswered) end.error = error;
}

/** The time of a step, which stands still while the step waits for the person. */
class StepClock {
  readonly #over = new AbortController();
  #left: number;
  #since = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Waits that are under way, and one more once the step has ended. */
  #holds = 0;

  constructor(milliseconds: number) {
    this.#left = milliseconds;
    this.#start();
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  async hold<Result>(work: Promise<Result>): Promise<Result> {
    if (this.#holds++ === 0) this.#halt();
    try {
      return await work;
    } finally {
      if (--this.#holds === 0) this.#start();
    }
  }

  #start(): void {
    this.#since = performance.now();
    this.#timer = setTimeout(() => this.#over.abort(), Math.max(0, this.#left));
  }

  #halt(): void {
    clearTimeout(this.#timer);
    this.#left -= performance.now() - this.#since;
  }

  /** Ends the clock for good. */
  stop(): void {
    this.#holds++;
    clearTimeout(this.#timer);
  }
}

const patient = (human: Human, clock: StepClock): Human => ({
  ...(human.isAway && { isAway: true }),
  approve: (request, signal) => clock.hold(human.approve(request, signal)),
  ask: (questions, signal) => clock.hold(human.ask(questions, signal)),
});

function withClock(call: StepCall, clock: StepClock): StepCall {
  const { mail, ports } = call;
  const { askPerson } = ports ?? {};
  return {
    ...call,
    ...(mail && { mail: () => clock.hold(mail()) }),
    ...(askPerson && {
      ports: { ...ports, askPerson: (question, signal) => clock.hold(askPerson(question, signal)) },
    }),
  };
}

function requestOf(call: StepCall, answers: StepAnswer[]): RunRequest {
  const { key, name, words, plan, workingDir, recordTo } = call;
  const worker = isWorker(name);
  const context = worker || name === 'reviewer' ? [] : (call.contextTools ?? []);
  const { alsoReadable, closed, commandsChanged, box, env, mail, skill, model, budget } = call;
  return {
    text: words,
    origin: 'plan',
    conversationId: plan,
    ...(recordTo !== undefined && { recordTo: `${recordTo}/${key}.jsonl` }),
    step: {
      key,
      name,
      workingDir,
      system: systemOf(name, call.roleText, call.planText),
      tools: [...toolsOf(name, answers, call.ports), ...context],
      role: worker ? 'worker' : 'read-only',
      maxRounds: call.maxRounds ?? roundsOf[worker ? 'worker' : 'other'],
      commands: worker ? (call.commands ?? []) : [],
      ...(alsoReadable && { alsoReadable }),
      ...(closed && { closed }),
      ...(commandsChanged && { commandsChanged }),
      ...(box && { box }),
      ...(env && { env }),
      ...(mail && { mail }),
      ...(skill && { skill }),
      ...(model !== undefined && { model }),
      ...(budget && { budget }),
    },
  };
}

function lastWords(messages: Extract<RunEvent, { type: 'run_end' }>['messages']): string {
  const content = messages.findLast(({ role }) => role === 'assistant')?.content ?? '';
  if (typeof content === 'string') return content;
  return content.flatMap(block => (block.type === 'text' ? [block.text] : [])).join('');
}

/** Returns the commands that a step may run as they are: those of the setup and of the checks. */
export const cardCommands = (setup: readonly string[], checks: readonly PlanCheck[]): string[] => [
  ...new Set([...setup, ...checks.map(({ command }) => command)]),
];
