/** Finds commands that bring code from elsewhere in whatever version is there by then. */

/** Programs that fetch a package and run it without asking; `npx` only with a flag. */
const runner = /\b(npx|bunx|pnpx|uvx|pnpm\s{1,9}dlx|yarn\s{1,9}dlx|pipx\s{1,9}run)\s+/gi;
const installing =
  /\b(?:pip[\d.]{0,5}|pipx|uv|poetry|npm|pnpm|yarn|bun)\s(?:[\w.-]{1,20}\s){0,3}?(?:install|i|add|inject)\s/gi;
const cargo = /\bcargo\s+install\s[^|;&]{0,200}--git\b([^|;&]{0,200})/i;
/** How much of a command is read, in characters and words. */
const reach = 300;
const mostWords = 16;

/** True for a line with such a command. */
export function bringsUnpinnedCode(line: string): boolean {
  if (!/npx|bunx|uvx|dlx|run|install|\sadd|\si\s|inject/i.test(line)) return false;
  const behind = ({ index, 0: start }: RegExpExecArray): string[] =>
    wordsOf(line.slice(index + start.length, index + start.length + reach));
  for (const match of line.matchAll(runner)) if (runsUnpinned(match[1]!, behind(match))) return true;
  for (const match of line.matchAll(installing)) if (behind(match).some(isUnpinnedPlace)) return true;
  const ofCargo = cargo.exec(line);
  return ofCargo !== null && !/--(?:rev|tag)\b/.test(ofCargo[0] + ofCargo[1]);
}

const wordsOf = (command: string): string[] =>
  command
    .split(/[|;&\n)]/, 1)[0]!
    .split(/\s+/, mostWords)
    .map(word => word.replace(/^["'\x60]+|["'\x60,.:]+$/g, ''))
    .filter(word => word !== '');

function runsUnpinned(program: string, words: readonly string[]): boolean {
  let asks = program.toLowerCase() === 'npx';
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    const [, given] = /^--(?:package|from|spec)=(.*)$/.exec(word) ?? [];
    if (given !== undefined) return !asks && isUnpinned(given);
    if (/^(-y|--yes)$/.test(word)) asks = false;
    else if (/^(-p|--package|--from|--spec)$/.test(word)) {
      const yes = words.slice(at + 1).some(other => /^(-y|--yes)$/.test(other));
      return (!asks || yes) && isUnpinned(words[at + 1] ?? '');
    } else if (!word.startsWith('-')) return !asks && isUnpinned(word);
  }
  return false;
}

/** Of a package that is named; a place on this machine, or a word to be filled in, is none. */
function isUnpinned(name: string): boolean {
  if (isUnpinnedPlace(name)) return true;
  const [, version] =
    /^(?:@[\w.-]{1,100}\/)?[a-z][\w.-]{0,100}(?:\[[\w,-]{0,60}\])?(?:@|==)?(.{0,100})$/i.exec(name) ?? [];
  return version !== undefined && !/^v?\d+\.\d+(\.\d+)?([-+][\w.-]+)?$/.test(version);
}

/** A repository or an archive on the web, but for one that names its commit or its version. */
function isUnpinnedPlace(word: string): boolean {
  if (
    /^(?:[\w.[\]-]{1,80}@)?(?:git\+|github:|gitlab:|bitbucket:|git:\/\/|git@)/i.test(word) ||
    /^https?:\S{1,200}\.git\b/i.test(word)
  )
    return !/[@#][\da-f]{7,40}(?:$|[#&])/i.test(word);
  return (
    /^https?:/i.test(word) &&
    !/\d+\.\d+/.test(word.slice(word.lastIndexOf('/'))) &&
    !/[\da-f]{40}/i.test(word) &&
    /\.(?:zip|tgz|gz|whl|js)\b|\/archive\//i.test(word)
  );
}
