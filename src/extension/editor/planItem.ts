/** Describes a plan, its stories and its questions as rows of the view *Plans*: a state, an attempt, a cost, an icon. */

import type { PlanFolder, PlanLook, StoryState } from '@telos/plans/state';
import type { ParkedQuestion, PlanPhase, StoryStatus } from '@telos/protocol/plan';
import { planWords } from '@telos/protocol/planWords';
import type { Usage } from '@telos/protocol/run';
import { formatCost } from '@telos/protocol/usage';
import * as vscode from 'vscode';
import { plainLabel } from '../base/labels.ts';

export interface PlanNode {
  kind: 'plan';
  folder: PlanFolder;
  /** Missing if its files cannot be read. */
  look?: PlanLook;
  /** Why they cannot. */
  problem?: string;
  /** True while a process works on it, this one or another. */
  isLive: boolean;
}

export interface StoryNode {
  kind: 'story';
  plan: PlanNode;
  state: StoryState;
}

export interface QuestionNode {
  kind: 'question';
  plan: PlanNode;
  question: ParkedQuestion;
}

export type PlansNode = PlanNode | StoryNode | QuestionNode;

/** What a person sees of a plan in one word: its phase, how it was finished, or that its runner is gone. */
type Shown = PlanPhase | 'interrupted' | 'merged' | 'thrown_away';

const atWork: readonly PlanPhase[] = ['running', 'waiting', 'finishing'];

function shownPhase({ look, isLive }: PlanNode): Shown {
  const phase = look?.state.phase ?? 'failed';
  const how = look?.state.finished?.how;
  if (how === 'merge' || how === 'squash') return 'merged';
  if (how === 'drop') return 'thrown_away';
  return !isLive && atWork.includes(phase) ? 'interrupted' : phase;
}

/** Whether its runner is gone without having come to an end. */
export const isCutOff = (node: PlanNode): boolean => shownPhase(node) === 'interrupted';

/** Stories that are done, and all that are not left out. */
export function counted({ look }: PlanNode): { done: number; all: number } {
  const stories = (look?.state.stories ?? []).filter(({ status }) => status !== 'skipped');
  return { done: stories.filter(({ status }) => isDone(status)).length, all: stories.length };
}

const isDone = (status: StoryStatus): boolean => status === 'passed' || status === 'accepted';

/** Returns how much of the plan waits for a person: a file to approve, a question, a story that is stuck. */
export function waitingIn({ look, isLive }: PlanNode): number {
  if (!look) return 0;
  const { phase, questions, stories } = look.state;
  const asked = new Set(questions.map(({ story }) => story));
  const stuck = stories.filter(({ status, story }) => status === 'needs_you' && !asked.has(story.id));
  const isReview = !isLive && (phase === 'plan_review' || phase === 'stories_review');
  return questions.length + stuck.length + Number(isReview);
}

/** Returns how many wait, such as "1 needs input". Empty if none does. */
export function waitingLabel(count: number): string {
  if (count === 0) return '';
  return count === 1 ? vscode.l10n.t('1 needs input') : vscode.l10n.t('{0} need input', count);
}

/** Returns an amount such as `$1.84`. Empty if nothing is known of it. */
export const costLabel = (usage: Usage | undefined): string =>
  usage && typeof usage.cost === 'number' && usage.cost > 0 ? formatCost(usage.cost) : '';

/** Returns why something of a plan is as it is, as its journal says it. Empty if that is not known. */
export const reasonLabel = (why: string | undefined): string => planWords(why ?? '', vscode.l10n.t);

/** Returns the state of a plan in a word or two. */
export const planWord = (node: PlanNode): string =>
  node.look === undefined ? vscode.l10n.t('cannot be read') : phaseLabel(shownPhase(node), node.isLive);

/** Returns the state of a story in a word or two. */
export const storyWord = ({ plan, state }: StoryNode): string =>
  isOpen(plan, state) ? vscode.l10n.t('interrupted') : statusLabel(state.status);

/** Whether an attempt is open that no runner works on. */
const isOpen = ({ isLive }: PlanNode, { open, status }: StoryState): boolean =>
  !isLive && open !== undefined && workingStatuses.includes(status);

/** Whether a runner works on the story now. */
export const isAtWork = ({ plan, state: { open, status } }: StoryNode): boolean =>
  plan.isLive && open !== undefined && workingStatuses.includes(status);

