/** What a round costs, from prices.json; a model that is not listed there costs `unknown`, never nothing. */
import prices from './prices.json' with { type: 'json' };
import type { TokenCount } from './provider.ts';

/** US dollars for a million tokens. `input` is what was not read from a cache. */
export interface ModelPrice {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
}

const listed: Readonly<Record<string, Readonly<Record<string, ModelPrice>>>> = prices.providers;

/** ISO date at which the prices were looked up. */
export const pricesDate: string = prices.date;

/**
 * US dollars for these tokens. A dated name (`claude-haiku-4-5-20251001`, `gpt-4.1-2025-04-14`) costs what its model costs. Ollama is
 * 0, because its models run on the person's own machine, except for those that its cloud runs, whose price is not known.
 */
export function priceOf(provider: string, model: string, tokens: TokenCount): number | 'unknown' {
  if (provider === 'ollama') return /[:-]cloud$/.test(model) ? 'unknown' : 0;
  const price =
    listed[provider]?.[model] ?? listed[provider]?.[model.replace(/-(\d{8}|\d{4}-\d{2}-\d{2})$/, '')];
  if (!price) return 'unknown';
  const millionths =
    tokens.inputTokens * price.input +
    tokens.outputTokens * price.output +
    tokens.cacheReadTokens * price.cacheRead +
    tokens.cacheWriteTokens * price.cacheWrite;
  return millionths / 1_000_000;
}
