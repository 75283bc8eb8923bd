/** Implements `telos skill from-runs`, and the line below an answer that offers it. */

import { Telos } from '@telos/engine/telos';
import {
  type Habit,
  habitCost,
  habitRequest,
  habitsIn,
  keepSkill,
  latestAsHabit,
  newHabit,
  proveSkill,
  readHabit,
  type WrittenSkill,
  writeHabitSkill,
} from '@telos/evals/fromRuns';
import type { EvalModel } from '@telos/evals/suite';
import { flagWords } from '@telos/protocol/agentCard';
import { counted } from '@telos/protocol/text';
import { roughCost } from '@telos/protocol/usage';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { interruptible, type Terminal } from './terminal.ts';
import { agrees } from './terminalHuman.ts';
import { exactText, sayError, terminalLine, toType } from './terminalText.ts';

export interface FromRunsOptions extends ConfigOptions {
  last?: number;
  list?: boolean;
  yes?: boolean;
}

/** Returns the exit code: 0 if a skill was kept or the habits were listed, 1 if not. */
export async function fromRunsCommand(
  name: string | undefined,
  options: FromRunsOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const telos = Telos.open(config);
  const use = async (signal: AbortSignal): Promise<number> => {
    const habits = options.last === undefined ? await habitsIn(config) : [];
    if (options.list) return list(habits, terminal);
    const habit =
      options.last === undefined
        ? habits.find(one => name === undefined || one.name === name)
        : await latestAsHabit(options.last, config);
    return habit ? offer(habit, telos, options, terminal, signal) : nothingFound(name, habits, terminal);
  };
  return interruptible(terminal, use, {
    onFirst: () => terminal.say('Stopping.'),
    refused: error => sayError(error, terminal),
  });
}

function list(habits: readonly Habit[], terminal: Terminal): number {
  if (habits.length === 0) return nothingFound(undefined, habits, terminal);
  for (const { name, runs } of habits)
    terminal.out(
      `${name}  ${counted(runs.length, 'time')}, such as: ${terminalLine(runs[0]?.request ?? '', 80)}\n`,
    );
  return 0;
}

function nothingFound(name: string | undefined, habits: readonly Habit[], terminal: Terminal): number {
  terminal.say(
    name !== undefined && habits.length > 0
      ? `You do nothing often that is called '${terminalLine(name)}'. \`telos skill from-runs --list\` lists what you do.`
      : 'No three runs without a skill are alike yet. `telos skill from-runs --last 3` takes the latest ones as they are.',
  );
  return 1;
}

/** Has the skill written and tested after a yes to the price, shows it, and keeps it after another yes. */
async function offer(
  habit: Habit,
  telos: Telos,
  { yes }: FromRunsOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  const model: EvalModel | undefined = await telos.asideModel();
  if (!model) {
    terminal.say('A model writes the skill, and none is set up. `telos key` sets the key of a provider.');
    return 1;
  }
  const material = await readHabit(habit, telos);
  if (!material) {
    terminal.say('Too few of the runs can still be read. `telos skill from-runs --list` lists others.');
    return 1;
  }
  const request = habitRequest(material);
  const cost = habitCost(request, model);
  const about = [
    `You did this ${counted(habit.runs.length, 'time')}:`,
    ...material.runs.map(run => `  ${terminalLine(run.request, 100)}`),
    `${terminalLine(model.provider.model)} reads these runs, writes the skill ${habit.name} and runs its evals. This costs ${cost === 'unknown' ? 'an amount that Telos does not know' : roughCost(cost)}.`,
  ].join('\n');
  const alone = `${about}\nNothing was written. Use --yes to write it without being asked.`;
  if (!yes && !(await agrees(about, 'Write it?', alone, terminal, 'Nothing was written.'))) return 1;
  const written = await writeHabitSkill(material, request, model, telos.config, signal);
  try {
    const parts = { config: telos.config, open: Telos.open.bind(Telos) };
    const passed = await proveSkill(written, model, parts, signal);
    return await keep(written, passed.length, telos, yes === true, terminal);
  } finally {
    await written.remove();
  }
}

async function keep(
  written: WrittenSkill,
  passed: number,
  telos: Telos,
  yes: boolean,
  terminal: Terminal,
): Promise<number> {
  const { name, text, why, findings } = written;
  terminal.out(`${exactText(text)}\n`);
  const isRisky = findings.some(({ level }) => level === 'high');
  const about = [
    ...(why ? [`The model says: ${terminalLine(why)}`] : []),
    `${counted(passed, 'eval')} from your own runs passed.`,
    'It gets no permissions: Telos asks as it does without the skill.',
    ...findings.map(({ kind, line, level }) => `${level}: line ${line} ${flagWords(kind)}`),
  ].join('\n');
  const alone = `${about}\nNothing was kept. Use --yes to keep it without being asked.`;
  if (isRisky && yes) {
    terminal.say(
      `${about}\nNothing was kept, since it has high-severity findings. Without --yes, you are asked.`,
    );
    return 1;
  }
  if (yes) terminal.say(about);
  else if (!(await agrees(about, 'Keep it?', alone, terminal, 'Nothing was kept.'))) return 1;
  const folder = await keepSkill(written, telos.config);
  terminal.say(
    exactText(
      `Kept in ${folder}. ${toType('eval', name)} runs its evals again, ${toType('uninstall', name)} removes it.`,
    ),
  );
  return 0;
}

/** Returns the line below an answer if it was the third of its kind. Undefined otherwise; never throws. */
export async function habitLine(runId: string, { config }: Telos): Promise<string | undefined> {
  const habit = await newHabit(runId, config).catch(() => undefined);
  return (
    habit &&
    `You do this often. Save it as the skill ${habit.name}: ${toType('skill', 'from-runs', habit.name)} (TELOS_SUGGEST_SKILLS=off ends this)`
  );
}
