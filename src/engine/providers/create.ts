/** Chooses the model for a run from the settings, and creates its provider. No SDK is loaded before that. */

import { type Sentence, sentence, spoken } from '@telos/protocol/text';
import type { Config } from '../config.ts';
import { TelosError } from '../core/errors.ts';
import type { Provider } from '../core/ports.ts';
import { fetchOut } from '../tools/fetchOut.ts';
import { followProxies } from '../tools/wayOut.ts';
import { bedrockAddress, vertexAddress } from './cloudPlaces.ts';
import type { TurnLimits } from './failures.ts';
import type { ListSource } from './listedModels.ts';

export type ProviderName =
  | 'anthropic'
  | 'openai'
  | 'gemini'
  | 'openrouter'
  | 'azure'
  | 'bedrock'
  | 'vertex'
  | 'ollama'
  | 'replay';

/** Models that only a frontend can reach, such as those of an editor. The frontend passes them when it opens Telos. */
export interface FrontendProvider {
  /** Resolves with the model that is used if none is named, or undefined while there is none. */
  model(): Promise<string | undefined>;
  /** Throws TelosError `config` if there is no such model. */
  create(model?: string): Promise<Provider>;
}

/** Frontend providers by the name under which each is chosen. */
export type FrontendProviders = Readonly<Record<string, FrontendProvider>>;

export interface ProviderChoice {
  /** One of `providerNames`, or the name of a frontend provider. */
  name: string;
  model: string;
  /** A short sentence for the person. */
  why: string;
  /** The same, for a frontend that translates. */
  sentences?: readonly Sentence[];
  /** True if a recorded run answers instead of a model. */
  recording: boolean;
  /** True if nothing is set up, so only skills that bring a recording can run. */
  isUnset?: boolean;
  /** Address of the model's server, without a trailing slash. Missing for a recording. */
  baseUrl?: string;
  /** Set if the provider comes from the frontend. */
  broughtBy?: FrontendProvider;
  pace?: Pace;
}

/** Returns the provider, whose calls wait for their turn. */
export type Pace = (provider: Provider) => Provider;

interface ProviderSetup {
  model: string;
  /** The model in its place unless `TELOS_DEFAULTS` is `specified`. For Ollama it is the first that is installed and calls tools. */
  currentModel?: string;
  /** Empty if each person has one of their own. */
  baseUrl: string;
  /** Environment variable that sets another address. */
  baseUrlVariable: string;
  /** Environment variable of its key; undefined if it needs none. */
  keyVariable: string | undefined;
  /** Set if it takes other sign-ins than its key. */
  isSignedIn?: true;
  /** Environment variable without which it has no address, and what it names. */
  place?: { variable: string; example: string };
}

