/** Implements `telos export`: writes agents for other hosts. */

import { join, resolve } from 'node:path';
import { shellWord } from '@telos/engine/files';
import { discoverAgents } from '@telos/engine/skills';
import { keptDays } from '@telos/engine/undo';
import {
  type ExportedAgent,
  type ExportForm,
  ExportRefused,
  exportAgents,
  linkSkills,
  unlinkSkills,
} from '@telos/packs/export';
import { counted } from '@telos/protocol/text';
import { type ConfigOptions, configFor, unexpectedText } from './cliConfig.ts';
import type { Terminal } from './terminal.ts';
import { agrees } from './terminalHuman.ts';
import { exactText, terminalJson, toType } from './terminalText.ts';

export interface ExportCommandOptions extends ConfigOptions {
  to?: string;
  as?: ExportForm;
  marketplace?: string;
  fix?: boolean;
  allow?: string;
  link?: string;
  unlink?: string;
  yes?: boolean;
  json?: boolean;
}

/** Returns the exit code: 1 if something cannot be exported, 2 if an agent does not exist or the call says too little. */
export async function exportCommand(
  names: readonly string[],
  options: ExportCommandOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  if (options.unlink !== undefined) return unlink(resolve(config.cwd, options.unlink), options, terminal);
  const known = discoverAgents(config);
  const missing = names.filter(name => !known.some(agent => agent.name === name));
  if (missing.length > 0 || names.length === 0 || options.to === undefined) {
    terminal.say(
      missing.length > 0
        ? `There is no agent called ${missing.map(name => `'${exactText(name)}'`).join(', ')}. \`telos agents\` lists the agents.`
        : 'Say which agents and where: telos export <agent...> --to <folder>.',
    );
    return 2;
  }
  const { as = options.link === undefined ? 'plugin' : 'skills', fix: mend = false, marketplace } = options;
  if ((options.link !== undefined && as !== 'skills') || (marketplace !== undefined && as !== 'plugin')) {
    terminal.say('--link goes with --as skills, and --marketplace with --as plugin.');
    return 2;
  }
  const to = resolve(config.cwd, options.to);
  try {
    const agents = known.filter(({ name }) => names.includes(name));
    const replacing = {
      dataDir: config.dataDir,
      agrees: (folders: readonly string[]) => mayReplace(folders, options, terminal),
    };
    const allowHigh = options.allow === 'high';
    const exported = await exportAgents(agents, { to, as, mend, allowHigh, marketplace, replacing });
    const linked =
      options.link === undefined
        ? undefined
        : await linkSkills(join(to, 'skills'), resolve(config.cwd, options.link));
    if (options.json)
      terminal.out(`${terminalJson({ to, as, agents: exported, ...(linked && { linked }) })}\n`);
    else print(exported, { to, as, marketplace }, terminal);
    for (const { path, as: way } of options.json ? [] : (linked ?? []))
      terminal.out(`${way === 'link' ? 'Linked' : 'Copied'} ${exactText(path)}\n`);
    return 0;
  } catch (error) {
    terminal.say(unexpectedText(error, terminal));
    const unless = error instanceof ExportRefused ? error.unless : undefined;
    if (unless?.has('mend'))
      terminal.say(
        '`telos lint --fix` fixes some of it in the skill; --fix fixes the copy that is exported.',
      );
    if (unless?.has('allowHigh'))
      terminal.say('To export it as it is, review the findings, then add: --allow high');
    return 1;
  }
}

/** Anybody's skill may be there. What is replaced can be brought back. */
async function mayReplace(
  folders: readonly string[],
  { yes, json }: ExportCommandOptions,
  terminal: Terminal,
): Promise<boolean> {
  if (yes) return true;
  for (const folder of folders) terminal.say(exactText(`There is a skill in ${folder} already.`));
  const unattended = 'To replace what is there without being asked: --yes';
  return agrees(
    `The old ${folders.length === 1 ? 'folder is' : 'folders are'} kept for ${keptDays} days; telos undo brings them back.`,
    'Replace?',
    unattended,
    json ? { ...terminal, canAsk: false } : terminal,
  );
}

async function unlink(
  workspace: string,
  { json }: ExportCommandOptions,
  terminal: Terminal,
): Promise<number> {
  const result = await unlinkSkills(workspace);
  if (json) terminal.out(`${terminalJson(result)}\n`);
  else {
    for (const path of result.removed) terminal.out(`Removed ${exactText(path)}\n`);
    for (const path of result.kept) terminal.say(`${exactText(path)} was changed since and stays.`);
    if (result.removed.length + result.kept.length === 0) terminal.say('Nothing there was linked by Telos.');
  }
  return 0;
}

function print(
  exported: readonly ExportedAgent[],
  { to, as, marketplace }: { to: string; as: ExportForm; marketplace: string | undefined },
  terminal: Terminal,
): void {
  for (const { agent, folder, skills, servers, notes, scan, undoIds } of exported) {
    terminal.out(
      `${exactText(`${agent}: ${counted(skills.length, 'skill')}, ${counted(servers.length, 'MCP server')} in ${folder}`)}\n`,
    );
    for (const note of notes) terminal.out(`  ${exactText(note)}\n`);
    for (const id of undoIds)
      terminal.out(
        `  What was there is kept for ${keptDays} days. To bring it back: telos undo ${id.slice(0, 8)}\n`,
      );
    terminal.out(
      `  Checked ${scan.read} of ${counted(scan.of, 'file')}: ${scan.high} high, ${scan.medium} medium, ${scan.low} low.\n`,
    );
  }
  const first = exported[0];
  if (first) for (const line of ways(first, to, as, marketplace)) terminal.say(exactText(line));
}

/** Returns how each host takes what was written, a line each. */
function ways({ agent, folder }: ExportedAgent, to: string, as: ExportForm, marketplace?: string): string[] {
  switch (as) {
    case 'plugin':
      return [
        marketplace === undefined
          ? `Claude Code: claude --plugin-dir ${shellWord(folder)}`
          : `Claude Code: claude plugin marketplace add ${shellWord(to)} && claude plugin install ${shellWord(`${agent}@${marketplace}`)}`,
        `VS Code: "chat.pluginLocations": { ${JSON.stringify(folder)}: true }`,
        `skills: npx skills add ${shellWord(folder)}`,
        `Telos: ${toType('install', folder)}`,
      ];
    case 'vscode':
      return [
        `VS Code: cd ${shellWord(folder)} && npx @vscode/vsce package && code --install-extension *.vsix`,
      ];
    case 'skills':
      return [`skills: npx skills add ${to}`];
  }
}
