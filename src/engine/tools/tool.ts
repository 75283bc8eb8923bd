/** The contract of everything that a model can have done. */
import type { Stats } from 'node:fs';
import type { JsonObject, ToolResult } from '../../protocol/run.ts';
import type { WantedSignIn } from './mcpSignIn.ts';

/** A tool as a model sees it; `inputSchema` is a JSON Schema of type object. */
export interface ToolDefinition {
  name: string;
  description: string;
  inputSchema: JsonObject;
}

/** The folders and limits of one run, the same for all of its calls. */
export interface RunFolders {
  /** Root of the file tools; created at the first write. Absolute. */
  workingDir: string;
  /** The agent's own folder; readable. Absolute. */
  packDir: string;
  /** The folder of the skill that runs; readable. Absolute. */
  skillDir: string;
  /** Where commands run. Absolute. */
  commandDir: string;
  /** Further folders that are readable. Absolute. */
  alsoReadable?: readonly string[];
  /** Where any agent works, the folder of the call, the workspace: a program in them is not found by its name. Absolute. */
  workFolders?: readonly string[];
}

/** A file that is about to be created or replaced. */
export interface PlannedWrite {
  /** Absolute and real. */
  path: string;
  /** How the file is reached through its folder, which is open. */
  place: string;
  /** Undefined where there is no file. */
  before: Stats | undefined;
  /** What it will hold. */
  bytes: Buffer;
  /** The uppermost of the folders that were made for it. */
  made: string | undefined;
}

export interface KeptWrite {
  /** Notes the write; to be called right before it, once. Never throws. */
  record(): void;
  /** How many lines come and go; missing for what is no text, or too long for it. */
  lines?: { added: number; removed: number };
}

/** Keeps what files were before a run writes them. Whatever cannot be kept becomes a problem, never an error. */
export interface WriteKeeper {
  keep(write: PlannedWrite): Promise<KeptWrite>;
  /** Something runs that may change files in ways that nobody sees. */
  noteCommand(): void;
  /** The next thing that a person should know; each is told once. */
  takeProblem(): string | undefined;
}

export interface ToolContext extends RunFolders {
  /** The whole environment of a command: no provider keys in it. */
  env: Readonly<Record<string, string>>;
  signal: AbortSignal;
  /**
   * The real path, the address in its normal form, or the command that was decided on or approved for this one call. The tool then does
   * exactly that, also outside the folders, and refuses when the call means something else by now.
   */
  approvedSubject?: string;
  /** Of a command: the folder that was decided on with it. Real and absolute. */
  approvedFolder?: string;
  /** Telos's own folders: searches pass them by, as the policy lets no call read in them. Absolute and real. */
  protectedDirs?: readonly string[];
  /** The ripgrep that the editor brings; absolute. Otherwise one on the PATH is used, where there is one. */
  ripgrep?: string | undefined;
  /** Missing where nothing can be undone. */
  changes?: WriteKeeper | undefined;
  /** Tells the person how far a long call has come; may be called often. */
  onProgress?: (message: string) => void;
  /**
   * Has the person sign in where a call needs it; missing where nobody can. Returns why they would not, undefined when they have. Throws what
   * went wrong.
   */
  askSignIn?: (wanted: WantedSignIn) => Promise<string | undefined>;
}

export type ToolAccess = 'read' | 'write' | 'execute' | 'network';

export interface Tool {
  definition: ToolDefinition;
  access: ToolAccess;
  /** Characters that an input may have at most, by its name; a longer one is no honest one, and nothing is done with it. */
  longest?: Readonly<Record<string, number>>;
  /** Words why a call of it was refused or failed, where the model wants that in another form than a sentence. */
  wordFailure?(input: Readonly<Record<string, unknown>>, reason: string): string;
  /** Never throws for what the model did wrong: that is a result with `isError`. Throws the abort reason on abort. */
  execute(input: Readonly<Record<string, unknown>>, context: ToolContext): Promise<ToolResult>;
}

export const toolError = (content: string): ToolResult => ({ content, isError: true });
