/** Calculates the cost of a round from prices.json. A model that is not listed there costs `unknown`, never nothing. */
import type { Usage } from '../../protocol/run.ts';
import prices from './prices.json' with { type: 'json' };
import type { TokenCount } from './provider.ts';

/** Prices in US dollars per million tokens. `input` is for tokens neither read from a cache nor written to one. */
interface TokenPrices {
  input: number;
  output: number;
  cacheRead: number;
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

/** Returns the usage of one round: its token counts and its cost. */
export function usageOf({ charged: _charged, ...tokens }: TokenCount, cost: number | 'unknown'): Usage {
  return { ...tokens, cost };
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
  const { input, output, cacheRead, cacheWrite } = applicable;
  if (input === undefined || output === undefined || cacheRead === undefined || cacheWrite === undefined) {
    return 'unknown';
  }
  const millionths =
    tokens.inputTokens * input +
    tokens.outputTokens * output +
    tokens.cacheReadTokens * cacheRead +
    tokens.cacheWriteTokens * cacheWrite;
  return millionths / 1_000_000;
}

function modelPrice(provider: string, model: string, now: Date): ModelPrice | undefined {
  const models = lists.get(provider)?.models ?? {};
  const undated = model.replace(/-(\d{8}|\d{4}-\d{2}-\d{2})$/, '');
  const name = [model, undated].find(candidate => Object.hasOwn(models, candidate));
  const price = name === undefined ? undefined : models[name];
  return price?.later && now >= new Date(price.later.from) ? price.later : price;
}
