/** What others see of a connected server, without the protocol's SDK. */
import type { OfferMethod } from './offers.ts';
import type { McpToolSource } from './tools.ts';

/** A skill as its server lists it. */
export interface ServedSkill {
  name: string;
  description: string;
  /** Of its SKILL.md. */
  uri: string;
  /** `sha256:<hex>` over the paths and digests of its files. Undefined for a skill whose files the server makes anew each time. */
  digest: string | undefined;
}

export interface ServedFile {
  /** Below the folder of the skill, with `/`. */
  path: string;
  bytes: Uint8Array;
}

/** The skills of one connected server. */
export interface ServedSkills {
  /** True if the server says that it serves skills. */
  readonly isServed: boolean;
  /** Lists them without reading a file. An entry that breaks the rules is left out. Throws what the server or the wire fails with. */
  list(signal: AbortSignal): Promise<ServedSkill[]>;
  /** Reads all files of a skill of the last list. Throws TelosError `mcp` for one that is not what was listed. */
  files(skill: Pick<ServedSkill, 'uri' | 'name'>, signal: AbortSignal): Promise<ServedFile[]>;
}

export interface McpConnection extends McpToolSource {
  /** The server's own name; empty if it gives none. */
  name: string;
  version: string;
  /** True once the session has ended. */
  readonly ended: boolean;
  /** True once the server no longer knows the session. The call that revealed this was not carried out. */
  readonly forgotten: boolean;
  /** The first output of the server so far that is not a message, with the reason. */
  readonly noise: string | undefined;
  /** True if the server has more tools than a run takes; `tools` holds the first of them. */
  readonly hasMoreTools: boolean;
  /** Names of tools that are not in `tools`, because their schemas are nested too deeply. */
  readonly tooDeepTools: readonly string[];
  /** The skills that it serves. */
  readonly skills: ServedSkills;
  /** Returns true if the server says that it has such offers. */
  offers(what: 'prompts' | 'resources'): boolean;
  /** Resolves with the unchecked result, without secrets. Throws TelosError `mcp` with the reason, and the abort reason on abort. */
  ask(method: OfferMethod, params: Fields, signal: AbortSignal): Promise<Fields>;
  /** Called when the server's tools have changed; `tools` is already up to date. */
  onToolsChanged: (() => void) | undefined;
  /** Ends the session, and the server's whole process tree if Telos has started it. Never throws. */
  close(): Promise<void>;
}

type Fields = Readonly<Record<string, unknown>>;
