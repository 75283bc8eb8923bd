/** Asks whether a provider answers, and calculates from prices.json what a round costs. */

import { beginningOf, type Sentence, sentence, spoken } from '@telos/protocol/text';
import type { Config } from '../config.ts';
import { TelosError } from '../core/errors.ts';
import type { Provider, TokenCount } from '../core/ports.ts';
import { answerText, fetchOut } from '../tools/fetchOut.ts';
import { certificateProblem, followProxies } from '../tools/wayOut.ts';
import { addressProblem, isKnown, type ProviderChoice, providerSetups } from './create.ts';
import { isAboutKey, wordsOf } from './failures.ts';
import prices from './prices.json' with { type: 'json' };

/** Returns the latest model of a family, such as `opus`, with a provider. Undefined if the provider has none that is known. */
export const latestModel = (provider: string, family: string): string | undefined =>
  pricedModels(provider).find(name => name.split(/[-/]/).includes(family));

export type Ping =
  /** `models` is empty if the server has no such list. */
  | { ok: true; milliseconds: number; models: readonly string[] }
  | { ok: false; problem: string; isRefused?: true };

/** How long a server may take to answer a ping, in milliseconds. */
const pingTimeoutMs = 10_000;

/**
 * Returns the result of asking a provider's server, or undefined for a recording or a frontend provider, which have none.
 * Throws the abort reason on abort.
 */
export async function pingProvider(
  { env }: Pick<Config, 'env'>,
  choice: ProviderChoice,
  signal: AbortSignal,
): Promise<Ping | undefined> {
  const { name, baseUrl } = choice;
  if (baseUrl === undefined || choice.broughtBy || !isKnown(name)) return undefined;
  const problem = addressProblem(baseUrl, name);
  if (problem) return { ok: false, problem: spoken(problem) };
  const { keyVariable, baseUrlVariable } = providerSetups[name];
  const key = keyVariable ? (env[keyVariable] ?? '') : '';
  const started = performance.now();
  try {
    followProxies(env);
    const response = await fetchOut(
      name === 'anthropic' ? `${baseUrl}/v1/models?limit=1000` : `${baseUrl}/models`,
      {
        headers: headersFor(name, key),
        // A key is sent only to the server that it is meant for.
        redirect: 'manual',
        signal: AbortSignal.any([signal, AbortSignal.timeout(pingTimeoutMs)]),
      },
    );
    const text = await answerText(response);
    const { status } = response;
    if (isAboutKey(status, text) || (status === 400 && name === 'gemini'))
      return {
        ok: false,
        problem: `${name} refused the key (${status}). Check ${keyVariable ?? baseUrlVariable}.`,
        isRefused: true,
      };
    if (status === 403)
      return {
        ok: false,
        problem: `${name} at ${baseUrl} refused the request (403): ${beginningOf(wordsOf(text), 300) || 'no reason given'}`,
      };
    // A gateway may pass on messages only. An answer is enough to know.
    if (!response.ok && status !== 404 && status !== 405)
      return {
        ok: false,
        problem: `${name} at ${baseUrl} answered with status ${status}. Check ${baseUrlVariable}, or try again later.`,
      };
    return { ok: true, milliseconds: Math.round(performance.now() - started), models: modelsIn(text) };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof TelosError) return { ok: false, problem: error.message };
    const certificate = certificateProblem(new URL(baseUrl).host, error);
    if (certificate) return { ok: false, problem: spoken(certificate) };
    return {
      ok: false,
      problem: `${name} did not answer at ${baseUrl} (${reasonOf(error)}). Check the network and ${baseUrlVariable}.`,
    };
  }
}

/** Returns the headers with which a provider's lists are asked for. */
export function headersFor(name: string, key: string): Record<string, string> {
  if (name === 'anthropic')
    return { 'anthropic-version': '2023-06-01', ...(key ? { 'x-api-key': key } : {}) };
  return key ? { authorization: `Bearer ${key}` } : {};
}

function modelsIn(text: string): string[] {
  try {
    const { data } = JSON.parse(text) as { data?: unknown };
    if (!Array.isArray(data)) return [];
    return data.flatMap((entry: { id?: unknown } | null) =>
      typeof entry?.id === 'string' ? [entry.id] : [],
    );
  } catch {
    return [];
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof DOMException && error.name === 'TimeoutError')
    return `not within ${pingTimeoutMs / 1000} s`;
  const { cause } = error as { cause?: { code?: unknown; message?: unknown } };
  return String(cause?.code ?? cause?.message ?? (error instanceof Error ? error.message : error));
}

