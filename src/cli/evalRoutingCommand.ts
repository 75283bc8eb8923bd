/** Implements the options of `telos eval` that measure routing on files of sentences. `routeBenchmark.ts` describes them. */
import type { RoutingMode } from '../engine/config.ts';
import {
  type RouteFigures,
  runConversationBenchmark,
  runRouteBenchmark,
} from '../engine/evals/routeBenchmark.ts';
import type { Telos } from '../engine/telos.ts';
import { typedPath } from './surroundings.ts';
import type { Terminal } from './terminal.ts';
import { table, terminalJson } from './terminalText.ts';

/** Paths may be relative to the folder of the call. */
export interface BenchmarkOptions {
  pairs?: string;
  packs?: string;
  corpus?: string;
  negatives?: string;
  conversations?: string;
  mode?: RoutingMode;
  json?: boolean;
}

/** Prints the figures and returns the exit code: 2 if files are missing. Throws TelosError `config` if one is not in the format. */
export async function benchmarkCommand(
  telos: Telos,
  options: BenchmarkOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  const { pairs, packs, corpus, conversations } = options;
  if (packs === undefined || corpus === undefined || (pairs ?? conversations) === undefined) {
    terminal.say('To measure routing, give --pairs or --conversations, with --packs and --corpus.');
    return 2;
  }
  const files = { ...options, packs, corpus };
  return conversations === undefined
    ? measure(telos, { ...files, pairs: pairs ?? '' }, terminal, signal)
    : measureConversations(telos, { ...files, conversations }, terminal, signal);
}

/** Measures the routing. Without a mode no model is asked, since each sentence would be a call that costs. */
async function measure(
  telos: Telos,
  options: BenchmarkOptions & Required<Pick<BenchmarkOptions, 'pairs' | 'packs' | 'corpus'>>,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  const { pairs, packs, corpus, negatives, mode } = options;
  const typed = (path: string): string => typedPath(path, terminal.surroundings);
  const result = await runRouteBenchmark(
    {
      pairsFile: typed(pairs),
      packsFile: typed(packs),
      corpusDir: typed(corpus),
      dataDir: telos.config.dataDir,
      ...(negatives === undefined ? {} : { negativesFile: typed(negatives) }),
      mode: mode ?? 'local',
      provider: () => telos.routingProvider(),
    },
    signal,
  );
  if (options.json) {
    terminal.out(`${terminalJson(result)}\n`);
    return 0;
  }
  const rows = Object.entries(result.packs).map(([name, figures]) => cells(name, figures));
  const headings = [
    'Pack',
    'Sentences',
    'Top 1',
    'Top 3',
    'Right',
    'Wrong',
    'None',
    'Negatives fired',
    'Time',
  ];
  terminal.out(`${table(headings, [...rows, cells('All', result.overall)], terminal.outWidth)}\n`);
  return 0;
}

async function measureConversations(
  telos: Telos,
  options: BenchmarkOptions & Required<Pick<BenchmarkOptions, 'conversations' | 'packs' | 'corpus'>>,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  const { conversations, packs, corpus, mode } = options;
  const typed = (path: string): string => typedPath(path, terminal.surroundings);
  const result = await runConversationBenchmark(
    {
      conversationsFile: typed(conversations),
      packsFile: typed(packs),
      corpusDir: typed(corpus),
      dataDir: telos.config.dataDir,
      mode: mode ?? 'local',
      provider: () => telos.routingProvider(),
    },
    signal,
  );
  if (options.json) {
    terminal.out(`${terminalJson(result)}\n`);
    return 0;
  }
  const { n, switched, byChip, stayed, wrongSwitch, msPerRoute } = result.overall;
  const shares = [switched, byChip, stayed, wrongSwitch].map(share => `${(share * 100).toFixed(1)}%`);
  const headings = ['Conversations', 'Switched', 'By chip', 'Stayed', 'Wrong', 'Time'];
  terminal.out(
    `${table(headings, [[String(n), ...shares, `${msPerRoute.toFixed(2)} ms`]], terminal.outWidth)}\n`,
  );
  return 0;
}

function cells(name: string, figures: RouteFigures): string[] {
  const { n, top1, top3, right, wrong, abstained, negativesFired, msPerRoute } = figures;
  const shares = [top1, top3, right, wrong, abstained, negativesFired].map(
    share => `${(share * 100).toFixed(1)}%`,
  );
  return [name, String(n), ...shares, `${msPerRoute.toFixed(2)} ms`];
}
