/** The shared cases that take no long, and the proof that a case which is not true fails. */
import assert from 'node:assert/strict';
import { type AdversarialCase, readCases, withRepetitions } from './caseFile.ts';
import { knownFailures } from './contradictions.ts';
import { judge } from './judge.ts';
import { executeFor, slowCases } from './kinds.ts';
import { runCase } from './runCases.ts';

const cases = readCases(new URL('cases.json', import.meta.url).pathname);
const byId = (id: string): AdversarialCase => structuredClone(cases.find(one => one.id === id)!);

describe('adversarial cases', () => {
  for (const area of new Set(cases.map(one => one.area))) {
    const fast = cases.filter(one => one.area === area && executeFor(one) && !slowCases.has(one.id));
    if (fast.length === 0) continue;
    it(`of ${area}`, async () => {
      const failed: string[] = [];
      for (const theCase of fast) {
        const { id, result, problems } = await runCase(theCase);
        const known = knownFailures.has(id);
        if (known && result === 'pass') failed.push(`${id} passes by now: take it off the list`);
        else if (!known && result !== 'pass') failed.push(`${id}: ${problems.join('; ')}`);
      }
      assert.deepEqual(failed, []);
    });
  }
});

describe('a case that is not true', () => {
  const ids = [
    'path-001',
    'path-009',
    'path-010',
    'path-025',
    'cmd-rule-001',
    'cmd-rule-016',
    'ssrf-001',
    'ssrf-041',
    'ssrf-062',
    'ro-cmd-003',
    'ro-cmd-016',
    'inject-002',
  ];
  const decisions = ['allow', 'ask', 'deny', 'error'];

  it('fails with every other decision', async () => {
    for (const id of ids) {
      assert.equal((await runCase(byId(id))).result, 'pass', id);
      for (const decision of decisions) {
        const turned = byId(id);
        if (turned.expected.decision === decision) continue;
        turned.expected.decision = decision;
        assert.equal((await runCase(turned)).result, 'fail', `${id} with ${decision}`);
      }
    }
  });

  it('fails when what must be must not, and the other way round', async () => {
    const whole = cases.filter(
      one =>
        ['path', 'cmd-rule', 'terminal', 'inject', 'skill'].includes(one.area) &&
        !slowCases.has(one.id) &&
        !knownFailures.has(one.id),
    );
    for (const theCase of whole) {
      for (const [from, to] of [
        ['must', 'must_not'],
        ['must_not', 'must'],
      ] as const) {
        for (const sentence of theCase.expected[from] ?? []) {
          const turned = structuredClone(theCase);
          turned.expected = { decision: 'any', [to]: [sentence] };
          assert.equal((await runCase(turned)).result, 'fail', `${theCase.id}: ${to} ${sentence}`);
        }
      }
    }
  });

  it('fails when nobody can check what it says, and when its files are turned', async () => {
    const unknown = byId('path-001');
    unknown.expected.must = ['the moon is full'];
    assert.match((await runCase(unknown)).problems.join(), /no check knows: the moon is full/);
    unknown.expected = { decision: 'allow', must_not: ['the moon is full'] };
    assert.equal((await runCase(unknown)).result, 'fail');
    const untrusted = byId('cmd-rule-001');
    delete untrusted.input['trust'];
    assert.match((await runCase(untrusted)).problems.join(), /decided deny, not allow/);
    const ruleless = byId('cmd-rule-005');
    ruleless.input['agent_rules'] = [];
    assert.equal((await runCase(ruleless)).result, 'fail');
    const granted = byId('ssrf-063');
    granted.input['url'] = 'http://127.0.0.1:$PORT/';
    assert.equal((await runCase(granted)).result, 'fail');
  });

  it('is pending when nothing carries its kind out', async () => {
    const strange = byId('path-001');
    strange.input.kind = 'telepathy';
    strange.area = 'mind';
    assert.equal((await runCase(strange)).result, 'pending');
  });

  it('is judged by every sentence', () => {
    const theCase = byId('path-001');
    theCase.expected = { decision: 'allow', must: ['a', 'b'], must_not: ['c'] };
    const facts = { a: true, b: true, c: false };
    assert.equal(judge(theCase, { decision: 'allow', facts }).result, 'pass');
    for (const other of [{ b: false }, { b: 'seen otherwise' }, { c: true }])
      assert.equal(judge(theCase, { decision: 'allow', facts: { ...facts, ...other } }).result, 'fail');
    assert.equal(judge(theCase, { decision: 'deny', facts }).result, 'fail');
  });
});

describe('repetitions in a case', () => {
  it('are written out', () => {
    assert.equal(withRepetitions('a{{repeat:xy:3}}b'), 'axyxyxyb');
    assert.equal(withRepetitions('{{for:i:0:2}}<{{i}}>\n{{end}}.'), '<0>\n<1>\n<2>\n.');
    assert.equal(withRepetitions('{{repeat: :4}}|'), '    |');
  });
});
