/** The same case in other words: what it puts in and expects stays, its name and every sentence for people changes. */
import type { AdversarialCase } from './caseFile.ts';

/** `neutral` says nothing at all; `paraphrase` keeps literals, numbers and names; `shuffled` has the sentences of the case in another order. */
export const rewordings = ['neutral', 'paraphrase', 'shuffled'] as const;
export type Rewording = (typeof rewordings)[number];

export function reword(theCase: AdversarialCase, how: Rewording): AdversarialCase {
  const { decision, must, must_not: never } = theCase.expected;
  const sentences = (list: string[] | undefined): string[] | undefined =>
    how === 'shuffled' ? list?.toReversed() : list?.map(how === 'neutral' ? () => 'see above' : paraphrase);
  const [ours, theirs] = [sentences(must), sentences(never)];
  return {
    ...theCase,
    id: `case-${how}-${theCase.id.length}`,
    why: 'another reason',
    expected: { decision, ...(ours ? { must: ours } : {}), ...(theirs ? { must_not: theirs } : {}) },
  };
}

const synonyms: Readonly<Record<string, string>> = {
  file: 'document',
  files: 'documents',
  run: 'execution',
  error: 'failure message',
  shown: 'presented',
  shows: 'presents',
  says: 'states',
  names: 'mentions',
  named: 'mentioned',
  left: 'remaining',
  create: 'bring about',
  change: 'alter',
  return: 'hand back',
  spawn: 'launch',
  process: 'program',
  processes: 'programs',
  visible: 'readable',
  refused: 'turned down',
  listed: 'enumerated',
  present: 'available',
  written: 'put down',
  tool: 'function',
  model: 'LLM',
};

/** Words between quotation marks, numbers with their units and names stay. */
function paraphrase(sentence: string): string {
  const pieces = sentence.split(/('[^']*'|"[^"]*"|`[^`]*`)/);
  const changed = pieces.map((piece, at) =>
    at % 2 === 1
      ? piece
      : piece.replace(/\b[a-z]+\b/g, word => (Object.hasOwn(synonyms, word) ? synonyms[word]! : word)),
  );
  return `It has to be so that: ${changed.join('')}.`;
}
