/** Finds the conversations and requests of the command line among the stored runs. */

import type { Config } from '@telos/engine/config';
import { importRunHistory } from '@telos/engine/records';
import { type Conversation, storedConversation } from '@telos/engine/run';

/** Stored runs that are looked at for one that has said something. */
const lookedAt = 20;

/** The latest conversation of the command line in a folder. */
export interface Found {
  conversation: Conversation;
  title: string;
  startedAt: string;
}

/** Returns the latest conversation that was held on a command line in this folder. Undefined if there is none. */
export async function latestConversation({ dataDir, cwd }: Config): Promise<Found | undefined> {
  const { RunHistory } = await importRunHistory();
  const history = new RunHistory(dataDir);
  const own = (await history.shown()).filter(
    ({ door, folder, outcome }) => door === 'cli' && folder === cwd && outcome !== 'running',
  );
  for (const { runId, startedAt } of own.slice(0, lookedAt)) {
    const stored = await storedConversation(runId, dataDir);
    if (stored) return { ...stored, startedAt };
  }
  return undefined;
}

/** Returns the requests made on a command line, the newest first and each once. Never throws. */
export async function earlierRequests({ dataDir }: Config): Promise<string[]> {
  try {
    const { RunHistory } = await importRunHistory();
    const runs = (await new RunHistory(dataDir).list()).filter(({ door }) => door === 'cli');
    const texts = runs.map(({ request }) => request.replace(/\s+/g, ' ').trim()).filter(Boolean);
    return [...new Set(texts)].slice(0, 200);
  } catch {
    return [];
  }
}
