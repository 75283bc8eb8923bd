/** Turns one block of Markdown into HTML. Raw HTML in it stays text, and only harmless addresses become links. */
import DOMPurify from 'dompurify';
import { Lexer, Marked, type Token, type TokensList } from 'marked';

const marked = new Marked({
  gfm: true,
  tokenizer: {
    // Without these two, a model's text is never taken for a tag. Tag-like text is shown as it was written.
    html: () => undefined,
    tag: () => undefined,
    // A row gets as many cells as the head, however short it is written. `false` leaves the table to marked.
    table: src => (mayBeTable(src) ? false : undefined),
    // Each of many headings or paragraphs may be compared with all text after it.
    lheading(src) {
      return (this.lexer as BoundedLexer).mayLookAhead(src) ? false : undefined;
    },
    paragraph(src) {
      return (this.lexer as BoundedLexer).mayLookAhead(src) ? false : undefined;
    },
  },
  extensions: [
    {
      // Before the lines of a formula are taken for a list or a heading.
      name: 'formula block',
      level: 'block',
      tokenizer(src) {
        const raw = formulaBlock.exec(src)?.[0];
        return raw === undefined ? undefined : { type: 'formula block', raw };
      },
      renderer: ({ raw }) => `<p><code class="formula displayed">${escapeHtml(raw.trim())}</code></p>`,
    },
    {
      name: 'formula',
      level: 'inline',
      start: src => formulaStart.exec(src)?.index,
      tokenizer(src) {
        const raw = formula.exec(src)?.[0];
        return raw === undefined ? undefined : { type: 'formula', raw };
      },
      renderer: ({ raw }) => {
        const isDisplayed = /^(?:\$\$|\\\[)/.test(raw);
        return `<code class="formula${isDisplayed ? ' displayed' : ''}">${escapeHtml(raw)}</code>`;
      },
    },
  ],
  renderer: {
    link({ href, title, tokens }) {
      const label = this.parser.parseInline(tokens);
      if (!isWebAddress(href)) {
        const address =
          label === escapeHtml(href) ? '' : `<span class="path-address"> (${escapeHtml(href)})</span>`;
        return `<span class="path" title="${escapeHtml(href)}">${label}${address}</span>`;
      }
      const tooltip = title ? `${title} (${href})` : href;
      return `<a href="${escapeHtml(href)}" title="${escapeHtml(tooltip)}">${label}</a>`;
    },
    image({ href, text }) {
      if (isEmbeddedImage(href)) return `<img src="${escapeHtml(href)}" alt="${escapeHtml(text)}">`;
      const label = escapeHtml(text ? `Image: ${text}` : 'Image');
      if (!isWebAddress(href))
        return `<span class="local-image" title="${escapeHtml(href)}">${label} (${escapeHtml(href)})</span>`;
      return `<a href="${escapeHtml(href)}" title="${escapeHtml(href)}">${label}</a>`;
    },
    checkbox({ checked }) {
      return checked ? '☑ ' : '☐ ';
    },
  },
});

/**
 * Maximum number of marks in one text within a block, such as a paragraph or a cell.
 * The parser may compare each with each. A text with more was not written to be read, and is shown as it is.
 */
const mostMarks = 300;
/** Maximum sum of such numbers, each squared, in a whole block. */
const mostWork = 150_000;
/** This many marks cost next to nothing. */
const fewMarks = 8;
/** Maximum depth of quotes and lists inside each other. */
const mostNested = 20;
/** Maximum number of lines in a text. Each line is appended to those before it, and all of them are copied. */
const mostLines = 3_000;
/** Maximum number of characters that the lines of a block may look ahead at, together. */
const mostAhead = 500_000;
/** Maximum number of cells in a table, including those left out of its rows. */
const mostCells = 20_000;

/** Where a formula may begin: a price such as US$5 is none. */
const formulaStart = /(?<![\w$\\])\$(?=\S)|\\[([]/;

/**
 * A formula with its marks. Between single dollars, neither end has a blank inside, and no letter or digit follows: "from $5 to $10"
 * and "$HOME/$USER" are words.
 */
const formula =
  /^(?:\$\$(?!\$)(?:\\[\s\S]|[^$\\]){1,3000}\$\$|\$(?![\s$])(?:\\.|[^$\\`\n]){1,500}(?<!\s)\$(?![\w$])|\\\((?:(?!\\[()])[\s\S]){1,3000}\\\)|\\\[(?:(?!\\\])[\s\S]){1,3000}\\\])/;

const formulaBlock =
  /^ {0,3}(?:\$\$(?!\$)(?:\\[\s\S]|[^$\\]){1,3000}\$\$|\\\[(?:(?!\\\])[\s\S]){1,3000}\\\])[ \t]*(?:\n|$)/;

const marks = /\*+|_+|~+|\$+|[[\]!<\\`@]|https?:|ftp:|www\.| {2}\n/g;

/**
 * Treats expensive text as plain text, so that a stranger cannot choose how long parsing takes. The parser tries many marks
 * repeatedly, up to the end of their text.
 */
class BoundedLexer extends Lexer<string, string> {
  #work = 0;
  #nested = 0;
  #ahead = 0;

  mayLookAhead(src: string): boolean {
    this.#ahead += src.length;
    return this.#ahead <= mostAhead;
  }

  override inlineTokens(src: string, tokens: Token[] = []): Token[] {
    const count = src.match(marks)?.length ?? 0;
    const work = count <= fewMarks ? 0 : count * count;
    if (count > mostMarks || this.#work + work > mostWork) {
      tokens.push({ type: 'text', raw: src, text: src, escaped: false });
      return tokens;
    }
    this.#work += work;
    return super.inlineTokens(src, tokens);
  }

  // It has two signatures, one of them for the whole text. The last parameter is the same in both.
  override blockTokens(src: string, tokens?: Token[], isClipped?: boolean): Token[];
  override blockTokens(src: string, tokens?: TokensList, isClipped?: boolean): TokensList;
  override blockTokens(src: string, tokens: Token[] = [], isClipped = false): Token[] {
    if (this.#nested >= mostNested || hasLines(src, mostLines)) {
      tokens.push({ type: 'paragraph', raw: src, text: src, tokens: this.inline(src) });
      return tokens;
    }
    this.#nested += 1;
    try {
      return super.blockTokens(src, tokens, isClipped);
    } finally {
      this.#nested -= 1;
    }
  }
}

/** Returns HTML of `source`. It must be sanitised before it is attached. */
export function renderMarkdown(source: string): string {
  try {
    const tokens = new BoundedLexer(marked.defaults).lex(source);
    return marked.parser(tokens, marked.defaults);
  } catch {
    return `<p>${escapeHtml(source)}</p>`;
  }
}

function hasLines(text: string, count: number): boolean {
  let at = 0;
  for (let line = 0; line < count; line++) {
    at = text.indexOf('\n', at) + 1;
    if (at === 0) return false;
  }
  return true;
}

/**
 * Returns true if a table of bounded size may begin here. Runs at every line, so it counts rows only if a table begins, which
 * takes them all.
 */
function mayBeTable(src: string): boolean {
  const [, head = '', delimiters = ''] = /^([^\n]*)\n([^\n]*)/.exec(src) ?? [];
  const columns = cellsOf(head).length;
  const isTable = /[|:]/.test(delimiters) && cellsOf(delimiters).every(cell => /^:?-+:?$/.test(cell.trim()));
  if (!isTable || cellsOf(delimiters).length !== columns) return false;
  return columns * src.slice(0, src.search(/\n[ \t]*\n|$/)).split('\n').length <= mostCells;
}

const cellsOf = (row: string): string[] =>
  row
    .trim()
    .replace(/\\./g, '')
    .replace(/^\||\|$/g, '')
    .split('|');

function isWebAddress(href: string): boolean {
  return /^(https?:\/\/|mailto:)/i.test(href);
}

function isEmbeddedImage(href: string): boolean {
  return /^data:image\/(png|jpeg|gif|webp);base64,[a-z0-9+/=]+$/i.test(href);
}

function escapeHtml(text: string): string {
  const entities: Record<string, string> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
    "'": '&#39;',
  };
  return text.replace(/[&<>"']/g, character => entities[character]!);
}

const tags =
  'a blockquote br code del em h1 h2 h3 h4 h5 h6 hr img li ol p pre span strong table tbody td th thead tr ul';

/** Returns the HTML as nodes without scripts, styles, forms, remote images or unknown addresses. */
export function sanitize(html: string): DocumentFragment {
  const fragment = DOMPurify.sanitize(html, {
    ALLOWED_TAGS: ['#text', ...tags.split(' ')],
    ALLOWED_ATTR: ['href', 'title', 'src', 'alt', 'align', 'start', 'class'],
    ADD_URI_SAFE_ATTR: ['align', 'start'],
    ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const image of fragment.querySelectorAll('img')) {
    if (!image.src.startsWith('data:image/')) image.remove();
  }
  return fragment;
}

/** A longer line is left as it is, since the code below goes through it repeatedly. In characters. */
const longestLine = 2_000;

/** Returns the source with the emphasis, code span or link on its last line closed. */
export function completeMarkdown(source: string): string {
  const lineStart = source.lastIndexOf('\n') + 1;
  const line = source.slice(lineStart);
  if (line.length > longestLine || !/[*_`[~]/.test(line)) return source;
  return source.slice(0, lineStart) + completeLine(line);
}

function completeLine(line: string): string {
  const ticks = line.match(/`+/g) ?? [];
  if (ticks.length % 2 === 1) {
    const last = ticks.at(-1)!;
    return line.endsWith(last) ? line.slice(0, -last.length) : line + last;
  }
  // Code spans contain no emphasis. They are blanked out, which keeps all other offsets.
  const outside = line.replace(/(`+).*?\1/g, span => 'x'.repeat(span.length));
  const link = /!?\[([^\]]*)\]\([^)]*$/.exec(outside);
  if (link) {
    const label = line.slice(link.index).replace(/^!?\[/, '').slice(0, link[1]!.length);
    return completeLine(line.slice(0, link.index) + label);
  }
  return closeEmphasis(line, outside);
}

function closeEmphasis(line: string, outside: string): string {
  const open: string[] = [];
  for (const match of outside.matchAll(/(?<!\\)(\*{1,3}|_{1,3}|~~)/g)) {
    const mark = match[0];
    const before = outside[match.index - 1] ?? ' ';
    const after = outside[match.index + mark.length] ?? '';
    if (open.at(-1) === mark && !/\s/.test(before)) open.pop();
    else if (after !== '' && !/\s/.test(after) && !(mark[0] === '_' && /\w/.test(before))) open.push(mark);
    else if (after === '' && open.length > 0) return line.slice(0, match.index) + open.reverse().join('');
    else if (after === '' && /\s|^$/.test(before))
      return line.slice(0, match.index) + open.reverse().join('');
  }
  return open.length === 0 ? line : line.trimEnd() + open.reverse().join('');
}
