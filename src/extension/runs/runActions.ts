/**
 * Implements the actions on stored runs: open, resume, replay, rename, delete, export, compare. Each takes a node of
 * the tree *Runs*.
 */

import { homedir } from 'node:os';
import { join } from 'node:path';
import { importAtomicWrite } from '@telos/engine/files';
import { importRedact } from '@telos/engine/policy';
import {
  type ExportFormat,
  importRunSummary,
  importRunText,
  type RunHistory,
  type RunSummary,
} from '@telos/engine/records';
import * as vscode from 'vscode';
import { acknowledge } from '../base/acknowledge.ts';
import { askText } from '../base/askText.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { plainLabel } from '../base/labels.ts';
import type { StoredConversations } from '../chat/storedConversations.ts';
import { type ConversationNode, documentScheme, outcomeLabel, type RunNode } from './runItem.ts';
import type { RunsTree } from './runsTree.ts';

type Node = ConversationNode | RunNode;

export class RunActions {
  readonly #current: CurrentTelos;
  readonly #kept: StoredConversations;
  readonly #tree: RunsTree;

  constructor(current: CurrentTelos, kept: StoredConversations, tree: RunsTree) {
    this.#current = current;
    this.#kept = kept;
    this.#tree = tree;
  }

  /** Opens in the chat a whole conversation, or the one that a run belongs to. */
  async open(node: Node, how: { panel?: boolean; resume?: boolean; replay?: boolean } = {}): Promise<void> {
    const [{ conversation, runId }] = node.runs as readonly [RunSummary];
    const place = node.kind === 'conversation' && !how.resume ? { conversationId: conversation } : { runId };
    await vscode.commands.executeCommand('telos.openConversation', { ...place, ...how });
  }

  async rename({ runId, title, runs }: Node): Promise<void> {
    const given = await askText({
      title: vscode.l10n.t('Rename'),
      prompt: vscode.l10n.t('Leave empty to use its first words.'),
      value: title,
    });
    if (given === undefined || given.trim() === title) return;
    const history = await this.#kept.history();
    await history.rename(runId, given);
    // Another run of the conversation may have been renamed before.
    for (const run of runs) if (run.title && run.runId !== runId) await history.rename(run.runId, '');
    await this.#tree.refresh();
  }

  /** Deletes runs after a confirmation. A conversation is deleted with all of its runs. */
  async delete(nodes: readonly Node[]): Promise<void> {
    const runs = [...new Map(nodes.flatMap(node => node.runs).map(run => [run.runId, run])).values()];
    const [first] = nodes;
    const what =
      nodes.length === 1 && first
        ? `“${plainLabel(first.title, 80)}”`
        : vscode.l10n.t('{0} entries', nodes.length);
    const answer = await vscode.window.showWarningMessage(
      vscode.l10n.t('Delete {0}?', what),
      {
        modal: true,
        detail:
          runs.length === 1
            ? vscode.l10n.t(
                'The stored data of the run is permanently deleted, including what is needed to undo it. The daily log still lists the run.',
              )
            : vscode.l10n.t(
                'The stored data of its {0} runs is permanently deleted, including what is needed to undo them. The daily log still lists the runs.',
                runs.length,
              ),
      },
      vscode.l10n.t('Delete'),
    );
    if (answer === undefined) return;
    const telos = await this.#current.openTelos();
    try {
      for (const { runId } of runs) await telos.deleteRun(runId);
    } finally {
      await this.#tree.refresh();
    }
  }

