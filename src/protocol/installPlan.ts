/** What installing a pack would do, as it travels, and the words in which every frontend shows it. */
import { codePointOf, english, type Say, unseen } from './text.ts';

/** Where the agent that is there now came from; of one that was made by hand nothing is noted. */
export type AgentOrigin = { kind: 'installed'; source: string; at: string } | { kind: 'by hand' };

export interface PlannedChange {
  /** Below the agent's folder; one that ends with `/` stands for all that is in it. Empty for what is itself no folder. */
  path: string;
  change: 'removed' | 'changed' | 'added';
  /** Added or edited since it was installed; always false for an agent that was made by hand, which is the user's as a whole. */
  isYours: boolean;
  /** How many files lie below a folder. */
  files?: number;
}

/** The agent that is there now. */
export interface Replacement {
  kind: 'folder' | 'link' | 'file';
  /** Where a link leads. */
  linkTo?: string;
  origin: AgentOrigin;
  /** It came from where the new one comes from. */
  isSameSource: boolean;
  /** Nothing would change. */
  isSame: boolean;
  changes: readonly PlannedChange[];
  /** There are more files in it than were looked at. */
  isCut: boolean;
}

export interface InstallPlan {
  name: string;
  /** Real and absolute. */
  source: string;
  /** Where it goes. Absolute. */
  target: string;
  skillCount: number;
  /** Links and special files that are not copied, as paths below the source. */
  leftOut: readonly string[];
  /** Missing where nothing is at the target. */
  replaces?: Replacement;
  /** Stands for all of this; agreeing to it counts for nothing else. */
  token: string;
}

const mostShown = 12;
const everyUnseen = new RegExp(unseen.source, 'gu');

/** What is replaced and what becomes of it, in lines of plain text; none where nothing is replaced. `time` says an ISO time. */
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
    ...(isCut ? [say('There are more files in it than are listed here.')] : []),
  ];
  // A name can hold a line break, and what comes behind it would pass for a line of ours.
  return lines.map(line => line.replace(everyUnseen, codePointOf));
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
  // The user's own come first, so that none of them is among those that are only counted.
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
