/** Implements `telos install`: shows what a source holds, asks, and places it; or brings back what the lock file says. */

import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Config } from '@telos/engine/config';
import type { TelosError } from '@telos/engine/errors';
import { lockName, readText, shellWord } from '@telos/engine/files';
import { readMcpConfig } from '@telos/engine/mcp';
import { timeText } from '@telos/engine/records';
import { type InstalledPack, ownMcpConfig, skillFileIn, worksInOf } from '@telos/engine/skills';
import { Telos } from '@telos/engine/telos';
import { keptDays, unifiedDiff } from '@telos/engine/undo';
import {
  dangersIn,
  type LookOptions,
  lookAtSource,
  type Offer,
  offerAgain,
  parseSource,
  placeOffer,
  sourceForms,
  UnclearSource,
} from '@telos/packs/install';
import { type RestoredPack, readSkillsLock, restorePacks } from '@telos/packs/lock';
import { describeReplacement, type InstallPlan } from '@telos/protocol/installPlan';
import { findingLines, movedText } from '@telos/protocol/packOffer';
import { spoken } from '@telos/protocol/text';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { readLine } from './keyboard.ts';
import { colouredCard, colouredLines, contentLines, offerJson, sayProgress } from './offerText.ts';
import { typedPath } from './surroundings.ts';
import { interruptible, type Terminal } from './terminal.ts';
import { agrees } from './terminalHuman.ts';
import { exactText, sayError, terminalJson, terminalText, toType } from './terminalText.ts';

export interface InstallCommandOptions extends ConfigOptions {
  as?: string;
  yes?: boolean;
  /** Where the agent works: in the folder in which it is called, or in a folder of its own. */
  here?: boolean;
  vault?: boolean;
  list?: boolean;
  dryRun?: boolean;
  json?: boolean;
  pin?: boolean;
  /** Into the project of the folder of the call. */
  project?: boolean;
  allow?: string;
  frozen?: boolean;
  fromSkillsLock?: boolean;
}

interface Call {
  config: Config;
  options: InstallCommandOptions;
  terminal: Terminal;
  signal: AbortSignal;
  /** What `--json` prints at the end. */
  printed: object[];
}

/**
 * Installs what a source leads to, or without one what the lock file says. Returns the exit code: 0 if it is installed, 1 if it was
 * refused or failed, 2 if the source has to be said more exactly.
 */
export async function installCommand(
  source: string | undefined,
  options: InstallCommandOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const use = async (signal: AbortSignal): Promise<number> => {
    const call: Call = { config, options, terminal, signal, printed: [] };
    const code = await installFrom(source?.trim(), call);
    if (options.json) terminal.out(`${terminalJson({ packs: call.printed })}\n`);
    return code;
  };
  const refused = (error: TelosError): number =>
    sayError(error, terminal, error instanceof UnclearSource ? 2 : 1);
  return interruptible(terminal, use, { refused });
}

async function installFrom(source: string | undefined, call: Call): Promise<number> {
  const { config, options, terminal } = call;
  if (options.fromSkillsLock) return fromSkillsLock(call);
  if (source === '') {
    terminal.say(`${giveSource} A source is one of: ${sourceForms.join(' · ')}`);
    return 2;
  }
  if (source === undefined || options.frozen) {
    if (source !== undefined)
      throw new UnclearSource(
        '--frozen takes everything from the lock file, so no source can be given with it.',
      );
    if (
      !options.frozen &&
      !existsSync(join(config.cwd, lockName)) &&
      !existsSync(join(config.skillsDir, lockName))
    ) {
      terminal.say(`${giveSource} Without one, a lock file is restored, and there is none.`);
      return 2;
    }
    return restore(call);
  }
  const isPlain = !options.list && !options.dryRun && !options.json && !options.project && !options.pin;
  const folder = isPlain && isPackFolder(source, config);
  return folder ? installFolder(source, call) : installSource(source, call);
}

const giveSource = 'Give the folder of a pack, or of a skill, or another source: telos install <source>.';

/** A folder that the person names and that is a pack as it stands is installed unasked, unless it has high-severity findings. */
function isPackFolder(source: string, config: Config): boolean {
  const parsed = parseSource(source, config);
  // A name means one pack of several, or one skill of a pack.
  if (parsed.kind !== 'folder' || parsed.name !== undefined) return false;
  const { path } = parsed;
  if (existsSync(join(path, 'plugin.json')) || existsSync(join(path, 'marketplace.json'))) return false;
  return (
    !existsSync(path) ||
    ['agent.toml', 'skills'].some(name => existsSync(join(path, name))) ||
    skillFileIn(path) !== undefined
  );
}