/** Returns the row of a plan. Its children are its questions and its stories. */
export function planItem(node: PlanNode): vscode.TreeItem {
  const { folder, look, problem } = node;
  const { Expanded, None } = vscode.TreeItemCollapsibleState;
  const hasRows = look !== undefined && look.stories.length + look.state.questions.length > 0;
  const item = new vscode.TreeItem(plainLabel(folder.name), hasRows ? Expanded : None);
  const shown = shownPhase(node);
  const { done, all } = counted(node);
  const waiting = waitingLabel(waitingIn(node));
  // What needs a person says more than that something runs.
  const word = planWord(node);
  // The editor keeps a row folded that had nothing below it before.
  item.id = `${folder.dir}\n${hasRows}`;
  item.description = [
    word,
    all > 0 ? `${done}/${all}` : '',
    costLabel(look?.state.usage),
    shown === 'running' ? waiting : '',
  ]
    .filter(Boolean)
    .join(' · ');
  item.iconPath = look ? iconOf(phaseIcons[shown]) : iconOf(['warning', 'list.warningForeground']);
  item.contextValue = ['plan', shown, node.isLive ? 'live' : 'idle', hasPlanFile(node) ? 'planned' : '']
    .filter(Boolean)
    .join('.');
  item.tooltip = [
    plainLabel(look?.state.goal ?? folder.name, 500),
    [word, plainLabel(reasonLabel(look?.state.phaseWhy) || (problem ?? ''), 500)].filter(Boolean).join(': '),
    waiting,
    ...(look?.problems ?? []).map(text => plainLabel(text, 300)),
    ...(look?.state.branch ? [vscode.l10n.t('Branch {0}', plainLabel(look.state.branch))] : []),
  ]
    .filter(Boolean)
    .join('\n');
  item.accessibilityInformation = { label: [item.label, item.description].join(', ') };
  if (hasPlanFile(node))
    item.command = { command: 'telos.openPlan', title: vscode.l10n.t('Open'), arguments: [node] };
  return item;
}

/** True once plan.md was written. */
const hasPlanFile = ({ look }: PlanNode): boolean =>
  look !== undefined && look.state.phase !== 'interviewing' && look.state.phase !== 'planning';

export function storyItem(node: StoryNode): vscode.TreeItem {
  const { plan, state } = node;
  const { story, status, attempts, usage, passed, accepted, open } = state;
  const item = new vscode.TreeItem(plainLabel(`${story.id} ${story.title}`, 120));
  const isWorking = open !== undefined && workingStatuses.includes(status);
  const boxes = passed.size + accepted.size;
  item.id = `${plan.folder.dir}\n${story.id}`;
  item.description = [
    storyWord(node),
    isWorking ? workerLabel(state) : '',
    attempts > 1 || (isWorking && attempts > 0) ? vscode.l10n.t('attempt {0}', attempts) : '',
    boxes > 0 && boxes < story.items.length ? vscode.l10n.t('{0} of {1}', boxes, story.items.length) : '',
    costLabel(usage),
  ]
    .filter(Boolean)
    .join(' · ');
  item.iconPath = iconOf(
    isOpen(plan, state) ? phaseIcons.interrupted : (statusIcons[status] ?? ['circle-outline']),
  );
  item.contextValue = `story.${status}${attempts > 0 ? '.tried' : ''}${isDone(status) ? '.done' : ''}`;
  item.tooltip = storyTooltip(node);
  item.accessibilityInformation = { label: [item.label, item.description].join(', ') };
  // What it has come to says more than its file, once there is something.
  const command = attempts > 0 ? 'telos.showPlanReport' : 'telos.openPlan';
  item.command = { command, title: vscode.l10n.t('Open'), arguments: [node] };
  return item;
}

/** Returns on which worker a story is, or empty if it is not, or its work has come back from there. */
function workerLabel({ open, status }: StoryState): string {
  if (!open?.job || status === 'committing' || status === 'integrating') return '';
  return vscode.l10n.t('on {0}', plainLabel(open.job.worker));
}

function storyTooltip({ state }: StoryNode): string {
  const { story, passed, accepted, why, lastDenial, commit } = state;
  const reason = why ?? lastDenial;
  return [
    plainLabel(`${story.id} ${story.title}`, 300),
    ...story.items.map(({ number, text }) => {
      const isClosed = passed.has(number) || accepted.has(number);
      return `${isClosed ? '☑' : '☐'} ${plainLabel(text, 200)}`;
    }),
    story.dependsOn.length > 0 ? vscode.l10n.t('After {0}', plainLabel(story.dependsOn.join(', '))) : '',
    commit ? vscode.l10n.t('Commit {0}', commit.slice(0, 8)) : '',
    workerLabel(state),
    plainLabel(reasonLabel(reason), 400),
  ]
    .filter(Boolean)
    .join('\n');
}

