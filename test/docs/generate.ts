/** `npm run docs`: writes the pages that are made from tables of the program: its commands and the editor's settings. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { groups } from '../../src/cli/commands.ts';
import type { Argument, CliCommand, Option } from '../../src/cli/parser.ts';
import { root, wordsIn } from './pages.ts';

const note = '<!-- Made by `npm run docs` from the table that its text stands in: do not edit it here. -->';

/** Without a heading of its own, a list gets no longer than this. */
const mostItems = 12;

/** With the other parts of a page, this stays below its limit of 1,200 words. */
const mostWords = 1_100;

/** Returns the text of each page that is made, by its path. */
export function generatedPages(): Map<string, string> {
  const pages = commandPages();
  const sections = [...pages].map(([file, { title, entries }]) => {
    const items = entries
      .filter(({ isTop }) => isTop)
      .map(({ name, says }) => `- [\`${name}\`](commands/${file}.md#${anchor(name)}): ${says}`);
    return items.length > 0 ? `## ${title}\n\n${inGroups(items, '###', 'More commands')}` : '';
  });
  return new Map([
    ['docs/command-reference.md', reference(sections)],
    ...[...pages].map(([file, page]): [string, string] => [`docs/commands/${file}.md`, pageText(page)]),
    ['docs/settings.md', settingsPage()],
  ]);
}

interface Entry {
  /** As it is typed. */
  name: string;
  says: string;
  text: string;
  /** No command stands above it. */
  isTop: boolean;
}

interface CommandPage {
  title: string;
  entries: Entry[];
}

/** Returns the pages by the names of their files, one for each group of commands, and more for a long group. */
function commandPages(): Map<string, CommandPage> {
  const pages = new Map<string, CommandPage>();
  for (const [heading, commands] of Object.entries(groups)) {
    const title = heading.replace(/:$/, '');
    let [part, words] = [1, 0];
    for (const entry of commands.flatMap(command => entriesOf(command, 'telos'))) {
      if (words + wordsIn(entry.text) > mostWords) [part, words] = [part + 1, 0];
      words += wordsIn(entry.text);
      const file = `${title.toLowerCase().replaceAll(/[^a-z]+/g, '-')}${part > 1 ? `-${part}` : ''}`;
      const page = pages.get(file) ?? { title: part > 1 ? `${title}, part ${part}` : title, entries: [] };
      page.entries.push(entry);
      pages.set(file, page);
    }
  }
  return pages;
}

function entriesOf(command: CliCommand, above: string): Entry[] {
  const name = `${above} ${command.name}`;
  const words = (command.arguments ?? []).map(argumentText).join(' ');
  const text = [
    `## ${name}`,
    `\`${[name, words].filter(Boolean).join(' ')}\`: ${command.description}`,
    list((command.arguments ?? []).filter(({ description }) => description).map(argumentLine)),
    inGroups(
      (command.options?.() ?? []).filter(({ hidden }) => !hidden).map(optionLine),
      '###',
      `More options of ${name}`,
    ),
  ];
  const own = {
    name,
    says: command.description,
    text: text.filter(Boolean).join('\n\n'),
    isTop: above === 'telos',
  };
  return [own, ...(command.inner ?? []).flatMap(inner => entriesOf(inner, name))];
}

const argumentText = (one: Argument): string => {
  const name = `${one.name()}${one.variadic ? '...' : ''}`;
  return one.required ? `<${name}>` : `[${name}]`;
};
const argumentLine = (one: Argument): string => `- \`${one.name()}\`: ${one.description}`;
const optionLine = ({ flags, description, argChoices }: Option): string =>
  `- \`${flags}\`: ${description}${argChoices ? ` (${argChoices.join(', ')})` : ''}`;

const list = (items: readonly string[]): string => items.join('\n');

/** Returns the list, with a heading before each further part of it. */
function inGroups(items: readonly string[], level: string, title: string): string {
  const parts: string[] = [];
  for (let at = 0; at < items.length; at += mostItems)
    parts.push(
      `${at ? `${level} ${title}${at > mostItems ? `, ${at / mostItems}` : ''}\n\n` : ''}${list(items.slice(at, at + mostItems))}`,
    );
  return parts.join('\n\n');
}

const anchor = (name: string): string => name.replaceAll(' ', '-');

const pageText = ({ title, entries }: CommandPage): string =>
  `# Commands: ${title[0]?.toLowerCase()}${title.slice(1)}\n\n${note}\n\n[All commands](../command-reference.md) · [docs](../README.md)\n\n${entries.map(({ text }) => text).join('\n\n')}\n`;

function reference(sections: readonly string[]): string {
  const main = join(root, 'src/cli/main.ts');
  const help = execFileSync(process.execPath, [main, '--help'], { encoding: 'utf8' });
  const part = (name: string, end: RegExp): string => {
    const from = help.slice(help.indexOf(`\n${name}\n`) + 1);
    return from.slice(0, from.search(end)).trimEnd();
  };
  return `# Command reference

${note}

What for: every command and option of \`telos\`. \`telos help COMMAND\` prints the same on a terminal.

\`\`\`sh
telos --help
telos help install
telos --version
\`\`\`

## Options of a request

\`\`\`text
${part('Options:', /\n\n/)}
\`\`\`

## Model and limits

\`\`\`text
${part('Model and limits:', /\n\n/)}
\`\`\`

## Exit codes

${/Exit codes: .*/.exec(help)?.[0] ?? ''}

${sections.filter(Boolean).join('\n\n')}
`;
}

interface Setting {
  type: string | string[];
  default: unknown;
  enum?: string[];
  markdownDescription: string;
}

function settingsPage(): string {
  const read = (file: string) => JSON.parse(readFileSync(join(root, file), 'utf8'));
  const texts: Record<string, string> = read('package.nls.json');
  const { properties }: { properties: Record<string, Setting> } =
    read('package.json').contributes.configuration;
  const one = ([name, { default: usual, enum: values, markdownDescription }]: [string, Setting]): string => {
    const said = (texts[markdownDescription.replaceAll('%', '')] ?? '')
      .replace(/\[([^\]]+)\]\(command:[^)]+\)/g, '$1')
      .replace(/`#([^#]+)#`/g, '`$1`');
    const choice = values ? `\n\nOne of ${values.map(value => `\`${value}\``).join(', ')}.` : '';
    return `### ${name}\n\n${said}${choice}\n\nDefault: \`${JSON.stringify(usual)}\``;
  };
  return `# Settings of the editor

${note}

What for: every setting that VS Code shows for Telos (*Preferences: Open Settings*, then type \`telos\`).
The command line reads the variables that stand beside them, from the environment or [\`.env\`](files-and-folders.md).

\`\`\`sh
telos doctor
TELOS_SANDBOX=required telos doctor
TELOS_MODEL=claude-haiku-5-5 telos doctor
\`\`\`

Each prints the settings as they are, and where each comes from.

## All settings

${Object.entries(properties).map(one).join('\n\n')}
`;
}

if (import.meta.main) {
  for (const [path, text] of generatedPages()) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
    console.log(`${path}  ${wordsIn(text)} words`);
  }
}
