/** Reads from the words of a command what a person should know before it runs, and what no answer allows. */
import { basename } from 'node:path';
import { type Danger, type DangerKind, dangerKinds } from '../../protocol/run.ts';
import { linesThatRun, type ReadCommand, type ReadLine, type ReadWord } from './commandReach.ts';
import { gitDangers } from './gitCommands.ts';
import programs from './programs.json' with { type: 'json' };
import { isPrecious, type PlaceKind, placeOf, type Surroundings } from './reach.ts';
import { signs } from './shellSigns.ts';

export interface CommandDanger {
  /** Worst first. Empty for a command that says nothing dangerous. */
  dangers: readonly Danger[];
  /** The part of the system or of the home folder that it would destroy. Such a command is refused. */
  destroys?: string;
}

/** A sentence names no more than this many dangers. */
const mostNamed = 3;
/** In characters. The whole command is shown beside the sentence. */
const longestName = 60;
/** Texts within texts that are read. */
const deepestText = 4;
/** Paths that are followed. */
const mostPlaces = 2000;

/** Returns the dangers that the words of a command name. What a program or a script does by itself cannot be seen here. */
export function dangerOf(line: string, around: Surroundings): CommandDanger {
  const reader = new DangerReader(around);
  reader.read(line, 0);
  const dangers = [...reader.found.values()].sort((a, b) => rank(a) - rank(b)).slice(0, mostNamed);
  return { dangers, ...(reader.destroys !== undefined && { destroys: reader.destroys }) };
}

const rank = ({ kind }: Danger): number => dangerKinds.indexOf(kind);

const shells = /^(?:ba|z|da|k|mk|a|fi|c|tc)?sh$/;
const interpreters =
  /^(?:python[\d.]*|node|deno|bun|perl|ruby|php|lua|osascript|pwsh|powershell|iex|invoke-expression)$/;
const downloaders =
  /^(?:curl|wget|aria2c|https?|xh|fetch|iwr|irm|invoke-webrequest|invoke-restmethod|gh|scp|lynx)$/;
/** Programs that run the program named among their words. */
const carriers =
  /^(?:sudo|doas|pkexec|gsudo|runas|env|exec|command|builtin|nohup|nice|ionice|time|timeout|setsid|stdbuf|xargs|parallel|watch|flock|busybox|toybox|chroot|unshare|nsenter|strace|start|cmd|find|fd|fdfind|if|then|else|do|while|until|!|npx|bunx|script|ssh)$/;
const raising = /^(?:sudo|doas|su|pkexec|gsudo|runas)$/;
/** Programs to which a line is passed as one word. */
const lineTakers = /^(?:su|ssh|watch|script|env|parallel|flock|cmd|pwsh|powershell|runas)$/;
/** Raw disks and their partitions. */
const disk =
  /^\/dev\/(?:r?disk\d|[shv]d[a-z]|xvd[a-z]|nvme\d|mmcblk\d|dm-\d|md\d|mapper\/|loop\d|mem$|kmem$|sd$|disk\/)|^\\\\\.\\physicaldrive/i;
const formatters =
  /^(?:mkfs(?:\..+)?|mke2fs|mkswap|newfs\w*|wipefs|blkdiscard|fdisk|sfdisk|parted|sgdisk|diskpart|format|cryptsetup)$/;

class DangerReader {
  readonly found = new Map<string, Danger>();
  destroys: string | undefined;
  readonly #around: Surroundings;
  /** Files that an earlier command has downloaded. */
  readonly #saved = new Set<string>();
  readonly #read = new Set<string>();
  #places = 0;

  constructor(around: Surroundings) {
    this.#around = around;
  }

  read(text: string, depth: number): void {
    if (this.#read.has(text)) return;
    this.#read.add(text);
    const { folder, home } = this.#around;
    const lines = depth > deepestText ? undefined : linesThatRun(text, folder, home);
    if (!lines) this.#add('unread');
    const all = lines ?? [];
    for (const line of all) this.#line(line, depth);
  }

  #add(kind: DangerKind, ...values: string[]): void {
    const named = values.map(value =>
      value.length > longestName ? `${value.slice(0, longestName)}…` : value,
    );
    this.found.set([kind, ...named].join('\0'), { kind, values: named });
  }