/** Providers in the order in which their keys are looked for. */
export const providerSetups: Readonly<Record<Exclude<ProviderName, 'replay'>, ProviderSetup>> = {
  anthropic: {
    model: 'claude-haiku-4-5',
    currentModel: 'claude-haiku-5-5',
    baseUrl: 'https://api.anthropic.com',
    baseUrlVariable: 'ANTHROPIC_BASE_URL',
    keyVariable: 'ANTHROPIC_API_KEY',
  },
  openai: {
    model: 'gpt-5.4-mini',
    currentModel: 'gpt-6-luna',
    baseUrl: 'https://api.openai.com/v1',
    baseUrlVariable: 'OPENAI_BASE_URL',
    keyVariable: 'OPENAI_API_KEY',
  },
  gemini: {
    model: 'gemini-flash-latest',
    currentModel: 'gemini-3.8-flash',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
    baseUrlVariable: 'GEMINI_BASE_URL',
    keyVariable: 'GEMINI_API_KEY',
  },
  openrouter: {
    model: 'anthropic/claude-haiku-4.5',
    currentModel: 'anthropic/claude-haiku-5.5',
    baseUrl: 'https://openrouter.ai/api/v1',
    baseUrlVariable: 'OPENROUTER_BASE_URL',
    keyVariable: 'OPENROUTER_API_KEY',
  },
  azure: {
    // A deployment, which most people name after its model.
    model: 'gpt-5.4-mini',
    currentModel: 'gpt-6-luna',
    baseUrl: '',
    baseUrlVariable: 'AZURE_OPENAI_ENDPOINT',
    keyVariable: 'AZURE_OPENAI_API_KEY',
  },
  bedrock: {
    model: 'global.anthropic.claude-haiku-4-5-20251001-v1:0',
    currentModel: 'global.anthropic.claude-haiku-5-5',
    baseUrl: '',
    baseUrlVariable: 'AWS_ENDPOINT_URL_BEDROCK_RUNTIME',
    keyVariable: 'AWS_BEARER_TOKEN_BEDROCK',
    isSignedIn: true,
    place: { variable: 'AWS_REGION', example: 'us-east-1' },
  },
  vertex: {
    model: 'claude-haiku-4-5@20251001',
    currentModel: 'claude-haiku-5-5',
    baseUrl: '',
    baseUrlVariable: 'ANTHROPIC_VERTEX_BASE_URL',
    keyVariable: undefined,
    isSignedIn: true,
    place: { variable: 'ANTHROPIC_VERTEX_PROJECT_ID', example: 'my-project' },
  },
  ollama: {
    model: 'llama3.1',
    baseUrl: 'http://localhost:11434/v1',
    baseUrlVariable: 'OLLAMA_BASE_URL',
    keyVariable: undefined,
  },
};

/** What opens a provider's server. */
export interface ProviderKey {
  /** Empty if there is none. */
  key: string;
  /** True for a token that gateways to Anthropic's models take in place of a key. */
  isToken?: true;
}

/** Returns the key of a provider. A gateway's token counts where no key is set. */
export function keyIn(env: Config['env'], name: keyof typeof providerSetups): ProviderKey {
  const { keyVariable } = providerSetups[name];
  const key = (keyVariable && env[keyVariable]) || '';
  const token = name === 'anthropic' ? env['ANTHROPIC_AUTH_TOKEN'] : undefined;
  return key || !token ? { key } : { key: token, isToken: true };
}

/** Returns the model of a provider where none is named. */
export function usualModel(
  { defaults }: Pick<Config, 'defaults'>,
  name: keyof typeof providerSetups,
): string {
  const { model, currentModel } = providerSetups[name];
  return (defaults === 'current' && currentModel) || model;
}

export const providerNames = [...Object.keys(providerSetups), 'replay'] as readonly ProviderName[];

/** Names of the models of each maker. */
const families: Readonly<Record<string, RegExp>> = {
  anthropic: /^claude-/,
  openai: /^(?:gpt-|o\d|chatgpt-|codex-)/,
  gemini: /^gemini-/,
  openrouter: /^[\w.-]+\//,
};

/** Returns true if a model that a stranger names is one of the provider that is chosen, by its name. */
export const isModelOf = ({ name, baseUrl }: ProviderChoice, model: string): boolean =>
  // Other servers with OpenAI's API have other models.
  families[name]?.test(model) === true && (name !== 'openai' || baseUrl === providerSetups.openai.baseUrl);

/** The providers that need a key, in the order in which their keys are looked for. */
export const keyedProviders: readonly { name: Exclude<ProviderName, 'replay'>; keyVariable: string }[] =
  providerNames.flatMap(name => {
    const keyVariable = name === 'replay' ? undefined : providerSetups[name].keyVariable;
    return name === 'replay' || !keyVariable ? [] : [{ name, keyVariable }];
  });

/** How long Ollama may take to answer, in milliseconds. */
const ollamaPatienceMs = 300;

