/** Makes Markdown of a model harmless: no HTML, no fetched images, and links only to the web and to mail. */

/**
 * Makes the text inert without changing how it reads. Code between fences at the margin is unchanged; other code may show an
 * entity. A fence that another program could read differently is not trusted.
 */
export function safeMarkdown(text: string): string {
  const parts: string[] = [];
  let prose: string[] = [];
  let fence: RegExp | undefined;
  const closeProse = (): void => {
    if (prose.length > 0) parts.push(inertProse(prose.join('\n')));
    prose = [];
  };
  for (const line of text.replace(/\r\n?/g, '\n').split('\n')) {
    if (fence) {
      parts.push(line);
      if (fence.test(line)) fence = undefined;
      continue;
    }
    const marks = /^(`{3,}(?=[^`]*$)|~{3,})/.exec(line)?.[1];
    if (marks === undefined) {
      prose.push(line);
      continue;
    }
    closeProse();
    fence = new RegExp(`^ {0,3}${marks[0]}{${marks.length},}[ \\t]*$`);
    parts.push(inertProse(line));
  }
  closeProse();
  if (fence) {
    const mark = fence.source.includes('`') ? '`' : '~';
    parts.push(mark.repeat(Math.max(3, longestRun(text, mark))));
  }
  return parts.join('\n');
}

/** Returns the length of the longest run of `mark` in the text, or 0 if it has none. */
export function longestRun(text: string, mark: '`' | '~'): number {
  let longest = 0;
  // One by one: a text can have more runs than a call takes arguments.
  for (const [run] of text.matchAll(mark === '`' ? /`+/g : /~+/g)) longest = Math.max(longest, run.length);
  return longest;
}

/** Wraps the text in a fence that nothing in it can close. */
export function fenced(text: string, language = ''): string {
  const marks = '`'.repeat(Math.max(3, longestRun(text, '`')) + 1);
  return `${marks}${language}\n${text.replace(/\n$/, '')}\n${marks}`;
}

/** Returns the text as one line of code within a line of prose. */
export function inlineCode(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  const longest = longestRun(line, '`');
  if (longest === 0) return `\`${line}\``;
  const marks = '`'.repeat(longest + 1);
  return `${marks} ${line} ${marks}`;
}

/** Returns untrusted prose on one line, with its Markdown characters escaped. */
export function plainMarkdown(text: string): string {
  return text
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/[\\`*_{}[\]<>#|~!&]/g, '\\$&');
}

function inertProse(text: string): string {
  return text
    .replace(/<(?=[A-Za-z/!?])/g, (mark, at: number) => (isTypeName(text.slice(at, at + 60)) ? mark : '&lt;'))
    .replaceAll('![', '\\![')
    .replace(/\](\(|:)(\s*)(\S*)/g, (whole, mark: string, space: string, target: string) =>
      isHarmless(target) ? whole : `] ${mark === '(' ? '(' : '\\:'}${space}${target}`,
    );
}

/**
 * Whether the text begins with a type name such as `<string>` in `Array<string>`. It has no attributes, and no browser knows such
 * an element.
 */
function isTypeName(text: string): boolean {
  const name = /^<([A-Za-z]\w*)>/.exec(text)?.[1]?.toLowerCase();
  return name !== undefined && typeNames.has(name);
}

const typeNames = new Set(
  'any boolean bigint bool char double float int integer key list long never null number record result set string t uint undefined unknown value void'.split(
    ' ',
  ),
);

/** Whether a link target is harmless. A target that could be decoded into another address is not trusted. */
function isHarmless(target: string): boolean {
  const address = target.replace(/^</, '').replace(/^&lt;/, '');
  return /^(https?:\/\/|mailto:)/i.test(address) || !/[:&\\]/.test(address.split(/[)>]/)[0] ?? '');
}
