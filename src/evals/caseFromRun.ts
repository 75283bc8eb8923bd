/** Reads from a stored run what an eval of it could start from and check, for a person to choose among. */

import { lstatSync } from 'node:fs';
import { relative, resolve, sep } from 'node:path';
import { isInside, isSensitive, readRegularFile, realPlace } from '@telos/engine/files';
import type { StoredRun } from '@telos/engine/records';
import type { ChangeStore } from '@telos/engine/undo';
import type { Check } from './checks.ts';
import { transcriptOf } from './transcript.ts';

export interface RunCase {
  request: string;
  /** Empty if no skill ran. */
  agent: string;
  skill: string;
  /** Files of the working folder that the run has read or changed, as they were before it where that is known. */
  files: readonly { path: string; content: Buffer }[];
  /** Files that it changed, and that it came to an end. */
  checks: readonly Check[];
  transcript: string;
}

/** In bytes. An eval starts from little. */
const largestFile = 256 * 1024;
const mostFiles = 20;

/** Returns what is known. Files with the names of secrets are left out. `redact` takes out what no file may have. Never throws. */
export async function caseFromRun(
  { summary, events, messages }: StoredRun,
  changes: Pick<ChangeStore, 'of' | 'before'>,
  redact: (text: string) => string,
): Promise<RunCase> {
  const start = events.find(event => event.type === 'run_start');
  const routed = events.find(event => event.type === 'routed');
  const folder = routed?.workingDir ?? summary.folder;
  const changed = await changes.of(summary.runId).catch(() => undefined);
  const written = changed?.files ?? [];
  const read = events.flatMap(event => {
    if (event.type !== 'tool_start' || !/^(?:read|edit)_file$/.test(event.call.name)) return [];
    const { path } = event.call.input;
    return typeof path === 'string' && folder !== undefined ? [resolve(folder, path)] : [];
  });
  const root = folder === undefined ? undefined : (realPlace(folder) ?? folder);
  const pathOf = (file: string): string | undefined => {
    const real = realPlace(file) ?? file;
    if (root === undefined || real === root || !isInside(root, real) || isSensitive(real)) return undefined;
    return relative(root, real).split(sep).join('/');
  };
  const files = new Map<string, Buffer>();
  for (const file of new Set([...read, ...written.map(({ path }) => path)])) {
    const path = pathOf(file);
    if (path === undefined || files.has(path) || files.size >= mostFiles) continue;
    const own = written.find(one => one.path === (realPlace(file) ?? file));
    // What it has made, it did not start from.
    const content = own
      ? own.before && (await changes.before(summary.runId, own.path).catch(() => undefined))
      : contentOf(file);
    if (content && content.length <= largestFile)
      files.set(path, content.includes(0) ? content : Buffer.from(redact(content.toString('utf8'))));
  }
  const made = written.flatMap(({ path, isRemoved }) => (isRemoved ? [] : (pathOf(path) ?? [])));
  return {
    request: redact(start?.text ?? summary.request),
    agent: summary.agent,
    skill: summary.skill,
    files: [...files].map(([path, content]) => ({ path, content })),
    checks: [{ outcome: 'completed' }, ...made.slice(0, mostFiles).map(file => ({ file, exists: true }))],
    transcript: redact(transcriptOf(messages)),
  };
}

function contentOf(file: string): Buffer | undefined {
  try {
    const stats = lstatSync(realPlace(file) ?? file);
    return stats.isFile() && stats.size <= largestFile ? readRegularFile(realPlace(file) ?? file) : undefined;
  } catch {
    return undefined;
  }
}
