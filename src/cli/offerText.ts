/** Prints a pack that could be installed: as lines with colors, or as plain data. */
import type { Offer, SourceProgress } from '@telos/packs/install';
import { type CardLine, cardLines, sizeText } from '@telos/protocol/packOffer';
import { counted, shortened } from '@telos/protocol/text';
import type { Style, Terminal } from './terminal.ts';
import { exactText } from './terminalText.ts';

/** Says what makes a person wait. */
export function sayProgress(event: SourceProgress, terminal: Terminal): void {
  if (event.kind === 'waiting')
    terminal.say(exactText(`${event.host} asks to wait ${event.seconds} seconds ...`));
}

const mostSkills = 40;

/** Returns the lines above the question which of its skills are wanted. */
export function contentLines({ from, way, skills, name }: Offer): string[] {
  const wide = Math.min(28, Math.max(...skills.map(({ id }) => id.length), 4));
  const shown = skills.slice(0, mostSkills).map((skill, at) => {
    const trouble = skill.problems.length > 0 ? `  ! ${skill.problems[0]}` : '';
    const description = shortened(skill.description.replace(/\s+/g, ' ').trim(), 70);
    return `  ${String(at + 1).padStart(2)} ${skill.id.padEnd(wide)}  ${description}  (${sizeText(skill)})${trouble}`;
  });
  const more = skills.length > mostSkills ? [`  ... and ${skills.length - mostSkills} more`] : [];
  const holds = `It holds ${counted(skills.length, 'skill')} (found by ${way}), for agent '${name}':`;
  return [from, holds, ...shown, ...more].map(line => exactText(line.replaceAll('\n', ' ')));
}

/** Returns the lines of the card above the question whether to install it. */
export const colouredCard = (offer: Offer, style: Style): string[] => colouredLines(cardLines(offer), style);

/** Returns lines of a card, with colors for what was found. */
export const colouredLines = (lines: readonly CardLine[], style: Style): string[] =>
  lines.map(({ text, level }) => {
    const line = exactText(text);
    return level === undefined ? line : level === 'high' ? style.red(line) : style.yellow(line);
  });

/** Returns an offer as plain data, without the ways to its files. */
export function offerJson(offer: Offer): object {
  const { kind: _kind, read: _read, dispose: _dispose, plan, ...data } = offer;
  return { ...data, replaces: plan.replaces ?? null, target: plan.target };
}
