/**
 * Looks into what a skill runs, its text and the scripts that this names, for what is not on this machine: packages, programs and
 * files. Only what the work needs counts, so an import that may fail is not one.
 */

import { statSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, posix } from 'node:path';
import { sentence } from '@telos/protocol/text';
import { shellWord } from '../files/plainText.ts';
import { alternatives, type Missing, missingWords, type Skill } from './agent.ts';
import type { Machine } from './machine.ts';
import { literal, missingPython, mostMissing, mostScripts } from './pythonImports.ts';
import {
  inlineCommandsIn,
  proseOf,
  readSkillTexts,
  type SkillTexts,
  type TextCommand,
  textOf,
} from './skillTexts.ts';

/** Returns what the skill's text and scripts count on and what is not there. Reads files, starts nothing, never throws. */
export function missingInFiles(skill: Skill, machine: Machine): Missing[] {
  if (skill.body === '') return [];
  const texts = readSkillTexts(skill);
  return [
    ...missingScripts(texts),
    ...brokenLines(texts, machine),
    ...missingPrograms(texts, machine),
    ...missingPython(texts, machine),
    ...missingNode(texts),
  ];
}

const exists = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined;

// ---- Files that the text names

const ownFolder =
  /^(?:\{baseDir\}|\$\{?(?:(?:CLAUDE_|TELOS_)?SKILL_DIR|SKILL_PATH|SKILL_ROOT|CLAUDE_PLUGIN_ROOT)\}?|<skill_dir>)\/(.+)$/;
const interpreter = /^(?:python[\d.]*|node|tsx|bash|sh|zsh|ruby|perl|php|uv|npx|bun|deno)$/;

/** Returns the path of an own script that the word names. Undefined for any other word, and for one with a placeholder. */
function ownScript(word: string, { skill }: SkillTexts, isRun: boolean): string | undefined {
  const marked =
    ownFolder.exec(word)?.[1] ?? new RegExp(`(?:^|/)skills/${literal(skill.id)}/(.+)$`).exec(word)?.[1];
  const path = marked ?? (isRun ? /^(?:\.\/)?(scripts\/.+)$/.exec(word)?.[1] : undefined);
  return path !== undefined &&
    /^[\w./-]+\.(?:py|sh|bash|[cm]?js|ts|rb|pl|md)$/.test(path) &&
    !path.includes('..')
    ? path
    : undefined;
}

