/** Runs two programs in turn, so that whatever drifts on the machine meets both, and compares their medians. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** One of the two sides of a comparison: a program, and where it runs. */
export interface Side {
  args: readonly string[];
  cwd: string;
  env: Readonly<Record<string, string>>;
}

export interface Run {
  /** `performance.now()` just before the process was started. */
  startedAt: number;
  /** From there to its end, in milliseconds. */
  totalMs: number;
}

export interface Figure {
  name: string;
  unit: string;
  ours: number;
  /** Undefined for a figure without one beside it. */
  bare: number | undefined;
  /** Largest allowed ratio, or largest allowed value of a figure without one beside it. */
  limit: number;
}

/** Runs a side once, its output discarded. Throws when it does not end with exit code 0 within a minute. */
export async function runOnce(side: Side): Promise<Run> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, side.args, {
    cwd: side.cwd,
    env: side.env,
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: 60_000,
  });
  let complaint = '';
  child.stderr.on('data', piece => {
    complaint += piece;
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  const totalMs = performance.now() - startedAt;
  if (code !== 0) throw new Error(`${side.args.join(' ')} ended with ${code}: ${complaint}`);
  return { startedAt, totalMs };
}

const writePeak =
  "data:text/javascript,import{writeFileSync}from'node:fs';process.on('exit',()=>writeFileSync(process.env.PEAK_FILE,String(process.resourceUsage().maxRSS)))";

/** The same, and the most memory that the process held at any time, in MB. */
export async function runWithPeak(side: Side): Promise<Run & { peakMegabytes: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'telos-bench-peak-'));
  const peakFile = join(folder, 'peak');
  try {
    const run = await runOnce({
      ...side,
      args: ['--import', writePeak, ...side.args],
      env: { ...side.env, PEAK_FILE: peakFile },
    });
    return { ...run, peakMegabytes: Number(readFileSync(peakFile, 'utf8')) / 1024 };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Measures both sides `times` times in turn, who begins changing each time, after one run of each that does not count. */
export async function alternate<Measure>(
  times: number,
  ours: () => Promise<Measure>,
  bare: () => Promise<Measure>,
): Promise<{ ours: Measure[]; bare: Measure[] }> {
  const measured = { ours: [] as Measure[], bare: [] as Measure[] };
  await ours();
  await bare();
  for (let turn = 0; turn < times; turn++) {
    if (turn % 2 === 0) measured.ours.push(await ours());
    measured.bare.push(await bare());
    if (turn % 2 === 1) measured.ours.push(await ours());
  }
  return measured;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

export function isMet({ ours, bare, limit }: Figure): boolean {
  return (bare === undefined ? ours : ours / bare) <= limit;
}

/** For example `start to first request     91.2 ms   bare  80.1 ms   1.14x (limit 1.3x)  ok`. */
export function figureLine(figure: Figure): string {
  const { name, unit, ours, bare, limit } = figure;
  const number = (value: number): string => `${value.toFixed(1).padStart(8)} ${unit}`;
  const beside = bare === undefined ? ' '.repeat(18) : `   bare${number(bare)}`;
  const ratio =
    bare === undefined ? `(limit ${limit} ${unit})` : `${(ours / bare).toFixed(2)}x (limit ${limit}x)`;
  return `${name.padEnd(44)}${number(ours)}${beside}   ${ratio.padEnd(22)}${isMet(figure) ? 'ok' : 'MISSED'}`;
}
