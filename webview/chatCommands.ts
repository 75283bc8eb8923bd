/** The few words behind a slash that the chat itself obeys. A skill of the same name comes first. */
import { signal } from '@preact/signals';
import { post, t } from './host.ts';
import { namedSkill } from './mentions.ts';
import { chat, info, openPicker, undone, viewProblem } from './store.ts';

/** True while the list of commands and keys is shown. */
export const helpShown = signal(false);

export interface ChatCommand {
  /** The text to write, including the slash. */
  name: string;
  description: string;
  /** What its words say. */
  hint?: string;
  /** `words` are what follows the name. */
  run(words: string): void;
  takesWords?: true;
}

export const chatCommands: readonly ChatCommand[] = [
  {
    name: '/new',
    description: t('Starts a new conversation'),
    run: () => post({ type: 'new_conversation' }),
  },
  {
    name: '/mode',
    description: t('Chooses what runs may do'),
    run: () => {
      openPicker.value = 'mode';
    },
  },
  {
    name: '/model',
    description: t('Chooses another model'),
    run: () => {
      openPicker.value = 'model';
    },
  },
  {
    name: '/compact',
    hint: t('[focus]'),
    description: t('Summarizes the conversation to save room; what follows says what to dwell on'),
    run: focus => post({ type: 'compact', focus }),
    takesWords: true,
  },
  {
    name: '/plan',
    hint: t('[goal]'),
    description: t('Plans something large: asks what must be known, then splits it into stories'),
    run: goal => post({ type: 'plan', goal }),
    takesWords: true,
  },
  { name: '/undo', description: t('Undoes the changes of the latest run'), run: undoLatest },
  {
    name: '/help',
    description: t('Shows commands and keys'),
    run: () => {
      helpShown.value = true;
    },
  },
];

/** Returns the commands that begin with the request. Empty if it is not a word behind a slash. */
export function commandsFor(request: string): readonly ChatCommand[] {
  const typed = /^\/\S*$/.exec(request)?.[0].toLowerCase();
  return typed === undefined ? [] : chatCommands.filter(({ name }) => name.startsWith(typed));
}

/** Carries out a request that is a command. Returns false for any other request. */
export function obey(request: string): boolean {
  const [, word = '', words = ''] = /^(\/\S*)(?:\s+(.*))?$/s.exec(request.trim()) ?? [];
  const command = chatCommands.find(({ name }) => name === word.toLowerCase());
  if (!command || (words && !command.takesWords)) return false;
  if (namedSkill(word, info.peek()?.skills ?? [])) return false;
  command.run(words.trim());
  return true;
}

function undoLatest(): void {
  const changed = chat.peek().runs.findLast(({ id, items }) => {
    const last = items.at(-1);
    return last?.kind === 'end' && last.changedFiles.length > 0 && !undone.peek().has(id);
  });
  if (changed) post({ type: 'undo_run', runId: changed.id });
  else viewProblem.value = t('No run of this conversation has changed a file.');
}

let recalled = -1;

/**
 * Returns the request before or after the one that was recalled last; the newest first. Empty after the newest. Undefined if the
 * draft is the person's own.
 */
export function recall(draft: string, isUp: boolean): string | undefined {
  const texts = chat
    .peek()
    .runs.map(({ text }) => text)
    .filter(Boolean);
  const isRecalled = texts[recalled] === draft;
  if (draft !== '' && !isRecalled) return undefined;
  if (draft === '' && !isUp) return undefined;
  const from = draft === '' ? texts.length : recalled;
  recalled = Math.max(0, from + (isUp ? -1 : 1));
  return texts[recalled] ?? '';
}
