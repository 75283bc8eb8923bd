/** Opens pages about plans in editors: a report of the whole plan, and one story as it goes on. Draws them again as the plan changes. */

import { randomUUID } from 'node:crypto';
import { Git } from '@telos/plans/gitRepository';
import type { Plan } from '@telos/plans/plan';
import { checkedOutBranch } from '@telos/plans/run';
import { readJournal, reportOf } from '@telos/plans/state';
import type { FinishKind } from '@telos/protocol/plan';
import type { PlanCard } from '@telos/protocol/planCard';
import {
  type FromPlanPage,
  type PlanPage,
  type PlanPagePlace,
  planPageVerbs,
  type ToPlanPage,
} from '@telos/protocol/planPage';
import * as vscode from 'vscode';
import { drawPage } from '../base/drawPage.ts';
import { describeError, plainLabel } from '../base/labels.ts';
import { type PlanNode, planWord, type QuestionNode, type StoryNode, storyWord } from './planItem.ts';
import type { PlansTree } from './plansTree.ts';

/** Also named in package.json. */
const planPageType = 'telos.planPage';

/** What the pages need of the others. */
export interface PlanPageParts {
  tree: PlansTree;
  extensionUri: vscode.Uri;
  log: vscode.LogOutputChannel;
  env: () => Promise<Readonly<Record<string, string | undefined>>>;
  /** The engine as it is set up now. */
  plan: (node: PlanNode) => Promise<Plan>;
  /** Asks the person, and passes the answer on. */
  answer: (question: QuestionNode) => Promise<void>;
  /** Called when the person has accepted the card of the plan. */
  accepted: (node: PlanNode) => Promise<void>;
  /** Carries out what a button asks for. Returns why it was not done, if the page is to say so. */
  act: (
    asked: Extract<FromPlanPage, { type: 'act' }>,
    node: PlanNode | StoryNode,
  ) => Promise<string | undefined>;
}

interface Open {
  id: string;
  panel: vscode.WebviewPanel;
  place: PlanPagePlace;
  problem?: string;
  /** The card that the page shows. Only that one can be accepted on it. */
  card?: PlanCard;
  /** The acceptance of its card, which takes the plan for itself for a moment: what is pressed next waits for it. */
  accepting?: Promise<void>;
  /** The ways to end the plan that the page offers. */
  finish?: readonly FinishKind[];
  /** One of its buttons is being obeyed. That takes the plan too: its ways stay meanwhile, and the keyboard with them. */
  isActing?: boolean;
  /** The last drawing. One begins when the one before has ended, so that the latest state is drawn last. */
  drawn: Promise<void>;
}

export class PlanPages implements vscode.Disposable {
  readonly #parts: PlanPageParts;
  readonly #open = new Map<string, Open>();
  readonly #looking: vscode.Disposable;

