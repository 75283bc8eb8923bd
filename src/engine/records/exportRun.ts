/** Exports a stored conversation as a file for other people: Markdown or JSON Lines. Secrets are removed from each. */

import { mapStrings } from '../redact.ts';
import type { KeptConversation } from './runHistory.ts';

export type ExportFormat = 'md' | 'jsonl';

/**
 * Returns the runs up to and including the last one of `conversation`. Everything is redacted again, because text stored before a
 * secret was known may still contain it.
 */
export async function exportedConversation(
  conversation: KeptConversation,
  format: ExportFormat,
  redact: (text: string) => string,
): Promise<string> {
  const clean = mapStrings(conversation, redact);
  switch (format) {
    case 'md':
      return (await import('./runText.ts')).conversationMarkdown(clean);
    case 'jsonl':
      return jsonLines(clean);
  }
}

/** Writes one line per run with its summary, followed by its events. The messages of a run are in its `run_end` event. */
function jsonLines({ id, title, runs }: KeptConversation): string {
  const lines = runs.flatMap(({ summary: { file, ...summary }, events, messages }) => [
    { type: 'run', version: 1, ...summary, conversation: id, conversationTitle: title },
    ...events.map(event => (event.type === 'run_end' ? { ...event, messages } : event)),
  ]);
  return lines.map(line => `${JSON.stringify(line)}\n`).join('');
}

/** Returns a file name made from a title: letters, digits and hyphens, never empty. */
export function exportName(title: string, startedAt: string, format: ExportFormat): string {
  const words = title
    .normalize('NFC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 60);
  return `${[startedAt.slice(0, 10).replace(/[^\d-]/g, ''), words || 'run'].filter(Boolean).join('-')}.${format}`;
}