/**
 * Returns the choice for the next run. A provider that is set comes first, then a recording that is set, then the first
 * provider with a key. After these come OpenAI if its base URL is set, and Ollama if it answers. The last are a frontend's
 * provider with a model and the skills' recordings. Throws TelosError `config` for an unknown name or a named provider
 * without a model. Throws TelosError `auth` for a named provider without its key.
 */
export async function chooseProvider(
  config: Config,
  brought: FrontendProviders = {},
): Promise<ProviderChoice> {
  if (config.provider) return chooseNamed(config, config.provider, brought);
  if (config.replayFile) return recordingChoice(sentence('A recording is set.'));
  const keyed = keyedProviders.find(
    ({ name }) => keyIn(config.env, name).key && providerAddress(config, name),
  );
  if (keyed) {
    const { isToken } = keyIn(config.env, keyed.name);
    const variable = isToken ? 'ANTHROPIC_AUTH_TOKEN' : keyed.keyVariable;
    return choiceOf(config, keyed.name, sentence('{0} is set.', variable));
  }
  if (config.env['OPENAI_BASE_URL'])
    return choiceOf(config, 'openai', sentence('{0} is set.', 'OPENAI_BASE_URL'));
  if (await ollamaAnswers(config))
    return choiceOf(config, 'ollama', sentence('No key is set, and Ollama is running.'));
  for (const [name, provider] of Object.entries(brought)) {
    const why = sentence('No key is set and Ollama is not running, but {0} has a model.', name);
    const choice = await chooseBrought(config, name, provider, why);
    if (choice) return choice;
  }
  const why = sentence(
    'No key is set and Ollama is not running, so only skills with a recorded run can answer.',
  );
  return { ...recordingChoice(why), isUnset: true };
}

/** Keeps the choice until the settings are read again. */
export class Models {
  readonly #config: Config;
  readonly #brought: FrontendProviders | undefined;
  readonly #pace: Pace | undefined;
  #choice: Promise<ProviderChoice> | undefined;

  constructor(config: Config, brought?: FrontendProviders, pace?: Pace) {
    followProxies(config.env);
    this.#config = config;
    this.#brought = brought;
    this.#pace = pace;
  }

