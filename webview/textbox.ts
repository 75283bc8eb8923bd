/** Places the cursor in the one textbox of the chat view. */
import { signal } from '@preact/signals';
import { draft } from './store.ts';

export const textboxId = 'message';

/** Offset of the cursor in the request. In UTF-16 units. */
export const cursor = signal(0);

/** Puts the cursor at the end of the textbox. */
export function focusComposer(): void {
  putCursor(Number.POSITIVE_INFINITY);
}

/** Puts the cursor into the textbox, after `at` UTF-16 units or at its end. */
export function putCursor(at: number): void {
  const textbox = document.getElementById(textboxId) as HTMLTextAreaElement | null;
  if (!textbox) return;
  // New text may not be drawn yet. A person who types at once must find the cursor in its final place.
  if (textbox.value !== draft.peek()) textbox.value = draft.peek();
  const place = Math.min(at, textbox.value.length);
  textbox.focus();
  textbox.setSelectionRange(place, place);
  cursor.value = place;
}
