/** Conversations as their runs were kept, for a chat that shows one of them again. */
import { setTimeout as wait } from 'node:timers/promises';
import type { KeptRun as RunFile, RunHistory } from '../engine/history/runHistory.ts';
import type { KeptAlong } from '../engine/history/wentAlong.ts';
import type { Telos } from '../engine/telos.ts';
import { withoutCutImages } from '../engine/transcript.ts';
import type { RunEvent } from '../protocol/run.ts';
import { type ChatRequest, Conversation, type KeptRun } from './conversation.ts';
import { t } from './words.ts';

/** By the conversation's own name, or by one of its runs. */
export type KeptPlace = { conversationId: string } | { runId: string };

/** A window that is reloaded ends its runs while the next one reads already. In milliseconds. */
const endingPatience = 4_000;
const endingPause = 250;

export class KeptConversations {
  readonly #openTelos: () => Promise<Pick<Telos, 'config'>>;
  readonly #patience: number;
  #history: { dataDir: string; runs: RunHistory } | undefined;

  constructor(openTelos: () => Promise<Pick<Telos, 'config'>>, patience = endingPatience) {
    this.#openTelos = openTelos;
    this.#patience = patience;
  }

  async history(): Promise<RunHistory> {
    const { dataDir } = (await this.#openTelos()).config;
    if (this.#history?.dataDir !== dataDir) {
      const { RunHistory } = await import('../engine/history/runHistory.ts');
      this.#history = { dataDir, runs: new RunHistory(dataDir) };
    }
    return this.#history.runs;
  }

  /** Undefined where nothing is kept of it. Throws what the history throws for a run that is gone. */
  async conversation(place: KeptPlace): Promise<Conversation | undefined> {
    const history = await this.history();
    const runId = 'runId' in place ? place.runId : await this.#latestOf(place.conversationId);
    if (runId === undefined) return undefined;
    for (let waited = 0; ; waited += endingPause) {
      const { id, title, runs } = await history.conversation(runId);
      const goesOn = runs.at(-1)?.summary.outcome === 'running';
      if (!goesOn || waited >= this.#patience) return Conversation.restored(id, runs.map(keptRunOf), title);
      await wait(endingPause);
    }
  }

  /** One run alone; its end has what was said before it, too. Throws what the history throws for a run that is gone. */
  async run(runId: string): Promise<KeptRun> {
    const history = await this.history();
    const { runs } = await history.conversation(runId, runId);
    return keptRunOf(runs.at(-1) ?? (await history.read(runId)));
  }

  /** What went along with the request of a kept run. */
  async along({ runId, attached }: NonNullable<ChatRequest['keptWith']>): Promise<KeptAlong> {
    return (await this.history()).along(runId, attached);
  }

  async #latestOf(conversationId: string): Promise<string | undefined> {
    const all = await (await this.history()).list();
    return all.find(({ conversation }) => conversation === conversationId)?.runId;
  }
}

function keptRunOf({ summary, events, messages, earlier }: RunFile): KeptRun {
  const start = events.find(event => event.type === 'run_start');
  const routed = events.find(event => event.type === 'routed');
  const { agent, skill } = summary;
  const elsewhere = summary.outcome === 'running' ? [runsElsewhere] : [];
  return {
    request: {
      text: start?.text ?? summary.request,
      ...(routed?.reason.rule === 'chosen' && { skill: { agent, skill } }),
      ...(routed?.reason.rule === 'without_skill' && { withoutSkill: true }),
      keptWith: { runId: summary.runId, attached: start?.attached ?? [] },
    },
    events: [...events.map(withWholeImages), ...elsewhere],
    messages: withoutCutImages(messages),
    ...(messages.length > 0 && earlier === 0 && { beginsAnew: true }),
  };
}

const withWholeImages = (event: RunEvent): RunEvent =>
  event.type === 'run_end' ? { ...event, messages: withoutCutImages(event.messages) } : event;

const runsElsewhere = {
  type: 'notice',
  level: 'warning',
  get message() {
    return t(
      'This run goes on in another window or on a command line. Open the conversation again when it has ended.',
    );
  },
} as const;
