/** A temporary copy of the checkout in which one break at a time is tried. The checkout itself is only read. */
import { spawn } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Break, broken } from './breaks.ts';
import { type Executed, readCoverage } from './coverage.ts';

/** What is not copied. The packages are linked. */
const left = ['.git', '.vscode-test', 'dist', 'node_modules', 'test-results'];

/** Limit for one test, in milliseconds. */
const testLimitMs = 20_000;

export type TestResult = 'passed' | 'failed' | 'timed out';

export class Workplace {
  readonly #folder = mkdtempSync(join(tmpdir(), 'telos-mutate-'));
  readonly #root = join(this.#folder, 'checkout');
  readonly #running = new Set<number>();

  constructor(checkout: string) {
    mkdirSync(this.#root);
    for (const name of readdirSync(checkout)) {
      if (!left.includes(name)) cpSync(join(checkout, name), join(this.#root, name), { recursive: true });
    }
    symlinkSync(join(checkout, 'node_modules'), join(this.#root, 'node_modules'));
  }

  /** Breaks the copy, runs the tests, which stop at the first that fails, and mends the copy. */
  async tryBreak(one: Break, tests: readonly string[], limitMs: number): Promise<TestResult> {
    const path = join(this.#root, one.file);
    const whole = readFileSync(path, 'utf8');
    writeFileSync(path, broken(whole, one));
    try {
      return await this.#runTests(tests, limitMs);
    } finally {
      writeFileSync(path, whole);
    }
  }

  /** Runs a test file without a break. Returns how that ended and what it executed of `files`. */
  async measure(
    test: string,
    files: Iterable<string>,
    limitMs: number,
  ): Promise<{ result: TestResult; executed: Executed }> {
    // A new one each time: a process that a test left behind writes its own once it ends, into a folder that was removed too.
    const folder = mkdtempSync(join(this.#folder, 'coverage-'));
    try {
      const covered = await this.#runTests([test], limitMs, { NODE_V8_COVERAGE: folder });
      // What is counted is slower, and some tests measure how long something takes.
      const result = covered === 'passed' ? covered : await this.#runTests([test], limitMs);
      return { result, executed: readCoverage(folder, this.#root, files) };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  async #runTests(
    tests: readonly string[],
    limitMs: number,
    more: NodeJS.ProcessEnv = {},
  ): Promise<TestResult> {
    const mocha = join('node_modules', 'mocha', 'bin', 'mocha.js');
    const options = ['--no-config', '--bail', '--exit', '--reporter', 'dot', '--timeout', `${testLimitMs}`];
    const child = spawn(process.execPath, [mocha, ...options, ...tests], {
      cwd: this.#root,
      env: { ...process.env, NODE_COMPILE_CACHE: join(this.#folder, 'compiled'), ...more },
      stdio: 'ignore',
      // A group of its own: what the tests have started ends with them.
      detached: true,
    });
    const { pid } = child;
    if (pid !== undefined) this.#running.add(pid);
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      endGroup(pid);
    }, limitMs);
    const code = await new Promise<number | null>((resolve, reject) => {
      child.on('error', reject);
      child.on('exit', resolve);
    });
    clearTimeout(timer);
    endGroup(pid);
    if (pid !== undefined) this.#running.delete(pid);
    if (late) return 'timed out';
    return code === 0 ? 'passed' : 'failed';
  }

  async remove(): Promise<void> {
    for (const pid of this.#running) endGroup(pid);
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The group has ended.
  }
}
