/** Implements `telos eval`: tests skills like code, by the requests that should run them and by what their runs come to. */

import { existsSync, statSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import type { Config, RoutingMode } from '@telos/engine/config';
import { reasonOf, TelosError } from '@telos/engine/errors';
import { readSettings, realPlace, writeWhole } from '@telos/engine/files';
import { TaughtLines } from '@telos/engine/routing';
import { discoverAgents, type FileAgent, skillCalled, skillsBelow } from '@telos/engine/skills';
import { Telos } from '@telos/engine/telos';
import type { SkillResults } from '@telos/evals/report';
import { type EvalResult, evalFileOf, hasPassed } from '@telos/evals/suite';
import {
  draftTriggers,
  type MeasuredSkill,
  readTriggers,
  refuseLinkOut,
  runTriggers,
  splitText,
  type TriggerFigures,
  type TriggerResult,
  triggerFileOf,
  triggerText,
} from '@telos/evals/triggers';
import type { SkillRef } from '@telos/protocol/run';
import { counted } from '@telos/protocol/text';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import type { EvalRunOptions } from './evalRunsCommand.ts';
import { exitCodes, problemLines, shareText } from './evalTable.ts';
import { interruptible, type Terminal } from './terminal.ts';
import { sayError, terminalJson, terminalLine, terminalText, toType } from './terminalText.ts';

/** Options of `telos eval`. Paths may be relative to the folder of the call. */
export interface EvalOptions extends ConfigOptions, EvalRunOptions {
  /** Measures the requests alone. */
  triggers?: boolean;
  /** `installed`, `agent` for the skill's own agent, or a folder of skills. */
  among?: string;
  split?: boolean;
  /** How the requests choose a skill. */
  mode?: RoutingMode;
}

/**
 * Returns the exit code: 0 if all pass, 1 if something fails, 2 if it is unclear what is wanted, 3 if a recording is stale, 4 if the budget
 * ended it.
 */
export async function evalCommand(
  what: string | undefined,
  options: EvalOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const telos = Telos.open(config);
  return interruptible(terminal, signal => evaluate(telos, what, options, terminal, signal), {
    refused: error => sayError(error, terminal, 2),
  });
}

/** Writes a trigger.json to start from. Returns the exit code: 1 if there is one already, or nothing to draft it from. */
export async function evalInitCommand(
  what: string,
  options: EvalOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const { chosen, among } = choose(what, config);
  const [one] = chosen;
  if (one === undefined || chosen.length > 1) {
    terminal.say(one ? 'Name one skill.' : notFound(what));
    return 2;
  }
  const file = triggerFileOf(one.skill.dir);
  if (existsSync(file)) {
    terminal.say(terminalText(`${file} exists. \`${toType('eval', what)}\` measures it.`));
    return 1;
  }
  const drafted = await draftTriggers(one.skill, among);
  const own = drafted.filter(({ shouldTrigger }) => shouldTrigger).length;
  if (own === 0) {
    terminal.say(
      terminalText(`The text of ${one.skill.id} quotes no request. Write ${file} yourself: ${example}`),
    );
    return 1;
  }
  try {
    refuseLinkOut(one.skill.dir);
    await mkdir(dirname(file), { recursive: true });
    await writeWhole(file, triggerText(drafted));
  } catch (error) {
    terminal.say(terminal.style.red(terminalText(`Nothing was written. ${reasonOf(error)}`)));
    return 1;
  }
  terminal.out(
    terminalText(`Wrote ${file}: ${own} that should run it, ${drafted.length - own} that should not.\n`),
  );
  terminal.say(`Correct it, and add requests as people really type them. Then: ${toType('eval', what)}`);
  return 0;
}

const example = '[{"query": "...", "should_trigger": true}]';
const notFound = (what: string): string =>
  `Skill '${terminalLine(what)}' not found. \`telos list-skills\` lists them; a folder works too.`;

interface Chosen {
  chosen: Omit<MeasuredSkill, 'triggers'>[];
  /** All agents that compete for a request. */
  among: readonly FileAgent[];
  /** The agent that stands for the skills of a folder which are not installed. */
  fresh?: FileAgent;
}

/** Returns the skills that are named: all, one by its name, or those of a folder, which then compete with the installed ones. */
function choose(what: string | undefined, config: Config): Chosen {
  const installed = discoverAgents(config);
  const active = (agents: readonly FileAgent[]): Chosen['chosen'] =>
    agents.flatMap(agent =>
      agent.skills
        .filter(({ isDisabled, shadowedBy }) => !isDisabled && !shadowedBy)
        .map(skill => ({ agent, skill })),
    );
  if (what === undefined) return { chosen: active(installed), among: installed };
  const known = skillCalled(what, installed);
  if (known) return { chosen: [known], among: installed };
  const folder = resolve(config.cwd, what);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return { chosen: [], among: installed };
  return withFolder(folder, installed);
}

/** Returns the skills of a folder. Those that are installed from there keep their agent; the others compete as one more agent. */
function withFolder(folder: string, installed: readonly FileAgent[]): Chosen {
  const places = new Map(
    installed.flatMap(agent =>
      agent.skills.map(skill => [realPlace(skill.file) ?? skill.file, { agent, skill }]),
    ),
  );
  const found = skillsBelow(folder).map(skill => ({
    skill,
    known: places.get(realPlace(skill.file) ?? skill.file),
  }));
  const fresh = found.filter(({ known }) => !known).map(({ skill }) => skill);
  const agent: FileAgent = {
    name: basename(folder),
    description: '',
    skills: fresh,
    packDir: folder,
    skillsDir: folder,
    workingDir: folder,
    source: 'user',
    diagnostics: [],
  };
  return {
    chosen: found.map(({ skill, known }) => known ?? { agent, skill }),
    among: fresh.length > 0 ? [...installed, agent] : installed,
    fresh: agent,
  };
}

/** Measures the requests of the chosen skills, then runs their evals. */
async function evaluate(
  telos: Telos,
  what: string | undefined,
  options: EvalOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  const { config } = telos;
  const { chosen, among, fresh } = choose(what, config);
  if (chosen.length === 0 && what !== undefined) {
    terminal.say(notFound(what));
    return exitCodes.usage;
  }
  // All files are read before the first request is measured and the first model is asked.
  if (options.split) for (const { skill } of chosen) await storeSplit(skill.dir, terminal);
  const measured = chosen.flatMap(one => {
    const triggers = readTriggers(one.skill.dir);
    return triggers && triggers.length > 0 ? [{ ...one, triggers }] : [];
  });
  // Measuring requests is quick, and needs nothing of what runs do.
  const runs =
    !options.triggers && chosen.some(({ skill }) => existsSync(evalFileOf(skill.dir)))
      ? await import('./evalRunsCommand.ts')
      : undefined;
  const evals = runs?.withEvals(chosen, fresh) ?? [];
  if (measured.length === 0 && evals.length === 0) {
    terminal.say(
      `There is no evals/trigger.json ${what === undefined ? 'in any skill' : `for ${terminalLine(what)}`}. \`telos eval init <skill>\` drafts one.`,
    );
    return exitCodes.failed;
  }
  const isLive = options.record || options.live;
  const triggers = isLive ? [] : await measureTriggers(telos, measured, among, options, terminal, signal);
  const ran = (await runs?.runEvals(evals, config, options, terminal, signal)) ?? { code: 0, skills: [] };
  if (options.json)
    terminal.out(
      `${terminalJson({ skills: triggers, runs: ran.skills.flatMap(({ results }) => results.map(asJson)) })}\n`,
    );
  if (options.ci) sayShortly(chosen, triggers, ran.skills, terminal);
  const failed = triggers.some(({ results }) => results.some(({ passed }) => !passed));
  return failed && (ran.code === exitCodes.passed || ran.code === exitCodes.stale)
    ? exitCodes.failed
    : ran.code;
}

async function measureTriggers(
  telos: Telos,
  measured: readonly MeasuredSkill[],
  among: readonly FileAgent[],
  options: EvalOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<TriggerFigures[]> {
  const taught = new TaughtLines(telos.config.dataDir);
  const settings = {
    mode: options.mode ?? 'local',
    provider: () => telos.routingProvider(),
    taught,
  } as const;
  const competing = competitors(among, options.among, telos.config);
  const all: TriggerFigures[] = [];
  const isQuiet = options.json || options.ci;
  for await (const figures of runTriggers(measured, competing, settings, signal)) {
    all.push(figures);
    if (!isQuiet) terminal.out(report(figures, terminal));
  }
  const results = all.flatMap(figures => figures.results);
  const failed = results.filter(({ passed }) => !passed).length;
  if (!isQuiet && all.length > 1)
    terminal.say(`${counted(all.length, 'skill')}, ${counted(results.length, 'request')}, ${failed} failed.`);
  return all;
}

/** Prints a line for each skill: what passed of what there is. */
function sayShortly(
  chosen: Chosen['chosen'],
  triggers: readonly TriggerFigures[],
  ran: readonly SkillResults[],
  terminal: Terminal,
): void {
  for (const { agent, skill } of chosen) {
    const figures = triggers.find(one => one.agent === agent.name && one.skill === skill.id);
    const results = ran.find(({ one }) => one.skill === skill)?.results ?? [];
    const mine = results.filter(({ configuration }) => configuration === 'with_skill');
    if (!figures && mine.length === 0) continue;
    const requests = figures?.results ?? [];
    const wrong = [
      ...requests.filter(({ passed }) => !passed).map(failure),
      ...results.flatMap(problemLines),
    ];
    const line = [
      `${wrong.length === 0 ? 'ok' : 'FAILED'} ${skill.id} (${agent.name}):`,
      `${requests.filter(({ passed }) => passed).length}/${requests.length} requests,`,
      `${mine.filter(hasPassed).length}/${mine.length} runs`,
      ...(wrong.length > 0 ? [`· ${wrong[0]}`] : []),
    ];
    terminal.out(`${terminalLine(line.join(' '))}\n`);
  }
}

function asJson(result: EvalResult) {
  const {
    one,
    earlier: _earlier,
    eval: known,
    calls: _calls,
    transcript: _transcript,
    outputs: _outputs,
    ...rest
  } = result;
  const named = { agent: one.agent.name, skill: one.skill.id, eval: known.id, line: known.line };
  return { ...rest, ...named, passed: hasPassed(result) };
}

/** Returns the agents that compete with a skill. Throws TelosError `config` if the folder to choose among has no skill. */
function competitors(
  all: readonly FileAgent[],
  among: string | undefined,
  config: Config,
): (one: MeasuredSkill) => readonly FileAgent[] {
  if (among === undefined || among === 'installed') return () => all;
  if (among === 'agent') return ({ agent }) => [agent];
  const folder = resolve(config.cwd, among);
  const { among: agents, chosen } = withFolder(folder, []);
  if (chosen.length === 0) throw new TelosError('config', `There is no skill in ${folder} to choose among.`);
  return ({ agent, skill }) => [{ ...agent, skills: [skill] }, ...agents];
}

/** Gives each request of a skill's file a part, if one has none. The rest of the file stays as it is. */
async function storeSplit(skillDir: string, terminal: Terminal): Promise<void> {
  const triggers = readTriggers(skillDir);
  if (!triggers?.some(({ split }) => split === undefined)) return;
  const file = triggerFileOf(skillDir);
  await writeWhole(file, splitText(readSettings(file)));
  terminal.say(terminalText(`Split ${file} into train and validation.`));
}

function report(figures: TriggerFigures, { style }: Terminal): string {
  const { agent, skill, results, recall, reached, quiet, train, validation, msPerRequest } = figures;
  const shares = [
    ['run it', recall],
    ['or offer it first', reached],
    ['do not run it', quiet],
    ['train', train],
    ['validation', validation],
  ] as const;
  const lines = shares.flatMap(([name, share]) =>
    share ? [`  ${name.padEnd(17)} ${shareText(share)}`] : [],
  );
  const failed = results
    .filter(({ passed }) => !passed)
    .map(result => `  ${style.red('✗')} ${failure(result)}`);
  const title = `${terminalLine(`${skill} (${agent})`)} ${style.dim(`${msPerRequest.toFixed(1)} ms per request`)}`;
  return `${[title, ...lines, ...failed].join('\n')}\n\n`;
}

/** Returns what a request did instead, with the words that decided. */
function failure({ query, line, shouldTrigger, expect, ran, offered, lead }: TriggerResult): string {
  const name = ({ agent, skill }: SkillRef): string => `${skill} (${agent})`;
  const did = ran ? `ran ${name(ran)}` : 'ran nothing';
  const wanted = !shouldTrigger && expect !== undefined ? `, not ${expect}` : '';
  const before = lead
    ? `, ${lead.score.toFixed(2)} against ${lead.own.toFixed(2)}${lead.words.length > 0 ? `: only it has ${lead.words.join(', ')}` : ''}`
    : '';
  const offers = offered.length > 0 ? `, offered ${offered.map(name).join(', ')}` : '';
  return terminalLine(`line ${line}: "${query}" ${did}${wanted}${offers}${ran ? before : ''}`);
}