async function installFolder(source: string, { config, options, terminal }: Call): Promise<number> {
  const telos = Telos.open(config);
  const folder = (parseSource(source, config) as { path: string }).path;
  const { as } = options;
  const works = worksOf(options);
  const plan = await telos.planInstall(folder, { as, works });
  if (!plan.replaces?.isSame) {
    const isRisky = await saysDangers(plan, terminal);
    const may = plan.replaces
      ? mayReplace(plan, source, options, terminal, isRisky)
      : !isRisky || mayInstallRisky(plan, source, options, terminal);
    if (!(await may)) return 1;
  }
  await sayInstalled(await telos.install(folder, { as, works, agreed: plan.token }), config, terminal);
  return 0;
}

/** Scans the folder that is to be installed. Shows the findings and returns true if there are high-severity ones. */
async function saysDangers({ source }: InstallPlan, terminal: Terminal): Promise<boolean> {
  const lines = colouredLines(findingLines(await dangersIn(source)), terminal.style);
  if (lines.length > 0) terminal.say(lines.join('\n'));
  return lines.length > 0;
}

/** Asks whether a folder with high-severity findings is installed. */
async function mayInstallRisky(
  { name }: InstallPlan,
  folder: string,
  { as, yes, allow }: InstallCommandOptions,
  terminal: Terminal,
): Promise<boolean> {
  if (yes && allow === 'high') return true;
  const found = `${exactText(folder)} has high-severity findings.`;
  return agrees(
    found,
    `Install agent '${exactText(name)}' anyway?`,
    `${found} Nothing was installed. If you have looked at them: ${toType('install', folder, ...(as === undefined ? [] : ['--as', as]), ...yesToHigh)}`,
    terminal,
    'Nothing was installed.',
  );
}

/** `--yes` alone does not accept high-severity findings. */
const yesToHigh = ['--yes', '--allow', 'high'];

const worksOf = ({ here, vault }: InstallCommandOptions): 'here' | 'vault' | undefined =>
  here ? 'here' : vault ? 'vault' : undefined;

async function installSource(source: string, call: Call): Promise<number> {
  const { config, options, terminal, signal } = call;
  const look: LookOptions = {
    signal,
    progress: event => sayProgress(event, terminal),
    as: options.as,
    works: worksOf(options),
    ...(options.project && { project: config.cwd }),
  };
  let looked = await lookAtSource(source, config, look);
  if (looked.kind === 'choices') return oneOf(looked, call);
  try {
    if (options.list || options.dryRun) {
      if (options.json) call.printed.push(offerJson(looked));
      else
        terminal.out(
          `${[...contentLines(looked), ...(options.list ? [] : colouredCard(looked, terminal.style))].join('\n')}\n`,
        );
      return 0;
    }
    if (!isThere(looked)) {
      terminal.say(contentLines(looked).join('\n'));
      const skills = await wantedSkills(looked, call);
      if (skills?.length === 0) return 1;
      if (skills) looked = await offerAgain(looked, { skills });
      terminal.say(colouredCard(looked, terminal.style).join('\n'));
    }
    return await place(looked, source, call);
  } finally {
    await looked.dispose();
  }
}

/** Asks which of several packs is meant. No one to ask: lists them as commands. */
async function oneOf(
  { message, choices }: { message: string; choices: readonly string[] },
  call: Call,
): Promise<number> {
  const { options, terminal, signal } = call;
  if (options.list) {
    if (options.json) call.printed.push(...choices.map(source => ({ source })));
    else terminal.out(`${[message, ...choices.map(one => `  ${one}`)].map(exactText).join('\n')}\n`);
    return 0;
  }
  terminal.say(exactText(`${message} Nothing was installed. Name one:`));
  for (const [at, one] of choices.entries())
    terminal.say(terminal.canAsk ? exactText(`  ${at + 1} ${one}`) : `  ${toType('install', one)}`);
  if (!terminal.canAsk || options.yes || options.json) return 2;
  const answer = await readLine('Which? (numbers, all, or none) [none] ', signal);
  const wanted = numbersIn(answer ?? 'none', choices.length, 'none');
  let code = wanted.length === 0 ? 1 : 0;
  for (const at of wanted) code = Math.max(code, await installSource(choices[at]!, call));
  return code;
}