  #line({ commands, inner, heredocs }: ReadLine, depth: number): void {
    const downloads = inner.some(text => this.#downloads(text));
    let piped: string[][] = [];
    for (const command of commands) {
      if (!command.isPiped) piped = [];
      for (const words of behindCarriers(command.words)) {
        this.#command(words, command, depth);
        this.#runner(words, command, piped, heredocs, downloads, depth);
      }
      for (const { values, isWritten } of command.redirections)
        if (isWritten && values.some(value => disk.test(value))) this.#device(values[0] ?? '');
      piped.push(command.words.map(({ values: [first = ''] }) => first));
      this.#save(command);
    }
  }

  /** Finds text that runs unread. */
  #runner(
    words: readonly ReadWord[],
    { redirections, isPiped }: ReadCommand,
    piped: readonly string[][],
    heredocs: readonly string[],
    downloads: boolean,
    depth: number,
  ): void {
    const [program = '', ...operands] = words.map(({ values: [first = ''] }) => first);
    const name = programName(program);
    const isRunner = shells.test(name) || interpreters.test(name) || /^(?:eval|source|\.)$/.test(name);
    if (this.#saved.has(basename(program)) && /^[./]/.test(program)) this.#add('runs-download');
    if (downloads && (program.startsWith(signs.any) || (isRunner && operands.some(isOpen))))
      this.#add('runs-download');
    if (!isRunner) return;
    const files = operands.filter(word => !/^-/.test(word));
    if (files.some(word => this.#saved.has(basename(word)))) this.#add('runs-download');
    const isBare =
      files.length === 0 ||
      operands.some(word => /^-\w*s$|^-$/.test(word)) ||
      /^\/dev\/(?:stdin|fd)/.test(files[0]!);
    if (!isBare || operands.some(word => /^(?:-v|-h|--version|--help)$/i.test(word))) return;
    if (shells.test(name)) {
      const texts = redirections.flatMap(({ values, isWritten }) => (isWritten ? [] : values));
      for (const text of [...heredocs, ...texts.filter(one => /\s/.test(one))]) this.read(text, depth + 1);
    }
    if (!isPiped) return;
    const [first = [], ...between] = piped;
    if (piped.some(one => downloaders.test(programName(one[0])) || raisedDownload(one)))
      this.#add('runs-download');
    else if (between.length === 0 && /^(?:echo|printf)$/.test(programName(first[0])) && shells.test(name))
      this.read(first.slice(1).join(' '), depth + 1);
    else this.#add('runs-unread');
  }

  #downloads(text: string): boolean {
    const { folder, home } = this.#around;
    return (linesThatRun(text, folder, home) ?? []).some(({ commands }) =>
      commands.some(({ words }) =>
        behindCarriers(words).some(([one]) => downloaders.test(programName(one?.values[0]))),
      ),
    );
  }

  /** Notes the names under which a downloader saves files. */
  #save({ words, redirections }: ReadCommand): void {
    const texts = words.map(({ values: [first = ''] }) => first);
    const at = texts.findIndex(word => downloaders.test(programName(word)));
    if (at < 0) return;
    const written = redirections.flatMap(({ values, isWritten }) => (isWritten ? values : []));
    for (const name of [...texts.slice(at + 1), ...written])
      this.#saved.add(basename(name.replace(/^-o|^--output(?:-document)?=/, '')));
  }

  #device(path: string): void {
    this.#add('device', path);
    this.destroys ??= path;
  }

  #command(words: readonly ReadWord[], command: ReadCommand, depth: number): void {
    const [first, ...operands] = words;
    const name = programName(first?.values[0]);
    const texts = operands.map(({ values: [one = ''] }) => one);
    if (raising.test(name)) this.#add('privilege', name);
    if (lineTakers.test(name))
      for (const { written } of operands.filter(({ written: one }) => /\s/.test(one)))
        this.read(written, depth + 1);
    if (isOpen(name) || /^(?:rm|srm|shred|unlink|rmdir|rd|del|erase|ri|remove-item|trash|rimraf)$/.test(name))
      this.#delete(operands, name, command);
    if (/^(?:mv|chmod|chown|chgrp)$/.test(name)) this.#change(operands, name, command);
    if (/^(?:find|fd|fdfind)$/.test(name)) this.#find(operands, command);
    if (formatters.test(name) && !texts.some(word => /^(?:-l|--list|-V|--version|--help)$/.test(word)))
      this.#format(texts, name);
    if (/^(?:dd|tee|cp|shred|truncate|diskutil)$/.test(name))
      for (const word of texts)
        if (disk.test(word.replace(/^of=/, '')) && !/^if=/.test(word)) this.#device(word.replace(/^of=/, ''));
    if (name === 'dd')
      for (const word of texts)
        if (disk.test(word.replace(/^if=/, ''))) this.#add('device', word.replace(/^if=/, ''));
    if (name === 'git') for (const { kind, values } of gitDangers(texts)) this.#add(kind, ...values);
    this.#kill(name, operands);
    const publishing = publishedBy(name, texts);
    if (publishing) this.#add('publishes', publishing);
  }

  #format(texts: readonly string[], name: string): void {
    const target = texts.findLast(word => !word.startsWith('-'));
    this.#add('formats', target ?? name);
    const lost = texts.find(word => disk.test(word) || /^[a-z]:$/i.test(word));
    if (lost !== undefined) this.destroys ??= lost;
  }

  #delete(operands: readonly ReadWord[], name: string, { folders }: ReadCommand): void {
    const flags = operands
      .filter(({ values }) => /^-|^\/[a-z]$/i.test(values[0] ?? ''))
      .flatMap(({ values }) => values);
    const isRecursive =
      name === 'rimraf' ||
      flags.some(flag => /^-[a-z]*r|^--recursive|^\/s$/i.test(flag)) ||
      flags.includes('--no-preserve-root');
    const isOfSystem = flags.includes('--no-preserve-root');
    if (isOpen(name) && !isRecursive) return;
    const targets = operands.filter(word => !flags.includes(word.values[0] ?? ''));
    if (targets.length === 0 && isRecursive && !isOpen(name)) this.#add('deletes-unknown');
    if (isOfSystem) this.destroys ??= '/';
    for (const target of targets) this.#target(target, isRecursive, folders, isOpen(name));
  }

  #target(target: ReadWord, isRecursive: boolean, folders: readonly string[], isGuess: boolean): void {
    const kinds = this.#placesOf(target, folders);
    const isWhole = kinds.some(isPrecious);
    if (isRecursive && isWhole) this.destroys ??= target.written;
    if (isGuess && !isWhole) return;
    if (isWhole || kinds.includes('outside')) this.#add('deletes-outside', target.written);
    else if (kinds.includes('unknown')) this.#add('deletes-unknown');
    else if (isRecursive) this.#add('deletes-folder', target.written);
  }

  /** Finds a move of the whole system or home folder, and a change of rights in all of the system. */
  #change(operands: readonly ReadWord[], name: string, { folders }: ReadCommand): void {
    const isMove = name === 'mv';
    const isRecursive = operands.some(({ values: [flag = ''] }) => /^-\w*R|^--recursive/.test(flag));
    if (!isMove && !isRecursive) return;
    for (const word of isMove ? operands.slice(0, -1) : operands) {
      const kinds = this.#placesOf(word, folders);
      if (kinds.includes('system') || (isMove && kinds.includes('home'))) this.destroys ??= word.written;
    }
  }

  #placesOf({ written, values }: ReadWord, folders: readonly string[]): PlaceKind[] {
    // The home folder of another user.
    if (/^~[\w.-]+\/?\**$/.test(written)) return ['home'];
    this.#places += values.length * folders.length;
    if (this.#places > mostPlaces) {
      this.#add('unread');
      return ['unknown'];
    }
    return values.flatMap(value => folders.map(folder => placeOf(value, folder, this.#around)));
  }

  #find(operands: readonly ReadWord[], { folders }: ReadCommand): void {
    const texts = operands.map(({ values: [one = ''] }) => one);
    const runs = texts.some(
      (word, at) =>
        /^(?:-exec|-execdir|-ok|-okdir|-x|-X|--exec)/.test(word) &&
        /^(?:rm|shred|unlink)$/.test(programName(texts[at + 1])),
    );
    if (!texts.includes('-delete') && !runs) return;
    const first = texts.findIndex(word => /^[-(!]/.test(word) && !/^-[HLP]$/.test(word));
    const places = operands
      .slice(0, first < 0 ? undefined : first)
      .filter(({ values }) => !/^-/.test(values[0] ?? ''));
    const isNarrow = texts.some(
      (word, at) =>
        /^-(?:i?name|i?path|i?regex|size|[amc]time|[amc]min|newer\w*|empty|user|group|perm|inum|links)$/.test(
          word,
        ) && !/^[*\ue001]*$/.test(texts[at + 1] ?? ''),
    );
    for (const place of places.length > 0 ? places : [{ written: '.', values: ['.'] }]) {
      const kinds = this.#placesOf(place, folders);
      if (kinds.some(isPrecious) && !isNarrow) this.destroys ??= place.written;
      const isInside = kinds.every(kind => kind === 'inside');
      this.#add(isInside ? 'deletes-found' : 'deletes-outside', place.written);
    }
  }

  #kill(name: string, operands: readonly ReadWord[]): void {
    const texts = operands.map(({ written }) => written);
    const named = texts.filter(word => !/^[-/]/.test(word));
    if (/^(?:killall5?|pkill|skill|stop-process)$/.test(name)) this.#add('kills', named.at(-1) ?? name);
    else if (name === 'taskkill' && texts.some(word => /^[-/]im$/i.test(word)))
      this.#add('kills', named.at(-1) ?? name);
    else if (name === 'fuser' && texts.some(word => /^-\w*k/.test(word)))
      this.#add('kills', named.at(-1) ?? name);
    else if (name === 'kill' && !texts.some(word => /^-[lL]$/.test(word))) {
      const isChosen = operands.some(({ values }) => values.some(isOpen));
      // To xargs, the numbers come from another program. -1 is every process.
      if (isChosen || texts.slice(1).includes('-1') || named.length === 0) this.#add('kills-chosen');
    }
  }
}