  constructor(parts: PlanPageParts) {
    this.#parts = parts;
    this.#looking = parts.tree.onDidLook(() => {
      for (const open of this.#open.values()) void this.#draw(open);
    });
  }

  /** Shows the page of a plan, or of one of its stories. */
  show(node: PlanNode | StoryNode): void {
    this.#show(
      node.kind === 'plan'
        ? { dir: node.folder.dir }
        : { dir: node.plan.folder.dir, story: node.state.story.id },
    );
  }

  /** Shows what the plan will run, and offers to accept it. */
  showCard({ dir }: PlanNode['folder']): void {
    this.#show({ dir, isCard: true });
  }

  #show(place: PlanPagePlace): void {
    const known = [...this.#open.values()].find(
      ({ place: { dir, story, isCard } }) =>
        dir === place.dir && story === place.story && isCard === place.isCard,
    );
    if (known) {
      known.panel.reveal();
      return;
    }
    const title = this.#titleOf(place);
    const panel = vscode.window.createWebviewPanel(planPageType, title, vscode.ViewColumn.Active, {});
    this.#fill(panel, place);
  }

  /** Shows again what an earlier window has shown. A page that has kept nothing before that window was closed is known by its title. */
  restore(panel: vscode.WebviewPanel, kept: unknown): void {
    const place = placeIn(kept) ?? this.#placeTitled(panel.title);
    if (place) this.#fill(panel, place);
    else panel.dispose();
  }

  dispose(): void {
    this.#looking.dispose();
    for (const { panel } of this.#open.values()) panel.dispose();
  }

  #fill(panel: vscode.WebviewPanel, place: PlanPagePlace): void {
    const open: Open = { id: randomUUID(), panel, place, drawn: Promise.resolve() };
    this.#open.set(open.id, open);
    const { webview } = panel;
    panel.iconPath = new vscode.ThemeIcon('checklist');
    panel.title = this.#titleOf(place);
    const listening = webview.onDidReceiveMessage(message => this.#take(open, message));
    panel.onDidDispose(() => {
      listening.dispose();
      this.#open.delete(open.id);
    });
    drawPage(webview, this.#parts.extensionUri, 'planPage', place);
  }

  #titleOf({ dir, story, isCard }: PlanPagePlace): string {
    const name = plainLabel(this.#nodeAt(dir)?.folder.name ?? '');
    if (isCard) return vscode.l10n.t('Before {0} starts', name);
    return story === undefined
      ? vscode.l10n.t('Plan {0}', name)
      : vscode.l10n.t('{0} of {1}', plainLabel(story), name);
  }

  /** Returns what a page with this title is about, or undefined if that is no page of a plan here, or one of several. */
  #placeTitled(title: string): PlanPagePlace | undefined {
    const places = this.#parts.tree.plans.flatMap(({ folder: { dir }, look }): PlanPagePlace[] => [
      { dir },
      { dir, isCard: true },
      ...(look?.state.stories ?? []).map(({ story }) => ({ dir, story: story.id })),
    ]);
    const found = places.filter(place => this.#titleOf(place) === title);
    return found.length === 1 ? found[0] : undefined;
  }

  #nodeAt(dir: string): PlanNode | undefined {
    return this.#parts.tree.plans.find(({ folder }) => folder.dir === dir);
  }

  async #take(open: Open, message: unknown): Promise<void> {
    const asked = readFromPlanPage(message);
    if (!asked) return;
    if (asked.type === 'ready') return this.#draw(open);
    await open.accepting;
    const plan = this.#nodeAt(open.place.dir);
    if (!plan) return;
    if (asked.type === 'show_run') {
      await vscode.commands.executeCommand('telos.openConversation', { runId: asked.runId, panel: true });
      return;
    }
    if (asked.type === 'accept_card') {
      open.accepting = this.#accept(open, plan, asked.digest);
      return open.accepting;
    }
    if (asked.type === 'answer') {
      const question = plan.look?.state.questions.find(({ id }) => id === asked.id);
      if (question) await this.#parts.answer({ kind: 'question', plan, question });
      return;
    }
    const state = asked.story === undefined ? undefined : plan.look?.state.story(asked.story);
    if (asked.story !== undefined && !state) return;
    open.isActing = true;
    try {
      const problem = await this.#parts.act(asked, state ? { kind: 'story', plan, state } : plan);
      if (problem === undefined) delete open.problem;
      else open.problem = problem;
    } finally {
      open.isActing = false;
    }
    await this.#draw(open);
  }

  async #accept(open: Open, node: PlanNode, digest: string): Promise<void> {
    delete open.problem;
    try {
      if (open.card?.digest !== digest)
        throw new Error(vscode.l10n.t('The permissions have changed. Review them again, then approve.'));
      await (await this.#parts.plan(node)).acceptCard(open.card);
      await this.#parts.tree.refresh(node.folder.dir);
      void this.#parts.accepted(node);
    } catch (error) {
      open.problem = describeError(error);
    }
    await this.#draw(open);
  }

  #draw(open: Open): Promise<void> {
    open.drawn = open.drawn.then(() => this.#drawNow(open));
    return open.drawn;
  }

  async #drawNow(open: Open): Promise<void> {
    const { panel, place } = open;
    const node = this.#nodeAt(place.dir);
    if (!node?.look || !this.#open.has(open.id)) return;
    if (!open.isActing || !open.finish) open.finish = waysToFinish(node);
    const { finish } = open;
    try {
      const page = await this.#pageOf(node, place.story);
      const card = place.isCard ? await (await this.#parts.plan(node)).card() : undefined;
      if (card) open.card = card;
      const { problem } = open;
      const message: ToPlanPage = {
        type: 'page',
        page: { ...page, finish, ...(card && { card }), ...(problem !== undefined && { problem }) },
      };
      panel.title = this.#titleOf(place);
      await panel.webview.postMessage(message);
    } catch (error) {
      this.#parts.log.warn(`The page of ${place.dir} could not be drawn: ${describeError(error)}`);
    }
  }

  async #pageOf(node: PlanNode, story: string | undefined): Promise<Omit<PlanPage, 'finish'>> {
    const { folder, look, isLive } = node;
    const state = look?.state;
    if (!state) throw new Error(vscode.l10n.t('The plan {0} cannot be read.', plainLabel(folder.name)));
    const report = reportOf(await readJournal(folder.journal, folder.seal), state, story);
    const git = new Git(folder.repo, await this.#parts.env());
    try {
      const into = story === undefined ? await checkedOutBranch(git) : undefined;
      const words = {
        plan: planWord(node),
        stories: Object.fromEntries(
          state.stories.map(one => [one.story.id, storyWord({ kind: 'story', plan: node, state: one })]),
        ),
      };
      return {
        name: folder.name,
        report,
        words,
        isLive,
        questions: state.questions.filter(one => story === undefined || one.story === story),
        ...(story !== undefined && { story }),
        ...(into !== undefined && { into }),
      };
    } finally {
      await git.close();
    }
  }
}

/** Returns what a page has kept that it is about, or undefined if it has kept nothing. */
function placeIn(kept: unknown): PlanPagePlace | undefined {
  const { dir, story, isCard } = (kept ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof dir !== 'string') return undefined;
  if (isCard === true) return { dir, isCard };
  return { dir, ...(typeof story === 'string' && { story }) };
}

/** Returns how the plan can be ended now: not while it is worked on, before it has a commit, or when its branch is gone. */
function waysToFinish({ look, isLive }: PlanNode): FinishKind[] {
  const state = look?.state;
  if (isLive || !state || state.branch === undefined) return [];
  if (state.finished && state.finished.how !== 'keep' && state.finished.how !== 'pr') return [];
  const hasCommits = state.stories.some(({ commits }) => commits.length > 0);
  return hasCommits ? ['merge', 'squash', 'pr', 'keep', 'drop'] : ['drop'];
}

/** Returns the message with its known fields only, or undefined if the protocol does not know it. */
function readFromPlanPage(value: unknown): FromPlanPage | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { type, verb, story, runId, digest, id } = value as Readonly<Record<string, unknown>>;
  if (type === 'ready') return { type };
  if (type === 'answer') return isName(id) ? { type, id } : undefined;
  if (type === 'accept_card') return isName(digest) ? { type, digest } : undefined;
  if (type === 'show_run') return isName(runId) ? { type, runId } : undefined;
  const known = planPageVerbs.find(one => one === verb);
  if (type !== 'act' || !known || (story !== undefined && !isName(story))) return undefined;
  return { type, verb: known, ...(story !== undefined && { story }) };
}

const isName = (value: unknown): value is string => typeof value === 'string' && value.length <= 200;
