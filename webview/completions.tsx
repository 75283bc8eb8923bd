/** The list of skills over the textbox while its text is a slash and part of a name; the textbox keeps the focus. */
import { computed, signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { announce } from './announcer.tsx';
import { completeSkill } from './skillNames.ts';
import { draft, info } from './store.ts';
import { visible } from './visibleText.ts';

export const completionsId = 'completions';

/** The request for which the person has closed the list. */
const closedFor = signal<string | undefined>(undefined);
const chosen = signal(0);
const offered = computed(() => {
  if (closedFor.value === draft.value) return [];
  return completeSkill(draft.value, info.value?.skills ?? []) ?? [];
});

const optionId = (index: number): string => `${completionsId}-${index}`;

/** The id of the option that Enter takes; undefined while there is no list. */
export function chosenOption(): string | undefined {
  return offered.value.length > 0 ? optionId(current()) : undefined;
}

const current = (): number => Math.min(chosen.value, offered.value.length - 1);

/** True when the key was for the list. `put` sets the request. */
export function takeKey(event: KeyboardEvent): boolean {
  const completions = offered.peek();
  if (completions.length === 0 || event.shiftKey || event.altKey || event.ctrlKey || event.metaKey)
    return false;
  const last = completions.length - 1;
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
      const { text } = completions[current()]!;
      // A name that is written out wants to be sent, not to be written once more.
      if (event.key === 'Enter' && draft.peek().toLowerCase() === text.toLowerCase()) return false;
      take(text);
      break;
    }
    default:
      return false;
  }
  event.preventDefault();
  return true;
}

/** To be called when the person has typed. */
export function forgetChoice(): void {
  chosen.value = 0;
  closedFor.value = undefined;
}

function take(text: string): void {
  draft.value = `${text} `;
  chosen.value = 0;
}

export function Completions() {
  const completions = offered.value;
  const list = useRef<HTMLDivElement>(null);
  const index = current();
  useEffect(() => {
    list.current?.children[index]?.scrollIntoView({ block: 'nearest' });
  }, [index, completions]);
  const count = completions.length;
  useEffect(() => {
    if (count > 0) announce([count === 1 ? '1 skill' : `${count} skills`]);
  }, [count]);
  if (count === 0) return null;
  return (
    <div class="completions" id={completionsId} role="listbox" aria-label="Skills" ref={list}>
      {completions.map(({ skill, text }, at) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the keys go to the textbox, which has the focus
        <div
          key={`${skill.agent}:${skill.skill}`}
          id={optionId(at)}
          role="option"
          tabIndex={-1}
          aria-selected={at === index}
          onMouseDown={event => event.preventDefault()}
          onClick={() => take(text)}
        >
          <span class="suggestion-name">{visible(text)}</span>
          <span class="suggestion-description">
            {visible(skill.description) || `of ${visible(skill.agent)}`}
          </span>
        </div>
      ))}
    </div>
  );
}
