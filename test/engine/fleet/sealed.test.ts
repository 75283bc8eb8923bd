import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { obeyedAt } from '../../../src/engine/files/sensitiveNames.ts';
import type { EvaluatedSkill } from '../../../src/evals/evalWorld.ts';
import { writeResults } from '../../../src/evals/resultFiles.ts';
import { type EvalResult, type EvalRun, nothing } from '../../../src/evals/runEval.ts';
import { databaseAddress, problemOf } from '../../../src/fleet/databaseAddress.ts';
import { carriedOf, readResult, sealResult } from '../../../src/fleet/evalOrder.ts';
import { Signs } from '../../../src/fleet/presence.ts';
import { mostSealed, seal, suiteKeys, unseal } from '../../../src/fleet/sealed.ts';
import { textsIn } from '../../fakes/repoCopy.ts';
import { tempFolder } from '../../fakes/tempFolder.ts';

const run = { configuration: 'with_skill', run: 1, model: 'm' } as EvalRun;
const job = { place: 0, run, from: { recording: '' } };
const result = (transcript: string, evidence = 'said'): EvalResult => ({
  ...nothing(run),
  status: 'graded',
  outcome: 'completed',
  tokens: 12,
  cost: 0.5,
  transcript,
  graded: [{ text: 'it is short', passed: true, evidence }],
  calls: new Map([['read_file', 2]]),
  outputs: new Map([['notes/today.md', Buffer.from('Buy milk')]]),
});

