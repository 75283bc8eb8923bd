/**
 * The card of a plan: what it will run and where, for a person who decides whether it may. An acceptance is kept in the person's own
 * data folder, since a plan's folder can come with someone else's repository.
 */

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Config } from '@telos/engine/config';
import { isSensitive, readSettings, realPlace, writeOwn } from '@telos/engine/files';
import { dangerOf, findRedFlags } from '@telos/engine/policy';
import { describeFlag } from '@telos/protocol/agentCard';
import { describeDanger } from '@telos/protocol/describe';
import type { PlanCheck, Story } from '@telos/protocol/plan';
import type { CardCommand, CardFacts, CostEstimate, PlanCard } from '@telos/protocol/planCard';
import { codePointOf, unseen } from '@telos/protocol/text';
import { formatCost } from '@telos/protocol/usage';
import type { PlanFolder } from './planFolder.ts';
import type { PlanSettings } from './planSettings.ts';
import { readRoles } from './roles.ts';
import { stepOfRole } from './steps.ts';

export interface CardParts {
  folder: PlanFolder;
  settings: PlanSettings;
  stories: readonly Story[];
  facts: CardFacts;
  config: Pick<Config, 'dataDir' | 'home'>;
}

/** Returns the card as things are now. Throws TelosError `config` if a text of a role cannot be read. */
export function planCard({ folder, settings, stories, facts, config }: CardParts): PlanCard {
  const around = { folder: folder.repo, workingDir: folder.repo, home: config.home };
  const looked = (command: string) => ({
    command,
    dangers: dangerOf(command, around).dangers,
    flags: findRedFlags(command, 'the command'),
  });
  const setup = settings.setup.map(looked);
  const checks = checksOf(settings, stories).map(({ check, ids }) => ({
    ...looked(check.command),
    name: check.name,
    stories: ids,
    ...(check.timeoutS !== undefined && { timeoutS: check.timeoutS }),
    ...(check.outside && { outside: true }),
  }));
  const roles = readRoles(folder.repo).map(({ file, text }) => ({ file, text }));
  const skills = skillsOf(stories);
  const { branch, parallel, slot, protect, limits } = settings;
  const card = {
    setup,
    checks,
    branch,
    copy: slot.copy,
    link: slot.link,
    keep: slot.keep,
    protect,
    roles,
    skills,
  };
  const bound = boundLines(settings, stories, roles);
  const digest = digestOf(bound);
  const before = acceptedLines(config, folder);
  return {
    ...card,
    ...facts,
    plan: folder.name,
    digest,
    slots: parallel,
    models: modelsOf(settings),
    limits,
    bound,
    hosts: hostsIn([...setup, ...checks]),
    changes: before ? differences(before, bound) : [],
    isAccepted: before !== undefined && digestOf(before) === digest,
  };
}

/** Returns every check once, with the stories that it is for. The same command with another limit of time is another check. */
function checksOf(
  settings: Pick<PlanSettings, 'checks'>,
  stories: readonly Story[],
): { check: PlanCheck; ids: string[] }[] {
  const found = new Map<string, { check: PlanCheck; ids: string[] }>();
  const add = (check: PlanCheck, id?: string): void => {
    const key = JSON.stringify([check.name, check.command, check.timeoutS, check.outside]);
    const known = found.get(key) ?? { check, ids: [] };
    if (id !== undefined) known.ids.push(id);
    found.set(key, known);
  };
  for (const check of settings.checks) add(check);
  for (const { id, checks } of stories) for (const check of checks) add(check, id);
  return [...found.values()];
}

const modelsOf = ({ model, reviewModel, escalateModel }: PlanSettings): PlanCard['models'] => [
  ...(model === undefined ? [] : [{ role: 'all', model }]),
  ...(reviewModel === undefined ? [] : [{ role: 'reviewer', model: reviewModel }]),
  ...(escalateModel === undefined ? [] : [{ role: 'after three denials', model: escalateModel }]),
];

/** Addresses in the commands. What a program reaches by itself is not known. */
function hostsIn(commands: readonly CardCommand[]): string[] {
  const hosts = commands.flatMap(({ command }) =>
    [...command.matchAll(/\bhttps?:\/\/([\w.-]+)/gi)].map(([, host = '']) => host.toLowerCase()),
  );
  return [...new Set(hosts)].sort();
}

const skillsOf = (stories: readonly Story[]): string[] =>
  [...new Set(stories.flatMap(({ role }) => (stepOfRole(role).skill ? [role] : [])))].sort();

