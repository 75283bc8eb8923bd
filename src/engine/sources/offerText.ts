/**
 * Describes a pack that could be installed in lines of text: what it holds, where it comes from, and what was found in it. The pack
 * chooses parts of these texts, so the doors make visible what would hide in them.
 */
import { describeFlag, type FindingLevel } from '../../protocol/agentCard.ts';
import { english, type Say, shortened } from '../../protocol/text.ts';
import type { Offer } from './install.ts';

const mostSkills = 40;
const mostFindings = 20;
const mostLeftOut = 10;

/** A line of a card. `level` is that of the finding that it tells. */
export interface CardLine {
  text: string;
  level?: FindingLevel;
}

/** Returns what a pack holds: its origin, and each skill with its size. For the question which of its skills are wanted. */
export function contentLines({ from, way, skills, name }: Offer, say: Say = english): string[] {
  const wide = Math.min(28, Math.max(...skills.map(({ id }) => id.length), 4));
  const shown = skills.slice(0, mostSkills).map((skill, at) => {
    const trouble = skill.problems.length > 0 ? `  ! ${skill.problems[0]}` : '';
    const description = shortened(skill.description.replace(/\s+/g, ' ').trim(), 70);
    return `  ${String(at + 1).padStart(2)} ${skill.id.padEnd(wide)}  ${description}  (${sizeText(skill, say)})${trouble}`;
  });
  const more = skills.length - mostSkills;
  const holds =
    skills.length === 1
      ? say('It holds 1 skill (found by {0}), for agent {1}:', way, name)
      : say('It holds {0} skills (found by {1}), for agent {2}:', String(skills.length), way, name);
  return [from, holds, ...shown, ...(more > 0 ? [`  ${say('and {0} more', String(more))}`] : [])].map(
    oneLine,
  );
}

/** Returns the size of a skill and how many scripts it has. */
export function sizeText(
  { bytes, scripts }: Pick<Offer['skills'][number], 'bytes' | 'scripts'>,
  say: Say = english,
): string {
  const size = bytes < 1000 ? say('{0} bytes', String(bytes)) : `${Math.round(bytes / 1000)} KB`;
  if (scripts === 0) return size;
  return `${size}, ${scripts === 1 ? say('1 script') : say('{0} scripts', String(scripts))}`;
}

/** Returns the card of a pack for the question whether to install it. */
export function cardLines(offer: Offer, say: Say = english): CardLine[] {
  const { card, plan, leftOut, counts, steps, notRun, findings } = offer;
  const state = plan.replaces
    ? plan.replaces.isSame
      ? say('(installed, the same)')
      : say('(replaces the one that is there)')
    : say('(new)');
  const list = (title: string, items: readonly string[]): string =>
    `${title}: ${items.join(' ') || say('none')}`;
  const servers = card.servers.map(({ name, place }) => `${name} (${place})`);
  const left = leftOut.length - mostLeftOut;
  const more = findings.length - mostFindings;
  return [
    `${say('Agent {0}', offer.name)} ${state}`,
    say('From: {0}', offer.from),
    list(say('Hosts'), card.hosts),
    list(say('Scripts'), card.scripts),
    list(say('Variables'), card.variables),
    list(say('MCP servers'), servers),
    ...(card.commands?.length ? [list(say('Commands'), card.commands)] : []),
    ...(leftOut.length > 0
      ? [
          `${say('Left out: {0}', leftOut.slice(0, mostLeftOut).join(', '))}${left > 0 ? ` ${say('and {0} more', String(left))}` : ''}`,
        ]
      : []),
    ...(notRun.length > 0 ? [say('Present and not run: {0}', notRun.join(', '))] : []),
    ...(steps.length > 0
      ? [say('It needs these, to copy and run yourself:'), ...steps.map(step => `  ${step}`)]
      : []),
    ...findings.slice(0, mostFindings).map(finding => ({
      text: `! ${levelText(finding.level, say).padEnd(6)} ${findingText(finding, say)}`,
      level: finding.level,
    })),
    ...(more > 0 ? [say('and {0} more', String(more))] : []),
    say(
      'Looked at {0} of {1} files. A look finds only what it knows; Telos asks before anything runs.',
      String(counts.read),
      String(counts.of),
    ),
  ].map(line => (typeof line === 'string' ? { text: oneLine(line) } : { ...line, text: oneLine(line.text) }));
}

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

const findingText = (finding: Offer['findings'][number], say: Say): string =>
  finding.kind === 'registry' || finding.kind === 'near-name'
    ? finding.text
    : describeFlag({ ...finding, kind: finding.kind }, say);

const oneLine = (line: string): string => line.replace(/[\r\n]+/g, ' ');