  /**
   * Returns the choice for the next run. `wanted` is a model in place of the one that is set: `provider:model`, or a model of that
   * provider. A recording that is set answers all the same. Throws the errors of `chooseProvider`.
   */
  async choice(wanted?: string): Promise<ProviderChoice> {
    this.#choice ??= this.#chosen(this.#config);
    const usual = await this.#choice;
    if (wanted === undefined || usual.recording) return usual;
    const [, prefix = '', rest = ''] = /^([\w-]+):(.+)$/s.exec(wanted) ?? [];
    const isProvider =
      Object.hasOwn(this.#brought ?? {}, prefix) || providerNames.some(one => one === prefix);
    const [provider, model] = isProvider ? [prefix, rest] : [usual.name, wanted];
    return this.#chosen({ ...this.#config, provider, model });
  }

  async #chosen(config: Config): Promise<ProviderChoice> {
    const choice = await chooseProvider(config, this.#brought);
    return this.#pace ? { ...choice, pace: this.#pace } : choice;
  }

  refresh(): void {
    this.#choice = undefined;
  }
}

async function chooseNamed(
  config: Config,
  wanted: string,
  brought: FrontendProviders,
): Promise<ProviderChoice> {
  const provider = Object.hasOwn(brought, wanted) ? brought[wanted] : undefined;
  if (provider) {
    const choice = await chooseBrought(config, wanted, provider, setTo(wanted));
    if (choice) return choice;
    const why = sentence('The provider {0} has no model at the moment.', wanted);
    const next = sentence('Install the extension that provides its models, or sign in to it.');
    throw new TelosError('config', [why, next], { remedy: { kind: 'choose_model' } });
  }
  const name = knownName(wanted, brought);
  if (name === 'replay') return recordingChoice(setTo(name));
  keyOf(config, name);
  return choiceOf(config, name, setTo(name));
}

const because = (why: Sentence): Pick<ProviderChoice, 'why' | 'sentences'> => ({
  why: spoken([why]),
  sentences: [why],
});

const setTo = (name: string): Sentence => sentence('The provider is set to {0}.', name);

/** Returns undefined if the provider has no model. A model that the person names counts only if the provider has any. */
async function chooseBrought(
  config: Config,
  name: string,
  provider: FrontendProvider,
  why: Sentence,
): Promise<ProviderChoice | undefined> {
  const usual = await provider.model();
  if (usual === undefined) return undefined;
  return { name, model: config.model ?? usual, ...because(why), recording: false, broughtBy: provider };
}

function knownName(wanted: string, brought: FrontendProviders = {}): ProviderName {
  const name = providerNames.find(known => known === wanted.trim().toLowerCase());
  if (name) return name;
  const known = [...providerNames, ...Object.keys(brought)].join(', ');
  const why =
    wanted === 'vscode'
      ? sentence('The provider vscode is only available in VS Code.')
      : sentence("The provider '{0}' is unknown.", wanted);
  throw new TelosError('config', [why, sentence('Known providers: {0}.', known)], {
    remedy: { kind: 'choose_model' },
  });
}

async function choiceOf(config: Config, name: ProviderName, why: Sentence): Promise<ProviderChoice> {
  if (name === 'replay') return recordingChoice(why);
  const installed =
    name === 'ollama' && config.model === undefined && config.defaults === 'current'
      ? await (await import('./ollama.ts')).firstWithTools(providerAddress(config, name))
      : undefined;
  const model = config.model ?? installed ?? usualModel(config, name);
  return { name, model, ...because(why), recording: false, baseUrl: providerAddress(config, name) };
}

/** Returns a provider's address without a trailing slash, and with or without `/v1` as its requests need it. */
export function providerAddress(config: Pick<Config, 'env'>, name: Exclude<ProviderName, 'replay'>): string {
  if (name === 'vertex') return vertexAddress(config.env);
  const { baseUrl, baseUrlVariable } = providerSetups[name];
  const address = (config.env[baseUrlVariable]?.trim() || baseUrl).replace(/\/+$/, '');
  // Both makers write their address the other way elsewhere, so people do too.
  if (name === 'anthropic') return address.replace(/(?:\/v1)?\/messages$|\/v1$/, '');
  if (name === 'azure') return address.replace(/\/openai(?:\/v1)?$/, '');
  if (name === 'bedrock') return bedrockAddress(config.env, address);
  const base = address.replace(/\/(?:chat\/completions|responses)$/, '');
  return (name === 'ollama' || name === 'openai') && /^https?:\/\/[^/]+$/i.test(base) ? `${base}/v1` : base;
}

/** Returns whose list of models it is that this provider has. */
export const listSource = (
  config: Pick<Config, 'env' | 'dataDir'>,
  name: keyof typeof providerSetups,
): ListSource => ({
  dataDir: config.dataDir,
  name,
  address: providerAddress(config, name),
  isOther: name === 'openai' && Boolean(config.env['OPENAI_BASE_URL']),
});

/** Returns why no request can be sent to an address, and what to do about it; undefined if one can. */
export function addressProblem(
  address: string,
  name: Exclude<ProviderName, 'replay'>,
): readonly Sentence[] | undefined {
  const { baseUrlVariable, place } = providerSetups[name];
  if (address === '' && place)
    return [
      sentence('{0} is not set.', place.variable),
      sentence('Set it, for example to {0}.', place.example),
    ];
  if (/^[^/]*\/*[^/]*@/.test(address))
    return [
      sentence('{0} contains a user name or password, so no request can be sent.', baseUrlVariable),
      sentence('Remove everything before the @.'),
    ];
  const next = sentence('Set it to an address that starts with http:// or https://.');
  if (address === '') return [sentence('{0} is not set.', baseUrlVariable), next];
  if (/^https?:\/\/./i.test(address) && URL.canParse(address)) return undefined;
  return [sentence("{0} is '{1}', which is not an address.", baseUrlVariable, address), next];
}

/** Returns the provider's address. Throws TelosError `config` if no request can be sent to it. */
function usableAddress(config: Config, name: Exclude<ProviderName, 'replay'>): string {
  const address = providerAddress(config, name);
  const problem = addressProblem(address, name);
  if (problem) throw new TelosError('config', problem);
  return address;
}

function recordingChoice(why: Sentence): ProviderChoice {
  return { name: 'replay', model: 'recording', ...because(why), recording: true };
}

/** More than anybody waits for a model, in minutes. */
const mostPatience = 1440;

/** Returns the minutes for which a model may be silent. Undefined if none are set. Throws TelosError `config` for anything but a number. */
function patienceIn({ env }: Config): number | undefined {
  const written = env['TELOS_PATIENCE']?.trim();
  if (!written) return undefined;
  const minutes = Number(written);
  if (minutes > 0) return Math.min(minutes, mostPatience);
  throw new TelosError('config', [
    sentence("TELOS_PATIENCE is '{0}', which is not a number of minutes.", written),
    sentence('Set it to the minutes for which a model may be silent, such as 30.'),
  ]);
}

function keyOf(config: Config, name: Exclude<ProviderName, 'replay'>): ProviderKey {
  const { keyVariable, isSignedIn } = providerSetups[name];
  const own = keyIn(config.env, name);
  // A server other than OpenAI's own may need no key.
  if (!keyVariable || own.key || isSignedIn || (name === 'openai' && config.env['OPENAI_BASE_URL']))
    return own;
  throw new TelosError('auth', [sentence('The provider {0} has no key.', name)], {
    remedy: { kind: 'set_key', variable: keyVariable },
  });
}

async function ollamaAnswers(config: Config): Promise<boolean> {
  try {
    const response = await fetchOut(`${providerAddress(config, 'ollama')}/models`, {
      signal: AbortSignal.timeout(ollamaPatienceMs),
    });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false; // no server, or one that is not Ollama
  }
}

/**
 * Creates the chosen provider. `skillDir` is the skill that will run. It decides which recording is played, so that the
 * recording's model and date are known at once. `step` is the key of a plan's step: of a folder of recordings, the one of that name
 * is played. Throws TelosError `auth` without a key, and `config` for a recording that cannot be read.
 */
export async function createProvider(
  config: Config,
  choice: ProviderChoice,
  skillDir?: string,
  step?: string,
): Promise<Provider> {
  const provider = await providerOf(config, choice, skillDir, step);
  if (provider.name === 'replay') return provider;
  const [{ mediaAware }, { wellSpoken }, { withoutRefusedParts }, { asListed }, { ownPrices }] =
    await Promise.all([
      import('./media.ts'),
      import('./provider.ts'),
      import('./refusedParts.ts'),
      import('./listedModels.ts'),
      import('./models.ts'),
    ]);
  const { name } = provider;
  const address = isKnown(name) ? providerAddress(config, name) : '';
  const plain = withoutRefusedParts(wellSpoken(provider));
  const own = ownPrices(config)(plain);
  const priced = {
    ...plain,
    ...(own.price && { price: own.price }),
    ...(own.problem && { notice: [plain.notice ?? [], spoken(own.problem)].flat().join(' ') }),
  };
  const listed = isKnown(name) ? await asListed(listSource(config, name), priced) : priced;
  const aware = mediaAware(listed, address);
  return choice.pace?.(aware) ?? aware;
}

/** Returns true for a provider of the engine that has a server. */
export const isKnown = (name: string): name is keyof typeof providerSetups =>
  Object.hasOwn(providerSetups, name);

async function providerOf(
  config: Config,
  choice: ProviderChoice,
  skillDir: string | undefined,
  step: string | undefined,
): Promise<Provider> {
  if (choice.broughtBy) return choice.broughtBy.create(choice.model);
  const name = knownName(choice.name);
  const limitsOf = async (baseUrl: string): Promise<TurnLimits> =>
    (await import('./failures.ts')).limitsAt(baseUrl, patienceIn(config));
  switch (name) {
    case 'replay': {
      const { openReplay, openSkillReplay, openStepReplay, replayBySkill } = await import('./recording.ts');
      if (config.replayFile && step !== undefined) return openStepReplay(config.replayFile, step);
      if (config.replayFile) return openReplay(config.replayFile);
      return skillDir ? openSkillReplay(skillDir) : replayBySkill();
    }
    case 'anthropic': {
      const { key: apiKey, isToken } = keyOf(config, name);
      const { createAnthropic } = await import('./anthropic.ts');
      const baseUrl = usableAddress(config, name);
      const limits = await limitsOf(baseUrl);
      return createAnthropic({ apiKey, isToken, model: choice.model, baseUrl, limits });
    }
    case 'bedrock': {
      const baseUrl = usableAddress(config, name);
      const [{ createAnthropic }, { bedrockHouse }] = await Promise.all([
        import('./anthropic.ts'),
        import('./bedrock.ts'),
      ]);
      const [{ key: apiKey }, limits] = [keyOf(config, name), await limitsOf(baseUrl)];
      return createAnthropic({
        apiKey,
        model: choice.model,
        baseUrl,
        limits,
        house: bedrockHouse(config),
      });
    }
    case 'vertex': {
      const baseUrl = usableAddress(config, name);
      const { vertexGemini, vertexHouse } = await import('./vertex.ts');
      const set = { apiKey: '', model: choice.model, baseUrl, limits: await limitsOf(baseUrl) };
      if (/^gemini-/.test(choice.model)) {
        const { createGemini } = await import('./gemini.ts');
        return createGemini({ ...set, baseUrl: `${baseUrl}/publishers/google`, house: vertexGemini(config) });
      }
      const { createAnthropic } = await import('./anthropic.ts');
      return createAnthropic({ ...set, house: vertexHouse(config) });
    }
    default: {
      const { key: apiKey } = keyOf(config, name);
      const { keyVariable, baseUrlVariable } = providerSetups[name];
      const baseUrl = usableAddress(config, name);
      const { model } = choice;
      const limits = await limitsOf(baseUrl);
      if (name === 'openai' && isNative(config, baseUrl, openaiHosts, model)) {
        const { createOpenaiResponses } = await import('./openaiResponses.ts');
        return createOpenaiResponses({ apiKey, model, baseUrl, limits });
      }
      if (name === 'gemini' && isNative(config, baseUrl, geminiHosts, model)) {
        const { createGemini } = await import('./gemini.ts');
        return createGemini({ apiKey, model, baseUrl, limits });
      }
      const { createOpenaiCompatible } = await import('./openai.ts');
      return createOpenaiCompatible({
        name,
        apiKey,
        keyVariable,
        model,
        baseUrl,
        baseUrlVariable,
        limits,
        apiVersion: config.env['OPENAI_API_VERSION'],
      });
    }
  }
}

const openaiHosts = /^(?:[\w-]+\.)?api\.openai\.com$/;
const geminiHosts = /^generativelanguage\.googleapis\.com$/;

/** Models that only chat completions know. */
const chatOnly = /-(?:search|audio)-preview\b/;

/** Returns true if the maker's own format is spoken: by the address and the model, unless the settings say it. */
function isNative({ protocol }: Config, baseUrl: string, hosts: RegExp, model: string): boolean {
  if (protocol !== 'auto') return protocol === 'native';
  return hosts.test(new URL(baseUrl).hostname) && !chatOnly.test(model);
}
