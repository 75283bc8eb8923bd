/**
 * Looks into what a skill runs, its text and the scripts that this names, for what is not on this machine: packages, programs and
 * files. Only what the work needs counts, so an import that may fail is not one.
 */
import { readFileSync, statSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, posix } from 'node:path';
import type { Missing, Skill } from './agent.ts';
import { commandsIn, proseOf, type TextCommand } from './codeInText.ts';
import type { Machine } from './machine.ts';
import { resourcesOf } from './resources.ts';

const mostFiles = 400;
/** In bytes. A longer script is not looked into. */
const longestScript = 256 * 1024;
const mostScripts = 60;
/** Entries of one kind. More would say nothing new. */
const mostMissing = 6;

interface Looked {
  skill: Skill;
  machine: Machine;
  commands: readonly TextCommand[];
  /** Paths below the skill's folder, with `/`. */
  files: readonly string[];
}

/** Returns what the skill's text and scripts count on and what is not there. Reads files, starts nothing, never throws. */
export function missingInFiles(skill: Skill, machine: Machine): Missing[] {
  const { body } = skill;
  if (body === '') return [];
  const files = resourcesOf(skill.dir, mostFiles).files.map(({ path }) => path);
  const looked: Looked = { skill, machine, commands: commandsIn(body), files };
  const named = files.filter(path => body.includes(posix.basename(path)));
  return [
    ...missingScripts(looked),
    ...brokenLines(looked, named),
    ...missingPrograms(looked),
    ...missingPython(looked, named),
    ...missingNode(looked),
  ];
}

