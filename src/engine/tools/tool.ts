/** Defines the contract of a tool: what a model can call, what a call gets, and the path that a file tool works on. */

import { existsSync, lstatSync, realpathSync, statSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, isAbsolute, join, relative, resolve } from 'node:path';
import type { FormContent } from '@telos/protocol/form';
import type { ToolResult } from '@telos/protocol/run';
import type { Sentence } from '@telos/protocol/text';
import { expandPath } from '../config.ts';
import type { ToolDefinition } from '../core/ports.ts';
import type { WriteKeeper } from '../files/atomicWrite.ts';
import { errorCode, folderHolding, isInside, PathProblem, realPlace, resolvePath } from '../files/paths.ts';
import type { BackgroundCommand, BackgroundCommands } from './background.ts';

/** The folders and limits of one run, the same for all of its calls. */
export interface RunFolders {
  /** Root of the file tools, created at the first write. Absolute. */
  workingDir: string;
  /** The agent's own folder; readable. Absolute. */
  packDir: string;
  /** The folder of the skill that runs; readable. Absolute. */
  skillDir: string;
  /** The name that the skill's own file gives it, if its folder has another: the one that its author's folder has. */
  skillName?: string;
  /** Folder in which commands run. Absolute. */
  commandDir: string;
  /** Folder in which a command runs that, as it is written, names files of the pack. Absolute. Missing if that is `commandDir`, too. */
  scriptDir?: string;
  /** The current folder; readable. Absolute. Missing if that is the home folder, or contains it. */
  personDir?: string;
  /** Further readable folders. Absolute. */
  alsoReadable?: readonly string[];
  /**
   * Working folders of any agent, the folder of the call, the workspace. Programs in them are not found by name. Absolute.
   */
  workFolders?: readonly string[];
  /** Where the plugin keeps what is its own; read and written. Absolute, made by its first command. Missing if the pack is no plugin. */
  pluginData?: string;
  /** Folders in which commands of the box find others than those of their path. */
  standIns?: readonly StandIn[];
}

/** A folder that commands in the box have at a path, in place of the one that is there outside of it. Both are absolute. */
export interface StandIn {
  path: string;
  /** Where it is outside of the box. It need not be there yet. */
  place: string;
}

export interface ToolContext extends RunFolders {
  /** The whole environment of a command. It contains no provider keys. */
  env: Readonly<Record<string, string>>;
  signal: AbortSignal;
  /**
   * The subject that was decided on or approved for this call: a real path, a normalized address, or a command. The tool
   * then does exactly that, even outside the folders. It refuses if the call means something else by now.
   */
  approvedSubject?: string;
  /** For a command: the folder that was decided on with it. Real and absolute. */
  approvedFolder?: string;
  /** For a command: the line to start in its place, written from the words that were decided on. */
  approvedLine?: string;
  /** Telos's own folders. Searches skip them, since the policy lets no call read in them. Absolute and real. */
  protectedDirs?: readonly string[];
  /** For a command: encloses it. Missing for one that runs with the person's own rights. */
  box?: CommandBox;
  /** For a boxed command: asks if it may reach a host. Missing if it needs none. */
  askHost?: AskHost;
  /** Returns the kinds of files that the model takes besides text. Undefined if nothing is known of it. */
  media?: (signal: AbortSignal) => Promise<readonly ('image' | 'document')[] | undefined>;
  /** The ripgrep that the editor brings. Absolute. If missing, one on the PATH is used, if there is one. */
  ripgrep?: string | undefined;
  /** Missing if nothing can be undone. */
  changes?: WriteKeeper | undefined;
  /** Reports how far a long call is, with the share from 0 to 1 if it is known; may be called often. */
  onProgress?: (message: string, share?: number) => void;
  /** Tells the person something that stays in the run. */
  onNotice?: (message: Sentence) => void;
  /** Asks the person a question of the skill. Resolves with neither if no one gives an answer. Missing if there is no person. */
  askUser?: (question: string, choices: readonly string[]) => Promise<{ answer?: string; refusal?: string }>;
  /** Carries out another skill as a step, and returns its answer. Missing if none may be used. */
  useSkill?: (skill: string, request: string) => Promise<ToolResult>;
  /** Commands of the conversation that go on in the background. Missing if none may. */
  background?: BackgroundPlace;
  /** Shows the person what a command prints while it runs. Gets plain text a few times a second. */
  onOutput?: (text: string) => void;
  /**
   * Has the person sign in when a call needs it. Missing if there is no person to ask. Returns why they declined, or
   * undefined if they signed in. Throws what went wrong.
   */
  askSignIn?: (wanted: WantedSignIn) => Promise<string | undefined>;
  /**
   * Has the person answer what an MCP server asks in the middle of a call. Missing if there is no person to ask. `over` aborts when no one
   * waits for the answer, which is `cancel` then. Never throws.
   */
  askServer?: (wish: ServerWish, over: AbortSignal) => Promise<ServerAnswer>;
}

