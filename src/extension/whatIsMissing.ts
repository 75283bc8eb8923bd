/** *What Is Missing* in the tree: what a skill lacks on this machine, why it wants it, and commands to copy. */
import * as vscode from 'vscode';
import type { Missing } from '../engine/agents/readiness.ts';
import { plainLabel } from './plainLabel.ts';
import type { SkillNode } from './skillTree.ts';

interface MissingItem extends vscode.QuickPickItem {
  /** Put on the clipboard when it is picked; absent where there is nothing to copy. */
  copy?: string;
}

export function registerWhatIsMissing(): vscode.Disposable {
  return vscode.commands.registerCommand(
    'telos.whatIsMissing',
    async ({ skill, missing = [] }: SkillNode) => {
      if (missing.length === 0) {
        void vscode.window.showInformationMessage(
          vscode.l10n.t('{0} has what it needs.', plainLabel(skill.id)),
        );
        return;
      }
      const picked = await vscode.window.showQuickPick(missing.flatMap(missingItems), {
        title: vscode.l10n.t('What {0} lacks here', plainLabel(skill.id)),
        placeHolder: vscode.l10n.t('Pick a command to copy it. Nothing is installed from here.'),
        matchOnDetail: true,
      });
      if (picked?.copy === undefined) return;
      await vscode.env.clipboard.writeText(picked.copy);
      vscode.window.setStatusBarMessage(vscode.l10n.t('Copied: {0}', plainLabel(picked.copy, 80)), 5_000);
    },
  );
}

function missingItems({ kind, what, reason, nextStep, commands }: Missing): MissingItem[] {
  const item: MissingItem = {
    label: `$(circle-slash) ${plainLabel(what)}`,
    description: kind,
    detail: plainLabel(`${reason} ${nextStep}`, 400),
    ...(kind === 'variable' && { copy: what }),
  };
  const copies = commands.map(command => ({
    label: `$(copy) ${plainLabel(command, 300)}`,
    description: "copy the author's command",
    copy: command,
  }));
  return [item, ...copies];
}
