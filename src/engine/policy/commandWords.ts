/** Reads a command line as plain words, and refuses everything that a shell would make something else of. */

/** Words that begin a construct of the shell, not a program. */
const reserved =
  /^(if|then|else|elif|fi|do|done|case|esac|while|until|for|in|function|select|time|coproc|!|\[\[|\{|\})$/;

const special = /[;&|<>()$`\\*?[\]{}!^%\r]/;

/**
 * The words of one simple command; undefined for a line that holds operators, expansions, globs, assignments, escapes, control
 * characters or a quote without its end. Then no rule about words fits it. Only blanks part words; quotes hold a word together.
 */
export function plainWords(command: string): string[] | undefined {
  if (/[\0-\x1f\x7f-\x9f]/.test(command)) return undefined;
  if (process.platform === 'win32' && /['%^]/.test(command)) return undefined;
  const words: string[] = [];
  let word: string | undefined;
  for (let at = 0; at < command.length; at++) {
    const character = command[at]!;
    if (character === ' ') {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (character === "'" || character === '"') {
      const end = command.indexOf(character, at + 1);
      if (end < 0) return undefined;
      const quoted = command.slice(at + 1, end);
      if (character === '"' && /[$`\\!]/.test(quoted)) return undefined;
      word = (word ?? '') + quoted;
      at = end;
    } else {
      if (special.test(character)) return undefined;
      if (character === '#' && word === undefined) return undefined;
      if (character === '~' && (word === undefined || /[=:]$/.test(word))) return undefined;
      word = (word ?? '') + character;
    }
  }
  if (word !== undefined) words.push(word);
  const [program] = words;
  if (!program || program.includes('=') || reserved.test(program)) return undefined;
  return words;
}

/** True when the words are those of the pattern, whose last `*` stands for any further words. */
export function wordsMatch(pattern: readonly string[], words: readonly string[]): boolean {
  const open = pattern.length > 1 && pattern.at(-1) === '*';
  const fixed = open ? pattern.slice(0, -1) : pattern;
  if (open ? words.length < fixed.length : words.length !== fixed.length) return false;
  return fixed.every((word, index) => word === words[index]);
}

/**
 * Every word sequence in a line that could be a command, read generously: for rules that forbid, where a guess too many is harmless. What a
 * program or a script does inside cannot be seen here.
 */
export function looseCommands(command: string): string[][] {
  return command
    .split(/[;&|\n\r(){}`]+|\$\(/)
    .map(part =>
      part
        .replace(/["'\\]/g, '')
        .trim()
        .split(/\s+/)
        .filter(word => word !== '' && !/^\w+=/.test(word)),
    )
    .filter(words => words.length > 0);
}
