/** The loop: it goes on until the model asks for nothing more, and every end is told. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { allowAll, denyAll, type Human } from '../../../src/engine/human.ts';
import { builtinTools } from '../../../src/engine/tools/builtin.ts';
import { describeQuestion } from '../../../src/protocol/describe.ts';
import type { ApprovalRequest } from '../../../src/protocol/run.ts';
import { calls, done, type ScriptedProvider, says, scriptedProvider } from '../../fakes/scriptedProvider.ts';
import { type LoopFolder, loopFolder } from './loopFolder.ts';

describe('runLoop', () => {
  let folder: LoopFolder;
  beforeEach(() => {
    folder = loopFolder();
  });
  afterEach(() => folder.remove());

  it('does what the model asks, tells it, and ends when it asks for nothing more', async () => {
    const provider = scriptedProvider([
      [says('x'), calls('1', 'write_file', { path: 'o.md', content: 'C' }), done('tool_use')],
      [says('done'), done()],
    ]);
    const { end } = await folder.run(provider);
    assert.deepEqual([end.outcome, end.rounds, end.toolCalls], ['completed', 2, 1]);
    assert.equal(readFileSync(join(folder.path, 'work/o.md'), 'utf8'), 'C');
    assert.deepEqual(provider.requests[1]?.messages.at(-2)?.content, [
      { type: 'text', text: 'x' },
      { type: 'tool_use', id: '1', name: 'write_file', input: { path: 'o.md', content: 'C' } },
    ]);
    assert.deepEqual(end.messages.at(-1), { role: 'assistant', content: [{ type: 'text', text: 'done' }] });
  });

  it('shows what the model thinks and for how long, and keeps it out of what the model reads', async () => {
    const provider = scriptedProvider([
      [
        { type: 'reasoning', text: 'Which ' },
        { type: 'reasoning', text: 'file?' },
        calls('1', 'read_file', { path: 'in.txt' }),
        done('tool_use'),
      ],
      [says('done'), done()],
    ]);
    const { events } = await folder.run(provider);
    const shown = events.flatMap(event => (event.type === 'reasoning' ? [event] : []));
    assert.deepEqual(
      shown.map(({ text }) => text),
      ['Which ', 'file?', ''],
    );
    assert.deepEqual(
      shown.map(({ durationMs }) => typeof durationMs),
      ['undefined', 'undefined', 'number'],
    );
    assert.ok(!JSON.stringify(provider.requests[1]?.messages).includes('Which'));
  });

  it('does not call half an answer a success, and keeps what there is of it', async () => {
    const { end } = await folder.run(scriptedProvider([[says('half'), done('max_tokens')]]));
    assert.equal(end.outcome, 'failed');
    assert.match(end.error?.message ?? '', /length limit/);
    assert.deepEqual(end.messages.at(-1)?.content, [{ type: 'text', text: 'half' }]);
  });

  it('says that a conversation is too long for the model, and keeps what there is', async () => {
    const { end } = await folder.run(
      scriptedProvider([[says('half'), done('model_context_window_exceeded')]]),
    );
    assert.equal(end.outcome, 'failed');
    assert.match(end.error?.message ?? '', /no longer fits into the context of the model/);
    assert.deepEqual(end.messages.at(-1)?.content, [{ type: 'text', text: 'half' }]);
  });

  describe('with a model that counts against a quota', () => {
    const looks = (): ScriptedProvider => ({
      ...scriptedProvider([[calls('1', 'read_file', { path: 'in.txt' }), done('tool_use')]]),
      quota: { whose: 'the garden', roundsBeforeAsking: 4 },
    });
    const asking = (answers: ('once' | 'run' | 'no')[], asked: string[]): Human => ({
      ...denyAll,
      approve: async ({ subject }) => {
        asked.push(subject);
        const scope = answers.shift() ?? 'no';
        return scope === 'no' ? { allow: false, reason: 'no' } : { allow: true, scope };
      },
    });

    it('asks before it goes on, again and again, and stops at a no', async () => {
      const asked: string[] = [];
      const { events, end } = await folder.run(looks(), asking(['once'], asked));
      assert.deepEqual(asked, ['4 more questions to script', '4 more questions to script']);
      assert.deepEqual([end.outcome, end.rounds], ['cancelled', 8]);
      const [first] = events.filter(event => event.type === 'approval_request');
      assert.match(first?.request.reason ?? '', /4 times already.*quota of the garden/);
    });

    it('asks no more in this run after a yes for it', async () => {
      const asked: string[] = [];
      const { end } = await folder.run(looks(), asking(['run'], asked));
      assert.deepEqual([asked.length, end.outcome, end.rounds], [1, 'round_limit', 20]);
    });

    it('says first what there is to know', async () => {
      const provider = { ...scriptedProvider([[says('k'), done()]]), notice: 'It counts.' };
      const { events } = await folder.run(provider);
      assert.deepEqual(events[1], { type: 'notice', level: 'info', message: 'It counts.' });
    });
  });

  describe('at its last round', () => {
    const circles = (): ScriptedProvider => scriptedProvider([[calls('1', 'list_directory', {}), done()]]);
    const answering = (answers: ('once' | 'run')[], asked: ApprovalRequest[]): Human => ({
      ask: denyAll.ask,
      approve: async request => {
        asked.push(request);
        const scope = answers.shift();
        return scope ? { allow: true, scope } : { allow: false, reason: 'no' };
      },
    });

    it('stops where nobody reads the question, also with a yes to everything', async () => {
      for (const human of [denyAll, allowAll]) {
        const { end, events } = await folder.run(circles(), human);
        assert.deepEqual([end.outcome, end.rounds], ['round_limit', 20]);
        assert.ok(!events.some(({ type }) => type === 'approval_request'));
      }
    });

    it('asks a person, goes on for as many rounds after each yes, and stops at a no', async () => {
      const asked: ApprovalRequest[] = [];
      const { end } = await folder.run(circles(), answering(['once', 'once'], asked));
      assert.deepEqual([end.outcome, end.rounds], ['round_limit', 60]);
      assert.deepEqual(
        asked.map(({ tool, subject, rule }) => [tool, subject, rule]),
        [1, 2, 3].map(() => ['more_rounds', '20 more questions to script', 'run.rounds']),
      );
      assert.match(asked[1]?.reason ?? '', /40 times and is not done/);
      assert.equal(describeQuestion(asked[0]!), 'Continue this run?');
      assert.equal(describeQuestion({ ...asked[0]!, rule: 'run.tool' }), 'Use more_rounds?');
    });

    it('asks no more after a yes for the run, and still ends', async () => {
      const asked: ApprovalRequest[] = [];
      const { end } = await folder.run(circles(), answering(['run'], asked));
      assert.deepEqual([asked.length, end.outcome, end.rounds], [1, 'round_limit', 500]);
    });
  });

  it('asks once more without tools when the first turn fails before it said anything', async () => {
    const provider = scriptedProvider([[new Error('no tools')], [says('ok'), done()]]);
    const { end } = await folder.run(provider);
    assert.deepEqual(
      provider.requests.map(({ tools }) => tools.length),
      [builtinTools.length, 0],
    );
    assert.equal(end.outcome, 'completed');
  });

  it('fails with the reason and keeps what was said when a turn breaks off', async () => {
    const provider = scriptedProvider([
      [says('par'), new Error('x')],
      [says('whole'), done()],
    ]);
    const { end } = await folder.run(provider);
    assert.deepEqual([end.outcome, end.error?.message, provider.requests.length], ['failed', 'x', 1]);
    assert.deepEqual(end.messages.at(-1), { role: 'assistant', content: [{ type: 'text', text: 'par' }] });
  });
});
