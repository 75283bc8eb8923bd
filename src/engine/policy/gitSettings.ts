/** Reads settings of Git as tolerantly as Git does, and follows the files that they include. Runs nothing. */
import { dirname, resolve } from 'node:path';
import { expandPath } from '../config.ts';
import { readText } from '../files/regularFile.ts';

export interface GitSetting {
  /** Section and key in lower case. The quoted part keeps its case: `remote.Mine.url`. */
  name: string;
  value: string;
  /** The file that has it. Absolute. */
  file: string;
}

/** In bytes. */
const largestSettings = 1024 * 1024;
/** How deep one file includes another. */
const deepest = 5;

/** Returns the settings of a file and of those that it includes, whatever the condition. Empty if it cannot be read. */
export function gitSettings(file: string, home: string, depth = 0): GitSetting[] {
  const own = textOf(file).flatMap(line => ({ ...line, file }));
  if (depth === deepest) return own;
  return own.flatMap(setting => {
    if (!/^include(?:if\..*)?\.path$/s.test(setting.name)) return [setting];
    const path = resolve(dirname(file), expandPath(setting.value, home, dirname(file)));
    return [setting, ...gitSettings(path, home, depth + 1)];
  });
}

function textOf(file: string): { name: string; value: string }[] {
  try {
    return settingsOf(readText(file, largestSettings));
  } catch {
    return [];
  }
}

/** Returns the settings of a text. A line that says nothing is left out. */
export function settingsOf(text: string): { name: string; value: string }[] {
  const found: { name: string; value: string }[] = [];
  let section = '';
  for (const whole of text.replace(/\\\r?\n/g, '').split(/\r?\n/)) {
    const [head, name = '', inner] = /^\s*\[\s*([\w.-]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]/.exec(whole) ?? [];
    if (head !== undefined)
      section = [name.toLowerCase(), inner?.replace(/\\(.)/g, '$1')]
        .filter(part => part !== undefined)
        .join('.');
    const line = whole.slice(head?.length ?? 0);
    const [, key, value] = /^\s*([a-z][\w-]*)\s*(?:=\s*(.*))?$/i.exec(line) ?? [];
    if (key !== undefined && section !== '')
      found.push({ name: `${section}.${key.toLowerCase()}`, value: plainValue(value ?? 'true') });
  }
  return found;
}

/** Takes away quotes, escapes, and what follows a comment sign. */
function plainValue(text: string): string {
  let [value, isQuoted] = ['', false];
  for (let at = 0; at < text.length; at++) {
    const sign = text[at] ?? '';
    if (sign === '"') isQuoted = !isQuoted;
    else if (sign === '\\') value += text[++at] ?? '';
    else if (!isQuoted && (sign === '#' || sign === ';')) break;
    else value += sign;
  }
  return value.trim();
}
