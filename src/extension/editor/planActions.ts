/**
 * Implements the commands of the view *Plans*. Whatever changes a plan is done by the engine, which keeps one story of it: it runs in
 * this window, or a command in its inbox reaches the window or terminal where it runs.
 */

import { Interruption } from '@telos/engine/errors';
import { isDemoProject, type PlanRunEnd } from '@telos/plans/run';
import type { FinishKind, PlanPhase, SteerCommand } from '@telos/protocol/plan';
import type { FromPlanPage } from '@telos/protocol/planPage';
import * as vscode from 'vscode';
import { acknowledge, complain } from '../base/acknowledge.ts';
import type { ChatStage, WorkInChat } from '../base/chatWork.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError, plainLabel } from '../base/labels.ts';
import { untrustedMessage } from './editorRuns.ts';
import { PlanComments } from './planComments.ts';
import { type PlanNode, type PlansNode, type QuestionNode, reasonLabel, type StoryNode } from './planItem.ts';
import { PlanMaking } from './planMaking.ts';
import type { PlanPages } from './planPages.ts';
import { askAmount, askFor, askWords, settles } from './planQuestions.ts';
import { PlanFiles } from './planReview.ts';
import { type Extent, PlanRuns } from './planRuns.ts';
import type { PlansTree } from './plansTree.ts';

/** What the commands do. */
export type PlanVerb =
  | 'new'
  | 'demo'
  | 'run'
  | 'workers'
  | 'until'
  | 'check'
  | 'approve'
  | 'change'
  | 'card'
  | 'pause'
  | 'stop'
  | 'open'
  | 'changes'
  | 'report'
  | 'answer'
  | 'tell'
  | 'skip'
  | 'redo'
  | 'accept'
  | 'split'
  | 'budget';

/** Only rows of stories and questions have these. The editor names no row while it redraws all of them. */
const ofRows: readonly PlanVerb[] = [
  'until',
  'check',
  'changes',
  'answer',
  'skip',
  'redo',
  'accept',
  'split',
];

/** Phases in which there are no stories to work on, or no card that was accepted. */
const early: readonly PlanPhase[] = [
  'interviewing',
  'planning',
  'plan_review',
  'splitting',
  'stories_review',
];

/** The parts of the extension that plans use. */
export interface PlanHost {
  extensionUri: vscode.Uri;
  log: vscode.LogOutputChannel;
  inChat: WorkInChat;
  /** Of the workspace. */
  memory: vscode.Memento;
}

/** What can be done with plans. */
export interface Plans extends vscode.Disposable {
  actions: PlanActions;
  comments: PlanComments;
}

export function openPlans(current: CurrentTelos, host: PlanHost, tree: PlansTree): Plans {
  const comments = new PlanComments(tree, host.memory);
  const files = new PlanFiles(tree, comments);
  const actions = new PlanActions(current, tree, comments, host);
  const goingOn = tree
    .children()
    .then(() => import('./planStart.ts'))
    .then(({ goOnHere }) => goOnHere(tree, host.memory, node => actions.goOnAlone(node)));
  if (tree.repos.some(isDemoProject)) actions.showDemo().catch(error => host.log.warn(describeError(error)));
  return {
    actions,
    comments,
    dispose: () => {
      vscode.Disposable.from(actions, files, comments).dispose();
      void goingOn.then(looking => looking.dispose());
    },
  };
}

export class PlanActions implements vscode.Disposable {
  readonly #current: CurrentTelos;
  readonly #tree: PlansTree;
  readonly #host: PlanHost;
  readonly #runs: PlanRuns;
  readonly #making: PlanMaking;
  #pages: Promise<PlanPages> | undefined;