const isOpen = (word: string): boolean => word.includes(signs.any);

/** Returns a program's name without its folder and ending, in small letters. */
export const programName = (word = ''): string =>
  word
    .slice(Math.max(word.lastIndexOf('/'), word.lastIndexOf('\\')) + 1)
    .replace(/\.exe$/i, '')
    .toLowerCase();

const raisedDownload = (words: readonly string[]): boolean =>
  carriers.test(programName(words[0])) && words.some(word => downloaders.test(programName(word)));

/** Returns the command, and behind a program that runs another one everything that could be the other. */
export function behindCarriers(words: readonly ReadWord[]): (readonly ReadWord[])[] {
  if (words.length === 0) return [];
  if (!carriers.test(programName(words[0]?.values[0]))) return [words];
  return [
    words,
    ...words.slice(1, 40).flatMap((word, at) => (/^[-+]/.test(word.written) ? [] : [words.slice(at + 1)])),
  ];
}

/** By program: the words after it that publish. The list is empty if the program does nothing else; an empty word is the program alone. */
const publishing: Readonly<Record<string, readonly string[]>> = programs.publish;

/** Returns the words that publish, such as `npm publish`; undefined for a command that does not, or only tries. */
function publishedBy(name: string, texts: readonly string[]): string | undefined {
  const words = Object.hasOwn(publishing, name) ? publishing[name] : undefined;
  const wanted = words && new RegExp(`^(?:${words.map(one => (one ? `${one}\\b` : '$')).join('|')})`);
  if (
    !wanted ||
    texts.some(word => /^(?:--dry-run|--help|-h|--snapshot|--skip-publish)(?:=true)?$/.test(word))
  )
    return undefined;
  const own = texts.filter(word => !word.startsWith('-'));
  const found = wanted.exec(own.slice(0, 2).join(' '));
  // A flag with a value may be before the command.
  const later = own.slice(1).find(word => words.length > 0 && wanted.test(word) && texts[0]?.startsWith('-'));
  return found ? [name, found[0]].filter(Boolean).join(' ') : later && `${name} ${later}`;
}