/**
 * Returns what is accepted with a card: each part as a JSON list of its kind and its fields, so that no two parts are the same text. That of
 * fewer stories has some of the same lines.
 */
export function boundLines(
  settings: Pick<PlanSettings, 'setup' | 'checks' | 'branch' | 'slot' | 'protect'>,
  stories: readonly Story[],
  roles: PlanCard['roles'],
): string[] {
  const checks = checksOf(settings, stories).map(({ check: { name, command, timeoutS = null, outside } }) =>
    JSON.stringify(['check', name, timeoutS, command, ...(outside ? ['outside of the sandbox'] : [])]),
  );
  const line = (...fields: [BoundKind, ...string[]]): string => JSON.stringify(fields);
  return [
    ...settings.setup.map(command => line('setup', command)),
    ...checks,
    line('branch', settings.branch),
    ...settings.slot.copy.map(path => line('copied into slots', path)),
    ...settings.slot.link.map(path => line('linked into slots', path)),
    ...settings.slot.keep.map(path => line('kept in slots', path)),
    ...settings.protect.map(glob => line('protected', glob)),
    ...skillsOf(stories).map(skill => line('skill', skill)),
    ...roles.map(({ file, text }) => line('role', file, createHash('sha256').update(text).digest('hex'))),
  ];
}

type BoundKind =
  | 'setup'
  | 'branch'
  | 'copied into slots'
  | 'linked into slots'
  | 'kept in slots'
  | 'protected'
  | 'skill'
  | 'role';

