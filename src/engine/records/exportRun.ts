/** A kept conversation as a file for other people: Markdown, lines of JSON, or a page, each without secrets. */

import { mapStrings } from '../redact.ts';
import type { KeptConversation } from './runHistory.ts';

export type ExportFormat = 'md' | 'jsonl' | 'html';

/** The runs up to and including the last of `conversation`. What was kept before a secret was known may still hold it, so all is redacted again. */
export async function exportedConversation(
  conversation: KeptConversation,
  format: ExportFormat,
  redact: (text: string) => string,
): Promise<string> {
  const clean = mapStrings(conversation, redact);
  switch (format) {
    case 'md':
      return (await import('./runText.ts')).conversationMarkdown(clean);
    case 'html':
      return (await import('./runPage.ts')).conversationPage(clean);
    case 'jsonl':
      return jsonLines(clean);
  }
}

/** For each run a line of what it came to, then its events; the messages of each stand at its end. */
function jsonLines({ id, title, runs }: KeptConversation): string {
  const lines = runs.flatMap(({ summary: { file, ...summary }, events, messages }) => [
    { type: 'run', version: 1, ...summary, conversation: id, conversationTitle: title },
    ...events.map(event => (event.type === 'run_end' ? { ...event, messages } : event)),
  ]);
  return lines.map(line => `${JSON.stringify(line)}\n`).join('');
}

/** A file's name made of a title: letters, digits and hyphens, never empty. */
export function exportName(title: string, startedAt: string, format: ExportFormat): string {
  const words = title
    .normalize('NFC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 60);
  return `${[startedAt.slice(0, 10).replace(/[^\d-]/g, ''), words || 'run'].filter(Boolean).join('-')}.${format}`;
}