/** What a call of a command needs to go on in the background. */
export interface BackgroundPlace {
  commands: BackgroundCommands;
  callId: string;
  /** Returns the line of a command as it may be shown and kept. */
  shown(command: string): string;
  /** Decides on hosts when the call is over and no one can be asked. */
  askHost: AskHost | undefined;
  /** Called when the command of this call goes on in the background. */
  left(command: BackgroundCommand): void;
}
/** What an MCP server asks of the person. `params` are unchecked, as the server sends them. */
export type ServerWish = { server: string } & (
  | { kind: 'form'; params: unknown }
  /** `opens` is true if a yes opens the address; without, the person does. */
  | { kind: 'url'; params: unknown; opens: boolean }
  /** A question to the model of the run. */
  | { kind: 'sampling'; params: unknown }
);

/** `decline` is a no; `cancel` says that nobody has answered. `problem` says what is wrong with the question. */
export type ServerAnswer =
  | {
      action: 'accept';
      content?: FormContent;
      /** What the model has answered. */
      sampled?: { text: string; model: string; stopReason: string };
    }
  | { action: 'decline' | 'cancel'; problem?: string };

/** A process to start. */
export interface CommandStart {
  /** Absolute. */
  program: string;
  args: readonly string[];
  /** The whole environment. */
  env: Readonly<Record<string, string>>;
  /** Real and absolute. */
  folder: string;
}

/** What the box kept from a command, and what came into being in it. */
export interface BoxReport {
  /** Sentences for the model, such as the addresses that it could not reach. Empty if nothing was refused. */
  notes: readonly string[];
  /** What the command wrote into the home folder of the box, which is not the person's. Missing if that is nothing. */
  home?: WrittenElsewhere & {
    /** The agent that has it again in its next run. Missing if it goes with the conversation. */
    agent?: string;
  };
  /** What it wrote into the folder of temporary files, which is the conversation's. Missing if that is nothing. */
  temporary?: WrittenElsewhere;
}

/** What a command wrote into a folder that the sandbox shows in place of one of the user's. */
export interface WrittenElsewhere {
  /** Where the folder is outside of the box. Absolute. */
  folder: string;
  /** Files, and empty folders with a slash at their end, by their path below it, without caches. */
  files: readonly string[];
  /** False if the folder holds more than was looked at. */
  isWhole: boolean;
}

/** What a file has beside its content, mode and time. */
export interface FileMarks {
  /** Whether it is a folder of a layer that replaces the one below in place of adding to it. */
  isOpaque: boolean;
  /** Its extended attributes and rights for single users, as one text. Empty if it has none, or cannot be looked at. */
  attributes: string;
}

/** What a command writes in place of the folders themselves, until it lands there. */
export interface CommandLayer {
  /** The folders, the working folder first, and for each the one that holds what was written. Absolute and real. */
  roots: readonly { path: string; upper: string }[];
  /** Links of the working folder whose names others obey, and the folders of Git in it, as they were before. Absolute. */
  links: readonly string[];
  repositories: readonly string[];
  /** When it was made, as the disks say the time of a change. In milliseconds. */
  begun: number;
  /** Whether a path of the working folder was there before, as far as that is known. */
  hadBefore(path: string): boolean;
  /**
   * Returns what files have beside their content, in their order. Absolute paths. From the first `ofLayer` of them goes the note by which
   * the kernel knows a file of a layer. Throws an Error if that cannot be read.
   */
  marks(paths: readonly string[], ofLayer?: number): Promise<readonly FileMarks[]>;
  /** Called before anything of it comes into its place. Throws the error of the file system. */
  landing(): void;
  /** Removes it, with all that has not landed. Throws the error of the file system. */
  drop(): Promise<void>;
}

