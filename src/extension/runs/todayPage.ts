/** Opens the page *Today*: what ran while nobody looked, and what waits for the user. Draws it again after each decision. */
import { openPlan } from '@telos/plans/plan';
import type { PageCard, PageRow, PageShown } from '@telos/protocol/actionPage';
import { formatCost } from '@telos/protocol/usage';
import { readToday, type TodayDecision, type TodayEntry, type TodayPage } from '@telos/today/today';
import * as vscode from 'vscode';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { type Button, emptyPage, openActionPage } from '../base/drawPage.ts';
import { describeTime, plainLabel, t } from '../base/labels.ts';
import { phaseLabel, reasonLabel } from '../editor/planItem.ts';
import { askFor } from '../editor/planQuestions.ts';
import { outcomeLabel, timeLabel } from './runItem.ts';
import { whyNot } from './scheduleItem.ts';

type OpenTelos = Awaited<ReturnType<CurrentTelos['openTelos']>>;

/** Shows the page, or the one that is open already as things are now. */
export const showToday = (current: CurrentTelos): Promise<void> =>
  openActionPage({
    type: 'telos.today',
    title: t('Today'),
    waiting: t('Reading what ran…'),
    draw: async button => drawing(await current.openTelos(), button),
    isLive: true,
  });

async function drawing(telos: OpenTelos, button: Button): Promise<PageShown> {
  const now = new Date();
  const since = new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1, 18);
  const folders = telos.config.workspaceFolders.map(({ path }) => path);
  const page = await readToday(telos, { since, folders });
  return {
    ...emptyPage,
    title: t('Today'),
    summary: summaryOf(page, since),
    cardsTitle: t('Waiting for You'),
    cards: page.decisions.map(decision => cardOf(decision, telos, button)),
    rows: page.entries.map(entry => rowOf(entry, button)),
    problems: [...page.problems],
    actions: [
      button(t('Show Changes of Today...'), t('files that Telos changed since midnight'), () =>
        vscode.commands.executeCommand('telos.showDayChanges'),
      ),
    ],
  };
}

function summaryOf({ entries, decisions, spent, ownRuns, problems }: TodayPage, since: Date): string {
  const from = describeTime(since);
  // What could not be read may well have run.
  if (entries.length + decisions.length + problems.length === 0 && ownRuns === 0)
    return t('Nothing ran since {0}, and nothing waits for you.', from);
  return [
    t('Since {0}', from),
    ...(spent.known > 0 ? [t('cost {0}', formatCost(spent.known))] : []),
    ...(spent.unknownRuns > 0 ? [t('runs of unknown cost: {0}', spent.unknownRuns)] : []),
    ...(ownRuns > 0 ? [t('runs of your own: {0}', ownRuns)] : []),
  ].join(' · ');
}

function cardOf(decision: TodayDecision, telos: OpenTelos, button: Button): PageCard {
  switch (decision.kind) {
    case 'question': {
      const { plan, repo, question } = decision;
      const answer = (text: string): Promise<unknown> =>
        openPlan(repo, plan, { runs: telos, human: noHuman, by: 'editor' }).steer({
          kind: 'answer',
          id: question.id,
          text,
        });
      const ask = async (): Promise<void> => {
        const text = await askFor(question);
        if (text !== undefined) await answer(text);
      };
      const { choices = [] } = question;
      return {
        title: t('The plan {0} asks', plan),
        lines: [question.text, repo],
        actions:
          choices.length === 0
            ? [button(t('Answer...'), question.text, ask, true)]
            : choices.map(choice => button(choiceLabel(choice), question.text, () => answer(choice))),
      };
    }
    case 'plan': {
      const { plan, repo, phase, why } = decision;
      return {
        title: t('The plan {0} waits: {1}', plan, phaseLabel(phase, false)),
        lines: [...(why ? [reasonLabel(why)] : []), repo],
        actions: [
          button(t('Show Plans'), plan, () => vscode.commands.executeCommand('telos.plans.focus'), true),
        ],
      };
    }
    case 'schedule': {
      const { schedule } = decision;
      const node = { kind: 'schedule', schedule };
      const command = (name: string) => () => vscode.commands.executeCommand(name, node);
      const why = whyNot(schedule);
      return {
        title: schedule.hasGivenUp
          ? t('{0} is paused: it failed {1} times in a row', schedule.request, schedule.failures)
          : t('{0} asked while no one was there', schedule.request),
        lines: [...(schedule.last?.needs ?? []), ...(why ? [why] : [])],
        actions: [
          schedule.hasGivenUp
            ? button(t('Resume'), schedule.request, command('telos.resumeSchedule'), true)
            : button(t('Run Again'), schedule.request, command('telos.runSchedule'), true),
          ...(schedule.isPaused
            ? []
            : [button(t('Pause'), schedule.request, command('telos.pauseSchedule'))]),
          button(t('Open'), schedule.request, command('telos.openSchedule')),
        ],
      };
    }
  }
}

