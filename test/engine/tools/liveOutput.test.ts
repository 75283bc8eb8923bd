import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createCommandTool } from '../../../src/engine/tools/command.ts';
import { LiveOutput } from '../../../src/engine/tools/commandOutput.ts';
import { until } from '../../eventually.ts';
import { type TemporaryRun, temporaryRun } from './temporaryRun.ts';

describe('live output of a command', () => {
  let run: TemporaryRun;
  beforeEach(() => {
    run = temporaryRun();
  });
  afterEach(() => run.remove());

  const start = (command: string, seen: string[]) =>
    createCommandTool({ timeoutMs: 20_000 }).execute(
      { command },
      { ...run.context, onOutput: text => seen.push(text) },
    );
  /** Waits for a file of that name. */
  const wait = (name: string) => `while ! test -e ${name}; do sleep 0.02; done`;

  it('comes while the command runs, from both streams, without what steers a terminal', async () => {
    const seen: string[] = [];
    const done = start(
      `printf '\\033[1;32mone\\033[0m \\033]0;title\\007t\\303'; ${wait('go')}; printf '\\274r\\n' ; echo two >&2; sleep 0.2`,
      seen,
    );
    await until(() => seen.join('') === 'one t');
    writeFileSync(join(run.pack, 'go'), '');
    await done;
    assert.equal(seen.join(''), 'one tür\ntwo\n');
  });

  it('says nothing of a command that ends at once', async () => {
    const seen: string[] = [];
    assert.equal((await start('echo hi', seen)).content, 'hi');
    assert.deepEqual(seen, []);
  });

  it('shows the end of a flood, a few times a second', async () => {
    const seen: string[] = [];
    await start('yes "$(printf %0100d 7)" | head -c 50000000; echo; echo the end; sleep 0.3', seen);
    assert.ok(seen.length > 0 && Math.max(...seen.map(text => text.length)) <= 17_000);
    assert.match(seen[0] ?? '', /^…\n/);
    assert.match(seen.join(''), /\nthe end\n$/);
  });

  it('shows no half of what is cut, and no binary', async () => {
    const seen: string[] = [];
    const live = new LiveOutput(text => seen.push(text));
    live.add('stdout', Buffer.from(`${'k'.repeat(20_000)}\nnext\n`));
    await until(() => seen.length === 1);
    assert.deepEqual(seen, ['…\nnext\n']);
    live.add('stdout', Buffer.from('a\0b'));
    live.add('stderr', Buffer.from('\x1b[3'));
    live.add('stderr', Buffer.from('1mred\x1b(B\x07\n'));
    live.end();
    assert.deepEqual(seen.slice(1), ['red\n']);
  });
});