/** A command as it is started in the box. */
export interface EnclosedCommand extends CommandStart {
  /** What it writes, if it writes into a layer. Whoever started it lands it or drops it, after `end`. */
  layer?: CommandLayer;
  /** What it gets as its descriptors 3, 4 and so on: bytes that it reads, or files that are open. */
  inputs?: readonly (Uint8Array | number)[];
  /** Returns how it starts with the limit that marks its processes, if its own start can set one. */
  limited?(lockLimit: number | undefined): { program: string; args: string[] };
  /** Returns true once none of its processes is alive; false while one may be. Called after its first process has ended. */
  isOver?(): boolean;
  /** Returns why nothing was started, if its errors say so; undefined if the command itself has written them. */
  failureIn?(errors: string): string | undefined;
  /** Ends what belongs to the command alone. Called once, when none of its processes is alive any more. Never throws. */
  end(): Promise<BoxReport>;
}

/** Runs the commands of one conversation with no more rights than its file tools have without a question. */
export interface CommandBox {
  /** Whether a command can write into a layer here. */
  hasLayers?: boolean;
  /**
   * Returns what to start in place of `start`. Throws TelosError `config` with what to do if it cannot be enclosed, and then nothing
   * may run. `ask` is called while the command waits for a host that is not granted. With `layered`, it writes into a layer where
   * that works.
   */
  enclose(start: CommandStart, ask?: AskHost, layered?: boolean): Promise<EnclosedCommand>;
  /** Ends what it keeps between commands. Called when a run ends. */
  rest?(): void;
}

/** A host that a boxed command wants to reach. */
export interface WantedHost {
  /** As in a URL: an IPv6 address has brackets. */
  host: string;
  port: number;
  /** Name of the program that the command runs. */
  program: string;
}

/**
 * Decides if a command may reach a host now, and asks the person if no rule says so. Returns why not, or undefined if it may.
 * Never throws; on abort the question is withdrawn.
 */
export type AskHost = (wanted: WantedHost, signal: AbortSignal) => Promise<string | undefined>;

type ToolAccess = 'read' | 'write' | 'execute' | 'network';

export interface Tool {
  definition: ToolDefinition;
  access: ToolAccess;
  /** Maximum characters of an input, by its name. A longer input is not an honest one, and nothing is done with it. */
  longest?: Readonly<Record<string, number>>;
  /** Words the reason why a call was refused or failed, if the model needs another form than a sentence. */
  wordFailure?(input: Readonly<Record<string, unknown>>, reason: string): string;
  /** Does what the first call would wait for, while the model thinks. Never throws. */
  getReady?(context: RunFolders & Pick<ToolContext, 'env'>): void;
  /** Never throws for a mistake of the model: that is a result with `isError`. Throws the abort reason on abort. */
  execute(input: Readonly<Record<string, unknown>>, context: ToolContext): Promise<ToolResult>;
}

export const toolError = (content: string): ToolResult => ({ content, isError: true });

/** A sign-in that a server wants and that a person may make. */
export interface WantedSignIn {
  server: string;
  /** The server's own address. */
  place: string;
  /**
   * Set if the person is signed in, but the request needs more rights. Holds those rights as the server names them; may be
   * empty.
   */
  more?: string;
  /**
   * Returns where the sign-in leads, the page for the browser first. Returns undefined if it must not be made; the reason
   * is reported elsewhere.
   */
  origins(signal: AbortSignal): Promise<readonly string[] | undefined>;
  /** Has the person sign in. A failure is reported elsewhere. Throws the abort reason on abort. */
  signIn(signal: AbortSignal): Promise<void>;
}

/** Bytes of one write. */
export const writeLimit = 16 * 1024 * 1024;

/** A text in the input of a tool. A description only where the name does not say it: each request carries them all. */
export const textProperty = (description?: string) => ({
  type: 'string',
  ...(description && { description }),
});

export const readableFolders = (folders: RunFolders): string[] => [
  folders.workingDir,
  folders.packDir,
  folders.skillDir,
  ...(folders.personDir === undefined ? [] : [folders.personDir]),
  ...(folders.alsoReadable ?? []),
];

/** Returns the home folder of the commands of a run. */
export const homeOf = (context: ToolContext): string =>
  context.env['HOME'] ?? context.env['USERPROFILE'] ?? homedir();

/**
 * Returns the real path that a call may touch. An approval binds the call to exactly what was shown. Without one the path
 * must be in `folders`. Throws PathProblem.
 */
