/** Shows the list over the textbox: skills after a slash, attachments after an `@`. The textbox keeps the focus. */
import { computed, effect, signal } from '@preact/signals';
import { Fragment } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { announce } from './announcer.tsx';
import { commandsFor } from './chatCommands.ts';
import { post, t } from './host.ts';
import { completePrompt, completeSkill, mentionAt, offeredMentions } from './mentions.ts';
import { useMenu } from './questions.tsx';
import { cursor, draft, foundFiles, info, putCursor, offers as serverOffers } from './store.ts';
import { visible } from './visibleText.ts';

export const completionsId = 'completions';

/** Pause in typing before the host searches. In milliseconds. */
const searchPause = 120;

interface Option {
  key: string;
  name: string;
  description: string;
  /** Why it may fail, in a few words. */
  note?: string;
  /** What is written behind it. */
  hint?: string;
  /** The heading below which it stands, while nothing is typed that ranks them. */
  group?: string;
  /** True if the request already contains the whole text of the option. */
  isWritten: boolean;
  take(): void;
}

/** The request for which the person has closed the list. */
const closedFor = signal<string | undefined>(undefined);
const chosen = signal(0);
const mention = computed(() => mentionAt(draft.value, cursor.value));
const query = computed(() => mention.value?.typed);
const offered = computed((): readonly Option[] => {
  if (closedFor.value === draft.value) return [];
  return mention.value ? mentionOptions(mention.value) : skillOptions();
});

let timer: ReturnType<typeof setTimeout> | undefined;
effect(() => {
  const typed = query.value;
  clearTimeout(timer);
  if (typed !== undefined) timer = setTimeout(() => post({ type: 'find_files', query: typed }), searchPause);
});

/** True while something is typed that a server may offer. What they offer is asked for once each time. */
const wantsOffers = computed(() => mention.value !== undefined || /^\/\S*$/.test(draft.value));
effect(() => {
  if (wantsOffers.value) post({ type: 'find_offers' });
});

/** Returns all groups for a slash alone, by agent, and for more letters the best first. */
function skillOptions(): Option[] {
  const known = info.value?.skills ?? [];
  const isWhole = draft.value === '/';
  const holds = (agent: string) => known.filter(skill => skill.agent === agent).length;
  const under = (group: string) => (isWhole ? { group } : {});
  const skills = completeSkill(draft.value, known) ?? [];
  const commands = commandsFor(draft.value).filter(({ name }) => !skills.some(({ text }) => text === name));
  const offeredCommands = commands.map(({ name, description, hint, run }) => ({
    key: name,
    name,
    description,
    ...(hint && { hint }),
    ...under(t('Commands')),
    isWritten: draft.value.toLowerCase() === name,
    take: () => {
      put('', 0);
      run('');
    },
  }));
  const offeredSkills = skills.map(({ skill, text }) => ({
    key: `${skill.agent}:${skill.skill}`,
    name: visible(text),
    description: visible(skill.description) || t('of {0}', visible(skill.agent)),
    ...(skill.note && { note: visible(skill.note) }),
    ...under(`${visible(skill.agent)} (${holds(skill.agent)})`),
    isWritten: draft.value.toLowerCase() === text.toLowerCase(),
    take: () => put(`${text} `, text.length + 1),
  }));
  const prompts = completePrompt(draft.value, serverOffers.value.prompts, known);
  const offeredPrompts = prompts.map(({ word, description }) => ({
    key: `prompt ${word}`,
    name: `/${visible(word)}`,
    description: visible(description) || t('Prompt of an MCP server'),
    ...under(t('Prompts of MCP servers')),
    isWritten: draft.value === `/${word}`,
    take: () => put(`/${word} `, word.length + 2),
  }));
  return [...offeredSkills, ...offeredCommands, ...offeredPrompts];
}

