/**
 * `npm run bench:routing`: how well requests find their skill without a model, on the project's own sentences and skills. With `--packs FILE
 * --corpus FOLDER` it measures the sentences in `test/fixtures/routing/published` on skills that people have published; the file says
 * which of them make a pack, as `routeBenchmark.ts` describes.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Provider } from '../../src/engine/core/ports.ts';
import { writeWhole } from '../../src/engine/files/atomicWrite.ts';
import { TaughtLines, writeLines } from '../../src/engine/routing/teaching.ts';
import { openSkill, skillFileIn } from '../../src/engine/skills/skillFile.ts';
import { runConversationBenchmark, runRouteBenchmark } from './routeBenchmark.ts';

const fixtures = fileURLToPath(new URL('../fixtures/routing/', import.meta.url));
const { values } = parseArgs({ options: { packs: { type: 'string' }, corpus: { type: 'string' } } });
const own = {
  packsFile: join(fixtures, 'packs.json'),
  corpusDir: join(fixtures, 'skills'),
};

/** A figure, and what it should be at least, or at most if that is negative. */
type Figure = [label: string, share: number, wanted?: number | undefined];
const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;

function row(name: string, n: number, ms: number, figures: readonly Figure[]): void {
  console.log(`${name} (${n}, ${ms.toFixed(1)} ms each)`);
  for (const [label, share, wanted] of figures) {
    const limit =
      wanted === undefined ? '' : `  wanted: at ${wanted < 0 ? 'most' : 'least'} ${Math.abs(wanted)} %`;
    const isMissed = wanted !== undefined && (wanted < 0 ? share * 100 > -wanted : share * 100 < wanted);
    console.log(`  ${label.padEnd(44)}${percent(share).padStart(8)}${limit}${isMissed ? '  MISSED' : ''}`);
  }
}

interface Wanted {
  right?: number;
  wrong?: number;
  offered?: number;
  top1?: number;
  fired?: number;
}

async function requests(
  name: string,
  files: Parameters<typeof runRouteBenchmark>[0],
  wanted: Wanted,
): Promise<void> {
  const { n, right, wrong, offered, top1, negativesFired, msPerRoute } = (await runRouteBenchmark(files))
    .overall;
  const fired: Figure = ['sentences that mean none, but run one', negativesFired, wanted.fired];
  row(name, n, msPerRoute, [
    ['run right', right, wanted.right],
    ['run wrong', wrong, wanted.wrong],
    ['right one runs or is offered', offered, wanted.offered],
    ['right one is first in the index', top1, wanted.top1],
    ...(files.negativesFile ? [fired] : []),
  ]);
}

/** Measures sentences that say a skill's name: those that order it, and those that only mention it. */
async function names(file: string, name: string, wanted: Wanted): Promise<void> {
  const lines = readFileSync(join(fixtures, 'mentions', file), 'utf8')
    .trim()
    .split('\n');
  const said = lines.map(line => {
    const { utterance, names, runs } = JSON.parse(line) as {
      utterance: string;
      names: string;
      runs: boolean;
    };
    return { utterance, expected_path: `shop/${names}`, candidates_dir: 'shop', runs };
  });
  const write = (file: string, runs: boolean): string => {
    const path = join(scratch, file);
    const ofKind = said.filter(one => one.runs === runs).map(one => JSON.stringify(one));
    writeFileSync(path, ofKind.join('\n'));
    return path;
  };
  const files = {
    ...own,
    packsFile: join(fixtures, 'mentions/packs.json'),
    pairsFile: write('ordered.jsonl', true),
    negativesFile: write('mentioned.jsonl', false),
  };
  await requests(name, files, wanted);
}

/** Measures requests of one kind, such as those with typing mistakes. */
async function ofKind(
  kind: string,
  name: string,
  files: Parameters<typeof runRouteBenchmark>[0],
  offered: number,
): Promise<void> {
  const lines = readFileSync(files.pairsFile, 'utf8').split('\n');
  const pairsFile = join(scratch, `${kind}.jsonl`);
  writeFileSync(pairsFile, lines.filter(line => line.includes(`"kind": "${kind}"`)).join('\n'));
  const { negativesFile: _, ...rest } = files;
  await requests(name, { ...rest, pairsFile }, { offered });
}

