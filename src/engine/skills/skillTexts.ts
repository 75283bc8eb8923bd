/** Lists the files beside a SKILL.md, and reads what the skill tells to run: commands, word by word, and files that it names. */

import { readdirSync, statSync } from 'node:fs';
import { join, posix, relative, sep } from 'node:path';
import { readText } from '../files/regularFile.ts';
import type { Skill } from './agent.ts';

export interface SkillResource {
  /** Path below the skill's folder, with `/`. */
  path: string;
  bytes: number;
}

export interface SkillResources {
  /** Sorted, files in the folder itself first. At most the requested number. */
  files: readonly SkillResource[];
  /** True if there are more than these. */
  isCut: boolean;
}

/** Number of names that are examined, and depth of folders. A skill may be at the top of something large. */
const maxNames = 2000;
const maxDepth = 5;

/**
 * Returns the files beside a skill file. Hidden files, the skill file, its evals, its recorded run and fetched packages are
 * left out. Never throws.
 */
export function resourcesOf(skillDir: string, limit: number): SkillResources {
  const files: SkillResource[] = [];
  const folders = [{ path: skillDir, depth: 0 }];
  let seen = 0;
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) {
    for (const entry of entriesIn(folder.path)) {
      if (++seen > maxNames) return { files, isCut: true };
      const path = join(folder.path, entry.name);
      if (entry.isDirectory()) {
        // They judge the skill, and are nothing to work with.
        if (folder.depth === 0 && entry.name === 'evals') continue;
        if (folder.depth < maxDepth) folders.push({ path, depth: folder.depth + 1 });
        continue;
      }
      // The target of a link may be anywhere, and does not belong to the skill.
      if (!entry.isFile()) continue;
      if (files.length === limit) return { files, isCut: true };
      files.push({ path: relative(skillDir, path).split(sep).join('/'), bytes: sizeOf(path) });
    }
  }
  return { files, isCut: false };
}

/** Returns the files beside a skill. A command or role of a plugin has none of its own. */
export const resourcesBeside = ({ kind, dir }: Pick<Skill, 'kind' | 'dir'>, limit: number): SkillResources =>
  kind === undefined ? resourcesOf(dir, limit) : { files: [], isCut: false };

const isLeftOut = (name: string): boolean =>
  /^(?:skills?\.md|recording\.jsonl|node_modules|__pycache__|\..*)$/i.test(name);

function entriesIn(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter(entry => !isLeftOut(entry.name))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    return [];
  }
}

function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch {
    return 0;
  }
}

/** A command of a fenced block. The words are without quotes. */
export type TextCommand = readonly string[];

/** In characters. No text that is meant to be followed is longer. */
const longestText = 200_000;
const mostCommands = 500;

/** Content of a skill's text and of the files beside it. Paths are below the skill's folder, with `/`. */
export interface SkillTexts {
  skill: Skill;
  commands: readonly TextCommand[];
  files: readonly string[];
  /** The files that the text names, or that a page does which the text names. */
  named: readonly string[];
}

const mostFiles = 400;
const mostPages = 20;
/** In bytes. A longer file is not read. */
const longestFile = 256 * 1024;

/** Reads the folder of a skill. Never throws. */
export function readSkillTexts(skill: Skill): SkillTexts {
  const { dir, body } = skill;
  const files = resourcesBeside(skill, mostFiles).files.map(({ path }) => path);
  const namedBy = (text: string): string[] => {
    const lowered = text.toLowerCase();
    return files.filter(path => lowered.includes(posix.basename(path).toLowerCase()));
  };
  const direct = namedBy(body.slice(0, longestText));
  const pages = direct.filter(path => path.endsWith('.md')).slice(0, mostPages);
  const further = pages.flatMap(path => namedBy(textOf(join(dir, path))));
  return { skill, commands: commandsIn(body), files, named: [...new Set([...direct, ...further])] };
}

/** Returns the text of a file. Empty if it cannot be read or is too long. */
export function textOf(path: string): string {
  try {
    return statSync(path).size > longestFile ? '' : readText(path);
  } catch {
    return '';
  }
}

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

/** Returns the code of the fenced blocks in Python. */
export const pythonIn = (text: string): string =>
  fencedBlocks(text)
    .filter(({ language }) => /^(?:python3?|py)$/.test(language))
    .flatMap(({ lines }) => lines)
    .join('\n');

/** Returns the commands between single backticks outside of fenced blocks, in their order. Most such words are not commands. */
export function inlineCommandsIn(text: string): TextCommand[] {
  const pieces = [...proseOf(text).matchAll(/(?<!`)`([^`\n]{3,300})`(?!`)/g)];
  return pieces.slice(0, mostCommands).flatMap(([, piece = '']) => simpleCommands(piece.trim()));
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