/** Returns a part of a card for a person to read. What is not one, as in a forged order, stays as it is. */
export function describeBound(line: string): string {
  const fields: unknown = jsonOf(line);
  if (!Array.isArray(fields)) return line;
  const [kind, first = '', timeout, command, where] = fields as unknown[];
  if (kind === 'check') {
    const limit = timeout === null ? '' : ` (${timeout} s)`;
    const place = where === undefined ? '' : ` ${where}`;
    return `check ${plainName(String(first))}${limit}${place}: ${command}`;
  }
  return kind === 'role' ? `role ${first}: ${String(timeout).slice(0, 16)}` : `${kind}: ${first}`;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A name that could be taken for more than a name stands in quotes. */
const plainName = (name: string): string =>
  /^[\p{L}\p{N}_.-]+( [\p{L}\p{N}_.-]+)*$/u.test(name) ? name : JSON.stringify(name);

/** Returns the digest of what is accepted with a card. The order of checks and stories does not matter, that of the setup does. */
export function digestOf(lines: readonly string[]): string {
  const isSetup = (line: string): boolean => line.startsWith('["setup",');
  const sorted = [...lines.filter(isSetup), ...lines.filter(line => !isSetup(line)).sort()];
  return createHash('sha256').update(JSON.stringify(sorted)).digest('hex');
}

const differences = (before: readonly string[], now: readonly string[]): string[] => [
  ...before.filter(line => !now.includes(line)).map(line => `- ${describeBound(line)}`),
  ...now.filter(line => !before.includes(line)).map(line => `+ ${describeBound(line)}`),
];

/** Returns the name under which a person's own choices for a plan are kept: those for this folder on this machine. */
export function ownName({ dir, name }: PlanFolder): string {
  const place = createHash('sha256')
    .update(realPlace(dir) ?? dir)
    .digest('hex')
    .slice(0, 24);
  return `${name}-${place}`;
}

/** Returns the files in which a person's own choices for a plan are kept. */
export const ownFiles = ({ dataDir }: Pick<Config, 'dataDir'>, folder: PlanFolder): string[] =>
  ['.json', '.context.json'].map(ending => join(dataDir, 'plans', `${ownName(folder)}${ending}`));

const acceptanceFile = ({ dataDir }: Pick<Config, 'dataDir'>, folder: PlanFolder): string =>
  join(dataDir, 'plans', `${ownName(folder)}.json`);

function acceptedLines(config: Pick<Config, 'dataDir'>, folder: PlanFolder): string[] | undefined {
  try {
    const { bound } = JSON.parse(readSettings(acceptanceFile(config, folder))) as { bound?: unknown };
    const isList = Array.isArray(bound) && bound.every(line => typeof line === 'string');
    return isList ? bound : undefined;
  } catch {
    return undefined;
  }
}

/** Accepts the card that was shown. Throws errors of the file system. */
export async function acceptPlanCard(
  config: Pick<Config, 'dataDir'>,
  folder: PlanFolder,
  { bound, digest }: Pick<PlanCard, 'bound' | 'digest'>,
): Promise<void> {
  const text = JSON.stringify(
    { plan: folder.dir, digest, at: new Date().toISOString(), bound },
    undefined,
    2,
  );
  await writeOwn(acceptanceFile(config, folder), `${text}\n`);
}

const mostFiles = 10;

/** Said to who accepts checks: at the base nothing of a model is there yet. */
const whereChecksRun =
  'Checks run in the sandbox. Before any story, one that fails there is tried once outside of it.';

/** Returns the card as lines of plain text. Commands are shown word for word. */
export function printCard(card: PlanCard): string[] {
  const list = (title: string, items: readonly string[]): string[] =>
    items.length > 0 ? [`${title}:`, ...items.map(item => `  ${item}`)] : [`${title}: none`];
  const some = (title: string, items: readonly string[]): string[] =>
    items.length > 0 ? list(title, items) : [];
  const limits = [
    ...(card.limits.maxCost === undefined ? [] : [`$${card.limits.maxCost}`]),
    ...(card.limits.maxTokens === undefined ? [] : [`${card.limits.maxTokens} tokens`]),
    ...(card.limits.maxMinutes === undefined ? [] : [`${card.limits.maxMinutes} minutes`]),
  ];
  const warned = [...card.setup, ...card.checks].flatMap(({ command, dangers, flags }) => [
    ...dangers.map(danger => `! ${command}: ${describeDanger(danger)}`),
    ...flags.map(flag => `! ${command}: ${describeFlag(flag)}`),
  ]);
  const secrets = card.copy
    .filter(isSensitive)
    .map(path => `! ${path}: may hold secrets; commands of the models can read its copy`);
  const dirty = card.dirtyFiles;
  const left = dirty.length > mostFiles ? [`... and ${dirty.length - mostFiles} more`] : [];
  const lines = [
    `Plan ${card.plan} (${card.isAccepted ? 'approved' : card.changes.length > 0 ? 'changed since it was approved' : 'not approved yet'})`,
    ...list(
      'Setup commands',
      card.setup.map(({ command }) => command),
    ),
    ...list('Checks each story must pass', card.checks.map(checkLine)),
    ...(card.checks.length === 0 ? [] : [whereChecksRun]),
    ...some('Look at these', [...warned, ...secrets]),
    ...some('Hosts that the commands name', card.hosts),
    `Starts from: ${card.base}`,
    `Branch: ${card.branch}`,
    `Stories at a time: ${card.slots}`,
    ...some('Copied into each worktree', card.copy),
    ...some('Linked into each worktree, so that a change there changes the original', card.link),
    ...some('Kept in each worktree from story to story', card.keep),
    ...some('Files that no story may change', card.protect),
    ...some('Folders besides the project that those who plan may ask about', card.context ?? []),
    ...some(
      'Models',
      card.models.map(({ role, model }) => `${role}: ${model}`),
    ),
    ...some('Skills that do the work', card.skills),
    ...card.roles.flatMap(({ file, text }) =>
      list(`The project's own text for a role, ${file}`, text.split('\n')),
    ),
    `Budget: ${limits.join(', ') || 'no limit'}`,
    ...(card.estimate === undefined ? [] : [`Estimate: ${estimateLine(card.estimate)}`]),
    ...some(
      dirty.length === 1
        ? 'Not included: 1 uncommitted file of yours stays where it is, and the plan does not see it'
        : `Not included: ${dirty.length} uncommitted files of yours stay where they are, and the plan does not see them`,
      [...dirty.slice(0, mostFiles), ...left],
    ),
    ...some('Changed since you approved it', card.changes),
    `Digest: ${card.digest}`,
  ];
  // A name can contain a line break, and the text after it would look like a line of the card.
  return lines.map(line => unseen.replacedIn(line, codePointOf));
}

const estimateLine = ({ low, typical, high }: CostEstimate): string =>
  `${formatCost(low)} to ${formatCost(high)}, most likely ${formatCost(typical)}`;

function checkLine({ name, command, stories = [], timeoutS, outside }: CardCommand): string {
  const whose = stories.length === 0 ? 'the whole plan' : stories.join(', ');
  const limit = timeoutS === undefined ? '' : `; ${timeoutS} s`;
  return `${name}: ${command}  [${whose}${limit}${outside ? '; may run outside the sandbox' : ''}]`;
}
