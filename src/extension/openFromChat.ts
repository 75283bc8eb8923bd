/** What a press in the chat opens: links that lead nowhere but out, and files of folders that the person works with. */
import * as vscode from 'vscode';
import type { CurrentTelos } from './currentTelos.ts';
import { openableFile, openableLink } from './openTarget.ts';
import { plainLabel } from './plainLabel.ts';

interface Desk {
  current: CurrentTelos;
  log: vscode.LogOutputChannel;
}

export async function openLink(url: string, log: Desk['log']): Promise<void> {
  const link = openableLink(url);
  if (link) await vscode.env.openExternal(vscode.Uri.parse(link, true));
  else log.warn(`A link was not opened, only http, https and mailto are: ${plainLabel(url)}`);
}

/** `workingDir` is where the conversation's latest skill worked. */
export async function openFile(
  path: string,
  workingDir: string | undefined,
  { current, log }: Desk,
): Promise<void> {
  const file = await openableFile(path, await openableFolders(current, workingDir), workingDir);
  if (file) {
    await vscode.commands.executeCommand('vscode.open', vscode.Uri.file(file));
    return;
  }
  log.warn(`A file was not opened: ${plainLabel(path, 1_000)}`);
  void vscode.window.showWarningMessage(
    vscode.l10n.t(
      '{0} is gone, or lies outside the workspace, the working folders and the skills.',
      plainLabel(path),
    ),
  );
}

async function openableFolders(current: Desk['current'], workingDir: string | undefined): Promise<string[]> {
  const telos = await current.openTelos();
  const agents = await telos.agents();
  return [
    ...(vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath),
    ...(workingDir ? [workingDir] : []),
    telos.config.skillsDir,
    ...agents.flatMap(agent => [agent.workingDir, agent.packDir, ...agent.skills.map(({ dir }) => dir)]),
  ];
}