function textOf(path: string): string {
  try {
    return statSync(path).size > longestScript ? '' : readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

const exists = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined;

const quoted = (path: string): string =>
  /^[\w./@+-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;

// ---- Files that the text names

const ownFolder =
  /^(?:\{baseDir\}|\$\{?(?:CLAUDE_SKILL_DIR|TELOS_SKILL_DIR|SKILL_DIR|CLAUDE_PLUGIN_ROOT)\}?|<skill_dir>)\/(.+)$/;
const interpreter = /^(?:python[\d.]*|node|tsx|bash|sh|zsh|ruby|perl|php|uv|npx|bun|deno)$/;

/** Returns the path of an own script that the word names. Undefined for any other word, and for one with a placeholder. */
function ownScript(word: string, { skill }: Looked, isRun: boolean): string | undefined {
  const marked =
    ownFolder.exec(word)?.[1] ?? new RegExp(`(?:^|/)skills/${literal(skill.id)}/(.+)$`).exec(word)?.[1];
  const path = marked ?? (isRun ? /^(?:\.\/)?(scripts\/.+)$/.exec(word)?.[1] : undefined);
  return path !== undefined && /^[\w./-]+\.\w{1,4}$/.test(path) && !path.includes('..') ? path : undefined;
}

const literal = (text: string): string => text.replace(/[^\w-]/g, '\\$&');

function missingScripts(looked: Looked): Missing[] {
  const { skill, commands } = looked;
  const named = new Set<string>();
  for (const words of commands)
    for (const [at, word] of words.entries()) {
      const isRun = at === 0 ? word.startsWith('./') : at < 3 && interpreter.test(words[0]!);
      const path = isRun ? ownScript(word, looked, isRun) : undefined;
      if (path !== undefined) named.add(path);
    }
  for (const [, path = ''] of proseOf(skill.body).matchAll(
    /\]\((?:\.\/)?((?:references?|docs|rules)\/[\w./-]+\.md)(?:#[\w-]*)?\)/g,
  ))
    if (!path.includes('..')) named.add(path);
  const roots = [skill.dir, dirname(skill.dir), dirname(dirname(skill.dir))];
  const gone = [...named].filter(
    path => !roots.some(root => exists(join(root, path))) && !isMade(path, looked),
  );
  return gone.slice(0, mostMissing).map(path => ({
    kind: 'script',
    what: path,
    reason: `Its text names ${path}, which is not in its folder.`,
    nextStep: `Get it from where the skill comes from, and put it in ${skill.dir}.`,
    commands: [],
  }));
}

/** Returns true if a command or a sentence of the skill makes the file first. */
function isMade(path: string, { skill }: Looked): boolean {
  const name = literal(posix.basename(path));
  return new RegExp(
    `(?:>|\\b(?:tee|touch|create|creates|write|writes|save|saved|generate|generates|add|init|cp|curl|wget|mv)\\b)[^\\n]{0,80}${name}`,
    'i',
  ).test(skill.body);
}

/** Reports shell scripts with the line ends of Windows, at which a shell stops. */
function brokenLines({ skill, machine }: Looked, named: readonly string[]): Missing[] {
  if (machine.platform === 'win32') return [];
  const scripts = named.filter(path => /(?:\.(?:sh|bash|zsh)|\/[^.]+)$/.test(path)).slice(0, mostScripts);
  return scripts.flatMap(path => {
    const text = textOf(join(skill.dir, path));
    if (!text.includes('\r\n') || !(/\.\w+$/.test(path) || /^#!.*sh\b/.test(text))) return [];
    const command = `sed -i.bak 's/\\r$//' ${quoted(join(skill.dir, path))}`;
    return [
      {
        kind: 'script' as const,
        what: `line ends of ${path}`,
        reason: `${path} has the line ends of Windows, at which a shell stops.`,
        nextStep: `Take them out: ${command}`,
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
  /^(?:brew|apt|apt-get|dnf|yum|pacman|apk|choco|winget|scoop|snap|pip3?|pipx|npm|pnpm|yarn|cargo|gem|conda|mamba|go|nvm|pyenv|volta|asdf|openclaw|clawdbot|moltbot|clawdis|clawhub|clawdhub|molthub|claude|codex|gemini|cursor|opencode|npx|open|xdg-open|pbcopy|pbpaste|osascript|xclip|xsel|wl-copy|systemctl|service|launchctl|crontab|start|powershell|pwsh|explorer|notepad|code|vim|nano|docker|docker-compose|tree|watch)$/;

/** Returns the programs without which most of what the text tells to run cannot be run. */
function missingPrograms({ skill, machine, commands, files }: Looked): Missing[] {
  const { body, description, metadata, id } = skill;
  const declared = new Set([...metadata.requires.bins, ...metadata.requires.anyBins]);
  const counted = commands.filter(
    ([program = '']) => /^[a-z][\w.+-]*$/.test(program) && !ofTheShell.test(program),
  );
  const uses = new Map<string, number>();
  for (const [program = ''] of counted) uses.set(program, (uses.get(program) ?? 0) + 1);
  const isOwn = (name: string): boolean =>
    files.some(path => posix.basename(path).replace(/\.\w+$/, '') === name);
  const found = [...uses].flatMap(([name, count]) => {
    if (declared.has(name) || notNeeded.test(name) || machine.hasProgram(name)) return [];
    if (name === 'python') return machine.hasProgram('python3') ? [onlyPython3(machine)] : [];
    if (isOwn(name) || new RegExp(`\\b(?:alias ${literal(name)}=|${literal(name)}\\s*\\(\\))`).test(body))
      return [];
    const isMain = name === id || new RegExp(`(?<![\\w-])${literal(name)}(?![\\w-])`).test(description);
    if (
      !isMain &&
      !(interpreter.test(name) && name !== 'uv') &&
      (count < 2 || count * 5 < counted.length * 2)
    )
      return [];
    return [missingProgram(name, installLines(commands, name))];
  });
  return found.slice(0, mostMissing);
}

function onlyPython3({ platform }: Machine): Missing {
  const command =
    platform === 'linux'
      ? 'sudo apt-get install python-is-python3'
      : 'sudo ln -s "$(command -v python3)" /usr/local/bin/python';
  return {
    kind: 'program',
    what: 'python',
    reason: 'Its commands begin with `python`, and here the program is called `python3`.',
    nextStep: `Say in the request that it is python3, or make one of that name: ${command}`,
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
    what: name,
    reason: `Its text runs the program ${name}, which is not on the PATH.`,
    nextStep:
      commands.length > 0
        ? `Install it; its text gives: ${commands.join(', or ')}`
        : 'Install it, and see that it is on the PATH.',
    commands,
  };
}

// ---- Packages of Python

/** Modules of Python itself, in any version from 3.8 on. */
const ofPython = new Set(
  (
    '__future__ _thread abc aifc annotationlib antigravity argparse array ast asynchat asyncio asyncore atexit audioop ' +
    'base64 bdb binascii bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections ' +
    'colorsys compileall compression concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes curses ' +
    'dataclasses datetime dbm decimal difflib dis distutils doctest email encodings ensurepip enum errno faulthandler fcntl ' +
    'filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib grp gzip ' +
    'hashlib heapq hmac html http idlelib imaplib imghdr imp importlib inspect io ipaddress itertools json keyword lib2to3 ' +
    'linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing ' +
    'netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb pickle pickletools ' +
    'pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc ' +
    'pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter runpy sched secrets select selectors ' +
    'shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants ' +
    'sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable sys sysconfig syslog tabnanny tarfile ' +
    'telnetlib tempfile termios textwrap this threading time timeit tkinter token tokenize tomllib trace traceback ' +
    'tracemalloc tty turtle turtledemo types typing unicodedata unittest urllib uu uuid venv warnings wave weakref ' +
    'webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo'
  ).split(' '),
);

/** Names on the package index, where they differ from what is imported. */
const packageNames: Readonly<Record<string, string>> = {
  yaml: 'pyyaml',
  PIL: 'pillow',
  cv2: 'opencv-python',
  bs4: 'beautifulsoup4',
  dotenv: 'python-dotenv',
  docx: 'python-docx',
  pptx: 'python-pptx',
  fitz: 'pymupdf',
  sklearn: 'scikit-learn',
  dateutil: 'python-dateutil',
  Crypto: 'pycryptodome',
  serial: 'pyserial',
  jwt: 'pyjwt',
  telegram: 'python-telegram-bot',
  googleapiclient: 'google-api-python-client',
  'google.generativeai': 'google-generativeai',
  'google.genai': 'google-genai',
  'google.oauth2': 'google-auth',
  'google.auth': 'google-auth',
  'google.cloud': 'google-cloud-core',
  google_auth_oauthlib: 'google-auth-oauthlib',
  OpenSSL: 'pyopenssl',
  magic: 'python-magic',
  slugify: 'python-slugify',
  git: 'gitpython',
  github: 'pygithub',
  discord: 'discord.py',
  zmq: 'pyzmq',
  skimage: 'scikit-image',
  attr: 'attrs',
  websocket: 'websocket-client',
  pkg_resources: 'setuptools',
  MySQLdb: 'mysqlclient',
  psycopg2: 'psycopg2-binary',
  ddgs: 'ddgs',
  nacl: 'pynacl',
};
/** Packages so well known that their name can be given unseen. Another module may be brought by a package of any name. */
const wellKnown = new Set(
  (
    'requests numpy pandas openpyxl pypdf PyPDF2 pdfplumber reportlab lxml defusedxml playwright httpx aiohttp matplotlib flask fastapi ' +
    'pydantic rich click tqdm jinja2 markdown anthropic openai boto3 psutil websockets selenium scipy torch transformers tiktoken ' +
    'feedparser html2text imageio networkx nltk paramiko plotly polars pyperclip pytest pytz qrcode redis seaborn setuptools sqlalchemy ' +
    'tabulate tenacity toml typer uvicorn weasyprint xlsxwriter yfinance mcp spacy pyarrow cryptography colorama imap_tools ccxt web3 ' +
    'praw tweepy stripe notion_client slack_sdk trafilatura readability youtube_transcript_api yt_dlp pytesseract pdf2image'
  ).split(' '),
);

function missingPython(looked: Looked, named: readonly string[]): Missing[] {
  const { skill, machine, files } = looked;
  const python = machine.python();
  // With these the author says which Python it is, and what comes with it.
  if (!python || /\buv run\b|\bvenv\b|\bvirtualenv\b|\bconda\b|\bpoetry\b/.test(skill.body)) return [];
  const modules = importedModules(
    looked,
    named.filter(path => path.endsWith('.py')),
  );
  const declared = skill.metadata.requires.pip ?? [];
  const lacking = new Map<string, string>();
  for (const name of declared) {
    const plain = /^[A-Za-z][\w.-]*/.exec(name)?.[0];
    if (plain && !python.hasPackage(plain))
      lacking.set(plain, `It says that it needs the Python package ${plain}`);
  }
  for (const [module, file] of modules) {
    if (python.hasModule(module)) continue;
    const name = packageNames[module] ?? packageNames[module.split('.')[0]!] ?? module.split('.')[0]!;
    lacking.set(name, `${file} imports ${module} of the Python package ${name}`);
  }
  const list = files.find(path => /^(?:.*\/)?requirements\.txt$/.test(path));
  const known = new Set([...declared, ...Object.values(packageNames), ...wellKnown]);
  return [...lacking].slice(0, mostMissing).map(([name, reason]) => {
    const command =
      list !== undefined && new RegExp(`^${literal(name)}\\b`, 'im').test(textOf(join(skill.dir, list)))
        ? `python3 -m pip install -r ${quoted(join(skill.dir, list))}`
        : `python3 -m pip install ${name}`;
    const isSure = command.includes(' -r ') || known.has(name);
    const nextStep = isSure
      ? `Install it: ${command}`
      : `Look up which package brings it. Often that is: ${command}`;
    const commands = isSure ? [command] : [];
    return { kind: 'package', what: name, reason: `${reason}, which is not installed.`, nextStep, commands };
  });
}

/** Returns each module from elsewhere with the script that imports it. Own modules are followed. */
function importedModules({ skill, files }: Looked, scripts: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  const queue = [...scripts];
  for (let at = 0; at < queue.length && at < mostScripts; at++) {
    const script = queue[at]!;
    for (const module of importsOf(textOf(join(skill.dir, script)))) {
      const [top = '', next] = module.split('.');
      const own = files.filter(path => new RegExp(`(?:^|/)${top}(?:\\.py|/.*\\.py)$`).test(path));
      for (const path of own)
        if (!queue.includes(path) && (path.endsWith(`${top}.py`) || path.endsWith(`/${next}.py`)))
          queue.push(path);
      if (own.length === 0 && !ofPython.has(top) && !found.has(module)) found.set(module, script);
    }
  }
  return found;
}

/**
 * Returns the modules without which a script stops at once. An import within a function, or one whose failure is caught, is not
 * needed for all that the script does, unless the script then gives up.
 */
function importsOf(text: string): string[] {
  if (/^# \/\/\/ script/m.test(text)) return [];
  const found: string[] = [];
  let [inText, tried, caught]: [string, string[], boolean] = ['', [], false];
  for (const line of text.split(/\r?\n/)) {
    const marks = line.slice(0, 2000).match(/"""|'''/g) ?? [];
    const wasInText = inText;
    for (const mark of marks) inText = inText === '' ? mark : inText === mark ? '' : inText;
    if (wasInText !== '') continue;
    if (/^\S/.test(line) && !/^(?:except|#)/.test(line)) [tried, caught] = [[], false];
    if (/^except\b.*\b(?:ImportError|ModuleNotFoundError)/.test(line)) caught = true;
    const [, isInner, from, list] =
      /^(\s*)(?:from\s+([A-Za-z][\w.]*)\s+import\b|import\s+([\w., ]+))/.exec(line) ?? [];
    const names = from
      ? [from]
      : (list ?? '')
          .split(',')
          .map(each => each.trim().split(/\s/)[0]!)
          .filter(Boolean);
    if (isInner === '') found.push(...names);
    else if (isInner !== undefined && !caught) tried.push(...names);
    if (caught && /^\s+(?:sys\.exit|exit|quit|raise|os\._exit)\b/.test(line)) found.push(...tried.splice(0));
  }
  return found.filter(name => /^[A-Za-z]\w*(?:\.\w+)*$/.test(name));
}

// ---- Packages of Node

function missingNode(looked: Looked): Missing[] {
  const { skill, commands, files } = looked;
  const run = files.filter(
    path =>
      /\.[cm]?[jt]s$/.test(path) &&
      commands.some(
        words =>
          /^(?:node|npx|tsx|ts-node|\.\/.*|\{baseDir\}.*)$/.test(words[0]!) &&
          words.some(word => word.endsWith(path)),
      ),
  );
  const needed = new Set<string>();
  const queue = [...run];
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
  const folder = files.find(path => /^(?:[\w-]+\/)?package\.json$/.test(path));
  const root = folder === undefined ? skill.dir : dirname(join(skill.dir, folder));
  const declared = folder === undefined ? [] : dependenciesIn(textOf(join(skill.dir, folder)));
  const isTold = commands.some(
    ([program = '', verb = '']) =>
      /^(?:npm|pnpm|yarn)$/.test(program) && /^(?:install|i|ci|run|start|test)$/.test(verb),
  );
  if (needed.size === 0 && isTold)
    for (const name of declared) if (!isInstalled(name, join(root, 'x'))) needed.add(name);
  if (needed.size === 0) return [];
  const names = [...needed].slice(0, mostMissing);
  const isDeclared = names.every(name => declared.includes(name));
  const command = ['npm install --prefix', quoted(root), ...(isDeclared ? [] : names)].join(' ');
  return [
    {
      kind: 'package',
      what: names.length === 1 ? names[0]! : `${names[0]} and ${needed.size - 1} more`,
      reason: `It needs the npm ${needed.size === 1 ? 'package' : 'packages'} ${names.join(', ')}, which ${needed.size === 1 ? 'is' : 'are'} not installed beside it.`,
      nextStep: `Install them: ${command}`,
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

function dependenciesIn(text: string): string[] {
  try {
    const { dependencies } = JSON.parse(text) as { dependencies?: Record<string, string> };
    return Object.keys(dependencies ?? {}).filter(name => /^(?:@[\w.-]+\/)?[\w.-]+$/.test(name));
  } catch {
    return [];
  }
}
