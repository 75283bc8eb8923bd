/** The one textbox of the chat view, for whatever puts the cursor into it. */
import { signal } from '@preact/signals';
import { draft } from './store.ts';

export const textboxId = 'message';

/** Where the cursor stands in the request, in UTF-16 units. */
export const cursor = signal(0);

/** Puts the cursor at the end of the textbox. */
export function focusComposer(): void {
  putCursor(Number.POSITIVE_INFINITY);
}

/** Puts the cursor into the textbox, behind so many UTF-16 units or at its end. */
export function putCursor(at: number): void {
  const textbox = document.getElementById(textboxId) as HTMLTextAreaElement | null;
  if (!textbox) return;
  // The text may have been set just now, and is drawn later; whoever types on at once must find the cursor where it will stand.
  if (textbox.value !== draft.peek()) textbox.value = draft.peek();
  const place = Math.min(at, textbox.value.length);
  textbox.focus();
  textbox.setSelectionRange(place, place);
  cursor.value = place;
}
