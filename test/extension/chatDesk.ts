/** A Chat with a stand-in for the engine and the editor around it, and what a view of it would have seen. */
import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import type { Human } from '../../src/engine/core/ports.ts';
import type { StoredAttachments } from '../../src/engine/records/runAttachments.ts';
import type { RunRequest } from '../../src/engine/run/request.ts';
import { Chat } from '../../src/extension/chat/chat.ts';
import type { RunEvent } from '../../src/protocol/run.ts';
import type { ChatInfo, QueuedRequest, ToWebview } from '../../src/protocol/webview.ts';

export type Run = (request: RunRequest, human: Human, signal: AbortSignal) => AsyncIterable<RunEvent>;

export const recordingInfo: ChatInfo = {
  provider: 'replay',
  model: 'recorded',
  recording: true,
  skills: [{ agent: 'kairos', skill: 'kickoff', description: '' }],
  trusted: true,
};

export const start = (request: RunRequest): RunEvent => ({
  type: 'run_start',
  runId: 'r',
  text: request.text,
  startedAt: '',
});
export const end = (outcome: 'completed' | 'cancelled'): RunEvent => ({
  type: 'run_end',
  outcome,
  rounds: 1,
  toolCalls: 0,
  durationMs: 1,
  messages: [],
});

/** Asks one question, says what was answered, and ends. */
export async function* asking(
  request: RunRequest,
  human: Human,
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  yield start(request);
  const question = {
    callId: 'c1',
    token: 'token of c1',
    tool: 'run_command',
    subject: 'ls',
    rule: 'r',
    reason: 'x',
    scopes: ['once'] as const,
  };
  const answer = human.approve(question, signal);
  yield { type: 'approval_request', request: question };
  const decision = await answer;
  yield { type: 'approval_response', callId: 'c1', decision };
  yield { type: 'text', text: 'do' };
  yield { type: 'text', text: 'ne' };
  yield end(signal.aborted ? 'cancelled' : 'completed');
}

export class Desk {
  readonly posted: ToWebview[] = [];
  readonly running: boolean[] = [];
  readonly asked: string[] = [];
  readonly ran: string[] = [];
  /** How the runs ended that a hidden chat would tell about. */
  readonly ended: string[] = [];
  /** The conversations that were left for another. */
  readonly left: string[] = [];
  /** What is kept with the requests of earlier windows, by run. */
  readonly along: Record<string, StoredAttachments> = {};
  trusted = true;
  info: ChatInfo = recordingInfo;
  readonly chat: Chat;

  constructor(run: Run = asking, openTelos = async () => ({ run })) {
    this.chat = new Chat({
      post: message => this.posted.push(message),
      openTelos,
      readAttachments: async ({ runId, attached }) =>
        this.along[runId] ?? { attachments: [], missing: attached, hidden: [] },
      readInfo: async () => this.info,
      isTrusted: () => this.trusted,
      changed: () => {
        const { isRunning } = this.chat;
        if (isRunning !== (this.running.at(-1) ?? false)) this.running.push(isRunning);
      },
      approvalAsked: request => this.asked.push(request.callId),
      ended: id => this.left.push(id),
      skillRuns: ({ skill }) => this.ran.push(skill),
      skillMissed: () => undefined,
      runEnded: outcome => this.ended.push(outcome),
    });
  }

  /** What a view that has followed from the start has seen; fails on a hole in the numbers. */
  get seen(): RunEvent[] {
    const events: RunEvent[] = [];
    for (const message of this.posted) {
      if (message.type !== 'conversation' && message.type !== 'events') continue;
      if (message.type === 'conversation' && message.from === 0) events.length = 0;
      assert.equal(message.from, events.length);
      events.push(...message.events);
    }
    return events;
  }

  get queued(): readonly QueuedRequest[] {
    const last = this.posted.findLast(message => message.type === 'queued');
    return last?.queued ?? [];
  }

  async when(isSo: () => boolean): Promise<void> {
    while (!isSo()) await wait(2);
  }

  async until(type: RunEvent['type']): Promise<RunEvent> {
    for (;;) {
      const event = this.seen.find(candidate => candidate.type === type);
      if (event) return event;
      await wait(2);
    }
  }
}

export const startsIn = (events: readonly RunEvent[]): string[] =>
  events.flatMap(event => (event.type === 'run_start' ? [event.text] : []));
export const typesOf = (events: readonly RunEvent[]): string[] => events.map(({ type }) => type);
