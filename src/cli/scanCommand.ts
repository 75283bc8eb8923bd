/** Implements `telos scan`: the look before, for an agent or a folder. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { ownFolders } from '../engine/policy/agentFiles.ts';
import { sarifOf } from '../engine/scan/sarif.ts';
import { passes, type ScanReport } from '../engine/scan/scan.ts';
import { scanFolders } from '../engine/scan/scanFolder.ts';
import { rules } from '../engine/scan/weight.ts';
import { discoverAgents } from '../engine/skills/discover.ts';
import { type FindingLevel, flagWords } from '../protocol/agentCard.ts';
import { counted } from '../protocol/text.ts';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import type { Terminal } from './terminal.ts';
import { exactText, terminalJson } from './terminalText.ts';

export interface ScanOptions extends ConfigOptions {
  json?: boolean;
  sarif?: boolean;
  failOn?: FindingLevel;
}

/**
 * Returns the exit code: 1 for a finding of the level or above, or if a file could not be looked into. It is 2 if there is no such
 * agent or folder.
 */
export async function scanCommand(
  what: string | undefined,
  options: ScanOptions,
  terminal: Terminal,
  version: string,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const agent = discoverAgents(config).find(({ name }) => name === what);
  const folder = agent?.packDir ?? resolve(config.cwd, what ?? '');
  if (!agent && !statSync(folder, { throwIfNoEntry: false })) {
    terminal.say(
      `There is no agent and no folder ${exactText(what ?? '')}. \`telos agents\` lists the agents.`,
    );
    return 2;
  }
  const report = await scanFolders(folder, agent ? await ownFolders(agent) : [folder]);
  if (options.sarif) terminal.out(`${terminalJson(sarifOf(report, folder, version))}\n`);
  else if (options.json) terminal.out(`${terminalJson(record(report, folder))}\n`);
  else print(report, terminal);
  return passes(report, options.failOn ?? 'high') ? 0 : 1;
}

function record({ findings, ...report }: ScanReport, folder: string) {
  return {
    folder,
    ...report,
    findings: findings.map(({ kind, ...finding }) => ({
      rule: kind,
      says: flagWords(kind),
      ...rules[kind],
      ...finding,
    })),
  };
}

function print({ findings, read, of, high, medium, low }: ScanReport, terminal: Terminal): void {
  for (const [index, { kind, level, file, line, text }] of findings.entries()) {
    const what = `${flagWords(kind)}${text === '' ? '' : `: ${text}`}`;
    terminal.out(`${exactText(`${level.padEnd(6)}  ${file}:${line}  ${what}`)}\n`);
    const next = findings[index + 1];
    if (level === 'low' || (next?.kind === kind && next.level === level)) continue;
    terminal.out(`        ${rules[kind].why} Instead: ${rules[kind].instead}\n`);
  }
  const unread = of - read;
  const parts = [
    `Looked into ${read} of ${counted(of, 'file')}: ${high} high, ${medium} medium, ${low} low.`,
    unread > 0 ? `${counted(unread, 'file')} could not be looked into, which is never a pass.` : '',
    'A look finds only what it knows; Telos asks before anything runs.',
  ];
  terminal.say(parts.filter(Boolean).join(' '));
}
