/** The text of a skill file, in whichever encoding its author's program has written it. */
import { isUtf8 } from 'node:buffer';
import { realpathSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { readRegularFile } from '../regularFile.ts';
import { isInside, realPlace } from '../tools/paths.ts';
import { isSensitive } from '../tools/secretNames.ts';

export interface SkillText {
  text: string;
  /** What is odd about its letters, as a sentence, and the first line of it, counted from 1; undefined for UTF-8. */
  oddity?: { message: string; line: number };
}

/** A larger SKILL.md is not a prompt for any model. Bytes. */
const maxSkillBytes = 2 * 1024 * 1024;

/** A skill file that by its real name holds secrets, or is a file of the user that is not a skill: what is read of a skill goes to a model. */
export class SecretFile extends Error {}

/**
 * Out of `within`, where a link leads, only a file that is called as skills are is read. Throws what the system says of a file that cannot be read,
 * SecretFile, and Error with a sentence for what is no text.
 */
export function readSkillText(file: string, within = dirname(file)): SkillText {
  const real = realpathSync.native(file);
  if (isSensitive(real))
    throw new SecretFile(
      `${real === file ? 'It' : `It leads to ${real}, which`} looks like it holds keys, passwords or other secrets, so it is not read.`,
    );
  const bytes = readRegularFile(real, maxSkillBytes);
  if (!/^skills?\.md$/i.test(basename(real)) && !isInside(realPlace(within) ?? within, real))
    throw new SecretFile(
      `It leads to ${real}, which is not a skill file and lies outside of ${within}, so it is not read.`,
    );
  const wide = readUtf16(bytes);
  const text = wide?.text ?? bytes.toString('utf8');
  const zero = text.indexOf('\0');
  if (zero >= 0)
    throw new Error(`The file is not UTF-8 text: there is a zero byte in line ${lineAt(text, zero)}.`);
  if (wide || isUtf8(bytes)) return wide ?? { text };
  const line = lineAt(text, text.indexOf('\uFFFD'));
  const message = 'The file has letters that are not UTF-8, as older programs on Windows write them';
  // Where no other letter is UTF-8 either, the whole file is of such a program.
  if (/[\u0080-\uFFFC]/.test(text)) return { text, oddity: { message: `${message}; they are lost.`, line } };
  return {
    text: new TextDecoder('windows-1252').decode(bytes),
    oddity: { message: `${message}; they were read as Windows-1252, which may be wrong.`, line },
  };
}

/** What PowerShell writes; undefined without the mark that such a file begins with. */
function readUtf16(bytes: Buffer): SkillText | undefined {
  const mark = bytes.toString('latin1', 0, 2);
  if (mark !== '\xFF\xFE' && mark !== '\xFE\xFF') return undefined;
  const encoding = mark === '\xFF\xFE' ? 'utf-16le' : 'utf-16be';
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
    return { text, oddity: { message: 'The file is UTF-16, which other programs may not read.', line: 1 } };
  } catch (cause) {
    throw new Error('The file is not UTF-8 text: it begins as UTF-16 does, and is none.', { cause });
  }
}

const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length;
