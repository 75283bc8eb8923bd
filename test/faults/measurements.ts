/** Everything that is measured under faults and load, by the name under which it can be asked for. */
import { appendFigures } from './appends.ts';
import { cardFigures } from './cards.ts';
import { doorFigures } from './doors.ts';
import type { Extent, Figure } from './figure.ts';
import { killFigures } from './kills.ts';
import { largeResultFigures } from './largeResults.ts';
import { longLifeFigures } from './longLife.ts';
import { manyRunsFigures } from './manyRuns.ts';
import { mcpFaultFigures } from './mcpFaults.ts';
import { planLife } from './planLife.ts';
import { pointFigures, randomFigures, togetherFigures, tornFigures } from './plans.ts';
import { planTimes, resumeTimes, slotTimes } from './planTimes.ts';
import { endlessOutputFigures, processShapeFigures } from './processes.ts';
import { canSeeProcesses } from './processTable.ts';
import { retryFigures } from './retries.ts';
import { streamCutFigures } from './streamCuts.ts';
import { writerFigures } from './writers.ts';

export interface Measurement {
  name: string;
  /** What it belongs to, by which it can be asked for too. */
  area?: string;
  /** `corpus` is a folder with other people's skills, where there is one. */
  measure(extent: Extent, corpus?: string): Promise<Figure[]>;
  /** Takes a minute and next to no work, so that others can be measured meanwhile. */
  onlyWaits?: boolean;
  /** Short and steady enough for a test that runs with every change. */
  hasQuick?: boolean;
}

/** Plans are measured where an outsider sees which processes are left. */
const whereSeen =
  (measure: Measurement['measure']): Measurement['measure'] =>
  async extent =>
    canSeeProcesses
      ? measure(extent)
      : [
          {
            name: 'plans',
            limit: 'no violation',
            value: 'processes are counted in /proc, which is not here',
            met: undefined,
          },
        ];

/** In this order: what is sensitive to load first. */
export const measurements: readonly Measurement[] = [
  { name: 'many-runs', measure: manyRunsFigures },
  { name: 'long-life', measure: longLifeFigures },
  { name: 'endless-output', measure: endlessOutputFigures, onlyWaits: true },
  { name: 'kills', measure: killFigures },
  { name: 'plan-times', area: 'plan', measure: whereSeen(planTimes) },
  { name: 'plan-slots', area: 'plan', measure: whereSeen(slotTimes) },
  { name: 'plan-resume', area: 'plan', measure: whereSeen(resumeTimes) },
  { name: 'plan-points', area: 'plan', measure: whereSeen(pointFigures), hasQuick: true },
  { name: 'plan-kills', area: 'plan', measure: whereSeen(randomFigures), hasQuick: true },
  { name: 'plan-journal', area: 'plan', measure: tornFigures, hasQuick: true },
  { name: 'plan-together', area: 'plan', measure: whereSeen(togetherFigures) },
  { name: 'plan-life', area: 'plan', measure: whereSeen(planLife) },
  { name: 'appends', measure: appendFigures, hasQuick: true },
  { name: 'stream-cuts', measure: streamCutFigures, hasQuick: true },
  { name: 'retries', measure: retryFigures, hasQuick: true },
  { name: 'large-results', measure: largeResultFigures, hasQuick: true },
  { name: 'mcp-faults', measure: mcpFaultFigures, hasQuick: true },
  { name: 'process-shapes', measure: processShapeFigures, hasQuick: true },
  { name: 'writers', measure: writerFigures, hasQuick: true },
  { name: 'doors', measure: doorFigures, hasQuick: true },
  { name: 'cards', measure: cardFigures, hasQuick: true },
];
