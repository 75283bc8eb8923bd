/** Follows a run of another process by reading its file as it grows. Nothing is sent to that process. */

import type { Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import type { Message, RunEvent } from '../../protocol/run.ts';
import { linesFrom, readLines } from '../files/jsonLines.ts';
import { parseLine } from './runFile.ts';
import { readSummary, type StoredRun } from './runSummary.ts';
import { messagesFrom, withoutCutImages } from './transcript.ts';

export interface FollowOptions {
  /** All messages from before the run. They are added back to its end. */
  said: readonly Message[];
  /** False while the run is not being viewed. The file is then read less often. */
  isWatched(): boolean;
  /** Pause between two reads of the file. In milliseconds. */
  pause?: number;
}

const watchedPause = 300;
/** Factor for the pause while the run is not viewed. Also the number of reads between two checks that the process is alive. */
const longPauses = 8;

/**
 * Yields the events written after the part that `run` was read from, up to its end. If the process ended without writing an end,
 * yields an end that is marked as interrupted. Ends without an event if the signal aborts or the file is missing.
 */
export async function* followedRun(
  run: StoredRun,
  { said, isWatched, pause = watchedPause }: FollowOptions,
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  const { file } = run.summary;
  let before = run.earlier > 0 ? said : [];
  const events = [...run.events];
  const own = [...run.messages];
  let position = run.readTo;
  for (let looks = 1; !signal.aborted; looks++) {
    // Checked before the read, so that everything the process wrote before it ended is still read.
    const isGone = looks % longPauses === 0 && !mayGoOn(file);
    const known = await stat(file).catch(() => undefined);
    if (!known || known.size < position) return;
    const { text, read } = await linesFrom(file, position, known.size).catch(() => nothing);
    position += read;
    for (const line of readLines(text, parseLine).values) {
      if (line.type === 'run' || line.type === 'totals' || line.type === 'title') continue;
      if (line.type === 'messages') {
        before = line.earlier > 0 ? said : [];
        for (const message of line.messages) own.push(message);
        continue;
      }
      events.push(line);
      if (line.type !== 'run_end') yield line;
      else return yield { ...line, messages: own.length > 0 ? withoutCutImages([...before, ...own]) : [] };
    }
    if (isGone) {
      const messages = own.length > 0 ? withoutCutImages(messagesFrom(before, events, own)) : [];
      return yield interruptedEnd(run, events, messages, known);
    }
    await wait(isWatched() ? pause : pause * longPauses, undefined, { signal }).catch(() => undefined);
  }
}

const nothing = { text: '', read: 0 };

function mayGoOn(file: string): boolean {
  try {
    return readSummary(file)?.outcome === 'running';
  } catch {
    return false;
  }
}

function interruptedEnd(
  { summary }: StoredRun,
  events: readonly RunEvent[],
  messages: Message[],
  { mtimeMs }: Stats,
): RunEvent {
  const rounds = events.reduce(
    (most, event) => (event.type === 'usage' ? Math.max(most, event.round) : most),
    0,
  );
  return {
    type: 'run_end',
    outcome: 'cancelled',
    interrupted: true,
    rounds,
    toolCalls: events.filter(({ type }) => type === 'tool_end').length,
    durationMs: Math.max(0, Math.round(mtimeMs - Date.parse(summary.startedAt)) || 0),
    messages,
  };
}
