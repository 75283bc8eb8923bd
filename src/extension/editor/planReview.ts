/** Shows in the files of a plan what a person decides on there, and what is wrong with them. */

import { isInside } from '@telos/engine/files';
import * as vscode from 'vscode';
import { plainLabel } from '../base/labels.ts';
import type { PlanComments } from './planComments.ts';
import { type PlanNode, type PlansNode, type StoryNode, storyItem } from './planItem.ts';
import type { PlanMarks } from './planMarks.ts';
import type { PlansTree } from './plansTree.ts';

/**
 * What a person can do above the first line of plan.md and of a story's file, what is wrong with these in the Problems panel, and marks
 * beside the boxes of stories.
 */
export class PlanFiles implements vscode.Disposable, vscode.CodeLensProvider {
  readonly #tree: PlansTree;
  readonly #comments: PlanComments;
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #problems = vscode.languages.createDiagnosticCollection('telos.plans');
  readonly #subscriptions: vscode.Disposable;
  #marks: Promise<PlanMarks> | undefined;
  readonly onDidChangeCodeLenses = this.#changed.event;

  constructor(tree: PlansTree, comments: PlanComments) {
    this.#tree = tree;
    this.#comments = comments;
    this.#subscriptions = vscode.Disposable.from(
      this.#changed,
      this.#problems,
      vscode.languages.registerCodeLensProvider(
        { scheme: 'file', pattern: '**/.telos/plans/*/{plan.md,prds/*.md}' },
        this,
      ),
      tree.onDidLook(() => this.#look()),
      comments.onDidChange(() => this.#changed.fire()),
      vscode.window.onDidChangeVisibleTextEditors(() => this.#mark()),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (this.#storyIn(document)) void this.#mark();
      }),
    );
    this.#look();
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const plan = this.#planIn(document);
    if (plan && document.uri.fsPath === plan.folder.path('plan.md')) return lensesOf(plan, this.#comments);
    const node = this.#storyIn(document);
    if (!node) return [];
    const lines = document.getText().split('\n');
    return storyLenses(
      node,
      Math.max(
        0,
        lines.findIndex(text => text.startsWith('# ')),
      ),
    );
  }

  dispose(): void {
    this.#subscriptions.dispose();
    void this.#marks?.then(marks => marks.dispose());
  }

  #planIn({ uri }: vscode.TextDocument): PlanNode | undefined {
    if (uri.scheme !== 'file') return undefined;
    return this.#tree.plans.find(({ folder, look }) => look && isInside(folder.dir, uri.fsPath));
  }

  /** The story whose file this is. */
  #storyIn(document: vscode.TextDocument): StoryNode | undefined {
    const plan = this.#planIn(document);
    const state = plan?.look?.state.stories.find(
      ({ story }) => plan.folder.path(...story.prd.split('/')) === document.uri.fsPath,
    );
    return plan && state && { kind: 'story', plan, state };
  }

  async #mark(): Promise<void> {
    const isStory = ({ document }: vscode.TextEditor): boolean => this.#storyIn(document) !== undefined;
    if (!vscode.window.visibleTextEditors.some(isStory)) return;
    this.#marks ??= import('./planMarks.ts').then(({ PlanMarks }) => new PlanMarks());
    const marks = await this.#marks;
    for (const editor of vscode.window.visibleTextEditors) {
      const node = this.#storyIn(editor.document);
      if (node) marks.draw(editor, node);
    }
  }

  #look(): void {
    this.#problems.clear();
    for (const { folder, look } of this.#tree.plans)
      for (const { prd } of look?.stories ?? []) {
        const found = (look?.problems ?? []).flatMap(text => problemIn(text, prd) ?? []);
        this.#problems.set(vscode.Uri.file(folder.path(...prd.split('/'))), found);
      }
    this.#changed.fire();
    void this.#mark();
  }
}

/** Returns a problem of this file, at its line. `text` is one of `PlanLook.problems`. */
function problemIn(text: string, prd: string): vscode.Diagnostic | undefined {
  const [, file, line, what = ''] = /^(.+?), line (\d+): (.*)$/s.exec(text) ?? [];
  if (file !== prd) return undefined;
  const at = Number(line) - 1;
  const range = new vscode.Range(at, 0, at, Number.MAX_SAFE_INTEGER);
  const found = new vscode.Diagnostic(range, plainLabel(what, 500), vscode.DiagnosticSeverity.Warning);
  found.source = 'Telos';
  return found;
}

const lens = (line: number, title: string, command: string, node: PlansNode): vscode.CodeLens =>
  new vscode.CodeLens(new vscode.Range(line, 0, line, 0), { title, command, arguments: [node] });

/** Approval is off while a comment is open. */
function lensesOf(plan: PlanNode, comments: PlanComments): vscode.CodeLens[] {
  if (plan.isLive || plan.look?.state.phase !== 'plan_review') return [];
  const { t } = vscode.l10n;
  const open = comments.openIn(plan.folder.dir);
  const unsent = comments.unsentIn(plan.folder.dir);
  const request =
    unsent === 0
      ? t('Request Changes...')
      : unsent === 1
        ? t('Send 1 Comment')
        : t('Send {0} Comments', unsent);
  return [
    open === 0
      ? lens(0, `$(check) ${t('Approve')}`, 'telos.approvePlan', plan)
      : lens(0, open === 1 ? t('1 comment is open') : t('{0} comments are open', open), '', plan),
    lens(0, request, 'telos.requestPlanChanges', plan),
  ];
}

function storyLenses(node: StoryNode, line: number): vscode.CodeLens[] {
  const { t } = vscode.l10n;
  const item = storyItem(node);
  const { status, attempts, story } = node.state;
  const isDone = status === 'passed' || status === 'accepted';
  return [
    lens(line, plainLabel(String(item.description)), 'telos.plans.focus', node),
    ...(isDone || status === 'skipped' || node.plan.isLive
      ? []
      : [lens(line, t('Run to Here'), 'telos.runPlanUntil', node)]),
    ...(story.checks.length > 0 ? [lens(line, t('Check Only'), 'telos.checkStory', node)] : []),
    ...(attempts > 0 ? [lens(line, t('Show Changes'), 'telos.showStoryChanges', node)] : []),
    ...(attempts > 0 ? [lens(line, t('Redo...'), 'telos.redoStory', node)] : []),
    ...(isDone || status === 'skipped' ? [] : [lens(line, t('Skip...'), 'telos.skipStory', node)]),
  ];
}
