/** Reads a command line as plain words, and refuses everything that a shell would make something else of. */

/** Words that begin a construct of the shell, not a program. */
const reserved =
  /^(if|then|else|elif|fi|do|done|case|esac|while|until|for|in|function|select|time|coproc|!|\[\[|\{|\})$/;

const special = /[;&|<>()$`\\*?[\]{}!^%\r]/;

/**
 * The words of a line in which only blanks part words and quotes hold one together. `refused` is the first thing that is more than that:
 * an operator, an expansion, a glob, an escape, a comment, a control character or a quote without its end; `words` are then those before it.
 */
export function readWords(command: string): { words: string[]; refused?: string } {
  const words: string[] = [];
  let word: string | undefined;
  const stop = (refused: string) => ({ words: word === undefined ? words : [...words, word], refused });
  // Also within quotes: a line is a line.
  const control = /[\0-\x1f\x7f-\x9f]/.exec(command)?.[0];
  for (let at = 0; at < command.length; at++) {
    const character = command[at]!;
    if (character === ' ') {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (character === "'" || character === '"') {
      const end = command.indexOf(character, at + 1);
      if (end < 0) return stop(character);
      const quoted = command.slice(at + 1, end);
      const inside = character === '"' ? /[$`\\!]/.exec(quoted)?.[0] : undefined;
      if (inside !== undefined) return stop(inside);
      word = (word ?? '') + quoted;
      at = end;
    } else {
      const isTilde = character === '~' && (word === undefined || /[=:]$/.test(word));
      const isComment = character === '#' && word === undefined;
      if (special.test(character) || character === control || isTilde || isComment) return stop(character);
      word = (word ?? '') + character;
    }
  }
  return control === undefined ? { words: stop('').words } : stop(control);
}

/** The words of one simple command; undefined for a line that is more, also by an assignment before it or a word of the shell. Then no rule about words fits it. */
export function plainWords(command: string): string[] | undefined {
  if (process.platform === 'win32' && /['%^]/.test(command)) return undefined;
  const { words, refused } = readWords(command);
  const [program] = words;
  if (refused !== undefined || !program || program.includes('=') || reserved.test(program)) return undefined;
  return words;
}

/** True when the words are those of the pattern, whose last `*` stands for any further words. */
export function wordsMatch(pattern: readonly string[], words: readonly string[]): boolean {
  const open = pattern.length > 1 && pattern.at(-1) === '*';
  const fixed = open ? pattern.slice(0, -1) : pattern;
  if (open ? words.length < fixed.length : words.length !== fixed.length) return false;
  return fixed.every((word, index) => word === words[index]);
}

/** True when the words of the pattern stand anywhere in `words`: behind `sudo` or `env`, say, or with a path before the program. */
export function wordsOccur(pattern: readonly string[], words: readonly string[]): boolean {
  const open = pattern.length > 1 && pattern.at(-1) === '*';
  const fixed = open ? pattern.slice(0, -1) : pattern;
  return words.some(
    (word, at) =>
      (word === fixed[0] || word.endsWith(`/${fixed[0]}`)) &&
      (open || at + fixed.length === words.length) &&
      fixed.every((wanted, index) => index === 0 || words[at + index] === wanted),
  );
}

/**
 * Every word sequence in a line that could be a command, read generously: for rules that forbid, where a guess too many is harmless. What a
 * program or a script does inside cannot be seen here.
 */
export function looseCommands(command: string): string[][] {
  return command
    .replace(/\\\r?\n/g, '')
    .replace(/\$(?:IFS\b|\{IFS[^}]{0,40}\})/g, ' ')
    .replace(/(?<!\d)\d*(?:&>|[<>]+)&?\s*[^\s;&|<>()]*/g, ' ')
    .split(/[;&|\n\r(){}`]+|\$\(/)
    .map(part =>
      part
        .replace(/\$?["']|\\/g, '')
        .trim()
        .split(/\s+/)
        .filter(word => word !== '' && !/^\w+=/.test(word)),
    )
    .filter(words => words.length > 0);
}
