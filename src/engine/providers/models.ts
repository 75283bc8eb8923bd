/** Knows what a round costs: by the user's own prices, else by those of prices.json. */

import { join } from 'node:path';
import { type Sentence, sentence } from '@telos/protocol/text';
import type { Config } from '../config.ts';
import type { Provider, TokenCount, TokenPrices } from '../core/ports.ts';
import { readToml, tableOf } from '../files/settingsFile.ts';
import type { ListedPrice } from './listedModels.ts';
import prices from './prices.json' with { type: 'json' };

/** Returns the latest model of a family, such as `opus`, with a provider. Undefined if the provider has none that is known. */
export const latestModel = (provider: string, family: string): string | undefined =>
  pricedModels(provider).find(name => name.split(/[-/]/).includes(family));

interface ModelPrice extends TokenPrices {
  /** Prices that apply instead if the whole prompt has more than `over` tokens. */
  longPrompt?: { over: number } & TokenPrices;
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
  return amountOf(longPrompt && prompt > longPrompt.over ? longPrompt : price, tokens);
}

function amountOf(
  { input, output, cacheRead = input, cacheWrite = input }: TokenPrices,
  tokens: TokenCount,
): number {
  const millionths =
    tokens.inputTokens * input +
    tokens.outputTokens * output +
    tokens.cacheReadTokens * cacheRead +
    tokens.cacheWriteTokens * cacheWrite;
  return millionths / 1_000_000;
}

/** Returns the cost of one round of a model, for which the user may have set a price. */
export const costOf = (provider: NamedModel, tokens: TokenCount): number | 'unknown' =>
  provider.price && tokens.charged === undefined
    ? amountOf(provider.price, tokens)
    : priceOf(provider.name, provider.model, tokens);

/**
 * Returns true if what an answer costs is known before it is asked for. OpenRouter says with each answer what it charges, and a recording
 * asks no one.
 */
export const hasPrice = (next: NamedModel): boolean =>
  next.recording !== undefined || next.name === 'openrouter' || costOf(next, noTokens) !== 'unknown';

/** Returns why a model is not asked whose cost no limit can be kept to, and how to go on. `limit` is the place of the limit. */
export const unpriced = ({ name, model }: NamedModel, limit: string | Sentence): Sentence[] => [
  sentence(
    'The price of {0} ({1}) is not known, so the limit of cost cannot be kept: {2}.',
    model,
    name,
    limit,
  ),
  sentence(
    'Choose another model, write its price under [prices] in config.toml or in telos.prices, or limit tokens or minutes instead.',
  ),
];

/** A model that is about to be asked. */
export type NamedModel = Pick<Provider, 'name' | 'model' | 'recording' | 'price'>;

const noTokens: TokenCount = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

function modelPrice(provider: string, model: string, now: Date): ModelPrice | undefined {
  const models = lists.get(provider)?.models ?? {};
  const undated = model.replace(/-(\d{8}|\d{4}-\d{2}-\d{2})$/, '');
  const name = [model, undated].find(candidate => Object.hasOwn(models, candidate));
  const price = name === undefined ? undefined : models[name];
  return price?.later && now >= new Date(price.later.from) ? price.later : price;
}

/** What the user has written of a price: it, or why it cannot be read. */
export interface OwnPrice {
  price?: TokenPrices;
  problem?: readonly Sentence[];
}

/** A price that no model has, in US dollars per million tokens. */
const tooDear = 1_000_000;
const priceKeys = ['input', 'output', 'cache_read', 'cache_write'];

/**
 * Returns what tells the user's own price of a model: of the setting, else under `[prices]` in config.toml, by its name or as
 * `provider:model`. Its answer is empty if there is none.
 */
export function ownPrices({
  configDir,
  prices: ofSetting,
}: Pick<Config, 'configDir' | 'prices'>): (model: Pick<Provider, 'name' | 'model'>) => OwnPrice {
  const file = join(configDir, 'config.toml');
  const { table, diagnostics } = readToml(file, 'config', []);
  const [broken] = diagnostics;
  const places: readonly [string | Sentence, object][] = [
    [sentence('the setting {0}', 'telos.prices'), ofSetting],
    [file, tableOf(table, 'prices') ?? {}],
  ];
  return ({ name, model }) => {
    for (const [place, written] of places)
      for (const key of [`${name}:${model}`, model])
        if (Object.hasOwn(written, key))
          return readPrice((written as Record<string, unknown>)[key], key, place);
    if (!broken) return {};
    return {
      problem: [
        sentence('{0} cannot be read, so the prices in it do not count.', file),
        sentence('Correct line {0}.', broken.line),
      ],
    };
  };
}

function readPrice(written: unknown, key: string, place: string | Sentence): OwnPrice {
  const one = (typeof written === 'object' && written !== null ? written : {}) as Record<string, unknown>;
  const isAmount = (amount: unknown): amount is number =>
    typeof amount === 'number' && amount >= 0 && amount < tooDear;
  const { input, output, cache_read: cacheRead, cache_write: cacheWrite } = one;
  const isSound = Object.entries(one).every(([name, amount]) => priceKeys.includes(name) && isAmount(amount));
  if (!isSound || !isAmount(input) || !isAmount(output))
    return {
      problem: [
        sentence('The price of {0} in {1} cannot be read, so it does not count.', key, place),
        sentence(
          'Write input and output, in dollars per million tokens; cache_read and cache_write are optional.',
        ),
      ],
    };
  return {
    price: {
      input,
      output,
      ...(isAmount(cacheRead) && { cacheRead }),
      ...(isAmount(cacheWrite) && { cacheWrite }),
    },
  };
}

const yearMs = 366 * 86_400_000;

/** Returns that the list of prices is more than a year old, and what to do; undefined while it is not. */
export function oldPrices(now = new Date()): Sentence[] | undefined {
  const dates = [...lists.values()].map(({ date }) => date).sort();
  const [oldest = ''] = dates;
  if (now.getTime() - Date.parse(oldest) < yearMs) return undefined;
  return [
    sentence('The prices that Telos knows are of {0}, more than a year ago.', oldest),
    sentence('Update Telos, or write those of your models under [prices] in config.toml or in telos.prices.'),
  ];
}
