/** Reads of a request what it has in common with others like it: its words by what they say, and what it wants done. */

import { importGlossary, importLanguage } from '@telos/engine/routing';

/** The words of a request, as likeness counts them. */
export interface RequestWords {
  /** Stems with the information of each, in nats. */
  weights: ReadonlyMap<string, number>;
  /** Those of them that say what it is about. */
  telling: ReadonlySet<string>;
  /** Stems with the word as it was written, in their order, without the verb that says what to do. */
  spelled: ReadonlyMap<string, string>;
  /** What it wants done: a stem, or the number of a group of verbs that mean the same. */
  deed: string;
  /** Whether it asks for an answer rather than for work. */
  isQuestion: boolean;
}

/** Verbs that are said for the same work. Each line is one meaning. */
const deeds = [
  'write create make draft generate prepare compose produce put build do add compile assemble schreib erstell mach',
  'show list find look give get see tell print zeig such',
  'fix repair mend correct solve resolve debug reparier beheb',
  'summarize summarise sum condense recap fass zusammenfass',
  'remove delete clean clear drop lösch',
  'rename move sort order organize organise tidy benenn sortier',
  'check review verify validate inspect audit prüf kontrollier',
  'update bump upgrade refresh aktualisier',
  'convert transform turn export wandl konvertier',
  'translate übersetz',
].map(line => line.split(' '));

/** Words before the verb of a request. */
const openings =
  /^(?:please|can|could|would|will|you|hey|hi|hello|ok|okay|now|and|then|so|let|lets|us|me|i|need|want|to|just|go|ahead|bitte|kannst|könntest|du|mir|mal|ich|brauche|the|a|an|my|our|this|these|der|die|das)$/;
const questions =
  /^(?:why|what|whats|where|who|when|which|how|is|are|was|were|does|do|did|has|have|should|am|warum|was|wo|wer|wann|welche\w*|wie|ist|sind|gibt|hat)$/;

/** More of a request says nothing of what it is. In characters. */
const longestRead = 600;
/** Keys are longer than words, and have digits. */
const longestWord = 24;

/** Returns the words of a request. What stands in quotes, code, paths and addresses differs each time, and is left out. */
export async function requestWords(request: string): Promise<RequestWords> {
  const { eachWord, expectedShare, stem, wordClass } = await importLanguage();
  const glossary = await (await importGlossary()).openGlossary();
  const text = proseOf(request).slice(0, longestRead);
  const words: string[] = [];
  eachWord(text, false, word => {
    if (word.length <= longestWord && !/\d/.test(word)) words.push(word);
  });
  const language = glossary.languageOf(words);
  const weights = new Map<string, number>();
  const telling = new Set<string>();
  const spelled = new Map<string, string>();
  for (const word of words) {
    const kind = wordClass(word);
    if (kind === 'function' || openings.test(word) || glossary.isStop(word, language)) continue;
    weights.set(stem(word), -Math.log(expectedShare[kind]));
    if (kind !== 'filler') telling.add(stem(word));
    if (!spelled.has(stem(word))) spelled.set(stem(word), word);
  }
  const first = words.find(word => !openings.test(word)) ?? '';
  const meaning = deeds.findIndex(verbs =>
    verbs.some(verb => stem(verb) === stem(first) || (verb.length > 4 && first.startsWith(verb))),
  );
  if (meaning >= 0) spelled.delete(stem(first));
  return {
    weights,
    telling,
    spelled,
    deed: meaning < 0 ? stem(first) : String(meaning),
    isQuestion:
      questions.test(words[0] ?? '') ||
      (text.trimEnd().endsWith('?') && !/^(?:can|could|would|will|kannst|könntest)$/.test(words[0] ?? '')),
  };
}

/** Returns the text without blocks of code, quotes, addresses, paths and names of files. */
const proseOf = (request: string): string =>
  request
    .slice(0, 20_000)
    .replace(/```[\s\S]*?(?:```|$)/g, ' ')
    .replace(/`[^`\n]*`|"[^"\n]*"|“[^”\n]*”/g, ' ')
    .replace(/\b[a-z][\w+.-]*:\/\/\S+/gi, ' ')
    .replace(/[^\s,;:()]*[/\\][^\s,;:()]*/g, ' ')
    .replace(/[\w-]+(?:\.[\w-]+)*\.[a-z][a-z0-9]{0,4}\b/gi, ' ');

/** Returns the stems that all of them have. */
export function commonStems(all: readonly RequestWords[]): string[] {
  const [first, ...others] = all;
  return [...(first?.weights.keys() ?? [])].filter(form => others.every(({ weights }) => weights.has(form)));
}

/** Returns the share of a request that some stems are, 0 to 1, by their information. */
export function shareOf({ weights }: RequestWords, stems: Iterable<string>): number {
  let all = 0;
  for (const weight of weights.values()) all += weight;
  let own = 0;
  for (const form of stems) own += weights.get(form) ?? 0;
  return all === 0 ? 0 : own / all;
}

/** Whether two requests may want the same done: the same verb, or one of them says it without a verb ("release notes for 1.2"). */
export function sameDeed(one: RequestWords, other: RequestWords): boolean {
  const isVerb = /^\d+$/;
  if (one.deed === other.deed) return true;
  return (
    (!isVerb.test(one.deed) && other.weights.has(one.deed)) ||
    (!isVerb.test(other.deed) && one.weights.has(other.deed))
  );
}
