/** Tells the kinds of jobs apart, and seals what comes of stories for the plan that asked. */
import { mostSealed, seal } from './sealed.ts';
import type { AnswerJob } from './worker.ts';

/** What works on stories. All that it says goes out sealed. */
export interface StoryAnswers {
  answer(
    given: unknown,
    tell: (proven: { proof: string; facts: readonly object[] }) => Promise<void>,
    signal: AbortSignal,
  ): Promise<{ proof: string; end: object } | { refused: string }>;
}

/** Returns what answers both kinds of jobs. */
export const answerEither =
  (evals: AnswerJob, stories: StoryAnswers): AnswerJob =>
  async (given, signal, tell) => {
    const { format, replyTo = '' } = Object(given) as { format?: unknown; replyTo?: unknown };
    if (format !== 'telos-story-order') return evals(given, signal, tell);
    const answer = await stories.answer(
      given,
      async ({ proof, facts }) => {
        for (const sealed of sealedFacts(proof, facts, String(replyTo))) await tell(sealed);
      },
      signal,
    );
    return 'refused' in answer ? answer : { sealed: seal(answer, String(replyTo)) };
  };

/** Returns the facts in as few seals as hold them. */
function sealedFacts(proof: string, facts: readonly object[], replyTo: string): string[] {
  const whole = seal({ proof, facts }, replyTo);
  if (whole.length < mostSealed - 1_024 || facts.length === 1) return [whole];
  const half = Math.ceil(facts.length / 2);
  return [facts.slice(0, half), facts.slice(half)].flatMap(part => sealedFacts(proof, part, replyTo));
}
