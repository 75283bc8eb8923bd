/**
 * `npm run bench:routing`: how well requests find their skill without a model, on the project's own sentences and skills. With `--packs FILE
 * --corpus FOLDER` it measures the sentences in `test/fixtures/routing/published` on skills that people have published; the file says
 * which of them make a pack, as `routeBenchmark.ts` describes.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runConversationBenchmark, runRouteBenchmark } from '../../src/engine/routing/routeBenchmark.ts';

const fixtures = fileURLToPath(new URL('../fixtures/routing/', import.meta.url));
const { values } = parseArgs({ options: { packs: { type: 'string' }, corpus: { type: 'string' } } });
const own = {
  packsFile: join(fixtures, 'packs.json'),
  corpusDir: join(fixtures, 'skills'),
  mode: 'local',
} as const;

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`.padStart(8);
const row = (name: string, n: number, ...figures: [label: string, share: number][]): void =>
  console.log(
    `${name.padEnd(34)}${String(n).padStart(5)}  ${figures.map(([label, share]) => `${label} ${percent(share)}`).join('  ')}`,
  );

async function requests(name: string, files: Parameters<typeof runRouteBenchmark>[0]): Promise<void> {
  const { overall } = await runRouteBenchmark(files);
  const { n, right, wrong, offered, top1, top3, negativesFired } = overall;
  row(
    name,
    n,
    ['runs right', right],
    ['wrong', wrong],
    ['right among those offered', offered],
    ['first', top1],
    ['first three', top3],
  );
  if (files.negativesFile)
    console.log(`${' '.repeat(41)}sentences that mean none, but run one ${percent(negativesFired)}`);
}

async function conversations(
  name: string,
  files: Parameters<typeof runConversationBenchmark>[0],
): Promise<void> {
  const { n, switched, byChip, stayed, wrongSwitch } = (await runConversationBenchmark(files)).overall;
  row(name, n, ['switched', switched], ['(by chip', byChip], [') stayed', stayed], ['wrong', wrongSwitch]);
}

if (values.packs && values.corpus) {
  const published = { packsFile: values.packs, corpusDir: values.corpus, mode: 'local' } as const;
  await requests('Natural requests', { ...published, pairsFile: join(fixtures, 'published/natural.jsonl') });
  await conversations('Conversations', {
    ...published,
    conversationsFile: join(fixtures, 'published/conversations.jsonl'),
  });
} else {
  const file = (name: string): string => join(fixtures, name);
  const everyday = {
    ...own,
    packsFile: file('everydayPacks.json'),
    negativesFile: file('everydayNegatives.jsonl'),
  };
  await requests('Requests in the words of a skill', {
    ...own,
    pairsFile: file('pairs.jsonl'),
    negativesFile: file('negatives.jsonl'),
  });
  await requests('Natural requests; everyday talk', {
    ...own,
    pairsFile: file('natural.jsonl'),
    negativesFile: file('talk.jsonl'),
  });
  await requests('Everyday names', { ...everyday, pairsFile: file('everyday.jsonl') });
  await conversations('Conversations', { ...own, conversationsFile: file('conversations.jsonl') });
}
