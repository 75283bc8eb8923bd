/** Watches one command that works in the folder itself: which files it changed, with their old bytes. */
import { createHash } from 'node:crypto';
import { readlinkSync } from 'node:fs';
import { sep } from 'node:path';
import { takingTurns } from '../cancellation.ts';
import { openRegularFile, readRegularFile, smallFile } from '../files/openFile.ts';
import type { ProgramPlaces } from '../tools/programPath.ts';
import {
  type FolderLine,
  hashOf,
  type LeftFile,
  type LookedLine,
  mostHashed,
  mostRecorded,
  type OldFile,
  tooManyFiles,
  type WriteLine,
} from './changeFile.ts';
import type { CommandChange, CommandChanges, StateChange } from './folderChanges.ts';
import { type Entry, entryAt } from './folderView.ts';
import { leftKey, type OthersWrites, othersWrites } from './othersWrites.ts';
import type { FolderWatch } from './watchedFolder.ts';

/** Where a command is about to run. */
export interface CommandPlace extends ProgramPlaces {
  /** The folder that is looked at. Absolute. */
  workingDir: string;
  /** Whether the command has the person's own rights, and so may change something elsewhere. */
  outside: boolean;
  signal: AbortSignal;
  onProgress?: (message: string) => void;
}

/** Looks at a working folder. Throws UnseenFolder if that is not possible, and the abort reason. */
export type WatchFolder = (place: CommandPlace) => Promise<FolderWatch>;

/** A file or link that a command changed. */
export interface KeptChange {
  /** Absolute and real path. */
  path: string;
  /** Null if there was none. */
  before: OldFile | null;
  /** Null if there is none any more. */
  after: LeftFile | null;
}

/** What keeps the changes of a run's commands. */
export interface RunBytes {
  /** Folder with the old bytes. */
  folder: string;
  keepBytes(bytes: Buffer): string;
  addProblem(problem: string): void;
  /** Reports that little is kept of the working folder. Only the first time in a run. */
  addLittle(why: string): void;
  write(
    lines: readonly (WriteLine | FolderLine)[],
    facts: Pick<LookedLine, 'git' | 'leftOut' | 'repositories'>,
  ): void;
}

/** Stands for a file that may be all that is left of what was not kept: undo leaves it. */
const unknownOld: OldFile = { size: 0, mode: 0o644 };

const leavesNew = ([first = '', ...others]: readonly string[]): string =>
  `The command moved files of which no other copy is kept, or removed them: ${first}${others.length > 0 ? ` (+${others.length})` : ''}. Undoing the run leaves what may be the only copy.`;

export class CommandWatch {
  readonly #watch: FolderWatch;
  readonly #run: RunBytes;
  #found: CommandChanges | undefined;
  #changes: readonly KeptChange[] = [];
  #isTooMuch = false;
  readonly #begun = Date.now();
  #others: OthersWrites = new Map();

  /** New files that were moved from where nothing is kept. */
  #moved = new Set<string>();
  /** Changed files whose bytes cannot be told by a hash: too large to be read, or not readable. */
  readonly #unread = new Map<string, Entry>();

  /** The working folder. Absolute and real path. */
  get root(): string {
    return this.#watch.root;
  }

  constructor(watch: FolderWatch, run: RunBytes) {
    this.#watch = watch;
    this.#run = run;
  }

