/** Holds a command against the patterns of a skill's `allowed-tools`, part by part, so that nothing rides along. */
import { matchesWildcard } from '../tools/wildcard.ts';

/** Why the command may not be asked for; undefined when every part of it matches a pattern. */
export function patternProblem(command: string, patterns: readonly string[]): string | undefined {
  const allowed = patterns.map(pattern => `\`${pattern}\``).join(', ');
  const parts = commandParts(command);
  if (!parts) return `The skill allows only ${allowed}, so a command must not have another one inside it.`;
  const other = parts.find(part => !patterns.some(pattern => matches(pattern, part)));
  return other === undefined ? undefined : `The skill allows only the commands ${allowed}, not \`${other}\`.`;
}

/** `git *` means `git` alone too. */
const matches = (pattern: string, part: string): boolean =>
  matchesWildcard(pattern, part) || (pattern.endsWith(' *') && part === pattern.slice(0, -2));

/**
 * The commands that a shell would run one after the other or side by side; undefined where it would run one that cannot be told
 * from the text: a substitution, a group, or a quote that does not end.
 */
function commandParts(command: string): string[] | undefined {
  const parts: string[] = [];
  let part = '';
  let quote = '';
  for (let index = 0; index < command.length; index++) {
    const sign = command.charAt(index);
    const next = command.charAt(index + 1);
    if (quote === "'") {
      if (sign === "'") quote = '';
    } else if (sign === '\\') {
      part += sign;
      index++;
      part += next;
      continue;
    } else if (sign === '`' || (sign === '$' && /[({'"]/.test(next))) return undefined;
    else if (quote === '"') {
      if (sign === '"') quote = '';
    } else if (sign === "'" || sign === '"') quote = sign;
    else if (/[(){}]/.test(sign)) return undefined;
    else if (/[;&|\r\n]/.test(sign)) {
      // `>&2` and `&>file` join streams, not commands.
      const joinsStreams = sign === '&' && (/[<>]$/.test(part) || next === '>');
      if (!joinsStreams) {
        parts.push(part.trim());
        part = '';
        continue;
      }
    }
    part += sign;
  }
  if (quote) return undefined;
  return [...parts, part.trim()].filter(Boolean);
}
