/**
 * Draws a stream of Markdown without a virtual DOM. Closed blocks are attached once and never changed. The open block is parsed
 * again or, if it is code, appended to. Sections hold the blocks, so that the layout can skip those out of sight.
 */

import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { announce } from './announcer.tsx';
import { CodeBlock } from './codeBlock.ts';
import { drawFormulas } from './drawLater.ts';
import { linkFiles, openPlace } from './fileLinks.ts';
import { post, t } from './host.ts';
import { completeMarkdown, renderMarkdown, sanitize } from './markdown.ts';
import {
  codeParts,
  foldParts,
  type MarkdownBlock,
  type MarkdownStream,
  openBlock,
  showMore,
  splitLong,
} from './markdownBlocks.ts';
import { wrapsCode } from './store.ts';

const blocksPerSection = 12;

/** Maximum number of folds inside each other. */
const mostFolds = 8;

const endsFold = /<\/details>\s*$/i;

/** Largest share of the time for parsing the open block. A huge open block is drawn less often. */
const parseShare = 0.2;

class MarkdownSurface {
  readonly #root: HTMLElement;
  #section: HTMLElement | undefined;
  #drawn = 0;
  /** The open `<details>`, the innermost last. Blocks go into that one. */
  readonly #folds: HTMLElement[] = [];
  #prose: HTMLElement | undefined;
  #code: CodeBlock | undefined;
  #notBefore = 0;
  #later: ReturnType<typeof setTimeout> | undefined;
  /** Level of the last heading. Later headings may go down one level at a time, whatever the model wrote. */
  #headingLevel = 2;

  constructor(root: HTMLElement) {
    this.#root = root;
  }

  /** Draws the new part of `markdown`, which must continue the text drawn before. */
  update(markdown: MarkdownStream): void {
    clearTimeout(this.#later);
    for (; this.#drawn < markdown.closed.length; this.#drawn += 1) {
      this.#drawClosed(markdown.closed[this.#drawn]!);
    }
    const open = openBlock(markdown);
    if (open?.kind === 'code') this.#drawOpenCode(open);
    else if (open?.kind === 'prose') this.#drawOpenProse(open);
    else this.#dropOpen();
  }

  dispose(): void {
    clearTimeout(this.#later);
  }

  #drawClosed(block: MarkdownBlock): void {
    if (block.kind === 'code') {
      this.#drawOpenCode(block, false);
      this.#code?.finish();
    } else if (block.kind === 'fold' && this.#folds.length < mostFolds) {
      this.#openFold(block);
    } else if (block.kind === 'fold_end' && this.#folds.length > 0) {
      this.#dropOpen();
      this.#folds.pop();
    } else if (this.#folds.length > 0 && endsFold.test(block.source)) {
      // The end may stand behind the last words.
      this.#drawProse({ ...block, source: block.source.replace(endsFold, '') });
      this.#folds.pop();
    } else if (block.source.trim() !== '') {
      this.#drawProse(block);
    } else {
      this.#dropOpen();
    }
    this.#code = undefined;
    this.#prose = undefined;
    this.#notBefore = 0;
    if ((this.#drawn + 1) % blocksPerSection === 0 && this.#folds.length === 0) {
      this.#section?.classList.add('full');
      this.#section = undefined;
    }
  }

  #drawProse(block: MarkdownBlock): void {
    const { head, rest } = splitLong(block.source);
    const { nodes, level } = proseNodes(head, this.#headingLevel);
    if (rest) nodes.append(showMore(rest));
    this.#headingLevel = level;
    const element = this.#proseElement();
    element.replaceChildren(nodes);
    if (block.cut) element.classList.add('cut');
  }

  /** Begins a fold. Its words are Markdown; of its tag, only `open` counts. */
  #openFold({ source }: MarkdownBlock): void {
    this.#dropOpen();
    const { summary, isOpen, rest } = foldParts(source);
    const fold = document.createElement('details');
    fold.className = 'fold';
    fold.open = isOpen;
    const head = document.createElement('summary');
    const { nodes } = proseNodes(summary || t('Details'), this.#headingLevel);
    const words = nodes.childElementCount === 1 && nodes.firstElementChild?.localName === 'p';
    head.append(...(words ? nodes.firstElementChild!.childNodes : [summary]));
    fold.append(head);
    this.#attach(fold);
    this.#folds.push(fold);
    const isWhole = endsFold.test(rest);
    const inside = rest.replace(endsFold, '');
    if (inside.trim() !== '') this.#drawProse({ kind: 'prose', source: inside });
    if (isWhole) this.#folds.pop();
  }

  #drawOpenCode(block: MarkdownBlock, growing = true): void {
    if (!this.#code) {
      this.#dropOpen();
      this.#code = new CodeBlock();
      this.#attach(this.#code.element);
    }
    const { code, language } = codeParts(block.source, growing);
    this.#code.grow(code, language);
  }

  #drawOpenProse(block: MarkdownBlock): void {
    const now = performance.now();
    if (now < this.#notBefore) {
      this.#later = setTimeout(() => this.#drawOpenProse(block), this.#notBefore - now);
      return;
    }
    const { head, rest } = splitLong(block.source);
    // If the block grows beyond that, the visible part stays as it is.
    if (rest && this.#prose?.dataset['long']) return;
    const { nodes } = proseNodes(completeMarkdown(head), this.#headingLevel, true);
    const element = this.#proseElement();
    element.replaceChildren(nodes);
    if (rest) element.dataset['long'] = 'true';
    const end = performance.now();
    this.#notBefore = end - now > 4 ? end + (end - now) / parseShare : 0;
  }

  #proseElement(): HTMLElement {
    if (!this.#prose) {
      this.#dropOpen();
      this.#prose = document.createElement('div');
      this.#prose.className = 'prose';
      this.#attach(this.#prose);
    }
    return this.#prose;
  }

  #dropOpen(): void {
    this.#code?.element.remove();
    this.#prose?.remove();
    this.#code = undefined;
    this.#prose = undefined;
  }

