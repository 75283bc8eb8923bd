/** Runs a skill once without installing it, in a copy of the open folder, and shows what it changed there. */

import type { Telos } from '@telos/engine/telos';
import { importTrial, type Offer, type Trial, type TrialChange } from '@telos/packs/install';
import * as vscode from 'vscode';
import { acknowledge, complain } from '../base/acknowledge.ts';
import { askText } from '../base/askText.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { inProgress } from '../base/inProgress.ts';
import { describeError, plainLabel, t } from '../base/labels.ts';
import { describeEnd, type RunEnd, untrustedMessage } from './editorRuns.ts';
import { pickHuman } from './quickPickHuman.ts';

const scheme = 'telos-trial';

/** Asks for a request, runs it in the copy, and keeps its changes only after a yes. Never throws. */
export async function tryOnce(current: CurrentTelos, offer: Offer): Promise<void> {
  if (!vscode.workspace.isTrusted) return complain(untrustedMessage);
  let trial: Trial | undefined;
  try {
    const telos = await current.openTelos();
    const { openTrial } = await importTrial();
    trial = await openTrial(offer, telos.config, (await telos.today()).cost);
    const skill = await chooseSkill(trial);
    if (skill === undefined) return;
    const text = await askText({
      title: t('Try {0} Once', plainLabel(skill, 60)),
      prompt: t('It works in a copy of the folder. Nothing is installed.'),
      value: skill,
    });
    if (!text?.trim()) return;
    const engine = await current.openTrial(trial.config, trial.agent);
    const end = await inProgress(t('Trying {0}', plainLabel(skill, 60)), signal =>
      runIn(engine, { text, skill: { agent: trial!.agent.name, skill } }, signal),
    );
    await showEnd(trial, skill, end, telos);
  } catch (error) {
    if (!(error instanceof vscode.CancellationError)) complain(plainLabel(describeError(error), 500));
  } finally {
    await trial?.dispose();
  }
}

async function chooseSkill({ agent }: Trial): Promise<string | undefined> {
  const [first, second] = agent.skills;
  if (!second) return first?.id;
  const items = agent.skills.map(({ id, description }) => ({
    label: plainLabel(id),
    detail: plainLabel(description, 300),
    id,
  }));
  return (await vscode.window.showQuickPick(items, { title: t('Try Which Skill?') }))?.id;
}

async function runIn(
  engine: Telos,
  request: Parameters<Telos['run']>[0],
  signal: AbortSignal,
): Promise<RunEnd | undefined> {
  let end: RunEnd | undefined;
  for await (const event of engine.run({ ...request, origin: 'editor' }, pickHuman, signal))
    if (event.type === 'run_end') end = event;
  return end;
}

/** Shows the answer and the changes, and asks whether to keep them. */
async function showEnd(
  { changed, keep }: Trial,
  skill: string,
  end: RunEnd | undefined,
  telos: Telos,
): Promise<void> {
  const changes = await changed();
  const answer = plainLabel(answerOf(end), 300);
  const how = (end && describeEnd(end)) ?? answer;
  const name = plainLabel(skill, 60);
  if (changes.length === 0) {
    acknowledge(t('{0} changed no file. {1}', name, how));
    return;
  }
  const shown = await showChanges(changes, telos.config.cwd, name);
  try {
    const [yes, no] = [t('Keep Changes'), t('Discard')];
    const question = t(
      'Files that {0} changed in the copy: {1}. Keep them in the folder?',
      name,
      changes.length,
    );
    const picked = await vscode.window.showInformationMessage(`${question} ${how}`, yes, no);
    if (picked !== yes) return acknowledge(t('Nothing was kept.'));
    const { kept, left, undoId } = await keep(changes, telos.changes);
    const said = t('Kept {0} of {1} files.', kept.length, kept.length + left.length);
    acknowledge(said, {
      title: t('Undo'),
      act: () => vscode.commands.executeCommand('telos.undoThisRun', { runId: undoId }),
    });
  } finally {
    shown.dispose();
  }
}

/** Opens the differences between the folder and its copy. The copy stays readable until it is disposed. */
async function showChanges(
  changes: readonly TrialChange[],
  folder: string,
  name: string,
): Promise<vscode.Disposable> {
  const copies = new Map(changes.map(({ path, copy }) => [`/${path}`, copy]));
  const provider = vscode.workspace.registerTextDocumentContentProvider(scheme, {
    provideTextDocumentContent: async ({ path }) => {
      const copy = copies.get(path);
      const bytes = copy && (await vscode.workspace.fs.readFile(vscode.Uri.file(copy)));
      return bytes ? new TextDecoder().decode(bytes) : '';
    },
  });
  const resources = changes.map(({ path, kind }) => {
    const there = vscode.Uri.joinPath(vscode.Uri.file(folder), path);
    const then = vscode.Uri.from({ scheme, path: `/${path}` });
    return [there, kind === 'added' ? undefined : there, kind === 'deleted' ? undefined : then];
  });
  await vscode.commands.executeCommand('vscode.changes', t('Changes That {0} Made', name), resources);
  return provider;
}

function answerOf(end: RunEnd | undefined): string {
  const last = end?.messages.findLast(({ role }) => role === 'assistant')?.content ?? '';
  if (typeof last === 'string') return last;
  return last.flatMap(block => (block.type === 'text' ? [block.text] : [])).join(' ');
}
