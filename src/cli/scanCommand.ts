/** Implements `telos scan`: the look before, for an agent, a folder or a source that is not installed. */

import { statSync } from 'node:fs';
import type { TelosError } from '@telos/engine/errors';
import { isAtLeast, ownFolders, rules } from '@telos/engine/policy';
import { discoverAgents } from '@telos/engine/skills';
import { passes, type ScanReport, sarifOf, scanFolders } from '@telos/packs/audit';
import {
  importLook,
  parseSource,
  type ScannedSource,
  type Source,
  type SourceProgress,
  UnclearSource,
} from '@telos/packs/install';
import { type FindingLevel, flagWords } from '@telos/protocol/agentCard';
import { counted } from '@telos/protocol/text';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { sayProgress } from './offerText.ts';
import { interruptible, type Terminal } from './terminal.ts';
import { exactText, lookErrorText, terminalJson, toType } from './terminalText.ts';

export interface ScanOptions extends ConfigOptions {
  json?: boolean;
  sarif?: boolean;
  failOn?: FindingLevel;
}

/**
 * Returns the exit code: 1 for a finding of the level or above, if a file could not be looked into or there is none, or if a source was
 * refused or cannot be reached. It is 2 if there is no such agent or folder, or if the source has to be said more exactly.
 */
export async function scanCommand(
  what: string,
  options: ScanOptions,
  terminal: Terminal,
  version: string,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const agent = discoverAgents(config).find(({ name }) => name === what);
  const use = async (signal: AbortSignal): Promise<number> => {
    const source: Source = agent ? { kind: 'folder', path: agent.packDir } : parseSource(what, config);
    if (source.kind !== 'folder') {
      const { scanSource } = await importLook();
      const progress = (event: SourceProgress): void => sayProgress(event, terminal);
      const report = await scanSource(source, config, { signal, progress });
      return show(report, { source: report.source }, options, terminal, version);
    }
    const folder = source.path;
    if (!agent && !statSync(folder, { throwIfNoEntry: false })) {
      terminal.say(
        `There is no agent and no folder ${exactText(what)}. \`telos agents\` lists the agents.${elsewhere(what)}`,
      );
      return 2;
    }
    const report = await scanFolders(folder, agent ? ownFolders(agent) : [folder]);
    return show(report, { folder }, options, terminal, version);
  };
  return interruptible(terminal, use, { refused: error => refused(error, terminal) });
}

/** `owner/repo` alone is what other programs take for GitHub. */
const elsewhere = (what: string): string =>
  /^[\w-]+\/[\w.-]+$/.test(what) ? ` For a repository of GitHub: github:${what}` : '';

function refused(error: TelosError, terminal: Terminal): number {
  terminal.say(terminal.style.red(lookErrorText(error)));
  if (!(error instanceof UnclearSource)) return 1;
  for (const choice of error.choices) terminal.say(`  ${toType('scan', choice)}`);
  return 2;
}

type Report = ScanReport & Partial<ScannedSource>;
type Place = { folder: string } | { source: string };

function show(
  report: Report,
  place: Place,
  { json, sarif, failOn = 'high' }: ScanOptions,
  terminal: Terminal,
  version: string,
): number {
  if (sarif) terminal.out(`${terminalJson(sarifOf(report, place, version))}\n`);
  else if (json) terminal.out(`${terminalJson(record(report, place))}\n`);
  else print(report, terminal);
  const { verdict } = report;
  // Code hosts show what is in a file, so the registry's word stands beside it.
  if (sarif && verdict) terminal.say(exactText(`${verdict.by}: ${verdict.text}`));
  return passes(report, failOn) && !(verdict && isAtLeast(verdict.level, failOn)) ? 0 : 1;
}

function record({ findings, ...report }: Report, place: Place) {
  return {
    ...place,
    ...report,
    findings: findings.map(({ kind, ...finding }) => ({
      rule: kind,
      says: flagWords(kind),
      ...rules[kind],
      ...finding,
    })),
  };
}

function print(report: Report, terminal: Terminal): void {
  const { findings, read, of, high, medium, low, from, leftOut = [], verdict } = report;
  if (from !== undefined) terminal.say(exactText(from));
  if (leftOut.length > 0) terminal.say(exactText(`Left out: ${leftOut.join(', ')}`));
  if (verdict) terminal.out(`${exactText(`${verdict.level.padEnd(6)}  ${verdict.by}: ${verdict.text}`)}\n`);
  for (const [index, { kind, level, file, line, text }] of findings.entries()) {
    const what = `${flagWords(kind)}${text === '' ? '' : `: ${text}`}`;
    terminal.out(`${exactText(`${level.padEnd(6)}  ${file}:${line}  ${what}`)}\n`);
    const next = findings[index + 1];
    if (level === 'low' || (next?.kind === kind && next.level === level)) continue;
    terminal.out(`        ${rules[kind].why} Instead: ${rules[kind].instead}\n`);
  }
  const unread = of - read;
  const parts = [
    `Checked ${read} of ${counted(of, 'file')}: ${high} high, ${medium} medium, ${low} low.`,
    of === 0 ? 'There is no file to check, so the scan does not pass.' : '',
    unread > 0 ? `${counted(unread, 'file')} could not be checked, so the scan does not pass.` : '',
    'The scan finds only known patterns; Telos asks before anything runs.',
  ];
  terminal.say(parts.filter(Boolean).join(' '));
}
