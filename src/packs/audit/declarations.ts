/** Compares what a package's metadata and texts say that it needs with what its files use. Hints: all of it is of low level. */
import { basePrograms as shipped } from '@telos/engine/policy';

export interface Incoherence {
  kind: 'undeclared-host' | 'undeclared-program' | 'unused-declaration';
  file: string;
  line: number;
  /** The host, program or variable. */
  text: string;
}

type Place = Omit<Incoherence, 'kind' | 'text'>;

/** Of each kind. */
const mostTold = 5;
/** Hosts, and declared names of a package, that are looked at. */
const mostNames = 50;
/** A longer line is cut: no person writes such a command. In characters. */
const longestLine = 2000;
/** Characters that are searched for what was declared. Of a larger package nothing is said to be unused. */
const mostSearched = 4 * 1024 * 1024;
const longestMetadata = 64 * 1024;

const code = /\.(?:sh|bash|zsh|fish|py|[cm]?[jt]s|rb|pl|php|ps1)$/i;
const shellScript = /\.(?:sh|bash|zsh)$/i;
const address = /\bhttps?:\/\/(?:[\w.~%:-]{1,200}@)?([a-z0-9][\w.-]{2,252})/gi;
/** Hosts that belong to no one, and addresses that are names of formats. */
const noHost =
  /^(?:127\..*|0\.0\.0\.0|(?:[\w-]+\.)*(?:localhost|example|test|invalid|local|internal)|(?:[\w-]+\.)*example\.(?:com|org|net)|(?:[\w-]+\.)*(?:w3|schema)\.org|json-schema\.org|schemas?\.[\w.-]+)$/;