export async function targetOf(
  given: unknown,
  context: ToolContext,
  folders: readonly string[],
): Promise<string> {
  const home = homeOf(context);
  const path = await resolvePath(String(given), context.workingDir, home);
  if (context.approvedSubject !== undefined) {
    if (path === context.approvedSubject) return path;
    throw new PathProblem(
      'unusable',
      `${String(given)} now means ${path}, but ${context.approvedSubject} was checked. Nothing was done.`,
    );
  }
  if ((await folderHolding(path, folders, home)) !== undefined) return path;
  throw new PathProblem(
    'unusable',
    `${path} is outside this workspace (${context.workingDir}) and has not been approved. Use a path inside it.`,
  );
}

export async function orProblem(
  context: ToolContext,
  action: () => Promise<ToolResult>,
): Promise<ToolResult> {
  context.signal.throwIfAborted();
  try {
    return await action();
  } catch (error) {
    if (error instanceof PathProblem) return toolError(error.message);
    throw error;
  }
}

export async function shownPath(path: string, context: ToolContext): Promise<string> {
  const root = await resolvePath(context.workingDir, context.workingDir, homeOf(context));
  const way = relative(root, path);
  return isInside(root, path) && !isAbsolute(way) ? way : path;
}

export async function isUnmadeWorkingDir(path: string, context: ToolContext): Promise<boolean> {
  const root = await resolvePath(context.workingDir, context.workingDir, homeOf(context));
  if (path !== root) return false;
  return lstat(root).then(
    () => false,
    error => errorCode(error) === 'ENOENT',
  );
}

/** The folders of a run, and the folder that `~` means. */
export type MeantFolders = Pick<
  RunFolders,
  'workingDir' | 'packDir' | 'skillDir' | 'skillName' | 'personDir'
> & {
  home: string;
};

export interface MeantFile {
  /** The real path in place of the one that was given. Missing if that stays as it is. */
  path?: string;
  /** A file of the same name that was not meant: in the skill's folder, or another one of the run. */
  twin?: string;
}

/** Names that other runners give the skill's folder. A path that begins with one never means anything else. */
const placeholder =
  /^(?:\$?\{baseDir\}|\$(?:\{(?:(?:CLAUDE_|TELOS_)?SKILL_DIR|SKILL_PATH|SKILL_ROOT|CLAUDE_PLUGIN_ROOT)\}|(?:baseDir|(?:CLAUDE_|TELOS_)?SKILL_DIR|SKILL_PATH|SKILL_ROOT|CLAUDE_PLUGIN_ROOT)(?!\w))|<skill[_-]?(?:dir|root|path)>)(?:\/+|$)/;

/** Paths that can precede `skills/<slug>/`: a hidden folder, a home, an unknown workspace, or the place where the author has it. */
const beforeSkills =
  /^(?:\.\/+)?(?:~?\/+(?:[^/]+\/+)*|(?:\$?\{\w+\}|\$\w+|<[\w -]+>)\/+(?:\.[\w-]+\/+)?|\.[\w-]+\/+)?$/;

/**
 * Returns which file a path means that is relative to `base`. The path stays as it is if it leads to anything by itself.
 * Otherwise it is the first of the other folders that holds it: where the run works, the current folder, the skill, its pack.
 */
export function meantFile(given: string, base: string, folders: MeantFolders): MeantFile {
  if (given === '' || given.includes('\0') || given.length > 4096) return {};
  const inSkill = placeholder.exec(given)?.[0];
  const literal = expandPath(given, folders.home, base);
  if (inSkill !== undefined && !isThere(resolve(base, given))) {
    const path =
      ownPath(given.slice(inSkill.length), folders) ?? join(folders.skillDir, given.slice(inSkill.length));
    return { path };
  }
  const others = elsewhere(given, base, folders);
  const [other] = others;
  if (other === undefined) return {};
  if (!isThere(literal)) return { path: other };
  const real = realPlace(literal);
  const twin = others.find(path => path !== real);
  return twin === undefined ? {} : { twin };
}

