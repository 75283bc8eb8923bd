/** Finds the packages that the Python scripts of a skill import and that are not installed. */

import { join } from 'node:path';
import { type Sentence, sentence } from '@telos/protocol/text';
import { shellWord } from '../files/plainText.ts';
import { type Missing, missingWords } from './agent.ts';
import type { Machine } from './machine.ts';
import { pythonIn, type SkillTexts, textOf } from './skillTexts.ts';

/** Scripts that are read, and entries of one kind that are reported. More would say nothing new. */
export const mostScripts = 60;
export const mostMissing = 6;

/** Returns the text as a pattern that matches just it. */
export const literal = (text: string): string => text.replace(/[^\w-]/g, '\\$&');

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
  mpl_toolkits: 'matplotlib',
  MySQLdb: 'mysqlclient',
  psycopg2: 'psycopg2-binary',
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

/** Returns the packages that scripts of the skill cannot do without. */
export function missingPython(texts: SkillTexts, machine: Machine): Missing[] {
  const { skill, commands, files, named } = texts;
  const scripts = named.filter(path => path.endsWith('.py'));
  const isRunPlainly = commands.some(
    ([program = '', ...words]) =>
      /^python/.test(program) && words.some(word => scripts.some(path => word.endsWith(path))),
  );
  // Otherwise the author says with these which Python it is, and what comes with it.
  if (/\b(?:venv|virtualenv|conda|poetry)\b/.test(skill.body)) return [];
  if (!isRunPlainly && /\buvx? /.test(skill.body)) return [];
  // A text in Python that imports a module of the skill tells the model to do the same.
  const taught = importsOf(pythonIn(skill.body)).flatMap(module => ownModules(module, files).paths);
  const modules = importedModules(texts, [...new Set([...scripts, ...taught])]);
  const declared = skill.metadata.requires.pip ?? [];
  if (modules.size === 0 && declared.length === 0) return [];
  const python = machine.python();
  if (!python) return [];
  const lacking = new Map<string, Sentence>();
  for (const name of declared) {
    const plain = /^[A-Za-z][\w.-]*/.exec(name)?.[0];
    if (plain && !python.hasPackage(plain))
      lacking.set(
        plain,
        sentence('It says that it needs the Python package {0}, which is not installed.', plain),
      );
  }
  for (const [module, file] of modules) {
    if (python.hasModule(module)) continue;
    const [top = '', next] = module.split('.');
    const name =
      packageNames[module] ?? packageNames[top] ?? (top === 'google' && next ? `google-${next}` : top);
    lacking.set(
      name,
      sentence('{0} imports {1} of the Python package {2}, which is not installed.', file, module, name),
    );
  }
  const list = files.find(path => /^(?:.*\/)?requirements\.txt$/.test(path));
  const known = new Set([...declared, ...Object.values(packageNames), ...wellKnown]);
  return [...lacking].slice(0, mostMissing).map(([name, reason]) => {
    const command =
      list !== undefined && new RegExp(`^${literal(name)}\\b`, 'im').test(textOf(join(skill.dir, list)))
        ? `python3 -m pip install -r ${shellWord(join(skill.dir, list))}`
        : `python3 -m pip install ${name}`;
    const isSure = command.includes(' -r ') || known.has(name);
    const nextStep = isSure
      ? sentence('Install it: {0}', command)
      : sentence('Look up which package brings it. Often that is: {0}', command);
    const commands = isSure ? [command] : [];
    return { kind: 'package', ...missingWords(name, reason, nextStep), commands };
  });
}

/** Returns each module from elsewhere with the script that imports it. Own modules are followed. */
function importedModules({ skill, files }: SkillTexts, scripts: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  const queue = [...scripts];
  for (let at = 0; at < queue.length && at < mostScripts; at++) {
    const script = queue[at]!;
    for (const module of importsOf(textOf(join(skill.dir, script)))) {
      const { isOwn, paths } = ownModules(module, files);
      for (const path of paths) if (!queue.includes(path)) queue.push(path);
      if (!isOwn && !ofPython.has(module.split('.')[0]!) && !found.has(module)) found.set(module, script);
    }
  }
  return found;
}

/** Returns the files of the skill that an import loads, as far as its first two names tell. */
function ownModules(module: string, files: readonly string[]): { isOwn: boolean; paths: string[] } {
  const [top = '', next] = module.split('.');
  const own = files.filter(path => new RegExp(`(?:^|/)${top}(?:\\.py|/.*\\.py)$`).test(path));
  const paths = own.filter(path => path.endsWith(`${top}.py`) || path.endsWith(`/${next}.py`));
  return { isOwn: own.length > 0, paths };
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
