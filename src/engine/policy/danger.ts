/** Reads from the words of a command what a person should know before it runs, and what no answer allows. */
import { basename } from 'node:path';
import { type Danger, type DangerKind, dangerKinds } from '@telos/protocol/run';
import { beginningOf } from '@telos/protocol/text';
import {
  behindCarriers,
  firstValues,
  isCarrier,
  isCut,
  isOpen,
  linesGiven,
  mostBehind,
  programName,
  readingsOf,
  wordsPrinted,
} from './carriedCommands.ts';
import { linesThatRun, type ReadCommand, type ReadLine, type ReadWord } from './commandReach.ts';
import {
  acts,
  deleters,
  deletesFound,
  endedBy,
  isFormatting,
  isNarrowFind,
  mirroredPlace,
  publishedBy,
  raisesRights,
  runsFetched,
  shells,
  takesRights,
} from './dangerWords.ts';
import { gitDangers } from './gitCommands.ts';
import {
  foldedPath,
  isPrecious,
  type PlaceKind,
  placeOf,
  plainSegments,
  type Surroundings,
  writtenSegments,
} from './reach.ts';
import { signs } from './shellSigns.ts';

export { behindCarriers, programName };

export interface CommandDanger {
  /** All of them, worst first: decisions read this list. Empty for a command that says nothing dangerous. */
  dangers: readonly Danger[];
  /** The part of the system or of the home folder that it would destroy. Such a command is refused. */
  destroys?: string;
}

/** A person is shown no more than this many dangers. */
export const mostShown = 3;
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
  const dangers = [...reader.found.values()].sort((a, b) => rank(a) - rank(b));
  return { dangers, ...(reader.destroys !== undefined && { destroys: reader.destroys }) };
}

/**
 * Returns the dangers that a person is shown: first those that made the decision ask, and one of each kind before a second one of any.
 * No decision reads this list.
 */
export function shownDangers(
  dangers: readonly Danger[],
  isDecisive: (danger: Danger) => boolean,
): readonly Danger[] {
  const seen = new Set<DangerKind>();
  const places = dangers.map(danger => {
    const isSecond = seen.has(danger.kind);
    seen.add(danger.kind);
    return { danger, order: (isDecisive(danger) ? 0 : 2) + (isSecond ? 1 : 0) };
  });
  const first = places.sort((a, b) => a.order - b.order).slice(0, mostShown);
  return first.map(({ danger: { kind, values } }) => ({ kind, values: values.map(shortName) }));
}

const shortName = (name: string): string =>
  name.length > longestName ? `${beginningOf(name, longestName)}…` : name;

const rank = ({ kind }: Danger): number => dangerKinds.indexOf(kind);

const interpreters =
  /^(?:python[\d.]*|node|deno|bun|perl|ruby|php|lua|osascript|pwsh|powershell|iex|invoke-expression)$/;
const downloaders =
  /^(?:curl|wget|aria2c|https?|xh|fetch|iwr|irm|invoke-webrequest|invoke-restmethod|gh|scp|lynx)$/;
/** Programs that can destroy what they are given. */
const worst =
  /^(?:rm|srm|shred|rd|remove-item|rimraf|find|mv|chmod|chown|rsync|dd|tee|mkfs\S*|wipefs|blkdiscard)$/;
/** Flags with which the program only tells its version or its use. To a shell and to Python, `-v` means to tell what they run. */
const tellsOnly = (name: string): RegExp =>
  shells.test(name)
    ? /^--(?:version|help)$/
    : name.startsWith('python')
      ? /^(?:-V+|-h|--version|--help)$/
      : /^(?:-v|-h|--version|--help)$/i;