/** Returns the real paths of the files and folders that a path could mean besides the obvious one, the first choice first. */
function elsewhere(given: string, base: string, folders: MeantFolders): string[] {
  const { workingDir, personDir, skillDir } = folders;
  const named = afterSkillName(given, folders);
  const paths = named === undefined ? [] : [ownPath(named, folders)];
  if (isAbsolute(given) || given.startsWith('~') || /^[./\\]*$/.test(given)) return paths.filter(isText);
  if (/^\.\.[\\/]/.test(given)) return [...paths, besideSkill(given, folders)].filter(isText);
  const around = [workingDir, personDir].filter(isText).filter(folder => folder !== base);
  const before = around.map(folder => pathIn(folder, given));
  const own = base === skillDir ? [] : [pathIn(skillDir, given) ?? besideSkill(given, folders)];
  const ofPack = packHolds(folders) && base !== folders.packDir ? [pathIn(folders.packDir, given)] : [];
  return [...before, ...paths, ...own, ...ofPack].filter(isText);
}

/** Returns the real path of a file of the pack to which a path leads from the skill's folder ("../shared/words.md"). */
function besideSkill(given: string, folders: MeantFolders): string | undefined {
  const rest = relative(folders.packDir, join(folders.skillDir, given));
  return packHolds(folders) && isInside(folders.packDir, join(folders.packDir, rest))
    ? pathIn(folders.packDir, rest)
    : undefined;
}

/**
 * Returns where a path is that a command in the box has written: below the folder that stands in for the one of the path. Undefined if
 * nothing is there, if the path is in a folder of the run, or if the person's own home has it too.
 */
export function placeInBox(given: string, folders: RunFolders & { home: string }): string | undefined {
  if (given === '' || given.includes('\0') || given.length > 4096) return undefined;
  const path = expandPath(given, folders.home, folders.workingDir);
  if (readableFolders(folders).some(folder => isInside(folder, path))) return undefined;
  for (const { path: inside, place } of folders.standIns ?? []) {
    if (!isInside(inside, path) || (inside === folders.home && isThere(path))) continue;
    const found = pathIn(place, relative(inside, path));
    if (found !== undefined) return found;
  }
  return undefined;
}

const isText = (text: string | undefined): text is string => text !== undefined;

/** Returns the rest of a path after `skills/<slug>/`, if the slug is that of this very skill, or the name that its file gives it. */
function afterSkillName(given: string, { skillDir, skillName, home }: MeantFolders): string | undefined {
  const path = isAbsolute(given) && given.startsWith(`${home}/`) ? `~${given.slice(home.length)}` : given;
  for (const slug of [basename(skillDir), skillName]) {
    if (slug === undefined || !/^\w[\w.-]*$/.test(slug)) continue;
    const marker = `skills/${slug}`;
    const at = `${path}/`.lastIndexOf(`${marker}/`);
    if (at >= 0 && beforeSkills.test(path.slice(0, at)))
      return path.slice(at + marker.length).replace(/^\/+/, '');
  }
  return undefined;
}

/** Returns the real path below the skill's folder, or below its pack. */
function ownPath(rest: string, folders: MeantFolders): string | undefined {
  const deeper = afterSkillName(rest, folders);
  const inSkill = pathIn(folders.skillDir, deeper ?? rest);
  return inSkill ?? (packHolds(folders) ? pathIn(folders.packDir, rest) : undefined);
}

/**
 * Returns the real path of a script of the skill that is named without its folder. Undefined if there is a file of that name where
 * the command runs.
 */
export function ownScript(name: string, base: string, { skillDir }: MeantFolders): string | undefined {
  if (isThere(join(base, name))) return undefined;
  const paths = ['', 'scripts', 'bin'].map(folder => pathIn(skillDir, join(folder, name)));
  return paths.find(path => path !== undefined && isFile(path));
}

/** Whether the pack is more than a folder in which skills of all kinds are collected. */
const packHolds = ({ packDir, skillDir }: MeantFolders): boolean =>
  isInside(join(packDir, 'skills'), skillDir);

/** Returns the real path of a file or folder that really lies in `folder`. A link that leads out of it does not count. */
function pathIn(folder: string, rest: string): string | undefined {
  try {
    const path = join(folder, rest);
    if (!existsSync(path)) return undefined;
    const real = realpathSync.native(path);
    const stats = statSync(real);
    if (!stats.isFile() && !stats.isDirectory()) return undefined;
    return isInside(realpathSync.native(folder), real) ? real : undefined;
  } catch {
    return undefined;
  }
}

/** Whether anything is there, be it a link that leads nowhere. */
export function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    // What may not be looked at is there.
    return !/^(ENOENT|ENOTDIR|ENAMETOOLONG)$/.test(errorCode(error) ?? '');
  }
}

export const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true;
