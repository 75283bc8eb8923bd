/** Which models there are to choose from: asked of servers that cost nothing to ask, else those whose prices are known. */
import type { Config } from '../config.ts';
import { keyedProviders, type ProviderName, providerAddress, providerSetups } from './create.ts';
import { pricedModels } from './prices.ts';

export interface ProviderModels {
  name: ProviderName;
  /** It can be used as it is: its key is set, or it needs none and answers. */
  ready: boolean;
  /** May be incomplete; empty where nothing is known. */
  models: readonly string[];
}

/** How long a server may take to list its models, in milliseconds. */
const patienceMs = 1_000;
/** A gateway may list hundreds. */
const mostModels = 200;

/** All providers of the engine but the recording. Never throws: a server that does not answer has no models. */
export async function listModels(config: Config): Promise<ProviderModels[]> {
  const keyed = keyedProviders.map(async ({ name, keyVariable }): Promise<ProviderModels> => {
    const known = knownModels(name);
    const ready = Boolean(config.env[keyVariable]);
    if (name !== 'openai' || !config.env['OPENAI_BASE_URL']) return { name, ready, models: known };
    const served = await askServer(providerAddress(config, name), config.env[keyVariable]);
    return { name, ready: ready || served !== undefined, models: served ?? [] };
  });
  const ollama = askServer(providerAddress(config, 'ollama')).then(
    (served): ProviderModels => ({ name: 'ollama', ready: served !== undefined, models: served ?? [] }),
  );
  return Promise.all([...keyed, ollama]);
}

/** The one that is used when none is named may be a name for whatever is the latest, which has no price. */
function knownModels(name: keyof typeof providerSetups): string[] {
  const [priced, usual] = [pricedModels(name), providerSetups[name].model];
  return priced.length === 0 || priced.includes(usual) ? priced : [usual, ...priced];
}

/** The names that `GET /models` gives; undefined where nothing answers as it should. */
async function askServer(baseUrl: string, key?: string): Promise<string[] | undefined> {
  try {
    const response = await fetch(`${baseUrl}/models`, {
      signal: AbortSignal.timeout(patienceMs),
      ...(key ? { headers: { authorization: `Bearer ${key}` } } : {}),
    });
    const { data } = (await response.json()) as { data?: { id?: unknown }[] | null };
    if (!response.ok) return undefined;
    return (data ?? []).flatMap(({ id }) => (typeof id === 'string' ? [id] : [])).slice(0, mostModels);
  } catch {
    return undefined;
  }
}
