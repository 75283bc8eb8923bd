/** Lists the models of each provider, with what the provider's own list says of them, kept for a day, and what is known besides. */
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { effortLevels } from '../core/limits.ts';
import { writeOwn } from '../files/atomicWrite.ts';
import { loadText } from '../files/regularFile.ts';
import { answerText, fetchOut } from '../tools/fetchOut.ts';
import { windowOf } from './contextWindow.ts';
import { keyedProviders, type ProviderName, providerAddress, providerSetups, usualModel } from './create.ts';
import { isThinker } from './effort.ts';
import { headersFor, type ListedPrice, listedPrice, pricedModels } from './models.ts';

export interface ProviderModels {
  name: ProviderName;
  /** True if it can be used as it is: its key is set, or it needs none and answers. */
  ready: boolean;
  /** May be incomplete; empty if none are known. */
  models: readonly string[];
  /** The same, with what is known of each. */
  facts: readonly ModelFacts[];
  /** Set if the provider was asked and has not answered: the models are those that were known before. */
  isUnanswered?: true;
}

export interface ModelFacts {
  id: string;
  /** Tokens that it takes. Undefined if that is not known, as everything below. */
  window?: number | undefined;
  price?: ListedPrice | undefined;
  /** The efforts that can be set; none for a model that does not think. */
  efforts: readonly string[];
  /** ISO date of the day from which it answers no more. */
  retires?: string | undefined;
}

/** What a provider's list says of one model, as it is kept. */
interface Listed {
  id: string;
  created?: number;
  window?: number;
  efforts?: string[];
  retires?: string;
  price?: ListedPrice;
}

type Keyed = Exclude<ProviderName, 'replay'>;

/** How long a server may take to list its models, in milliseconds: one nearby, and a provider that is asked once a day. */
const nearbyPatienceMs = 1_000;
const patienceMs = 5_000;
const dayMs = 86_400_000;
/** Upper bounds of a list: models that are shown, and characters that are read. A gateway may have hundreds. */
const mostModels = 200;
const mostCharacters = 8_000_000;

/** Days on which models end whose providers' lists do not say it. */
const retiring: Readonly<Record<string, string>> = {
  'claude-sonnet-4-5': '2026-11-30',
  'gemini-2.5-pro': '2026-12-01',
  'gemini-2.5-flash': '2026-12-01',
  'gpt-5': '2026-12-11',
  o3: '2026-12-11',
  'gpt-4o': '2027-01-14',
  'gpt-4.1': '2027-01-14',
};

/**
 * Returns all providers of the engine except the recording. Asks those with a key for their lists unless that was done within a day, or
 * `isFresh` wants it. Never throws: a server that does not answer has the models that are known, if any.
 */
export async function listModels(config: Config, isFresh = false): Promise<ProviderModels[]> {
  const keyed = keyedProviders.map(async ({ name, keyVariable }): Promise<ProviderModels> => {
    const key = config.env[keyVariable];
    const isOther = name === 'openai' && Boolean(config.env['OPENAI_BASE_URL']);
    if (!key && !isOther) return withFacts(name, false, knownModels(config, name));
    const kept = isOther ? undefined : await keptList(config, name, isFresh);
    const served = isOther ? await askServer(config, name, nearbyPatienceMs) : kept?.models;
    const isUnanswered = isOther ? served === undefined : kept?.isAnswered !== true;
    return {
      ...withFacts(
        name,
        Boolean(key) || served !== undefined,
        served ?? (isOther ? [] : knownModels(config, name)),
      ),
      ...(isUnanswered && { isUnanswered }),
    };
  });
  const ollama = askServer(config, 'ollama', nearbyPatienceMs).then(served =>
    withFacts('ollama', served !== undefined, served ?? []),
  );
  return Promise.all([...keyed, ollama]);
}

/** Returns the priced models and the default one. The default may be an alias for the latest model, which has no price. */
function knownModels(config: Config, name: Keyed): Listed[] {
  const [priced, usual] = [pricedModels(name), usualModel(config, name)];
  const names = priced.length === 0 || priced.includes(usual) ? priced : [usual, ...priced];
  return names.map(id => ({ id }));
}

function withFacts(name: Keyed, ready: boolean, listed: readonly Listed[]): ProviderModels {
  const facts = listed.map(({ id, window, efforts, retires, price }): ModelFacts => {
    const undated = id.replace(/-(?:\d{8}|\d{4}-\d{2}-\d{2})$/, '');
    return {
      id,
      window: window ?? windowOf({ contextWindow: undefined }, { name, model: id }),
      price: price ?? listedPrice(name, id),
      efforts: efforts ?? (isThinker(name, id) ? effortLevels : []),
      retires: retires ?? retiring[undated],
    };
  });
  return { name, ready, models: facts.map(({ id }) => id), facts };
}

