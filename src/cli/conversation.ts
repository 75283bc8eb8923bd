/** Keeps what the next request of a conversation goes on with, here or from stored runs. */
import { randomUUID } from 'node:crypto';
import type { Config } from '../engine/config.ts';
import type { EarlierConversation, RunRequest } from '../engine/run/request.ts';
import type { RunEvent, SkillRef } from '../protocol/run.ts';

/** The words that ask the model to go on. */
export const goOn = 'Go on.';

/** Stored runs that are looked at for one that has said something. */
const lookedAt = 20;

export class Conversation {
  readonly #id: string;
  #earlier: EarlierConversation | undefined;
  #skill: SkillRef | undefined;
  #runId: string | undefined;
  #latest: string | undefined;
  /** Runs that have changed files and are not undone, the latest last. */
  readonly changedBy: string[] = [];

  constructor(id: string = randomUUID()) {
    this.#id = id;
  }

  get isEmpty(): boolean {
    return this.#earlier === undefined;
  }

  /** Returns the request as the next one of the conversation. */
  next(request: RunRequest): RunRequest {
    return {
      ...request,
      conversationId: this.#id,
      ...(this.#latest !== undefined && { parentRunId: this.#latest }),
      ...(this.#earlier && { conversation: this.#earlier }),
    };
  }

  note(event: RunEvent): void {
    switch (event.type) {
      case 'run_start':
        this.#runId = event.runId;
        break;
      case 'routed':
        this.#skill = { agent: event.agent, skill: event.skill };
        break;
      case 'tool_end':
        if (event.result.changedFiles?.length && this.#runId && this.changedBy.at(-1) !== this.#runId)
          this.changedBy.push(this.#runId);
        break;
      case 'run_end':
        // A run that ended before the model was asked has said nothing.
        if (event.messages.length === 0 || !this.#skill) break;
        this.#latest = this.#runId;
        this.#earlier = {
          messages: event.messages,
          skill: this.#skill,
          ...(event.outcome === 'failed' && { skillFailed: true }),
        };
    }
  }
}

/** The latest conversation of the command line in a folder. */
export interface Found {
  conversation: Conversation;
  title: string;
  startedAt: string;
}

/** Returns the latest conversation that was held on a command line in this folder. Undefined if there is none. */
export async function latestConversation({ dataDir, cwd }: Config): Promise<Found | undefined> {
  const { RunHistory } = await import('../engine/records/runHistory.ts');
  const { messagesFrom, withoutCutImages } = await import('../engine/records/transcript.ts');
  const { titleOf } = await import('../engine/records/runSummary.ts');
  const history = new RunHistory(dataDir);
  const own = (await history.list()).filter(
    ({ door, folder, outcome }) => door === 'cli' && folder === cwd && outcome !== 'running',
  );
  for (const { runId, startedAt, conversation: id } of own.slice(0, lookedAt)) {
    const { runs } = await history.conversation(runId, runId);
    const conversation = new Conversation(id);
    let said: readonly EarlierConversation['messages'][number][] = [];
    for (const { events, messages, earlier } of runs) {
      const before = earlier > 0 || messages.length === 0 ? said : [];
      const end = events.find(event => event.type === 'run_end');
      const hasSaid = messages.length > 0 || events.some(({ type }) => type === 'text');
      // A run whose process ended has no end of its own.
      const all = end?.messages.length ? end.messages : hasSaid ? messagesFrom(before, events, messages) : [];
      if (all.length > 0) said = withoutCutImages(all);
      for (const event of events) if (event.type !== 'run_end') conversation.note(event);
      const outcome = end?.outcome ?? 'cancelled';
      const figures = { rounds: 0, toolCalls: 0, durationMs: 0 };
      conversation.note({ type: 'run_end', outcome, ...figures, messages: all.length > 0 ? [...said] : [] });
    }
    const [first] = runs;
    if (!conversation.isEmpty && first) return { conversation, title: titleOf(first.summary), startedAt };
  }
  return undefined;
}

/** Returns the requests made on a command line, the newest first and each once. Never throws. */
export async function earlierRequests({ dataDir }: Config): Promise<string[]> {
  try {
    const { RunHistory } = await import('../engine/records/runHistory.ts');
    const runs = (await new RunHistory(dataDir).list()).filter(({ door }) => door === 'cli');
    const texts = runs.map(({ request }) => request.replace(/\s+/g, ' ').trim()).filter(Boolean);
    return [...new Set(texts)].slice(0, 200);
  } catch {
    return [];
  }
}
