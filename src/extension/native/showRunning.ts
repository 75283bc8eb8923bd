/** What the status bar's item opens while something runs: each run with its model and cost so far, to stop it. */
import * as vscode from 'vscode';
import { formatCost } from '../../protocol/daySpending.ts';
import { plainLabel } from '../plainLabel.ts';
import type { NativeRun } from './nativeRuns.ts';

interface RunningItem extends vscode.QuickPickItem {
  act?: () => unknown;
}

interface Running {
  chats: { readonly runningInChats: number; stopChats(): void };
  runs: { readonly running: readonly NativeRun[] };
}

export function registerShowRunning({ chats, runs }: Running): vscode.Disposable {
  return vscode.commands.registerCommand('telos.showRunning', async () => {
    const picked = await vscode.window.showQuickPick(itemsOf({ chats, runs }), {
      title: vscode.l10n.t('What Telos runs now'),
      placeHolder: vscode.l10n.t('Pick a run to stop it'),
      matchOnDescription: true,
    });
    await picked?.act?.();
  });
}

function itemsOf({ chats, runs }: Running): RunningItem[] {
  const inChats = chats.runningInChats;
  return [
    ...runs.running.map(
      ({ skill, model, cost, controller }): RunningItem => ({
        label: `$(debug-stop) ${vscode.l10n.t('Stop {0}', plainLabel(skill || vscode.l10n.t('a run that has just begun'), 80))}`,
        description: plainLabel([model, cost > 0 ? formatCost(cost) : ''].filter(Boolean).join(' · ')),
        act: () => controller.abort(),
      }),
    ),
    ...(inChats > 0
      ? [
          {
            label: `$(debug-stop) ${inChats === 1 ? vscode.l10n.t('Stop the run of the chat') : vscode.l10n.t('Stop {0} runs of the chat', inChats)}`,
            act: () => chats.stopChats(),
          },
        ]
      : []),
    { label: '', kind: vscode.QuickPickItemKind.Separator },
    {
      label: vscode.l10n.t('Choose Model...'),
      act: () => vscode.commands.executeCommand('telos.chooseModel'),
    },
    { label: vscode.l10n.t('Open Log'), act: () => vscode.commands.executeCommand('telos.openLog') },
  ];
}