/** Returns the ids of some of its skills, none for a no. Undefined for all. */
async function wantedSkills(
  { skills, plan }: Offer,
  { options, terminal, signal }: Call,
): Promise<string[] | undefined> {
  if (skills.length < 2 || options.yes || !terminal.canAsk || plan.replaces) return undefined;
  const answer = await readLine('Which? (numbers, all, or none) [all] ', signal);
  const wanted = numbersIn(answer ?? 'none', skills.length, 'all');
  if (wanted.length === 0) terminal.say('Nothing was installed.');
  return wanted.length === skills.length ? undefined : wanted.map(at => skills[at]!.id);
}

/** Returns the places that `1 3`, `all` or `none` mean, counted from 0. Numbers that are not in the list are left out. */
function numbersIn(answer: string, count: number, usual: 'all' | 'none'): number[] {
  const words = (answer.trim() || usual).toLowerCase().split(/[\s,]+/);
  if (words.includes('all')) return Array.from({ length: count }, (_, at) => at);
  return [...new Set(words.map(word => Number(word) - 1))].filter(
    at => Number.isInteger(at) && at >= 0 && at < count,
  );
}

async function place(offer: Offer, source: string, call: Call): Promise<number> {
  const { options, terminal, config } = call;
  const { plan, moves } = offer;
  const { replaces } = plan;
  let answer: 'yes' | 'trust' | 'no' = 'yes';
  if (!isThere(offer)) {
    if (replaces && (moves || !replaces.isSameSource) && options.as !== offer.name)
      return nameTaken(offer, source, terminal);
    if (!replaces?.isSame)
      for (const line of describeReplacement(plan, timeText)) terminal.say(exactText(line));
    answer = await agreed(offer, call);
    if (answer === 'no') return 1;
  }
  const installed = await placeOffer(offer, {
    agreed: plan.token,
    allowHigh: true,
    ...(options.pin && { pinned: true }),
  });
  await report(offer, installed, call);
  if (answer === 'trust') await trust(offer, config, terminal);
  return 0;
}

/** Whether it is installed already, the same and from the same source, so that nobody is asked. */
const isThere = ({ plan, moves }: Offer): boolean => plan.replaces?.isSame === true && !moves;

function nameTaken({ name, plan, source, moves }: Offer, given: string, terminal: Terminal): number {
  const { origin } = plan.replaces!;
  const from = moves?.from ?? (origin.kind === 'installed' ? origin.source : undefined);
  const there = from === undefined ? 'was made by hand' : `came from ${from}`;
  const command = toType('install', given, '--as');
  const goal = plan.replaces!.isSame ? 'Its files are the same. To update it from there' : 'To replace it';
  terminal.say(
    exactText(
      `There is an agent '${name}' already, which ${there}; this one comes from ${source}. Nothing was changed. To install beside it: ${command} <other name>. ${goal}: ${command} ${shellWord(name)}`,
    ),
  );
  return 2;
}

/** `--yes` alone does not accept high-severity findings. */
async function agreed(
  offer: Offer,
  { options, terminal, signal, config }: Call,
): Promise<'yes' | 'trust' | 'no'> {
  const isRisky = offer.isRisky && options.allow !== 'high';
  if (options.yes || options.json || !terminal.canAsk) {
    if (options.yes && !isRisky) return 'yes';
    terminal.say(
      options.yes
        ? 'It has high-severity findings, which --yes alone does not accept. If you have looked at them, add --allow high. Nothing was installed.'
        : 'Nothing was installed. Use --yes to install without being asked.',
    );
    return 'no';
  }
  const choices = isRisky
    ? 'type yes in full, show a [d]iff or file, [N]o'
    : '[y]es, y and [t]rust, show a [d]iff or file, [N]o';
  for (;;) {
    const answer = (await readLine(`Install? ${choices} `, signal))?.trim() ?? '';
    const [word = '', path = ''] = answer.split(/\s+(.*)/);
    if (/^d(?:iff)?$/i.test(word)) await show(offer, path, config, terminal);
    else if (/^yes$/i.test(answer) || (/^y$/i.test(answer) && !isRisky)) return 'yes';
    else if (/^t(?:rust)?$/i.test(answer) && !isRisky) return 'trust';
    else {
      terminal.say('Nothing was installed.');
      return 'no';
    }
  }
}

