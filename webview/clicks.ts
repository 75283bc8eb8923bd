/** Takes clicks on links and Copy buttons inside of answers, whose nodes no component owns. */
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
  const copy = event.target.closest<HTMLButtonElement>('button.copy');
  if (copy && event.button === 0) copyCode(copy);
}

function copyCode(button: HTMLButtonElement) {
  const code = button.closest('.code-block')?.querySelector('code')?.textContent ?? '';
  post({ type: 'copy', text: code });
  announce(['Copied.']);
  button.textContent = 'Copied';
  setTimeout(() => {
    button.textContent = 'Copy';
  }, 1_500);
}
