/** Brings a plan to its stories, from the person's side: its goal, the interview in a chat, and what is decided on plan.md. */

import { basename } from 'node:path';
import { Interruption } from '@telos/engine/errors';
import { importGitProblems } from '@telos/plans/gitRepository';
import type { Plan } from '@telos/plans/plan';
import * as vscode from 'vscode';
import { askText } from '../base/askText.ts';
import type { ChatStage, WorkInChat } from '../base/chatWork.ts';
import { plainLabel } from '../base/labels.ts';
import { untrustedMessage } from './editorRuns.ts';
import type { PlanComments } from './planComments.ts';
import type { PlanNode } from './planItem.ts';
import type { PlanRuns } from './planRuns.ts';
import type { PlansTree } from './plansTree.ts';

interface Parts {
  runs: PlanRuns;
  tree: PlansTree;
  comments: PlanComments;
  inChat: WorkInChat;
  showCard: (plan: Pick<PlanNode, 'folder'>) => Promise<void>;
}

export class PlanMaking {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Asks for the goal if it is not known, and goes on in a chat. */
  async new(known: string | undefined): Promise<void> {
    const { askGoal } = await import('./newPlan.ts');
    const goal = known ?? (await askGoal());
    if (goal !== undefined)
      await this.#parts.inChat(`/plan ${plainLabel(goal, 2_000)}`, stage => this.begin(goal, stage));
  }

  /** Makes a plan for the goal and asks what must be known. Returns what then waits. Throws the errors of the engine. */
  async begin(wanted: string, stage: ChatStage): Promise<string> {
    if (!vscode.workspace.isTrusted) throw new Error(untrustedMessage);
    const { runs, tree } = this.#parts;
    const { askGoal } = await import('./newPlan.ts');
    const repo = await this.#pickRepo();
    const goal = repo && (wanted.trim() || (await askGoal()));
    if (!repo || !goal) throw new Interruption();
    const { problemsOf } = await importGitProblems();
    const problems = await problemsOf(repo, { env: await runs.env() });
    const stop = problems.find(({ stops }) => stops);
    if (stop) throw new Error(stop.text);
    const plan = await runs.create(repo, goal);
    await tree.refresh();
    return this.goOn(plan, stage);
  }

  /** Does what comes next for a plan without stories. Returns what then waits. */
  async goOn(plan: Plan, stage?: ChatStage): Promise<string> {
    const { runs, inChat, showCard } = this.#parts;
    const { goOn } = await import('./newPlan.ts');
    if (stage || (await plan.look()).state.phase !== 'interviewing')
      return goOn(plan, { ask: runs.asking(plan, stage), showCard: () => showCard(plan), stage });
    const text = vscode.l10n.t('Go on with the plan {0}', plainLabel(plan.name));
    await inChat(text, shown => this.goOn(plan, shown));
    return '';
  }

  /** Approves plan.md, unless a comment on it is open. */
  async approve(node: PlanNode): Promise<void> {
    if (this.#parts.comments.openIn(node.folder.dir) > 0)
      throw new Error(
        vscode.l10n.t('Comments are open in plan.md. Resolve them, or send them, before you approve it.'),
      );
    await this.#review(node, 'approved');
  }

  /** Has plan.md rewritten after the comments on it, or after what the person answers. */
  async requestChanges(node: PlanNode): Promise<void> {
    const { comments } = this.#parts;
    if (comments.unsentIn(node.folder.dir) > 0) {
      const sent = comments.takeUnsent(node.folder.dir, node.folder.read('plan.md') ?? '');
      return this.#review(node, 'changes', sent);
    }
    const text = await askText({
      title: vscode.l10n.t('Request Changes'),
      prompt: vscode.l10n.t('What should be different in plan.md? The planner then rewrites it.'),
    });
    if (text?.trim()) await this.#review(node, 'changes', [text.trim()]);
  }

  async #review(
    node: PlanNode,
    decision: 'approved' | 'changes',
    comments: readonly string[] = [],
  ): Promise<void> {
    const { runs, tree } = this.#parts;
    const plan = await runs.plan(node);
    const file = plan.folder.path('plan.md');
    const open = vscode.workspace.textDocuments.find(
      ({ uri }) => uri.scheme === 'file' && uri.fsPath === file,
    );
    if (open?.isDirty && !(await open.save()))
      throw new Error(vscode.l10n.t('plan.md has changes that could not be saved. Save it, then try again.'));
    if ((await plan.look()).state.phase !== 'plan_review')
      throw new Error(vscode.l10n.t('The plan {0} has nothing to approve now.', plainLabel(plan.name)));
    await plan.review(decision, comments);
    await tree.refresh(node.folder.dir);
    await this.goOn(plan);
  }

  /** Returns the top folder of the repository in which to plan; asks if there are several. */
  async #pickRepo(): Promise<string | undefined> {
    const items = this.#parts.tree.repos.map(repo => ({ label: plainLabel(basename(repo)), repo }));
    const [only] = items;
    if (!only) throw new Error(vscode.l10n.t('A plan works in a folder. Open one, then try again.'));
    if (items.length === 1) return only.repo;
    return (await vscode.window.showQuickPick(items, { title: vscode.l10n.t('New Plan in Which Folder?') }))
      ?.repo;
  }
}
