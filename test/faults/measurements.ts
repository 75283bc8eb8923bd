/** Everything that is measured under faults and load, by the name under which it can be asked for. */
import { appendFigures } from './appends.ts';
import { cardFigures } from './cards.ts';
import { clockFigures } from './clockChanges.ts';
import { doorFigures } from './doors.ts';
import type { Extent, Figure } from './figure.ts';
import { growingFigures } from './growingAnswers.ts';
import { killFigures } from './kills.ts';
import { largeResultFigures } from './largeResults.ts';
import { longLifeFigures } from './longLife.ts';
import { manyRunsFigures } from './manyRuns.ts';
import { mcpFaultFigures } from './mcpFaults.ts';
import { mixedRunFigures } from './mixedRuns.ts';
import { planLife } from './planLife.ts';
import { pointFigures, randomFigures, togetherFigures, tornFigures } from './plans.ts';
import { planTimes, resumeTimes, slotTimes } from './planTimes.ts';
import { endlessOutputFigures, processShapeFigures } from './processes.ts';
import { canSeeProcesses } from './processTable.ts';
import { talkFigures } from './randomTalks.ts';
import { undoFigures } from './randomUndo.ts';
import { retryFigures } from './retries.ts';
import { streamCutFigures } from './streamCuts.ts';
import { writerFigures } from './writers.ts';

/** What a measurement may need from outside. */
export interface Given {
  /** A folder with other people's skills. */
  corpus?: string | undefined;
  /** The same seed repeats what is random. A whole number. */
  seed: number;
}

export interface Measurement {
  name: string;
  /** What it belongs to, by which it can be asked for too. */
  area?: string;
  measure(extent: Extent, given: Given): Promise<Figure[]>;
  /** Takes a minute and next to no work, so that others can be measured meanwhile. */
  onlyWaits?: boolean;
  /** Short and steady enough for a test that runs with every change. */
  hasQuick?: boolean;
  /** What it does comes from the seed. At night it runs whole, each time with another seed. */
  isRandom?: boolean;
}

/** Some are measured where an outsider sees which processes are left. */
const whereSeen =
  (measure: Measurement['measure']): Measurement['measure'] =>
  async (extent, given) =>
    canSeeProcesses
      ? measure(extent, given)
      : [
          {
            name: 'processes',
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
  { name: 'cards', measure: (extent, { corpus }) => cardFigures(extent, corpus), hasQuick: true },
  { name: 'growing-answers', measure: growingFigures, onlyWaits: true, isRandom: true },
  { name: 'random-talks', measure: talkFigures, isRandom: true },
  { name: 'random-undo', measure: undoFigures, isRandom: true },
  { name: 'clock-changes', measure: clockFigures, isRandom: true },
  { name: 'mixed-runs', measure: whereSeen(mixedRunFigures), isRandom: true },
];
