/** Defines the plan of installing a pack, and the words in which every frontend shows it. */
import { codePointOf, english, type Say, unseen } from './text.ts';

/** Origin of the existing agent. No source is recorded for an agent that was made by hand. */
export type AgentOrigin = { kind: 'installed'; source: string; at: string } | { kind: 'by hand' };

export interface PlannedChange {
  /**
   * Path below the agent's folder. A path that ends with `/` means everything in that folder. Empty if the target is not a
   * folder.
   */
  path: string;
  change: 'removed' | 'changed' | 'added';
  /** Added or edited by the user since the install. Always false for an agent made by hand, which is entirely the user's. */
  isYours: boolean;
  /** Number of files below a folder. */
  files?: number;
}

/** The existing agent that would be replaced. */
export interface Replacement {
  kind: 'folder' | 'link' | 'file';
  /** Target of the link. */
  linkTo?: string;
  origin: AgentOrigin;
  /** True if the existing agent came from the same source as the new one. */
  isSameSource: boolean;
  /** True if nothing would change. */
  isSame: boolean;
  changes: readonly PlannedChange[];
  /** True if the folder contains more files than were examined. */
  isCut: boolean;
}

export interface InstallPlan {
  name: string;
  /** Real and absolute path. */
  source: string;
  /** Folder to which the pack is installed. Absolute. */
  target: string;
  skillCount: number;
  /** Links and special files that are not copied, as paths below the source. */
  leftOut: readonly string[];
  /** Missing if nothing is at the target. */
  replaces?: Replacement;
  /** Identifies this exact plan. An approval given for it does not apply to any other plan. */
  token: string;
}

const mostShown = 12;

/**
 * Returns lines of plain text about the agent that is replaced and the changes to it.
 * Returns an empty list if nothing is replaced. `time` formats an ISO time.
 */
export function describeReplacement(
  { name, source, target, replaces }: InstallPlan,
  time: (iso: string) => string,
  say: Say = english,
): string[] {
  if (!replaces) return [];
  const { kind, linkTo = '', isCut } = replaces;
  const lines = [
    say('Agent {0} already exists: {1}', name, target),
    describeOrigin(replaces.origin, time, say),
    ...(kind === 'link'
      ? [say('It is a link. The link is replaced; the folder it leads to stays: {0}', linkTo)]
      : []),
    say('The new one comes from {0}', source),
    ...listed(say('Removed:'), changesOf(replaces, 'removed'), say),
    ...listed(say('Changed:'), changesOf(replaces, 'changed'), say),
    ...listed(say('Added:'), changesOf(replaces, 'added'), say),
    ...(isCut ? [say('It has more files than are listed here.')] : []),
  ];
  // A name can contain a line break, and the text after it would look like a line of Telos.
  return lines.map(line => unseen.replacedIn(line, codePointOf));
}

export function describeOrigin(
  origin: AgentOrigin,
  time: (iso: string) => string,
  say: Say = english,
): string {
  return origin.kind === 'installed'
    ? say('It was installed from {0} on {1}', origin.source, time(origin.at))
    : say('It was made by hand: Telos has no record of an install.');
}

const changesOf = ({ changes, kind }: Replacement, wanted: PlannedChange['change']): PlannedChange[] =>
  kind === 'folder' ? changes.filter(({ change }) => change === wanted) : [];

function listed(title: string, changes: readonly PlannedChange[], say: Say): string[] {
  if (changes.length === 0) return [];
  // The user's own changes come first, so that they are listed rather than only counted.
  const sorted = [...changes].sort((one, other) => Number(other.isYours) - Number(one.isYours));
  const lines = sorted.slice(0, mostShown).map(change => `  ${describeChange(change, say)}`);
  const left = changes.length - mostShown;
  return [title, ...lines, ...(left > 0 ? [`  ${say('and {0} more', String(left))}`] : [])];
}

function describeChange({ path, change, isYours, files }: PlannedChange, say: Say): string {
  const counted = files === undefined ? path : say('{0} (files: {1})', path, String(files));
  if (!isYours) return counted;
  return change === 'changed'
    ? say('{0} (edited since the install)', counted)
    : say('{0} (not from the install)', counted);
}
