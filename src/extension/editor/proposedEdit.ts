/** Shows a proposed edit of a skill, or a new one, in the diff editor, with how its evals went, until the person keeps or drops it. */

import { keepSkill, type WrittenSkill } from '@telos/evals/fromRuns';
import {
  compared,
  keepProposal,
  keepRecordings,
  type Proposal,
  type ProposedSkill,
  type Tried,
} from '@telos/evals/proposals';
import type { EvaluatedSkill } from '@telos/evals/suite';
import { flagWords } from '@telos/protocol/agentCard';
import * as vscode from 'vscode';
import { acknowledge, complain } from '../base/acknowledge.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError, plainLabel, t, visibleText } from '../base/labels.ts';

/** Scheme of proposals and of their results. The commands in the editor's title go by it. */
const scheme = 'telos.proposal';

interface Pending {
  /** Of the skill. */
  name: string;
  after: string;
  findings: Proposal['findings'];
  /** The file that it would replace. */
  file?: string;
  uri: vscode.Uri;
  results: vscode.Uri;
  resultsText(): string;
  /** Writes it. */
  keep(): Promise<void>;
  /** Says that it was not kept. */
  dropped: string;
  /** Removes its temporary folder. */
  remove(): Promise<void>;
}

/** A proposed edit of a skill that is there, with how its evals went. */
interface PendingEdit extends Pending {
  proposal: Proposal;
  tried: readonly Tried[];
}

/** The edits among those that are shown. */
const edits = new Map<string, PendingEdit>();

const pending = new Map<string, Pending>();
const changed = new vscode.EventEmitter<vscode.Uri>();
let count = 0;
let isRegistered = false;

function register(): void {
  if (isRegistered) return;
  isRegistered = true;
  vscode.workspace.registerTextDocumentContentProvider(scheme, {
    onDidChange: changed.event,
    provideTextDocumentContent: ({ query, fragment }) => {
      const one = pending.get(query);
      // What is new has nothing before it.
      if (fragment === 'nothing') return '';
      return fragment === 'results' ? one?.resultsText() : one?.after;
    },
  });
  vscode.window.tabGroups.onDidChangeTabs(({ closed }) => {
    for (const { input } of closed)
      if (input instanceof vscode.TabInputTextDiff && input.modified.scheme === scheme)
        if (!isOpen(input.modified)) void decide(false, input.modified);
  });
}

/** A tab that is moved is closed in one group and opened in another. */
const isOpen = (uri: vscode.Uri): boolean =>
  vscode.window.tabGroups.all.some(({ tabs }) =>
    tabs.some(
      ({ input }) => input instanceof vscode.TabInputTextDiff && String(input.modified) === String(uri),
    ),
  );

/** Opens the diff. Nothing is written before the person keeps it. */
export async function showProposal(
  current: CurrentTelos,
  one: EvaluatedSkill,
  proposal: Proposal,
  copy: ProposedSkill,
): Promise<vscode.Uri> {
  register();
  const query = String(++count);
  const file = vscode.Uri.file(proposal.skill.file);
  const uri = file.with({ scheme, query });
  const name = plainLabel(one.skill.id, 60).replace(/[\\/]/g, '-');
  const results = uri.with({ path: `/${name}.results.txt`, fragment: 'results' });
  const edit: PendingEdit = {
    ...{ name: one.skill.id, after: proposal.after, findings: proposal.findings, file: proposal.skill.file },
    ...{ uri, results, proposal, tried: [] },
    resultsText: () => resultsText(one.skill.id, edit.tried),
    keep: () => keepEdit(current, one, proposal, copy),
    dropped: t('The proposal was discarded. {0} is unchanged.', plainLabel(one.skill.id, 60)),
    remove: () => copy.remove(),
  };
  pending.set(query, edit);
  edits.set(query, edit);
  const title = t('{0}: SKILL.md ↔ Proposal', plainLabel(one.skill.id, 60));
  await vscode.commands.executeCommand('vscode.diff', file, uri, title, { preview: false });
  return uri;
}