function mentionOptions({ start, end, typed }: NonNullable<typeof mention.value>): Option[] {
  const all = offeredMentions(typed, foundFiles.value, serverOffers.value.resources);
  return all.map(({ word, description, isResource }) => ({
    key: word,
    name: `@${visible(word)}`,
    description: visible(description),
    isWritten: false,
    take: () => {
      const text = draft.peek();
      // A blank would end the word.
      const written = /\s/.test(word) ? '' : `@${word} `;
      put(text.slice(0, start) + written + text.slice(end).replace(/^ /, ''), start + written.length);
      if (!isResource) post({ type: 'attach_mention', mention: word });
    },
  }));
}

function put(text: string, at: number): void {
  draft.value = text;
  chosen.value = 0;
  putCursor(at);
}

const optionId = (index: number): string => `${completionsId}-${index}`;

/** Returns the id of the option that Enter takes, or undefined if no list is shown. */
export function chosenOption(): string | undefined {
  return offered.value.length > 0 ? optionId(current()) : undefined;
}

const current = (): number => Math.min(chosen.value, offered.value.length - 1);

/** Handles a key for the list. Returns true if the list used it. */
export function takeKey(event: KeyboardEvent): boolean {
  const options = offered.peek();
  if (options.length === 0 || event.shiftKey || event.altKey || event.ctrlKey || event.metaKey) return false;
  const last = options.length - 1;
  switch (event.key) {
    case 'ArrowDown':
      chosen.value = current() === last ? 0 : current() + 1;
      break;
    case 'ArrowUp':
      chosen.value = current() === 0 ? last : current() - 1;
      break;
    case 'Escape':
      closedFor.value = draft.peek();
      break;
    case 'Enter':
    case 'Tab': {
      const option = options[current()]!;
      // A complete name is sent, not inserted again.
      if (event.key === 'Enter' && option.isWritten) return false;
      option.take();
      break;
    }
    default:
      return false;
  }
  event.preventDefault();
  return true;
}

/** Resets the list. Called when the person has typed. */
export function forgetChoice(): void {
  chosen.value = 0;
  closedFor.value = undefined;
}

function offers(count: number, isMention: boolean): string {
  if (isMention) return count === 1 ? t('1 thing to attach') : t('{0} things to attach', count);
  return count === 1 ? t('1 skill or command') : t('{0} skills and commands', count);
}

export function Completions() {
  const options = offered.value;
  const list = useRef<HTMLDivElement>(null);
  const index = current();
  useEffect(() => {
    const heading = index === 0 ? list.current?.firstElementChild : undefined;
    (heading ?? document.getElementById(optionId(index)))?.scrollIntoView({ block: 'nearest' });
  }, [index, options]);
  const count = options.length;
  useMenu(count > 0, () => {
    closedFor.value = draft.peek();
  });
  useEffect(() => {
    if (count > 0) announce([offers(count, mention.peek() !== undefined)]);
  }, [count]);
  if (count === 0) return null;
  return (
    <div
      class="completions"
      id={completionsId}
      role="listbox"
      aria-label={mention.value ? t('Attach') : t('Skills and commands')}
      ref={list}
    >
      {options.map(({ key, name, description, note, hint, group, take }, at) => (
        <Fragment key={key}>
          {group !== undefined && group !== options[at - 1]?.group && (
            <div class="completions-heading" role="presentation">
              {group}
            </div>
          )}
          {/* biome-ignore lint/a11y/useKeyWithClickEvents: the keys go to the textbox, which has the focus */}
          <div
            id={optionId(at)}
            role="option"
            tabIndex={-1}
            aria-selected={at === index}
            onMouseDown={event => event.preventDefault()}
            onClick={take}
          >
            <span class="suggestion-name">
              {name}
              {hint && <span class="quiet"> {hint}</span>}
            </span>
            {note && <span class="suggestion-note">{note}</span>}
            <span class="suggestion-description">{description}</span>
          </div>
        </Fragment>
      ))}
    </div>
  );
}
