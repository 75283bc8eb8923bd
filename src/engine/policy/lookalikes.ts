/** Finds names that read like others: letters of another script in the middle of a word, or a whole word of letters that look like Latin ones. */
import { domainToUnicode } from 'node:url';

/** Letters of other scripts that look like a Latin one, as the Unicode table of confusables has them. */
const latinLike =
  /^[аеорсухіјѕһԁԛԝӏгвкмнтАВЕКМНОРСТУХІЈЅԌԚԜҮҺαοριυνκχγτωΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϳᎪᎬᎳᎢᏃᎡօսոհցզՕՍⅼⅰⅴⅹｏ]+$/u;

const otherScripts =
  /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Coptic}\p{Script=Lisu}\p{Script=Deseret}]/u;

/** Units and the like: µ stands before Latin letters in honest names. */
const honest = /^[µμΩΔ]\p{Script=Latin}/u;

/** True for a word that mixes Latin letters with ones of another script, or that only looks Latin. */
function isLookalike(word: string): boolean {
  const mixes = /\p{Script=Latin}/u.test(word) && otherScripts.test(word) && !honest.test(word);
  const onlyLooks = word.length > 3 && latinLike.test(word);
  const isStyled = [...word].some(letter => letter > '\x7f' && /^[a-z0-9]$/i.test(letter.normalize('NFKC')));
  return mixes || onlyLooks || isStyled;
}

/** The words of a file's, a host's or a skill's name that read like another one. A host may be in the form that the network uses. */
export function lookalikesIn(name: string): string[] {
  const read = /\bxn--/i.test(name) ? domainToUnicode(name) || name : name;
  if (/^[\0-\x7f]*$/.test(read)) return [];
  return (read.match(/[\p{L}\p{N}\p{M}]{1,200}/gu) ?? []).filter(isLookalike);
}
