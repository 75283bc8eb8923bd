/**
 * `npm run bench:scan -- --corpus FOLDER`: what the look before says of packages that people have published, each in a folder
 * `<publisher>/<name>`, and how long it takes. Exit 1 when a known bad one is not at high, too many others are, or it is slow.
 * With `--list`, names what is at high and not known to be bad.
 */
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { ScanReport } from '../../src/packs/audit/scan.ts';
import { scanFolder } from '../../src/packs/audit/scanFolder.ts';
import known from './knownBad.json' with { type: 'json' };

const { values } = parseArgs({ options: { corpus: { type: 'string' }, list: { type: 'boolean' } } });
const missed: string[] = [];
/** How often one line may take what the same text in lines takes. */
const lineLimit = 2;

function row(label: string, figure: string, isMet: boolean, limit: string): void {
  if (!isMet) missed.push(label);
  console.log(`${label.padEnd(44)}${figure.padStart(16)}  wanted: ${limit}${isMet ? '' : '  MISSED'}`);
}

function packagesIn(corpus: string): string[] {
  const names = (folder: string): string[] =>
    readdirSync(folder).filter(name => statSync(join(folder, name)).isDirectory());
  return names(corpus).flatMap(owner => names(join(corpus, owner)).map(name => `${owner}/${name}`));
}

async function ofCorpus(corpus: string): Promise<void> {
  const packages = packagesIn(corpus);
  const reports = new Map<string, ScanReport>();
  const started = performance.now();
  const { user, system } = process.cpuUsage();
  for (const name of packages) reports.set(name, await scanFolder(join(corpus, name)));
  const seconds = (performance.now() - started) / 1000;
  const used = process.cpuUsage();
  const cpu = (used.user - user + used.system - system) / 1e6;
  const isHigh = (name: string): boolean => (reports.get(name)?.high ?? 0) > 0;
  const bad = known.packages.filter(name => reports.has(name));
  const high = packages.filter(isHigh);
  const share = (100 * high.length) / packages.length;
  const caught = bad.filter(isHigh).length;
  if (bad.length > 0)
    row('known bad packages at high', `${caught} of ${bad.length}`, caught === bad.length, 'all');
  else console.log('None of the packages that are known to be bad is in this folder.');
  row('all packages at high', `${high.length}, ${share.toFixed(2)} %`, share <= 2.5, 'at most 2.5 %');
  row(
    `${packages.length} packages, time of the processor`,
    `${cpu.toFixed(1)} s`,
    cpu < 10,
    'less than 10 s',
  );
  console.log(`${'the same, on the clock'.padEnd(44)}${`${seconds.toFixed(1)} s`.padStart(16)}`);
  const unread = [...reports.values()].reduce((sum, { of, read }) => sum + of - read, 0);
  console.log(`${'files not looked into'.padEnd(44)}${String(unread).padStart(16)}`);
  if (values.list)
    for (const name of high.filter(name => !bad.includes(name)))
      console.log(
        `  ${name}: ${reports.get(name)?.findings[0]?.kind} ${reports.get(name)?.findings[0]?.file}`,
      );
}

/** One line without an end, beside the same text in lines: nothing may search from each of its places to its end. */
async function ofOneLine(megabytes: number, text: string): Promise<void> {
  const size = megabytes * 1024 * 1024;
  const line = text.repeat(Math.ceil(size / text.length)).slice(0, size);
  const [ms, inLines] = [await scanned(line), await scanned(line.replace(/(.{80})./g, '$1\n'))];
  const ratio = ms / inLines;
  row(
    `${megabytes} MB in one line of ${JSON.stringify(text)}`,
    `${ratio.toFixed(2)} times`,
    ratio <= lineLimit,
    `at most ${lineLimit} times the same in lines (${ms.toFixed(0)} and ${inLines.toFixed(0)} ms)`,
  );
}

/** Returns how long the look at a file with that text takes, the fastest of three times after one that does not count. */
async function scanned(text: string): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'telos-scan-'));
  try {
    writeFileSync(join(folder, 'line.sh'), text);
    const times: number[] = [];
    for (let turn = 0; turn < 4; turn++) {
      const started = performance.now();
      await scanFolder(folder);
      if (turn > 0) times.push(performance.now() - started);
    }
    return Math.min(...times);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

await ofOneLine(5, 'a');
await ofOneLine(0.5, 'a');
await ofOneLine(0.5, 'read https://a.b/ ');
if (values.corpus) await ofCorpus(values.corpus);
else console.log('No --corpus was given: nothing is said of published packages.');
if (missed.length > 0) process.exitCode = 1;
