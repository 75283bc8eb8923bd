/** Implements `telos today`: prints what ran while nobody looked, and asks one key for each thing that waits. */
import { TelosError } from '@telos/engine/errors';
import { timeText } from '@telos/engine/records';
import { Schedules } from '@telos/engine/schedule';
import { Telos } from '@telos/engine/telos';
import { openPlan } from '@telos/plans/plan';
import { withChoices } from '@telos/plans/state';
import type { FinishKind } from '@telos/protocol/plan';
import { counted } from '@telos/protocol/text';
import { formatCost } from '@telos/protocol/usage';
import {
  readToday,
  type ShownPhase,
  type TodayChange,
  type TodayDecision,
  type TodayEntry,
  type TodayPage,
} from '@telos/today/today';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { readKey, readLine } from './keyboard.ts';
import { nextCommand, phaseWords } from './planView.ts';
import { lastText, schedulePauseCommand, scheduleRunCommand, whyNot } from './scheduleCommand.ts';
import { abortOnInterrupt, cancelledExitCode, type Terminal } from './terminal.ts';
import { unattended } from './terminalHuman.ts';
import { errorText, exactText, terminalJson, terminalLine, terminalText, toType } from './terminalText.ts';

export interface TodayOptions extends ConfigOptions {
  hours?: string;
  json?: boolean;
}

const finishWords: Readonly<Record<FinishKind, string>> = {
  merge: 'merged',
  squash: 'merged as one commit',
  pr: 'pushed for a pull request',
  keep: 'branch kept',
  drop: 'discarded',
};

interface KeyChoice {
  key: string;
  says: string;
  /** Resolves to whether it is decided: false if it still waits. */
  act: () => Promise<boolean>;
}

/** Returns the exit code: 0 if nothing waits any more, 3 if something still does. */
export async function todayCommand(options: TodayOptions, terminal: Terminal): Promise<number> {
  const since = sinceOf(options.hours, new Date());
  if (!since) {
    terminal.say('--hours takes a number above 0, such as 12.');
    return 2;
  }
  const config = configFor(options, terminal);
  if (!config) return 2;
  const telos = Telos.open(config);
  const page = await readToday(telos, { since, folders: [config.cwd] });
  if (options.json) {
    terminal.out(`${terminalJson(page)}\n`);
    return page.decisions.length > 0 ? 3 : 0;
  }
  for (const problem of page.problems) terminal.say(terminal.style.yellow(terminalText(problem)));
  terminal.out(`${pageText(page)}\n`);
  return decideAll(page.decisions, telos, options, terminal);
}

/** Returns the start of the period to show: 18:00 yesterday, or this many hours ago. Undefined if `hours` is not a positive number. */
function sinceOf(hours: string | undefined, now: Date): Date | undefined {
  if (hours === undefined) return new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1, 18);
  const count = Number(hours);
  return count > 0 && count <= 24 * 366 ? new Date(now.getTime() - count * 3_600_000) : undefined;
}

function pageText({ since, entries, decisions, spent, ownRuns, problems }: TodayPage): string {
  const from = `since ${timeText(since)}`;
  const own = ownRuns > 0 ? [`${counted(ownRuns, 'run')} of your own`] : [];
  // What could not be read may well have run.
  if (entries.length + decisions.length + problems.length === 0)
    return `Nothing ran ${from} while you were away, and nothing waits for you.${own.length > 0 ? ` There are ${own}: telos runs` : ''}`;
  const costs = [
    formatCost(spent.known),
    ...(spent.unknownRuns > 0 ? [`${counted(spent.unknownRuns, 'run')} of unknown cost`] : []),
  ];
  return [
    `Ran ${from}:`,
    ...(entries.length > 0 ? entries.flatMap(entryLines) : ['  nothing']),
    '',
    `Cost: ${[...costs, ...own].join(', ')}.`,
    decisions.length > 0 ? `Waiting for you: ${decisions.length}` : 'Nothing waits for you.',
  ].join('\n');
}

