/** The shared cases that take no long (with `TELOS_NIGHTLY=1` all of them), and the proof that a case which is not true fails. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { type AdversarialCase, type Fields, readCases, withRepetitions } from './caseFile.ts';
import { closeBrowser, openChat, showAnswer } from './chatWindow.ts';
import { check, type Seen } from './checks.ts';
import { judge } from './judge.ts';
import { seenOf } from './kinds/webviews.ts';
import { executeFor, takesLong } from './kinds.ts';
import { obey, sumUp } from './outside.ts';
import { reword, rewordings } from './reword.ts';
import { runCase } from './runCases.ts';
import { noteRun, noteTerminal, watched } from './witness.ts';
import { agentName, openWorld, secretText, usualKey } from './world.ts';

const cases = ['cases.json', 'resolver.json'].flatMap(name =>
  readCases(new URL(name, import.meta.url).pathname),
);
const byId = (id: string): AdversarialCase => structuredClone(cases.find(one => one.id === id)!);

const nightly = process.env['TELOS_NIGHTLY'] === '1';
/** What was seen of each case that passed. */
const seenById = new Map<string, Seen>();

after(closeBrowser);

describe('adversarial cases', () => {
  for (const area of new Set(cases.map(one => one.area))) {
    const fast = cases.filter(one => one.area === area && executeFor(one) && (nightly || !takesLong(one)));
    if (fast.length === 0) continue;
    it(`of ${area}`, async () => {
      const failed: string[] = [];
      for (const theCase of fast) {
        const { id, result, problems, notJudged, seen } = await runCase(theCase);
        if (result === 'pass' && seen) seenById.set(id, seen);
        if (result !== 'pass' && result !== 'contradicts')
          failed.push(`${id} (${result}): ${[...problems, ...notJudged].join('; ')}`);
      }
      assert.deepEqual(failed, []);
    });
  }
});

describe('a case in other words', () => {
  it('has the verdict that it has', () => {
    assert.ok(seenById.size > 250, `${seenById.size} cases were seen`);
    for (const [id, seen] of seenById) {
      const broken = {
        ...seen,
        checks: seen.checks.map((one, at) => (at === 0 ? { ...one, holds: false } : one)),
      };
      const too = { ...seen, decision: 'something else' };
      for (const how of rewordings) {
        const other = reword(byId(id), how);
        for (const one of [seen, broken, too, { ...seen, checks: [] }])
          assert.equal(judge(other, one).result, judge(byId(id), one).result, `${id}, ${how}`);
      }
    }
  });

  it('is carried out as it is', async () => {
    const ids = [
      'ro-cmd-003',
      'cmd-rule-002',
      'path-010',
      'ssrf-050',
      'skill-019',
      'mcp-005',
      'stream-014',
      'inject-001',
    ];
    for (const id of [...ids, 'path-016', 'secret-013', 'terminal-001', 'webview-036'])
      for (const how of rewordings)
        assert.deepEqual([id, how, (await runCase(reword(byId(id), how))).result], [id, how, 'pass']);
  });

  it('fails where the case fails', async () => {
    for (const how of rewordings) {
      const turned = byId('stream-005');
      turned.input['chunks'] = byId('stream-001').input['chunks']!;
      assert.equal((await runCase(reword(turned, how))).result, 'fail', how);
    }
  });

  it('keeps its literals, when it is said that it does', () => {
    const { must } = reword(byId('process-003'), 'paraphrase').expected;
    assert.deepEqual(must?.[0], "It has to be so that: 'hi' returned within 2 s.");
    assert.deepEqual(reword(byId('process-003'), 'neutral').expected.must?.[0], 'see above');
  });
});

