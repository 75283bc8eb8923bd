/**
 * `node test/samples/generatePrices.ts [ADDRESS]`: writes `src/engine/providers/prices.json` by the list of models.dev. What it does not
 * list stays as it was, and so do announced prices until their day.
 */
import { readFileSync, writeFileSync } from 'node:fs';

const usualAddress = 'https://models.dev/api.json';
const priceFile = new URL('../../src/engine/providers/prices.json', import.meta.url);

/** Our providers by their names there. */
const providers = { anthropic: 'anthropic', openai: 'openai', google: 'gemini' } as const;

interface Prices {
  input: number;
  output: number;
  cacheRead?: number;
  cacheWrite?: number;
}
type Row = Prices & { longPrompt?: { over: number } & Prices; later?: { from: string } & Prices };
export interface PriceTable {
  unit: string;
  providers: Record<string, { date: string; models: Record<string, Row> }>;
}

type Fields = Record<string, unknown>;

const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : {};

/** Returns the new table. Throws, with the model, for a list that is none or a price that cannot be one. `today` is an ISO date. */
export function newPrices(list: unknown, before: PriceTable, today: string): PriceTable {
  const all: PriceTable['providers'] = { ...before.providers };
  for (const [theirs, ours] of Object.entries(providers)) {
    const listed = fieldsOf(fieldsOf(fieldsOf(list)[theirs])['models']);
    const old = before.providers[ours]?.models ?? {};
    const wanted = Object.keys(listed).filter(
      id => Object.hasOwn(old, id) || isForUs(id, fieldsOf(listed[id])),
    );
    if (wanted.length === 0) throw new Error(`The list has no models of ${theirs}. Nothing was written.`);
    const day = (id: string): string => String(fieldsOf(listed[id])['release_date'] ?? '');
    const rows = wanted
      .sort((one, other) => day(other).localeCompare(day(one)))
      .map((id): [string, Row] => [id, rowOf(id, fieldsOf(fieldsOf(listed[id])['cost']), old[id], today)]);
    all[ours] = { date: today, models: { ...Object.fromEntries(rows), ...without(old, wanted) } };
  }
  return { ...before, providers: all };
}

const without = (rows: Record<string, Row>, ids: readonly string[]): Record<string, Row> =>
  Object.fromEntries(Object.entries(rows).filter(([id]) => !ids.includes(id)));

/** Returns true for a model that a run can use: it writes text, calls tools, and has a name of its own without a date. */
function isForUs(id: string, { tool_call: tools, modalities, status, cost }: Fields): boolean {
  const writes = fieldsOf(modalities)['output'];
  const isNamed = !/-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$/.test(id);
  return (
    isNamed &&
    tools === true &&
    status !== 'deprecated' &&
    cost !== undefined &&
    Array.isArray(writes) &&
    writes.includes('text')
  );
}

function rowOf(id: string, cost: Fields, old: Row | undefined, today: string): Row {
  const tiers = (Array.isArray(cost['tiers']) ? cost['tiers'] : [])
    .map(fieldsOf)
    .map(tier => ({ tier, over: fieldsOf(tier['tier'])['size'] }))
    .sort((one, other) => Number(one.over) - Number(other.over));
  const older = cost['context_over_200k'];
  if (tiers.length === 0 && older !== undefined) tiers.push({ tier: fieldsOf(older), over: 200_000 });
  // Of several steps the dearest counts from the first on: a limit of cost is never passed for a guess.
  const [{ over } = {}, { tier } = {}] = [tiers[0], tiers.at(-1)];
  if (tier && !(Number.isInteger(over) && Number(over) > 0))
    throw new Error(`${id} has a step without a size.`);
  const later = old?.later && old.later.from > today ? old.later : undefined;
  return {
    ...pricesOf(id, cost),
    ...(tier && { longPrompt: { over: Number(over), ...pricesOf(id, tier) } }),
    ...(later && { later }),
  };
}

function pricesOf(
  id: string,
  { input, output, cache_read: cacheRead, cache_write: cacheWrite }: Fields,
): Prices {
  const all = { input, output, cacheRead, cacheWrite };
  const said = Object.entries(all).filter(([, price]) => price !== undefined);
  const isSound = said.every(([, price]) => typeof price === 'number' && price >= 0 && price < 10_000);
  if (!isSound || input === undefined || output === undefined)
    throw new Error(`The price of ${id} cannot be one: ${JSON.stringify(all)}. Nothing was written.`);
  return Object.fromEntries(said) as unknown as Prices;
}

/** Asks the address for the list, and writes the table to the file. Throws, and writes nothing, if the answer is no such list. */
export async function generatePrices(address: string, file: URL | string, today: string): Promise<void> {
  const response = await fetch(address, { signal: AbortSignal.timeout(60_000) });
  if (!response.ok)
    throw new Error(`${address} answered with status ${response.status}. Nothing was written.`);
  const before = JSON.parse(readFileSync(file, 'utf8')) as PriceTable;
  const table = newPrices(await response.json(), before, today);
  writeFileSync(file, `${JSON.stringify(table, null, 2)}\n`);
}

if (process.argv[1] === import.meta.filename)
  await generatePrices(process.argv[2] ?? usualAddress, priceFile, new Date().toISOString().slice(0, 10));
