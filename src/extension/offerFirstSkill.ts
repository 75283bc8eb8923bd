/** What a command says that wants a skill or an agent where there is none yet. */
import * as vscode from 'vscode';

/** Returns once the person has taken one of the two ways to a first skill, or neither. */
export async function offerFirstSkill(): Promise<void> {
  const commands: Readonly<Record<string, string>> = {
    [vscode.l10n.t('New Skill...')]: 'telos.newSkill',
    [vscode.l10n.t('Add the Sample Pack')]: 'telos.addSamplePack',
  };
  const answer = await vscode.window.showInformationMessage(
    vscode.l10n.t('There are no skills yet.'),
    ...Object.keys(commands),
  );
  const command = answer && commands[answer];
  if (command) await vscode.commands.executeCommand(command);
}
