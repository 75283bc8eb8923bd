/** Lists the models of each provider, with what the provider's own list says of them, kept for a day, and what is known besides. */
import type { Config } from '../config.ts';
import { answerText, fetchOut } from '../tools/fetchOut.ts';
import { wholeWindowOf, windowOf } from './contextWindow.ts';
import { keyedProviders, keyIn, listSource, type ProviderName, usualModel } from './create.ts';
import { effortsOf } from './effort.ts';
import { headersFor, listAddress } from './keys.ts';
import { keep, knownEnd, type Listed, type ListedPrice, listIn, readKept, undated } from './listedModels.ts';
import { listedPrice, ownPrices, pricedModels } from './models.ts';

export interface ProviderModels {
  name: ProviderName;
  /** True if it can be used as it is: its key is set, or it needs none and answers. */
  ready: boolean;
  /** The newest of each family first. May be incomplete; empty if none are known. */
  models: readonly string[];
  /** The same, with what is known of each. */
  facts: readonly ModelFacts[];
  /** Set if the provider was asked and has not answered: the models are those that were known before. */
  isUnanswered?: true;
}

export interface ModelFacts {
  id: string;
  /** Set for the model in use. */
  isUsed?: true;
  /** Tokens that it takes. Undefined if that is not known, as everything below. */
  window?: number | undefined;
  /** All tokens that it takes, if a prompt above `window` costs more and the settings do not ask for it. */
  whole?: number | undefined;
  price?: ListedPrice | undefined;
  /** The efforts that can be set; none for a model that does not think. */
  efforts: readonly string[];
  /** ISO date of the day from which it answers no more. */
  retires?: string | undefined;
}

type Served = Exclude<ProviderName, 'replay'>;

/** How long a server may take to list its models, in milliseconds: one nearby, and a provider that is asked once a day. */
const nearbyPatienceMs = 1_000;
const patienceMs = 5_000;
const dayMs = 86_400_000;
/** Models that are shown of one provider. */
const mostShown = 200;

/**
 * Returns all providers of the engine except the recording. Asks those with a key for their lists unless that was done within a day, or
 * `isFresh` wants it. The model in use is always among those of its provider. Never throws: a server that does not answer has the models
 * that are known, if any.
 */
export async function listModels(
  config: Config,
  isFresh = false,
  used?: { name: string; model: string },
): Promise<ProviderModels[]> {
  const withFacts = (name: Served, ready: boolean, listed: readonly Listed[]): ProviderModels =>
    describedModels(config, name, ready, listed, used?.name === name ? used.model : undefined);
  const ofCloud = (name: keyof typeof cloudSigns): ProviderModels =>
    withFacts(name, isSignedIn(config, name), [{ id: usualModel(config, name) }]);
  const keyed = keyedProviders.map(async ({ name }): Promise<ProviderModels> => {
    const { key } = keyIn(config.env, name);
    const { isOther } = listSource(config, name);
    // Azure lists what it could deploy, not what is.
    if (name === 'azure')
      return withFacts(name, Boolean(key && listSource(config, name).address), knownModels(config, name));
    if (name === 'bedrock') return ofCloud(name);
    if (!key && !isOther) return withFacts(name, false, knownModels(config, name));
    const kept = isOther ? undefined : await keptList(config, name, isFresh);
    const served = isOther ? await askAndKeep(config, name, nearbyPatienceMs) : kept?.models;
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
  return Promise.all([...keyed, ofCloud('vertex'), ollama]);
}

/** Variables that say that a cloud is meant to be asked for models. Their own lists have what could be used, not what may be. */
const cloudSigns = {
  bedrock: ['AWS_BEARER_TOKEN_BEDROCK', 'AWS_ACCESS_KEY_ID', 'AWS_PROFILE'],
  vertex: ['ANTHROPIC_VERTEX_PROJECT_ID', 'GOOGLE_APPLICATION_CREDENTIALS'],
} as const;

const isSignedIn = (config: Config, name: keyof typeof cloudSigns): boolean =>
  listSource(config, name).address !== '' && cloudSigns[name].some(variable => config.env[variable]);

/** Returns the priced models and the default one. The default may be an alias for the latest model, which has no price. */
function knownModels(config: Config, name: Served): Listed[] {
  const [priced, usual] = [pricedModels(name), usualModel(config, name)];
  const names = priced.length === 0 || priced.includes(usual) ? priced : [usual, ...priced];
  return names.map(id => ({ id }));
}

/** `listed` has the newest first, as far as that is known. */
function describedModels(
  config: Config,
  name: Served,
  ready: boolean,
  listed: readonly Listed[],
  used: string | undefined,
): ProviderModels {
  const own = ownPrices(config);
  const newest = new Map(listed.toReversed().map(one => [familyOf(one.id), one]));
  const isNewest = (one: Listed): boolean => newest.get(familyOf(one.id)) === one;
  const ordered = [...listed.filter(isNewest), ...listed.filter(one => !isNewest(one))];
  const shown = ordered.slice(0, mostShown);
  const isMissing = used !== undefined && !shown.some(({ id }) => id === used);
  const unlisted = isMissing ? [ordered.find(({ id }) => id === used) ?? { id: used }] : [];
  const facts = [...unlisted, ...shown].map(one => factsOf(config, name, one, used, own));
  return { name, ready, models: facts.map(({ id }) => id), facts };
}

/** Returns the name of a model without its version and date: `claude-opus`, `gpt-sol`. */
const familyOf = (id: string): string =>
  undated(id)
    .split(/[-:]/)
    .filter(part => !/^v?\d+(?:\.\d+)*$/.test(part))
    .join('-');

function factsOf(
  config: Config,
  name: Served,
  { id, window, efforts, retires, price }: Listed,
  used: string | undefined,
  own: ReturnType<typeof ownPrices>,
): ModelFacts {
  const named = { name, model: id, ...(window !== undefined && { contextWindow: window }) };
  const taken = windowOf(config, named);
  return {
    id,
    ...(id === used && { isUsed: true }),
    window: taken,
    whole: wholeWindowOf(named, taken),
    price: own(named).price ?? price ?? listedPrice(name, id),
    efforts: efforts ?? effortsOf(name, id),
    retires: retires ?? knownEnd(id),
  };
}

/** Returns the list that was kept less than a day ago from the same address, or a new one; an older one if the provider does not answer. */
async function keptList(
  config: Config,
  name: Served,
  isFresh: boolean,
): Promise<{ models: Listed[] | undefined; isAnswered: boolean }> {
  const kept = await readKept(listSource(config, name));
  if (kept && !isFresh && Math.abs(Date.now() - kept.at) < dayMs)
    return { models: kept.models, isAnswered: true };
  const served = await askAndKeep(config, name, patienceMs);
  if (!served || served.length === 0) return { models: kept?.models, isAnswered: false };
  return { models: served, isAnswered: true };
}

async function askAndKeep(config: Config, name: Served, patience: number): Promise<Listed[] | undefined> {
  const served = await askServer(config, name, patience);
  await keep(listSource(config, name), served ?? []);
  return served;
}

/** Returns what `GET /models` lists of models that hold conversations, the newest first. Undefined if there is no valid answer. */
async function askServer(config: Config, name: Served, patience: number): Promise<Listed[] | undefined> {
  const source = listSource(config, name);
  const { address } = source;
  try {
    const response = await fetchOut(listAddress(name, address), {
      headers: headersFor(name, keyIn(config.env, name)),
      redirect: 'manual',
      signal: AbortSignal.timeout(patience),
    });
    if (!response.ok) return undefined;
    return listIn(source, await answerText(response));
  } catch {
    return undefined;
  }
}