/** Shows the changes of a file, or all of it where none is there yet; without a path the files. */
async function show(offer: Offer, path: string, config: Config, terminal: Terminal): Promise<void> {
  const found = offer.files.find(file => file.path === path);
  if (!found) {
    const files = offer.files.map(file => `  ${file.path} (${file.bytes} bytes)`);
    terminal.say(exactLines(['d <file> shows one of these:', ...files].join('\n')));
    return;
  }
  const bytes = await offer.read(path);
  if (bytes.includes(0)) terminal.say(`${exactText(path)} is not text.`);
  else terminal.say(exactLines(changesOf(join(offer.plan.target, path), bytes.toString('utf8'), config)));
}

const exactLines = (text: string): string => text.split('\n').map(exactText).join('\n');

function changesOf(installed: string, text: string, _config: Config): string {
  try {
    return unifiedDiff(readText(installed), text) || '(unchanged)';
  } catch {
    return text;
  }
}

/** The card binds to the bytes that are there now, which are those that were shown. */
async function trust(offer: Offer, config: Config, terminal: Terminal): Promise<void> {
  const telos = Telos.open(config);
  const card = await telos.agentCard(offer.name);
  if (card.folders.length > 0 || card.servers.length !== offer.card.servers.length)
    return terminal.say(
      `It asks for more than was shown here. Review its permissions: ${toType('trust', offer.name)}`,
    );
  await telos.acceptCard(card);
  terminal.say(
    terminalText(`Approved. '${card.agent}' may use what is named above until one of its files changes.`),
  );
}

async function report(
  offer: Offer,
  installed: InstalledPack,
  { config, options, terminal, printed }: Call,
): Promise<void> {
  const { name, path, skillCount, unchanged, undoId } = installed;
  const worksIn = worksInOf(installed, config);
  const { source, from, version, commit, digest, findings, leftOut, lockedSource } = offer;
  if (options.json)
    printed.push({
      name,
      path,
      source,
      from,
      version,
      commit,
      digest,
      skills: skillCount,
      unchanged,
      leftOut,
      findings,
      undoId,
      worksIn: worksIn && spoken([worksIn]),
    });
  else await sayInstalled(installed, config, terminal);
  if (lockedSource !== undefined) terminal.say(exactText(movedText({ from: lockedSource, to: source })));
}

async function sayInstalled(installed: InstalledPack, config: Config, terminal: Terminal): Promise<void> {
  const { name, skillCount, summary, path, leftOut, replaced, undoId } = installed;
  terminal.out(terminalText(`${summary}\n`));
  terminal.say(terminal.style.dim(terminalText(path)));
  const worksIn = worksInOf(installed, config);
  if (worksIn) terminal.say(terminalText(spoken([worksIn])));
  for (const line of serverLines(installed)) terminal.say(terminalText(line));
  if (replaced) terminal.say(terminal.style.dim(`${keptText} telos undo ${undoId?.slice(0, 8)}`));
  if (skillCount === 0) {
    const next = `It shows up once it has a skill: ${toType('skill', 'add', name)} <skill>`;
    terminal.say(terminal.style.yellow(terminalText(next)));
  }
  if (leftOut.length > 0)
    terminal.say(
      terminal.style.yellow(terminalText(`Links and special files were left out: ${leftOut.join(', ')}`)),
    );
  for (const line of await notReadyLines(installed, config))
    terminal.say(terminal.style.yellow(terminalText(line)));
}

/** Maximum number of skills that are named. */
const mostNotReady = 3;

/** Returns a line for each skill of an installed agent that cannot run on this machine yet, with what to do. */
async function notReadyLines({ name, skillCount }: InstalledPack, config: Config): Promise<string[]> {
  const telos = Telos.open(config);
  const agent = (await telos.agents()).find(one => one.name === name);
  if (!agent && skillCount > 0)
    return [
      `Its skills are not listed, so it is not known whether they are ready: ${toType('lint')} says why.`,
    ];
  const lacking: string[] = [];
  for (const skill of agent?.skills ?? []) {
    const [first, ...others] = (await telos.readiness(skill)).missing;
    const more = others.length > 0 ? ` (+${others.length})` : '';
    if (first) lacking.push(`${skill.id} is not ready: it needs ${first.what}${more}. ${first.nextStep}`);
  }
  const rest = lacking.length - mostNotReady;
  return [
    ...lacking.slice(0, mostNotReady),
    ...(rest > 0 ? [`${rest} more are not ready: ${toType('list-skills', '--agent', name)}`] : []),
  ];
}

