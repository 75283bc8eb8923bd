/** Lets VS Code's own chat use an agent, and takes it out again: by the person's setting `chat.pluginLocations`. */

import { existsSync } from 'node:fs';
import { rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { importConfig } from '@telos/engine/mcp';
import type { Agent } from '@telos/engine/skills';
import {
  chatCopy,
  folderInChat,
  importManifests,
  isChatCopy,
  withLocation,
  withoutLocation,
} from '@telos/packs/export';
import * as vscode from 'vscode';
import { acknowledge } from '../base/acknowledge.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { plainLabel, visibleText } from '../base/labels.ts';
import { said } from '../skills/agentPacks.ts';
import { chatPluginLocations, locationsSetting } from '../skills/skillTree.ts';
import { agentFor, showExport, written } from './exportAgent.ts';

/** Adds the agent, or the one that the person picks, after a yes. A copy of before is replaced. */
export const useInChat = (current: CurrentTelos, known?: Agent): Promise<void> =>
  said(async () => {
    const agent = await agentFor(current, known, vscode.l10n.t("Use an Agent in VS Code's Chat"));
    if (!agent) return;
    const { dataDir } = (await current.openTelos()).config;
    const { isPlugin } = await importManifests();
    const isOwn = isPlugin(agent);
    const folder = isOwn ? agent.packDir : chatCopy(agent, dataDir);
    if (!(await agrees(agent, folder, isOwn))) return;
    const exported = isOwn ? undefined : await written(agent, { to: dirname(folder), as: 'plugin' });
    if (!isOwn && !exported) return;
    const locations = withLocation(chatPluginLocations(), folder);
    if (locations) await setLocations(locations);
    if (exported && exported.notes.length > 0) await showExport(exported, 'plugin');
    acknowledge(vscode.l10n.t("VS Code's chat uses {0} now.", plainLabel(agent.name)));
  });

async function agrees(agent: Agent, folder: string, isOwn: boolean): Promise<boolean> {
  const { l10n } = vscode;
  const skills = agent.skills.map(({ id }) => id).join(', ');
  const detail = [
    l10n.t('The chat then uses these skills, with its own model and tools: {0}', plainLabel(skills, 500)),
    ...(await serverLines(agent)),
    ...chatFolders
      .filter(name => existsSync(join(agent.packDir, name)))
      .map(name =>
        l10n.t('It also takes the folder {0}, which can hold commands that run by themselves.', name),
      ),
    l10n.t('The rules of Telos and the permissions of the agent do not apply there.'),
    '',
    isOwn
      ? l10n.t('It reads the folder of the agent: {0}', folder)
      : l10n.t('It reads a copy, which later changes reach when you do this again: {0}', folder),
    l10n.t('Your user settings name that folder, under {0}. It holds for every window.', locationsSetting),
    ...(vscode.workspace.getConfiguration().get('chat.plugins.enabled') === false
      ? [l10n.t('Plugins are switched off by the setting {0}.', 'chat.plugins.enabled')]
      : []),
  ];
  const use = l10n.t('Use');
  const answer = await vscode.window.showWarningMessage(
    l10n.t("Use agent {0} in VS Code's chat?", plainLabel(agent.name)),
    { modal: true, detail: detail.map(line => visibleText(line)).join('\n') },
    use,
  );
  return answer === use;
}

/** Folders of a plugin from which VS Code takes hooks, prompts and what runs by the clock. */
const chatFolders = ['com.github.copilot', 'automations'];

/** Returns a line for each server that the chat can start. What VS Code reads may be another file than what Telos reads. */
async function serverLines({ packDir, mcpConfig }: Agent): Promise<string[]> {
  const { placeOf, readMcpConfig } = await importConfig();
  const files = new Set([mcpConfig, join(packDir, 'mcp.json')].filter(file => file !== undefined));
  const lines = [...files]
    .filter(file => existsSync(file))
    .flatMap(file => [...readMcpConfig(file).servers])
    .map(([name, server]) =>
      vscode.l10n.t(
        'It can start the MCP server {0}: {1}',
        plainLabel(name),
        plainLabel(placeOf(server), 300),
      ),
    );
  return [...new Set(lines)];
}

async function setLocations(locations: object): Promise<void> {
  try {
    await vscode.workspace
      .getConfiguration()
      .update(locationsSetting, locations, vscode.ConfigurationTarget.Global);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(vscode.l10n.t('VS Code did not take the setting {0}: {1}', locationsSetting, reason));
  }
}

/** Takes the agent out again, or the one that the person picks. The copy is deleted. */
export const stopUsingInChat = (current: CurrentTelos, known?: Agent): Promise<void> =>
  said(async () => {
    const telos = await current.openTelos();
    const { dataDir } = telos.config;
    const locations = chatPluginLocations();
    const folder = known
      ? folderInChat(known, dataDir, locations)
      : await pickUsed(await telos.agents(), dataDir, Object.keys(locations));
    if (folder === undefined) return;
    const without = withoutLocation(locations, folder);
    if (without) await setLocations(without);
    if (isChatCopy(folder, dataDir)) {
      await rm(folder, { recursive: true, force: true });
      // Another agent of the same folder may have its copy there.
      await rmdir(dirname(folder)).catch(() => {});
    }
    acknowledge(vscode.l10n.t("VS Code's chat does not use {0} any more.", plainLabel(basename(folder))));
  });

/** Lists the agents that the setting names, also those that were uninstalled since. */
async function pickUsed(
  agents: readonly Agent[],
  dataDir: string,
  folders: readonly string[],
): Promise<string | undefined> {
  const items = folders.flatMap(folder => {
    const agent = agents.find(one => one.packDir === folder || chatCopy(one, dataDir) === folder);
    return agent || isChatCopy(folder, dataDir)
      ? [{ label: plainLabel(agent?.name ?? basename(folder)), detail: plainLabel(folder, 500), folder }]
      : [];
  });
  if (items.length === 0) {
    acknowledge(vscode.l10n.t("VS Code's chat uses no agent of Telos."));
    return undefined;
  }
  const title = vscode.l10n.t("Stop Using an Agent in VS Code's Chat");
  return (await vscode.window.showQuickPick(items, { title }))?.folder;
}