/** The answers that Telos itself offers are said in the language of the window. */
const choiceLabel = (choice: string): string =>
  choice === 'yes' ? t('yes') : choice === 'no' ? t('no') : plainLabel(choice, 40);

/** An answer to a plan asks nothing. */
const noHuman = {
  approve: async () => ({ allow: false as const, reason: 'No one can answer here.' }),
  ask: async () => [],
};

function rowOf(entry: TodayEntry, button: Button): PageRow {
  const [title, ...facts] = factsOf(entry);
  const { cost, unknownCosts, changes } = entry;
  const runId =
    entry.kind === 'run'
      ? entry.run.runId
      : entry.kind === 'schedule'
        ? entry.schedule.last?.runId
        : undefined;
  const files = changes.flatMap(change => change.files);
  return {
    title,
    when: timeLabel(entry.at),
    facts: [
      ...facts,
      ...(cost ? [formatCost(cost)] : []),
      ...(unknownCosts > 0 ? [t('cost unknown')] : []),
      ...(files.length > 0
        ? [t('changed {0}', files.map(file => vscode.workspace.asRelativePath(file)).join(', '))]
        : []),
    ].filter(Boolean),
    actions: [
      ...(runId === undefined
        ? []
        : [
            button(t('Open'), title, () =>
              vscode.commands.executeCommand('telos.openConversation', { runId, panel: true }),
            ),
          ]),
      ...(entry.kind === 'plan'
        ? [button(t('Show Plans'), title, () => vscode.commands.executeCommand('telos.plans.focus'))]
        : []),
      ...changes.map(change =>
        button(t('Undo...'), title, () =>
          vscode.commands.executeCommand('telos.undoThisRun', { runId: change.runId }),
        ),
      ),
    ],
  };
}

/** Returns what ran, and then how it ended. */
function factsOf(entry: TodayEntry): [string, ...string[]] {
  switch (entry.kind) {
    case 'schedule': {
      const { request, last } = entry.schedule;
      const needs = last?.needs ? t('needs input') : '';
      const outcome = last?.outcome;
      const word =
        outcome === 'blocked' || outcome === 'skipped'
          ? t('Not run')
          : outcomeLabel(outcome ?? (last?.endedAt === undefined ? 'running' : 'interrupted'));
      return [request, word, needs, whyNot(entry.schedule) ?? ''];
    }
    case 'plan': {
      const { name, phase, why, isLive, finished, passed, stories, checks } = entry;
      const word = finished ? t('finished') : phaseLabel(phase, isLive);
      const proof = passed > 0 && checks.length > 0 ? t('checked by {0}', checks.join(', ')) : '';
      return [
        t('Plan {0}', name),
        word,
        stories === 0
          ? ''
          : stories === 1
            ? t('{0} of 1 story', passed)
            : t('{0} of {1} stories', passed, stories),
        proof,
        reasonLabel(why),
      ];
    }
    case 'run':
      return [entry.title, outcomeLabel(entry.run.outcome), entry.run.error ?? ''];
  }
}
