import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import type { Terminal } from '../../src/cli/terminal.ts';
import { readLine, terminalHuman } from '../../src/cli/terminalHuman.ts';
import type { ApprovalRequest } from '../../src/protocol/run.ts';

const same = (text: string): string => text;

describe('terminalHuman', () => {
  const { signal } = new AbortController();
  const request: ApprovalRequest = {
    callId: '1',
    token: 't',
    tool: 'run_command',
    subject: 'git status\u202e\nrm -rf /tmp/x',
    folder: '/pack',
    rule: 'command',
    reason: 'Commands are asked about.',
    scopes: ['once', 'run', 'always'],
  };

  function answering(answer: string | undefined) {
    const said: string[] = [];
    const prompts: string[] = [];
    const terminal: Terminal = {
      out: () => assert.fail('a question never goes to stdout'),
      say: line => said.push(line),
      endLine: () => {},
      flush: () => {},
      canAsk: true,
      outWidth: undefined,
      sayWidth: 80,
      style: { dim: same, bold: same, red: same, yellow: same },
    };
    const human = terminalHuman(terminal, async prompt => {
      prompts.push(prompt);
      return answer;
    });
    return { human, said, prompts };
  }

  it('shows tool, folder, every line of the exact command, the reason and the rule', async () => {
    const { human, said } = answering('y');
    await human.approve(request, signal);
    assert.deepEqual(said.join('\n').split('\n'), [
      '? run_command asks in /pack:',
      '    git status\\u202e',
      '    rm -rf /tmp/x',
      '  Commands are asked about. (rule command)',
    ]);
  });

  it('takes y, r and a in either case; everything else, and the end of the input, is a no', async () => {
    const answers: [string | undefined, string][] = [
      ['y', 'once'],
      ['YES', 'once'],
      [' r ', 'run'],
      ['A', 'always'],
      ['n', 'no'],
      ['', 'no'],
      ['yo', 'no'],
      ['always', 'no'],
      [undefined, 'no'],
    ];
    for (const [answer, expected] of answers) {
      const decision = await answering(answer).human.approve(request, signal);
      assert.equal(decision.allow ? decision.scope : 'no', expected, String(answer));
    }
  });

  it('offers and takes only the answers that the request allows', async () => {
    const { human, prompts } = answering('a');
    const decision = await human.approve({ ...request, scopes: ['once'] }, signal);
    assert.equal(decision.allow, false);
    assert.doesNotMatch(prompts[0] ?? '', /always|for this run/);
  });

  it('says how much of a long command is not shown', async () => {
    const { human, said } = answering('n');
    await human.approve({ ...request, subject: 'x'.repeat(5000) }, signal);
    assert.match(said.join('\n'), /1000 more characters that are not shown/);
  });

  it('asks each question and returns the answers in their order', async () => {
    const { human, said } = answering('blue');
    assert.deepEqual(await human.ask(['Which colour?', 'Which\x1b one?'], signal), ['blue', 'blue']);
    assert.deepEqual(said, ['? Which colour?', '? Which\\x1b one?']);
  });

  it('reads one line of input; its end and an abort are no answer', async () => {
    const read = (use: (input: PassThrough, controller: AbortController) => void) => {
      const input = new PassThrough();
      const controller = new AbortController();
      const answer = readLine('? ', controller.signal, input, new PassThrough());
      use(input, controller);
      return answer;
    };
    assert.equal(await read(input => input.write('r\nmore\n')), 'r');
    assert.equal(await read(input => input.end()), undefined);
    assert.equal(await read((_input, controller) => controller.abort()), undefined);
  });
});