describe('a case that is not true', () => {
  const ids = ['path-001', 'path-009', 'path-010', 'path-025', 'cmd-rule-001', 'cmd-rule-016', 'ssrf-001'];
  const decisions = ['allow', 'ask', 'deny', 'error'];

  it('fails with every other decision', async () => {
    for (const id of [...ids, 'ssrf-041', 'ssrf-062', 'ro-cmd-003', 'ro-cmd-016', 'inject-002']) {
      assert.equal((await runCase(byId(id))).result, 'pass', id);
      for (const decision of decisions) {
        const turned = byId(id);
        // If no one can be asked, a question is a no.
        const isSame = decision === 'ask' && seenById.get(id)?.unattended === true;
        if (turned.expected.decision === decision || isSame) continue;
        turned.expected.decision = decision;
        assert.equal((await runCase(turned)).result, 'fail', `${id} with ${decision}`);
      }
    }
  });

  it('of whatever area fails with every other decision, and with each of its checks turned round', () => {
    const areas = new Set<string>();
    for (const [id, seen] of seenById) {
      const theCase = byId(id);
      const { decision } = theCase.expected;
      for (const other of decisions.filter(one => decision !== 'any' && one !== decision)) {
        // If no one can be asked, a question is a no.
        if (seen.unattended && (other === 'ask' || other === 'deny')) continue;
        assert.equal(
          judge({ expected: { ...theCase.expected, decision: other } }, seen).result,
          'fail',
          `${id} ${other}`,
        );
      }
      assert.ok(
        seen.checks.some(({ universal }) => !universal),
        `nothing is checked of ${id} but what holds for all`,
      );
      for (const turned of seen.checks) {
        const checks = seen.checks.map(one =>
          one === turned ? { ...one, holds: false, saw: 'otherwise' } : one,
        );
        const { result, problems } = judge(theCase, { ...seen, checks });
        assert.deepEqual(
          [result, problems],
          ['fail', [`${turned.aspect}: ${turned.what}: saw otherwise`]],
          id,
        );
      }
      areas.add(theCase.area);
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
      ['stream-024', { status: 400 }],
      ['mcp-004', textOf('mcp-004', '$' + '{CLICKUP_API_TOKEN}', 'x')],
      ['mcp-005', textOf('mcp-005', 'MISSING', 'T')],
      ['mcp-010', { text: '{"mcpServers": {}}' }],
      ['mcp-018', { tools_v2: byId('mcp-018').input['tools_v1'] }],
      ['mcp-026', { behaviour: 'ignores SIGTERM' }],
      ['mcp-032', { server_request: { method: 'ping' } }],
      ['webview-039', { message: { type: 'open_file', path: 'a.txt' } }],
      ['durable-005', { fs: 'tmpfs size=4m' }],
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
      assert.match(problems.join(), /decided execute.*nothing is loaded.*no script runs/s);
    } finally {
      await chat.close();
      await world.remove();
    }
  });

  it('is counted when a model does something outside without a card', async () => {
    const world = await openWorld(byId('inject-002'));
    try {
      const command = `touch '${world.out}/touched'`;
      const rule = `[[allow]]\nagent = "${agentName}"\ntool = "run_command"\ncommand = ${JSON.stringify(command)}\n`;
      world.put(`${world.cfg}/policy.toml`, rule);
      const { outside } = await obey(world, [{ name: 'run_command', input: { command } }]);
      assert.deepEqual(outside.unannounced, ['changed out/touched']);
      assert.match(sumUp([outside]), /1 cases, 2 calls: 1 things left .* \(first: changed out\/touched\)/);
    } finally {
      await world.remove();
    }
  });

  it('fails when its files are turned', async () => {
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
});

describe('a case of any kind', () => {
  const failing = async (act: Parameters<typeof watched>[2], decision = 'any'): Promise<string> => {
    const theCase = byId('path-001');
    const world = await openWorld(theCase);
    try {
      const seen = await watched(world, theCase, async (...given) => {
        await act(...given);
        return { decision, checks: [] };
      });
      return seen.checks.flatMap(({ holds, aspect }) => (holds ? [] : [aspect])).join();
    } finally {
      await world.remove();
    }
  };
  const nothing = { decision: 'any', checks: [] };

  it('fails when something changes outside, and when a secret is told or shown', async () => {
    assert.equal(await failing(async () => nothing), '');
    const changed = await failing(async world => {
      noteRun(world, ['home/.bashrc'], [], []);
      return nothing;
    });
    assert.equal(changed, 'files');
    const told = await failing(async world => {
      noteRun(world, [], [], [{ content: secretText, isError: false }]);
      return nothing;
    });
    assert.equal(told, 'secrets');
    const shown = await failing(async world => {
      noteTerminal(world, 'stdout', `\x1b[2J${usualKey}`);
      return nothing;
    });
    assert.equal(shown, 'secrets,shown');
  });

  it('fails when a process is left, when something breaks unhandled, and when what is refused sends something', async () => {
    const left = await failing(async world => {
      spawn('sleep', ['60'], {
        detached: true,
        stdio: 'ignore',
        env: { PATH: process.env['PATH'], HOME: world.home },
      });
      return nothing;
    });
    assert.equal(left, 'processes');
    const broken = await failing(async () => {
      void Promise.reject(new Error('nobody looks'));
      await new Promise(resolve => setTimeout(resolve, 10));
      return nothing;
    });
    assert.equal(broken, 'end');
    const sent = await failing(async world => {
      await (await fetch(`http://127.0.0.1:${world.port}/`)).text();
      return nothing;
    }, 'deny');
    assert.equal(sent, 'network');
  });
});

describe('a case that cannot be judged', () => {
  it('is not judged when nothing carries its kind out', async () => {
    const strange = byId('path-003');
    strange.input = { kind: 'telepathy' };
    strange.area = 'mind';
    const { result, notJudged } = await runCase(strange);
    assert.deepEqual([result, notJudged], ['not judged', ['decision allow']]);
    const behaving = byId('mcp-023');
    behaving.input['behaviour'] = 'sings';
    assert.equal((await runCase(behaving)).result, 'not judged');
  });

  it('is carried out by what it puts in when its kind alone is new', async () => {
    const renamed = byId('path-009');
    renamed.input.kind = 'tool_call_v2';
    assert.equal((await runCase(renamed)).result, 'pass');
  });

  it('names each assertion that nothing has observed, and does not pass', () => {
    const expected = { decision: 'allow', must: ['a', 'b'], must_not: ['c', 'd', 'e'] };
    const own = check('files', 'it is there', true);
    const seen: Seen = { decision: 'allow', checks: [own, { ...own, universal: true }] };
    const { result, notJudged } = judge({ expected }, seen);
    assert.deepEqual([result, notJudged], ['not judged', ['b', 'e']]);
    assert.equal(judge({ expected: { ...expected, decision: 'deny' } }, seen).result, 'fail');
  });

  it('is satisfied by a no where it expects a question that nobody can be asked', () => {
    const expected = { decision: 'ask' };
    assert.equal(judge({ expected }, { decision: 'deny', checks: [], unattended: true }).result, 'pass');
    assert.equal(judge({ expected }, { decision: 'deny', checks: [] }).result, 'fail');
    assert.equal(judge({ expected }, { decision: 'allow', checks: [], unattended: true }).result, 'fail');
  });
});

describe('repetitions in a case', () => {
  it('are written out', () => {
    assert.equal(withRepetitions('a{{repeat:xy:3}}b'), 'axyxyxyb');
    assert.equal(withRepetitions('{{for:i:0:2}}<{{i}}>\n{{end}}.'), '<0>\n<1>\n<2>\n.');
    assert.equal(withRepetitions('{{repeat: :4}}|'), '    |');
  });
});
