/** Estimates what a plan will cost: before anything is known of its runs, and from what its stories have cost. */
import type { CostEstimate } from '@telos/protocol/planCard';
import type { PlanState } from './planState.ts';
import { isOver, openItems } from './storyState.ts';

export interface EstimateRequest {
  /** In characters. */
  transcriptLength: number;
  /** Number of things that the person named; tells how many stories to expect. */
  elements: number;
  maxIterations: number;
  /** `opus`, `sonnet` or `haiku`, or a model whose name has one of these words. Any other counts like `sonnet`. */
  model: string;
  /** The number of stories, once it is known. */
  stories?: number;
}

/** A class of models: dollars for a million tokens, and the share of the iterations that a course of each kind takes. */
interface ModelClass {
  input: number;
  output: number;
  shares: readonly [low: number, typical: number, high: number];
}

const classes: Readonly<Record<'opus' | 'sonnet' | 'haiku', ModelClass>> = {
  opus: { input: 5, output: 25, shares: [0.3, 0.45, 0.7] },
  sonnet: { input: 3, output: 15, shares: [0.45, 0.6, 0.85] },
  haiku: { input: 1, output: 5, shares: [0.6, 0.75, 0.95] },
};

/** Added to what the tokens cost, since runs are repeated and context grows faster than expected. */
const margin = 1.5;
const elementsOfStory = 10;
const charactersOfToken = 4;

/** Returns the estimate. The longer a plan runs, the more each iteration has to read. */
export function estimateCost({
  transcriptLength,
  elements,
  maxIterations,
  model,
  stories = Math.max(1, Math.ceil(elements / elementsOfStory)),
}: EstimateRequest): CostEstimate {
  const { input, output, shares } = classOf(model);
  const costOf = (read: number, written: number): number => (read * input + written * output) / 1_000_000;
  const plan = costOf(Math.floor(transcriptLength / charactersOfToken) + 2_000, 2_000);
  const split = costOf(5_000, 2_000 * stories);
  const [low, typical, high] = shares.map(share => {
    const count = Math.max(1, Math.ceil(maxIterations * share));
    const read = count * (8_000 + 1_000 * stories) + 2_000 * ((count * (count - 1)) / 2);
    return inCents((plan + split + costOf(read, 3_000 * count)) * margin);
  }) as [number, number, number];
  return { low, typical, high, stories };
}

/** Stories after which the plan's own costs say more than a formula. */
const enoughStories = 3;

/**
 * Returns what the stories that are left will cost. Undefined if none is left, or if neither the plan's own costs nor the model's class
 * are known.
 */
export function estimateLeft(
  { stories }: PlanState,
  transcriptLength: number,
  model: string | undefined,
): CostEstimate | undefined {
  const left = stories.filter(({ status }) => !isOver(status));
  if (left.length === 0) return undefined;
  const paid = stories.flatMap(({ status, usage }) =>
    status === 'passed' && typeof usage?.cost === 'number' && usage.cost > 0 ? [usage.cost] : [],
  );
  if (paid.length >= enoughStories) return fromCosts(paid, left.length);
  if (model === undefined || !/opus|sonnet|haiku/.test(model)) return undefined;
  const boxes = left.reduce((sum, story) => sum + Math.max(1, openItems(story).length), 0);
  return estimateCost({ transcriptLength, elements: 0, maxIterations: boxes, model, stories: left.length });
}

/** Returns the mean for each story, and as much less and more as the costs so far differ. */
function fromCosts(paid: readonly number[], stories: number): CostEstimate {
  const mean = paid.reduce((sum, cost) => sum + cost, 0) / paid.length;
  const spread = Math.sqrt(paid.reduce((sum, cost) => sum + (cost - mean) ** 2, 0) / paid.length);
  const [low, typical, high] = [Math.max(0, mean - spread), mean, mean + spread];
  return {
    low: inCents(low * stories),
    typical: inCents(typical * stories),
    high: inCents(high * stories),
    stories,
  };
}

/** Returns the amount in whole cents. Half a cent goes to the even one, as in accounts. */
function inCents(amount: number): number {
  const cents = amount * 100;
  const isHalf = Math.abs(cents - Math.floor(cents) - 0.5) < 1e-9;
  return (isHalf ? 2 * Math.round(cents / 2) : Math.round(cents)) / 100;
}

function classOf(model: string): ModelClass {
  if (model.includes('opus')) return classes.opus;
  return model.includes('haiku') ? classes.haiku : classes.sonnet;
}
