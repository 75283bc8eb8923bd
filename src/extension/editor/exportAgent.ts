/** Implements `Telos: Export Agent...`: writes an agent as a folder for other hosts, and shows what does not travel. */

import { existsSync } from 'node:fs';
import type { Agent } from '@telos/engine/skills';
import {
  type ExportedAgent,
  type ExportForm,
  type ExportOptions,
  importExportAgents,
} from '@telos/packs/export';
import { beginningOf } from '@telos/protocol/text';
import * as vscode from 'vscode';
import { acknowledge } from '../base/acknowledge.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { emptyPage, openActionPage } from '../base/drawPage.ts';
import { describeError, plainLabel, t, visibleText } from '../base/labels.ts';
import { said } from '../skills/agentPacks.ts';
import { reveal } from '../skills/skillFolders.ts';
import { pickAgent } from './permissions.ts';

/** Exports the agent, or the one that the person picks. */
export const exportAgent = (current: CurrentTelos, known?: Agent): Promise<void> =>
  said(async () => {
    const agent = await agentFor(current, known, vscode.l10n.t('Export Agent'));
    const as = agent && (await pickForm(agent));
    const to = as && (await pickFolder());
    if (!agent || !as || to === undefined || !(await agreesToReplace(agent, { to, as }))) return;
    const { dataDir } = (await current.openTelos()).config;
    let isDeclined = false;
    const agrees = async (folders: readonly string[]): Promise<boolean> => {
      isDeclined = !(await agreesToReplaceSkills(folders));
      return !isDeclined;
    };
    const exported = await written(agent, { to, as, replacing: { dataDir, agrees } }).catch(error => {
      if (isDeclined) return undefined;
      throw error;
    });
    if (!exported) return;
    await showExport(exported, as);
    acknowledge(
      vscode.l10n.t('Exported {0} to {1}.', plainLabel(agent.name), plainLabel(exported.folder, 500)),
      {
        title: vscode.l10n.t('Show in Explorer'),
        act: () => reveal(vscode.Uri.file(exported.folder)),
      },
    );
  });

/** Returns the agent as it is now, or the one that the person picks. Undefined if the person cancels. */
export async function agentFor(
  current: CurrentTelos,
  known: Agent | undefined,
  title: string,
): Promise<Agent | undefined> {
  const agents = await (await current.openTelos()).agents();
  const names = agents.map(agent => agent.name);
  const name = known?.name ?? (await pickAgent(names, title));
  const found = agents.find(agent => agent.name === name);
  if (name !== undefined && !found)
    acknowledge(vscode.l10n.t('Agent {0} no longer exists.', plainLabel(name)));
  return found;
}

async function pickForm({ name }: Agent): Promise<ExportForm | undefined> {
  const items: (vscode.QuickPickItem & { as: ExportForm })[] = [
    {
      label: vscode.l10n.t('For All Apps'),
      detail: vscode.l10n.t('A plugin that Claude Code, VS Code, Copilot and Telos install'),
      as: 'plugin',
    },
    {
      label: vscode.l10n.t('VS Code Extension'),
      detail: vscode.l10n.t('A folder for vsce package'),
      as: 'vscode',
    },
    {
      label: vscode.l10n.t('Skills Only'),
      detail: vscode.l10n.t('A folder of skills, each with its files'),
      as: 'skills',
    },
  ];
  const picked = await vscode.window.showQuickPick(items, {
    title: vscode.l10n.t('Export {0}', plainLabel(name)),
    placeHolder: vscode.l10n.t('Select an export format'),
  });
  return picked?.as;
}

async function pickFolder(): Promise<string | undefined> {
  const picked = await vscode.window.showOpenDialog({
    title: vscode.l10n.t('Select Export Folder'),
    openLabel: vscode.l10n.t('Export'),
    canSelectFiles: false,
    canSelectFolders: true,
  });
  return picked?.[0]?.fsPath;
}

