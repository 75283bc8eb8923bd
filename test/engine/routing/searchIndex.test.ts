/** The index finds the skill that a request is about, keeps up with changed files and lets others work in between. */
import assert from 'node:assert/strict';
import { rmSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { confidenceOf, sure } from '../../../src/engine/routing/confidence.ts';
import { SearchIndex } from '../../../src/engine/routing/searchIndex.ts';
import { discoverAgents, type FileAgent } from '../../../src/engine/skills/discover.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('search index', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  const add = (path: string, text: string): void =>
    folder.add({ [join(path.replace('/', '/skills/'), 'SKILL.md')]: text });
  const agents = (): readonly FileAgent[] =>
    discoverAgents(loadConfig({ env: { TELOS_SKILLS_DIR: folder.path }, home: folder.path }));
  const best = (index: SearchIndex, text: string): string | undefined => index.rank(text, 1)[0]?.skill.id;

  /** Returns the skill that would run unasked. */
  const decided = (index: SearchIndex, text: string, agent?: string): string | undefined => {
    const ranking = index.rank(text, 3, agent);
    return confidenceOf(text, ranking) >= sure ? ranking[0]?.skill.id : undefined;
  };

  it('looks at names, descriptions, triggers, headings, examples and bodies', async () => {
    add('a/moon-phase', '---\ndescription: When it is full\n---\n');
    add('a/s1', '---\ndescription: Prunes apple trees\n---\n');
    add('a/s2', '---\ndescription: d\ntriggers: [polish boots, "wax laces"]\n---\n');
    add('a/s3', '---\ndescription: d\n---\n# Sharpening chisels\n');
    add('a/s4', '---\ndescription: d\n---\n## When to use\n- "Fold a paper crane"\n');
    add('a/s5', '---\ndescription: d\n---\nSome prose that speaks of lighthouses.\n');
    add('a/s6', 'A file without frontmatter, on beekeeping.\n');
    const index = await SearchIndex.build(agents());
    assert.equal(best(index, 'phases of the moon'), 'moon-phase');
    assert.equal(best(index, 'prune the apple tree'), 's1');
    assert.equal(best(index, 'waxing my laces'), 's2');
    assert.equal(best(index, 'sharpen a chisel'), 's3');
    assert.equal(best(index, 'folding paper cranes'), 's4');
    assert.equal(best(index, 'the lighthouse'), 's5');
    assert.equal(best(index, 'beekeeping'), 's6');
    assert.equal(best(index, 'submarine'), undefined);
    assert.deepEqual(index.rank('', 3), []);
  });

  it('prefers the skill one of whose lines says the same to one that has the words here and there', async () => {
    const scattered =
      'The lamp of the office.\n\nTurn it.\n\nLights of all kinds.\n\nOff we go to the office.\n';
    add('a/scattered', `---\ndescription: d\n---\n${scattered}`);
    add(
      'b/line',
      '---\ndescription: d\n---\n| Phrase | Does |\n|---|---|\n| "Turn off the office lights" | x |\n',
    );
    const ranking = (await SearchIndex.build(agents())).rank('turn off the office lights', 2);
    assert.deepEqual(
      ranking.map(({ skill }) => skill.id),
      ['line', 'scattered'],
    );
  });

  it('hears what is quoted within a long line', async () => {
    const around =
      'mentions ladders, ceilings, old doors, stairs, brass handles, cellars, gutters and roof tiles';
    add('a/gilder', `---\ndescription: d\n---\nIf somebody says "gild the picture frame" or ${around}.\n`);
    add('b/other', `---\ndescription: d\n---\nIf somebody says gild the picture frame or ${around}.\n`);
    const [first, second] = (await SearchIndex.build(agents())).rank('gild the picture frame', 2);
    assert.equal(first?.skill.id, 'gilder');
    assert.ok((first?.score ?? 0) > 1.8 * (second?.score ?? 0));
  });

  it('takes small talk for small talk, even where a skill has the same words', async () => {
    add(
      'a/echo',
      '---\ndescription: d\n---\n## Examples\n- "nice to meet you and thanks again, see you soon my friend"\n',
    );
    add('a/one', '---\ndescription: Prunes apple trees\n---\n');
    const index = await SearchIndex.build(agents());
    assert.equal(best(index, 'nice to meet you and thanks again, see you soon my friend'), 'echo');
    assert.equal(decided(index, 'nice to meet you and thanks again, see you soon my friend'), undefined);
  });

  it('takes an answer for small talk that a skill has as a line', async () => {
    add('a/agreement', '---\ndescription: d\n---\n## Examples\n- "Sounds good to me"\n');
    const index = await SearchIndex.build(agents());
    assert.equal(best(index, 'sounds good to me'), 'agreement');
    assert.equal(decided(index, 'sounds good to me'), undefined);
  });

  it('takes a single word that is no name for too little to run anything by', async () => {
    add(
      'a/offers',
      '---\ndescription: Barter offers, barter bids, barter swaps\n---\n# Barter\n- "Barter"\n',
    );
    add('a/one', '---\ndescription: Prunes apple trees\n---\n');
    const index = await SearchIndex.build(agents());
    assert.equal(best(index, 'barter'), 'offers');
    assert.equal(decided(index, 'Barter!'), undefined);
    assert.equal(decided(index, 'barter the swaps'), 'offers');
  });

  it('weighs a word as the request spells it, whichever form of it was seen first', async () => {
    add('a/abbey', '---\ndescription: Hears about sins, sins of thought and sins of deed\n---\n');
    add('b/other', '---\ndescription: Prunes apple trees\n---\n');
    const index = await SearchIndex.build(agents());
    const score = (text: string): number => index.rank(text, 1)[0]?.score ?? 0;
    // In Spanish, "sin" is "without".
    assert.ok(
      score('thought sin') < 0.8 * score('thought sins'),
      `${score('thought sin')}, ${score('thought sins')}`,
    );
  });

  it('abstains between two that fit alike, and when little of the request is explained', async () => {
    add('a/one', '---\ndescription: Exports invoices as spreadsheets\n---\n');
    add('b/two', '---\ndescription: Exports invoices as spreadsheets\n---\n');
    add('b/three', '---\ndescription: Feeds goldfish\n---\n');
    const index = await SearchIndex.build(agents());
    assert.equal(decided(index, 'export the invoices as a spreadsheet'), undefined);
    assert.equal(decided(index, 'export the invoices as a spreadsheet', 'a'), 'one');
    assert.equal(decided(index, 'goldfish swimming pool opening hours downtown'), undefined);
    assert.equal(confidenceOf('anything', []), 0);
  });

  it('knows what a word is about where a skill does not say it', async () => {
    add('a/outlook', '---\ndescription: Gives the forecast for a place\n---\n');
    add('b/ledger', '---\ndescription: Books invoices and tells who owes what\n---\n');
    const index = await SearchIndex.build(agents());
    assert.equal(best(index, 'do i have to pack an umbrella'), 'outlook');
    assert.equal(best(index, 'regnet es morgen in Kiel'), 'outlook');
    assert.equal(best(index, 'what is overdue'), 'ledger');
    assert.deepEqual(index.rank('an umbrella', 1)[0]?.words, ['umbrella']);
  });

  it('is less sure of a skill where the request speaks of another matter, too', async () => {
    add('a/mooring', '---\ndescription: Tells where a boat moors and for how long\n---\n');
    const index = await SearchIndex.build(agents());
    const confidence = (text: string): number => confidenceOf(text, index.rank(text, 3));
    assert.ok(
      confidence('moor the boat in flour and butter') < confidence('moor the boat in grommet and wicker'),
    );
  });

  it('runs the one that clearly leads, though it has only a part of the request', async () => {
    add('a/parcels', '---\ndescription: Tells where parcels are, of all carriers\n---\n');
    add('b/ledger', '---\ndescription: Books invoices and tells who owes what\n---\n');
    const text = 'tell me the carrier of it';
    assert.equal(decided(await SearchIndex.build(agents()), text), 'parcels');
    add('c/wrapping', '---\ndescription: Tells how parcels are wrapped for carriers\n---\n');
    assert.equal(decided(await SearchIndex.build(agents()), text), undefined);
  });

  it('sees a changed, a new and a removed skill, and reads no other again', async () => {
    add('a/one', '---\ndescription: Prunes apple trees\n---\n');
    add('a/two', '---\ndescription: Feeds goldfish\n---\n');
    const first = await SearchIndex.build(agents());
    const kept = join(folder.path, 'a/skills/two/SKILL.md');
    utimesSync(kept, 1, 1);
    const second = await SearchIndex.build(agents(), first);
    add('a/one', '---\ndescription: Tunes old pianos by ear\n---\n');
    add('a/three', '---\ndescription: Folds paper cranes\n---\n');
    // Of the same size and time, so that only reading it again would tell the difference.
    add('a/two', '---\ndescription: Feeds hamsters\n---\n');
    utimesSync(kept, 1, 1);
    const third = await SearchIndex.build(agents(), second);
    assert.equal(best(third, 'apple trees'), undefined);
    assert.equal(best(third, 'tune the piano'), 'one');
    assert.equal(best(third, 'paper cranes'), 'three');
    assert.equal(best(third, 'goldfish'), 'two');
    rmSync(join(folder.path, 'a/skills/two'), { recursive: true });
    assert.equal(best(await SearchIndex.build(agents(), third), 'goldfish'), undefined);
  });

  it('lets others work while it reads many skills', async () => {
    const filler = 'Some words that say nothing of much use to anybody who reads them here. '.repeat(300);
    for (let n = 0; n < 80; n++) add(`a/skill-${n}`, `---\ndescription: Number ${n}\n---\n${filler}`);
    let turns = 0;
    let isBuilding = true;
    const other = (): void => {
      turns++;
      if (isBuilding) setImmediate(other);
    };
    setImmediate(other);
    await SearchIndex.build(agents());
    isBuilding = false;
    assert.ok(turns > 2, `${turns} turns`);
  });

  it('survives odd files', async () => {
    add('a/huge-line', `---\ndescription: d\n---\n${'"x y" '.repeat(20_000)}`);
    add('a/open-fence', '---\ndescription: d\n---\n```\nnever closed "quote\n');
    add('a/odd', '---\ndescription: {a: [1, null]}\ntriggers: 5\n__proto__: x\n---\n');
    assert.deepEqual((await SearchIndex.build(agents())).rank('nothing of that', 3), []);
  });

  it('reads of endless triggers only the beginning', async () => {
    const many = Array.from({ length: 20_000 }, (_, at) => `  - sow the field of village ${at}`);
    add(
      'a/greedy',
      `---\ndescription: Sows\ntriggers:\n${many.join('\n')}\n  - find the lighthouse keeper\n---\n`,
    );
    add('b/modest', '---\ndescription: Mows\ntriggers: [mow the meadow]\n---\n');
    const index = await SearchIndex.build(agents());
    assert.equal(index.rank('sow the field of village 7', 1)[0]?.skill.id, 'greedy');
    assert.deepEqual(index.rank('lighthouse keeper', 3), []);
    assert.equal(index.rank('mow the meadow', 1)[0]?.skill.id, 'modest');
  });

  it('counts the requests of evals/trigger.json that should trigger, and survives a broken one', async () => {
    add('a/one', '---\ndescription: Prunes apple trees\n---\n');
    add('a/two', '---\ndescription: Feeds goldfish\n---\n');
    const cases = [
      { query: 'my orchard looks wild', should_trigger: true },
      { query: 'a carnival costume', should_trigger: false },
    ];
    folder.add({
      'a/skills/one/evals/trigger.json': JSON.stringify(cases),
      'a/skills/two/evals/trigger.json': '{broken',
    });
    const index = await SearchIndex.build(agents());
    assert.equal(best(index, 'an orchard gone wild'), 'one');
    assert.equal(best(index, 'carnival costume'), undefined);
    assert.equal(best(index, 'goldfish'), 'two');
  });

  it('reads over one typing mistake, and in German, French and Spanish', async () => {
    add('a/invoices', '---\ndescription: Writes an invoice to a customer\n---\n');
    add('a/slides', '---\ndescription: Makes a presentation with slides\n---\n');
    add('a/wardrobe', '---\ndescription: Chooses clothes for a rainy day\n---\n');
    const index = await SearchIndex.build(agents());
    assert.equal(best(index, 'an invioce please'), 'invoices');
    assert.equal(best(index, 'Schreib bitte eine Rechnung an den Kunden'), 'invoices');
    assert.equal(best(index, 'Präsentationsfolien erstellen'), 'slides');
    assert.equal(best(index, "j'ai besoin de diapos"), 'slides');
    assert.equal(best(index, 'necesito una factura'), 'invoices');
    assert.equal(best(index, 'a powerpoint deck'), 'slides');
  });

  it('takes an ordinary word for no misspelling of another, in any of its languages', async () => {
    add('a/one', '---\ndescription: Checks each policy of the insurance\n---\n');
    add('b/two', '---\ndescription: Slides for the fund\n---\n');
    add('c/three', '---\ndescription: Prunes apple trees\n---\n');
    const index = await SearchIndex.build(agents());
    const words = (text: string): readonly string[] => index.rank(text, 3).flatMap(({ telling }) => telling);
    for (const text of ['where is the police', 'the slices of bread', 'mein Hund schläft'])
      assert.deepEqual(words(text), [], text);
    assert.equal(best(index, 'check my polcy'), 'one');
    assert.equal(best(index, 'an insurence'), 'one');
  });

  it('breaks a tie by the name of the agent', async () => {
    add('press/one', '---\ndescription: Exports invoices as spreadsheets\n---\n');
    add('shop/two', '---\ndescription: Exports invoices as spreadsheets\n---\n');
    const index = await SearchIndex.build(agents());
    assert.equal(best(index, 'Shop: export the invoices as a spreadsheet'), 'two');
    assert.equal(best(index, 'export the invoices as a spreadsheet for press'), 'one');
    assert.equal(best(index, 'workshop: export the invoices as a spreadsheet'), 'one');
  });

  it('corrects a word to one of a skill that came later', async () => {
    add('a/one', '---\ndescription: Prunes apple trees\n---\n');
    const first = await SearchIndex.build(agents());
    assert.equal(best(first, 'the zeppelon'), undefined);
    add('a/two', '---\ndescription: Flies a zeppelin\n---\n');
    const second = await SearchIndex.build(agents(), first);
    assert.equal(best(second, 'the zeppelon'), 'two');
    // A text that somebody pastes does not hold the request up.
    const pasted = Array.from({ length: 200_000 }, (_, n) => `w${n.toString(36)}`).join(' ');
    assert.equal(best(second, `the zeppelin of ${pasted}`), 'two');
  });
});