export function questionItem({ plan, question }: QuestionNode): vscode.TreeItem {
  const item = new vscode.TreeItem(plainLabel(question.text, 120));
  item.id = `${plan.folder.dir}\nquestion\n${question.id}`;
  item.description = plainLabel(question.story ?? '');
  item.iconPath = iconOf(['question', 'list.warningForeground']);
  item.contextValue = 'question';
  item.tooltip = plainLabel(question.text, 2_000);
  item.accessibilityInformation = {
    label: [vscode.l10n.t('Question'), item.label, item.description].filter(Boolean).join(', '),
  };
  return item;
}

type Icon = readonly [icon: string, color?: string];

const iconOf = ([icon, color]: Icon): vscode.ThemeIcon =>
  new vscode.ThemeIcon(icon, color ? new vscode.ThemeColor(color) : undefined);

const phaseIcons: Readonly<Record<Shown, Icon>> = {
  interviewing: ['comment-discussion'],
  planning: ['edit'],
  plan_review: ['bell-dot', 'list.warningForeground'],
  splitting: ['list-tree'],
  stories_review: ['bell-dot', 'list.warningForeground'],
  ready: ['circle-large-outline'],
  running: ['loading~spin'],
  paused: ['debug-pause'],
  waiting: ['watch'],
  needs_you: ['bell-dot', 'list.warningForeground'],
  finishing: ['loading~spin'],
  done: ['pass', 'testing.iconPassed'],
  failed: ['error', 'list.errorForeground'],
  stopped: ['circle-slash', 'disabledForeground'],
  interrupted: ['debug-disconnect', 'list.warningForeground'],
  merged: ['git-merge', 'testing.iconPassed'],
  thrown_away: ['trash', 'disabledForeground'],
};

const workingStatuses: readonly StoryStatus[] = [
  'working',
  'snapshot',
  'checking',
  'reviewing',
  'committing',
  'integrating',
];

const statusIcons: Readonly<Partial<Record<StoryStatus, Icon>>> = {
  ...Object.fromEntries(workingStatuses.map(status => [status, ['loading~spin']])),
  blocked: ['lock', 'disabledForeground'],
  passed: ['pass', 'testing.iconPassed'],
  accepted: ['check', 'testing.iconPassed'],
  needs_you: ['bell-dot', 'list.warningForeground'],
  skipped: ['debug-step-over', 'disabledForeground'],
  failed: ['error', 'list.errorForeground'],
};

/** Returns a phase in a word or two. `isLive` tells whether a runner works on the plan. */
export function phaseLabel(phase: Shown, isLive: boolean): string {
  const { t } = vscode.l10n;
  switch (phase) {
    case 'interviewing':
      return t('interview');
    case 'planning':
      return isLive ? t('writing the plan') : t('not written yet');
    case 'plan_review':
      return t('approve plan.md');
    case 'splitting':
      return isLive ? t('splitting') : t('not split yet');
    case 'stories_review':
      return t('approve to start');
    case 'ready':
      return t('ready');
    case 'running':
      return t('running');
    case 'paused':
      return t('paused');
    case 'waiting':
      return t('waiting');
    case 'needs_you':
      return t('needs input');
    case 'finishing':
      return t('finishing');
    case 'done':
      return t('done');
    case 'failed':
      return t('failed');
    case 'stopped':
      return t('stopped');
    case 'interrupted':
      return t('interrupted');
    case 'merged':
      return t('merged');
    case 'thrown_away':
      return t('discarded');
  }
}

function statusLabel(status: StoryStatus): string {
  const { t } = vscode.l10n;
  switch (status) {
    case 'blocked':
      return t('blocked');
    case 'ready':
      return t('ready');
    case 'working':
    case 'snapshot':
      return t('working');
    case 'checking':
      return t('checking');
    case 'reviewing':
      return t('reviewing');
    case 'committing':
      return t('committing');
    case 'integrating':
      return t('integrating');
    case 'passed':
      return t('passed');
    case 'needs_you':
      return t('needs input');
    case 'skipped':
      return t('skipped');
    case 'accepted':
      return t('accepted by you');
    case 'failed':
      return t('failed');
  }
}
