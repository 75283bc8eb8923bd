/** Reads the configuration from the environment and overrides into plain data. Nothing here is read again later. */

import { homedir, userInfo } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import type { LocalizedMessage } from '@telos/protocol/run';
import { asMessage, sentence } from '@telos/protocol/text';
import { effortLevels, mostRounds } from './core/limits.ts';
import type { Effort } from './core/ports.ts';
import { type EnvFile, envFileWins, mergeEnvironment, readEnvFile } from './envFile.ts';

export interface WorkspaceFolder {
  name: string;
  path: string;
}

/** Sources of a value, the strongest first. */
export type Origin = 'flag' | 'setting' | 'environment' | '.env' | 'default';

export interface ValueInForce {
  /** The value as shown to people. A secret is shown as `(set)`; empty if the value is not set. */
  value: string;
  origin: Origin;
  /** The file that contains the value, if it comes from a file. */
  file?: string;
}

/**
 * `name` uses names alone, `local` the search index too, and `model` asks the model.
 * `auto` asks the model if there is one, and otherwise works as `local`.
 */
export type RoutingMode = 'auto' | 'name' | 'local' | 'model';

/** Whether commands run in a box of the operating system: where one works, always or not at all, or never. */
export const sandboxModes = ['auto', 'required', 'off'] as const;
export type SandboxMode = (typeof sandboxModes)[number];

/**
 * How a provider is spoken to: `native` in its maker's own format, `chat` in that of OpenAI's chat completions. `auto` decides by the
 * address and the model.
 */
const protocolChoices = ['auto', 'native', 'chat'] as const;
export type ProtocolChoice = (typeof protocolChoices)[number];

/** Which models answer where none is named: those that are current, or those that the specification of Telos names. */
const defaultsChoices = ['current', 'specified'] as const;
export type DefaultsChoice = (typeof defaultsChoices)[number];

/** Whether a request that no skill fits is answered without one: after a question where one can be asked, or always. */
const answerChoices = ['ask', 'always'] as const;
export type AnswerChoice = (typeof answerChoices)[number];

/** Where a run without a chosen skill looks for skills. Of two skills with one name, the first of these wins. */
export const skillRootKinds = ['project', 'user', 'builtin'] as const;
export type SkillRootKind = (typeof skillRootKinds)[number];

/** Limits of a run, or of all runs of a day, in US dollars, tokens and minutes. Each with the variable that sets it. */
export const budgetVariables = {
  maxCost: 'TELOS_MAX_COST',
  maxTokens: 'TELOS_MAX_TOKENS',
  maxMinutes: 'TELOS_MAX_MINUTES',
  maxCostPerDay: 'TELOS_MAX_COST_PER_DAY',
  maxTokensPerDay: 'TELOS_MAX_TOKENS_PER_DAY',
  maxMinutesPerDay: 'TELOS_MAX_MINUTES_PER_DAY',
} as const;
export type BudgetName = keyof typeof budgetVariables;

