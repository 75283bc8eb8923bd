/** Defines what the page of an install shows, worded by the extension host, and the messages between the two. */
import type { FindingLevel } from './agentCard.ts';

export interface InstallSkill {
  id: string;
  description: string;
  /** Its size, in words. */
  size: string;
  /** What is wrong with its file. It is installed all the same. */
  problem?: string;
}

/** Everything may come from a pack, so it is shown letter by letter. */
export interface InstallShown {
  title: string;
  /** Where it comes from, and in which version. */
  from: string;
  description: string;
  skills: readonly InstallSkill[];
  /** Whether the user may leave some of the skills out. */
  canChoose: boolean;
  /** Requests that would run one of them. */
  samples: readonly string[];
  /** What it asks for: hosts, programs and the like. */
  wants: readonly string[];
  findings: readonly { text: string; level: FindingLevel }[];
  /** How much was checked. */
  checked: string;
  /** What else installing means: files that are replaced, left out or not run. */
  notes: readonly string[];
  /** Whether a plain yes is not enough. */
  isRisky: boolean;
  actions: readonly { act: InstallAct; label: string }[];
}

export const installActs = ['install', 'try', 'once', 'files', 'rename', 'cancel'] as const;
export type InstallAct = (typeof installActs)[number];

export type ToInstallPage = { type: 'install'; shown: InstallShown };

export type FromInstallPage =
  | { type: 'ready' }
  /** `skills` are the ids of those that the user wants. */
  | { type: 'install_act'; act: InstallAct; skills: readonly string[] };
