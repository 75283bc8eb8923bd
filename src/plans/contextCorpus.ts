/** Reads the folders that explain a project: their texts in chunks, and their pictures and documents. Writes nothing. */

import { createHash } from 'node:crypto';
import { readdirSync, realpathSync, type Stats, statSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { decodeText, formOf, globMatcher, isSensitive, openRegularFile, readText } from '@telos/engine/files';

export interface CorpusFile {
  /** Absolute and real. */
  path: string;
  /** Path below its folder, with `/`. */
  name: string;
  kind: 'text' | 'image' | 'pdf';
  size: number;
  changed: number;
}

/** A piece of a text that fits into a question to a model. */
export interface Chunk {
  /** Name of its file. */
  source: string;
  text: string;
}

/** Words of a chunk, and those of its end that the next one repeats. */
const chunkWords = 300;
const overlapWords = 50;
/** Bytes of one file, and of all together. */
const mostFileBytes = 2 * 1024 * 1024;
const mostBytes = 200 * 1024 * 1024;
/** Names that one walk examines, and how deep it goes. */
const mostNames = 50_000;
const mostLevels = 32;

const namesIn = (line: string): ReadonlySet<string> => new Set(line.split(' '));

/** Folders of things that programs make or fetch. */
const skippedFolders = namesIn(
  'node_modules .git .hg .svn .telos .venv venv env .env __pycache__ dist build out target vendor coverage htmlcov .coverage .next .nuxt .svelte-kit .mypy_cache .ruff_cache .pytest_cache .tox .nox site-packages .cache',
);
/** Files that list names, and files that programs write for themselves. */
const skippedFiles = namesIn(
  '.gitignore .dockerignore .npmignore .eslintignore .prettierignore .DS_Store package-lock.json yarn.lock pnpm-lock.yaml poetry.lock uv.lock Cargo.lock',
);
const imageEndings = namesIn('.jpg .jpeg .png .gif .webp .bmp .tiff');
const binaryEndings = namesIn(
  '.zip .tar .gz .bz2 .xz .7z .exe .dll .so .dylib .bin .wasm .pyc .class .jar .pt .pth .onnx .pb .tflite .h5 .hdf5 .safetensors .ckpt .npy .npz .pkl .joblib .parquet .feather .arrow .mp3 .mp4 .wav .avi .mov .ttf .otf .woff .woff2 .ico .svgz .vsix',
);

/**
 * Returns the readable files of the folders, sorted by name. Left out are secrets, links, what Git ignores, what programs make,
 * and what is too large. A folder that does not exist has none.
 */
export async function corpusFiles(folders: readonly string[]): Promise<CorpusFile[]> {
  const found = new Map<string, CorpusFile>();
  let names = 0;
  let bytes = 0;
  for (const folder of folders) {
    const root = realFolder(folder);
    if (root === undefined) continue;
    const open: { path: string; level: number; rules: readonly IgnoreRule[] }[] = [
      { path: root, level: 0, rules: [] },
    ];
    for (let next = open.pop(); next && names < mostNames; next = open.pop()) {
      const { level } = next;
      const rules = [...next.rules, ...ignoreRules(next.path)];
      for (const entry of entriesOf(next.path)) {
        if (++names % 500 === 0) await nextTurn();
        const path = join(next.path, entry.name);
        if (isSensitive(path) || isIgnored(path, entry.isDirectory(), rules)) continue;
        if (entry.isDirectory() && !skippedFolders.has(entry.name) && level < mostLevels)
          open.push({ path, level: level + 1, rules });
        const kind = entry.isFile() ? kindOf(entry.name) : undefined;
        const stats = kind && statsOf(path);
        if (!kind || !stats || stats.size > mostFileBytes || bytes + stats.size > mostBytes) continue;
        bytes += stats.size;
        const name = relative(root, path).split(sep).join('/');
        found.set(path, { path, name, kind, size: stats.size, changed: stats.mtimeMs });
      }
    }
  }
  return [...found.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** A line of a .gitignore. */
interface IgnoreRule {
  matches: (path: string) => boolean;
  /** The folder of its file. */
  base: string;
  onlyFolders: boolean;
  takesBack: boolean;
}

/** Returns the rules of the folder's .gitignore; none if there is none. */
function ignoreRules(base: string): IgnoreRule[] {
  let text: string;
  try {
    const file = join(base, '.gitignore');
    if (statSync(file).size > mostIgnoreBytes) return [];
    text = readText(file);
  } catch {
    return [];
  }
  return text.split(/\r?\n/).flatMap(line => {
    const rule = line.trim();
    if (rule === '' || rule.startsWith('#')) return [];
    const takesBack = rule.startsWith('!');
    const pattern = rule.replace(/^[!\\]/, '').replace(/\/+$/, '');
    const isAnchored = pattern.includes('/');
    return [
      {
        matches: globMatcher(isAnchored ? pattern.replace(/^\//, '') : `**/${pattern}`),
        base,
        onlyFolders: rule.endsWith('/'),
        takesBack,
      },
    ];
  });
}

const mostIgnoreBytes = 64 * 1024;

/** The last rule that fits decides. */
function isIgnored(path: string, isFolder: boolean, rules: readonly IgnoreRule[]): boolean {
  const rule = rules.findLast(
    ({ matches, base, onlyFolders }) =>
      (isFolder || !onlyFolders) && matches(relative(base, path).split(sep).join('/')),
  );
  return rule !== undefined && !rule.takesBack;
}

function realFolder(folder: string): string | undefined {
  try {
    const root = realpathSync.native(folder);
    return statSync(root).isDirectory() ? root : undefined;
  } catch {
    return undefined;
  }
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

function kindOf(name: string): CorpusFile['kind'] | undefined {
  const ending = extname(name).toLowerCase();
  if (imageEndings.has(ending)) return 'image';
  if (ending === '.pdf') return 'pdf';
  return binaryEndings.has(ending) || skippedFiles.has(name) ? undefined : 'text';
}

/** Returns a digest that changes when a file is added, changed or removed. Reads no contents, so that it is quick. */
export function corpusDigest(files: readonly CorpusFile[]): string {
  const hash = createHash('md5');
  for (const { path, size, changed } of files) hash.update(`${path}\0${size}\0${changed}\n`);
  return hash.digest('hex');
}

/** Returns a file's bytes. Undefined if it can no longer be read, or is another file by now. */
export async function corpusBytes({ path }: CorpusFile): Promise<Buffer | undefined> {
  try {
    const { handle, size } = await openRegularFile(path);
    try {
      return size > mostFileBytes ? undefined : await handle.readFile();
    } finally {
      await handle.close();
    }
  } catch {
    return undefined;
  }
}

/** Returns the chunks of all texts. A file of another encoding than text has none. */
export async function corpusChunks(files: readonly CorpusFile[]): Promise<Chunk[]> {
  const chunks: Chunk[] = [];
  for (const file of files) {
    if (file.kind !== 'text') continue;
    const bytes = await corpusBytes(file);
    const form = bytes && formOf(bytes);
    if (form) chunks.push(...chunksOf(file.name, decodeText(bytes, form)));
  }
  return chunks;
}

/**
 * Returns the text in chunks that end with a sentence. Each repeats the last sentences of the one before. A sentence that is longer
 * than a chunk is a chunk of its own.
 */
export function chunksOf(source: string, text: string): Chunk[] {
  const chunks: Chunk[] = [];
  let window: { sentence: string; words: number }[] = [];
  let size = 0;
  const close = (): void => {
    if (window.length > 0) chunks.push({ source, text: window.map(({ sentence }) => sentence).join(' ') });
  };
  for (const sentence of sentencesOf(text)) {
    const words = sentence.split(/\s+/).length;
    if (size + words > chunkWords && window.length > 0) {
      close();
      window = endOf(window);
      size = window.reduce((sum, each) => sum + each.words, 0);
    }
    window.push({ sentence, words });
    size += words;
  }
  close();
  return chunks;
}

/** Returns the last sentences that together have at most as many words as chunks share. */
function endOf(window: readonly { sentence: string; words: number }[]): (typeof window)[number][] {
  let words = 0;
  let from = window.length;
  while (from > 0 && words + (window[from - 1]?.words ?? 0) <= overlapWords)
    words += window[--from]?.words ?? 0;
  return window.slice(from);
}

/** Returns the sentences of a text. Headings, rows of tables and items of lists are whole, a blank line ends a sentence. */
export function sentencesOf(text: string): string[] {
  const sentences: string[] = [];
  let prose: string[] = [];
  const close = (): void => {
    sentences.push(
      ...prose
        .join(' ')
        .split(/(?<=[.!?])\s+/)
        .filter(Boolean),
    );
    prose = [];
  };
  for (const line of text.split(/\r\n|[\n\r\v\f\u0085\u2028\u2029]/).map(each => each.trim())) {
    if (line !== '' && !/^(?:#{1,6}\s|[|-])/.test(line)) {
      prose.push(line);
      continue;
    }
    close();
    if (line !== '') sentences.push(line);
  }
  close();
  return sentences;
}