/** A link to a page beside the skill, and a line of a list that says what a file beside it is for. */
const linkToPage = /\]\((?:\.\/)?((?:references?|docs|rules)\/[\w./-]+\.md)(?:#[\w-]*)?\)/g;
const listedFile = /^\s*[-*] `((?:scripts|references?)\/[\w./-]+\.(?:py|sh|js|md))`\s*(?:[-–—:]|$)/gm;

function missingScripts(texts: SkillTexts): Missing[] {
  const { skill, commands } = texts;
  const named = new Set<string>();
  // Without an interpreter before it, a path in a sentence is often an example.
  const inline = inlineCommandsIn(skill.body).filter(([first = '']) => interpreter.test(first));
  for (const words of [...commands, ...inline])
    for (const [at, word] of words.entries()) {
      const isRun = at === 0 || (at < 3 && interpreter.test(words[0]!));
      const path = ownScript(word, texts, isRun);
      if (path !== undefined) named.add(path);
    }
  for (const pattern of [linkToPage, listedFile])
    for (const [, path = ''] of proseOf(skill.body).matchAll(pattern))
      if (!path.includes('..')) named.add(path);
  const roots = [skill.dir, dirname(skill.dir), dirname(dirname(skill.dir))];
  const gone = [...named].filter(
    path => !roots.some(root => exists(join(root, path))) && !isMade(path, texts),
  );
  return gone.slice(0, mostMissing).map(path => ({
    kind: 'script',
    ...missingWords(
      path,
      sentence('Its text names {0}, which is missing from its folder.', path),
      sentence('Get it from the source of the skill, and put it in {0}.', skill.dir),
    ),
    commands: [],
  }));
}

/** Returns true if a command or a sentence of the skill makes the file first. */
function isMade(path: string, { skill }: SkillTexts): boolean {
  const name = literal(posix.basename(path));
  return new RegExp(
    `(?:>|\\b(?:tee|touch|create|creates|write|writes|save|saved|generate|generates|add|init|cp|curl|wget|mv)\\b)[^\\n]{0,80}${name}`,
    'i',
  ).test(skill.body);
}

/** Reports shell scripts with the line ends of Windows, at which a shell stops. */
function brokenLines({ skill, named }: SkillTexts, machine: Machine): Missing[] {
  if (machine.platform === 'win32') return [];
  const scripts = named.filter(path => /(?:\.(?:sh|bash|zsh)|\/[^.]+)$/.test(path)).slice(0, mostScripts);
  return scripts.flatMap(path => {
    const text = textOf(join(skill.dir, path));
    if (!text.includes('\r\n') || !(/\.\w+$/.test(path) || /^#!.*sh\b/.test(text))) return [];
    const command = `sed -i.bak 's/\\r$//' ${shellWord(join(skill.dir, path))}`;
    return [
      {
        kind: 'script' as const,
        ...missingWords(
          sentence('line endings of {0}', path),
          sentence('{0} has Windows line endings, which a shell cannot run.', path),
          sentence('Remove them: {0}', command),
        ),
        commands: [command],
      },
    ];
  });
}

// ---- Programs

const ofTheShell =
  /^(?:cd|echo|export|source|\.|set|unset|alias|if|then|else|elif|fi|for|while|until|do|done|case|esac|in|function|read|printf|test|\[|\[\[|eval|exec|exit|return|true|false|type|command|hash|pwd|ulimit|trap|wait|local|let|shift|kill|sudo|time|env|which|xargs|nohup|select)$/;
/** Programs that bring others, that another runner has, or that only one system has. The text then says more than is done. */
const notNeeded =
  /^(?:cron|brew|apt|apt-get|dnf|yum|pacman|apk|choco|winget|scoop|snap|pip3?|pipx|npm|pnpm|yarn|cargo|gem|conda|mamba|go|nvm|pyenv|volta|asdf|openclaw|clawdbot|moltbot|clawdis|clawhub|clawdhub|molthub|claude|codex|gemini|cursor|opencode|npx|open|xdg-open|pbcopy|pbpaste|osascript|xclip|xsel|wl-copy|systemctl|service|launchctl|crontab|start|powershell|pwsh|explorer|notepad|security|codesign|sw_vers|diskutil|hdiutil|mdfind|plutil|scutil|networksetup|netsh|wmic|icacls|schtasks|code|vim|nano|docker|docker-compose|tree|watch)$/;

/** Returns the programs without which most of what the text tells to run cannot be run. */
function missingPrograms(texts: SkillTexts, machine: Machine): Missing[] {
  const { skill, commands, files } = texts;
  const { bins, anyBins } = skill.metadata.requires;
  const own = new Set(
    files.flatMap(path => [posix.basename(path), posix.basename(path).replace(/\.\w+$/, '')]),
  );
  const counted = commands.filter(isProgramRun);
  const uses = new Map<string, number>();
  for (const [program = ''] of counted) uses.set(program, (uses.get(program) ?? 0) + 1);
  const found = [...uses].flatMap(([name, count]) => {
    if ([...bins, ...anyBins].includes(name) || own.has(name) || machine.hasProgram(name)) return [];
    if (name === 'python' && machine.hasProgram('python3')) return [onlyPython3(machine)];
    if (!runsOwnFile(name, texts) && !isMain(name, count, counted.length, skill)) return [];
    return [missingProgram(name, installLines(commands, name))];
  });
  return found.slice(0, mostMissing);
}

/** Returns false for commands of the shell, for those that install something, and for tools of other runners. */
const isProgramRun = ([program = '', verb = '', ...rest]: TextCommand): boolean =>
  /^[a-z][\w.+-]*$/.test(program) &&
  !ofTheShell.test(program) &&
  !notNeeded.test(program) &&
  !/^(?:install|i|add|tool|pip|\w+[:=]\S*)$/.test(verb) &&
  !isSentence([verb, ...rest]);

/** A line of prose in a block of commands: it lists flags with commas, or ends as a sentence does. */
const isSentence = (words: readonly string[]): boolean =>
  words.some(word => /^--?[\w-]+,$/.test(word)) ||
  (words.length > 2 && /^[a-z]+\.$/i.test(words.at(-1)!) && words.every(word => /^[\w'(),.-]+$/.test(word)));

const runsOwnFile = (name: string, { commands, files }: SkillTexts): boolean =>
  interpreter.test(name) &&
  !/^(?:uv|npx|bun|deno)$/.test(name) &&
  commands.some(words => words[0] === name && words.some(word => files.some(path => word.endsWith(path))));

/** Returns true for the program that the skill is about, or that most of its commands run. */
function isMain(name: string, count: number, all: number, { id, body, description }: Skill): boolean {
  const word = literal(name);
  if (new RegExp(`\\b(?:alias ${word}=|${word}\\s*\\(\\))`).test(body)) return false;
  const isDescribed = new RegExp(`(?<![\\w-])${word}(?![\\w-])`).test(description);
  return name === id || (count > 1 && (isDescribed || count * 2 >= all));
}

function onlyPython3({ platform }: Machine): Missing {
  const command =
    platform === 'linux'
      ? 'sudo apt-get install python-is-python3'
      : 'sudo ln -s "$(command -v python3)" /usr/local/bin/python';
  return {
    kind: 'program',
    ...missingWords(
      'python',
      sentence('Its commands begin with `python`, and here the program is called `python3`.'),
      sentence('Say python3 in the request, or create a program of that name: {0}', command),
    ),
    commands: [command],
  };
}

/** Returns the commands of the text that install the program. */
function installLines(commands: readonly TextCommand[], name: string): string[] {
  const about = commands.filter(
    ([program = '', ...words]) =>
      notNeeded.test(program) &&
      words.some(word => /^(?:install|i|add|tool|get)$/.test(word)) &&
      words.some(word => word.split(/[/@]/).includes(name)),
  );
  return [...new Set(about.map(words => words.join(' ')))].slice(0, 3);
}

function missingProgram(name: string, commands: readonly string[]): Missing {
  return {
    kind: 'program',
    ...missingWords(
      name,
      sentence('Its text runs the program {0}, which is not on the PATH.', name),
      commands.length > 0
        ? sentence('Install it; its text gives: {0}', alternatives(commands))
        : sentence('Install it, and see that it is on the PATH.'),
    ),
    commands,
  };
}

// ---- Packages of Node

function missingNode(texts: SkillTexts): Missing[] {
  const { skill, commands, files } = texts;
  const run = files.filter(
    path =>
      /\.[cm]?[jt]s$/.test(path) &&
      commands.some(
        words =>
          /^(?:node|npx|tsx|ts-node|\.\/.*|\{baseDir\}.*)$/.test(words[0]!) &&
          words.some(word => word.endsWith(path)),
      ),
  );
  const folder = files.find(path => /^(?:[\w-]+\/)?package\.json$/.test(path));
  const root = folder === undefined ? skill.dir : dirname(join(skill.dir, folder));
  if (folder === undefined && run.length === 0) return [];
  const { declared, starts } = packageIn(folder === undefined ? '' : textOf(join(skill.dir, folder)));
  const needed = new Set<string>();
  const queue = [
    ...new Set([...run, ...(folder === 'package.json' ? files.filter(path => starts.includes(path)) : [])]),
  ];
  for (let at = 0; at < queue.length && at < mostScripts; at++) {
    const script = queue[at]!;
    for (const name of nodeImports(textOf(join(skill.dir, script)))) {
      if (name.startsWith('.')) {
        const path = posix.join(posix.dirname(script), name).replace(/\.js$/, '');
        const own = files.find(file => file === path || file.replace(/\.[cm]?[jt]s$/, '') === path);
        if (own !== undefined && !queue.includes(own)) queue.push(own);
      } else if (!isBuiltin(name) && !isInstalled(name, join(skill.dir, script))) needed.add(name);
    }
  }
  const isTold = commands.some(
    ([program = '', verb = '']) =>
      /^(?:npm|pnpm|yarn)$/.test(program) && /^(?:install|i|ci|run|start|test)$/.test(verb),
  );
  if (needed.size === 0 && isTold)
    for (const name of declared) if (!isInstalled(name, join(root, 'x'))) needed.add(name);
  if (needed.size === 0) return [];
  const names = [...needed].slice(0, mostMissing);
  const isDeclared = names.every(name => declared.includes(name));
  const command = ['npm install --prefix', shellWord(root), ...(isDeclared ? [] : names)].join(' ');
  return [
    {
      kind: 'package',
      ...missingWords(
        names.length === 1 ? names[0]! : sentence('{0} and {1} more', names[0]!, needed.size - 1),
        needed.size === 1
          ? sentence('It needs the npm package {0}, which is not installed beside it.', names[0]!)
          : sentence('It needs the npm packages {0}, which are not installed beside it.', names.join(', ')),
        sentence('Install them: {0}', command),
      ),
      commands: [command],
    },
  ];
}

/** Returns the packages and files that a script loads at its start. */
function nodeImports(text: string): string[] {
  const found: string[] = [];
  for (const line of text.split(/\r?\n/)) {
    const [, name] =
      /^(?:import\s(?!type\b)[^'"]{0,400}|import\s*|\}\s*from\s*|export\s[^'"]{0,400}from\s*)['"]([^'"]{1,200})['"]/.exec(
        line,
      ) ??
      /^(?:const|let|var)\s[^=]{0,400}=\s*require\(['"]([^'"]{1,200})['"]\)/.exec(line) ??
      [];
    const parts = name?.split('/') ?? [];
    if (name?.startsWith('.')) found.push(name);
    else if (name !== undefined && /^(?:node:)?(?:@[\w.-]+\/)?[\w.-]+/.test(name))
      found.push(name.startsWith('node:') ? name : parts.slice(0, name.startsWith('@') ? 2 : 1).join('/'));
  }
  return found.filter(name => /^(?:\.|node:|@?[\w.-]+(?:\/[\w.-]+)?$)/.test(name));
}

function isInstalled(name: string, script: string): boolean {
  for (let folder = dirname(script); ; folder = dirname(folder)) {
    if (exists(join(folder, 'node_modules', name))) return true;
    if (dirname(folder) === folder) return false;
  }
}

/** Returns what a package.json depends on, and the files that it starts with. */
function packageIn(text: string): { declared: string[]; starts: string[] } {
  try {
    const { dependencies, main, bin } = JSON.parse(text) as Record<string, unknown>;
    const starts = [main, ...(typeof bin === 'object' && bin !== null ? Object.values(bin) : [bin])];
    const names = typeof dependencies === 'object' && dependencies !== null ? Object.keys(dependencies) : [];
    return {
      declared: names.filter(name => /^(?:@[\w.-]+\/)?[\w.-]+$/.test(name)),
      starts: starts.flatMap(start => (typeof start === 'string' ? start.replace(/^\.\//, '') : [])),
    };
  } catch {
    return { declared: [], starts: [] };
  }
}
