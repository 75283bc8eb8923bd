/**
 * Runs what the text of a skill has run before a model reads it: a command in backticks behind an exclamation mark, or a block of ```!.
 * Each is decided like a command of the model, and what it prints stands in its place. See https://code.claude.com/docs/en/skills.
 */
import { randomBytes } from 'node:crypto';
import type { ContentBlock, Message, RunEvent, ToolCall } from '@telos/protocol/run';
import { runCalls } from '../core/calls.ts';
import type { Run } from './request.ts';
import { type RunSetup, specOf } from './runSetup.ts';

/** Of one text. */
const mostCommands = 20;

/**
 * Returns the text with a mark around each of its commands that no text of a user or model can have, and the mark. Undefined if it has
 * none. Commands in other blocks of code are examples.
 */
export function markCommands(body: string): { body: string; mark: string } | undefined {
  const mark = randomBytes(8).toString('hex');
  let count = 0;
  let fence = '';
  const marked = (command: string): string =>
    count++ < mostCommands ? `⟦${mark}⟧${command}⟦/${mark}⟧` : command;
  const lines: string[] = [];
  for (const line of body.split('\n')) {
    const [, sign = ''] = /^\s{0,12}(`{3,}|~{3,})/.exec(line) ?? [];
    const isOwn = fence === '' && /^\s{0,12}```!\s*$/.test(line);
    if (isOwn) {
      fence = '!';
      lines.push(`⟦${mark}⟧`);
    } else if (fence === '!') {
      if (/^\s{0,12}```\s*$/.test(line)) {
        fence = '';
        // One mark for the whole block.
        const at = lines.lastIndexOf(`⟦${mark}⟧`);
        const command = lines.splice(at).slice(1).join('\n');
        lines.push(marked(command));
      } else lines.push(line);
    } else {
      if (sign !== '' && (fence === '' || sign.startsWith(fence))) fence = fence === '' ? sign : '';
      lines.push(
        fence !== '' || sign !== ''
          ? line
          : line.replace(
              /(^|[\s(>|])(?<!`\s)!`([^`\n]{1,2000})`(?!`)/g,
              (_, before, command) => before + marked(command),
            ),
      );
    }
  }
  // A block without an end is none.
  const whole = lines.map(line => (line === `⟦${mark}⟧` ? '```!' : line)).join('\n');
  return count === 0 ? undefined : { body: whole, mark };
}

/** Runs the marked commands of the run's request, one after the other, and puts what they print in their place. */
export async function* runMarked(
  run: Run,
  setup: RunSetup,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, void> {
  const { textMark: mark, messages, earlier } = run;
  const message = messages[earlier];
  if (mark === undefined || message === undefined) return;
  const pattern = new RegExp(`⟦${mark}⟧([\\s\\S]*?)⟦/${mark}⟧`, 'g');
  const calls: ToolCall[] = [...textOf(message).matchAll(pattern)].map(([, command = ''], index) => ({
    id: `text_${mark}_${index + 1}`,
    name: 'run_command',
    input: { command },
  }));
  const results: Message[] = [];
  yield* runCalls(calls, await specOf(setup).calls.open(), results, signal);
  run.counts.toolCalls += calls.length;
  const blocks = results.flatMap(({ content }) => (typeof content === 'string' ? [] : content));
  let next = 0;
  const filled = (text: string): string => text.replace(pattern, () => printed(blocks[next++]));
  messages[earlier] = {
    ...message,
    content:
      typeof message.content === 'string'
        ? filled(message.content)
        : message.content.map(block =>
            block.type === 'text' ? { ...block, text: filled(block.text) } : block,
          ),
  };
}

const textOf = ({ content }: Message): string =>
  typeof content === 'string'
    ? content
    : content.map(block => (block.type === 'text' ? block.text : '')).join('\n');

function printed(block: ContentBlock | undefined): string {
  if (block?.type !== 'tool_result') return '';
  const text =
    typeof block.content === 'string'
      ? block.content
      : block.content.map(part => (part.type === 'text' ? part.text : '')).join('');
  return block.is_error ? `[This command did not print what the skill expects: ${text.trim()}]` : text.trim();
}