/** Returns true if nothing is in the way, or the person agrees to lose it. Other folders than exports are refused later. */
async function agreesToReplace(agent: Agent, { to, as }: Pick<ExportOptions, 'to' | 'as'>): Promise<boolean> {
  // Which skills are in the way is known when the export is made.
  if (as === 'skills') return true;
  const { exportTargets } = await importExportAgents();
  const there = exportTargets(agent, agent.skills, { to, as }).filter(target => existsSync(target));
  if (there.length === 0) return true;
  return confirmsReplacing([
    vscode.l10n.t('This already exists. It is kept for 30 days, and can be restored:'),
    ...there,
  ]);
}

const agreesToReplaceSkills = (folders: readonly string[]): Promise<boolean> =>
  confirmsReplacing([
    vscode.l10n.t('These skills already exist. They are kept for 30 days, and can be restored:'),
    ...folders,
  ]);

async function confirmsReplacing(detail: readonly string[]): Promise<boolean> {
  const replace = vscode.l10n.t('Replace');
  const answer = await vscode.window.showWarningMessage(
    vscode.l10n.t('Replace what was exported before?'),
    { modal: true, detail: detail.map(line => visibleText(line)).join('\n') },
    replace,
  );
  return answer === replace;
}

/**
 * Exports the agent. If others would refuse its skills, the person is asked about a mended copy, and if something of level high was
 * found, whether to export it as it is. Returns undefined if the person does not want to. Throws TelosError `pack` where no yes is enough.
 */
export async function written(
  agent: Agent,
  options: Omit<ExportOptions, 'marketplace'>,
): Promise<ExportedAgent | undefined> {
  try {
    return await exportWithProgress(agent, options);
  } catch (error) {
    const { ExportRefused } = await importExportAgents();
    if (!(error instanceof ExportRefused) || error.isFinal) throw error;
    const { l10n } = vscode;
    const name = plainLabel(agent.name);
    const [button, question, choice] = error.unless.has('mend')
      ? [l10n.t('Export a Fixed Copy'), l10n.t('Other apps would reject {0} as it is.', name), { mend: true }]
      : [
          l10n.t('Export Anyway'),
          l10n.t('Something in {0} should be read before others get it.', name),
          { allowHigh: true },
        ];
    return (await agreesTo(button, question, error)) ? written(agent, { ...options, ...choice }) : undefined;
  }
}

async function agreesTo(button: string, question: string, error: unknown): Promise<boolean> {
  const detail = beginningOf(visibleText(describeError(error)), 2_000);
  return (await vscode.window.showWarningMessage(question, { modal: true, detail }, button)) === button;
}

async function exportWithProgress(agent: Agent, options: ExportOptions): Promise<ExportedAgent | undefined> {
  const { exportAgents } = await importExportAgents();
  const title = vscode.l10n.t('Exporting {0}', plainLabel(agent.name));
  const location = vscode.ProgressLocation.Notification;
  const [exported] = await vscode.window.withProgress({ location, title }, () =>
    exportAgents([agent], options),
  );
  return exported;
}

/** Shows on a page what was written and what others do not get. */
export async function showExport(
  { agent, folder, skills, servers, notes, scan }: ExportedAgent,
  as: ExportForm,
): Promise<void> {
  const list = (names: readonly string[]): string => (names.length > 0 ? names.join(', ') : t('none'));
  const title = t('Export of {0}', plainLabel(agent));
  const facts = [
    t('Folder: {0}', folder),
    t('Skills: {0}', list(skills)),
    ...(as === 'skills' ? [] : [t('MCP servers: {0}', list(servers))]),
    t('Files checked: {0} of {1}. Findings: {2} high, {3} medium, {4} low.', ...Object.values(counts(scan))),
    '',
    notes.length > 0 ? t('What others do not get, or should know:') : t('Everything is included.'),
    ...notes.map(note => `- ${note}`),
  ];
  await openActionPage({
    type: 'telos.export',
    title,
    waiting: '',
    draw: async () => ({ ...emptyPage, title, sections: [{ title: '', rows: facts.map(line => [line]) }] }),
  });
}

const counts = ({ read, of, high, medium, low }: ExportedAgent['scan']) => ({ read, of, high, medium, low });
