/** The runner can fail: turned expectations, unknown operations and what is not there are no pass. */
import assert from 'node:assert/strict';
import type { ConformanceCase, JsonRecord } from './caseFile.ts';
import { runCase } from './runCases.ts';

const skill = '---\ndescription: D\n---\nB';

async function outcome(op: string, given: JsonRecord, when: JsonRecord, then: JsonRecord, id = 'X-1') {
  const testCase: ConformanceCase = { id, kind: 'suite', given, when: { op, ...when }, then };
  return (await runCase(testCase)).result;
}

describe('runCase', () => {
  const parse = (then: JsonRecord, id?: string) => outcome('parse_skill', { content: skill }, {}, then, id);
  const discover = (then: JsonRecord) =>
    outcome('discover_agents', { files: { 'a/skills/s/SKILL.md': skill } }, { dir: '{tmp}' }, then);

  it('takes what it sees', async () => {
    assert.equal(await parse({ description: 'D', body: '*' }), 'pass');
    assert.equal(
      await discover({ names: ['a'], agents: { a: { pack_dir: '{tmp}/a', mcp_config: null } } }),
      'pass',
    );
  });

  it('takes nothing else', async () => {
    assert.equal(await parse({ description: 'E' }), 'fail');
    assert.equal(await parse({ description: null }), 'fail');
    assert.equal(await parse({ unheard_of: '*' }), 'fail');
    assert.equal(await discover({ names: [] }), 'fail');
    assert.equal(await discover({ names: ['*', '*'] }), 'fail');
    assert.equal(await discover({ agents: { a: { mcp_config: '*' } } }), 'fail');
    assert.equal(await discover({ agents: { b: {} } }), 'fail');
  });

  it('fails at an operation that nobody knows, and at a throw that nobody expects', async () => {
    assert.equal(await outcome('juggle', {}, {}, {}), 'fail');
    const absent = { source: '{tmp}/absent' };
    assert.equal(await outcome('install', {}, absent, { absent: ['x'] }), 'fail');
    assert.equal(await outcome('install', {}, absent, { rejected: true, absent: ['x'] }), 'pass');
  });

  it('tells a contradiction from a failure, and a list that has become wrong', async () => {
    assert.equal(await parse({ description: 'E' }, 'FM-16'), 'contradicts');
    assert.equal(await parse({ description: 'D' }, 'FM-16'), 'fail');
  });
});
