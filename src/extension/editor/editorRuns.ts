/**
 * Holds the runs that the editor's own features start: its chat, its tools, a task, a document. Each of them ends
 * before the host does.
 */

import { Interruption } from '@telos/engine/errors';
import type { Human, RunRequest } from '@telos/engine/run';
import type { RunEvent } from '@telos/protocol/run';
import { formatCost } from '@telos/protocol/usage';
import * as vscode from 'vscode';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeMessage, plainLabel } from '../base/labels.ts';

export type RunEnd = Extract<RunEvent, { type: 'run_end' }>;

/** Shown wherever something would run in Restricted Mode. */
export const untrustedMessage = vscode.l10n.t(
  'This workspace is in Restricted Mode, so nothing runs here. Trust it with "Workspaces: Manage Workspace Trust", then try again.',
);

/** An active run, as far as it is known yet. */
export interface NativeRun {
  /** Empty until it is known. */
  skill: string;
  model: string;
  /** In US dollars. Rounds without a known price count as zero. */
  cost: number;
  readonly controller: AbortController;
}

export class NativeRuns implements vscode.Disposable {
  readonly #current: CurrentTelos;
  readonly #running = new Map<NativeRun, Promise<RunEnd>>();
  readonly #changed = new vscode.EventEmitter<void>();

  /** Fires when a run has started, ended, or reported more about itself. */
  readonly onDidChange = this.#changed.event;

  constructor(current: CurrentTelos) {
    this.#current = current;
  }

  get running(): readonly NativeRun[] {
    return [...this.#running.keys()];
  }

  /** Stops every run. */
  stop(): void {
    for (const { controller } of this.#running.keys()) controller.abort();
  }

  dispose(): void {
    this.#changed.dispose();
  }

  /**
   * Runs a request to its end and passes on every event. Rejects if nothing may run or the engine cannot be opened.
   * Later errors are part of the run's end.
   */
  async run(
    request: RunRequest,
    human: Human,
    token: vscode.CancellationToken,
    onEvent: (event: RunEvent) => void,
  ): Promise<RunEnd> {
    if (!vscode.workspace.isTrusted) throw new Error(untrustedMessage);
    const controller = new AbortController();
    const cancelling = token.onCancellationRequested(() => controller.abort());
    if (token.isCancellationRequested) controller.abort();
    const one: NativeRun = { skill: '', model: '', cost: 0, controller };
    const run = this.#follow({ origin: 'editor', ...request }, human, one, onEvent);
    this.#running.set(one, run);
    this.#changed.fire();
    try {
      return await run;
    } finally {
      this.#running.delete(one);
      cancelling.dispose();
      this.#changed.fire();
    }
  }

  /** Aborts the active runs and waits for their end. */
  async end(): Promise<void> {
    for (const { controller } of this.#running.keys()) controller.abort(new Interruption());
    await Promise.allSettled(this.#running.values());
  }

  async #follow(
    request: RunRequest,
    human: Human,
    one: NativeRun,
    onEvent: (event: RunEvent) => void,
  ): Promise<RunEnd> {
    await this.#current.look();
    const telos = await this.#current.openTelos();
    let end: RunEnd | undefined;
    for await (const event of telos.run(request, human, one.controller.signal)) {
      this.#learn(one, event);
      onEvent(event);
      if (event.type === 'run_end') end = event;
    }
    if (!end)
      throw new Error(vscode.l10n.t('The run ended unexpectedly. "Telos: Open Log" shows what it did.'));
    return end;
  }

  #learn(one: NativeRun, event: RunEvent): void {
    if (event.type === 'routed') {
      one.skill =
        event.skill === ''
          ? vscode.l10n.t('no skill')
          : vscode.l10n.t('{0} of {1}', event.skill, event.agent);
      one.model = event.model;
    } else if (event.type === 'usage' && event.usage.cost !== 'unknown') {
      one.cost += event.usage.cost;
    } else return;
    this.#changed.fire();
  }
}

/** Describes in a sentence how an incomplete run ended. Returns undefined for a completed one. */
export function describeEnd({ outcome, error, rounds }: RunEnd): string | undefined {
  if (error) return describeMessage(error);
  switch (outcome) {
    case 'completed':
      return undefined;
    case 'cancelled':
      return vscode.l10n.t('The run was stopped.');
    case 'round_limit':
      return vscode.l10n.t(
        'The run stopped after {0} steps before it was done. Ask again to continue. The setting telos.maxRounds allows more.',
        rounds,
      );
    case 'budget':
      return vscode.l10n.t('The run stopped at its budget. The settings under "Telos: Budget" raise it.');
    case 'no_match':
      return vscode.l10n.t('No skill matches this request.');
    case 'failed':
      return vscode.l10n.t('The run failed. "Telos: Open Log" shows what it did.');
  }
}

interface RunningItem extends vscode.QuickPickItem {
  act?: () => unknown;
}

interface Running {
  chats: { readonly runningInChats: number; stopChats(): void };
  runs: { readonly running: readonly NativeRun[] };
}

/** Lists everything that runs, and stops what the person picks. */
export async function showRunning(running: Running): Promise<void> {
  const picked = await vscode.window.showQuickPick(itemsOf(running), {
    title: vscode.l10n.t('Running skills'),
    placeHolder: vscode.l10n.t('Pick a run to stop it'),
    matchOnDescription: true,
  });
  await picked?.act?.();
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