/** Plain data; one Telos is opened on one Config. All paths are absolute. */
export interface Config {
  /** The variables in force: those of the process or the host's overrides, together with those of `.env`. */
  env: Readonly<Record<string, string>>;
  home: string;
  /** The folder of the call, to which a working_dir of `.` refers. */
  cwd: string;
  /** `~/.skills`, or `TELOS_SKILLS_DIR`. */
  skillsDir: string;
  /** `~/.config/telos`, or `TELOS_CONFIG_DIR`. Contains `.env` and `agents.toml`. */
  configDir: string;
  /** `~/.local/share/telos`, or `TELOS_DATA_DIR`. Contains logs and run files. */
  dataDir: string;
  /** `~/obsidian/telos`, or `TELOS_WORKING_ROOT`. An agent without a working_dir works in a folder of its name here. */
  workingRoot: string;
  /** The skills that ship with Telos. Undefined if there are none. */
  builtinSkillsDir: string | undefined;
  /**
   * `.claude/skills` in the folder of the call, `~/.claude/skills`, and the skills that ship with Telos.
   * Overridden by `TRANSACTOID_AGENT_SKILLS_PROJECT_DIR`, `..._USER_DIR` and `..._BUILTIN_DIR`; empty means none.
   * They need not exist.
   */
  skillRoots: Readonly<Record<SkillRootKind, string | undefined>>;
  /** Trusted workspace folders only. The host leaves out the others. */
  workspaceFolders: readonly WorkspaceFolder[];
  /** On the command line: folders of the project around the current folder, the nearest first. Its card must be accepted. */
  projectFolders: readonly string[];
  /** `TELOS_PROVIDER`, a flag or a setting. If undefined, Telos chooses. */
  provider: string | undefined;
  /** `TELOS_MODEL`, a flag or a setting. If undefined, the provider's default is used. */
  model: string | undefined;
  /** A recorded run to play back with the provider `replay`. */
  replayFile: string | undefined;
  /** `TELOS_PROTOCOL` or a setting. */
  protocol: ProtocolChoice;
  /** `TELOS_DEFAULTS` or a setting. */
  defaults: DefaultsChoice;
  /** `TELOS_EFFORT`, a flag or a setting, by model; `*` stands for all others. A model without one thinks as much as it does by itself. */
  efforts: Readonly<Record<string, Effort>>;
  /** `TELOS_ROUTING_MODE`: how a skill is found for a request that does not name one exactly. */
  routingMode: RoutingMode;
  /** `TELOS_ROUTING_MODEL`: the model that is asked which skill fits. If undefined, the provider's usual one. */
  routingModel: string | undefined;
  /** False if `TELOS_ROUTING_LEARN` or the setting is `off`: then it counts for nothing which skills the person chose before. */
  routingLearns: boolean;
  /** False if `TELOS_SUGGEST_SKILLS` or the setting is `off`: then nothing looks for what the user does often. */
  suggestsSkills: boolean;
  /** `TELOS_ANSWER_WITHOUT_SKILL`, a flag or a setting. The chats always answer. */
  answerWithoutSkill: AnswerChoice;
  /** `TELOS_MAX_ROUNDS`, a flag or a setting: rounds of a run before it asks whether to go on. If undefined, the skill's or 20. */
  maxRounds: number | undefined;
  /**
   * `TELOS_CONTEXT_WINDOW` or a setting: tokens that the model takes. `full` is all of them, also where a long prompt costs more. If
   * undefined, what is known of the model, up to there.
   */
  contextWindow: number | 'full' | undefined;
  /** A setting: the user's own prices, by model, as they were written. Those of config.toml come with them. */
  prices: Readonly<Record<string, unknown>>;
  /** `TELOS_SANDBOX`, a flag or a setting. With `required`, no command runs outside of a box. */
  sandbox: SandboxMode;
  /** Folders of which a run sees nothing, such as the answers of an eval. Absolute. */
  hiddenDirs?: readonly string[];
  /** The limits that are set. NaN means that a limit cannot be read: then nothing runs, since the user wanted a limit. */
  budget: Readonly<Partial<Record<BudgetName, number>>>;
  /** The values in force and where each was set, by the name of the field above or of the variable. */
  origins: Readonly<Record<string, ValueInForce>>;
  /** Problems found while reading, in sentences. None of them stops Telos. */
  problems: readonly LocalizedMessage[];
}

/** Values that a frontend knows better than the environment. Undefined leaves the environment in force. */
export interface ConfigOverrides extends Partial<Record<BudgetName, string | undefined>> {
  env?: Readonly<Record<string, string | undefined>>;
  home?: string;
  cwd?: string;
  workspaceFolders?: readonly WorkspaceFolder[];
  builtinSkillsDir?: string | undefined;
  /** Paths; an empty one means none. */
  skillRoots?: Partial<Record<SkillRootKind, string | undefined>>;
  provider?: string | undefined;
  model?: string | undefined;
  protocol?: string | undefined;
  defaults?: string | undefined;
  /** `high`, `8000`, or `gpt-5.4=low, *=high`. */
  effort?: string | undefined;
  replayFile?: string | undefined;
  routingMode?: string | undefined;
  routingModel?: string | undefined;
  routingLearns?: string | undefined;
  suggestsSkills?: string | undefined;
  answerWithoutSkill?: string | undefined;
  maxRounds?: string | undefined;
  contextWindow?: string | undefined;
  prices?: Readonly<Record<string, unknown>>;
  sandbox?: string | undefined;
  skillsDir?: string | undefined;
  workingRoot?: string | undefined;
  /** Variables that the frontend keeps itself, such as keys. They win over the environment. */
  variables?: Readonly<Record<string, string>>;
  /** Origin that is shown for the overrides. Defaults to `flag`. */
  overridesAre?: 'flag' | 'setting';
}