  /**
   * Returns the files that the command changed, and keeps their old bytes. Returns undefined if what it changed is not known. Call it
   * when no process of the command lives any more.
   */
  async end(): Promise<readonly KeptChange[] | undefined> {
    try {
      const found = await this.#watch.end();
      const why = found.leftOut.get(this.root);
      if (why !== undefined) this.#run.addLittle(why);
      this.#isTooMuch = found.files.length > mostRecorded;
      if (this.#isTooMuch) this.#run.addProblem(tooManyFiles);
      this.#unread.clear();
      this.#changes = await this.#keep(found.files);
      this.#moved = new Set(found.files.flatMap(({ path, isMoved }) => (isMoved ? [path] : [])));
      this.#found = found;
      this.#others = othersWrites(this.#run.folder, this.#begun);
      return this.#changes;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#run.addProblem(`What the command changed cannot be undone: ${why}.`);
      return undefined;
    }
  }

  /** Records what the command changed, without what others wrote meanwhile. Returns the paths of the files that were changed. */
  record(): string[] {
    if (!this.#found || !this.#watch.seesContent || this.#isTooMuch) return [];
    const { folders, movedHead, leftOut, vanished, madeRepositories } = this.#found;
    const at = new Date().toISOString();
    const isOnly = (path: string): boolean => vanished.length > 0 || this.#moved.has(path);
    const only = this.#changes.filter(({ path, before }) => before === null && isOnly(path));
    if (only.length > 0) this.#run.addProblem(leavesNew(vanished.length > 0 ? vanished : [...this.#moved]));
    const writes = this.#changes.flatMap(({ path, before, after }): WriteLine[] => {
      const ofOthers = this.#others.get(path);
      if (ofOthers?.has(leftKey(after))) return [];
      // What was there between the two is not known.
      const old = ofOthers ? unknownOld : (before ?? (isOnly(path) ? unknownOld : null));
      return [{ type: 'write', at, path, before: old, after: this.#unread.has(path) ? null : after }];
    });
    const changed = writes.map(({ path }) => path);
    writes.push(...this.#found.state.map(one => this.#stateLine(one, at)));
    const made = [...folders].map(([path, modes]) => ({ type: 'folder', at, path, ...modes }) as const);
    this.#run.write([...writes, ...made], {
      ...(movedHead && { git: true }),
      ...(leftOut.size > 0 && { leftOut: [...leftOut.keys()].slice(0, 20) }),
      ...(madeRepositories.length > 0 && { repositories: madeRepositories.slice(0, 20) }),
    });
    return changed;
  }

  #stateLine({ path, before, after }: StateChange, at: string): WriteLine {
    const facts = ({ mode, bytes }: NonNullable<StateChange['before']>, sha256?: string): OldFile => ({
      size: bytes?.length ?? 0,
      mode,
      ...(sha256 !== undefined && { sha256 }),
    });
    const from = path.startsWith(this.root + sep) ? this.root.length : 0;
    const end = path.toLowerCase().indexOf(`${sep}.git${sep}`, from) + 5;
    return {
      type: 'write',
      at,
      path,
      git: path.slice(0, end),
      before: before ? facts(before, before.bytes && this.#run.keepBytes(before.bytes)) : null,
      after: after ? facts(after, after.bytes && hashOf(after.bytes)) : null,
    };
  }

  async #keep(files: readonly CommandChange[]): Promise<KeptChange[]> {
    const kept = new Map<string, Kept>();
    const links = new Set(
      files.flatMap(({ before }) => (before?.kind === 'link' && before.blob ? [before.blob] : [])),
    );
    const blobs = [...new Set(files.flatMap(({ before }) => before?.blob ?? []))];
    const turn = takingTurns();
    await this.#watch.contents(blobs, async (blob, bytes) => {
      const target = bytes && links.has(blob) ? bytes.toString() : undefined;
      const link =
        target !== undefined && Buffer.from(target).equals(bytes ?? Buffer.alloc(0)) ? target : undefined;
      if (bytes)
        kept.set(blob, {
          size: bytes.length,
          sha256: this.#run.keepBytes(bytes),
          ...(link !== undefined && { link }),
        });
      await turn();
    });
    const changes: KeptChange[] = [];
    for (const { path, before, after } of files) {
      const left = await leftAt(path, after);
      await turn();
      if (left === 'unread' && after) this.#unread.set(path, after);
      if (left === 'special')
        this.#run.addProblem(`${path} is not a regular file; undoing the run leaves it.`);
      else
        changes.push({
          path,
          before: before && oldFile(before, kept.get(before.blob ?? '')),
          after: left === 'unread' ? unread(after) : left,
        });
    }
    return changes;
  }
}

type Kept = Pick<OldFile, 'size' | 'sha256' | 'link'>;

function oldFile({ kind, size, mode }: NonNullable<CommandChange['before']>, kept?: Kept): OldFile {
  if (kind === 'link') return { size: 0, mode, ...(kept?.link !== undefined && { link: kept.link }) };
  return kept?.sha256 === undefined ? { size, mode } : { size: kept.size, mode, sha256: kept.sha256 };
}

/** What is known of a file that was not read. */
const unread = (entry: Entry | null): LeftFile => ({ size: entry?.size ?? 0, mode: entry?.mode ?? 0 });

async function leftAt(path: string, entry: Entry | null): Promise<LeftFile | null | 'special' | 'unread'> {
  if (!entry) return null;
  const { kind, mode, size } = entry;
  if (kind === 'special') return 'special';
  if (kind === 'folder') return { size: 0, isFolder: true };
  if (kind === 'unseen' || (kind === 'file' && size > mostHashed)) return 'unread';
  try {
    if (kind === 'link') return { size: 0, mode, link: readlinkSync(path) };
    const hash = createHash('sha256');
    if (size <= smallFile)
      return { size, mode, sha256: hash.update(readRegularFile(path, size + 1).bytes).digest('hex') };
    const { handle } = await openRegularFile(path);
    // The stream closes the file.
    for await (const chunk of handle.createReadStream()) hash.update(chunk);
    return { size, mode, sha256: hash.digest('hex') };
  } catch {
    return entryAt(path) ? 'unread' : null;
  }
}
