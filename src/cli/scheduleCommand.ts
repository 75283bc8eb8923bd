/** Implements `telos schedule`: adds, lists, runs and removes what runs on a schedule. */

import { realpathSync } from 'node:fs';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { timeText } from '@telos/engine/records';
import {
  type ClockEntry,
  type ClockKind,
  type ClockPlaces,
  callerFor,
  checkRequest,
  clockEntry,
  clockHere,
  isRunning,
  keepWithEntry,
  type Missed,
  nextTime,
  parseRule,
  removeEntry,
  resumed,
  runIfDue,
  type Schedule,
  Schedules,
  shownEntry,
} from '@telos/engine/schedule';
import { Telos } from '@telos/engine/telos';
import type { RunEvent } from '@telos/protocol/run';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { noMatchText, openTextPrinter } from './runPrinter.ts';
import { abortOnInterrupt, cancelledExitCode, type Terminal } from './terminal.ts';
import { agrees } from './terminalHuman.ts';
import { exactText, table, terminalJson, terminalLine, terminalText, toType } from './terminalText.ts';

export interface ScheduleOptions extends ConfigOptions {
  at?: string;
  agent?: string;
  budget?: string;
  missed?: Missed;
  scheduler?: ClockKind;
  yes?: boolean;
  json?: boolean;
  verbose?: boolean;
}

/** `needsYou`: it has run, and asked something while no one was there. */
const exitCodes = { done: 0, failed: 1, usage: 2, needsYou: 3 } as const;

async function placesFor(telos: Telos): Promise<ClockPlaces> {
  const { config } = telos;
  const workFolders = await telos.workFolders();
  return { env: config.env, dataDir: config.dataDir, workFolders };
}

function entryFor(
  schedule: Schedule,
  config: Config,
  places: ClockPlaces,
  { surroundings: { argv, env } }: Terminal,
): Promise<ClockEntry> {
  const program = [process.execPath, realpathSync(argv[1] ?? '')];
  return clockEntry(schedule, callerFor(config, program, places, env));
}

/** Schedules a request, after a yes to the exact entry. Returns the exit code, as all commands here. */
export async function scheduleAddCommand(
  request: string,
  options: ScheduleOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return exitCodes.usage;
  checkRequest(request);
  if (options.at === undefined) {
    terminal.say('Say when it is to run, for example: --at "weekdays 08:30"');
    return exitCodes.usage;
  }
  parseRule(options.at);
  const telos = Telos.open(config);
  const { signal, release } = abortOnInterrupt(terminal, () => {});
  const wanted = { text: request, ...(options.agent !== undefined && { agent: options.agent }) };
  const match = await telos.route(wanted, signal).finally(release);
  if (!match.skill) {
    const sentence = terminalText(`No matching skill found for: '${request}'`);
    terminal.say(noMatchText(sentence, match, terminal.style.bold));
    return exitCodes.failed;
  }
  const agent = match.agent.name;
  const card = await telos.agentCard(agent);
  await telos.provider();
  const schedules = new Schedules(config.dataDir);
  const places = await placesFor(telos);
  const draft = schedules.draft({
    request,
    skill: { agent, skill: match.skill.id },
    at: options.at,
    cwd: config.cwd,
    digest: card.digest,
    missed: options.missed ?? 'once',
    clock: options.scheduler ?? (await clockHere(places)),
    ...(options.budget !== undefined && { maxCost: options.budget }),
    since: new Date().toISOString(),
  });
  const entry = await entryFor(draft, config, places, terminal);
  const about = [
    `'${draft.id}' runs ${agent}:${match.skill.id} ${draft.at}, next ${nextText(draft)}.`,
    shownEntry(entry) ||
      'No scheduler starts it: it runs while Telos is open in VS Code, or when you run: telos schedule due',
    ...(card.state === 'reviewed'
      ? []
      : [`'${agent}' is not approved, so it runs without these permissions: ${toType('trust', agent)}`]),
    ...keysOfTerminal(config),
  ];
  const question = 'Write this entry?';
  const piped = 'Nothing was scheduled. Use --yes to write the entry without being asked.';
  const shown = about.map(exactText).join('\n');
  if (options.yes) terminal.say(shown);
  else if (!(await agrees(terminal.canAsk ? shown : '', question, `${shown}\n${piped}`, terminal)))
    return exitCodes.failed;
  await keepWithEntry(draft, entry, schedules, places);
  terminal.out(terminalText(`Scheduled '${draft.id}', next ${nextText(draft)}.\n`));
  if (entry.note && entry.start.length > 0) terminal.say(terminal.style.dim(terminalText(entry.note)));
  return exitCodes.done;
}

