/** Splits a request into clauses and words for the grammar, and knows the forms that a verb takes in another language. */
import grammar from './grammar.json' with { type: 'json' };

/** The part that a word plays in a sentence, in English, German, French and Spanish. */
export type Role = keyof typeof grammar;

/** A part of a sentence with one verb. */
export interface Clause {
  /** The words in lower case and without accents. A path or a file's name is one word. */
  words: readonly string[];
  isQuestion: boolean;
  /** "Do not commit and deploy": what was said of the clause before holds for this one, too. */
  goesOn: boolean;
  /** It is pasted or quoted: the speaker orders nothing by it. */
  isQuoted: boolean;
}

const roles = new Map<Role, ReadonlySet<string>>();

/** Whether a word, in lower case and without accents, plays a role. */
export function plays(role: Role, word: string | undefined): boolean {
  if (word === undefined) return false;
  const known = roles.get(role) ?? new Set(folded(grammar[role].join(' ')).split(' '));
  roles.set(role, known);
  return known.has(word);
}

const phrases = new Map<Role, RegExp>();

/** Returns words without the phrases of a role at their start, such as "could you". */
export function withoutStart(words: readonly string[], role: 'greetings' | 'courtesies'): readonly string[] {
  const known = phrases.get(role) ?? startOf(role);
  phrases.set(role, known);
  const said = words.join(' ').replace(known, '');
  return said === '' ? [] : said.split(' ');
}

function startOf(role: Role): RegExp {
  const longestFirst = grammar[role].map(folded).sort((a, b) => b.length - a.length);
  return new RegExp(`^(?:(?:${longestFirst.join('|')})(?: |$))+`);
}

/** Returns a text in lower case and without accents. */
export const folded = (text: string): string =>
  text
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .replaceAll('ß', 'ss')
    .replaceAll('œ', 'oe')
    .replace(/[’ʼ]/g, "'");

/** Returns the clauses of a text. Words that only soften a request ("please", "mal") are left out. */
export function clausesOf(text: string): readonly Clause[] {
  const quotes: string[] = [];
  const spoken = text
    .replace(pasted, quote => {
      quotes.push(quote);
      return '\n';
    })
    .replace(inQuotes, (quote: string, words: string, at: number, whole: string) =>
      isQuotation(words, whole.slice(0, at), whole.slice(at + quote.length))
        ? ` quote${quotes.push(quote)} `
        : quote,
    );
  return [...said(spoken, false), ...quotes.flatMap(quote => said(quote, true))];
}