/** Returns an absolute path. A leading `~` is the home folder; a relative path starts at `base`. */
export function expandPath(path: string, home: string, base: string): string {
  if (path === '~') return home;
  if (path.startsWith('~/') || path.startsWith('~\\')) return join(home, path.slice(2));
  return resolve(base, path);
}

/**
 * Returns the folders that are Telos's own, its data folder last: no run reads or writes in them. In the cache folder the command line keeps
 * compiled code, which its next start runs; the plans' work trees beside it are not closed.
 */
export function telosFolders({
  configDir,
  dataDir,
  home,
  env,
}: Pick<Config, 'configDir' | 'dataDir' | 'home' | 'env'>): string[] {
  const caches = [join(home, '.cache'), env['XDG_CACHE_HOME'] ?? ''].filter(isAbsolute);
  return [...new Set(caches.map(folder => join(folder, 'telos', 'compiled'))), configDir, dataDir];
}

const isOn = (value = 'on'): boolean => !/^(?:off|false|no|0)$/i.test(value);

/** Returns the configuration. Reads the `.env` of the config folder and no other file. Never throws. */
export function loadConfig(overrides: ConfigOverrides = {}): Config {
  const environment = { ...definedOnly(overrides.env ?? process.env), ...overrides.variables };
  const home = overrides.home ?? homeIn(environment);
  const cwd = overrides.cwd ?? process.cwd();
  const configDir = environment['TELOS_CONFIG_DIR']
    ? expandPath(environment['TELOS_CONFIG_DIR'], home, cwd)
    : join(home, '.config', 'telos');
  const envFile = readEnvFile(join(configDir, '.env'));
  const env = mergeEnvironment(environment, envFile);
  const origins: Record<string, ValueInForce> = {};
  const sources = { environment, envFile, env, overrides, origins };
  const value = (field: Setting, variable: string): string | undefined => find(field, variable, sources);
  const unusable: (readonly [variable: string, wanted: string, used: string])[] = [];
  const folder = (field: Setting, variable: string, fallback: string): string => {
    const wanted = expandPath(value(field, variable) ?? join(home, fallback), home, cwd);
    // Nothing can be made there, and Node tries it without an end.
    const isUsable = !/^\/proc(?:\/|$)/.test(wanted);
    const path = isUsable ? wanted : join(home, fallback);
    if (!isUsable) unusable.push([variable, wanted, path]);
    origins[field] = { origin: 'default', ...(isUsable && origins[field]), value: path };
    return path;
  };
  origins['configDir'] = {
    value: configDir,
    origin: environment['TELOS_CONFIG_DIR'] ? 'environment' : 'default',
  };
  const wantedMode = value('routingMode', 'TELOS_ROUTING_MODE');
  const wantedRounds = value('maxRounds', 'TELOS_MAX_ROUNDS');
  const wantedWindow = value('contextWindow', 'TELOS_CONTEXT_WINDOW');
  const wantedProtocol = value('protocol', 'TELOS_PROTOCOL') ?? 'auto';
  const wantedDefaults = value('defaults', 'TELOS_DEFAULTS') ?? 'current';
  const wantedEfforts = effortsIn(value('effort', 'TELOS_EFFORT') ?? '');
  const wantedAnswer = value('answerWithoutSkill', 'TELOS_ANSWER_WITHOUT_SKILL') ?? 'ask';
  const wantedBox = value('sandbox', 'TELOS_SANDBOX') ?? 'auto';
  const config: Omit<Config, 'origins' | 'problems'> = {
    env,
    home,
    cwd,
    skillsDir: folder('skillsDir', 'TELOS_SKILLS_DIR', '.skills'),
    configDir,
    dataDir: folder('dataDir', 'TELOS_DATA_DIR', '.local/share/telos'),
    workingRoot: folder('workingRoot', 'TELOS_WORKING_ROOT', 'obsidian/telos'),
    builtinSkillsDir: overrides.builtinSkillsDir,
    skillRoots: skillRootsOf(sources, home, cwd),
    workspaceFolders: overrides.workspaceFolders ?? [],
    projectFolders: [],
    provider: value('provider', 'TELOS_PROVIDER'),
    model: value('model', 'TELOS_MODEL'),
    protocol: protocolChoices.find(one => one === wantedProtocol) ?? 'auto',
    defaults: defaultsChoices.find(one => one === wantedDefaults) ?? 'current',
    efforts: wantedEfforts.efforts,
    replayFile: value('replayFile', 'TELOS_REPLAY_FILE'),
    routingMode: routingModes.find(mode => mode === wantedMode) ?? 'auto',
    routingModel: value('routingModel', 'TELOS_ROUTING_MODEL'),
    routingLearns: isOn(value('routingLearns', 'TELOS_ROUTING_LEARN')),
    suggestsSkills: isOn(value('suggestsSkills', 'TELOS_SUGGEST_SKILLS')),
    answerWithoutSkill: answerChoices.find(one => one === wantedAnswer) ?? 'ask',
    maxRounds: roundsIn(wantedRounds),
    contextWindow: windowIn(wantedWindow),
    prices: overrides.prices ?? {},
    // Who wrote a word that is not known wanted something of the box.
    sandbox: sandboxModes.find(mode => mode === wantedBox) ?? 'required',
    budget: budgetOf(value),
  };
  const inForce = ['routingMode', 'sandbox', 'defaults', 'protocol', 'answerWithoutSkill'] as const;
  for (const name of inForce) origins[name] = { origin: 'default', ...origins[name], value: config[name] };
  for (const name of ['routingLearns', 'suggestsSkills'] as const)
    origins[name] = { origin: 'default', ...origins[name], value: config[name] ? 'on' : 'off' };
  noteProviderVariables(sources);
  const problems = [
    ...(envFile.problem ? [asMessage(...envFile.problem)] : []),
    ...budgetProblems({ ...config, origins }),
  ];
  if (wantedMode && wantedMode !== config.routingMode) {
    problems.push(
      asMessage(
        sentence("The routing mode '{0}' is unknown, so auto is used.", wantedMode),
        sentence('Known modes: {0}.', routingModes.join(', ')),
      ),
    );
  }
  if (wantedBox !== config.sandbox)
    problems.push(
      asMessage(
        sentence("The sandbox mode '{0}' is unknown, so required is used.", wantedBox ?? ''),
        sentence('Known modes: {0}.', sandboxModes.join(', ')),
      ),
    );
  if (wantedProtocol !== config.protocol)
    problems.push(
      asMessage(
        sentence("The protocol '{0}' is unknown, so auto is used.", wantedProtocol),
        sentence('Known protocols: {0}.', protocolChoices.join(', ')),
      ),
    );
  for (const [variable, wanted, used] of unusable)
    problems.push(
      asMessage(
        sentence('{0} is {1}, where nothing can be kept, so {2} is used.', variable, wanted, used),
        sentence('Name another folder.'),
      ),
    );
  if (wantedDefaults !== config.defaults)
    problems.push(
      asMessage(
        sentence("The defaults '{0}' are unknown, so {1} is used.", wantedDefaults, config.defaults),
        sentence('Known defaults: {0}.', defaultsChoices.join(', ')),
      ),
    );
  if (wantedAnswer !== config.answerWithoutSkill)
    problems.push(
      asMessage(
        sentence("TELOS_ANSWER_WITHOUT_SKILL is '{0}', which is unknown, so ask is used.", wantedAnswer),
        sentence('Write {0}.', answerChoices.join(' or ')),
      ),
    );
  for (const effort of wantedEfforts.unknown)
    problems.push(
      asMessage(
        sentence("The effort '{0}' is unknown, so it is not used.", effort),
        sentence(
          'Write {0}, or a number of tokens from {1} to {2}.',
          effortLevels.join(', '),
          ...effortTokens,
        ),
      ),
    );
  if (wantedRounds && config.maxRounds === undefined)
    problems.push(
      asMessage(
        sentence("The number of steps is '{0}', so it is not used.", wantedRounds),
        sentence('Set TELOS_MAX_ROUNDS to a whole number from 1 to {0}.', mostRounds),
      ),
    );
  if (wantedWindow && config.contextWindow === undefined)
    problems.push(
      asMessage(
        sentence("The model's context is set to '{0}', so it is not used.", wantedWindow),
        sentence('Set TELOS_CONTEXT_WINDOW to full, or to a number of tokens, at least {0}.', smallestWindow),
      ),
    );
  return { ...config, origins, problems };
}