/** Prices in US dollars per million tokens. `input` is for tokens neither read from a cache nor written to one. */
interface TokenPrices {
  input: number;
  output: number;
  /** If it is not known, `input` counts, than which it is never more. */
  cacheRead?: number;
  cacheWrite: number;
}

interface ModelPrice extends TokenPrices {
  /** Prices that apply instead if the whole prompt has more than `over` tokens. If they are missing, they are not known. */
  longPrompt?: { over: number } & Partial<TokenPrices>;
}

interface DatedPrice extends ModelPrice {
  /** An announced price, which applies instead from the day `from` (ISO date). */
  later?: { from: string } & ModelPrice;
}

interface PriceList {
  /** ISO date of the last comparison with the provider's own list. */
  date: string;
  models: Readonly<Record<string, DatedPrice>>;
}

const lists = new Map<string, PriceList>(Object.entries(prices.providers));

/** Returns the models of a provider whose prices are known, in the order of the list. */
export function pricedModels(provider: string): string[] {
  return Object.keys(lists.get(provider)?.models ?? {});
}

/** What a model costs in US dollars per million tokens, and the length of a prompt above which it costs more. */
export interface ListedPrice {
  input: number;
  output: number;
  above?: number;
}

/** Returns the prices of a model as a list shows them. Undefined if they are not known. */
export function listedPrice(provider: string, model: string, now = new Date()): ListedPrice | undefined {
  const price = modelPrice(provider, model, now);
  if (!price) return undefined;
  const { input, output, longPrompt } = price;
  return { input, output, ...(longPrompt && { above: longPrompt.over }) };
}

/**
 * Returns the cost of one round in US dollars: the provider's reported charge, else the price from the list. A dated
 * name (`claude-haiku-4-5-20251001`, `gpt-5.4-2026-03-05`) costs the same as its model. Ollama costs 0, because its models
 * run on the person's own machine. The price of models in its cloud is not known.
 */
export function priceOf(
  provider: string,
  model: string,
  tokens: TokenCount,
  now = new Date(),
): number | 'unknown' {
  if (tokens.charged !== undefined) return tokens.charged;
  if (provider === 'ollama') return /[:-]cloud$/.test(model) ? 'unknown' : 0;
  const price = modelPrice(provider, model, now);
  if (!price) return 'unknown';
  const prompt = tokens.inputTokens + tokens.cacheReadTokens + tokens.cacheWriteTokens;
  const { longPrompt } = price;
  const applicable = longPrompt && prompt > longPrompt.over ? longPrompt : price;
  const { input, output, cacheRead = input, cacheWrite } = applicable;
  if (input === undefined || output === undefined || cacheRead === undefined || cacheWrite === undefined)
    return 'unknown';
  const millionths =
    tokens.inputTokens * input +
    tokens.outputTokens * output +
    tokens.cacheReadTokens * cacheRead +
    tokens.cacheWriteTokens * cacheWrite;
  return millionths / 1_000_000;
}

/**
 * Returns true if what an answer costs is known before it is asked for. OpenRouter says with each answer what it charges, and a recording
 * asks no one.
 */
export const hasPrice = ({ name, model, recording }: NamedModel): boolean =>
  recording !== undefined || name === 'openrouter' || priceOf(name, model, noTokens) !== 'unknown';

/** Returns why a model is not asked whose cost no limit can be kept to, and how to go on. `limit` is the place of the limit. */
export const unpriced = ({ name, model }: NamedModel, limit: string | Sentence): Sentence[] => [
  sentence(
    'The price of {0} ({1}) is not known, so the limit of cost cannot be kept: {2}.',
    model,
    name,
    limit,
  ),
  sentence('Choose a model with a known price, or set a limit of tokens or minutes in place of that one.'),
];

/** A model that is about to be asked. */
export type NamedModel = Pick<Provider, 'name' | 'model' | 'recording'>;

const noTokens: TokenCount = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

function modelPrice(provider: string, model: string, now: Date): ModelPrice | undefined {
  const models = lists.get(provider)?.models ?? {};
  const undated = model.replace(/-(\d{8}|\d{4}-\d{2}-\d{2})$/, '');
  const name = [model, undated].find(candidate => Object.hasOwn(models, candidate));
  const price = name === undefined ? undefined : models[name];
  return price?.later && now >= new Date(price.later.from) ? price.later : price;
}
