/** Summarises in a sentence what a skill without a description does, from its own text. */

/** Maximum length of a synopsis, in characters. */
const longest = 300;
/** Number of characters that are examined. The beginning says what a skill is about. */
const searched = 20_000;

/**
 * Returns a `## Description` section, else the first sentence of prose, else the title. Returns undefined if there is none of
 * them.
 */
export function synopsisOf(body: string): string | undefined {
  const blocks = proseBlocks(body.slice(0, searched));
  const described = blocks.find(({ heading }) => /^description$/i.test(heading));
  // A text that ends with a colon only introduces a list.
  const text = (described ?? blocks.find(block => !/[:：]$/.test(block.text)) ?? blocks[0])?.text;
  if (text) return shortened(firstSentences(text));
  const title = /^#[ \t]+(.+)$/m.exec(body.slice(0, searched))?.[1];
  return title ? shortened(plainText(title)) || undefined : undefined;
}

/** Returns paragraphs of prose with the heading above them. Code, lists, tables and pictures are left out. */
function proseBlocks(text: string): { heading: string; text: string }[] {
  const blocks: { heading: string; text: string }[] = [];
  let heading = '';
  let fence = '';
  let paragraph: string[] = [];
  const end = (): void => {
    const prose = plainText(paragraph.join(' ').slice(0, 2_000));
    // A paragraph without two words says nothing.
    if (/\S\s+\S|[\u3040-\u9fff]{4}/.test(prose)) blocks.push({ heading, text: prose });
    paragraph = [];
  };
  for (const line of [...text.replace(/<!--[\s\S]*?(?:-->|$)/g, '').split('\n'), '']) {
    const trimmed = line.trim();
    const mark = /^(?:```|~~~)/.exec(trimmed)?.[0];
    if (mark && (!fence || fence === mark)) {
      end();
      fence = fence ? '' : mark;
    } else if (!fence) {
      const title = /^#{1,6}[ \t]+(.*?)[ \t#]*$/.exec(trimmed)?.[1];
      if (title !== undefined || !trimmed || isNoProse(trimmed)) end();
      else paragraph.push(trimmed);
      if (title !== undefined) heading = plainText(title);
    }
  }
  return blocks;
}

const isNoProse = (line: string): boolean =>
  /^(?:[-*+•|<]|\d+[.)]\s|!\[|\[!\[|={3,}|-{3,})/.test(line) && !/^(?:\*\*|__)/.test(line);

/** Removes the signs of Markdown that would only disturb in a list. */
function plainText(text: string): string {
  return text
    .replace(/!?\[([^\]\n]*)\]\([^)\n]*\)/g, '$1')
    .replace(/\*\*|__|`/g, '')
    .replace(/^>\s*/, '')
    .replace(/\s+/g, ' ')
    .trim();
}

function firstSentences(text: string): string {
  return /^.{20,}?[.!?。！？](?=\s|$|[\u3040-\u9fff])/u.exec(text)?.[0] ?? text;
}

function shortened(text: string): string {
  return text.length <= longest ? text : `${text.slice(0, longest - 1).replace(/\s+\S*$/, '')}…`;
}