/** Returns the home folder. An empty or relative HOME is ignored: it would put the user's files in an arbitrary place. */
function homeIn(environment: Readonly<Record<string, string>>): string {
  const said = environment['HOME'] ?? homedir();
  return isAbsolute(said) ? said : userInfo().homedir;
}

function skillRootsOf(
  { env, overrides }: Sources,
  home: string,
  cwd: string,
): Record<SkillRootKind, string | undefined> {
  const root = (kind: SkillRootKind, fallback: string | undefined): string | undefined => {
    const given =
      overrides.skillRoots?.[kind] ?? env[`TRANSACTOID_AGENT_SKILLS_${kind.toUpperCase()}_DIR`] ?? fallback;
    return given ? expandPath(given, home, cwd) : undefined;
  };
  return {
    project: root('project', '.claude/skills'),
    user: root('user', '~/.claude/skills'),
    builtin: root('builtin', overrides.builtinSkillsDir),
  };
}

const routingModes: readonly RoutingMode[] = ['auto', 'name', 'local', 'model'];

type Setting =
  | BudgetName
  | 'skillsDir'
  | 'dataDir'
  | 'workingRoot'
  | 'provider'
  | 'model'
  | 'protocol'
  | 'defaults'
  | 'effort'
  | 'replayFile'
  | 'routingMode'
  | 'routingModel'
  | 'routingLearns'
  | 'suggestsSkills'
  | 'answerWithoutSkill'
  | 'maxRounds'
  | 'contextWindow'
  | 'sandbox';

