/** Reads `plan.json`: what a person chose for a plan. */

import { TelosError } from '@telos/engine/errors';
import type { PlanCheck, PlanLimits } from '@telos/protocol/plan';
import { sentence } from '@telos/protocol/text';
import { checkOf } from './prdFile.ts';

/** How the work trees of a plan are made ready. Paths are relative to the repository, with `/`. */
export interface SlotSettings {
  /** Files that git does not have and that are copied into each. */
  copy: string[];
  /** Folders that each links to: a change in them changes the original. */
  link: string[];
  /** Names that stay from one story to the next. */
  keep: string[];
  /** Number of ports that each may use. */
  ports: number;
}

/** What a person chose for a plan, as `plan.json` has it. */
export interface PlanSettings {
  /** Commit that the plan begins with; the present one if it is missing. */
  base?: string;
  branch: string;
  /** How many stories may be worked on at a time. */
  parallel: number;
  limits: PlanLimits;
  model?: string;
  reviewModel?: string;
  /** Works on a story that was denied three times in a row. */
  escalateModel?: string;
  /** A model chooses role and wording of every attempt, not only after three denials. Never the order. */
  orchestrator?: 'model';
  /** Attempts that count before a story has failed. */
  maxAttempts?: number;
  /** In US dollars. A story that has cost as much asks the person. */
  storyMaxCost?: number;
  /** Run at the end of the plan. */
  checks: PlanCheck[];
  /** Commands that make a slot ready. */
  setup: string[];
  slot: SlotSettings;
  /** Globs of files that no story may change. */
  protect: string[];
  acceptedDigest?: string;
  /** No one is there to answer. */
  unattended?: boolean;
}

export const defaultSettings = (name: string): PlanSettings => ({
  branch: `telos/${name}`,
  parallel: 1,
  limits: {},
  checks: [],
  setup: [],
  slot: { copy: [], link: [], keep: [], ports: 10 },
  protect: [],
});

const wrongSettings = (file: string, problems: readonly string[]): TelosError =>
  new TelosError('config', [
    sentence('{0} cannot be used: {1}.', file, problems.join('; ')),
    sentence('Correct it, or delete it to begin with the usual settings.'),
  ]);

/** Returns what the text of `file` says; what it leaves out has its usual value. Throws TelosError `config` if it is wrong. */
export function parseSettings(text: string, file: string, name: string): PlanSettings {
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (error) {
    throw wrongSettings(file, [`it is not JSON (${(error as Error).message})`]);
  }
  const problems: string[] = [];
  const settings = readSettings(value, name, problem => problems.push(problem));
  if (problems.length > 0) throw wrongSettings(file, problems);
  return settings;
}

type Tell = (problem: string) => void;

function readSettings(value: unknown, name: string, tell: Tell): PlanSettings {
  if (!isFields(value)) {
    tell('it is not an object');
    return defaultSettings(name);
  }
  const usual = defaultSettings(name);
  const slot = isFields(value['slot']) ? value['slot'] : {};
  const limits = isFields(value['limits']) ? value['limits'] : {};
  const checks = Array.isArray(value['checks']) ? value['checks'] : [];
  for (const key of ['slot', 'limits'])
    if (value[key] !== undefined && !isFields(value[key])) tell(`${key} is not an object`);
  const text = (key: string): string | undefined => textIn(value, key, tell);
  const names = ['base', 'model', 'reviewModel', 'escalateModel', 'acceptedDigest'];
  const [base, model, reviewModel, escalateModel, acceptedDigest] = names.map(text);
  const branch = text('branch') ?? usual.branch;
  if (!isBranch(branch)) tell(`branch ${JSON.stringify(branch)} is not a name for a branch`);
  if (base?.startsWith('-')) tell('base is not a commit');
  const who = text('orchestrator');
  if (who !== undefined && who !== 'model') tell('orchestrator is not "model"; leave it out otherwise');
  const storyMaxCost = amount(value['storyMaxCost'], 'storyMaxCost', tell);
  return {
    ...(base !== undefined && { base }),
    branch,
    parallel: count(value, 'parallel', usual.parallel, 16, tell),
    limits: limitsIn(limits, tell),
    ...(model !== undefined && { model }),
    ...(reviewModel !== undefined && { reviewModel }),
    ...(escalateModel !== undefined && { escalateModel }),
    ...(who === 'model' && { orchestrator: who }),
    ...(value['maxAttempts'] !== undefined && { maxAttempts: count(value, 'maxAttempts', 5, 100, tell) }),
    ...(storyMaxCost !== undefined && { storyMaxCost }),
    checks: checks.flatMap((one, index) => checkOf(one, index, tell) ?? []),
    setup: textsIn(value, 'setup', tell),
    slot: {
      copy: pathsIn(slot, 'copy', tell),
      link: pathsIn(slot, 'link', tell),
      keep: pathsIn(slot, 'keep', tell),
      ports: count(slot, 'ports', usual.slot.ports, 1000, tell),
    },
    protect: textsIn(value, 'protect', tell),
    ...(acceptedDigest !== undefined && { acceptedDigest }),
    ...(value['unattended'] === true && { unattended: true }),
  };
}

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whether git accepts it and no option or ref of another kind can be meant. */
export const isBranch = (name: string): boolean =>
  /^[A-Za-z0-9_][\w./-]{0,199}$/.test(name) &&
  !/\.\.|\/\/|\/\.|\.lock(\/|$)|[./]$/.test(name) &&
  !/^(refs\/|HEAD$)/.test(name);

function textIn(fields: Fields, key: string, tell: Tell): string | undefined {
  const value = fields[key];
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string' && value.trim() !== '' && !value.includes('\0')) return value.trim();
  tell(`${key} is not text`);
  return undefined;
}

function textsIn(fields: Fields, key: string, tell: Tell): string[] {
  const value = fields[key] ?? [];
  if (Array.isArray(value) && value.every(one => typeof one === 'string' && !one.includes('\0')))
    return value;
  tell(`${key} is not a list of texts`);
  return [];
}

/** Returns paths below the repository. */
function pathsIn(fields: Fields, key: string, tell: Tell): string[] {
  return textsIn(fields, key, tell).flatMap(given => {
    const path = given.replaceAll('\\', '/').replace(/^(?:\.\/)+|\/+$/g, '');
    const parts = path.split('/');
    const isBelow =
      path !== '' && !/^[A-Za-z]:/.test(path) && !parts.some(part => ['', '.', '..'].includes(part));
    if (isBelow && parts[0]?.toLowerCase() !== '.git' && parts[0] !== '.telos') return [path];
    tell(`slot.${key} has ${JSON.stringify(given)}, which is not a path below the repository`);
    return [];
  });
}

function count(fields: Fields, key: string, usual: number, most: number, tell: Tell): number {
  const value = fields[key];
  if (value === undefined) return usual;
  if (Number.isInteger(value) && Number(value) >= 1 && Number(value) <= most) return Number(value);
  tell(`${key} is not a number from 1 to ${most}`);
  return usual;
}

function limitsIn(fields: Fields, tell: Tell): PlanLimits {
  const limits: PlanLimits = {};
  for (const key of ['maxCost', 'maxTokens', 'maxMinutes'] as const) {
    const value = amount(fields[key], `limits.${key}`, tell);
    if (value !== undefined) limits[key] = value;
  }
  return limits;
}

function amount(value: unknown, name: string, tell: Tell): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'number' && value >= 0 && Number.isFinite(value)) return value;
  tell(`${name} is not an amount`);
  return undefined;
}
