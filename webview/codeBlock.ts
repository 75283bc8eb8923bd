/**
 * Draws one block of code. Its head has the language and action buttons; its text grows by appending and is coloured at the end.
 */

import { colourLater, drawDiagramLater } from './drawLater.ts';
import { t } from './host.ts';

/** The browser lays out a growing text again with each append. Parts of this size keep that cheap. In UTF-16 units. */
const partSize = 4_000;

export class CodeBlock {
  readonly element = document.createElement('div');
  readonly #label = document.createElement('span');
  readonly #code = document.createElement('code');
  #part: HTMLElement | undefined;
  #text = '';

  constructor() {
    this.element.className = 'code-block';
    this.#label.className = 'code-language';
    const head = document.createElement('div');
    head.className = 'code-head';
    const actions = document.createElement('span');
    actions.className = 'code-actions';
    const wrap = action('wrap', t('Wrap'), t('Wrap long lines of code'));
    wrap.setAttribute('aria-pressed', String(document.body.classList.contains('wrap-code')));
    actions.append(
      wrap,
      action('copy', t('Copy'), t('Copy code')),
      action('insert', t('Insert'), t('Insert code at the cursor')),
      action('new-file', t('New File'), t('Open code in a new file')),
    );
    head.append(this.#label, actions);
    const frame = document.createElement('pre');
    frame.tabIndex = 0;
    frame.append(this.#code);
    this.element.append(head, frame);
  }

  /** Shows `code`. Appends only the new text if the text before it is the same. */
  grow(code: string, language: string): void {
    if (this.#label.textContent !== language) this.#label.textContent = language;
    if (!code.startsWith(this.#text)) {
      this.#code.replaceChildren();
      this.#part = undefined;
      this.#text = '';
    }
    let rest = code.slice(this.#text.length);
    this.#text = code;
    while (rest !== '') {
      const room = partSize - (this.#part?.textContent?.length ?? 0);
      // A part is a block of its own, so it may only end where a line ends.
      const cut = rest.length > room ? rest.indexOf('\n', Math.max(0, room)) + 1 : 0;
      const piece = cut > 0 ? rest.slice(0, cut) : rest;
      this.#append(piece);
      if (cut > 0) this.#part = undefined;
      rest = rest.slice(piece.length);
    }
  }

  /** Colours the complete text, or draws the diagram that it describes. */
  finish(): void {
    const language = this.#label.textContent ?? '';
    const text = this.#text;
    if (!language || !text) return;
    if (language.toLowerCase() === 'mermaid') drawDiagramLater(this.element, text);
    else colourLater(this.#code, text, language, () => text === this.#text);
  }

  #append(piece: string): void {
    if (!this.#part) {
      this.#part = document.createElement('span');
      this.#part.className = 'code-part';
      this.#part.append('');
      this.#code.append(this.#part);
    }
    (this.#part.firstChild as Text).appendData(piece);
  }
}

/** Creates a button. `clicks.ts` finds its action by its class. */
function action(name: string, text: string, label: string): HTMLButtonElement {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = `code-action ${name}`;
  button.textContent = text;
  button.title = label;
  button.setAttribute('aria-label', label);
  return button;
}
