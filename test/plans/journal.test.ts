import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { followJournal, Journal, readJournal } from '../../src/plans/journal.ts';
import { MachineSeal } from '../../src/plans/machineSeal.ts';
import type { JournalLine, PlanEvent } from '../../src/protocol/plan.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';
import { skipBecause } from '../skipBecause.ts';

const created: PlanEvent = { type: 'plan_created', name: 'bakery', goal: 'Sell bread' };
const phase: PlanEvent = { type: 'phase', phase: 'paused', why: 'Ein Grund – ☕' };

describe('the journal of a plan', () => {
  let folder: TempFolder;
  let file: string;
  beforeEach(() => {
    folder = tempFolder();
    file = join(folder.path, 'journal.jsonl');
  });
  afterEach(() => folder.remove());

  async function written(...events: readonly PlanEvent[]): Promise<void> {
    const journal = await Journal.open(file);
    for (const event of events) await journal.append(event);
    await journal.close();
  }

  it('counts its lines and keeps the order in which they were given', async () => {
    const journal = await Journal.open(file);
    await Promise.all([journal.append(created), journal.append(phase), journal.append(phase)]);
    assert.deepEqual(
      journal.lines.map(({ seq, type }) => [seq, type]),
      [
        [1, 'plan_created'],
        [2, 'phase'],
        [3, 'phase'],
      ],
    );
    await journal.close();
    assert.deepEqual(await readJournal(file), journal.lines);
  });

  it('is neither read nor written where its file is a pipe or a folder', async function () {
    if (process.platform === 'win32') return skipBecause(this, 'not on Windows');
    execFileSync('mkfifo', [file]);
    await assert.rejects(Journal.open(file), { code: 'config', message: /a pipe/ });
    rmSync(file);
    mkdirSync(file);
    await assert.rejects(Journal.open(file), { code: 'config' });
  });

  it('loses nothing but the torn line, wherever a crash cut it, and goes on behind it', async () => {
    await written(created, phase, phase);
    const whole = readFileSync(file);
    const lastStart = whole.lastIndexOf('\n', whole.length - 2) + 1;
    for (let length = lastStart; length <= whole.length; length++) {
      writeFileSync(file, whole.subarray(0, length));
      const journal = await Journal.open(file);
      // Only the newline is missing: the line was written whole.
      const kept = length >= whole.length - 1 ? 3 : 2;
      assert.equal(journal.lines.length, kept, `cut at ${length} of ${whole.length}`);
      const next = await journal.append(created);
      await journal.close();
      assert.equal(next.seq, kept + 1);
      assert.deepEqual(
        (await readJournal(file)).map(({ seq }) => seq),
        Array.from({ length: kept + 1 }, (_, index) => index + 1),
      );
    }
  });

  it('skips what is no line of a journal: noise, zeros of a power cut, unknown types and wrong fields', async () => {
    await written(created);
    appendFileSync(
      file,
      `\0\0\0\0\nnoise\n{"seq":2,"ts":"x","type":"unheard_of"}\n{"seq":2,"ts":"x","type":"verdict","story":"US-001","attempt":1,"tree":7}\n{"seq":1,"ts":"x","type":"phase","phase":"done"}\n`,
    );
    await written(phase);
    assert.deepEqual(
      (await readJournal(file)).map(({ type }) => type),
      ['plan_created', 'phase'],
    );
  });

  it('uses no number again that a line of a later version has', async () => {
    await written(created);
    appendFileSync(file, '{"seq":2,"ts":"x","type":"unheard_of"}\n');
    await written(phase);
    assert.deepEqual(
      (await readJournal(file)).map(({ seq }) => seq),
      [1, 3],
    );
  });

  it('with a seal has only what this machine wrote, as it wrote it, for this plan', async () => {
    const [ours, other] = [new MachineSeal(join(folder.path, 'a')), new MachineSeal(join(folder.path, 'b'))];
    const write = async (seal: MachineSeal | undefined, event: PlanEvent): Promise<void> => {
      const journal = await Journal.open(file, seal);
      await journal.append(event);
      await journal.close();
    };
    await write(undefined, phase);
    await write(other, phase);
    await write(ours, created);
    await write(ours, phase);
    const read = async (seal: MachineSeal): Promise<number[]> =>
      (await readJournal(file, seal)).map(({ seq }) => seq);
    assert.deepEqual(await read(new MachineSeal(join(folder.path, 'a'))), [1, 2]);
    assert.deepEqual(await readJournal(file, new MachineSeal(join(folder.path, 'none'))), []);
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, text.replace(/"phase":"paused"(?=.*\n$)/, '"phase":"done"'));
    assert.deepEqual(await read(ours), [1]);
    mkdirSync(join(folder.path, 'another'));
    file = join(folder.path, 'another', 'journal.jsonl');
    writeFileSync(file, text);
    assert.deepEqual(await read(ours), []);
  });

  it('shows a viewer no line that is still being written', async () => {
    await written(created, phase);
    truncateSync(file, readFileSync(file).length - 1);
    assert.equal((await readJournal(file)).length, 1);
    assert.deepEqual(await readJournal(join(folder.path, 'missing')), []);
  });

  it('cuts a text that would make a line too long', async () => {
    await written({ ...phase, why: 'x'.repeat(100_000) } as PlanEvent);
    assert.ok(readFileSync(file).length < 20_000);
  });

  it('refuses a link', async () => {
    const target = join(folder.path, 'target');
    writeFileSync(target, '');
    symlinkSync(target, file);
    await assert.rejects(Journal.open(file), /journal\.jsonl/);
    assert.equal(readFileSync(target, 'utf8'), '');
  });

  it('takes back what a full disk took of a line, says so, and goes on when there is room', async () => {
    await written(created);
    const source = join(import.meta.dirname, '../../src/plans/journal.ts');
    const script = `
      import { Journal } from ${JSON.stringify(source)};
      const journal = await Journal.open(${JSON.stringify(file)});
      const append = why => journal.append({ type: 'phase', phase: 'paused', why }).catch(error => console.log(error.message));
      for (let count = 0; count < 9; count++) await append('x'.repeat(1000));
      await append('short');
    `;
    // A file may not grow over a few blocks: the line that crosses the end is written in part.
    const args = [
      '-c',
      'trap "" XFSZ; ulimit -f 8; exec "$0" --input-type=module -e "$1"',
      process.execPath,
      script,
    ];
    const said = execFileSync('/bin/sh', args, { encoding: 'utf8', timeout: 15_000 });
    assert.match(said, /stops; nothing is lost/);
    const text = readFileSync(file, 'utf8');
    assert.ok(text.endsWith('}\n'), text.slice(-80));
    assert.ok((await readJournal(file)).length > 3);
    await written(phase);
    const lines = await readJournal(file);
    assert.equal(lines.length, readFileSync(file, 'utf8').split('\n').length - 1);
  });

  it('is followed: first what is there, then what comes, once each', async () => {
    await written(created);
    const stop = new AbortController();
    const seen: JournalLine[] = [];
    const followed = (async () => {
      for await (const line of followJournal(file, stop.signal)) {
        seen.push(line);
        if (seen.length === 3) stop.abort();
      }
    })();
    await delay(20);
    await written(phase);
    appendFileSync(file, '{"seq":3,"ts":"x","type":"pha');
    await delay(150);
    appendFileSync(file, 'se","phase":"done"}\n');
    await followed;
    assert.deepEqual(
      seen.map(({ seq }) => seq),
      [1, 2, 3],
    );
  });
});
