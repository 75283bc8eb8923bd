/** Edits a request of the conversation. Sending it replaces everything after it. */
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { resend } from './store.ts';
import { t } from './words.ts';

export function RequestEditor({ runId, text, close }: { runId: string; text: string; close: () => void }) {
  const [words, setWords] = useState(text);
  const textbox = useRef<HTMLTextAreaElement>(null);
  // Runs before the editor is shown. Later, the cursor would jump while the person types or selects.
  useLayoutEffect(() => {
    textbox.current?.focus();
    textbox.current?.setSelectionRange(text.length, text.length);
  }, []);
  const send = () => {
    if (words.trim() === '') return;
    resend(runId, words);
    close();
  };
  return (
    <form
      class="request-editor"
      onSubmit={event => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        ref={textbox}
        aria-label={t('Edit request')}
        rows={1}
        value={words}
        onInput={event => setWords(event.currentTarget.value)}
        onKeyDown={event => {
          if (event.isComposing) return;
          if (event.key === 'Escape') close();
          else if (event.key === 'Enter' && !event.shiftKey && !event.altKey) send();
          else return;
          event.preventDefault();
        }}
      />
      <div class="buttons">
        <button type="submit" class="primary" disabled={words.trim() === ''}>
          {t('Send')}
        </button>
        <button type="button" class="secondary" onClick={close}>
          {t('Cancel')}
        </button>
        <span class="quiet">{t('Everything after it is removed; files are not changed.')}</span>
      </div>
    </form>
  );
}