/** Keys that are set in this terminal alone, which the scheduler does not see. */
function keysOfTerminal({ origins }: Config): string[] {
  const keys = Object.entries(origins).filter(
    ([name, { origin, value }]) => /_API_KEY$/.test(name) && origin === 'environment' && value !== '',
  );
  return keys.map(
    ([name]) =>
      `${name} is set in this terminal, where the scheduler does not see it. Save it with: telos key`,
  );
}

function nextText({ at, isPaused }: Schedule): string {
  const next = isPaused ? undefined : nextTime(parseRule(at), new Date());
  return next ? timeText(next.toISOString()) : '-';
}

/** Lists the schedules with how the last time ended. Returns the exit code: 1 if one cannot be read. */
export async function scheduleListCommand(options: ScheduleOptions, terminal: Terminal): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return exitCodes.usage;
  const { schedules, problems } = new Schedules(config.dataDir).list();
  for (const problem of problems) terminal.say(terminal.style.yellow(terminalText(problem)));
  const code = problems.length > 0 ? exitCodes.failed : exitCodes.done;
  if (options.json) {
    terminal.out(`${terminalJson(schedules.map(each => ({ ...each, next: nextOf(each) })))}\n`);
    return code;
  }
  if (schedules.length === 0) {
    if (problems.length === 0)
      terminal.say(
        'Nothing is scheduled. `telos schedule add "run daily kickoff" --at "weekdays 08:30"` does it.',
      );
    return code;
  }
  const rows = schedules.map(each => [
    each.id,
    `${each.skill.agent}:${each.skill.skill}`,
    each.at,
    each.isPaused ? 'paused' : nextText(each),
    lastText(each),
  ]);
  terminal.out(`${table(['Name', 'Skill', 'When', 'Next', 'Last'], rows, terminal.outWidth)}\n`);
  for (const each of schedules) sayMore(each, terminal);
  return code;
}

const nextOf = ({ at, isPaused }: Schedule): string | null =>
  isPaused ? null : (nextTime(parseRule(at), new Date())?.toISOString() ?? null);

/** Returns how the last time of a schedule ended, and when it began; `-` before the first. */
export function lastText(schedule: Schedule): string {
  const { last } = schedule;
  if (!last) return '-';
  const { outcome = isRunning(schedule) ? 'running' : 'interrupted', needs, startedAt } = last;
  const words = outcome === 'completed' && needs ? 'needs you' : outcome.replace('_', ' ');
  return `${words}, ${timeText(startedAt)}`;
}

/** Says under the table what a person has to do. */
function sayMore(schedule: Schedule, { say, style }: Terminal): void {
  const { id, last, hasGivenUp, failures } = schedule;
  const where = last?.runId === undefined ? '' : ` (telos runs show ${last.runId.slice(0, 8)})`;
  if (last?.needs) {
    say(`${terminalLine(id)} asked while no one was there${where}:`);
    for (const need of last.needs) say(`  ? ${exactText(need.replace(/\s+/g, ' '))}`);
  }
  const why = whyNot(schedule);
  if (why) say(style.yellow(terminalText(`${id}: ${why}`)));
  if (!hasGivenUp) return;
  const paused = `${id} was paused automatically: it failed ${failures} times in a row.`;
  say(terminalText(`${paused} To continue: telos schedule resume ${id}`));
}

/** Returns why the last time did not end well, and what to do next. Undefined if it did. */
export function whyNot({ last, cwd, skill }: Schedule): string | undefined {
  switch (last?.obstacle) {
    case 'folder':
      return `The folder ${cwd} is missing. Bring it back, or remove the schedule and add it in another folder.`;
    case 'skill':
      return `The skill ${skill.agent}:${skill.skill} is missing. Install it again, or remove the schedule.`;
    case 'changed':
      return `The files of '${skill.agent}' have changed since it was scheduled. Accept them with: ${toType('trust', skill.agent)}`;
    default:
      return last?.outcome === 'completed' ? undefined : last?.message;
  }
}

