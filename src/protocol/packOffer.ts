/**
 * Defines what a person sees of a pack before it is installed, and the words for it. The pack chooses parts of these texts, so the
 * frontends make visible what would hide in them.
 */
import {
  type CardLines,
  describeFlag,
  type Finding,
  type FindingLevel,
  flagWords,
  hookTexts,
  notStartedTexts,
} from './agentCard.ts';
import type { InstallPlan } from './installPlan.ts';
import { english, type Say } from './text.ts';

export interface SourceFinding {
  level: FindingLevel;
  /** `registry`: the verdict of a registry, in its words. `near-name`: the name is nearly that of another pack. */
  kind: Finding['kind'] | 'registry' | 'near-name';
  file: string;
  line: number;
  text: string;
}

export interface OfferedSkill {
  id: string;
  description: string;
  bytes: number;
  scripts: number;
  /** Problems of its file, in sentences. It is installed all the same. */
  problems: readonly string[];
}

export interface OfferedFile {
  /** Below the pack, with `/`. */
  path: string;
  bytes: number;
  /** `sha256:<hex>`, with `+x` if it is executable. */
  digest: string;
}

/** What is to be seen in the files of a pack. */
export interface PackLook {
  skills: readonly OfferedSkill[];
  files: readonly OfferedFile[];
  /** What its files name: the lines of the card that a person would accept. */
  card: CardLines;
  findings: readonly SourceFinding[];
  /** Number of files that were looked into as a whole, and of all; and the version of the rules. */
  counts: { read: number; of: number; rules: string };
  /** Commands that its author gives for what it needs, to copy. They are never run. */
  steps: readonly string[];
  /** Commands that other programs would run by themselves, such as scripts of npm. They are present and not run. */
  notRun: readonly string[];
}

/** A pack that could be installed, as a person sees it. */
export interface PackOffer extends PackLook {
  name: string;
  /** Where it comes from and in which version, in words: `github.com/acme/tools at 0123456, v1`. */
  from: string;
  /** Links and the like that are not installed, as paths below the source. */
  leftOut: readonly string[];
  /** What installing does. `plan.replaces` lists the changes to an agent that is there. */
  plan: InstallPlan;
  /** Two sources, if updates of the agent would come from another one than now. */
  moves?: { from: string; to: string };
}

const mostFindings = 20;
const mostLeftOut = 10;

/** A line of a card. `level` is that of the finding that it tells. */
export interface CardLine {
  text: string;
  level?: FindingLevel;
}

/** Returns the size of a skill and how many scripts it has. */
export function sizeText(
  { bytes, scripts }: Pick<OfferedSkill, 'bytes' | 'scripts'>,
  say: Say = english,
): string {
  const size = bytes < 1000 ? say('{0} bytes', String(bytes)) : `${Math.round(bytes / 1000)} KB`;
  if (scripts === 0) return size;
  return `${size}, ${scripts === 1 ? say('1 script') : say('{0} scripts', String(scripts))}`;
}

/** Returns how large a pack is, in one line. */
export function holdingText(
  { skills, files }: Pick<PackLook, 'skills' | 'files'>,
  say: Say = english,
): string {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const scripts = skills.reduce((sum, skill) => sum + skill.scripts, 0);
  const count = skills.length === 1 ? say('1 skill') : say('{0} skills', String(skills.length));
  return `${count}, ${sizeText({ bytes, scripts }, say)}`;
}

/** Returns the worst that was found in a pack, in words. */
export function worstText({ findings }: Pick<PackLook, 'findings'>, say: Say = english): string {
  const [worst] = findings;
  if (!worst) return say('nothing found');
  const { kind, level, text } = worst;
  const words = kind === 'registry' || kind === 'near-name' ? text : flagWords(kind, say);
  return `${levelText(level, say)}: ${oneLine(words)}`;
}

/** Returns what a pack asks for, in words. Empty if it asks for nothing. */
export function wantsTexts({ card }: Pick<PackLook, 'card'>, say: Say = english): string[] {
  const list = (title: string, items: readonly string[]): string[] =>
    items.length > 0 ? [oneLine(`${title}: ${items.join(' ')}`)] : [];
  return [
    ...list(say('Hosts'), card.hosts),
    ...list(say('Variables'), card.variables),
    ...list(
      say('MCP servers'),
      card.servers.map(({ name }) => name),
    ),
    ...notStartedTexts(card, say).map(oneLine),
    ...hookLines(card, say).map(oneLine),
  ];
}

