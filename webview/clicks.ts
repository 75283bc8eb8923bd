/** Takes clicks on links and on the buttons of code inside of answers, whose nodes no component owns. */
import { announce } from './announcer.tsx';
import { post } from './host.ts';

/** Listens on the whole page, before the editor's own listener would open a link by itself. */
export function takeClicks(page: Document): void {
  for (const type of ['click', 'auxclick'] as const) page.addEventListener(type, onClick, { capture: true });
}

function onClick(event: MouseEvent) {
  if (!(event.target instanceof Element)) return;
  const link = event.target.closest('a[href]');
  if (link) {
    event.preventDefault();
    event.stopPropagation();
    const isRightButton = event.button === 2;
    if (!isRightButton) post({ type: 'open_link', url: link.getAttribute('href')! });
  }
  const action = event.target.closest<HTMLButtonElement>('button.code-action');
  if (action && event.button === 0) takeCode(action);
}

function takeCode(button: HTMLButtonElement) {
  const block = button.closest('.code-block');
  const text = block?.querySelector('code')?.textContent ?? '';
  if (button.classList.contains('insert')) post({ type: 'insert_code', text });
  else if (button.classList.contains('new-file')) {
    post({ type: 'new_file', text, language: block?.querySelector('.code-language')?.textContent ?? '' });
  } else copyCode(button, text);
}

function copyCode(button: HTMLButtonElement, text: string) {
  post({ type: 'copy', text });
  announce(['Copied.']);
  button.textContent = 'Copied';
  setTimeout(() => {
    button.textContent = 'Copy';
  }, 1_500);
}