interface Sources {
  environment: Readonly<Record<string, string>>;
  envFile: EnvFile;
  env: Readonly<Record<string, string>>;
  overrides: ConfigOverrides;
  /** Filled while the values are read. */
  origins: Record<string, ValueInForce>;
}

export const budgetNames = Object.keys(budgetVariables) as readonly BudgetName[];

function budgetOf(value: (field: BudgetName, variable: string) => string | undefined): Config['budget'] {
  const budget: Partial<Record<BudgetName, number>> = {};
  for (const name of budgetNames) {
    const text = value(name, budgetVariables[name]);
    if (text !== undefined) budget[name] = amountIn(text);
  }
  return budget;
}

/** Returns the number of rounds that a file, a variable or an option sets. Undefined unless it is a whole number from 1 to 500. */
export function roundsIn(value: unknown): number | undefined {
  const rounds = typeof value === 'string' && /^\d+$/.test(value.trim()) ? Number(value) : value;
  const fits = typeof rounds === 'number' && Number.isInteger(rounds) && rounds >= 1 && rounds <= mostRounds;
  return fits ? rounds : undefined;
}

/** Below this, not even a skill and one result have room. In tokens. */
const smallestWindow = 4_000;

/** Returns what a variable or a setting sets: a number of tokens, or `full`. Undefined unless the number is whole and large enough. */
function windowIn(text: string | undefined): number | 'full' | undefined {
  if (text?.trim().toLowerCase() === 'full') return 'full';
  const tokens = text === undefined ? Number.NaN : amountIn(text);
  return Number.isInteger(tokens) && tokens >= smallestWindow ? tokens : undefined;
}

/** Fewest and most tokens for thinking. */
const effortTokens = [1_024, 64_000] as const;