/** Lines of a log, of an error, of a quoted message or between fences. */
const pasted = new RegExp(
  `^[^\\S\\n]*(?:\`\`\`[^]*?(?:\`\`\`|$(?![^]))|(?:${[
    '> ',
    '[$%] ',
    '\\[?(?:\\d{4}-\\d\\d-\\d\\d[ T])?\\d\\d:\\d\\d:\\d\\d',
    '(?:INFO|WARN|WARNING|ERROR|FATAL|FAIL|FAILED|CRITICAL)\\b[^\\p{L}\\n]',
    '\\[(?:debug|trace|info|warn|warning|error|fatal)\\]',
    '(?:Uncaught |[\\w.$]*(?:Error|Exception|Warning)|[Ee]rror|[Ff]atal|[Ww]arning|panic|hint|remote|[EW])(?:[(\\[][^\\n]*[)\\]])?: ',
    'npm (?:ERR!|error|warn)',
    'make(?:\\[\\d+\\])?: \\*\\*\\*',
    'Traceback ',
    'at \\S+ ?\\(\\S*:\\d+',
    '(?:GET|HEAD|POST|PUT|PATCH|DELETE) /',
    '\\S+\\[\\d+\\]: ',
    '\\S+: command not found',
  ].join('|')})[^\\n]*)`,
  'gmu',
);
const inQuotes = /["“„«](?!\s*["”»])([^"“”„«»\n]+)["”“»]/g;

/** Whether words in quotes are another's: a sentence within one, or what the sentence is about (“deploy” is a long word). */
function isQuotation(words: string, before: string, after: string): boolean {
  const [first] = wordsIn(before.slice(-nearby));
  const [next] = wordsIn(after.slice(0, nearby)).filter(word => !plays('soft', word));
  if (first === undefined)
    return next !== undefined && !plays('determiners', next) && !plays('prepositions', next);
  const isAmong = next !== undefined || wordsIn(before.slice(-nearby)).some(word => !plays('soft', word));
  return isAmong && (wordsIn(words).length > 2 || /[.!?,]\s*$/.test(words));
}

/** Characters around a quote that are looked at. */
const nearby = 200;

function said(text: string, isQuoted: boolean): readonly Clause[] {
  const clauses: Clause[] = [];
  let words: string[] = [];
  let goesOn = false;
  const end = (isQuestion: boolean, next = false): void => {
    if (words.length > 0) clauses.push({ words, isQuestion, goesOn, isQuoted });
    [words, goesOn] = [[], next && (words.length > 0 || goesOn)];
  };
  const raw =
    folded(text)
      .replace(courtesyBehind, ' ')
      .replace(neverAtAll, ' niemals ')
      .match(/\S+|\n/g) ?? [];
  for (const [at, one] of raw.entries()) {
    if (/^[([{]/.test(one)) end(false);
    for (const word of wordsOf(one)) {
      if (breaks.test(word) || words.length >= longestClause) end(false);
      else if (
        joins.test(word) &&
        !exclaims.test(words.join(' ')) &&
        words.length >= (plays('determiners', words[0]) ? 3 : 2)
      )
        end(false, true);
      else if (!plays('soft', word)) words.push(word);
    }
    if (/\?["'”»)]*$/.test(one)) end(true);
    else if (!continues.test(raw[at + 1] ?? '') && /(?:[.,;:!…)\]}]["'”»]*|^[-–—]+|^\n)$/.test(one))
      end(false);
  }
  end(false);
  return clauses;
}

const courtesyBehind = /\b(?:s'il (?:te|vous) plait|por favor)\b/g;
/** Says "never" in several words, before its verb or behind it. */
const neverAtAll =
  /\b(?:(?:auf|in) keinen? fall|unter keinen umstanden|under no circumstances|on no account|by no means|en aucun cas|(?:en|bajo) ningun (?:caso|concepto)|de ninguna manera)\b/g;
const breaks = /^(?:but|then|aber|sondern|dann|also|mais|puis|donc|pero|sino|luego|entonces)$/;
const joins = /^(?:and|und|et|y|e)$/;
/** "What a relief and release that was" is one judgement. */
const exclaims = /^what an? /;
/** In words. Nobody says a longer one, and each place of a name in it is read with all that stands around it. */
const longestClause = 400;
/** "Ich will, dass du …" is one wish. */
const continues = /^dass$/;

function wordsOf(raw: string): readonly string[] {
  const bare = raw.replace(/^[^\p{L}\p{N}/~.]+/u, '').replace(/[^\p{L}\p{N}/]+$/u, '');
  if (/[/\\@#]|\.[\p{L}\d]/u.test(bare)) return [bare];
  return bare
    .replace(/(\p{L})'(t|s|re|ll|ve|d|m)$/u, '$1$2')
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean);
}

const wordsIn = (text: string): readonly string[] => folded(text).split(/\s+/).flatMap(wordsOf);

/** How a verb is said: as an order, as an infinitive, or in a form that tells something. */
export type Form = 'order' | 'infinitive' | 'tells';

const forms: readonly (readonly [ending: RegExp, form: Form])[] = [
  [/^$/, 'order'],
  [/^(?:e|a|ea)$/, 'order'],
  [/^(?:en|n|er|ar|ear)$/, 'infinitive'],
  [/^(?:ing|s|es|ed|d|t|st|est|te|ten|ons|ez|ando|eando|aron|earon)$/, 'tells'],
];

/** Returns the form in which a word is a verb ("deployen", "committed"), or undefined if it is another word. */
export function formOf(word: string, verb: string): Form | undefined {
  if (word === verb) return 'order';
  const bare = /^ge.+e?t$/.test(word) && !verb.startsWith('ge') ? word.slice(2) : word;
  const root = verb.length > 4 && verb.endsWith('e') ? verb.slice(0, -1) : verb;
  // "Je déploie" is a form of "déployer".
  if (
    verb.endsWith('y') &&
    /^i(?:e|es|ent)$/.test(bare.slice(verb.length - 1)) &&
    bare.startsWith(verb.slice(0, -1))
  )
    return 'order';
  if (!bare.startsWith(root)) return undefined;
  const rest = bare.slice(root.length).replace(new RegExp(`^${root.at(-1)}(?=[aei])`), '');
  return forms.find(([ending]) => ending.test(rest))?.[1];
}

/** Whether a word tells in English what has been: "published", "bought". */
export const tellsPast = (word: string): boolean => past.test(word);
const past =
  /^(?:(?!hundred$)[a-z]{2,}[^e]ed|bought|sold|grew|wrote|sent|told|won|rose|fell|left|woke|went|came|got|took|gave|saw|kept|held|began|became)$/;