  constructor(current: CurrentTelos, tree: PlansTree, comments: PlanComments, host: PlanHost) {
    this.#current = current;
    this.#tree = tree;
    this.#host = host;
    this.#runs = new PlanRuns(current, tree, host);
    this.#making = new PlanMaking({
      runs: this.#runs,
      tree,
      comments,
      inChat: host.inChat,
      showCard: plan => this.#showCard(plan),
    });
  }

  /** Carries out a command. Shows the person an error that the engine throws. */
  async act(verb: PlanVerb, given: unknown): Promise<void> {
    try {
      if (verb !== 'open' && verb !== 'report' && !vscode.workspace.isTrusted)
        throw new Error(untrustedMessage);
      if (verb === 'new') return await this.#making.new(goalIn(given));
      if (verb === 'demo') return await this.#tryPlan();
      if (isNode(given)) return await this.#do(verb, this.#tree.newest(given));
      if (ofRows.includes(verb))
        return acknowledge(vscode.l10n.t('Try it again: the list of plans has just changed.'));
      const node = await this.#pickPlan();
      if (node) await this.#do(verb, node);
    } catch (error) {
      if (error instanceof Interruption) return;
      complain(plainLabel(describeError(error), 1_000));
    }
  }

  /** Goes on with a plan whose window has ended. */
  async goOnAlone(node: PlanNode): Promise<void> {
    try {
      // The person may have been faster.
      if (!(await this.#runs.canGoOn(node))) return;
      const stop = { title: vscode.l10n.t('Stop'), act: () => this.act('stop', node) };
      const said = vscode.l10n.t(
        '{0} continues. Its window was closed or reloaded.',
        plainLabel(node.folder.name),
      );
      acknowledge(said, stop);
      await this.#run(node);
    } catch (error) {
      void vscode.window.showWarningMessage(plainLabel(describeError(error), 1_000));
    }
  }

  /** Ends what runs in this window. What was done is kept, and the next window goes on with it. */
  async end(): Promise<void> {
    await this.#runs.end();
  }

  dispose(): void {
    void this.end();
    void this.#pages?.then(pages => pages.dispose());
  }

  /** The pages about plans. Their code loads with the first one. */
  pages(): Promise<PlanPages> {
    this.#pages ??= import('./planPages.ts').then(
      ({ PlanPages }) =>
        new PlanPages({
          ...this.#host,
          tree: this.#tree,
          env: () => this.#runs.env(),
          plan: node => this.#runs.plan(node),
          answer: question => this.act('answer', question),
          accepted: node => this.#accepted(node),
          act: (asked, node) => this.#actOnPage(asked, node),
        }),
    );
    return this.#pages;
  }

  async #actOnPage(
    { verb }: Extract<FromPlanPage, { type: 'act' }>,
    node: PlansNode,
  ): Promise<string | undefined> {
    switch (verb) {
      case 'merge':
      case 'squash':
      case 'pr':
      case 'keep':
      case 'drop':
        return node.kind === 'plan' ? this.#finish(node, verb) : undefined;
      default:
        await this.act(verb === 'story' ? 'report' : verb, node);
        return undefined;
    }
  }

  /** Ends a plan. Returns why it could not be ended, which the page says. */
  async #finish(node: PlanNode, how: FinishKind): Promise<string | undefined> {
    try {
      if (!vscode.workspace.isTrusted) throw new Error(untrustedMessage);
      const { finishInEditor } = await import('./planFinish.ts');
      await finishInEditor(await this.#runs.plan(node), how);
      return undefined;
    } catch (error) {
      return describeError(error);
    } finally {
      await this.#tree.refresh(node.folder.dir);
    }
  }

  async #do(verb: PlanVerb, node: PlansNode): Promise<void> {
    const plan = node.kind === 'plan' ? node : node.plan;
    switch (verb) {
      case 'run':
        return this.#run(plan);
      case 'workers':
        return this.#runOnWorkers(plan);
      case 'until':
        return node.kind === 'story' ? this.#run(plan, { until: node.state.story.id }) : undefined;
      case 'check':
        return node.kind === 'story' ? this.#check(node) : undefined;
      case 'approve':
        return this.#making.approve(plan);
      case 'change':
        return this.#making.requestChanges(plan);
      case 'card':
        return this.#showCard(plan);
      case 'pause':
        return this.#steer(plan, { kind: 'pause' });
      case 'stop':
        return this.#stop(plan);
      case 'open':
        return openFile(node);
      case 'changes':
        if (node.kind !== 'story') return;
        return (await import('./planChanges.ts')).showStoryChanges(node, await this.#runs.env());
      case 'report':
        return node.kind === 'question' ? undefined : (await this.pages()).show(node);
      case 'answer':
        return node.kind === 'question' ? this.#answer(node) : undefined;
      case 'tell':
        return this.#tell(node);
      case 'budget':
        return this.#raiseBudget(plan);
      case 'new':
        return this.#making.new(undefined);
      case 'demo':
        return this.#tryPlan();
      default:
        return node.kind === 'story' ? this.#settle(verb, node) : undefined;
    }
  }

  async #tryPlan(): Promise<void> {
    const { tryPlan } = await import('./planDemo.ts');
    await tryPlan(await this.#current.openTelos(), this.#host.extensionUri);
  }

  /** Shows the plan of *Try a Plan* in the window that was opened for it, at its first start. */
  async showDemo(): Promise<void> {
    const shown = 'telos.planDemo.shown';
    if (this.#host.memory.get(shown)) return;
    const { showDemo } = await import('./planDemo.ts');
    await showDemo(this.#tree, async node => {
      await this.#showCard(node);
      await this.#host.memory.update(shown, true);
    });
  }

  /** The demo runs at the yes, in front of its report. */
  async #accepted(node: PlanNode): Promise<void> {
    if (!isDemoProject(node.folder.repo)) return;
    (await this.pages()).show(node);
    await this.act('run', node);
  }

  async #pickPlan(): Promise<PlanNode | undefined> {
    await this.#tree.refresh();
    const { plans } = this.#tree;
    if (plans.length <= 1) {
      if (plans.length === 0) acknowledge(vscode.l10n.t('There are no plans in this workspace yet.'));
      return plans[0];
    }
    const items = plans.map(node => ({
      label: plainLabel(node.folder.name),
      description: plainLabel(String(this.#tree.item(node).description ?? '')),
      detail: plainLabel(node.look?.state.goal ?? '', 200),
      node,
    }));
    return (await vscode.window.showQuickPick(items, { title: vscode.l10n.t('Which Plan?') }))?.node;
  }

  /** Begins a plan in a chat. See `PlanMaking.begin`. */
  begin(goal: string, stage: ChatStage): Promise<string> {
    return this.#making.begin(goal, stage);
  }

  async #showCard({ folder }: Pick<PlanNode, 'folder'>): Promise<void> {
    (await this.pages()).showCard(folder);
  }

  /** What runs here is stopped as if its window were closed; what runs elsewhere gets a request. */
  async #stop(node: PlanNode): Promise<void> {
    if (!this.#runs.stop(node) && node.isLive) await this.#steer(node, { kind: 'stop', when: 'now' });
  }

  /**
   * Goes on with a plan that is held; else does what comes next, or works on its stories until it rests, or until the one that is
   * named has passed.
   */
  async #run(node: PlanNode, { until, workers }: Partial<Extent> = {}): Promise<void> {
    const isRunning = node.isLive || this.#runs.has(node);
    if (isRunning && until !== undefined)
      throw new Error(
        vscode.l10n.t(
          '{0} runs already. Stop it, then run it up to this story.',
          plainLabel(node.folder.name),
        ),
      );
    if (isRunning) return this.#steer(node, { kind: 'resume' });
    const plan = await this.#runs.plan(node);
    const { phase } = (await plan.look()).state;
    if (early.includes(phase)) {
      await this.#making.goOn(plan);
      return;
    }
    try {
      const end = await this.#runs.run(plan, { isRetry: phase === 'failed', until, workers });
      if (end) await this.#ended(node, end);
    } finally {
      await this.#tree.refresh(node.folder.dir);
    }
  }

  async #runOnWorkers(node: PlanNode): Promise<void> {
    const workers = await this.#runs.workers();
    if (workers) await this.#run(node, { workers });
  }

  async #ended(node: PlanNode, end: PlanRunEnd): Promise<void> {
    const name = plainLabel(node.folder.name);
    switch (end.kind) {
      case 'busy':
        acknowledge(vscode.l10n.t('{0} runs already, in another window or in a terminal.', name));
        break;
      case 'unapproved':
        complain(
          vscode.l10n.t('{0} has no stories yet. They are made of its plan.md once you approve it.', name),
        );
        break;
      case 'card':
        await this.#showCard(node);
        break;
      case 'rest':
        this.#sayRest(node, end);
        break;
      case 'red':
        break;
    }
  }

  #sayRest(node: PlanNode, { phase, why }: Extract<PlanRunEnd, { kind: 'rest' }>): void {
    const name = plainLabel(node.folder.name);
    const reason = plainLabel(reasonLabel(why), 500);
    const { t } = vscode.l10n;
    const report = { title: t('Show Report'), act: () => this.act('report', node) };
    if (phase === 'failed') complain(t('{0} failed. {1}', name, reason));
    else if (phase === 'done') acknowledge(t('{0} is done. All of its stories have passed.', name), report);
    else if (phase === 'needs_you') acknowledge(t('{0} needs your input. {1}', name, reason));
    else acknowledge(t('{0} has stopped. {1}', name, reason));
  }

  /** Runs the checks of a story alone. */
  async #check({ plan: node, state }: StoryNode): Promise<void> {
    const plan = await this.#runs.plan(node);
    if (!(await plan.card()).isAccepted) return this.#showCard(plan);
    await (await import('./planCheck.ts')).checkStory(plan, state.story.id);
  }

  async #steer(node: PlanNode, command: SteerCommand): Promise<void> {
    const plan = await this.#runs.plan(node);
    const isRunning = await plan.steer(command);
    await this.#tree.refresh(node.folder.dir);
    const name = plainLabel(node.folder.name);
    if (isRunning) return acknowledge(vscode.l10n.t('Sent to {0}.', name));
    acknowledge(vscode.l10n.t('{0} is not running. This takes effect when it runs.', name), {
      title: vscode.l10n.t('Run'),
      act: () => this.act('run', node),
    });
  }

  async #answer({ plan, question }: QuestionNode): Promise<void> {
    const text = await askFor(question);
    if (text !== undefined) await this.#steer(plan, { kind: 'answer', id: question.id, text });
  }

  async #tell(node: PlansNode): Promise<void> {
    const story = node.kind === 'story' ? node.state.story.id : undefined;
    const plan = node.kind === 'plan' ? node : node.plan;
    const text = await askWords(story ?? plan.folder.name);
    if (text) await this.#steer(plan, { kind: 'tell', text, ...(story !== undefined && { story }) });
  }

  async #settle(kind: 'skip' | 'redo' | 'accept' | 'split', { plan, state }: StoryNode): Promise<void> {
    if (!(await settles(kind, state.story))) return;
    const { id } = state.story;
    // Its work is on the branch already.
    const why = kind === 'redo' && state.status === 'passed' ? await askWords(id) : undefined;
    await this.#steer(plan, { kind, story: id, ...(why !== undefined && { why }) });
  }

  async #raiseBudget(node: PlanNode): Promise<void> {
    const maxCost = await askAmount(node.folder.name);
    if (maxCost !== undefined) await this.#steer(node, { kind: 'budget', add: { maxCost } });
  }
}

/** Returns the goal that a caller of *New Plan* brings, as `@telos /plan` does. */
function goalIn(given: unknown): string | undefined {
  const { goal } = (given ?? {}) as { goal?: unknown };
  return typeof goal === 'string' && goal.trim() !== '' ? goal.trim() : undefined;
}

/** Checks the argument. Other extensions, and keys without arguments, can call the commands. */
function isNode(value: unknown): value is PlansNode {
  const { kind, folder, plan } = (value ?? {}) as Partial<PlanNode & StoryNode>;
  if (kind === 'plan') return folder !== undefined;
  return (kind === 'story' || kind === 'question') && plan !== undefined;
}

/** Opens what a person reads of it: plan.md, or the file of the story. */
async function openFile(node: PlansNode): Promise<void> {
  const plan = node.kind === 'plan' ? node : node.plan;
  const name = node.kind === 'story' ? node.state.story.prd : 'plan.md';
  // Read first: the engine refuses a file that is reached through a link.
  if (plan.folder.read(...name.split('/')) === undefined) return;
  await vscode.window.showTextDocument(vscode.Uri.file(plan.folder.path(...name.split('/'))), {
    preview: true,
  });
}