/** Returns the card of a pack for the question whether to install it. */
export function cardLines(offer: PackOffer, say: Say = english): CardLine[] {
  const { card, plan, counts, findings, moves } = offer;
  const state = plan.replaces
    ? plan.replaces.isSame
      ? say('(installed, the same)')
      : say('(replaces the one that is there)')
    : say('(new)');
  const list = (title: string, items: readonly string[]): string =>
    `${title}: ${items.join(' ') || say('none')}`;
  const servers = [
    ...card.servers.map(({ name, place }) => `${name} (${place})`),
    ...notStartedTexts(card, say),
  ];
  return [
    `${say('Agent {0}', offer.name)} ${state}`,
    say('From: {0}', offer.from),
    ...(moves ? [movedText(moves, say)] : []),
    list(say('Hosts'), card.hosts),
    list(say('Scripts'), card.scripts),
    list(say('Variables'), card.variables),
    list(say('MCP servers'), servers),
    ...(card.commands?.length ? [list(say('Commands'), card.commands)] : []),
    ...hookLines(card, say),
    ...restLines(offer, say),
    ...findingLines(findings, say),
    checkedText(counts, say),
  ].map(line => (typeof line === 'string' ? { text: oneLine(line) } : { ...line, text: oneLine(line.text) }));
}

/** What a pack asks for, and what else its install means, each in one line; for a page that has its own place for the rest. */
export function offerParts(
  offer: PackOffer,
  say: Say = english,
): { wants: string[]; findings: { text: string; level: FindingLevel }[]; checked: string; notes: string[] } {
  const { card, findings, counts, moves } = offer;
  const list = (title: string, items: readonly string[]): string[] =>
    items.length > 0 ? [`${title}: ${items.join(' ')}`] : [];
  const servers = card.servers.map(({ name, place }) => `${name} (${place})`);
  return {
    wants: [
      ...list(say('Hosts'), card.hosts),
      ...list(say('Scripts'), card.scripts),
      ...list(say('Variables'), card.variables),
      ...list(say('MCP servers'), servers),
      ...notStartedTexts(card, say),
      ...list(say('Commands'), card.commands ?? []),
      ...hookLines(card, say),
    ].map(oneLine),
    findings: findings.map(finding => ({
      text: oneLine(`${levelText(finding.level, say)}: ${findingText(finding, say)}`),
      level: finding.level,
    })),
    checked: checkedText(counts, say),
    notes: [...(moves ? [movedText(moves, say)] : []), ...restLines(offer, say)].map(oneLine),
  };
}

/** What is not installed, not run, or up to the user. */
function restLines({ leftOut, notRun, steps }: PackOffer, say: Say): string[] {
  const left = leftOut.length - mostLeftOut;
  return [
    ...(leftOut.length > 0
      ? [
          `${say('Left out: {0}', leftOut.slice(0, mostLeftOut).join(', '))}${left > 0 ? ` ${say('and {0} more', String(left))}` : ''}`,
        ]
      : []),
    ...(notRun.length > 0 ? [say('Present and not run: {0}', notRun.join(', '))] : []),
    ...(steps.length > 0
      ? [say('It needs these, to copy and run yourself:'), ...steps.map(step => `  ${step}`)]
      : []),
  ];
}

const checkedText = ({ read, of }: PackLook['counts'], say: Say): string =>
  say(
    'Files checked: {0} of {1}. The check finds only known patterns; Telos asks before anything runs.',
    String(read),
    String(of),
  );

const hookLines = (card: PackLook['card'], say: Say): string[] =>
  hookTexts(card, say).map(line => say('Hook: {0}', line));

/** Returns a line for each finding, up to a number of them. */
export function findingLines(findings: readonly SourceFinding[], say: Say = english): CardLine[] {
  const more = findings.length - mostFindings;
  return [
    ...findings.slice(0, mostFindings).map(finding => ({
      text: oneLine(`! ${levelText(finding.level, say).padEnd(6)} ${findingText(finding, say)}`),
      level: finding.level,
    })),
    ...(more > 0 ? [{ text: say('and {0} more', String(more)) }] : []),
  ];
}

/** Returns which source updates come from, and which they came from before. */
export const movedText = ({ from, to }: { from: string; to: string }, say: Say = english): string =>
  say('From now on, updates come from {0} instead of {1}.', to, from);

function levelText(level: FindingLevel, say: Say): string {
  switch (level) {
    case 'high':
      return say('high');
    case 'medium':
      return say('medium');
    case 'low':
      return say('low');
  }
}

const findingText = (finding: SourceFinding, say: Say): string =>
  finding.kind === 'registry' || finding.kind === 'near-name'
    ? finding.text
    : describeFlag({ ...finding, kind: finding.kind }, say);

const oneLine = (line: string): string => line.replace(/[\r\n]+/g, ' ');