function entryLines(entry: TodayEntry): string[] {
  const { cost, unknownCosts, changes } = entry;
  const price = [...(cost ? [formatCost(cost)] : []), ...(unknownCosts > 0 ? ['cost unknown'] : [])];
  const [name, result] = wordsOf(entry);
  return [
    `  ${timeText(entry.at)}  ${terminalLine(name, 60)}: ${[terminalLine(result), ...price].join(', ')}`,
    ...changes.map(changeLine),
  ];
}

function changeLine({ runId, files }: TodayChange): string {
  const [first = ''] = files;
  const more = files.length > 1 ? ` and ${counted(files.length - 1, 'file')} more` : '';
  const what = files.length === 0 ? 'Changed folders' : `Changed ${exactText(first)}${more}`;
  return `    ${what}. Undo: telos undo ${runId.slice(0, 8)}`;
}

const wordOf = (phase: ShownPhase): string => (phase === 'interrupted' ? phase : phaseWords[phase]);

/** Returns what ran, and how it ended. */
function wordsOf(entry: TodayEntry): [string, string] {
  switch (entry.kind) {
    case 'schedule':
      return [entry.schedule.id, [lastText(entry.schedule), whyNot(entry.schedule) ?? []].flat().join('. ')];
    case 'plan': {
      const { name, phase, why, finished, passed, stories, checks } = entry;
      const proof = passed > 0 && checks.length > 0 ? ` by ${checks.join(' and ')}` : '';
      const words = [
        finished ? finishWords[finished] : wordOf(phase),
        ...(stories > 0
          ? [`${passed} of ${stories} ${stories === 1 ? 'story' : 'stories'} passed${proof}`]
          : []),
        ...(why ? [why] : []),
      ];
      return [`plan ${name}`, words.join(', ')];
    }
    case 'run': {
      const { outcome, error, door } = entry.run;
      return [`${entry.title} (${door})`, [outcome.replaceAll('_', ' '), error ?? []].flat().join(': ')];
    }
  }
}

/** Shows each decision, and asks for its key where there is a person. Returns the exit code. */
async function decideAll(
  decisions: readonly TodayDecision[],
  telos: Telos,
  options: TodayOptions,
  terminal: Terminal,
): Promise<number> {
  let waiting = decisions.length;
  for (const [index, decision] of decisions.entries()) {
    const { lines, commands, keys } = asked(decision, telos, options, terminal);
    terminal.say(`\n${index + 1} of ${decisions.length}: ${lines.join('\n  ')}`);
    if (!terminal.canAsk || keys.length === 0) {
      for (const command of commands) terminal.say(`  ${command}`);
      continue;
    }
    const { signal, release } = abortOnInterrupt(terminal, () => {});
    const prompt = `${keys.map(({ key, says }) => `${key} ${says}`).join(' · ')} · any other key: later `;
    const key = await readKey(prompt, signal).finally(release);
    if (signal.aborted) return cancelledExitCode;
    const choice = keys.find(one => one.key === key?.toLowerCase());
    if (!choice) continue;
    if (await decided(choice, terminal)) waiting -= 1;
  }
  return waiting > 0 ? 3 : 0;
}

/** A plan that was removed meanwhile does not keep the user from the rest. */
async function decided({ act }: KeyChoice, terminal: Terminal): Promise<boolean> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof TelosError)) throw error;
    terminal.say(terminal.style.red(errorText(error)));
    return false;
  }
}

interface Asked {
  lines: string[];
  /** For who has no keyboard here. */
  commands: string[];
  keys: KeyChoice[];
}