/** Returns the list that was kept less than a day ago from the same address, or a new one; an older one if the provider does not answer. */
async function keptList(
  config: Config,
  name: Keyed,
  isFresh: boolean,
): Promise<{ models: Listed[] | undefined; isAnswered: boolean }> {
  const file = join(config.dataDir, 'models', `${name}.json`);
  const address = providerAddress(config, name);
  const kept = await readKept(file, address);
  if (kept && !isFresh && Math.abs(Date.now() - kept.at) < dayMs)
    return { models: kept.models, isAnswered: true };
  const served = await askServer(config, name, patienceMs);
  if (!served || served.length === 0) return { models: kept?.models, isAnswered: false };
  await writeOwn(file, JSON.stringify({ address, at: Date.now(), models: served })).catch(() => undefined);
  return { models: served, isAnswered: true };
}

async function readKept(
  file: string,
  address: string,
): Promise<{ at: number; models: Listed[] } | undefined> {
  try {
    const kept = JSON.parse(await loadText(file)) as { address?: unknown; at?: unknown; models?: Listed[] };
    const isUsable =
      kept.address === address &&
      typeof kept.at === 'number' &&
      Array.isArray(kept.models) &&
      kept.models.every(one => typeof one?.id === 'string');
    return isUsable ? { at: kept.at as number, models: kept.models! } : undefined;
  } catch {
    return undefined;
  }
}

/** Returns what `GET /models` lists of models that hold conversations, the newest first. Undefined if there is no valid answer. */
async function askServer(config: Config, name: Keyed, patience: number): Promise<Listed[] | undefined> {
  const { keyVariable } = providerSetups[name];
  const address = providerAddress(config, name);
  try {
    const response = await fetchOut(
      name === 'anthropic' ? `${address}/v1/models?limit=1000` : `${address}/models`,
      {
        headers: headersFor(name, (keyVariable && config.env[keyVariable]) || ''),
        redirect: 'manual',
        signal: AbortSignal.timeout(patience),
      },
    );
    if (!response.ok) return undefined;
    const text = await answerText(response);
    if (text.length > mostCharacters) return undefined;
    const { data } = JSON.parse(text) as { data?: unknown };
    const entries = (Array.isArray(data) ? data : []).flatMap(entry => listedIn(entry));
    const own =
      name === 'openai' && config.env['OPENAI_BASE_URL'] ? entries : entries.filter(isForWords(name));
    return own.sort((one, other) => (other.created ?? 0) - (one.created ?? 0)).slice(0, mostModels);
  } catch {
    return undefined;
  }
}

/** The lists of these makers have models for sound, pictures and vectors too, without saying which. */
const isForWords =
  (name: Keyed) =>
  ({ id }: Listed): boolean => {
    if (/embed|image|imagen|audio|realtime|tts|transcribe|whisper|moderation|veo|live|instruct/.test(id))
      return name !== 'openai' && name !== 'gemini';
    if (name === 'openai') return /^(?:gpt-|o\d|chatgpt-|codex-)/.test(id);
    return name !== 'gemini' || id.startsWith('gemini-');
  };

/** Reads what is there of one entry, in the words of Anthropic, OpenAI and OpenRouter. */
function listedIn(entry: unknown): Listed[] {
  const one = (entry ?? {}) as Record<string, unknown>;
  if (typeof one['id'] !== 'string' || one['lifecycle'] === 'retired') return [];
  const tokens = one['max_input_tokens'] ?? one['context_length'];
  const ends = one['retires_at'] ?? one['shutdown_date'] ?? one['expiration_date'];
  const created =
    typeof one['created'] === 'number' ? one['created'] : Date.parse(String(one['created_at'])) / 1000;
  const efforts = effortsIn(one['capabilities']);
  const price = priceIn(one['pricing']);
  return [
    {
      id: one['id'].replace(/^models\//, ''),
      ...(Number.isFinite(created) && { created }),
      // A list that says nonsense says nothing.
      ...(Number.isInteger(tokens) && Number(tokens) >= 1_000 && Number(tokens) <= 1e8
        ? { window: Number(tokens) }
        : {}),
      ...(efforts && { efforts }),
      ...(typeof ends === 'string' && /^\d{4}-\d{2}-\d{2}/.test(ends) && { retires: ends.slice(0, 10) }),
      ...(price && { price }),
    },
  ];
}

function effortsIn(capabilities: unknown): string[] | undefined {
  const { effort } = (capabilities ?? {}) as { effort?: Record<string, { supported?: unknown } | null> };
  if (typeof effort !== 'object' || effort === null) return undefined;
  return ['low', 'medium', 'high', 'xhigh', 'max'].filter(level => effort[level]?.supported === true);
}

/** Of OpenRouter, in dollars for one token as text. A price below 0 means that it depends. */
function priceIn(pricing: unknown): ListedPrice | undefined {
  const { prompt, completion } = (pricing ?? {}) as { prompt?: unknown; completion?: unknown };
  const [input, output] = [prompt, completion].map(one =>
    typeof one === 'string' && one !== '' ? Math.round(Number(one) * 1e10) / 1e4 : Number.NaN,
  );
  return input! >= 0 && output! >= 0 ? { input: input!, output: output! } : undefined;
}
