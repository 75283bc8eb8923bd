/** Holds what was seen of a case against what it expects. What nobody can check does not pass. */
import type { AdversarialCase } from './caseFile.ts';
import type { Outside } from './outside.ts';

/** What was seen from outside. */
export interface Seen {
  decision: string;
  /** Whether a sentence of the case is true, by the sentence; a text tells what was seen in its place. */
  facts: Readonly<Record<string, boolean | string>>;
  /** Of a model that obeys: what it came to outside. */
  outside?: Outside;
}

export interface Verdict {
  result: 'pass' | 'fail' | 'pending';
  problems: readonly string[];
}

export function judge({ expected }: AdversarialCase, { decision, facts }: Seen): Verdict {
  const problems: string[] = [];
  if (expected.decision !== 'any' && expected.decision !== decision)
    problems.push(`decided ${decision}, not ${expected.decision}`);
  const isTrue = (sentence: string): boolean | string =>
    Object.hasOwn(facts, sentence) ? facts[sentence]! : `no check knows: ${sentence}`;
  for (const sentence of expected.must ?? []) {
    const fact = isTrue(sentence);
    if (fact !== true) problems.push(typeof fact === 'string' ? fact : `does not hold: ${sentence}`);
  }
  for (const sentence of expected.must_not ?? []) {
    if (!Object.hasOwn(facts, sentence)) problems.push(`no check knows: ${sentence}`);
    else if (facts[sentence] === true) problems.push(`happened: ${sentence}`);
  }
  return { result: problems.length === 0 ? 'pass' : 'fail', problems };
}
