/** One block of code: a head with language and buttons for what to do with it, and text that grows by appending and is coloured at its end. */

import highlighter from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import css from 'highlight.js/lib/languages/css';
import diff from 'highlight.js/lib/languages/diff';
import go from 'highlight.js/lib/languages/go';
import ini from 'highlight.js/lib/languages/ini';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import markdown from 'highlight.js/lib/languages/markdown';
import python from 'highlight.js/lib/languages/python';
import rust from 'highlight.js/lib/languages/rust';
import sql from 'highlight.js/lib/languages/sql';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';
import { sanitize } from './markdown.ts';
import { t } from './words.ts';

/** A growing text is laid out again as a whole with each append; in parts of this many UTF-16 units it stays cheap. */
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
    actions.append(
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

  /** Shows `code`, appending only what is new when the text before it is the same. */
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

  /** The text is whole: colours it when the browser has time. */
  finish(): void {
    const language = this.#label.textContent ?? '';
    const text = this.#text;
    if (!language || !text) return;
    requestIdleCallback(
      () => {
        const html = highlight(text, language.toLowerCase());
        if (html !== undefined && text === this.#text) this.#code.replaceChildren(sanitize(html));
      },
      { timeout: 2_000 },
    );
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

/** What it does is found in `clicks.ts` by its class. */
function action(name: string, text: string, label: string): HTMLButtonElement {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = `code-action ${name}`;
  button.textContent = text;
  button.title = label;
  button.setAttribute('aria-label', label);
  return button;
}

const languages = {
  bash,
  css,
  diff,
  go,
  ini,
  javascript,
  json,
  markdown,
  python,
  rust,
  sql,
  typescript,
  xml,
  yaml,
};
for (const [name, language] of Object.entries(languages)) highlighter.registerLanguage(name, language);

/** Colouring more than this (in UTF-16 units) would be felt as a stall. */
const longestCode = 30_000;

/** Lines and gaps that are longer are not written by hand, and the patterns of a language go through them again and again. In characters. */
const longLineOrGap = /[^\n]{501}|\s{501}/;

/** HTML of the coloured code, still to be sanitised, or undefined when it stays plain. */
export function highlight(code: string, language: string): string | undefined {
  if (code.length > longestCode || longLineOrGap.test(code) || !highlighter.getLanguage(language))
    return undefined;
  return highlighter.highlight(code, { language, ignoreIllegals: true }).value;
}
