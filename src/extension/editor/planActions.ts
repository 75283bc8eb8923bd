/**
 * Implements the commands of the view *Plans*. Whatever changes a plan is done by the engine, which keeps one story of it: it runs in
 * this window, or a command in its inbox reaches the window or terminal where it runs.
 */
import { basename } from 'node:path';
import * as vscode from 'vscode';
import { Interruption } from '../../engine/errors.ts';
import type { Telos } from '../../engine/telos.ts';
import { Plan } from '../../engine/workflow/plan.ts';
import { isDemoProject } from '../../engine/workflow/planDemo.ts';
import type { PlanRunEnd } from '../../engine/workflow/planRun.ts';
import type { FinishKind, PlanPhase, SteerCommand } from '../../protocol/plan.ts';
import type { FromPlanPage } from '../../protocol/planPage.ts';
import { acknowledge, complain } from '../base/acknowledge.ts';
import type { ChatStage, WorkInChat } from '../base/chatWork.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError, plainLabel } from '../base/labels.ts';
import { untrustedMessage } from './editorRuns.ts';
import type { AskModel } from './newPlan.ts';
import { PlanComments } from './planComments.ts';
import type { PlanNode, PlansNode, QuestionNode, StoryNode } from './planItem.ts';
import type { PlanPages } from './planPages.ts';
import { askAmount, askFor, askWords, settles } from './planQuestions.ts';
import { PlanFiles } from './planReview.ts';
import { PlansTree } from './plansTree.ts';
import { pickHuman } from './quickPickHuman.ts';

/** What the commands do. */
export type PlanVerb =
  | 'new'
  | 'demo'
  | 'run'
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

/** Phases in which there are no stories to work on, or no card that was accepted. */
const early: readonly PlanPhase[] = [
  'interviewing',
  'planning',
  'plan_review',
  'splitting',
  'stories_review',
];

const nothing = (): void => undefined;

interface Running {
  controller: AbortController;
  done: Promise<unknown>;
  /** It runs in a process of its own, which this window does not end. */
  isApart?: boolean;
}

/** The parts of the extension that plans use. */
export interface PlanHost {
  extensionUri: vscode.Uri;
  log: vscode.LogOutputChannel;
  inChat: WorkInChat;
  /** Of the workspace. */
  memory: vscode.Memento;
}

/** What fills the view. */
export interface Plans extends vscode.Disposable {
  tree: PlansTree;
  actions: PlanActions;
  comments: PlanComments;
}

export function openPlans(
  current: CurrentTelos,
  host: PlanHost,
  view: vscode.TreeView<PlansNode>,
  changed: vscode.EventEmitter<void>,
): Plans {
  const tree = new PlansTree(view, changed, host.log);
  const comments = new PlanComments(tree, host.memory);
  const files = new PlanFiles(tree, comments);
  const actions = new PlanActions(current, tree, comments, host);
  const goingOn = tree
    .children()
    .then(() => import('./planStart.ts'))
    .then(({ goOnHere }) => goOnHere(tree, host.memory, node => actions.goOnAlone(node)));
  if (tree.repos.some(isDemoProject)) actions.showDemo().catch(error => host.log.warn(describeError(error)));
  return {
    ...{ tree, actions, comments },
    dispose: () => {
      vscode.Disposable.from(actions, files, comments, tree).dispose();
      void goingOn.then(looking => looking.dispose());
    },
  };
}

export class PlanActions implements vscode.Disposable {
  readonly #current: CurrentTelos;
  readonly #tree: PlansTree;
  readonly #comments: PlanComments;
  readonly #host: PlanHost;
  #pages: Promise<PlanPages> | undefined;
  /** What runs in this window, by the folder of its plan. */
  readonly #running = new Map<string, Running>();
  #isOver = false;

  constructor(current: CurrentTelos, tree: PlansTree, comments: PlanComments, host: PlanHost) {
    this.#current = current;
    this.#tree = tree;
    this.#comments = comments;
    this.#host = host;
  }

