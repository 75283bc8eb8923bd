/** Reads what is piped into `telos "…"`, which goes with the request like a file. */
import { fstatSync } from 'node:fs';
import { reasonOf } from '@telos/engine/errors';
import { importAttachedFile } from '@telos/engine/files';
import { type Attachment, maxTextBytes, maxTextLength } from '@telos/protocol/attachment';
import { grouped } from '@telos/protocol/text';
import type { Terminal } from './terminal.ts';
import { errorText } from './terminalText.ts';

/**
 * A program that starts Telos may leave a pipe open into which it writes nothing, as Node's own do, which are sockets and are not talked
 * about. In milliseconds.
 */
const longestSilence = { pipe: 3000, socket: 500 };
/** In bytes. No more is counted. */
const mostCounted = 64 * 1024 * 1024;

/** Returns the piped text, or undefined if there is none. Tells the user which part of it is not sent. */
export async function pipedText({ surroundings, say }: Terminal): Promise<Attachment | undefined> {
  // Only of the process itself it is known what stdin is, before it is opened.
  if ((surroundings as unknown) !== process) return undefined;
  const kind = kindOfInput();
  if (kind === undefined) return undefined;
  const { bytes, size, isSilent, problem } = await readAll(surroundings.stdin, longestSilence[kind]);
  if (problem !== undefined)
    say(`The pipe could not be read to its end (${problem}), so the rest is not sent.`);
  if (isSilent) {
    const seconds = longestSilence[kind] / 1000;
    if (kind === 'pipe')
      say(`Nothing came through the pipe in ${seconds} seconds, so the request goes without it.`);
    return undefined;
  }
  if (bytes.toString('latin1').trim() === '') {
    say('The piped text is empty, so the request goes without it.');
    return undefined;
  }
  try {
    const attachment = (await importAttachedFile()).attachmentOf({ name: 'piped text', bytes, size });
    if (attachment.kind === 'text' && attachment.wholeSize !== undefined)
      say(
        `The piped text is too large: only its first ${grouped(attachment.text.length)} characters are sent.`,
      );
    return attachment;
  } catch (error) {
    say(errorText(error));
    return undefined;
  }
}

/** Returns what stdin is; undefined for a terminal, a device or nothing. A file is read like a pipe. */
function kindOfInput(): keyof typeof longestSilence | undefined {
  try {
    const stats = fstatSync(0);
    if (stats.isSocket()) return 'socket';
    return stats.isFIFO() || stats.isFile() ? 'pipe' : undefined;
  } catch {
    return undefined;
  }
}

/** Reads to the end, keeps as much as can be sent, and gives up on a pipe that stays silent. `problem` is why it could not be read on. */
async function readAll(
  stdin: NodeJS.ReadableStream,
  silence: number,
): Promise<{ bytes: Buffer; size: number; isSilent: boolean; problem?: string }> {
  const pieces: Buffer[] = [];
  let [size, kept] = [0, 0];
  let problem: string | undefined;
  const isSilent = await new Promise<boolean>((resolve, reject) => {
    const timer = setTimeout(() => resolve(true), silence);
    stdin.on('data', (piece: Buffer | string) => {
      clearTimeout(timer);
      const bytes = Buffer.from(piece);
      size += bytes.length;
      if (kept < maxTextBytes + maxTextLength) pieces.push(bytes);
      kept += bytes.length;
      if (size > mostCounted) resolve(false);
    });
    stdin.on('end', () => {
      clearTimeout(timer);
      resolve(false);
    });
    stdin.on('error', reject);
  }).catch(error => {
    problem = reasonOf(error);
    return false;
  });
  stdin.pause();
  (stdin as { unref?: () => void }).unref?.();
  return { bytes: Buffer.concat(pieces), size, isSilent, ...(problem !== undefined && { problem }) };
}
