/** The contract of everything that a model can have done. */

import type { JsonObject, ToolResult } from '../../protocol/run.ts';
import type { WriteKeeper } from '../files/atomicWrite.ts';

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

/** A sign-in that a server wants and that a person may make. */
export interface WantedSignIn {
  server: string;
  /** The server's own address. */
  place: string;
  /** Set when the person is signed in and what they want done takes more: the rights, as the server calls them; may be empty. */
  more?: string;
  /** Where it leads, the page for the browser first; undefined where it must not be made, for a reason that is told elsewhere. */
  origins(signal: AbortSignal): Promise<readonly string[] | undefined>;
  /** Has the person sign in. Why it failed is told elsewhere. Throws the abort reason on abort. */
  signIn(signal: AbortSignal): Promise<void>;
}
