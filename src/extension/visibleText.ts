/** Text from outside as it is, with nothing hidden: whoever reads it before a run sees every character that a model would read. */
import { codePointOf, unseen } from '../protocol/unseen.ts';

const hidden = new RegExp(`(?!\\n)(?:${unseen.source})`, 'gu');

/** Each hidden character as its code point, `<U+200B>`; lines stay lines. */
export const visibleText = (text: string): string => text.replace(hidden, codePointOf);
