/** Decides which names may become folders in the skills folder. */
import { TelosError } from '../errors.ts';

const maxLength = 64;
/** Windows opens a device for these, whatever the ending and in whatever case. */
const deviceName = /^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?$/i;
/** Taken by Telos itself, or passed over when skills are looked for. */
const reserved = new Set(['telos', 'skills', 'node_modules']);

/** What is wrong with the name of an agent, in the rest of a sentence; undefined when nothing is. */
export function packNameProblem(name: string): string | undefined {
  if (name.trim() === '') return 'is empty';
  if (/[/\\]/.test(name)) return 'holds a slash or a backslash';
  if (name.includes('..') || name === '.') return 'leads to another folder';
  if (/^[A-Za-z]:/.test(name) || name.startsWith('~')) return 'is a path';
  if (name.startsWith('.') || name.startsWith('-')) return 'starts with a dot or a hyphen';
  if (name !== name.trim() || name.endsWith('.')) return 'begins or ends with a space, or ends with a dot';
  if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}<>:"|?*]/u.test(name)) return 'holds a character that no folder may have';
  if (name.length > maxLength) return `has more than ${maxLength} characters`;
  if (deviceName.test(name)) return 'is a device on Windows';
  if (reserved.has(name.toLowerCase())) return 'is reserved';
  return undefined;
}

/** Throws TelosError `pack` for a name that may not be used. `from` says where the name stands. */
export function checkPackName(name: string, from: string): void {
  const problem = packNameProblem(name);
  if (!problem) return;
  throw new TelosError(
    'pack',
    `The agent name ${JSON.stringify(name)} (${from}) ${problem}. Use letters, digits, spaces, hyphens and underscores. Nothing was changed.`,
  );
}