/** Says how the evals went with both texts, and lets the person keep or drop the proposal. */
export function offer(uri: vscode.Uri, tried: readonly Tried[]): void {
  const known = edits.get(uri.query);
  if (!known) return;
  known.tried = tried;
  changed.fire(known.results);
  void (async () => {
    const [keep, drop, show] = [t('Keep'), t('Discard'), t('Show Results')];
    const { why } = known.proposal;
    const said = [summaryOf(tried), why && t('The model says: {0}', plainLabel(why, 300))];
    const choices = tried.length > 0 ? [keep, drop, show] : [keep, drop];
    const text = said.filter(Boolean).join(' ');
    const worse = compared(tried).worse.length > 0 || known.proposal.findings.length > 0;
    const ask = worse ? vscode.window.showWarningMessage : vscode.window.showInformationMessage;
    const answer = await ask(text, ...choices);
    if (answer === show) {
      await vscode.window.showTextDocument(known.results, { preview: true });
      offer(uri, tried);
    }
    if (answer === keep || answer === drop) await decide(answer === keep, uri);
  })();
}

/** Returns for example "3 of 5 → 5 of 5, 1 worse: ...". */
export function summaryOf(tried: readonly Tried[]): string {
  const { n, before, after, worse } = compared(tried);
  if (n === 0) return t('The proposal was not tested.');
  const figures = t('{0} of {1} → {2} of {1}', before, n, after);
  if (worse.length === 0) return t('{0}, none worse.', figures);
  const names = worse.slice(0, 3).map(({ name }) => `“${plainLabel(name, 60)}”`);
  const all = [...names, ...(worse.length > names.length ? ['…'] : [])].join(', ');
  return t('{0}, {1} worse: {2}.', figures, worse.length, all);
}

/** Keeps or drops the proposal that the editor shows, or the one of an address. Does nothing if it is decided on already. */
export async function decide(keeps: boolean, uri?: vscode.Uri): Promise<void> {
  const shown = uri?.scheme === scheme ? uri : proposalInFront();
  const known = shown && pending.get(shown.query);
  if (!known) return;
  if (keeps && !(await isMeant(known))) return;
  if (!pending.delete(known.uri.query)) return;
  edits.delete(known.uri.query);
  try {
    if (keeps) await known.keep();
    else acknowledge(known.dropped);
  } catch (error) {
    complain(plainLabel(describeError(error), 500));
  } finally {
    await known.remove().catch(() => undefined);
    await close(known);
  }
}

function proposalInFront(): vscode.Uri | undefined {
  const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
  return input instanceof vscode.TabInputTextDiff && input.modified.scheme === scheme
    ? input.modified
    : undefined;
}

/** Returns true unless the look before has found something in the new text, and the person says no to it. */
async function isMeant({ findings, file }: Pending): Promise<boolean> {
  const unsaved = vscode.workspace.textDocuments.some(
    ({ isDirty, uri }) => isDirty && uri.scheme === 'file' && uri.fsPath === file,
  );
  if (unsaved) {
    complain(
      t('{0} has changes that are not saved. Save or revert them first.', plainLabel(file ?? '', 300)),
    );
    return false;
  }
  if (findings.length === 0) return true;
  const anyway = t('Keep Anyway');
  const lines = findings
    .slice(0, 10)
    .map(({ kind, line, text }) =>
      t('Line {0} {1}: {2}', line, flagWords(kind, t), plainLabel(visibleText(text), 200)),
    );
  const question = t('Keep a proposal with this in it?');
  const detail = lines.join('\n');
  const answer = await vscode.window.showWarningMessage(question, { modal: true, detail }, anyway);
  return answer === anyway;
}

async function keepEdit(
  current: CurrentTelos,
  one: EvaluatedSkill,
  proposal: Proposal,
  copy: ProposedSkill,
): Promise<void> {
  const telos = await current.openTelos();
  const runId = await keepProposal(proposal, telos.changes);
  // The text is in place. Without its recordings, the evals are only stale.
  await keepRecordings(one, copy).catch(error => complain(plainLabel(describeError(error), 500)));
  await current.refresh();
  acknowledge(t('{0} has its new text.', plainLabel(one.skill.id, 60)), {
    title: t('Undo'),
    act: () => vscode.commands.executeCommand('telos.undoThisRun', { runId }),
  });
}

