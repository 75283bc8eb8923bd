/** Finds in a skill's text the commands that it tells to run, word by word, as far as they can be read without a shell. */

/** A command of a fenced block. The words are without quotes. */
export type TextCommand = readonly string[];

/** In characters. No text that is meant to be followed is longer. */
const longestText = 200_000;
const mostCommands = 500;

interface Block {
  language: string;
  lines: string[];
}

/** Returns the commands of the fenced blocks that are for a shell, in their order. */
export function commandsIn(text: string): TextCommand[] {
  const blocks = fencedBlocks(text).filter(({ language }) =>
    /^(?:bash|sh|shell|zsh|console|terminal)$/.test(language),
  );
  return blocks.flatMap(({ lines }) => commandLines(lines).flatMap(simpleCommands)).slice(0, mostCommands);
}

/** Returns the text with the lines of its fenced blocks left out. */
export function proseOf(text: string): string {
  const inside = new Set(fencedBlocks(text).flatMap(({ lines }) => lines));
  return text
    .slice(0, longestText)
    .split('\n')
    .filter(line => !inside.has(line))
    .join('\n');
}

function fencedBlocks(text: string): Block[] {
  const blocks: Block[] = [];
  let open: (Block & { fence: string }) | undefined;
  for (const line of text.slice(0, longestText).split(/\r?\n/)) {
    const [, fence = '', language = ''] = /^\s{0,12}(`{3,}|~{3,})\s*([\w-]*)/.exec(line) ?? [];
    if (open && fence.startsWith(open.fence) && language === '') open = undefined;
    else if (open) open.lines.push(line);
    else if (fence !== '') {
      open = { fence, language: language.toLowerCase(), lines: [] };
      blocks.push(open);
    }
  }
  return blocks;
}

/** Joins lines that continue, and leaves out comments and the texts that follow a command. */
function commandLines(lines: readonly string[]): string[] {
  const found: string[] = [];
  let joined = '';
  let endMark: string | undefined;
  for (const line of lines) {
    if (endMark !== undefined) {
      if (line.trim() === endMark) endMark = undefined;
      continue;
    }
    joined += joined === '' ? line.trim().replace(/^[$>%]\s+/, '') : ` ${line.trim()}`;
    if (joined.length > 4000) joined = '';
    if (joined.endsWith('\\')) {
      joined = joined.slice(0, -1);
      continue;
    }
    if (hasOpenQuote(joined)) continue;
    endMark = /<<-?\s*["']?(\w+)/.exec(joined)?.[1];
    if (joined !== '' && !joined.startsWith('#')) found.push(joined);
    joined = '';
  }
  return found;
}

function hasOpenQuote(line: string): boolean {
  const plain = line.replace(/\\./g, '').replace(/(?:^|\s)#.*$/, '');
  const rest = plain.replace(/"[^"]*"|'[^']*'/g, '');
  return /["']/.test(rest);
}

/** Returns the commands of a line, each without assignments before it and without what its streams are joined to. */
function simpleCommands(line: string): TextCommand[] {
  const commands: string[][] = [[]];
  for (const [whole, quoted] of line.matchAll(
    /((?:[^\s"';|&#<>()`]|"[^"]*"|'[^']*'|(?<=\S)#)+)|[;|&()`]+|#.*$|[<>]+/g,
  )) {
    if (quoted !== undefined) commands.at(-1)!.push(quoted.replace(/["']/g, ''));
    else if (!/^[<>#]/.test(whole)) commands.push([]);
  }
  return commands
    .map(words => words.slice(words.findIndex(word => !/^\w+=/.test(word))))
    .filter(words => words.length > 0);
}