/** Returns what a setting or a file says: a level, or a number of tokens. Undefined if it is neither. */
export function effortIn(value: unknown): Effort | undefined {
  const text = typeof value === 'string' ? value.trim().toLowerCase() : value;
  const level = effortLevels.find(one => one === text);
  if (level) return level;
  const tokens = typeof text === 'string' && /^[\d_]+$/.test(text) ? Number(text.replaceAll('_', '')) : text;
  const [least, most] = effortTokens;
  const fits = typeof tokens === 'number' && Number.isInteger(tokens) && tokens >= least && tokens <= most;
  return fits ? tokens : undefined;
}

/** Reads `high` or `gpt-5.4=low, *=high`. */
function effortsIn(text: string): { efforts: Record<string, Effort>; unknown: string[] } {
  const efforts: Record<string, Effort> = Object.create(null);
  const unknown: string[] = [];
  for (const part of text
    .split(',')
    .map(one => one.trim())
    .filter(Boolean)) {
    const at = part.lastIndexOf('=');
    const effort = effortIn(part.slice(at + 1));
    if (effort === undefined) unknown.push(part);
    else efforts[at < 0 ? '*' : part.slice(0, at).trim()] = effort;
  }
  return { efforts, unknown };
}

/** Returns how much the settings want the model to think. Undefined if they say nothing of it. */
export const effortFor = ({ efforts }: Pick<Config, 'efforts'>, model: string): Effort | undefined =>
  efforts[model] ?? efforts['*'];

/** Parses `5`, `0.50`, `$5` or `1_000_000`. Returns NaN for anything else. */
export function amountIn(text: string): number {
  const amount = Number(text.trim().replace(/^\$/, '').replaceAll('_', '') || Number.NaN);
  return Number.isFinite(amount) && amount >= 0 ? amount : Number.NaN;
}

/** Returns those of `problems` that keep every run from starting. */
export function budgetProblems({ budget, origins }: Pick<Config, 'budget' | 'origins'>): LocalizedMessage[] {
  return budgetNames
    .filter(name => Number.isNaN(budget[name]))
    .map(name =>
      asMessage(
        sentence(
          "The limit {0} is '{1}', which is not a number, so nothing runs.",
          budgetVariables[name],
          origins[name]?.value ?? '',
        ),
        sentence('Set it to a number such as 5, or remove it.'),
      ),
    );
}

/** Returns the value of the strongest source with a value that is not empty. */
function find(field: Setting, variable: string, sources: Sources): string | undefined {
  const { env, overrides, origins } = sources;
  const own = field === 'dataDir' ? undefined : overrides[field];
  if (own) {
    origins[field] = { value: own, origin: overrides.overridesAre ?? 'flag' };
    return own;
  }
  const value = env[variable] || undefined;
  origins[field] = { value: value ?? '', ...(value ? originOf(variable, sources) : { origin: 'default' }) };
  return value;
}

function originOf(
  variable: string,
  { environment, envFile, overrides }: Sources,
): Omit<ValueInForce, 'value'> {
  if (envFileWins(variable, envFile.variables, environment)) return { origin: '.env', file: envFile.file };
  return { origin: overrides.variables?.[variable] === undefined ? 'environment' : 'setting' };
}

/** Records the origin of providers' keys and addresses, and of the proxies. A key is only shown as set. */
function noteProviderVariables(sources: Sources): void {
  for (const [name, value] of Object.entries(sources.env)) {
    const kind =
      /_(API_KEY|TOKEN|TOKEN_BEDROCK|BASE_URL|OPENAI_ENDPOINT)$|^((?:https?|all)_proxy|no_proxy|NODE_EXTRA_CA_CERTS)$/i.exec(
        name,
      );
    if (!value || !kind) continue;
    const [, ending, network] = kind;
    const shown = network
      ? value.replace(/^([a-z][\w+.-]*:\/\/)?.*@/i, '$1')
      : ending === 'BASE_URL' || ending === 'OPENAI_ENDPOINT'
        ? withoutPassword(value)
        : '(set)';
    sources.origins[name] = { value: shown, ...originOf(name, sources) };
  }
}

/** Returns an address without the parts that may be secret. */
export const withoutPassword = (url: string): string =>
  url.replace(/\/\/[^/@]*@/, '//').replace(/[?#].*$/, '');

function definedOnly(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) if (value !== undefined) result[name] = value;
  return result;
}