async function natural(files: Parameters<typeof runRouteBenchmark>[0]): Promise<void> {
  const talk = files.negativesFile ? ', and everyday talk' : '';
  await requests(`Natural requests${talk}`, files, { right: 35, wrong: -3, offered: 88, fired: -1 });
  await ofKind('typo', '  of them with typing mistakes', files, 95);
  await ofKind('other-language', '  of them in German, French and Spanish', files, 70);
}

async function conversations(
  name: string,
  files: Parameters<typeof runConversationBenchmark>[0],
): Promise<void> {
  const { n, switched, byChip, stayed, wrongSwitch, msPerRoute } = (await runConversationBenchmark(files))
    .overall;
  row(name, n, msPerRoute, [
    ['switched, or offered by a chip', switched, 80],
    ['  by a chip', byChip],
    ['stayed', stayed, 95],
    ['switched wrongly', wrongSwitch, -3],
  ]);
}

const scratch = mkdtempSync(join(tmpdir(), 'telos-routing-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));

/**
 * Lets a scripted model teach the skills of a file of JSON lines `{skill, lines}`, by the way that a real one goes. The lines were written by
 * what the skills say of themselves, without a look at the requests.
 */
async function teach(file: string, corpusDir: string): Promise<{ dataDir: string }> {
  const dataDir = join(scratch, basename(corpusDir));
  for (const line of readFileSync(file, 'utf8').trim().split('\n')) {
    const { skill, lines } = JSON.parse(line) as { skill: string; lines: readonly string[] };
    const found = skillFileIn(join(corpusDir, skill));
    if (!found) throw new Error(`There is no skill ${skill} in ${corpusDir}`);
    const model: Provider = {
      name: 'scripted',
      model: 'scripted',
      async *streamCompletion() {
        yield { type: 'text', text: lines.join('\n') };
      },
    };
    const written = await writeLines(
      model,
      openSkill(found, 'user', basename(skill)),
      'German',
      new AbortController().signal,
    );
    await new TaughtLines(dataDir).set(found, written, writeWhole);
  }
  return { dataDir };
}

const file = (name: string): string => join(fixtures, name);
const taughtAims = { right: 55, wrong: -3, fired: -1 };
if (values.packs && values.corpus) {
  const published = { packsFile: values.packs, corpusDir: values.corpus };
  const talks = { ...published, conversationsFile: file('published/conversations.jsonl') };
  const taught = await teach(file('published/taught.jsonl'), values.corpus);
  const files = { ...published, pairsFile: file('published/natural.jsonl') };
  await natural(files);
  await requests('Natural requests, taught', { ...files, ...taught }, taughtAims);
  await conversations('Conversations', talks);
  await conversations('Conversations, taught', { ...talks, ...taught });
} else {
  const everyday = { packsFile: file('everydayPacks.json'), negativesFile: file('everydayNegatives.jsonl') };
  const files = { ...own, pairsFile: file('natural.jsonl'), negativesFile: file('talk.jsonl') };
  const talks = { ...own, conversationsFile: file('conversations.jsonl') };
  const taught = await teach(file('taught.jsonl'), own.corpusDir);
  const easy = { ...own, pairsFile: file('pairs.jsonl'), negativesFile: file('negatives.jsonl') };
  await requests('Requests in the words of a skill', easy, { top1: 99, fired: -3 });
  await natural(files);
  await requests('Natural requests and everyday talk, taught', { ...files, ...taught }, taughtAims);
  const everydayNames = { ...own, ...everyday, pairsFile: file('everyday.jsonl') };
  await requests('Everyday names', everydayNames, { right: 90, fired: -5 });
  await names('tuning.jsonl', 'Names that are ordered, or only mentioned', { right: 98, fired: -1 });
  await names('heldOut.jsonl', '  those that nobody tuned for', { right: 95, fired: -3 });
  await conversations('Conversations', talks);
  await conversations('Conversations, taught', { ...talks, ...taught });
}
