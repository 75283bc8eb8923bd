/** Asks the fields of a form one after the other on a terminal. */

import { type FormField, type FormValue, readTyped, type Typed } from '@telos/protocol/form';
import type { ApprovalDecision } from '@telos/protocol/run';
import { spoken } from '@telos/protocol/text';
import type { Terminal } from './terminal.ts';
import { exactText } from './terminalText.ts';

/** Returns the yes with what was filled in. Undefined at the end of the input, which sends nothing. */
export async function fillIn(
  fields: readonly FormField[],
  terminal: Terminal,
  read: (prompt: string) => Promise<string | undefined>,
): Promise<ApprovalDecision | undefined> {
  const content: [string, FormValue][] = [];
  for (const field of fields) {
    terminal.say(fieldText(field, terminal));
    for (;;) {
      const line = await read('  > ');
      if (line === undefined) return undefined;
      const { value, problem } = readTyped(field, typedIn(field, line.trim()));
      if (problem) {
        terminal.say(terminal.style.red(`  ${spoken([problem])}`));
        continue;
      }
      if (value !== undefined) content.push([field.name, value]);
      break;
    }
  }
  return { allow: true, scope: 'once', content: Object.fromEntries(content) };
}

/** Returns the field with its options, and what Enter means. */
function fieldText(field: FormField, { style }: Terminal): string {
  const { title, description, isRequired } = field;
  const options = 'options' in field ? field.options.map(({ label }, at) => `  ${at + 1} ${label}`) : [];
  const hint = {
    switch: 'y or n',
    choice: 'a number',
    choices: 'numbers with spaces between them',
    number: 'a number',
    text: '',
  }[field.kind];
  const initial = initialText(field);
  const enter = initial === '' ? (isRequired ? '' : 'Enter leaves it empty') : `Enter for ${initial}`;
  const more = [hint, enter].filter(Boolean).join('; ');
  return [
    style.bold(`? ${exactText(title)}`) + (more ? style.dim(` (${exactText(more)})`) : ''),
    ...(description === undefined ? [] : [style.dim(`  ${exactText(description)}`)]),
    ...options.map(exactText),
  ].join('\n');
}

/** Returns what the field holds at first, as a person would type it; empty if it holds nothing. */
function initialText(field: FormField): string {
  switch (field.kind) {
    case 'switch':
      return field.initial === undefined ? '' : field.initial ? 'y' : 'n';
    case 'choice':
    case 'choices': {
      const initial = field.kind === 'choice' ? [field.initial] : (field.initial ?? []);
      const numbers = field.options.flatMap(({ value }, at) => (initial.includes(value) ? [at + 1] : []));
      return numbers.join(' ');
    }
    default:
      return field.initial === undefined ? '' : String(field.initial);
  }
}

/** Returns what a line means for the field. Enter stands for what it holds at first. */
function typedIn(field: FormField, written: string): Typed | undefined {
  const line = written === '' ? initialText(field) : written;
  if (line === '') return undefined;
  switch (field.kind) {
    case 'switch':
      return /^(?:y|yes)$/i.test(line) ? true : /^(?:n|no)$/i.test(line) ? false : line;
    case 'choice':
      return field.options[Number(line) - 1]?.value ?? line;
    case 'choices':
      return line.split(/[\s,]+/).map(number => field.options[Number(number) - 1]?.value ?? number);
    default:
      return line;
  }
}
