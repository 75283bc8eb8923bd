/** Keeps a block that is far too long to be drawn at once from holding up the view: its beginning is drawn, more of it when asked for. */
import { t } from './words.ts';

/** Characters of a block that are drawn without being asked for; a page of prose has some 3,000. */
const drawnAtOnce = 20_000;
/** Characters that one press of the button adds. */
const addedAtOnce = 100_000;

/** `rest` is empty for every block of a usual length. */
export function splitLong(source: string): { head: string; rest: string } {
  if (source.length <= drawnAtOnce * 2) return { head: source, rest: '' };
  const at = wholeCharacters(source, drawnAtOnce);
  return { head: source.slice(0, at), rest: source.slice(at) };
}

/** A button that puts more of `rest` in front of itself, as plain text, until nothing is left. */
export function showMore(rest: string): HTMLElement {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'show-more';
  let left = rest;
  const label = (): void => {
    button.textContent = t('Show more ({0} characters)', left.length.toLocaleString('en'));
  };
  button.addEventListener('click', () => {
    const at = wholeCharacters(left, addedAtOnce);
    const paragraph = document.createElement('p');
    paragraph.textContent = left.slice(0, at);
    button.before(paragraph);
    left = left.slice(at);
    if (left === '') button.remove();
    else label();
  });
  label();
  return button;
}

/** At most `length`, and never between the halves of a character. */
function wholeCharacters(text: string, length: number): number {
  const code = text.charCodeAt(length - 1);
  return code >= 0xd800 && code < 0xdc00 ? length - 1 : Math.min(length, text.length);
}