  async export({ runId, title, runs }: Node): Promise<void> {
    const [{ startedAt }] = runs as readonly [RunSummary];
    const formats: readonly (vscode.QuickPickItem & { format: ExportFormat })[] = [
      { label: 'Markdown', description: vscode.l10n.t('to read and to edit'), format: 'md' },
      { label: 'JSONL', description: vscode.l10n.t('every event, for programs'), format: 'jsonl' },
    ];
    const picked = await vscode.window.showQuickPick(formats, {
      title: vscode.l10n.t('Export “{0}”, without keys and other secrets', plainLabel(title, 60)),
    });
    if (!picked) return;
    const { exportedConversation, exportName } = await importRunText();
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri ?? vscode.Uri.file(homedir());
    const target = await vscode.window.showSaveDialog({
      defaultUri: vscode.Uri.joinPath(folder, exportName(title, startedAt, picked.format)),
      title: vscode.l10n.t('Export'),
    });
    if (!target) return;
    const conversation = await (await this.#kept.history()).conversation(runId, runId);
    const text = await exportedConversation(conversation, picked.format, await this.#redact());
    if (target.scheme === 'file') await (await importAtomicWrite()).writeWhole(target.fsPath, text);
    else await vscode.workspace.fs.writeFile(target, Buffer.from(text));
    acknowledge(vscode.l10n.t('Exported to {0}', plainLabel(target.fsPath, 500)), {
      title: vscode.l10n.t('Open'),
      act: () => vscode.window.showTextDocument(target),
    });
  }

  /** Compares two selected runs, or this one with another run of its skill. The older one is on the left. */
  async compare(node: Node, selected: readonly Node[]): Promise<void> {
    const [run] = node.runs as readonly [RunSummary];
    const [one, two] = selected.map(({ runs }) => runs[0]);
    const pair = selected.length === 2 && one && two ? [one, two] : undefined;
    const other = pair ? undefined : await this.#otherRun(run);
    const both = pair ?? (other && [run, other]);
    if (!both) return;
    const [left, right] = both.sort((a, b) => (a.startedAt < b.startedAt ? -1 : 1)) as [
      RunSummary,
      RunSummary,
    ];
    const time = (iso: string): string => new Date(iso).toLocaleString(vscode.env.language);
    const title = `${plainLabel(left.skill || 'Telos', 60)}: ${time(left.startedAt)} ↔ ${time(right.startedAt)}`;
    await vscode.commands.executeCommand('vscode.diff', documentUri(left), documentUri(right), title);
  }

  async #otherRun(run: RunSummary): Promise<RunSummary | undefined> {
    const { titleOf } = await importRunSummary();
    const all = await (await this.#kept.history()).list();
    const same = all.filter(
      ({ runId, agent, skill }) => runId !== run.runId && agent === run.agent && skill === run.skill,
    );
    if (same.length === 0) {
      acknowledge(
        vscode.l10n.t('There is no other run of {0} to compare with yet.', plainLabel(run.skill, 60)),
      );
      return undefined;
    }
    const items = same.map(other => ({
      label: plainLabel(titleOf(other), 80),
      description: new Date(other.startedAt).toLocaleString(vscode.env.language),
      detail: plainLabel([outcomeLabel(other.outcome), other.model].filter(Boolean).join(' · ')),
      run: other,
    }));
    const picked = await vscode.window.showQuickPick(items, {
      title: vscode.l10n.t('Compare with Which Run of {0}?', plainLabel(run.skill, 60)),
      matchOnDescription: true,
      matchOnDetail: true,
    });
    return picked?.run;
  }

  /** Returns a run as a document, for the diff editor. */
  async documentOf(uri: vscode.Uri): Promise<string> {
    const history: RunHistory = await this.#kept.history();
    const [{ runMarkdown }, { mapStrings }, redact] = await Promise.all([
      importRunText(),
      importRedact(),
      this.#redact(),
    ]);
    return runMarkdown(mapStrings(await history.read(uri.query), redact));
  }

  async #redact(): Promise<(text: string) => string> {
    return (await (await this.#current.openTelos()).fullRedactor()).text;
  }
}

function documentUri({ runId, skill }: RunSummary): vscode.Uri {
  const name = (skill || 'run').replace(/[^\w-]/g, '-');
  return vscode.Uri.from({
    scheme: documentScheme,
    path: join('/', `${name}-${runId.slice(0, 8)}.md`),
    query: runId,
  });
}