  /** Carries out a command. Shows the person an error that the engine throws. */
  async act(verb: PlanVerb, given: unknown): Promise<void> {
    try {
      if (verb !== 'open' && verb !== 'report' && !vscode.workspace.isTrusted)
        throw new Error(untrustedMessage);
      if (verb === 'new') return await this.#new(goalIn(given));
      if (verb === 'demo') return await this.#tryPlan();
      const node = isNode(given) ? given : await this.#pickPlan();
      if (node) await this.#do(verb, node);
    } catch (error) {
      if (error instanceof Interruption) return;
      complain(plainLabel(describeError(error), 1_000));
    }
  }

  /** Goes on with a plan whose window has ended. */
  async goOnAlone(node: PlanNode): Promise<void> {
    try {
      const plan = await this.#plan(node);
      const { modelsAreThere } = await import('./planStart.ts');
      await modelsAreThere(await this.#current.openTelos(), await plan.folder.settings());
      // The person was faster.
      if (this.#isOver || this.#running.has(node.folder.dir)) return;
      const stop = { title: vscode.l10n.t('Stop'), act: () => this.act('stop', node) };
      const said = vscode.l10n.t(
        '{0} goes on. Its window was closed or loaded again.',
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
    this.#isOver = true;
    const here = [...this.#running.values()].filter(({ isApart }) => !isApart);
    for (const { controller } of here) controller.abort(new Interruption());
    await Promise.allSettled(here.map(({ done }) => done));
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
          env: () => this.#env(),
          plan: node => this.#plan(node),
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
      await finishInEditor(await this.#plan(node), how);
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
      case 'until':
        return node.kind === 'story' ? this.#run(plan, node.state.story.id) : undefined;
      case 'check':
        return node.kind === 'story' ? this.#check(node) : undefined;
      case 'approve':
        return this.#approve(plan);
      case 'change':
        return this.#requestChanges(plan);
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
        return (await import('./planChanges.ts')).showStoryChanges(node, await this.#env());
      case 'report':
        return node.kind === 'question' ? undefined : (await this.pages()).show(node);
      case 'answer':
        return node.kind === 'question' ? this.#answer(node) : undefined;
      case 'tell':
        return this.#tell(node);
      case 'budget':
        return this.#raiseBudget(plan);
      case 'new':
        return this.#new(undefined);
      case 'demo':
        return this.#tryPlan();
      default:
        return node.kind === 'story' ? this.#settle(verb, node) : undefined;
    }
  }

  async #env(): Promise<Readonly<Record<string, string | undefined>>> {
    return (await this.#current.openTelos()).config.env;
  }

  /** The engine as it is set up now: settings and keys may have changed since the plan was listed. The demo is played. */
  async #telosIn(repo: string): Promise<Telos> {
    const telos = await this.#current.openTelos();
    if (!isDemoProject(repo)) return telos;
    return (await import('./planDemo.ts')).playingTelos(telos, this.#host.extensionUri);
  }

  async #plan({ folder }: PlanNode): Promise<Plan> {
    return new Plan(folder, { runs: await this.#telosIn(folder.repo), human: pickHuman, by: 'editor' });
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

  /** Asks for the goal if it is not known, and goes on in a chat. */
  async #new(known: string | undefined): Promise<void> {
    const { askGoal } = await import('./newPlan.ts');
    const goal = known ?? (await askGoal());
    if (goal !== undefined)
      await this.#host.inChat(`/plan ${plainLabel(goal, 2_000)}`, stage => this.begin(goal, stage));
  }

  /** Makes a plan for the goal and asks what must be known. Returns what then waits. Throws the errors of the engine. */
  async begin(wanted: string, stage: ChatStage): Promise<string> {
    if (!vscode.workspace.isTrusted) throw new Error(untrustedMessage);
    const { askGoal } = await import('./newPlan.ts');
    const repo = await this.#pickRepo();
    const goal = repo && (wanted.trim() || (await askGoal()));
    if (!repo || !goal) throw new Interruption();
    const { problemsOf } = await import('../../engine/workflow/gitProblems.ts');
    const problems = await problemsOf(repo, { env: await this.#env() });
    const stop = problems.find(({ stops }) => stops);
    if (stop) throw new Error(stop.text);
    const caller = { runs: await this.#telosIn(repo), human: pickHuman, by: 'editor' as const };
    const plan = await Plan.create(repo, goal, caller);
    await this.#tree.refresh();
    return this.#goOn(plan, this.#nodeOf(plan), stage);
  }

  /** Returns the top folder of the repository in which to plan; asks if there are several. */
  async #pickRepo(): Promise<string | undefined> {
    const items = this.#tree.repos.map(repo => ({ label: plainLabel(basename(repo)), repo }));
    const [only] = items;
    if (!only) throw new Error(vscode.l10n.t('A plan works in a folder. Open one, then try again.'));
    if (items.length === 1) return only.repo;
    return (await vscode.window.showQuickPick(items, { title: vscode.l10n.t('New Plan in Which Folder?') }))
      ?.repo;
  }

  /** The plan as it was listed last. */
  #nodeOf({ folder }: Plan): PlanNode {
    const known = this.#tree.plans.find(node => node.folder.dir === folder.dir);
    return known ?? { kind: 'plan', folder, isLive: false };
  }

  /** Asks a model for one step of the plan, with a bar above the view. *Stop Plan* ends it. */
  #asking({ folder }: Plan, stage: ChatStage | undefined): AskModel {
    return async (what, ask) => {
      const controller = new AbortController();
      stage?.say(what);
      const done = ask(AbortSignal.any([controller.signal, ...(stage ? [stage.signal] : [])]));
      this.#running.set(folder.dir, { controller, done });
      try {
        const bar = { location: { viewId: 'telos.plans' } };
        const window = { location: vscode.ProgressLocation.Window, title: what };
        void vscode.window.withProgress(bar, () => done.then(nothing, nothing));
        void vscode.window.withProgress(window, () => done.then(nothing, nothing));
        return await done;
      } catch (error) {
        throw controller.signal.aborted || stage?.signal.aborted ? new Interruption() : error;
      } finally {
        this.#running.delete(folder.dir);
        await this.#tree.refresh(folder.dir);
      }
    };
  }

  /** Does what comes next for a plan without stories. Returns what then waits. */
  async #goOn(plan: Plan, node: PlanNode, stage?: ChatStage): Promise<string> {
    const { goOn } = await import('./newPlan.ts');
    if (stage || (await plan.look()).state.phase !== 'interviewing')
      return goOn(plan, { ask: this.#asking(plan, stage), showCard: () => this.#showCard(plan), stage });
    const text = vscode.l10n.t('Go on with the plan {0}', plainLabel(plan.name));
    await this.#host.inChat(text, shown => this.#goOn(plan, node, shown));
    return '';
  }

  async #review(
    node: PlanNode,
    decision: 'approved' | 'changes',
    comments: readonly string[] = [],
  ): Promise<void> {
    const plan = await this.#plan(node);
    const file = plan.folder.path('plan.md');
    const open = vscode.workspace.textDocuments.find(
      ({ uri }) => uri.scheme === 'file' && uri.fsPath === file,
    );
    if (open?.isDirty && !(await open.save()))
      throw new Error(vscode.l10n.t('plan.md has changes that could not be saved. Save it, then try again.'));
    if ((await plan.look()).state.phase !== 'plan_review')
      throw new Error(vscode.l10n.t('The plan {0} has nothing to approve now.', plainLabel(plan.name)));
    await plan.review(decision, comments);
    await this.#tree.refresh(node.folder.dir);
    await this.#goOn(plan, node);
  }

  async #approve(node: PlanNode): Promise<void> {
    const open = this.#comments.openIn(node.folder.dir);
    if (open > 0)
      throw new Error(
        vscode.l10n.t('Comments are open in plan.md. Resolve them, or send them, before you approve it.'),
      );
    await this.#review(node, 'approved');
  }

  async #requestChanges(node: PlanNode): Promise<void> {
    if (this.#comments.unsentIn(node.folder.dir) > 0) {
      const sent = this.#comments.takeUnsent(node.folder.dir, node.folder.read('plan.md') ?? '');
      return this.#review(node, 'changes', sent);
    }
    const text = await vscode.window.showInputBox({
      title: vscode.l10n.t('Request Changes'),
      prompt: vscode.l10n.t('What should be different in plan.md? It is then written anew.'),
      ignoreFocusOut: true,
    });
    if (text?.trim()) await this.#review(node, 'changes', [text.trim()]);
  }

  async #showCard({ folder }: Pick<PlanNode, 'folder'>): Promise<void> {
    (await this.pages()).showCard(folder);
  }

  /** What runs here is stopped as if its window were closed; what runs elsewhere is told. */
  async #stop(node: PlanNode): Promise<void> {
    const here = this.#running.get(node.folder.dir);
    if (here && !here.isApart) here.controller.abort();
    else if (node.isLive) await this.#steer(node, { kind: 'stop', when: 'now' });
  }

  /**
   * Goes on with a plan that is held; else does what comes next, or works on its stories until it rests, or until the one that is
   * named has passed.
   */
  async #run(node: PlanNode, until?: string): Promise<void> {
    const isRunning = node.isLive || this.#running.has(node.folder.dir);
    if (isRunning && until !== undefined)
      throw new Error(
        vscode.l10n.t(
          '{0} runs already. Stop it, then run it up to this story.',
          plainLabel(node.folder.name),
        ),
      );
    if (isRunning) return this.#steer(node, { kind: 'resume' });
    const plan = await this.#plan(node);
    const { phase } = (await plan.look()).state;
    if (early.includes(phase)) {
      await this.#goOn(plan, node);
      return;
    }
    const [settings, telos] = await Promise.all([plan.folder.settings(), this.#telosIn(node.folder.repo)]);
    const { noteHere, runApart, runHere, runsApart } = await import('./planStart.ts');
    const controller = new AbortController();
    const wanted = { settings, isRetry: phase === 'failed', until };
    const isApart = await runsApart(telos, settings);
    // A second press, while the first was looking.
    if (this.#running.has(node.folder.dir)) return;
    if (!isApart) void noteHere(this.#host.memory, node.folder.dir, true);
    const done = isApart
      ? runApart(plan, telos, this.#host.extensionUri, wanted)
      : runHere(plan, wanted, controller.signal);
    this.#running.set(node.folder.dir, { controller, done, isApart });
    try {
      const end = await done;
      this.#running.delete(node.folder.dir);
      await this.#ended(node, end);
    } finally {
      this.#running.delete(node.folder.dir);
      if (!isApart && !this.#isOver) void noteHere(this.#host.memory, node.folder.dir, false);
      await this.#tree.refresh(node.folder.dir);
    }
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
    const reason = plainLabel(why ?? '', 500);
    const { t } = vscode.l10n;
    const report = { title: t('Show Report'), act: () => this.act('report', node) };
    if (phase === 'failed') complain(t('{0} failed. {1}', name, reason));
    else if (phase === 'done') acknowledge(t('{0} is done. All of its stories have passed.', name), report);
    else if (phase === 'needs_you') acknowledge(t('{0} needs you. {1}', name, reason));
    else acknowledge(t('{0} rests. {1}', name, reason));
  }

  /** Runs the checks of a story alone. */
  async #check({ plan: node, state }: StoryNode): Promise<void> {
    const plan = await this.#plan(node);
    if (!(await plan.card()).isAccepted) return this.#showCard(plan);
    await (await import('./planCheck.ts')).checkStory(plan, state.story.id);
  }

  async #steer(node: PlanNode, command: SteerCommand): Promise<void> {
    const plan = await this.#plan(node);
    const isRunning = await plan.steer(command);
    await this.#tree.refresh(node.folder.dir);
    const name = plainLabel(node.folder.name);
    if (isRunning) return acknowledge(vscode.l10n.t('{0} was told.', name));
    acknowledge(vscode.l10n.t('{0} is not running. This counts when it runs.', name), {
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
    if (await settles(kind, state.story)) await this.#steer(plan, { kind, story: state.story.id });
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
