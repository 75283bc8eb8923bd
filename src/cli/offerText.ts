/** Writes a pack that could be installed as lines of text: what it holds, where it comes from, and what was found in it. */
import type { Offer } from '../engine/sources/install.ts';
import { describeFlag } from '../protocol/agentCard.ts';
import type { Style } from './terminal.ts';
import { exactText } from './terminalText.ts';

const mostSkills = 40;
const mostFindings = 20;

/** Returns the lines above the question which of its skills are wanted. */
export function contentLines({ from, way, skills, name }: Offer): string[] {
  const wide = Math.min(28, Math.max(...skills.map(({ id }) => id.length), 4));
  const shown = skills.slice(0, mostSkills).map(({ id, description, bytes, scripts, problems }, at) => {
    const size = `${kilobytes(bytes)}${scripts > 0 ? `, ${scripts} ${scripts === 1 ? 'script' : 'scripts'}` : ''}`;
    const trouble = problems.length > 0 ? `  ! ${problems[0]}` : '';
    return `  ${String(at + 1).padStart(2)} ${id.padEnd(wide)}  ${shortened(description)}  (${size})${trouble}`;
  });
  const more = skills.length > mostSkills ? [`  ... and ${skills.length - mostSkills} more`] : [];
  const count = skills.length === 1 ? '1 skill' : `${skills.length} skills`;
  return [`${from}`, `It holds ${count} (found by ${way}), for agent '${name}':`, ...shown, ...more].map(
    exactLine,
  );
}

/** Returns the lines of the card above the question whether to install it. */
export function cardLines(offer: Offer, style: Style): string[] {
  const { card, plan, leftOut, counts, steps, notRun, findings } = offer;
  const state = plan.replaces
    ? plan.replaces.isSame
      ? '(installed, the same)'
      : '(replaces the one that is there)'
    : '(new)';
  const list = (title: string, items: readonly string[]): string => `${title}: ${items.join(' ') || 'none'}`;
  const asked = [
    list('Hosts', card.hosts),
    list('Scripts', card.scripts),
    list('Variables', card.variables),
    list(
      'MCP servers',
      card.servers.map(({ name, place }) => `${name} (${place})`),
    ),
  ];
  const shown = findings.slice(0, mostFindings).map(finding => {
    const words =
      finding.kind === 'registry' || finding.kind === 'near-name'
        ? finding.text
        : describeFlag({ ...finding, kind: finding.kind });
    const line = exactLine(`! ${finding.level.padEnd(6)} ${words}`);
    return finding.level === 'high' ? style.red(line) : style.yellow(line);
  });
  return [
    exactLine(`Agent ${offer.name} ${state}`),
    exactLine(`From: ${offer.from}`),
    ...asked.map(exactLine),
    ...(card.commands?.length ? [exactLine(list('Commands', card.commands))] : []),
    ...(leftOut.length > 0
      ? [
          exactLine(
            `Left out: ${leftOut.slice(0, 10).join(', ')}${leftOut.length > 10 ? ` and ${leftOut.length - 10} more` : ''}`,
          ),
        ]
      : []),
    ...(notRun.length > 0 ? [exactLine(`Present and not run: ${notRun.join(', ')}`)] : []),
    ...(steps.length > 0
      ? ['It needs these, to copy and run yourself:', ...steps.map(step => exactLine(`  ${step}`))]
      : []),
    ...shown,
    ...(findings.length > mostFindings ? [`... and ${findings.length - mostFindings} more`] : []),
    `Looked at ${counts.read} of ${counts.of} files. A look finds only what it knows; Telos asks before anything runs.`,
  ];
}

/** A pack chooses its texts, so none may break a line or hide. */
const exactLine = (line: string): string => exactText(line.replaceAll('\n', ' '));

const shortened = (text: string): string => {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > 70 ? `${line.slice(0, 69)}…` : line;
};

const kilobytes = (bytes: number): string =>
  bytes < 1000 ? `${bytes} bytes` : `${Math.round(bytes / 1000)} KB`;

/** Returns an offer as plain data, without the ways to its files. */
export function offerJson(offer: Offer): object {
  const { kind: _kind, read: _read, dispose: _dispose, plan, ...data } = offer;
  return { ...data, replaces: plan.replaces ?? null, target: plan.target };
}