const fence = /^\s{0,9}(?:```|~~~)\s{0,9}(\w{0,20})/;
const shells = new Set(['bash', 'sh', 'shell', 'zsh', 'console']);
const quoted = /'[^']{0,2000}'|"(?:[^"\\]|\\.){0,2000}"/g;
const hereText = /<<-?\s{0,3}["']?(\w{1,40})["']?/;
/** What may stand before a program: a prompt, variables that are set for it, and words that start another. */
const before =
  /^\s*(?:\$\s+)?(?:\w{1,60}=\S{0,200}\s+){0,9}(?:(?:sudo|exec|time|then|do|else|if|while|until|!)\s+){0,9}/;
const program = /^([a-z][\w.+-]{1,40})(?=\s|$)/;
const basePrograms = new Set(shipped);

/** Takes the files of one package, in any order. */
export class Declarations {
  /** Undefined for one of several of which any will do: no one misses it. */
  readonly #programs = new Map<string, Place | undefined>();
  readonly #variables = new Map<string, Place>();
  readonly #hosts = new Map<string, Place>();
  readonly #used = new Map<string, Place>();
  readonly #texts: string[] = [];
  #length = 0;

  addSkill(file: string, text: string): void {
    const [head = '', metadata = ''] =
      /^\uFEFF?---\r?\n([\s\S]*?)\n---/.exec(text.slice(0, longestMetadata)) ?? [];
    for (const { name, key, line } of declaredIn(metadata)) {
      if (key === 'env') this.#variables.set(name, { file, line });
      else this.#programs.set(name, key === 'bins' ? { file, line } : undefined);
    }
    this.#addText(text.slice(head.length));
    this.#addPrograms(file, shellLinesOf(text));
  }

  /** Any other file. */
  addOther(file: string, text: string): void {
    this.#addText(text);
    if (shellScript.test(file)) this.#addPrograms(file, text.split('\n'));
    if (code.test(file)) this.#addHosts(file, text);
  }

  /** Returns what does not fit, when all files were added. `described` is what people read of them, in small letters. */
  incoherences(described: string): Incoherence[] {
    const incoherences = (kind: Incoherence['kind'], found: [string, Place][]): Incoherence[] =>
      found.slice(0, mostTold).map(([text, place]) => ({ kind, ...place, text }));
    const declared = [...this.#programs, ...this.#variables]
      .filter((entry): entry is [string, Place] => entry[1] !== undefined)
      .slice(0, mostNames);
    const isSearched = this.#length <= mostSearched;
    return [
      ...incoherences(
        'undeclared-host',
        [...this.#hosts].filter(([host]) => !described.includes(host)),
      ),
      // A skill that declares none leaves all of it to its text.
      ...incoherences(
        'undeclared-program',
        [...this.#used].filter(([name]) => this.#programs.size > 0 && !this.#programs.has(name)),
      ),
      ...incoherences(
        'unused-declaration',
        declared.filter(([name]) => isSearched && !this.#texts.some(text => hasWord(text, name))),
      ),
    ];
  }

  #addText(text: string): void {
    this.#length += text.length;
    if (this.#length <= mostSearched) this.#texts.push(text);
  }

  #addHosts(file: string, text: string): void {
    for (const { index, 1: named = '' } of text.matchAll(address)) {
      if (this.#hosts.size >= mostNames) return;
      const host = named.toLowerCase().replace(/\.$/, '');
      if (this.#hosts.has(host) || !host.includes('.') || noHost.test(host)) continue;
      this.#hosts.set(host, { file, line: text.slice(0, index).split('\n').length });
    }
  }

  /** `lines` has an empty text for each line that no shell reads. */
  #addPrograms(file: string, lines: readonly string[]): void {
    let [isContinued, isInQuote, until] = [false, false, ''];
    for (const [index, whole] of lines.entries()) {
      if (until !== '') {
        if (whole.trim() === until) until = '';
        continue;
      }
      const line = whole.slice(0, longestLine).replace(quoted, '""');
      const wasInside = isContinued || isInQuote;
      if (/(?:^|[^\\"])"(?!")|'/.test(line.replaceAll('""', ''))) isInQuote = !isInQuote;
      isContinued = /\\\s*$/.test(line);
      until = hereText.exec(whole.slice(0, longestLine))?.[1] ?? '';
      if (wasInside || /^\s*#/.test(line)) continue;
      for (const part of line.split(/&&|\|\||[;|]/)) {
        const [, name = ''] = program.exec(part.replace(before, '')) ?? [];
        if (name === '' || basePrograms.has(name) || this.#used.has(name)) continue;
        this.#used.set(name, { file, line: index + 1 });
      }
    }
  }
}

/** Returns the lines of a text, empty but for those that are within a block of shell commands. */
function shellLinesOf(text: string): string[] {
  let open: 'shell' | 'other' | undefined;
  return text.split('\n').map(line => {
    const [isFence, language = ''] = fence.exec(line) ?? [];
    if (isFence === undefined) return open === 'shell' ? line : '';
    open = open === undefined ? (shells.has(language.toLowerCase()) ? 'shell' : 'other') : undefined;
    return '';
  });
}

interface Declared {
  name: string;
  key: 'bins' | 'anyBins' | 'env';
  /** In the file: the metadata begins at its second line. */
  line: number;
}

/** Reads the two forms of lists in metadata, in brackets and with hyphens, without a parser: a look never fails. */
function declaredIn(metadata: string): Declared[] {
  const lists = [
    ...metadata.matchAll(/\b(bins|anyBins|env)["']?\s{0,9}:\s{0,9}\[([^\]]{0,1000})\]/g),
    ...metadata.matchAll(
      /^[ \t]{0,40}(bins|anyBins|env):[ \t]{0,9}\r?\n((?:[ \t]{0,40}-[ \t]{1,9}\S[^\n]{0,200}\n?){1,100})/gm,
    ),
  ];
  return lists.flatMap(({ index, 1: key, 2: names = '' }) => {
    const line = metadata.slice(0, index).split('\n').length + 1;
    const found = names.matchAll(/(?:^|[\s,"'[-])([A-Za-z_][\w.+-]{1,60})/g);
    return [...found].map(([, name = '']) => ({ name, key: key as Declared['key'], line }));
  });
}

/** Whether a text has the word, and not only a longer one with it. */
function hasWord(text: string, word: string): boolean {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    const [left = '', right = ''] = [text[at - 1], text[at + word.length]];
    if (!/\w/.test(left) && !/\w/.test(right)) return true;
  }
  return false;
}