/** Runs a schedule now, as the scheduler would: no one is asked. */
export async function scheduleRunCommand(
  id: string,
  options: ScheduleOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return exitCodes.usage;
  const print = await openTextPrinter(terminal, { verbose: options.verbose ?? false, inChat: false });
  const ended = await runNow(id, true, config, terminal, print);
  if (ended === 'cancelled') return cancelledExitCode;
  if (!ended) {
    terminal.say(`'${terminalLine(id)}' is running already.`);
    return exitCodes.failed;
  }
  sayMore(ended, terminal);
  return exitOf(ended);
}

/** Runs what is due, of one schedule or of all. The scheduler calls it. */
export async function scheduleDueCommand(
  id: string | undefined,
  options: ScheduleOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return exitCodes.usage;
  const { schedules, problems } = new Schedules(config.dataDir).list();
  if (id === undefined) for (const problem of problems) terminal.say(terminalText(problem));
  let code: number = id === undefined && problems.length > 0 ? exitCodes.failed : exitCodes.done;
  for (const name of id === undefined ? schedules.map(each => each.id) : [id]) {
    const ended = await runNow(name, false, config, terminal);
    if (ended === 'cancelled') return cancelledExitCode;
    if (!ended) continue;
    terminal.say(terminalText(`${name}: ${lastText(ended)}`));
    sayMore(ended, terminal);
    code = Math.max(code, exitOf(ended));
  }
  return code;
}

async function runNow(
  id: string,
  isByHand: boolean,
  config: Config,
  terminal: Terminal,
  note?: (event: RunEvent) => void,
): Promise<Schedule | undefined | 'cancelled'> {
  const { signal, release } = abortOnInterrupt(terminal, () =>
    terminal.say('Stopping; Ctrl-C again ends at once.'),
  );
  const open = ({ cwd, maxCost }: Schedule): Telos => {
    const own = configFor({ cwd, ...(maxCost !== undefined && { maxCost }) }, terminal);
    if (!own) throw new TelosError('config', `Its folder ${cwd} is missing.`);
    return Telos.open(own);
  };
  try {
    const schedules = new Schedules(config.dataDir);
    const ended = await runIfDue(id, isByHand, { schedules, open, signal, ...(note && { note }) });
    return signal.aborted ? 'cancelled' : ended;
  } finally {
    release();
  }
}

function exitOf({ last }: Schedule): number {
  if (last?.outcome === 'skipped') return exitCodes.done;
  if (last?.outcome !== 'completed') return exitCodes.failed;
  return last.needs ? exitCodes.needsYou : exitCodes.done;
}

/** Removes a schedule and its entry in the scheduler. Its runs stay. */
export async function scheduleRemoveCommand(
  id: string,
  options: ScheduleOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return exitCodes.usage;
  const schedules = new Schedules(config.dataDir);
  const schedule = schedules.get(id);
  const places = await placesFor(Telos.open(config));
  await removeEntry(id, await entryFor(schedule, config, places, terminal), places);
  await schedules.remove(id);
  terminal.out(terminalText(`Removed '${id}'. Its runs are kept: telos runs\n`));
  return exitCodes.done;
}

/** Pauses a schedule, or lets a paused one run again from now on. */
export async function schedulePauseCommand(
  id: string,
  isPaused: boolean,
  options: ScheduleOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return exitCodes.usage;
  const schedules = new Schedules(config.dataDir);
  if (isPaused) {
    await schedules.change(id, schedule => ({ ...schedule, isPaused }));
    terminal.out(terminalText(`Paused '${id}'. To continue: telos schedule resume ${id}\n`));
    return exitCodes.done;
  }
  const { agent } = schedules.get(id).skill;
  const card = await Telos.open(config).agentCard(agent);
  const schedule = await schedules.change(id, one => resumed(one, card));
  terminal.out(terminalText(`'${id}' runs again, next ${nextText(schedule)}.\n`));
  if (schedule.digest !== card.digest)
    terminal.say(
      terminalText(`The files of '${agent}' have changed. Accept them first: ${toType('trust', agent)}`),
    );
  return exitCodes.done;
}
