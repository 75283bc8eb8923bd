/** The benchmark tells good routing from bad, in the figures and the format that it promises. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { runConversationBenchmark, runRouteBenchmark } from '../bench/routeBenchmark.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

const fixtures = fileURLToPath(new URL('../fixtures/routing/', import.meta.url));
const files = {
  pairsFile: join(fixtures, 'pairs.jsonl'),
  packsFile: join(fixtures, 'packs.json'),
  negativesFile: join(fixtures, 'negatives.jsonl'),
  corpusDir: join(fixtures, 'skills'),
};

describe('routing benchmark', () => {
  let folder: TempFolder;
  before(() => {
    folder = tempFolder();
  });
  after(() => folder.remove());

  it('finds the skills of the sample packs, and none for small talk', async () => {
    const { overall, packs } = await runRouteBenchmark(files);
    assert.equal(overall.n, 27);
    assert.deepEqual(Object.keys(packs), ['indoors', 'outdoors']);
    assert.ok(overall.top1 >= 0.9, `top1 ${overall.top1}`);
    assert.ok(overall.top3 >= 0.97, `top3 ${overall.top3}`);
    assert.ok(overall.wrong <= 0.03, `wrong ${overall.wrong}`);
    assert.ok(overall.abstained <= 0.3, `abstained ${overall.abstained}`);
    assert.equal(overall.negativesFired, 0);
    assert.ok(overall.msPerRoute > 0);
  });

  it('keeps the figures that are promised, in the table that is printed', async function () {
    this.timeout(60_000);
    const table = fileURLToPath(new URL('../bench/routing.ts', import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [table]);
    assert.match(stdout, /^Natural requests and everyday talk, taught \(31/m);
    assert.ok((stdout.match(/wanted: /g) ?? []).length >= 18, stdout);
    assert.doesNotMatch(stdout, /MISSED/);
  });

  it('counts what is wrong, what fires and what is also right', async () => {
    const line = (value: object): string => `${JSON.stringify(value)}\n`;
    const said = 'Water the tomatoes for ten minutes';
    folder.add({
      'pairs.jsonl':
        line({ utterance: said, expected_path: 'home/blinds', candidates_dir: 'indoors' }) +
        line({
          utterance: said,
          expected_path: 'home/blinds',
          candidates_dir: 'indoors',
          also_ok: ['home/irrigation'],
        }),
      'negatives.jsonl': line({ utterance: said, candidates_dir: 'indoors' }),
    });
    const { overall } = await runRouteBenchmark({
      ...files,
      pairsFile: join(folder.path, 'pairs.jsonl'),
      negativesFile: join(folder.path, 'negatives.jsonl'),
    });
    const { n, top1, top3, wrong, abstained, negativesFired } = overall;
    assert.deepEqual(
      { n, top1, top3, wrong, abstained, negativesFired },
      { n: 2, top1: 0.5, top3: 0.5, wrong: 0.5, abstained: 0, negativesFired: 1 },
    );
  });

  it('says which line of which file is not in the format', async () => {
    folder.add({ 'bad.jsonl': '\n{"utterance": 1}\n', 'lost.json': '{"packs": {"p": ["home/none"]}}' });
    const bad = join(folder.path, 'bad.jsonl');
    await assert.rejects(runRouteBenchmark({ ...files, pairsFile: bad }), /bad\.jsonl, line 2/);
    const lost = join(folder.path, 'lost.json');
    await assert.rejects(runRouteBenchmark({ ...files, packsFile: lost }), /no SKILL\.md in .*none/);
  });

  it('keeps its figures on natural requests, everyday names, small talk and conversations', async () => {
    const file = (name: string): string => join(fixtures, name);
    const natural = await runRouteBenchmark({
      ...files,
      pairsFile: file('natural.jsonl'),
      negativesFile: file('talk.jsonl'),
    });
    assert.ok(natural.overall.right >= 0.35, `right ${natural.overall.right}`);
    assert.ok(natural.overall.wrong <= 0.03, `wrong ${natural.overall.wrong}`);
    assert.ok(natural.overall.offered >= 0.88, `offered ${natural.overall.offered}`);
    assert.ok(natural.overall.negativesFired <= 0.001, `fired ${natural.overall.negativesFired}`);
    const everyday = await runRouteBenchmark({
      ...files,
      packsFile: file('everydayPacks.json'),
      pairsFile: file('everyday.jsonl'),
      negativesFile: file('everydayNegatives.jsonl'),
    });
    assert.ok(everyday.overall.right >= 0.9, `right ${everyday.overall.right}`);
    assert.ok(everyday.overall.negativesFired <= 0.05, `fired ${everyday.overall.negativesFired}`);
    const { overall } = await runConversationBenchmark({
      ...files,
      conversationsFile: file('conversations.jsonl'),
    });
    assert.ok(overall.switched >= 0.8 && overall.stayed >= 0.95, JSON.stringify(overall));
    assert.equal(overall.wrongSwitch, 0);
  });
});
