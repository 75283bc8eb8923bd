/**
 * Converts a web page to text for a model: its words in order, with links, without code and markup. It takes one pass, so
 * any page is quick.
 */
import { Tokenizer } from 'htmlparser2';

const rawElements = new Set(['script', 'style', 'noscript', 'template', 'svg', 'iframe', 'object', 'math']);
const blocks = new Set(
  'address article aside blockquote body center dd details dialog div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr html legend li main nav ol option p pre section select summary table tbody tfoot thead title tr ul'.split(
    ' ',
  ),
);
const spaced = new Set(
  'article blockquote dl h1 h2 h3 h4 h5 h6 main ol p pre section table title ul'.split(' '),
);

/** Returns the readable text of a page. `base` is the page's address, which completes its links. */
export function htmlToText(html: string, base: URL): string {
  const page = new ReadablePage(base);
  let name = '';
  let attribute = '';
  let value = '';
  let href: string | undefined;
  /** Name of the element whose content is left out. */
  let hidden: string | undefined;
  const nothing = (): void => {};
  const part = (start: number, end: number): string => html.slice(start, end);
  const opened = (): void => {
    if (hidden !== undefined) return;
    if (rawElements.has(name)) hidden = name;
    else page.open(name, href);
  };
  // The parser's higher level keeps the open elements, and looks through all of them at each closing tag.
  const tokenizer = new Tokenizer(
    {},
    {
      ontext: (start, end) => hidden ?? page.addText(part(start, end)),
      ontextentity: code => hidden ?? page.addText(String.fromCodePoint(code)),
      onopentagname: (start, end) => {
        name = part(start, end).toLowerCase();
        href = undefined;
      },
      onattribname: (start, end) => {
        attribute = part(start, end).toLowerCase();
        value = '';
      },
      onattribdata: (start, end) => {
        value += part(start, end);
      },
      onattribentity: code => {
        value += String.fromCodePoint(code);
      },
      onattribend: () => {
        if (attribute === 'href') href ??= value;
      },
      onopentagend: opened,
      onselfclosingtag: opened,
      onclosetag: (start, end) => {
        const closed = part(start, end).toLowerCase();
        if (hidden === undefined) page.close(closed);
        else if (closed === hidden) hidden = undefined;
      },
      isInForeignContext: () => hidden === 'svg' || hidden === 'math',
      oncdata: nothing,
      oncomment: nothing,
      ondeclaration: nothing,
      onend: nothing,
      onprocessinginstruction: nothing,
    },
  );
  tokenizer.write(html);
  tokenizer.end();
  return page.text();
}

class ReadablePage {
  readonly #base: URL;
  readonly #parts: string[] = [];
  /** Text since the last tag. */
  #text = '';
  /** Line breaks before the next words. Neighbouring blocks share theirs. */
  #breaks = 0;
  #atLineStart = true;
  #preformatted = false;
  #link: { url: string; at: number } | undefined;

  constructor(base: URL) {
    this.#base = base;
  }

  /** Adds a piece of the text between two tags. */
  addText(piece: string): void {
    this.#text += piece;
  }

  open(element: string, href: string | undefined): void {
    this.#endText();
    if (element === 'a') {
      this.#endLink();
      this.#link = this.#linkTo(href);
    }
    if (element === 'pre') this.#preformatted = true;
    if (element === 'br') this.#break();
    this.#beginBlock(element);
    if (element === 'li') this.#putMark('- ');
    if (/^h[1-6]$/.test(element)) this.#putMark(`${'#'.repeat(Number(element[1]))} `);
  }

  close(element: string): void {
    this.#endText();
    if (element === 'a') this.#endLink();
    if (element === 'pre') this.#preformatted = false;
    if (element === 'td' || element === 'th') this.#put('\t');
    this.#beginBlock(element);
  }

  text(): string {
    this.#endText();
    this.#endLink();
    return this.#parts
      .join('')
      .replace(/[^\S\n]+$/gm, '')
      .replace(/\n{3,}/g, '\n\n')
      .trim();
  }

  #endText(): void {
    // A place where a word may be divided is not part of it.
    const text = this.#text.replaceAll('\u00ad', '');
    this.#text = '';
    const collapsed = this.#preformatted ? text : text.replace(/\s+/g, ' ');
    const begins = !this.#preformatted && (this.#atLineStart || this.#breaks > 0);
    this.#put(begins ? collapsed.trimStart() : collapsed);
  }

  #break(): void {
    this.#put('\n');
    this.#atLineStart = true;
  }

  #beginBlock(element: string): void {
    if (blocks.has(element)) this.#breaks = Math.max(this.#breaks, spaced.has(element) ? 2 : 1);
  }

  #put(text: string): void {
    if (text === '') return;
    if (this.#breaks > 0) this.#parts.push('\n'.repeat(this.#breaks));
    this.#breaks = 0;
    this.#parts.push(text);
    this.#atLineStart = false;
  }

  /** Puts a mark at the beginning of a line; the words follow on the same line. */
  #putMark(mark: string): void {
    this.#put(mark);
    this.#atLineStart = true;
  }

  #linkTo(href: string | undefined): { url: string; at: number } | undefined {
    if (href === undefined || href.startsWith('#') || !URL.canParse(href, this.#base.href)) return undefined;
    const url = new URL(href, this.#base);
    return /^https?:$/.test(url.protocol) ? { url: url.href, at: this.#parts.length } : undefined;
  }

  #endLink(): void {
    const link = this.#link;
    this.#link = undefined;
    if (link === undefined) return;
    const words = this.#parts.slice(link.at).join('').trim();
    if (words !== '' && words !== link.url) this.#parts.push(` (${link.url})`);
  }
}
