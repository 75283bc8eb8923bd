/** Writes a run of an eval as a text that a judge reads, and that evidence must occur in. */

import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { loadRegularFile } from '@telos/engine/files';
import type { ContentBlock, Message } from '@telos/protocol/run';
import { beginningOf } from '@telos/protocol/text';

/** Returns the model's last words. Empty if it has said none. */
export function lastWords(messages: readonly Message[]): string {
  const last = messages.findLast(({ role }) => role === 'assistant')?.content ?? '';
  if (typeof last === 'string') return last;
  return last.flatMap(block => (block.type === 'text' ? [block.text] : [])).join('\n');
}

/** In characters. More of a result or a file is not read by a judge. */
const longestPart = 20_000;

/** Returns what the model has said and called, and what came back. The skill and the request are left out: they prove nothing. */
export const transcriptOf = (messages: readonly Message[]): string =>
  messages
    .slice(1)
    .flatMap(({ role, content }) =>
      typeof content === 'string'
        ? lineOf(role, { type: 'text', text: content })
        : content.flatMap(block => lineOf(role, block)),
    )
    .join('\n\n');

function lineOf(role: Message['role'], block: ContentBlock): string[] {
  switch (block.type) {
    case 'text':
      return role === 'assistant' ? [`The model: ${block.text}`] : [];
    case 'tool_use':
      return [`It calls ${block.name}: ${JSON.stringify(block.input)}`];
    case 'tool_result': {
      const { content } = block;
      const text =
        typeof content === 'string'
          ? content
          : content.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n');
      return [`The tool returns: ${beginningOf(text, longestPart)}`];
    }
    default:
      return [];
  }
}

const mostFiles = 20;

/** Returns the files that a run has changed with their text, to stand behind its transcript. Never throws. */
export async function writtenFiles(folder: string, changed: readonly string[]): Promise<string> {
  const parts = await Promise.all(
    changed.slice(0, mostFiles).map(async path => {
      const stats = await lstat(join(folder, path)).catch(() => undefined);
      // A link could lead to anything of the person's.
      if (stats && !stats.isFile()) return `\n\n${path} is not a regular file.`;
      const content = await loadRegularFile(join(folder, path)).catch(() => undefined);
      if (content === undefined) return `\n\nThe file ${path} was deleted.`;
      const text = content.includes(0) ? '(not text)' : beginningOf(content.toString('utf8'), longestPart);
      return `\n\nThe file ${path}:\n${text}`;
    }),
  );
  return parts.join('');
}

/** Fewer letters or digits than these are no evidence: they occur in any text. */
const leastQuoted = 3;

/** Returns true if a quote occurs in a text, however its lines are broken. */
export function occursIn(text: string, quote: string): boolean {
  const folded = (one: string): string => one.replace(/\s+/g, ' ').trim();
  const wanted = folded(quote);
  return (wanted.match(/[\p{L}\p{N}]/gu)?.length ?? 0) >= leastQuoted && folded(text).includes(wanted);
}

/** In bytes: of one file, and of all files of a run. What is larger is left out. */
const mostOutput = { file: 256 * 1024, all: 1024 * 1024 };

/** Returns the small ones among the files that the run has written, by path. A link is none. */
export async function outputsOf(workDir: string, changed: readonly string[]): Promise<Map<string, Buffer>> {
  const found = new Map<string, Buffer>();
  let size = 0;
  for (const path of changed) {
    const file = join(workDir, path);
    const stats = await lstat(file).catch(() => undefined);
    if (!stats?.isFile() || stats.size > mostOutput.file || size + stats.size > mostOutput.all) continue;
    size += stats.size;
    found.set(path, await loadRegularFile(file));
  }
  return found;
}
