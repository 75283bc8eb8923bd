/** Defines the contract of a tool: what a model can call, and what a call gets. */

import type { JsonObject, ToolResult } from '../../protocol/run.ts';
import type { WriteKeeper } from '../files/atomicWrite.ts';

/** A tool as a model sees it. `inputSchema` is a JSON Schema of type object. */
export interface ToolDefinition {
  name: string;
  description: string;
  inputSchema: JsonObject;
}

/** The folders and limits of one run, the same for all of its calls. */
export interface RunFolders {
  /** Root of the file tools, created at the first write. Absolute. */
  workingDir: string;
  /** The agent's own folder; readable. Absolute. */
  packDir: string;
  /** The folder of the skill that runs; readable. Absolute. */
  skillDir: string;
  /** Folder in which commands run. Absolute. */
  commandDir: string;
  /** Folder in which the person stands; readable. Absolute. Missing if that is the home folder, or contains it. */
  personDir?: string;
  /** Further readable folders. Absolute. */
  alsoReadable?: readonly string[];
  /**
   * Working folders of any agent, the folder of the call, the workspace. Programs in them are not found by name. Absolute.
   */
  workFolders?: readonly string[];
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
  /** The ripgrep that the editor brings. Absolute. If missing, one on the PATH is used, if there is one. */
  ripgrep?: string | undefined;
  /** Missing if nothing can be undone. */
  changes?: WriteKeeper | undefined;
  /** Reports the progress of a long call to the person; may be called often. */
  onProgress?: (message: string) => void;
  /**
   * Has the person sign in when a call needs it. Missing if there is no person to ask. Returns why they declined, or
   * undefined if they signed in. Throws what went wrong.
   */
  askSignIn?: (wanted: WantedSignIn) => Promise<string | undefined>;
}

export type ToolAccess = 'read' | 'write' | 'execute' | 'network';

export interface Tool {
  definition: ToolDefinition;
  access: ToolAccess;
  /** Maximum characters of an input, by its name. A longer input is not an honest one, and nothing is done with it. */
  longest?: Readonly<Record<string, number>>;
  /** Words the reason why a call was refused or failed, if the model needs another form than a sentence. */
  wordFailure?(input: Readonly<Record<string, unknown>>, reason: string): string;
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
