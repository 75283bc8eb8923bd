/** Announces to screen readers what happens. Sentences of one second are collected in one polite live region. */
import { signal } from './store.ts';

const spoken = signal({ count: 0, text: '' });
let waiting: string[] = [];
let timer: ReturnType<typeof setTimeout> | undefined;

/** Announces the sentences within a second. */
export function announce(sentences: readonly string[]): void {
  waiting = [...waiting, ...sentences];
  if (waiting.length === 0 || timer !== undefined) return;
  timer = setTimeout(() => {
    spoken.value = { count: spoken.value.count + 1, text: waiting.join(' ') };
    waiting = [];
    timer = undefined;
  }, 1_000);
}

export function Announcer() {
  const { count, text } = spoken.value;
  return (
    <div class="unseen" role="status">
      <p key={count}>{text}</p>
    </div>
  );
}
