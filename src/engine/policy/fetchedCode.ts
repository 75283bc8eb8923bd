/** Finds text that is fetched and then run as code, in one line or over several: by its name, by a promise, or by a file that it was saved to. */

/** What a shell fetches with, and what programs do. Names of the second are followed, those of the first only out of a substitution. */
const ofShell = /\b(?:curl|wget|aria2c)\b/i;
const ofProgram =
  /\burlopen\b|\burlretrieve\b|\b(?:requests|httpx|axios|got|http|https|session)\.(?:get|post|request|read)\b|\b(?:fetch|axios|got)\s*\(|\b(?:iwr|irm|invoke-webrequest|invoke-restmethod|downloadstring)\b|\bNet::HTTP\b|\bfile_get_contents\s*\(\s*["']?https?:/i;

/** What takes text for code. `exec` behind a dot is a pattern's. */
const evaluating = /(?:(?<![\w.$-])(?:exec|eval|Function|execScript)|\bvm\.run\w{1,30}|\._compile)\s*\(/g;
const thenEvaluating =
  /\.then\s*\(\s*(?:async\s*)?(?:\(?\w{0,40}\)?\s*=>\s*\{?\s*(?:return\s+)?)?(?:window\.|globalThis\.|global\.)?(?:eval|(?:new\s+)?Function|vm\.run\w{1,30})\b/;
const runningWord =
  /(?:\b(?:eval|source|iex)|(?:^|[\s;&|])\.|\b(?:ba|z|da|k)?sh\s+-\w{0,8}c|<<<)\s*["'\x60]?\$\{?(\w{1,60})/g;
/** A word alone, where a command is expected. */
const wordAsCommand = /(?:^|[;&|]\s{0,9})["']?\$(?:\{(\w{1,60})\}|(\w{1,60}))["']?\s{0,9}(?=$|[;&|])/g;
const assignment = /(?<![\w.])\$?([A-Za-z_]\w{0,60})\s{0,9}=(?![=>~])/g;

/** How far behind a name or a bracket is looked, in characters; and how many names are followed. */
const reach = 200;
const mostNames = 100;
/** How many lines a promise may take from being made to being used. */
const promiseLines = 6;

/** For the lines of one file, in their order. */
export class FetchedCode {
  readonly #names = new Set<string>();
  #promised = 0;

  /** True for a line that runs what it, or a line before it, has fetched. `isPiped` tells whether a shell gets what stands before this rest. */
  isRunBy(line: string, isPiped: (rest: string) => boolean): boolean {
    if (!/[=($]/.test(line)) {
      this.#promised--;
      return false;
    }
    this.#promised = ofProgram.test(line) ? promiseLines : this.#promised - 1;
    this.#follow(line);
    if (this.#promised > 0 && thenEvaluating.test(line)) return true;
    for (const { index, 0: start } of line.matchAll(evaluating)) {
      const code = line.slice(index + start.length, index + start.length + reach);
      if (ofProgram.test(code) || this.#namesOneOf(code)) return true;
    }
    if (this.#names.size === 0 || !line.includes('$')) return false;
    for (const pattern of [runningWord, wordAsCommand])
      for (const [, braced = '', bare = ''] of line.matchAll(pattern))
        if (this.#names.has(braced || bare)) return true;
    const [, printed = '', rest = ''] = /\b(?:echo|printf|cat)\b([^|]{0,200})(\|.{0,200})/.exec(line) ?? [];
    return this.#namesOneOf(printed) && isPiped(rest);
  }

  /** Takes down what names hold fetched text, or something made of it. */
  #follow(line: string): void {
    for (const { index, 0: start, 1: name = '' } of line.matchAll(assignment)) {
      if (this.#names.size >= mostNames) return;
      const [value = ''] = line.slice(index + start.length, index + start.length + reach).split(';', 1);
      const isSubstituted = /^\s{0,9}["']?(?:\$\(|\x60)/.test(value) && ofShell.test(value);
      if (isSubstituted || ofProgram.test(value) || this.#namesOneOf(value)) this.#names.add(name);
    }
  }

  #namesOneOf(text: string): boolean {
    if (this.#names.size === 0) return false;
    return (text.match(/[A-Za-z_]\w*/g) ?? []).some(word => this.#names.has(word));
  }
}
