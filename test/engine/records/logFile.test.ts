import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { appendLine } from '../../../src/engine/files/jsonLines.ts';
import { appendRecord, localTimestamp, logPath, readLog } from '../../../src/engine/records/logFile.ts';

describe('logFile', () => {
  let dataDir: string;

  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'telos-log-'));
  });
  afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

  it('names one file per local day', () => {
    assert.equal(logPath('/d', new Date(2026, 0, 2, 23, 59)), join('/d', 'logs', '2026-01-02.jsonl'));
  });

  it('tells times in the local zone, with its offset', () => {
    const before = process.env['TZ'];
    const moment = new Date('2026-11-20T00:00:01.250Z');
    try {
      for (const [zone, expected] of [
        ['UTC', '2026-11-20T00:00:01.250Z'],
        ['Asia/Kathmandu', '2026-11-20T05:45:01.250+05:45'],
        ['America/St_Johns', '2026-11-19T20:30:01.250-03:30'],
      ] as const) {
        process.env['TZ'] = zone;
        assert.equal(localTimestamp(moment), expected);
        assert.equal(Date.parse(expected), moment.getTime());
      }
    } finally {
      if (before === undefined) delete process.env['TZ'];
      else process.env['TZ'] = before;
    }
  });

  it('skips lines that are no record and counts them, empty lines aside', async () => {
    const file = join(dataDir, 'log.jsonl');
    const good = JSON.stringify({
      ts: '2026-01-02T03:04:05Z',
      event: 'tool_call',
      tool: 't',
      is_error: false,
    });
    writeFileSync(
      file,
      `${good}\n\nnull\n[1]\n{"event":"tool_call"}\n{"ts":"x","event":"other"}\nnonsense\n${good}`,
    );
    const { records, skipped } = await readLog(file);
    assert.deepEqual([records.length, skipped], [2, 5]);
  });

  it('adds each record as one line, also behind half a line', () => {
    const file = join(dataDir, 'log.jsonl');
    writeFileSync(file, '');
    for (const text of ['one', 'two']) appendLine(file, text);
    assert.equal(readFileSync(file, 'utf8'), 'one\ntwo\n');
    writeFileSync(file, 'hal');
    for (const text of ['one', 'two']) appendLine(file, text);
    assert.equal(readFileSync(file, 'utf8'), 'hal\none\ntwo\n');
  });

  it('does not look into a line that is longer than any record', async () => {
    const file = join(dataDir, 'log.jsonl');
    const fields = { ts: '2026-01-02T03:04:05Z', event: 'tool_call', tool: 't', run_id: 'a' };
    const record = JSON.stringify(fields);
    const long = record.replace('"a"', `"${'a'.repeat(9_000_000)}"`);
    writeFileSync(file, `${long}\n${record}\n`);
    assert.deepEqual(await readLog(file), { records: [JSON.parse(record)], skipped: 1 });
  });

  it('keeps the records of several processes whole', async function () {
    this.timeout(20_000);
    const module = fileURLToPath(new URL('../../../src/engine/records/logFile.ts', import.meta.url));
    const script = `
      const { appendRecord } = await import(${JSON.stringify(module)});
      for (let n = 0; n < 50; n++) appendRecord(process.argv[1], { ts: 't', event: 'tool_call', tool: 'x'.repeat(20000), is_error: false, run_id: String(process.pid), call_id: String(n) });`;
    const file = join(dataDir, 'logs', 'shared.jsonl');
    appendRecord(file, { ts: 't', event: 'tool_call', tool: '', is_error: false, run_id: '', call_id: '' });
    const codes = await Promise.all(
      [1, 2, 3].map(
        () =>
          new Promise<number | null>(resolve => {
            const child = spawn(process.execPath, ['--input-type=module', '-e', script, file], {
              stdio: 'inherit',
            });
            child.on('close', resolve);
          }),
      ),
    );
    assert.deepEqual(codes, [0, 0, 0]);
    const { records, skipped } = await readLog(file);
    assert.deepEqual([records.length, skipped], [151, 0]);
    assert.deepEqual(readdirSync(join(dataDir, 'logs')), ['shared.jsonl']);
  });
});