/** Opens a skill that is new and whose evals have passed, and asks whether to keep it. */
export async function offerWritten(
  current: CurrentTelos,
  written: WrittenSkill,
  passed: number,
): Promise<void> {
  register();
  const { name, text, findings, why, evals } = written;
  const query = String(++count);
  const uri = vscode.Uri.from({ scheme, path: `/${name}/SKILL.md`, query });
  const results = uri.with({ path: `/${name}.results.txt`, fragment: 'results' });
  pending.set(query, {
    ...{ name, after: text, findings, uri, results },
    resultsText: () =>
      [t('{0} evals from your own runs passed:', passed), ...evals.map(each => `• ${each.prompt}`), ''].join(
        '\n',
      ),
    keep: () => keepWritten(current, written),
    dropped: t('The skill {0} was discarded.', plainLabel(name, 60)),
    remove: () => written.remove(),
  });
  const title = t('New Skill: {0}', plainLabel(name, 60));
  const nothing = uri.with({ fragment: 'nothing' });
  await vscode.commands.executeCommand('vscode.diff', nothing, uri, title, { preview: false });
  const said = [
    t('{0} evals from your own runs passed.', passed),
    t('The skill gets no permissions: Telos asks as it does without it.'),
    why && t('The model says: {0}', plainLabel(why, 300)),
  ];
  void askAboutWritten(uri, said.filter(Boolean).join(' '), findings.length > 0);
}

async function askAboutWritten(uri: vscode.Uri, text: string, isRisky: boolean): Promise<void> {
  const [keep, drop, show] = [t('Keep'), t('Discard'), t('Show Results')];
  const ask = isRisky ? vscode.window.showWarningMessage : vscode.window.showInformationMessage;
  const answer = await ask(text, keep, drop, show);
  const known = pending.get(uri.query);
  if (answer === show && known) {
    await vscode.window.showTextDocument(known.results, { preview: true });
    return askAboutWritten(uri, text, isRisky);
  }
  if (answer === keep || answer === drop) await decide(answer === keep, uri);
}

async function keepWritten(current: CurrentTelos, written: WrittenSkill): Promise<void> {
  const { config } = await current.openTelos();
  await keepSkill(written, config);
  await current.refresh();
  acknowledge(t('The skill {0} is kept.', plainLabel(written.name, 60)));
}

async function close({ uri, results }: Pending): Promise<void> {
  const own = [uri, results].map(String);
  const tabs = vscode.window.tabGroups.all
    .flatMap(group => group.tabs)
    .filter(({ input }) => {
      if (input instanceof vscode.TabInputTextDiff) return own.includes(String(input.modified));
      return input instanceof vscode.TabInputText && own.includes(String(input.uri));
    });
  await vscode.window.tabGroups.close(tabs);
}

function resultsText(id: string, tried: readonly Tried[]): string {
  const word = (passed: boolean | undefined): string =>
    passed === undefined ? '–' : passed ? t('passed') : t('failed');
  const head = [t('Before'), t('Proposal')] as const;
  const width = Math.max(...head.map(text => text.length), t('passed').length, t('failed').length) + 2;
  const row = (before: string, after: string, name: string): string =>
    `${before.padEnd(width)}${after.padEnd(width)}${name}`;
  const lines = tried.flatMap(({ name, before, after, problems, kind }) => [
    row(
      word(before),
      word(after),
      [
        `${kind === 'eval' ? t('eval') : t('request')}: ${plainLabel(visibleText(name), 300)}`,
        ...(before && after === false ? [`← ${t('worse')}`] : []),
      ].join('  '),
    ),
    ...problems.map(problem => row('', '', `  ${plainLabel(visibleText(problem), 500)}`)),
  ]);
  return [`${plainLabel(id)}: ${summaryOf(tried)}`, '', row(...head, ''), ...lines, ''].join('\n');
}
