/** Reads the pages that people read, and takes them apart: prose, sentences, headings, links and commands. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../../', import.meta.url));

export interface Page {
  /** From the root of the repository. */
  path: string;
  text: string;
}

export const readPage = (path: string): Page => ({ path, text: readFileSync(join(root, path), 'utf8') });

/** Returns README, SECURITY and everything in `docs`, in the order of their names. */
export function readPages(): Page[] {
  const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .map(name => `docs/${name.replaceAll('\\', '/')}`)
    .filter(path => path.endsWith('.md'));
  return ['README.md', 'SECURITY.md', ...docs.sort()].map(readPage);
}

/** As `wc -w` counts. */
export const wordsIn = (text: string): number => text.split(/\s+/).filter(Boolean).length;

/** Returns the text without blocks of code, comments and pictures. */
export const outsideCode = (text: string): string =>
  text
    .replace(/^```[\s\S]*?^```$/gm, '')
    .replace(/<!--[\s\S]*?-->/g, '')
    .replace(/<picture>[\s\S]*?<\/picture>/g, '');

/** Returns every sentence, cell and item. Code and names of the program in italics count as one word each. */
export function sentencesOf({ text }: Page): string[] {
  const pieces = outsideCode(text)
    .replace(/`[^`\n]*`/g, 'CODE')
    .replace(/(?<![\w*])\*{1,2}([^*\n]+)\*{1,2}(?![\w*])/g, (_, name: string) =>
      /^[A-Z]/.test(name) && !/[.]$/.test(name) ? 'NAME' : name,
    )
    .replace(/"[^"\n]*"/g, 'QUOTE')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .split(/\n\s*\n|\n(?=\s*(?:[-|#]|\d+\.) ?)|\|/);
  return pieces
    .flatMap(piece => piece.replace(/\s+/g, ' ').split(/(?<=[.?!:;])\s+(?=[A-Z"(])/))
    .map(sentence => sentence.replace(/^[-#\s\d.]+/, '').trim())
    .filter(Boolean);
}

export interface Heading {
  level: number;
  title: string;
  /** As GitHub makes it. */
  anchor: string;
  /** From 1. */
  line: number;
}

export function headingsOf({ text }: Page): Heading[] {
  const seen = new Map<string, number>();
  let isCode = false;
  return text.split('\n').flatMap((line, at) => {
    if (line.startsWith('```')) isCode = !isCode;
    const [, signs, title] = /^(#{1,6}) (.+)$/.exec(line) ?? [];
    if (isCode || !signs || !title) return [];
    const plain = anchorOf(title);
    const count = seen.get(plain) ?? 0;
    seen.set(plain, count + 1);
    return [{ level: signs.length, title, anchor: count ? `${plain}-${count}` : plain, line: at + 1 }];
  });
}

const anchorOf = (title: string): string =>
  title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');

/** Returns how many lines with something in them follow each other without a heading, and where the longest stretch begins. */
export function longestStretch(page: Page): { lines: number; from: number } {
  const lines = page.text.split('\n');
  const marks = [0, ...headingsOf(page).map(({ line }) => line), lines.length + 1];
  const stretches = marks.slice(1).map((next, at) => {
    const from = marks[at] ?? 0;
    return { from: from + 1, lines: lines.slice(from, next - 1).filter(line => line.trim() !== '').length };
  });
  return stretches.reduce((most, one) => (one.lines > most.lines ? one : most));
}

/** Returns what links and pictures lead to. Relative ones as a path from the root, with `#anchor`. */
export function linksOf({ path, text }: Page): { outside: string[]; inside: string[] } {
  const prose = text.replace(/^```[\s\S]*?^```$/gm, '').replace(/`[^`\n]*`/g, '');
  const targets = [
    ...[...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target),
    ...[...prose.matchAll(/(?:src|srcset|href)="([^"]+)"/g)].map(([, target = '']) => target),
  ];
  const isOutside = (target: string): boolean => /^[a-z]+:/i.test(target);
  return {
    outside: targets.filter(isOutside),
    inside: targets
      .filter(target => !isOutside(target))
      .map(target => (target.startsWith('#') ? `${path}${target}` : posix.join(posix.dirname(path), target))),
  };
}

/** Returns the blocks that a reader types into a shell, in their order. */
export const shellBlocks = ({ text }: Page): string[] =>
  [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block);
