/** Watches one command: what it changed in the working folder, with the old bytes, and the way back for some of it at once. */
import { createHash } from 'node:crypto';
import { readlinkSync } from 'node:fs';
import { sep } from 'node:path';
import { grouped } from '../../protocol/text.ts';
import { takingTurns } from '../cancellation.ts';
import { openRegularFile, readRegularFile, readWholeFile, smallFile } from '../files/openFile.ts';
import { describeFileError } from '../files/paths.ts';
import type { ProgramPlaces } from '../tools/programPath.ts';
import {
  type FileHistory,
  type FolderLine,
  hashOf,
  type LeftFile,
  type LookedLine,
  type OldFile,
  type WriteLine,
} from './changeFile.ts';
import type { Entry } from './folderView.ts';
import { bringBack } from './undo.ts';
import type { CommandChange, CommandChanges, FolderWatch, SettingChange } from './watchedFolder.ts';

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
  /** Set for a setting or hook of a repository. Undo leaves those alone. */
  isGit?: true;
  /** Its first bytes by now, for a setting of Git. */
  bytes?: Buffer;
  oldBytes?: Buffer;
}

/** What the watch needs of the run's changes. */
interface RunBytes {
  /** Folder with the old bytes. */
  folder: string;
  keepBytes(bytes: Buffer): string;
  addProblem(problem: string): void;
  write(lines: readonly (WriteLine | FolderLine)[], facts: Pick<LookedLine, 'git' | 'leftOut'>): void;
}

/** Maximum number of files of one command that are recorded. */
const mostRecorded = 100_000;
const tooMuch = `The command changed more than ${grouped(mostRecorded)} files. That cannot be undone.`;

export class CommandWatch {
  readonly #watch: FolderWatch;
  readonly #run: RunBytes;
  #found: CommandChanges | undefined;
  #changes: readonly KeptChange[] = [];
  #isTooMuch = false;

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
   * when no process of the command lives any more, or with `goesOn` while one does, and then again.
   */
  async end({ goesOn = false } = {}): Promise<readonly KeptChange[] | undefined> {
    try {
      const found = await this.#watch.end(goesOn);
      this.#isTooMuch = found.files.length > mostRecorded;
      if (this.#isTooMuch) this.#run.addProblem(tooMuch);
      this.#changes = [...(await this.#keep(found.files)), ...found.settings.map(one => this.#setting(one))];
      this.#found = found;
      return this.#changes;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#run.addProblem(`What the command changed cannot be undone: ${why}.`);
      return undefined;
    }
  }

  /**
   * Puts files back to what they were before the command. What was changed meanwhile stays. Returns a sentence for each file that
   * could not be put back.
   */
  async putBack(changes: readonly KeptChange[]): Promise<string[]> {
    const paths = changes.map(({ path }) => path);
    const problems: string[] = [];
    // What is in the way comes first. Each file for itself: none may keep the others from their places.
    const sorted = [...changes].sort(
      (one, other) => (one.before ? 1 : 0) - (other.before ? 1 : 0) || other.path.length - one.path.length,
    );
    for (const { path, before, after } of sorted)
      problems.push(...(await this.#bring({ path, before, left: [after] })));
    const around = [...(this.#found?.folders ?? [])].flatMap(([path, { before, after }]) =>
      paths.some(one => one.startsWith(`${path}${sep}`)) ? [{ path, before, after }] : [],
    );
    const { problem } = await bringBack([], around);
    return problem === undefined ? problems : [...problems, problem];
  }

  async #bring(file: Pick<FileHistory, 'path' | 'before' | 'left'>): Promise<string[]> {
    try {
      const { folder } = this.#run;
      const { problem } = await bringBack([{ ...file, folder, isMixed: false, made: [] }]);
      return problem === undefined ? [] : [problem];
    } catch (error) {
      return [describeFileError(error, file.path)];
    }
  }

  /** Keeps what the command left, so that `putAgain` finds it. What is too large, or changes meanwhile, is not kept. */
  async keepNew(changes: readonly KeptChange[]): Promise<void> {
    for (const { path, after } of changes) {
      if (after?.sha256 === undefined) continue;
      const bytes = await readWholeFile(path).catch(() => undefined);
      if (bytes) this.#run.keepBytes(bytes);
    }
  }

  /** Makes files again what the command left, after `putBack`. Returns sentences as that does. */
  async putAgain(changes: readonly KeptChange[]): Promise<string[]> {
    const problems: string[] = [];
    for (const { path, before, after } of changes) {
      const wanted = after && !after.isFolder ? { ...after, mode: after.mode ?? 0o644 } : null;
      problems.push(...(await this.#bring({ path, before: wanted, left: [before] })));
    }
    return problems;
  }

  /** Records what the command changed, but for the files that were put back. Returns the paths of the files that were changed. */
  record(putBack: ReadonlySet<string>): string[] {
    if (!this.#found || !this.#watch.seesContent || this.#isTooMuch) return [];
    const { folders, movedHead, leftOut } = this.#found;
    const at = new Date().toISOString();
    const writes = this.#changes.flatMap(({ path, before, after, isGit }): WriteLine[] =>
      isGit || putBack.has(path) ? [] : [{ type: 'write', at, path, before, after }],
    );
    const changed = writes.map(({ path }) => path);
    writes.push(...this.#found.state.map(one => this.#stateLine(one, at)));
    const made = [...folders].map(([path, modes]) => ({ type: 'folder', at, path, ...modes }) as const);
    this.#run.write([...writes, ...made], {
      ...(movedHead && { git: true }),
      ...(leftOut.size > 0 && { leftOut: [...leftOut.keys()].slice(0, 20) }),
    });
    return changed;
  }

  #stateLine({ path, before, after }: SettingChange, at: string): WriteLine {
    const facts = ({ mode, bytes }: NonNullable<SettingChange['before']>, sha256?: string): OldFile => ({
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
      if (left === 'special')
        this.#run.addProblem(`${path} is not a regular file; undoing the run leaves it.`);
      else
        changes.push({ path, before: before && oldFile(before, kept.get(before.blob ?? '')), after: left });
    }
    return changes;
  }

  #setting({ path, before, after }: SettingChange): KeptChange {
    const facts = ({ mode, link, bytes }: NonNullable<SettingChange['before']>): OldFile =>
      link === undefined
        ? { size: bytes?.length ?? 0, mode, ...(bytes && { sha256: this.#run.keepBytes(bytes) }) }
        : { size: 0, mode, link };
    return {
      path,
      before: before ? facts(before) : null,
      after: after ? facts(after) : null,
      isGit: true,
      ...(after?.bytes && { bytes: after.bytes }),
      ...(before?.bytes && { oldBytes: before.bytes }),
    };
  }
}

type Kept = Pick<OldFile, 'size' | 'sha256' | 'link'>;

function oldFile({ kind, size, mode }: NonNullable<CommandChange['before']>, kept?: Kept): OldFile {
  if (kind === 'link') return { size: 0, mode, ...(kept?.link !== undefined && { link: kept.link }) };
  return kept?.sha256 === undefined ? { size, mode } : { size: kept.size, mode, sha256: kept.sha256 };
}

/** In bytes. A larger file, which may be nothing but holes, would take minutes; that it is as the command left it is not known then. */
const mostHashed = 1024 ** 3;

async function leftAt(path: string, entry: Entry | null): Promise<LeftFile | null | 'special'> {
  if (!entry) return null;
  const { kind, mode, size } = entry;
  if (kind === 'special') return 'special';
  if (kind === 'folder') return { size: 0, isFolder: true };
  if (kind === 'file' && size > mostHashed) return null;
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
    return null;
  }
}
