/** What a round costs, from prices.json; a model that is not listed there costs `unknown`, never nothing. */
import type { Usage } from '../../protocol/run.ts';
import prices from './prices.json' with { type: 'json' };
import type { TokenCount } from './provider.ts';

/** US dollars for a million tokens. `input` is what neither came from a cache nor went into one. */
interface TokenPrices {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
}

interface ModelPrice extends TokenPrices {
  /** Holds instead when the whole prompt has more than `over` tokens; without prices of its own, those are not known. */
  longPrompt?: { over: number } & Partial<TokenPrices>;
}

interface DatedPrice extends ModelPrice {
  /** What is announced for later: from that day on, an ISO date, it holds instead. */
  later?: { from: string } & ModelPrice;
}

interface PriceList {
  /** ISO date at which the provider's own list was last compared. */
  date: string;
  models: Readonly<Record<string, DatedPrice>>;
}

const lists = new Map<string, PriceList>(Object.entries(prices.providers));

/** The models of a provider whose prices are known, as they stand in the list. */
export function pricedModels(provider: string): string[] {
  return Object.keys(lists.get(provider)?.models ?? {});
}

/** One round for whoever shows it or adds it up. */
export function usageOf({ charged: _charged, ...tokens }: TokenCount, cost: number | 'unknown'): Usage {
  return { ...tokens, cost };
}

/**
 * US dollars for one round: what the provider says it has charged, else by the list. A dated name (`claude-haiku-4-5-20251001`, `gpt-5.4-2026-03-05`) costs what its model costs. Ollama is 0,
 * because its models run on the person's own machine, except for those that its cloud runs, whose price is not known.
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
