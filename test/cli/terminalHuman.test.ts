import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { readLine } from '../../src/cli/keyboard.ts';
import type { Terminal } from '../../src/cli/terminal.ts';
import { terminalHuman } from '../../src/cli/terminalHuman.ts';
import type { AgentCard } from '../../src/protocol/agentCard.ts';
import { type ApprovalRequest, leaveBox } from '../../src/protocol/run.ts';
import { until } from '../eventually.ts';

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

  /** `first` answers the first questions. */
  function answering(answer: string | undefined, ...first: string[]) {
    const said: string[] = [];
    const prompts: string[] = [];
    const terminal: Terminal = {
      out: () => assert.fail('a question never goes to stdout'),
      say: line => said.push(line),
      endLine: () => {},
      flush: () => {},
      canAsk: true,
      surroundings: process,
      outWidth: undefined,
      sayWidth: 80,
      style: { dim: same, bold: same, red: same, yellow: same },
    };
    const human = terminalHuman(terminal, async prompt => {
      prompts.push(prompt);
      return first.shift() ?? answer;
    });
    return { human, said, prompts };
  }

  it('shows the question, folder, every line of the exact command, the reason and the rule', async () => {
    const { human, said } = answering('y');
    await human.approve(request, signal);
    assert.deepEqual(said.join('\n').split('\n'), [
      '? Run this command?  in /pack',
      '    git status\\u202e',
      '    rm -rf /tmp/x',
      '  Commands are asked about. (rule command)',
    ]);
  });

  it('asks the fields of a form one by one, says what is wrong with an answer, and sends nothing after a no', async () => {
    const form: ApprovalRequest = {
      callId: 'f',
      token: 't',
      tool: 'mcp_form',
      subject: 'Where?',
      rule: 'mcp.form',
      reason: "The MCP server 'beds' asks this.",
      scopes: ['once'],
      form: [
        { name: 'place', title: 'Place\u202e', isRequired: true, kind: 'text' },
        { name: 'count', title: 'Count', isRequired: false, kind: 'number', isWhole: true, initial: 4 },
        { name: 'raised', title: 'Raised', isRequired: true, kind: 'switch' },
        {
          name: 'soil',
          title: 'Soil',
          isRequired: true,
          kind: 'choices',
          options: [
            { value: 's', label: 'Sand' },
            { value: 'c', label: 'Clay' },
          ],
        },
      ],
    };
    const { human, said } = answering('1 2', 'y', '', 'South', '', 'perhaps', 'n', '3');
    assert.deepEqual(await human.approve(form, signal), {
      allow: true,
      scope: 'once',
      content: { place: 'South', count: 4, raised: false, soil: ['s', 'c'] },
    });
    const all = said.join('\n');
    for (const part of [
      'server .beds. asks',
      'Place.*202e',
      'This field is required',
      'Answer yes or no',
      '2 Clay',
      'Choose among',
    ])
      assert.match(all, new RegExp(part));
    assert.equal((await answering('n').human.approve(form, signal)).allow, false);
    assert.equal((await answering(undefined, 'y', 'South').human.approve(form, signal)).allow, false);
  });

  it('says that an answer was not understood, and asks again', async () => {
    const once = { ...request, scopes: ['once'] as const, isEditable: true };
    for (const answer of ['xyz', 'yo', 'e ', 'alway', 'always', 's', 'o', 'nope'])
      for (const then of ['y', 'n', undefined]) {
        const { human, said, prompts } = answering(then, answer);
        assert.equal((await human.approve(once, signal)).allow, then === 'y', answer);
        assert.equal(prompts.length, 2, answer);
        assert.match(said[1] ?? '', new RegExp(`'${answer.trim()}' is not one of the answers.*answer again`));
      }
  });

  it('takes y, r and the word always in either case; no, no words and the end of the input are a no', async () => {
    const answers: [string | undefined, string][] = [
      ['y', 'once'],
      ['YES', 'once'],
      [' r ', 'run'],
      ['Always', 'always'],
      ['a', 'no'],
      ['n', 'no'],
      ['no', 'no'],
      ['', 'no'],
      [undefined, 'no'],
    ];
    for (const [answer, expected] of answers) {
      const decision = await answering(answer).human.approve(request, signal);
      assert.equal(decision.allow ? decision.scope : 'no', expected, String(answer));
    }
  });

  it('runs another command that is typed in place of one that may be changed', async () => {
    const { human, prompts } = answering('e git status --short ');
    assert.deepEqual(await human.approve({ ...request, isEditable: true }, signal), {
      allow: true,
      scope: 'once',
      command: 'git status --short',
    });
    assert.match(prompts[0] ?? '', /always, e COMMAND, N = no, \? = help\]/);
    const other = answering('n', 'e git status --short ');
    assert.equal((await other.human.approve(request, signal)).allow, false);
    assert.match(other.said[1] ?? '', /is not one of the answers/);
  });

  it('offers to run outside of the box in place of a host', async () => {
    const { human, said, prompts } = answering('o', '?');
    assert.deepEqual(await human.approve({ ...request, mayLeave: true }, signal), leaveBox);
    assert.match(prompts[0] ?? '', /o = outside the sandbox, N = no/);
    assert.match(said[1] ?? '', /\n {2}o +deny the host; you are asked/);
    assert.notDeepEqual(await answering('n', 'o').human.approve(request, signal), leaveBox);
  });

  it('says with ? what each answer means, and asks again', async () => {
    const { human, said, prompts } = answering('y', '?');
    assert.equal((await human.approve({ ...request, isEditable: true }, signal)).allow, true);
    assert.equal(prompts.length, 2);
    assert.match(
      said[1] ?? '',
      /y +allow it this once\n.*r +allow.*\n.*always +.*\n.*e COMMAND +run.*\n.*n WHY/s,
    );
  });

  it('names what is dangerous before the reason, and tells the model why it was denied', async () => {
    const danger = [{ kind: 'deletes-outside' as const, values: ['../x\u202e'] }];
    const { human, said, prompts } = answering('n  Keep ../x, it is mine ');
    const decision = await human.approve({ ...request, danger, scopes: ['once', 'run'] }, signal);
    assert.deepEqual(decision, { allow: false, reason: 'The user denied this: Keep ../x, it is mine' });
    assert.match(
      said.join('\n'),
      /\n {2}! Deletes \.\.\/x\\u202e, outside the working folder\.\n {2}Commands/,
    );
    assert.doesNotMatch(prompts[0] ?? '', /always/);
    assert.match(prompts[0] ?? '', /N = no, \? = help/);
  });

  it('offers and takes only the answers that the request allows', async () => {
    const { human, prompts } = answering(undefined, 'always');
    const decision = await human.approve({ ...request, scopes: ['once'] }, signal);
    assert.equal(decision.allow, false);
    assert.doesNotMatch(prompts[0] ?? '', /always|for this run/);
  });

  it('shows the beginning and the end of a long command, and all of it when asked', async () => {
    const lines = Array.from({ length: 90 }, (_, index) => `echo ${index}`).join('\n');
    const long: [subject: string, hidden: number, end: string][] = [
      [`${'x'.repeat(5000)}; rm -rf ~`, 1010, 'rm -rf ~'],
      [`${lines}\nrm -rf ~`, 409, 'rm -rf ~'],
    ];
    for (const [subject, hidden, end] of long) {
      const { human, said, prompts } = answering('y', 's');
      await human.approve({ ...request, subject }, signal);
      const [first = '', whole = ''] = said;
      assert.match(first, new RegExp(`\\.\\.\\. ${hidden} characters between are not shown`));
      assert.match(first, new RegExp(`${end}\n  Commands are asked about`));
      assert.ok(first.split('\n').length < 50);
      assert.match(prompts[0] ?? '', /s = show all of it/);
      assert.ok(whole.includes(subject.replaceAll('\n', '\n    ')));
      assert.doesNotMatch(prompts[1] ?? '', /show all/);
    }
  });

  it('puts the command behind the card, next to where the answer is typed', async () => {
    const { human, said, prompts } = answering('a');
    const card: AgentCard = {
      agent: 'x',
      folder: '/x',
      origin: 'here',
      digest: 'd',
      scripts: [],
      variables: [],
      servers: [],
      redFlags: [],
      changes: [],
      hosts: ['one.test', 'two.test'],
      workingDir: '/work',
      folders: [],
      state: 'new',
    };
    const decision = await human.approve({ ...request, card, scopes: ['once', 'always'] }, signal);
    assert.equal(decision.allow, false);
    assert.match(said.join('\n'), /two\.test[\s\S]*git status/);
    assert.match(said.join('\n'), /'always' has to be written out/);
    assert.match(prompts[0] ?? '', /always = approve the permissions/);
  });

  it('accepts a card without the lines that are left out, and nothing for a line that it does not have', async () => {
    const card: AgentCard = {
      agent: 'x',
      folder: '/x',
      origin: 'here',
      digest: 'd',
      scripts: [],
      variables: ['WORK_ROOT'],
      servers: [],
      redFlags: [],
      changes: [],
      hosts: ['one.test'],
      workingDir: '/work',
      folders: [],
      commands: ['git *'],
      writes: ['AGENTS.md', '~/.purse_watch'],
      state: 'new',
    };
    const asked = { ...request, card, scopes: ['once', 'always'] as const };
    const without = await answering('always without WORK_ROOT, one.test').human.approve(asked, signal);
    assert.deepEqual(without, { allow: true, scope: 'always', without: ['WORK_ROOT', 'one.test'] });
    const more = await answering('always without ~/.purse_watch,git *, AGENTS.md').human.approve(
      asked,
      signal,
    );
    assert.deepEqual(more.allow && more.without, ['~/.purse_watch', 'git *', 'AGENTS.md']);
    for (const answer of ['always without WORK_ROT', 'always without', 'always WORK_ROOT'])
      assert.equal((await answering(undefined, answer).human.approve(asked, signal)).allow, false, answer);
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

  describe('on a terminal', () => {
    class Keys extends PassThrough {
      readonly isTTY = true;
      readonly modes: boolean[] = [];
      setRawMode(raw: boolean): void {
        this.modes.push(raw);
      }
    }
    const asked = (keys: Keys, control = new AbortController()) =>
      readLine('? ', control.signal, keys, new PassThrough());

    it('takes no line for an answer that was typed before, or within the first moment', async () => {
      const keys = new Keys();
      keys.write('y\n');
      keys.write('y\ny');
      const answer = asked(keys);
      keys.write('\ny\n');
      await until(() => keys.modes.length === 2);
      keys.write('n\n');
      assert.equal(await answer, 'n');
      assert.deepEqual(keys.modes, [true, false]);
    });

    it('takes no end of a line for an answer whose beginning was read for a question that is over', async () => {
      const keys = new Keys();
      const control = new AbortController();
      const over = asked(keys, control);
      await until(() => keys.modes.length === 2);
      keys.write('y');
      await until(() => keys.readableLength === 0);
      await delay(0);
      control.abort();
      assert.equal(await over, undefined);
      const answer = asked(keys);
      await until(() => keys.modes.length === 4);
      keys.write('\n');
      keys.write('n\n');
      assert.equal(await answer, 'n');
    });

    it('waits for the end of what is held down or pasted', async () => {
      const keys = new Keys();
      const answer = asked(keys);
      let [last, longestGap] = [performance.now(), 0];
      for (let count = 0; count < 50; count++) {
        keys.write('y\n');
        await delay(10);
        longestGap = Math.max(longestGap, performance.now() - last);
        last = performance.now();
      }
      await until(() => keys.modes.length === 2);
      keys.write('no\n');
      // On a machine that is so busy that nothing comes for a while, that was the end.
      assert.equal(await answer, longestGap < 40 ? 'no' : await answer);
    });

    it('hears Ctrl-C meanwhile, and the end of the terminal', async () => {
      const control = new AbortController();
      const interrupted = (): void => control.abort();
      process.once('SIGINT', interrupted);
      const keys = new Keys();
      const answer = asked(keys, control);
      keys.write('\x03');
      assert.equal(await answer, undefined);
      process.off('SIGINT', interrupted);
      assert.deepEqual(keys.modes, [true, false]);
      const gone = new Keys();
      const none = asked(gone);
      gone.end();
      assert.equal(await none, undefined);
    });
  });
});
