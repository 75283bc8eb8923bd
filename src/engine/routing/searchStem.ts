/** Takes the endings off words, so that all forms of a word are one. */

const endings: readonly (readonly [ending: string, replacement: string, shortestRest: number])[] = [
  ['izations', '', 4],
  ['isations', '', 4],
  ['ization', '', 4],
  ['isation', '', 4],
  ['ations', 'at', 3],
  ['ation', 'at', 3],
  ['ators', 'at', 3],
  ['ator', 'at', 3],
  ['ments', '', 4],
  ['ment', '', 4],
  ['izing', '', 4],
  ['ising', '', 5],
  ['ings', '', 3],
  ['ing', '', 3],
  ['ized', '', 4],
  ['ised', '', 5],
  ['izes', '', 4],
  ['ises', '', 5],
  ['izer', '', 4],
  ['ize', '', 4],
  ['ise', '', 5],
  ['ies', 'y', 2],
  ['ied', 'y', 2],
  ['sses', 'ss', 2],
  ['ers', '', 4],
  ['er', '', 4],
  ['ors', '', 4],
  ['or', '', 4],
  ['ed', '', 3],
  ['ly', '', 4],
  ['es', '', 4],
  ['is', '', 5],
];

/** A light stem for English; other languages lose an ending now and then, the same in request and skill. */
export function stem(word: string): string {
  if (word.length < 4 || !/^[a-z]+$/.test(word)) return word;
  let rest = word;
  for (const [ending, replacement, shortest] of endings) {
    if (!rest.endsWith(ending) || rest.length - ending.length < shortest) continue;
    const root = rest.slice(0, -ending.length);
    if (!/[aeiouy]/.test(root)) break;
    rest = root + replacement;
    break;
  }
  if (rest === word && /[^su]s$/.test(rest)) rest = rest.slice(0, -1);
  if (/([^aeiouls])\1$/.test(rest)) rest = rest.slice(0, -1);
  if (rest.length > 3 && rest.endsWith('e')) rest = rest.slice(0, -1);
  if (rest.endsWith('z')) return `${rest.slice(0, -1)}s`;
  return rest.length > 3 && rest.endsWith('y') ? rest.slice(0, -1) : rest;
}
