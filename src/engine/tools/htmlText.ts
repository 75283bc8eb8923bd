/**
 * Converts a web page to text for a model: its words in order, with links, without code and markup. It takes one pass, so
 * any page is quick.
 */

const rawElements = new Set(['script', 'style', 'noscript', 'template', 'svg', 'iframe', 'object', 'math']);
const blocks = new Set(
  'address article aside blockquote body center dd details dialog div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr html legend li main nav ol option p pre section select summary table tbody tfoot thead title tr ul'.split(
    ' ',
  ),
);
const spaced = new Set(
  'article blockquote dl h1 h2 h3 h4 h5 h6 main ol p pre section table title ul'.split(' '),
);

const named: Readonly<Record<string, string>> = {
  ...{
    amp: '&',
    lt: '<',
    gt: '>',
    quot: '"',
    apos: "'",
    nbsp: ' ',
    shy: '',
    ensp: ' ',
    emsp: ' ',
    thinsp: ' ',
  },
  ...{
    ndash: '–',
    mdash: '—',
    hellip: '…',
    bull: '•',
    middot: '·',
    lsquo: '‘',
    rsquo: '’',
    sbquo: '‚',
    ldquo: '“',
  },
  ...{
    rdquo: '”',
    bdquo: '„',
    laquo: '«',
    raquo: '»',
    lsaquo: '‹',
    rsaquo: '›',
    copy: '©',
    reg: '®',
    trade: '™',
  },
  ...{
    deg: '°',
    plusmn: '±',
    times: '×',
    divide: '÷',
    minus: '−',
    frac12: '½',
    frac14: '¼',
    sup2: '²',
    sup3: '³',
  },
  ...{ euro: '€', pound: '£', yen: '¥', cent: '¢', sect: '§', para: '¶', micro: 'µ', larr: '←', rarr: '→' },
  ...{
    uarr: '↑',
    darr: '↓',
    le: '≤',
    ge: '≥',
    ne: '≠',
    asymp: '≈',
    infin: '∞',
    auml: 'ä',
    ouml: 'ö',
    uuml: 'ü',
  },
  ...{
    Auml: 'Ä',
    Ouml: 'Ö',
    Uuml: 'Ü',
    szlig: 'ß',
    agrave: 'à',
    aacute: 'á',
    acirc: 'â',
    aring: 'å',
    aelig: 'æ',
  },
  ...{
    ccedil: 'ç',
    egrave: 'è',
    eacute: 'é',
    ecirc: 'ê',
    iacute: 'í',
    ntilde: 'ñ',
    oacute: 'ó',
    oslash: 'ø',
  },
};

/** Decodes character references such as `&amp;` and `&#8364;`. Unknown ones stay unchanged. */
export function decodeEntities(text: string): string {
  return text.replace(
    /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([a-zA-Z]\w{1,9}));?/g,
    (whole, decimal, hex, name) => {
      if (name !== undefined) return (Object.hasOwn(named, name) ? named[name] : undefined) ?? whole;
      const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
      return code === 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)
        ? '\ufffd'
        : String.fromCodePoint(code);
    },
  );
}

/** Returns the readable text of a page. `base` is the page's address, which completes its links. */
export function htmlToText(html: string, base: URL): string {
  const page = new ReadablePage(base);
  // A `<` that begins no markup is treated as text.
  const markup = /<(?=[a-z/!?])/gi;
  let position = 0;
  while (position < html.length) {
    markup.lastIndex = position;
    const open = markup.exec(html)?.index ?? -1;
    page.addText(html.slice(position, open === -1 ? html.length : open));
    if (open === -1) break;
    position = afterMarkup(html, open, page);
  }
  return page.text();
}

/** Handles the markup that begins at `open` and returns where it ends. */
function afterMarkup(html: string, open: number, page: ReadablePage): number {
  if (html.startsWith('<!--', open)) return endOf(html, '-->', open + 4);
  const next = html[open + 1] ?? '';
  if (next === '!' || next === '?') return endOf(html, '>', open + 2);
  const name = /^\/?[a-zA-Z][^\s/>]*/.exec(html.slice(open + 1, open + 40))?.[0]?.toLowerCase();
  if (name === undefined) {
    page.addText('<');
    return open + 1;
  }
  const end = tagEnd(html, open + 1 + name.length);
  if (rawElements.has(name)) {
    const closing = new RegExp(`</${name}[^a-z]`, 'gi');
    closing.lastIndex = end;
    const found = closing.exec(html);
    return found === null ? html.length : endOf(html, '>', found.index);
  }
  page.addTag(name, html.slice(open + 1 + name.length, end));
  return end;
}

function endOf(html: string, mark: string, from: number): number {
  const found = html.indexOf(mark, from);
  return found === -1 ? html.length : found + mark.length;
}

/** Returns the position after the `>` of a tag. A `>` inside a quoted value does not count. */
function tagEnd(html: string, from: number): number {
  for (let position = from; position < html.length; position++) {
    const character = html[position];
    if (character === '>') return position + 1;
    if (character !== '"' && character !== "'") continue;
    // Only the quote of a value matters, not one that is in the tag by mistake.
    if (html[position - 1] !== '=' && html[position - 1] !== ' ') continue;
    const quote = html.indexOf(character, position + 1);
    if (quote === -1) return html.length;
    position = quote;
  }
  return html.length;
}

class ReadablePage {
  readonly #base: URL;
  readonly #parts: string[] = [];
  /** Line breaks before the next words. Neighbouring blocks share theirs. */
  #breaks = 0;
  #atLineStart = true;
  #preformatted = false;
  #link: { url: string; at: number } | undefined;

  constructor(base: URL) {
    this.#base = base;
  }

  addText(raw: string): void {
    const text = decodeEntities(raw);
    const collapsed = this.#preformatted ? text : text.replace(/\s+/g, ' ');
    const begins = !this.#preformatted && (this.#atLineStart || this.#breaks > 0);
    this.#put(begins ? collapsed.trimStart() : collapsed);
  }

  addTag(name: string, attributes: string): void {
    const closes = name.startsWith('/');
    const element = closes ? name.slice(1) : name;
    if (element === 'a') this.#endLink();
    if (element === 'a' && !closes) this.#link = this.#linkTo(attributes);
    if (element === 'pre') this.#preformatted = !closes;
    if ((element === 'td' || element === 'th') && closes) this.#put('\t');
    if (element === 'br') {
      this.#put('\n');
      this.#atLineStart = true;
    }
    if (blocks.has(element)) this.#breaks = Math.max(this.#breaks, spaced.has(element) ? 2 : 1);
    if (element === 'li' && !closes) this.#putMark('- ');
    if (/^h[1-6]$/.test(element) && !closes) this.#putMark(`${'#'.repeat(Number(element[1]))} `);
  }

  text(): string {
    this.#endLink();
    return this.#parts
      .join('')
      .replace(/[^\S\n]+$/gm, '')
      .replace(/\n{3,}/g, '\n\n')
      .trim();
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

  #linkTo(attributes: string): { url: string; at: number } | undefined {
    const href = /(?:^|\s)href\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+))/i.exec(attributes);
    const given = href?.[1] ?? href?.[2] ?? href?.[3];
    if (given === undefined || given.startsWith('#') || !URL.canParse(decodeEntities(given), this.#base.href))
      return undefined;
    const url = new URL(decodeEntities(given), this.#base);
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
