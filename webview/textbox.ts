/** The one textbox of the chat view, for whatever puts the cursor into it. */

export const textboxId = 'message';

/** Puts the cursor at the end of the textbox. */
export function focusComposer(): void {
  // The text may have been set just now; it is drawn by the next frame.
  requestAnimationFrame(() => {
    const textbox = document.getElementById(textboxId) as HTMLTextAreaElement | null;
    textbox?.focus();
    textbox?.setSelectionRange(textbox.value.length, textbox.value.length);
  });
}