/** Programs that pass words of their input on. */
const feeders = /^(?:xargs|parallel)$/;
/** Programs that show or search what follows them, or run it on another system than this one. */
const runsNothingHere =
  /^(?:echo|printf|say|man|which|type|test|\[|\[\[|:|true|[efz]?grep|rg|ag|sed|docker|docker-compose|podman|nerdctl|kubectl|oc|lxc|incus|multipass|adb|vagrant)$/;
/** Raw disks and their partitions. */
const disk =
  /^\/dev\/(?:r?disk\d|[shv]d[a-z]|xvd[a-z]|nvme\d|mmcblk\d|dm-\d|md\d|mapper\/|loop\d|mem$|kmem$|sd$|disk\/)|^\\\\\.\\physicaldrive/i;
/** A home folder of anyone. */
const homeFolder = /^\/(?:(?:var\/|export\/)?home|users)\/[^/]+\/$/;

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
    this.found.set([kind, ...values].join('\0'), { kind, values });
  }

  #line({ commands, inner, heredocs }: ReadLine, depth: number): void {
    const downloads = inner.some(text => this.#downloads(text));
    const printed = inner.map(text => this.#printedBy(text)).filter(words => words.length > 0);
    let piped: ReadCommand[] = [];
    for (const command of commands) {
      if (!command.isPiped) piped = [];
      for (const reading of readingsOf(command.words, printed)) {
        if (isCut(reading)) this.#add('unread');
        this.#behindUnknown(reading, command);
        for (const words of behindCarriers(reading)) {
          const isFed = reading
            .slice(0, -words.length)
            .some(({ values }) => /^(?:xargs|parallel|find|fd|fdfind)$/.test(programName(values[0])));
          this.#command(words, command, depth, isFed);
          this.#runner(
            words,
            command,
            piped.map(one => firstValues(one.words)),
            heredocs,
            downloads,
            depth,
          );
          if (isFed) this.#fed(words, command, piped);
        }
      }
      for (const { values, isWritten } of command.redirections)
        if (isWritten && values.some(value => disk.test(value))) this.#device(values[0] ?? '');
      piped.push(command);
      this.#save(command);
    }
  }

  /** Returns what a substitution prints, if that is in its words. */
  #printedBy(text: string): readonly ReadWord[] {
    const { folder, home } = this.#around;
    const lines = linesThatRun(text, folder, home) ?? [];
    return lines[0]?.commands.flatMap(({ words }) => wordsPrinted(words)) ?? [];
  }

  /** Reads what `xargs` and its like pass to a program that deletes: the words of `echo`, or what `find` finds. */
  #fed(words: readonly ReadWord[], command: ReadCommand, piped: readonly ReadCommand[]): void {
    const isFedByPipe = command.words.some(({ values }) => feeders.test(programName(values[0])));
    const name = programName(words[0]?.values[0]);
    if (!isFedByPipe || !deleters.test(name)) return;
    const [source, ...between] = piped;
    const [program, ...operands] = source?.words ?? [];
    const from = programName(program?.values[0]);
    if (source && /^(?:find|fd|fdfind)$/.test(from)) {
      const isFiltered = between.some(
        one => !/^(?:sort|tac|tr|cat|uniq|shuf)$/.test(programName(one.words[0]?.values[0])),
      );
      this.#foundIn(operands, from, isFiltered, source);
    } else if (/^(?:echo|printf)$/.test(from))
      this.#delete([...words.slice(1), ...operands], name, command, true);
    else this.#add('deletes-unknown');
  }

  /** Not every program that runs others is known. What would be destroyed behind any word is refused, and nothing else is said. */
  #behindUnknown(words: readonly ReadWord[], command: ReadCommand): void {
    if ((isCarrier(words) && !isCut(words)) || runsNothingHere.test(programName(words[0]?.values[0]))) return;
    const places = words.flatMap(({ values: [first = ''] }, at) =>
      at > 0 && worst.test(programName(first)) ? [at] : [],
    );
    for (const at of places.slice(0, mostBehind(words))) {
      const probe = new DangerReader(this.#around);
      probe.#places = this.#places;
      probe.#command(words.slice(at), command, deepestText, false);
      this.#places = probe.#places;
      this.destroys ??= probe.destroys;
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
    const [program = '', ...operands] = firstValues(words);
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
    if (!isBare || operands.some(word => tellsOnly(name).test(word))) return;
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
    const texts = firstValues(words);
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

  #command(words: readonly ReadWord[], command: ReadCommand, depth: number, isFed: boolean): void {
    const [first, ...operands] = words;
    const name = programName(first?.values[0]);
    const texts = firstValues(operands);
    if (raisesRights(name, texts)) this.#add('privilege', name);
    for (const line of linesGiven(name, operands)) this.read(line, depth + 1);
    if (isOpen(name) || deleters.test(name)) this.#delete(operands, name, command, isFed);
    if (/^(?:mv|chmod|chown|chgrp)$/.test(name)) this.#change(operands, name, command);
    if (/^(?:find|fd|fdfind)$/.test(name) && deletesFound(texts))
      this.#foundIn(operands, name, false, command);
    const mirrored = mirroredPlace(name, texts, operands);
    if (mirrored) this.#mirrored(mirrored, command);
    if (isFormatting(name, texts)) this.#format(texts, name);
    this.#devices(name, texts);
    const [, verb] = /^git(?:-(.+))?$/.exec(name) ?? [];
    if (/^git(?:-|$)/.test(name))
      for (const { kind, values } of gitDangers(verb === undefined ? texts : [verb, ...texts]))
        this.#add(kind, ...values);
    if (name === 'bfg') this.#add('rewrites-history');
    const ended = endedBy(name, operands);
    if (ended) this.#add(ended.kind, ...ended.values);
    const publishing = publishedBy(name, texts);
    if (publishing) this.#add('publishes', publishing);
    if (runsFetched(name, texts, command.folders)) this.#add('runs-download');
  }

  #devices(name: string, texts: readonly string[]): void {
    if (/^(?:dd|tee|cp|shred|truncate|diskutil)$/.test(name))
      for (const word of texts)
        if (disk.test(word.replace(/^of=/, '')) && !/^if=/.test(word)) this.#device(word.replace(/^of=/, ''));
    if (name === 'dd')
      for (const word of texts)
        if (disk.test(word.replace(/^if=/, ''))) this.#add('device', word.replace(/^if=/, ''));
  }

  #format(texts: readonly string[], name: string): void {
    const target = texts.findLast(word => !word.startsWith('-'));
    this.#add('formats', target ?? name);
    const lost = texts.find(
      word => disk.test(word) || /^[a-z]:$/i.test(word) || (name === 'diskutil' && /^r?disk\d/.test(word)),
    );
    if (lost !== undefined) this.destroys ??= lost;
  }

  #delete(operands: readonly ReadWord[], name: string, { folders }: ReadCommand, isFed: boolean): void {
    const flags = operands
      .filter(({ values }) => /^-|^\/[a-z]$/i.test(values[0] ?? ''))
      .flatMap(({ values }) => values);
    const isOfSystem = flags.includes('--no-preserve-root');
    const isRecursive =
      name === 'rimraf' || isOfSystem || flags.some(flag => /^-[a-z]*r|^--recursive|^\/s$/i.test(flag));
    // No usual program but rm has both as one flag.
    const isGuess = isOpen(name) && !flags.some(flag => /^-\w*(?:r\w*f|f\w*r)\w*$/i.test(flag));
    if (isOpen(name) && !isRecursive) return;
    const isPlaceholder = ({ written }: ReadWord): boolean => isFed && /^(?:\{.{0,2}\}|[%@_])$/.test(written);
    const targets = operands.filter(word => !flags.includes(word.values[0] ?? '') && !isPlaceholder(word));
    if (targets.length === 0 && isRecursive && !isOpen(name) && !isFed) this.#add('deletes-unknown');
    if (isOfSystem) this.destroys ??= '/';
    for (const target of targets) {
      this.#target(target, isRecursive, folders, isGuess);
      if (/^trash/.test(name) && this.#placesOf(target, folders).some(isPrecious))
        this.destroys ??= target.written;
    }
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

  /** Finds a move of the whole system or home folder, and a change of rights after which they cannot be used. */
  #change(operands: readonly ReadWord[], name: string, { folders }: ReadCommand): void {
    const texts = firstValues(operands);
    const isMove = name === 'mv';
    if (!isMove && !texts.some(flag => /^-\w*R|^--recursive/.test(flag))) return;
    const isTargetFirst = texts.some(flag => /^-\w*t$|^--target-directory/.test(flag));
    const isLost = isMove || takesRights(name, texts);
    for (const word of isMove && !isTargetFirst ? operands.slice(0, -1) : operands) {
      const kinds = this.#placesOf(word, folders);
      if (kinds.includes('system') || (isLost && kinds.includes('home'))) this.destroys ??= word.written;
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
    return values.flatMap(value => folders.map(folder => this.#placeOf(value, folder)));
  }

  #placeOf(value: string, folder: string): PlaceKind {
    const kind = placeOf(value, folder, this.#around);
    if (kind !== 'outside' || value.includes(signs.any)) return kind;
    const path = foldedPath(plainSegments(writtenSegments(value, writtenSegments(folder))));
    return homeFolder.test(path.replace(/\/[.\ue001\ue002]*[\ue001\ue002][.\ue001\ue002]*\/$/, '/'))
      ? 'home'
      : kind;
  }

  /** Names what is deleted of what `find` finds. */
  #foundIn(operands: readonly ReadWord[], name: string, isFiltered: boolean, { folders }: ReadCommand): void {
    const texts = firstValues(operands);
    const end = texts.findIndex(word =>
      name === 'find' ? /^[-(!]/.test(word) && !/^-[HLP]$/.test(word) : acts.test(word),
    );
    const places = operands
      .slice(0, end < 0 ? undefined : end)
      .filter(({ values }) => !/^-/.test(values[0] ?? ''));
    const isNarrow = isFiltered || isNarrowFind(texts, this.#around.home);
    for (const place of places.length > 0 ? places : [{ written: '.', values: ['.'] }]) {
      const kinds = this.#placesOf(place, folders);
      if (kinds.some(isPrecious) && !isNarrow) this.destroys ??= place.written;
      const isInside = kinds.every(kind => kind === 'inside');
      this.#add(isInside ? 'deletes-found' : 'deletes-outside', place.written);
    }
  }

  /** Names what a copy deletes that is not in its source, which can be all there is. */
  #mirrored(place: ReadWord, { folders }: ReadCommand): void {
    const isRemote = /^[^/]+:/.test(place.written);
    const kinds = isRemote ? ['outside' as const] : this.#placesOf(place, folders);
    if (kinds.some(isPrecious)) this.destroys ??= place.written;
    this.#add(kinds.every(kind => kind === 'inside') ? 'deletes-found' : 'deletes-outside', place.written);
  }
}

const raisedDownload = (words: readonly string[]): boolean =>
  isCarrier(words.map(word => ({ written: word, values: [word] }))) &&
  words.some(word => downloaders.test(programName(word)));
