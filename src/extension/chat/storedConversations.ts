/** Reads stored conversations, for a chat that shows one of them again. */

import { setTimeout as wait } from 'node:timers/promises';
import {
  importRunHistory,
  type StoredRun as RunFile,
  type RunHistory,
  type StoredAttachments,
  withoutCutImages,
} from '@telos/engine/records';
import type { Telos } from '@telos/engine/telos';
import type { RunEvent } from '@telos/protocol/run';
import { t } from '../base/labels.ts';
import { type ChatRequest, Conversation, type RemoteRun, type RestoredRun } from './conversation.ts';

/** A conversation by its id, or by the id of one of its runs. */
export type ConversationPlace = { conversationId: string } | { runId: string };

/** A reloaded window still ends its runs while the next one already reads. In milliseconds. */
const endingPatience = 4_000;
const endingPause = 250;

export class StoredConversations {
  readonly #openTelos: () => Promise<Pick<Telos, 'config'>>;
  readonly #patience: number;
  #history: { dataDir: string; runs: RunHistory } | undefined;

  constructor(openTelos: () => Promise<Pick<Telos, 'config'>>, patience = endingPatience) {
    this.#openTelos = openTelos;
    this.#patience = patience;
  }

  /** Returns the folder of Telos's data. Absolute. */
  async dataDir(): Promise<string> {
    return (await this.#openTelos()).config.dataDir;
  }

  async history(): Promise<RunHistory> {
    const dataDir = await this.dataDir();
    if (this.#history?.dataDir !== dataDir) {
      const { RunHistory } = await importRunHistory();
      this.#history = { dataDir, runs: new RunHistory(dataDir) };
    }
    return this.#history.runs;
  }

  /**
   * Returns the conversation, or undefined if none of it is stored. `afterReload` waits a while for the end of its
   * latest run, which the closed window may still write. Throws the history's error if a run is missing.
   */
  async conversation(place: ConversationPlace, afterReload = false): Promise<Conversation | undefined> {
    const history = await this.history();
    const runId = 'runId' in place ? place.runId : await this.#latestOf(place.conversationId, afterReload);
    if (runId === undefined) return undefined;
    for (let waited = 0; ; waited += endingPause) {
      const { id, title, runs } = await history.conversation(runId);
      const isRunning = runs.at(-1)?.summary.outcome === 'running';
      const mayEndNow = afterReload && waited < this.#patience;
      if (!isRunning || !mayEndNow)
        return Conversation.restored(
          id,
          runs.map(run => restoredRunOf(run, id)),
          title,
        );
      await wait(endingPause);
    }
  }

  /**
   * Returns one run alone. Its end includes what was said before it. Throws the history's error if the run is missing.
   */
  async run(runId: string): Promise<RestoredRun> {
    const history = await this.history();
    const { runs } = await history.conversation(runId, runId);
    const run = runs.at(-1) ?? (await history.read(runId));
    return restoredRunOf(run, run.summary.conversation);
  }

  /** Returns the attachments of a stored run's request. */
  async attachments({ runId, attached }: NonNullable<ChatRequest['keptWith']>): Promise<StoredAttachments> {
    return (await this.history()).attachments(runId, attached);
  }

  /** A person who opens a conversation of which everything was taken back wants to see that. A reload shows what was shown. */
  async #latestOf(conversationId: string, afterReload: boolean): Promise<string | undefined> {
    const history = await this.history();
    const isOf = ({ conversation }: { conversation: string }): boolean => conversation === conversationId;
    const shown = (await history.shown()).find(isOf);
    return (shown ?? (afterReload ? undefined : (await history.list()).find(isOf)))?.runId;
  }
}

function restoredRunOf(run: RunFile, conversationId: string): RestoredRun {
  const { summary, events, messages, earlier } = run;
  const start = events.find(event => event.type === 'run_start');
  const routed = events.find(event => event.type === 'routed');
  const { agent, skill } = summary;
  return {
    request: {
      text: start?.text ?? summary.request,
      ...(routed?.reason.rule === 'chosen' && { skill: { agent, skill } }),
      ...(routed?.reason.rule === 'without_skill' && { withoutSkill: true }),
      keptWith: { runId: summary.runId, attached: start?.attached ?? [] },
    },
    events: events.map(withWholeImages),
    messages: withoutCutImages(messages),
    ...(messages.length > 0 && earlier === 0 && { beginsAnew: true }),
    ...(summary.conversation !== conversationId && { isInherited: true }),
    ...(summary.outcome === 'running' && { elsewhere: remoteRunOf(run) }),
  };
}

const withWholeImages = (event: RunEvent): RunEvent =>
  event.type === 'run_end' ? { ...event, messages: withoutCutImages(event.messages) } : event;

const remoteRunOf = (run: RunFile): RemoteRun => ({
  where: whereOf(run),
  async *follow(said, isWatched, signal) {
    const { followedRun } = await importRunHistory();
    yield* followedRun(run, { said, isWatched }, signal);
  },
});

function whereOf({ summary, pid }: RunFile): string {
  if (summary.door === 'cli') return t('Runs on a command line');
  if (summary.door === 'discord') return t('Runs on Discord');
  return pid === process.pid ? t('Runs in another place of this window') : t('Runs in another window');
}
