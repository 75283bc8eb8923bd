/** Implements `telos models`: the models of each provider that is set up, with window, price, efforts and the day on which they end. */
import {
  isKnown,
  listModels,
  type ModelFacts,
  oldPrices,
  ownPrices,
  type ProviderModels,
  providerNames,
  providerSetups,
} from '@telos/engine/providers';
import { Telos } from '@telos/engine/telos';
import { spoken } from '@telos/protocol/text';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import type { Terminal } from './terminal.ts';
import { terminalJson, terminalText } from './terminalText.ts';

/**
 * Returns the exit code: 2 for a provider that does not exist, 1 for one that is not set up, or if none is, and for one that a refresh did not
 * reach.
 */
export async function modelsCommand(
  wanted: string | undefined,
  options: ConfigOptions & { json?: boolean; refresh?: boolean },
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const names = providerNames.filter(name => name !== 'replay');
  if (wanted !== undefined && !names.some(name => name === wanted)) {
    terminal.say(`There is no provider '${terminalText(wanted)}'. Known: ${names.join(', ')}.`);
    return 2;
  }
  const inForce = await Telos.open(config)
    .provider()
    .catch(() => undefined);
  const listed = await listModels(config, options.refresh, inForce);
  const shown = listed.filter(({ name, ready }) => (wanted === undefined ? ready : name === wanted));
  if (options.json)
    terminal.out(`${terminalJson(shown.map(({ name, facts }) => ({ name, models: facts })))}\n`);
  else for (const provider of shown) terminal.out(`${describe(provider)}\n`);
  const problems = [inForce && ownPrices(config)(inForce).problem, oldPrices()];
  for (const problem of problems) if (problem) terminal.say(terminalText(spoken(problem)));
  const silent = shown.filter(({ ready, isUnanswered }) => ready && isUnanswered).map(({ name }) => name);
  if (silent.length > 0)
    terminal.say(`No answer from ${silent.join(', ')}: these are the models that were known before.`);
  if (options.refresh && silent.length > 0) return 1;
  if (shown.some(({ ready }) => ready)) return 0;
  terminal.say(
    wanted === undefined
      ? 'No provider is set up. Set a key with: telos key'
      : `${wanted} is not set up: these are the models that are known. ${setUpOf(wanted)}`,
  );
  return 1;
}

function setUpOf(wanted: string): string {
  if (!isKnown(wanted)) return '';
  const { keyVariable, place, baseUrlVariable } = providerSetups[wanted];
  if (place && !keyVariable) return `Set ${place.variable}.`;
  return keyVariable ? `Set its key with: telos key ${wanted}` : `Start it, or set ${baseUrlVariable}.`;
}

/** Returns the lines for one provider, a model each. */
function describe({ name, facts }: ProviderModels): string {
  const rows = facts.map(one => [
    `${one.isUsed ? '*' : ' '} ${one.id}`,
    [windowText(one.window), one.whole && `of ${windowText(one.whole)}`].filter(Boolean).join(' '),
    priceText(one),
    one.efforts.join(' ') || '-',
    one.retires === undefined ? '' : `retires on ${one.retires}`,
  ]);
  const heads = [`  ${name}`, 'takes', '$ in/out per million', 'efforts', ''];
  const all = [heads, ...rows];
  const widths = heads.map((_, column) => Math.max(...all.map(row => row[column]!.length)));
  return all
    .map(row => terminalText(row.map((cell, column) => cell.padEnd(widths[column]!)).join('  ')).trimEnd())
    .join('\n');
}

const windowText = (tokens: number | undefined): string =>
  tokens === undefined
    ? '-'
    : tokens >= 1_000_000
      ? `${Math.round(tokens / 10_000) / 100}M`
      : `${Math.round(tokens / 1_000)}k`;

function priceText({ price }: ModelFacts): string {
  if (!price) return 'unknown';
  const longer = price.above === undefined ? '' : `, more above ${windowText(price.above)}`;
  return `${price.input}/${price.output}${longer}`;
}
