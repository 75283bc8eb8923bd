/** Escapes characters with which a model, a tool or a file could steer the terminal. */

import { TelosError } from '@telos/engine/errors';
import { shellWord } from '@telos/engine/files';
import type { LocalizedMessage, Remedy } from '@telos/protocol/run';
import { Characters, columnsOf, steering, unseen } from '@telos/protocol/text';
import type { Terminal } from './terminal.ts';

const steeringCharacters = new RegExp(steering.source, 'g');

/** Harmless in prose, where languages need them, but not in a subject to approve. */
const unseenCharacters = new Characters(`(?![\\n\\t])(?:${unseen.source})`);

/**
 * Returns text for a terminal. Newlines and tabs stay, a carriage return before a newline is removed. Steering characters
 * are shown as `\x1b`.
 */
export function terminalText(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(steeringCharacters, escaped);
}

/** Returns a message and what to do next, with the commands of this command line, for a terminal. */
export const messageText = ({ message, remedy }: LocalizedMessage): string =>
  terminalText(remedy ? `${message} ${remedyText(remedy)}` : message);

/** Returns the words of an error of the engine as `messageText` does, and the message of any other. */
export function errorText(error: unknown): string {
  if (error instanceof TelosError) return messageText(error.runError);
  return terminalText(error instanceof Error ? error.message : String(error));
}

/** Says why a command has failed. Returns its exit code. */
export function sayError(error: unknown, { say, style }: Pick<Terminal, 'say' | 'style'>, code = 1): number {
  say(style.red(errorText(error)));
  return code;
}

/** Returns `errorText` for a command that only looks at a source, and would never have installed it. */
export const lookErrorText = (error: unknown): string =>
  errorText(error).replaceAll(/ Nothing was installed(?:, and no option installs it)?\./g, '');

/** Returns what a person can do, with the commands of this command line. */
export function remedyText(remedy: Remedy): string {
  switch (remedy.kind) {
    case 'set_key':
      return `\`telos key\` sets it, or ${remedy.variable} in the environment does; --provider chooses another one.`;
    case 'set_up_model':
      return '`telos key` sets the key of a provider, or start Ollama. `telos demo` plays a sample without one.';
    case 'choose_model':
      return 'Choose another one with --provider and --model, or with TELOS_PROVIDER and TELOS_MODEL.';
    case 'add_skill':
      return `\`telos demo\` plays a sample; \`telos init --sample\` adds it to ${remedy.folder}.`;
    case 'choose_name':
      return 'Install this agent under another name with --as <name>, or remove or rename the other one.';
    case 'review_agent':
      return `Review it with: ${toType('trust', remedy.agent)}`;
    case 'choose_folder':
      return `To work elsewhere, set working_dir under [agents.${JSON.stringify(remedy.agent)}] in ${remedy.file}.`;
    case 'allow_rule':
      return `To always allow it, add an [[allow]] rule to ${remedy.file}: ${remedy.lines.join(', ')}.`;
    case 'check_policy':
      return '`telos policy list` lists everything that is wrong in it.';
    case 'lint':
      return '`telos lint` lists them.';
    case 'record_again':
      return 'Record the run again with --record.';
  }
}

/** Returns text for a person to decide about: invisible characters are shown too. */
export function exactText(text: string): string {
  return unseenCharacters.replacedIn(text, escaped);
}

/** Returns a command of Telos for a person to type. A shell takes each word as it is, whoever has chosen it. */
export const toType = (...words: readonly string[]): string =>
  ['telos', ...words.map(word => shellWord(exactText(word)))].join(' ');

/** Returns terminal text on one line, cut to a number of columns with an ellipsis. */
export function terminalLine(text: string, columns = Number.POSITIVE_INFINITY): string {
  const line = terminalText(text).trim().replace(/\s+/g, ' ');
  if (columnsOf(line) <= columns) return line;
  let [cut, room] = ['', columns - 1];
  for (const character of line) {
    room -= columnsOf(character);
    if (room < 0) break;
    cut += character;
  }
  return `${cut}…`;
}

/** Returns one line of JSON. Steering characters are written as JSON escapes, so that nothing is lost. */
export function terminalJson(value: unknown): string {
  return JSON.stringify(value).replace(steeringCharacters, unicodeEscape);
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, '0')}`;
  return code <= 0xffff ? unicodeEscape(character) : `\\u{${code.toString(16)}}`;
}

const unicodeEscape = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Minimum columns of the last column. A row that needs more continues on the next line. */
const narrowest = 12;

/**
 * Returns lines of text without a newline at the end. With `width`, in columns of the terminal, the last column is cut so
 * that each row fits on one line.
 */
export function table(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  width?: number,
): string {
  const cells = [headings, ...rows].map(row => row.map(cell => terminalLine(cell)));
  const widths = headings.map((_, column) =>
    cells.reduce((widest, row) => Math.max(widest, columnsOf(row[column] ?? '')), 0),
  );
  const before = widths.slice(0, -1).reduce((sum, columnWidth) => sum + columnWidth + 2, 0);
  const lastWidth = width === undefined ? undefined : Math.max(narrowest, width - before);
  const lines = cells.map(row =>
    row
      .map((cell, column) =>
        column === headings.length - 1 ? terminalLine(cell, lastWidth) : padded(cell, widths[column]),
      )
      .join('  ')
      .trimEnd(),
  );
  return lines.join('\n');
}

function padded(cell: string, width = 0): string {
  return cell + ' '.repeat(Math.max(0, width - columnsOf(cell)));
}
