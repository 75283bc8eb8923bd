/** Writes down what a model says, turn by turn, so that `replay` can say it again; also what such a file looks like. */
import { randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { TelosError } from '../errors.ts';
import type { Provider, StreamEvent } from './provider.ts';

/** What was run. */
export interface RecordedRun {
  agent: string;
  skill: string;
  /** The person's words. */
  request: string;
}

/** First line of a recording, as JSON. */
export interface RecordingHeader extends RecordedRun {
  format: 'telos-recording';
  version: 1;
  provider: string;
  model: string;
  /** ISO 8601. */
  recordedAt: string;
}

/** Every further line: one model turn. The last event is `done`; there is no `retry`. */
export interface RecordedTurn {
  events: StreamEvent[];
}

/**
 * Passes everything through, and after each complete turn writes the file anew: the header, then all turns so far. A turn that
 * fails is not written. Throws TelosError `config` when the file cannot be written.
 */
export function recordingProvider(inner: Provider, file: string, run: RecordedRun): Provider {
  const header: RecordingHeader = {
    format: 'telos-recording',
    version: 1,
    ...run,
    provider: inner.name,
    model: inner.model,
    recordedAt: new Date().toISOString(),
  };
  const lines = [JSON.stringify(header)];
  return {
    ...inner,
    async *streamCompletion(request, signal) {
      const turn: RecordedTurn = { events: [] };
      for await (const event of inner.streamCompletion(request, signal)) {
        if (event.type !== 'retry') turn.events.push(event);
        // Written before `done` is passed on: whoever sees that event may stop listening.
        if (event.type === 'done') {
          lines.push(JSON.stringify(turn));
          await writeRecording(file, lines);
        }
        yield event;
      }
    },
  };
}

async function writeRecording(file: string, lines: readonly string[]): Promise<void> {
  const staged = `${file}.${randomUUID()}.tmp`;
  try {
    await mkdir(dirname(file), { recursive: true });
    const handle = await open(staged, 'wx', 0o600);
    try {
      await handle.writeFile(`${lines.join('\n')}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(staged, file);
  } catch (error) {
    // What stood in the way of writing may stand in the way of this too.
    await rm(staged, { force: true }).catch(() => undefined);
    const reason = error instanceof Error ? error.message : String(error);
    throw new TelosError(
      'config',
      `The recording ${file} cannot be written: ${reason}. Choose another file.`,
      {
        cause: error,
      },
    );
  }
}
