/** The shared cases that take no long (with `TELOS_NIGHTLY=1` all of them), and the proof that a case which is not true fails. */
import assert from 'node:assert/strict';
import { type AdversarialCase, type Fields, readCases, withRepetitions } from './caseFile.ts';
import { closeBrowser, openChat, showAnswer } from './chatWindow.ts';
import { knownFailures } from './contradictions.ts';
import { judge, type Seen } from './judge.ts';
import { seenOf } from './kinds/webviews.ts';
import { executeFor, slowCases } from './kinds.ts';
import { obey, sumUp } from './outside.ts';
import { runCase } from './runCases.ts';
import { openWorld } from './world.ts';

const cases = readCases(new URL('cases.json', import.meta.url).pathname);
const byId = (id: string): AdversarialCase => structuredClone(cases.find(one => one.id === id)!);

const nightly = process.env['TELOS_NIGHTLY'] === '1';
/** What was seen of each case that passed. */
const seenById = new Map<string, Seen>();

after(closeBrowser);

describe('adversarial cases', () => {
  for (const area of new Set(cases.map(one => one.area))) {
    const fast = cases.filter(
      one => one.area === area && executeFor(one) && (nightly || !slowCases.has(one.id)),
    );
    if (fast.length === 0) continue;
    it(`of ${area}`, async () => {
      const failed: string[] = [];
      for (const theCase of fast) {
        const { id, result, problems, seen } = await runCase(theCase);
        if (result === 'pass' && seen) seenById.set(id, seen);
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

  it('of whatever area fails with every other decision, and with each of its sentences turned round', () => {
    const areas = new Set<string>();
    for (const [id, seen] of seenById) {
      const theCase = byId(id);
      const { decision, must = [], must_not: never = [] } = theCase.expected;
      const failsWith = (expected: AdversarialCase['expected']): void =>
        assert.equal(
          judge({ ...theCase, expected }, seen).result,
          'fail',
          `${id} ${JSON.stringify(expected)}`,
        );
      for (const other of decisions.filter(one => decision !== 'any' && one !== decision))
        failsWith({ ...theCase.expected, decision: other });
      for (const sentence of must) failsWith({ decision: 'any', must_not: [sentence] });
      for (const sentence of never) failsWith({ decision: 'any', must: [sentence] });
      if (decision !== 'any' || must.length + never.length > 0) areas.add(theCase.area);
    }
    for (const area of ['stream', 'mcp', 'webview', 'durable', 'trust', 'time'])
      assert.ok(areas.has(area), area);
  });

  it('fails when what is put in is turned', async () => {
    const chunksOf = (id: string): Fields => ({ chunks: byId(id).input['chunks'] });
    const textOf = (id: string, from: string, to: string): Fields => ({
      text: String(byId(id).input['text']).replace(from, to),
    });
    const turns: [id: string, input: Fields][] = [
      ['stream-005', chunksOf('stream-001')],
      ['stream-001', chunksOf('stream-004')],
      ['stream-013', chunksOf('stream-011')],
      ['stream-019', chunksOf('stream-013')],
      ['stream-024', { headers: { 'retry-after': '1' } }],
      ['stream-026', { headers: { 'retry-after': '1' } }],
      ['stream-029', { body: '{}' }],
      ['stream-031', { status: 400 }],
      ['mcp-004', textOf('mcp-004', '$' + '{CLICKUP_API_TOKEN}', 'x')],
      ['mcp-005', textOf('mcp-005', 'MISSING', 'T')],
      ['mcp-010', { text: '{"mcpServers": {}}' }],
      ['mcp-018', { tools_v2: byId('mcp-018').input['tools_v1'] }],
      ['mcp-026', { behaviour: 'ignores SIGTERM' }],
      ['mcp-030', { result: { content: [{ type: 'text', text: 'short' }] } }],
      ['mcp-032', { server_request: { method: 'ping' } }],
      ['webview-029', { markdown: 'plain words' }],
      ['webview-039', { message: { type: 'open_file', path: 'a.txt' } }],
      ['webview-041', { text: 'no link' }],
      ['durable-004', { fs: 'tmpfs size=8m' }],
      ['durable-005', { fs: 'tmpfs size=4m' }],
      ['time-001', { tz: 'Europe/Berlin' }],
      ['time-002', { tz: 'UTC' }],
      ['time-008', { now: byId('time-008').input['prior'] }],
    ];
    for (const [id, input] of turns) {
      const turned = byId(id);
      Object.assign(turned.input, input);
      assert.equal((await runCase(turned)).result, 'fail', id);
    }
  });

  it('is seen to leave the view when nothing keeps it in', async () => {
    const theCase = byId('webview-001');
    const world = await openWorld(theCase);
    const chat = await openChat({ policy: false });
    try {
      await showAnswer(chat, ['x']);
      const image = `<img src="http://127.0.0.1:${world.port}/p.png" onload="alert(1)" onerror="alert(1)">`;
      await chat.page.evaluate(html => {
        document.querySelector('.markdown')!.innerHTML = `x${html}`;
      }, image);
      const { result, problems } = judge(theCase, await seenOf(world, chat, '![x](x)'));
      assert.equal(result, 'fail');
      assert.match(
        problems.join(),
        /decided execute.*happened: any network request.*happened: script execution/s,
      );
    } finally {
      await chat.close();
      await world.remove();
    }
  });

  it('is counted when a model does something outside without a card', async () => {
    const world = await openWorld(byId('inject-002'));
    try {
      const command = `touch '${world.out}/touched'`;
      const rule = `[[allow]]\nagent = "*"\ntool = "run_command"\ncommand = ${JSON.stringify(command)}\n`;
      world.put(`${world.cfg}/policy.toml`, rule);
      const { outside } = await obey(world, [{ name: 'run_command', input: { command } }]);
      assert.deepEqual(outside.unannounced, ['changed out/touched']);
      assert.match(sumUp([outside]), /1 cases, 2 calls: 1 things left .* \(first: changed out\/touched\)/);
    } finally {
      await world.remove();
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
