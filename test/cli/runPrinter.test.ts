import assert from 'node:assert/strict';
import { textPrinter } from '../../src/cli/runPrinter.ts';
import type { Terminal } from '../../src/cli/terminal.ts';
import type { RunEvent } from '../../src/protocol/run.ts';

const same = (text: string): string => text;

describe('textPrinter', () => {
  /** What stdout gets when it is a screen of this width, or none; what goes to the side is not on it. */
  function printed(outWidth: number | undefined, events: readonly RunEvent[]): string {
    let out = '';
    const terminal: Terminal = {
      out: text => {
        out += text;
      },
      say: () => {},
      endLine: leaving => {
        if (out !== '' && !out.endsWith('\n')) out += leaving ? '\n\n' : '\n';
      },
      flush: () => {},
      canAsk: false,
      surroundings: process,
      outWidth,
      sayWidth: 80,
      style: { dim: same, bold: same, red: same, yellow: same },
    };
    const print = textPrinter(terminal);
    for (const event of events) print(event);
    return out;
  }

  const text = (words: string): RunEvent => ({ type: 'text', text: words });
  const call = { id: '1', name: 'read_file', input: { path: 'a.md' } };
  const tool: RunEvent[] = [
    { type: 'tool_start', call },
    { type: 'tool_end', callId: '1', name: 'read_file', result: { content: 'x', isError: false } },
  ];
  const end: RunEvent = {
    type: 'run_end',
    outcome: 'completed',
    rounds: 2,
    toolCalls: 1,
    durationMs: 1,
    messages: [],
  };

  it('begins a new line on a screen for what the model says after its tools', () => {
    assert.equal(
      printed(80, [text('I '), text('look.'), ...tool, ...tool, text('Done.'), end]),
      'I look.\nDone.\n',
    );
    assert.equal(printed(80, [...tool, text('Done.\n'), end]), 'Done.\n');
  });

  it('leaves a blank line in a pipe between two turns, where no line is open nothing', () => {
    assert.equal(
      printed(undefined, [text('I '), text('look.'), ...tool, text('Done.'), end]),
      'I look.\n\nDone.\n',
    );
    assert.equal(printed(undefined, [text('x\n'), ...tool, text('Done.'), end]), 'x\nDone.\n');
    assert.equal(printed(undefined, [...tool, text('Done.'), end]), 'Done.\n');
  });

  it('closes a run with its time, tokens, cost and files, and not one that never began', () => {
    const said: string[] = [];
    const side: Terminal = {
      out: () => {},
      say: line => said.push(line),
      endLine: () => {},
      flush: () => {},
      canAsk: false,
      surroundings: process,
      outWidth: undefined,
      sayWidth: 80,
      style: { dim: same, bold: same, red: same, yellow: same },
    };
    const usage = {
      inputTokens: 1200,
      outputTokens: 34,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      cost: 0.0123,
    };
    const changedFiles = ['/elsewhere/a.md', `${process.cwd()}/b.md`];
    const routed: RunEvent = {
      type: 'routed',
      agent: 'a',
      skill: 's',
      description: '',
      reason: { rule: 'name' },
      provider: 'p',
      model: 'm',
      workingDir: '/',
      hasMcp: false,
    };
    const wrote: RunEvent = {
      type: 'tool_end',
      callId: '1',
      name: 'write_file',
      result: { content: '', isError: false, changedFiles },
    };
    textPrinter(side)({ ...end, outcome: 'no_match' });
    assert.deepEqual(said, []);
    const print = textPrinter(side);
    for (const event of [
      routed,
      { type: 'usage', round: 1, usage } as const,
      wrote,
      { ...end, durationMs: 12_400 },
    ])
      print(event);
    assert.equal(said.at(-1), 'Done in 12 s · 1,234 tokens · $0.0123 · 2 files: /elsewhere/a.md, b.md');
  });

  it('shows the rule that would allow a denied call to its end', () => {
    const said: string[] = [];
    const rule = `To always allow it, add an [[allow]] rule to policy.toml: command = "${'x'.repeat(700)}".`;
    const side: Terminal = {
      out: () => {},
      say: line => said.push(line),
      endLine: () => {},
      flush: () => {},
      canAsk: false,
      surroundings: process,
      outWidth: undefined,
      sayWidth: 80,
      style: { dim: same, bold: same, red: same, yellow: same },
    };
    const result = { content: `Denied: No one is there to ask. ${rule}`, isError: true };
    textPrinter(side)({ type: 'tool_end', callId: '1', name: 'run_command', result });
    assert.ok(said[0]?.endsWith(rule), said[0]);
  });

  it('says with --verbose which commands ran in the box, and what the model thought', () => {
    const said: string[] = [];
    const terminal: Terminal = {
      out: () => {},
      say: line => said.push(line),
      endLine: () => {},
      flush: () => {},
      canAsk: false,
      surroundings: process,
      outWidth: undefined,
      sayWidth: 80,
      style: { dim: same, bold: same, red: same, yellow: same },
    };
    const ended = (boxed: boolean): RunEvent => ({
      type: 'tool_end',
      callId: '1',
      name: 'run_command',
      result: { content: 'ok', isError: false },
      policy: { action: 'allow', rule: 'run.box', ...(boxed && { boxed: true as const }) },
    });
    const print = textPrinter(terminal, { verbose: true });
    for (const boxed of [true, false]) print(ended(boxed));
    assert.deepEqual(said, ['  ok\n  (ran in the sandbox)', '  ok']);
    textPrinter(terminal)(ended(true));
    assert.equal(said.length, 2);
    const thoughts: RunEvent[] = [
      { type: 'reasoning', text: 'Which file?\n\u001b[31mThis ' },
      { type: 'reasoning', text: 'one.', durationMs: 8_000 },
    ];
    for (const thought of thoughts) {
      print(thought);
      textPrinter(terminal)(thought);
    }
    assert.deepEqual(said.slice(2), ['Thought for 8 s:\n  Which file?\n  \\x1b[31mThis one.']);
  });
});