function asked(decision: TodayDecision, telos: Telos, options: TodayOptions, terminal: Terminal): Asked {
  switch (decision.kind) {
    case 'question':
      return askedByPlan(decision, telos, terminal);
    case 'plan': {
      const { plan, repo, phase, why } = decision;
      const next = nextCommand(phase === 'interrupted' ? 'stopped' : phase, plan);
      const lines = [`The plan ${plan} in ${exactText(repo)}: ${wordOf(phase)}.`];
      return {
        lines: [...lines, ...(why ? [exactText(why)] : []), ...(next ? [next] : [])],
        commands: [],
        keys: [],
      };
    }
    case 'schedule':
      return askedBySchedule(decision, options, terminal);
  }
}

function askedByPlan(
  { plan, repo, question }: Extract<TodayDecision, { kind: 'question' }>,
  telos: Telos,
  terminal: Terminal,
): Asked {
  const answer = async (text: string): Promise<boolean> => {
    const isRunning = await openPlan(repo, plan, { runs: telos, human: unattended, by: 'cli' }).steer({
      kind: 'answer',
      id: question.id,
      text,
    });
    terminal.say(
      isRunning
        ? 'The answer was given to the running plan.'
        : `The answer is kept for the plan, which does not run now: telos plan run ${plan}`,
    );
    return true;
  };
  const { choices = [] } = question;
  const letters = choices.map(choice => choice.slice(0, 1).toLowerCase());
  // A model chooses these words: none of them makes Enter, or a key that nobody sees, an answer.
  const isByLetter =
    new Set(letters).size === letters.length && letters.every(letter => /^[a-z]$/.test(letter));
  const typed: KeyChoice = {
    key: 'a',
    says: 'type an answer',
    act: async () => {
      const { signal, release } = abortOnInterrupt(terminal, () => {});
      const text = (await readLine('Answer: ', signal).finally(release))?.trim();
      if (text) return answer(text);
      terminal.say('Nothing was answered; the question waits.');
      return false;
    },
  };
  return {
    lines: [
      `The plan ${plan} in ${exactText(repo)} asks:`,
      exactText(withChoices(question).replace(/\s+/g, ' ')),
    ],
    commands: [`telos plan answer ${question.id} "…" --plan ${plan}`],
    keys:
      choices.length === 0 || choices.length > 9
        ? [typed]
        : choices.map((choice, index) => ({
            key: isByLetter ? (letters[index] ?? '') : String(index + 1),
            says: terminalLine(choice, 40),
            act: () => answer(choice),
          })),
  };
}

function askedBySchedule(
  { schedule }: Extract<TodayDecision, { kind: 'schedule' }>,
  options: TodayOptions,
  terminal: Terminal,
): Asked {
  const { id, last, hasGivenUp, failures } = schedule;
  const why = whyNot(schedule);
  const seen = async (): Promise<boolean> => {
    const config = configFor(options, terminal);
    if (!config) return false;
    await new Schedules(config.dataDir).change(id, one =>
      one.last ? { ...one, last: { ...one.last, isSeen: true } } : undefined,
    );
    terminal.say('It is not shown again until it asks once more.');
    return true;
  };
  return {
    lines: [
      hasGivenUp
        ? `The schedule ${id} was paused: it failed ${counted(failures, 'time')} in a row.`
        : `The schedule ${id} asked while no one was there:`,
      ...(last?.needs ?? []).map(need => `? ${exactText(need.replace(/\s+/g, ' '))}`),
      ...(why ? [terminalText(why)] : []),
    ],
    commands: [toType('schedule', hasGivenUp ? 'resume' : 'run', id)],
    keys: [
      hasGivenUp
        ? {
            key: 'r',
            says: 'resume',
            act: async () => (await schedulePauseCommand(id, false, options, terminal)) === 0,
          }
        : {
            key: 'r',
            says: 'run again',
            act: async () => (await scheduleRunCommand(id, options, terminal)) === 0,
          },
      ...(hasGivenUp
        ? []
        : [
            {
              key: 'p',
              says: 'pause',
              act: async () => (await schedulePauseCommand(id, true, options, terminal)) === 0,
            },
          ]),
      { key: 's', says: 'seen', act: seen },
    ],
  };
}