/** Returns a line with the MCP servers of an installed folder, and one for each that its files name and that cannot start. */
function serverLines({ path }: InstalledPack): string[] {
  const { mcpConfig } = ownMcpConfig(path);
  if (mcpConfig === undefined) return [];
  const { servers, problems } = readMcpConfig(mcpConfig);
  const names = [...servers.keys()].join(', ');
  return [...(names ? [`MCP servers, once you accept the agent: ${names}`] : []), ...problems];
}

export const keptText = `The old folder is kept for ${keptDays} days. To bring it back:`;

/**
 * Shows what would be replaced, and asks. `--yes` counts only if it is known what it refers to. `folder` is what the person named;
 * without one, the lock file says what is installed. `isRisky` if it has high-severity findings.
 */
async function mayReplace(
  plan: InstallPlan,
  folder: string | undefined,
  options: InstallCommandOptions,
  terminal: Terminal,
  isRisky = false,
): Promise<boolean> {
  const { as } = options;
  const yes = options.yes === true && (!isRisky || options.allow === 'high');
  const { name, replaces } = plan;
  for (const line of describeReplacement(plan, timeText)) terminal.say(exactText(line));
  // A pack chooses its own name. A person who has typed the name knows which agent is replaced.
  const isTyped =
    folder !== undefined &&
    replaces?.origin.kind === 'by hand' &&
    basename(typedPath(folder, terminal.surroundings)) === name;
  if (yes && (replaces?.isSameSource || isTyped || as === name)) return true;
  const command =
    folder === undefined
      ? restoreCommand(options)
      : toType('install', folder, ...(isRisky ? yesToHigh : ['--yes']));
  const byName = `so it is replaced only by name: ${command} --as ${shellWord(exactText(name))}.`;
  const ofOther =
    folder === undefined
      ? `It did not come from where the lock file says, ${byName}`
      : `It did not come from this folder, ${byName} To install beside it: --as <other name>.`;
  const unattended = replaces?.isSameSource
    ? `Nothing was changed. To replace it without being asked: ${command}`
    : `${ofOther} Nothing was changed.`;
  return agrees(`${keptText} telos undo`, `Replace agent '${exactText(name)}'?`, unattended, terminal);
}

const restoreCommand = ({ frozen, project }: InstallCommandOptions): string =>
  ['telos install', frozen && '--frozen', project && '--project', '--yes'].filter(Boolean).join(' ');

/**
 * Restores the project's lock file if there is one in the folder of the call, else the one of the skills folder, or only says what that
 * would do. Returns 1 if an agent was left that is not as the lock file says.
 */
async function restore({ config, options, terminal, signal, printed }: Call): Promise<number> {
  const isProject = options.project || existsSync(join(config.cwd, lockName));
  const place = { config, ...(isProject && { project: config.cwd }) };
  const asked = options.json ? { ...terminal, canAsk: false } : terminal;
  const isTrial = options.dryRun === true || options.list === true;
  const restored = await restorePacks(place, {
    signal,
    isTrial,
    progress: event => sayProgress(event, terminal),
    mayReplace: plan => mayReplace(plan, undefined, options, asked),
  });
  for (const { name, state, installed, plan } of restored) {
    if (plan && !options.json)
      for (const line of describeReplacement(plan, timeText)) terminal.say(exactText(line));
    if (options.json) printed.push({ name, state, path: installed?.path, undoId: installed?.undoId });
    else terminal.out(terminalText(`${name}: ${stateWords[state]}\n`));
    if (installed?.replaced)
      terminal.say(terminal.style.dim(`${keptText} telos undo ${installed.undoId?.slice(0, 8)}`));
  }
  return restored.some(({ state }) => state === 'left') ? 1 : 0;
}

const stateWords: Readonly<Record<RestoredPack['state'], string>> = {
  same: 'as the lock file says',
  restored: 'restored',
  left: 'not as the lock file says, and left as it is',
  missing: 'would be restored',
  different: 'would be replaced, after a yes',
};

async function fromSkillsLock(call: Call): Promise<number> {
  let code = 0;
  for (const { name, source, problem } of await readSkillsLock(call.config.cwd)) {
    if (source === undefined) {
      call.terminal.say(exactText(`${name} was passed over: ${problem}.`));
      code = 1;
    } else
      code = Math.max(code, await installSource(source, { ...call, options: { ...call.options, as: name } }));
  }
  return code;
}
