/** What became of each test of a layer. */

export interface Outcome {
  /** `left`: what is still open long after the last test. Its title says what. */
  state: 'passed' | 'failed' | 'skipped' | 'left';
  title: string;
  /** From the root of the project, where it is known. */
  file?: string;
  /** Present where it is no test, but what mocha runs before or after tests. */
  isHook?: true;
  /** Its message. Present for `failed`. */
  error?: string;
  ms: number;
}

/** A test that failed, and passed when it was tried again. */
export interface Flake {
  title: string;
  firstError: string;
}

export interface Results {
  passed: number;
  /** Empty where only their number is known. */
  passedTitles: string[];
  failed: Outcome[];
  skipped: Outcome[];
  /** What kept the program from ending after its last test, until it was ended. */
  left?: string;
}

/** Returns the results of the lines that `OutcomeReporter` wrote. A line that a kill cut is left out. */
export function resultsOf(lines: string): Results {
  const outcomes = lines.split('\n').flatMap(line => {
    try {
      return line ? [JSON.parse(line) as Outcome] : [];
    } catch {
      return [];
    }
  });
  const passed = outcomes.filter(one => one.state === 'passed');
  const left = outcomes.find(one => one.state === 'left')?.title;
  return {
    passed: passed.length,
    passedTitles: passed.map(one => one.title),
    failed: outcomes.filter(one => one.state === 'failed'),
    skipped: outcomes.filter(one => one.state === 'skipped'),
    ...(left !== undefined && { left }),
  };
}

/** Returns the results in what mocha's `spec` printed, for a suite that runs inside of VS Code. */
export function resultsInText(text: string): Results {
  const counted = (word: string): number => Number(new RegExp(`^ *(\\d+) ${word}`, 'm').exec(text)?.[1] ?? 0);
  const at = text.search(/^ *\d+ failing/m);
  const blocks =
    at < 0
      ? []
      : text
          .slice(at)
          .split(/^ {2}\d+\) /m)
          .slice(1);
  return {
    passed: counted('passing'),
    passedTitles: [],
    failed: blocks.map(block => {
      const [title = '', error = ''] = block.split(/:\n\n/, 2);
      const words = title.split('\n').map(line => line.trim());
      return { state: 'failed', title: words.join(' '), error: firstLines(error, 3), ms: 0 };
    }),
    skipped: Array.from({ length: counted('pending') }, () => ({ state: 'skipped', title: '', ms: 0 })),
  };
}

/** Returns the first lines of a text that say something, joined to one. */
export function firstLines(text: string, count: number): string {
  const lines = text.split('\n').map(line => line.trim());
  return lines.filter(Boolean).slice(0, count).join(' ');
}
