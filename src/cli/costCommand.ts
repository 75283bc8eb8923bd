/** Implements `telos cost`: the usage of the last days' runs by day, agent, skill and model. */

import { readSpending, type Spending, type Spent, type SpentBy } from '../engine/records/spending.ts';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { skippedLogText } from './logsCommand.ts';
import type { Terminal } from './terminal.ts';
import { table, terminalJson, terminalText } from './terminalText.ts';

export interface CostOptions extends ConfigOptions {
  days?: string;
  json?: boolean;
}

/** Prints the cost tables and returns the exit code. */
export async function costCommand(options: CostOptions, terminal: Terminal): Promise<number> {
  const days = Number(options.days ?? 30);
  if (!Number.isInteger(days) || days < 1 || days > 100_000) {
    terminal.say('--days takes a whole number from 1 on.');
    return 2;
  }
  const config = configFor(options, terminal);
  if (!config) return 2;
  const spending = await readSpending(config.dataDir, days);
  const { from, to, total, skippedLines } = spending;
  if (skippedLines > 0) terminal.say(skippedLogText(skippedLines, 'the log'));
  if (options.json) {
    terminal.out(`${terminalJson(spending)}\n`);
    return 0;
  }
  const span = days === 1 ? `on ${to}` : `from ${from} to ${to}`;
  if (total.runs === 0) {
    terminal.say(terminalText(`No runs ${span}; they are logged in ${config.dataDir}/logs.`));
    return 0;
  }
  terminal.out(`${tables(spending, terminal.outWidth)}\n`);
  if (total.unknownRuns > 0) {
    const runs = total.unknownRuns === 1 ? 'one run' : `${total.unknownRuns} runs`;
    const why = 'no price of the model is listed, or it did not say how many tokens it used.';
    terminal.say(terminal.style.yellow(`What ${runs} cost is not known: ${why}`));
  }
  return 0;
}

function tables({ byDay, byAgent, bySkill, byModel, total }: Spending, width: number | undefined): string {
  const parts: readonly [string, readonly SpentBy[]][] = [
    ['Day', byDay],
    ['Agent', byAgent],
    ['Skill', bySkill],
    ['Model', byModel],
  ];
  return parts
    .map(([heading, rows], index) => {
      const last = index === parts.length - 1 ? [cells('Total', total)] : [];
      const lines = [...rows.map(row => cells(row.name, row)), ...last];
      return table([heading, ...figures], lines, width);
    })
    .join('\n\n');
}

const figures = ['Runs', 'In', 'Cached', 'Out', 'Cost'];

function cells(name: string, spent: Spent): string[] {
  const { runs, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = spent;
  const tokens = [inputTokens, cacheReadTokens + cacheWriteTokens, outputTokens];
  return [name, String(runs), ...tokens.map(String), costText(spent)];
}

/** Words a cost. An unknown part is never silently left out of a sum. */
function costText({ cost, knownCost, runs, unknownRuns }: Spent): string {
  if (cost !== 'unknown') return `$${cost.toFixed(4)}`;
  return unknownRuns === runs ? 'unknown' : `$${knownCost.toFixed(4)} + ${unknownRuns} unknown`;
}
