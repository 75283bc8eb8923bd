/** Keeps what the next request of a conversation goes on with, here or from stored runs. */
import { randomUUID } from 'node:crypto';
import type { RunEvent, SkillRef } from '@telos/protocol/run';
import type { EarlierConversation, RunRequest } from './request.ts';

/** The words that ask the model to go on. */
export const goOn = 'Go on.';

/** A request of the conversation, and what the conversation was before it. */
interface Point {
  runId: string;
  text: string;
  /** In ISO 8601 format. */
  startedAt: string;
  before: { earlier: EarlierConversation | undefined; latest: string | undefined; isAtLimit: boolean };
}

export class Conversation {
  /** The id under which its runs are stored. */
  readonly id: string;
  #earlier: EarlierConversation | undefined;
  #skill: SkillRef | undefined;
  #runId: string | undefined;
  #latest: string | undefined;
  #isAtLimit = false;
  #points: readonly Point[] = [];
  /** Runs that have changed files and are not undone, the latest last. */
  readonly changedBy: string[] = [];

  constructor(id: string = randomUUID()) {
    this.id = id;
  }

  get isEmpty(): boolean {
    return this.#earlier === undefined;
  }

  /** Its requests, in their order. */
  get requests(): readonly Pick<Point, 'runId' | 'text' | 'startedAt'>[] {
    return this.#points;
  }

  /** Returns the conversation as it was before a request, or all of it. With `isBranch` it is a conversation of its own. */
  upTo(count: number, isBranch: boolean): Conversation {
    const conversation = new Conversation(isBranch ? randomUUID() : this.id);
    const point = this.#points[count];
    const { earlier, latest, isAtLimit } = point?.before ?? {
      earlier: this.#earlier,
      latest: this.#latest,
      isAtLimit: this.#isAtLimit,
    };
    conversation.#earlier = earlier;
    conversation.#skill = earlier?.skill;
    conversation.#isAtLimit = isAtLimit;
    if (isBranch) return conversation;
    // The requests of another conversation cannot be taken back from here.
    conversation.#latest = latest;
    conversation.#points = this.#points.slice(0, count);
    const runs = new Set(conversation.#points.map(({ runId }) => runId));
    conversation.changedBy.push(...this.changedBy.filter(runId => runs.has(runId)));
    return conversation;
  }

  /** Returns the request as the next one of the conversation. One without words goes on. */
  next(request: RunRequest): RunRequest {
    return {
      ...request,
      ...(request.text === '' && { text: goOn, ...(this.#isAtLimit && { goesOn: true }) }),
      conversationId: this.id,
      ...(this.#latest !== undefined && { parentRunId: this.#latest }),
      ...(this.#earlier && { conversation: this.#earlier }),
    };
  }

  note(event: RunEvent): void {
    switch (event.type) {
      case 'run_start': {
        const { runId, text, startedAt } = event;
        const before = { earlier: this.#earlier, latest: this.#latest, isAtLimit: this.#isAtLimit };
        this.#points = [...this.#points, { runId, text, startedAt, before }];
        this.#runId = runId;
        break;
      }
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
        this.#isAtLimit = event.outcome === 'round_limit';
        this.#earlier = {
          messages: event.messages,
          skill: this.#skill,
          ...(event.outcome === 'failed' && { skillFailed: true }),
        };
    }
  }
}

/**
 * Returns a conversation as its runs were stored, up to this one, and its title. Undefined if it has said nothing. Throws TelosError
 * `config` for a run that is not there.
 */
export async function storedConversation(
  runId: string,
  dataDir: string,
): Promise<{ conversation: Conversation; title: string } | undefined> {
  const { RunHistory } = await import('../records/runHistory.ts');
  const { messagesFrom, withoutCutImages } = await import('../records/transcript.ts');
  const { titleOf } = await import('../records/runSummary.ts');
  const { runs } = await new RunHistory(dataDir).conversation(runId, runId);
  const [first] = runs;
  if (!first) return undefined;
  const conversation = new Conversation(first.summary.conversation);
  let said: EarlierConversation['messages'] = [];
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
  return conversation.isEmpty ? undefined : { conversation, title: titleOf(first.summary) };
}