describe('results of workers', () => {
  it('are read by the suite that asked, and by nobody else', () => {
    const keys = suiteKeys();
    const sealed = sealResult(carriedOf(result('Buy milk'), 0.75), keys.publicKey);
    const read = readResult(unseal(sealed, keys), job, 'w1');
    assert.deepEqual(read, { result: { ...result('Buy milk'), worker: 'w1' }, spent: 0.75 });
    assert.equal(unseal(sealed, suiteKeys()), undefined);
    for (const place of [0, 40, 50, 90]) {
      const bytes = Buffer.from(sealed, 'base64');
      bytes[place] = (bytes[place] ?? 0) ^ 1;
      assert.equal(unseal(bytes.toString('base64'), keys), undefined);
    }
  });

  it('write no file outside the folder of the results', () => {
    const keys = suiteKeys();
    for (const path of ['../x', 'a/../../x', '/etc/x', '..\\x', 'C:\\x', 'a//x', '']) {
      const forged = { ...result('Buy milk'), outputs: new Map([[path, Buffer.from('x')]]) };
      const read = readResult(unseal(sealResult(carriedOf(forged, 0), keys.publicKey), keys), job, 'w1');
      assert.equal(read, undefined, path);
    }
  });

  it('write no name that programs or agents obey, and no file of theirs loses the other results', async () => {
    const { path, remove } = tempFolder({ 'skill/SKILL.md': '---\nname: s\ndescription: d\n---\nx\n' });
    try {
      const obeyed = [
        ...[
          '.git/config',
          '.git/HEAD',
          '.git/objects/x',
          '.git/refs/x',
          'sub/.GIT/config',
          'git~1/config',
          '.git',
        ],
        ...[
          'HEAD',
          'config',
          'objects/x',
          'refs/x',
          '.envrc',
          '.env',
          '.vscode/tasks.json',
          'AGENTS.md',
          'CLAUDE.md',
        ],
        ...[
          '.claude/settings.json',
          '.mcp.json',
          'package.json',
          'requirements.txt',
          'Makefile',
          'Dockerfile',
        ],
        ...[
          '.devcontainer/devcontainer.json',
          'a.code-workspace',
          '.telos/plans/x/plan.json',
          'x\\.git\\config',
        ],
      ];
      const names = [...obeyed, 'a', 'a/b', `${'long'.repeat(200)}`, 'notes/today.md'];
      const skill = { id: 's', name: 's', dir: join(path, 'skill') };
      const one = { agent: { name: 'a' }, skill } as EvaluatedSkill;
      const each = {
        id: 1,
        prompt: 'x',
        expectations: [],
        checks: [],
        files: [],
        expectedOutput: '',
        line: 1,
      };
      const outputs = new Map(names.map(name => [name, Buffer.from(name)]));
      const forged = { ...result('x'), one, eval: each, outputs } as unknown as EvalResult;
      const folder = join(path, 'results');
      const left = await writeResults({ one, results: [forged], folder }, new Date(0));
      assert.equal(left.length, 2, left.join('\n'));
      const kept = join(folder, 'eval-1/with_skill/run-1/outputs');
      const found = textsIn(kept);
      assert.equal(Object.keys(found).length, names.length - 2);
      for (const name of Object.keys(found)) assert.equal(obeyedAt(name, name), undefined, name);
      assert.equal(found['notes/today.md'], 'notes/today.md');
      assert.equal(existsSync(join(folder, 'benchmark.json')), true);
    } finally {
      remove();
    }
  });

  it('fit into 256 KiB, however long a run was', () => {
    const keys = suiteKeys();
    const noise = randomBytes(3_000_000).toString('hex');
    const sealed = sealResult(carriedOf(result(`begin ${noise} end`, noise), 0), keys.publicKey);
    assert.ok(sealed.length <= mostSealed, `${sealed.length}`);
    const read = readResult(unseal(sealed, keys), job, 'w1');
    assert.match(read?.result.transcript ?? '', /^begin [\s\S]+\[…\][\s\S]+ end$/);
  });

  it('are nothing if a database made them up', () => {
    const keys = suiteKeys();
    const whole = carriedOf(result('x'), 0);
    const bomb = seal('0'.repeat(50_000_000), keys.publicKey);
    assert.ok(bomb.length < mostSealed);
    assert.equal(unseal(bomb, keys), undefined);
    for (const text of [undefined, null, 7, {}, '', 'x', 'x'.repeat(300_000), [[]]])
      assert.equal(unseal(text, keys), undefined);
    for (const wrong of [
      null,
      [],
      {},
      { ...whole, status: 'passed' },
      { ...whole, spent: -1 },
      { ...whole, tokens: '12' },
      { ...whole, graded: [{}] },
      { ...whole, graded: [null] },
      { ...whole, denials: [null] },
      { ...whole, error: null },
      { ...whole, graded: 'all' },
      { ...whole, changed: [{}] },
      { ...whole, calls: { read_file: 2 } },
      { ...whole, transcript: undefined },
    ])
      assert.equal(
        readResult(JSON.parse(JSON.stringify(wrong)), job, 'w1'),
        undefined,
        JSON.stringify(wrong),
      );
  });

  it('never come from a worker that gives no sign', () => {
    const signs = new Signs();
    const first = new Map([
      ['killed', 1],
      ['lives', 1],
    ]);
    assert.deepEqual(signs.look(first), []);
    assert.deepEqual(
      ['killed', 'lives'].map(id => signs.isAlive(id)),
      [false, false],
    );
    const silent = Array.from({ length: 14 }, (_, index) =>
      signs.look(
        new Map([
          ['killed', 1],
          ['lives', 2 + index],
          ['new', index],
        ]),
      ),
    );
    assert.deepEqual(silent.flat(), ['killed']);
    assert.deepEqual(
      ['killed', 'lives', 'new'].map(id => signs.isAlive(id)),
      [false, true, true],
    );
  });

  it('are asked for at an address that no error repeats', () => {
    const address = databaseAddress('postgres://me:p%40ss-word@[::1]/team');
    assert.equal(address.shown, '[::1]:5432/team');
    assert.equal(address.host, '::1');
    const { message } = problemOf(
      new Error('p@ss-word p%40ss-word postgres://me:p%40ss-word@[::1]/team'),
      address,
    );
    assert.equal(message, 'The database [::1]:5432/team failed: *** *** ***');
    for (const wrong of ['postgres://host', 'postgres:///x', 'http://a/b', 'postgres://a:b c@/x', '%'])
      assert.throws(() => databaseAddress(wrong), /is not a PostgreSQL URL/);
  });
});