  #attach(element: HTMLElement): void {
    const fold = this.#folds.at(-1);
    if (fold) {
      fold.append(element);
      return;
    }
    if (!this.#section) {
      this.#section = document.createElement('div');
      this.#section.className = 'section';
      this.#root.append(this.#section);
    }
    this.#section.append(element);
  }
}

/** Returns the nodes of a block of prose, and the level of its last heading. Of a growing block, no path is looked up. */
function proseNodes(
  source: string,
  headingLevel: number,
  growing = false,
): { nodes: DocumentFragment; level: number } {
  const nodes = sanitize(renderMarkdown(source));
  let level = headingLevel;
  for (const heading of nodes.querySelectorAll('h1,h2,h3,h4,h5,h6')) {
    level = Math.min(Number(heading.localName[1]) + 2, level + 1, 6);
    heading.setAttribute('aria-level', String(level));
  }
  for (const frame of nodes.querySelectorAll('pre')) {
    const language = /language-(\S+)/.exec(frame.firstElementChild?.className ?? '')?.[1] ?? '';
    const block = new CodeBlock();
    block.grow(frame.textContent ?? '', language);
    block.finish();
    frame.replaceWith(block.element);
  }
  drawFormulas(nodes);
  linkFiles(nodes, !growing);
  for (const item of nodes.querySelectorAll('li')) {
    if (/^\s*[☐☑]/.test(item.textContent ?? '')) item.classList.add('task');
  }
  for (const table of nodes.querySelectorAll('table')) {
    const frame = document.createElement('div');
    frame.className = 'table-frame';
    frame.tabIndex = 0;
    table.replaceWith(frame);
    frame.append(table);
  }
  return { nodes, level };
}

export function MarkdownView({ markdown }: { markdown: MarkdownStream }) {
  const element = useRef<HTMLDivElement>(null);
  const surface = useRef<MarkdownSurface>(null);
  useLayoutEffect(() => {
    surface.current ??= new MarkdownSurface(element.current!);
    surface.current.update(markdown);
  }, [markdown]);
  useEffect(() => () => surface.current?.dispose(), []);
  return <div class="markdown" ref={element} />;
}

/** Handles clicks on the whole page, before the editor's own listener would open a link by itself. */
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
    if (!isRightButton && !openPlace(link)) post({ type: 'open_link', url: link.getAttribute('href')! });
  }
  const action = event.target.closest<HTMLButtonElement>('button.code-action');
  if (action && event.button === 0) takeCode(action);
}

function takeCode(button: HTMLButtonElement) {
  const block = button.closest('.code-block');
  const text = block?.querySelector('code')?.textContent ?? '';
  if (button.classList.contains('wrap')) wrapsCode.value = !wrapsCode.peek();
  else if (button.classList.contains('insert')) post({ type: 'insert_code', text });
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
