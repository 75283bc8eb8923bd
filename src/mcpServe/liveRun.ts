/** A run for a client of the server. It goes on while the client fetches an answer to one of its questions. */
import { denyAll, type Human, newToken, type RunRequest } from '@telos/engine/run';
import type { Telos } from '@telos/engine/telos';
import {
  type ApprovalDecision,
  type ApprovalRequest,
  innermost,
  type RunEvent,
  type Usage,
} from '@telos/protocol/run';
import { addedUsage } from '@telos/protocol/usage';

export interface RunResult {
  runId: string;
  agent: string;
  skill: string;
  end: RunEvent & { type: 'run_end' };
  /** What the model has said since its last call of a tool. */
  answer: string;
  /** Absolute paths. */
  files: readonly string[];
  usage: Usage | undefined;
}

/** A question that waits for its answer. Its token cannot be guessed, and is valid once. */
export interface OpenQuestion {
  token: string;
  request: ApprovalRequest;
}

/** What the client does next: fetch an answer, or take the result. */
export type Turn = { question: OpenQuestion } | { result: RunResult };

/** How long a question waits for a client that may be gone, in milliseconds. */
const patienceMs = 60 * 60_000;

export class LiveRun {
  readonly id = newToken();
  readonly #stop = new AbortController();
  readonly #ended: Promise<RunResult>;
  /** Questions that were not handed out, and who waits for one. */
  readonly #waiting: OpenQuestion[] = [];
  readonly #open = new Map<string, (decision: ApprovalDecision) => void>();
  #news: (() => void) | undefined;
  #progress: (words: string) => void = () => {};

  /** Starts the run. Without `canAsk` its questions are answered with a no that says why. */
  constructor(telos: Telos, request: RunRequest, canAsk: boolean) {
    this.#ended = this.#run(telos, request, canAsk ? this.#human() : denyAll);
  }

  /** Resolves with the next question or the result. What the run does meanwhile is told to `progress`. Stops the run on abort. */
  async next(progress: (words: string) => void, signal: AbortSignal): Promise<Turn> {
    this.#progress = progress;
    const stop = (): void => this.#stop.abort(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    try {
      for (;;) {
        const question = this.#waiting.shift();
        if (question) return { question };
        const news = new Promise<undefined>(resolve => {
          this.#news = () => resolve(undefined);
        });
        const result = await Promise.race([this.#ended, news]);
        if (result) return { result };
      }
    } finally {
      this.#progress = () => {};
      signal.removeEventListener('abort', stop);
    }
  }

  /** Answers a question. Returns false if none with this token is open. */
  answer(token: string, decision: ApprovalDecision): boolean {
    const decide = this.#open.get(token);
    this.#open.delete(token);
    decide?.(decision);
    return decide !== undefined;
  }

  /** Stops the run. Resolves when it has ended. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#ended.catch(() => {});
  }

  #human(): Human {
    const asked = (request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalDecision> =>
      new Promise(resolve => {
        const { token } = request;
        const close = (): void => void this.answer(token, { allow: false, reason: 'No one has answered.' });
        const timer = setTimeout(close, patienceMs);
        timer.unref();
        signal.addEventListener('abort', close, { once: true });
        this.#open.set(token, decision => {
          clearTimeout(timer);
          signal.removeEventListener('abort', close);
          resolve(decision);
        });
        this.#waiting.push({ token, request });
        this.#news?.();
      });
    return { approve: asked, ask: async questions => questions.map(() => '') };
  }

  async #run(telos: Telos, request: RunRequest, human: Human): Promise<RunResult> {
    let [runId, agent, skill, answer] = ['', '', '', ''];
    let usage: Usage | undefined;
    let end: RunResult['end'] | undefined;
    const files = new Set<string>();
    for await (const event of telos.run(request, human, this.#stop.signal)) {
      if (event.type === 'run_start') runId = event.runId;
      if (event.type === 'routed') [agent, skill] = [event.agent, event.skill];
      if (event.type === 'text') answer += event.text;
      if (event.type === 'tool_start') answer = '';
      if (event.type === 'usage') usage = addedUsage(usage, event.usage);
      if (event.type === 'run_end') end = event;
      const inner = innermost(event);
      if (inner.type === 'tool_start') this.#progress(inner.call.name);
      if (inner.type === 'tool_end') for (const path of inner.result.changedFiles ?? []) files.add(path);
    }
    if (!end) throw new Error('The run has no end.');
    return { runId, agent, skill, end, answer: answer.trim(), files: [...files], usage };
  }
}
