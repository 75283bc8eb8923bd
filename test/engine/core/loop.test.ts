/** The loop: it goes on until the model asks for nothing more, and every end is told. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TelosError } from '../../../src/engine/core/errors.ts';
import type { Budget, Human } from '../../../src/engine/core/ports.ts';
import { allowAll, denyAll } from '../../../src/engine/human.ts';
import type { RunSetup } from '../../../src/engine/run/runSetup.ts';
import { builtinTools } from '../../../src/engine/tools/builtin.ts';
import { describeQuestion } from '../../../src/protocol/describe.ts';
import type { ApprovalRequest } from '../../../src/protocol/run.ts';
import { sentence } from '../../../src/protocol/text.ts';
import { calls, done, type ScriptedProvider, says, scriptedProvider } from '../../fakes/scriptedProvider.ts';
import { type LoopFolder, loopFolder } from '../run/loopFolder.ts';

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

  it('asks once more without tools only in the first round, and not for a reason that is known', async () => {
    const known = await folder.run(
      scriptedProvider([[new TelosError('auth', 'No key.')], [says('ok'), done()]]),
    );
    assert.deepEqual(
      [known.end.outcome, known.end.error?.message, known.end.rounds],
      ['failed', 'No key.', 1],
    );
    const read = [calls('1', 'read_file', { path: 'in.txt' }), done('tool_use')];
    const later = await folder.run(scriptedProvider([read, [new Error('gone')], [says('ok'), done()]]));
    assert.deepEqual([later.end.outcome, later.end.error?.message, later.end.rounds], ['failed', 'gone', 2]);
    const { events, end } = await folder.run(
      scriptedProvider([[new Error('no tools')], [says('ok'), done()]]),
    );
    assert.equal(end.rounds, 2);
    const told = events.flatMap(event => (event.type === 'notice' ? [[event.level, event.message]] : []));
    assert.deepEqual(told, [['warning', 'script does not support tools; it can only answer with text.']]);
    const again = await folder.run(scriptedProvider([[new Error('no tools')], [new Error('nor words')]]));
    assert.deepEqual([again.end.outcome, again.end.error?.message], ['failed', 'nor words']);
  });

  describe('as its run wants it', () => {
    const looks = [calls('1', 'list_directory', {}), done('tool_use')];
    const usage = { inputTokens: 10, outputTokens: 2, cacheReadTokens: 0, cacheWriteTokens: 0 };
    const run = (
      turns: Parameters<typeof scriptedProvider>[0],
      more: Partial<RunSetup>,
      provider: Partial<ScriptedProvider> = {},
      human: Human = denyAll,
    ) =>
      folder.run({ ...scriptedProvider(turns), ...provider }, human, undefined, undefined, undefined, more);

    it('ends an unattended run after its own number of rounds, and after no more than there may be', async () => {
      for (const [maxRounds, rounds] of [
        [1, 1],
        [3, 3],
        [600, 500],
      ] as const) {
        const { end } = await run([looks], { maxRounds });
        assert.deepEqual([end.outcome, end.rounds], ['round_limit', rounds]);
      }
    });

    it('asks for what is left to the limit, and says one of one', async () => {
      const asked: string[] = [];
      const human: Human = {
        ask: denyAll.ask,
        approve: async ({ subject, rule }) => {
          asked.push(`${rule}: ${subject}`);
          return { allow: true, scope: 'once' };
        },
      };
      const quota = { whose: 'the garden', roundsBeforeAsking: 4 };
      await run(
        [looks, looks, looks, looks, looks, [says('ok'), done()]],
        { maxRounds: 5 },
        { quota },
        human,
      );
      assert.deepEqual(asked, [
        'quota.rounds: 1 more question to script',
        'run.rounds: 5 more questions to script',
      ]);
      asked.length = 0;
      await run([looks], { maxRounds: 499 }, {}, human);
      assert.deepEqual(asked, ['run.rounds: 1 more question to script']);
      asked.length = 0;
      await run(
        [looks, looks, [says('ok'), done()]],
        {},
        { quota: { ...quota, roundsBeforeAsking: 0 } },
        human,
      );
      assert.deepEqual(asked, []);
    });

    it('hands the person’s words to the model before its next round, and tells that', async () => {
      const letters = [['Stop at noon.', 'Use peas.'], [], ['And beans.']];
      const mail = async () => letters.shift() ?? [];
      const provider = scriptedProvider([looks, looks, looks, [says('ok'), done()]]);
      const { events } = await folder.run(provider, denyAll, undefined, undefined, undefined, { mail });
      const told = events.flatMap(event => (event.type === 'notice' ? [event.message] : []));
      assert.deepEqual(told, ['You said: Stop at noon.', 'You said: Use peas.', 'You said: And beans.']);
      const sent = provider.requests.map(({ messages }) => JSON.stringify(messages));
      assert.match(sent[0] ?? '', /The person says: Stop at noon\..*The person says: Use peas\./);
      assert.doesNotMatch(sent[1] ?? '', /beans/);
      assert.match(sent[2] ?? '', /The person says: And beans\./);
    });

    it('sends no round that was cancelled while it waited for the person’s words', async () => {
      const control = new AbortController();
      const mail = async () => {
        control.abort();
        return ['x'];
      };
      const provider = scriptedProvider([[says('ok'), done()]]);
      const { end } = await folder.run(provider, denyAll, control, undefined, undefined, { mail });
      assert.deepEqual([end.outcome, end.rounds, provider.requests.length], ['cancelled', 0, 0]);
    });

    it('tells what each round has used, counts it against the budget, and not what a recording has', async () => {
      const added: unknown[] = [];
      const budget = {
        check: async () => [sentence('Nearly used up.')],
        add: (used: unknown) => {
          added.push(used);
          return [sentence('Used up.')];
        },
      } as Partial<Budget> as Budget;
      const turns = [
        [...looks.slice(0, 1), { ...done('tool_use'), usage }],
        [says('ok'), done()],
      ];
      const shown = ({ events }: Awaited<ReturnType<typeof run>>): unknown[] =>
        events.flatMap((event): unknown[] =>
          event.type === 'usage'
            ? [[event.round, event.usage.cost]]
            : event.type === 'notice'
              ? [event.message]
              : [],
        );
      assert.deepEqual(shown(await run(turns, { budget, priceOf: () => 0.5 })), [
        'Nearly used up.',
        [1, 0.5],
        'Used up.',
        'Nearly used up.',
        'Used up.',
      ]);
      assert.deepEqual(added, [{ ...usage, cost: 0.5 }, undefined]);
      const recording = { path: 'x' } as unknown as NonNullable<ScriptedProvider['recording']>;
      const replayed = shown(await run(turns, { budget, priceOf: () => 0.5 }, { recording }));
      assert.deepEqual(replayed, ['Nearly used up.', [1, 0.5], 'Nearly used up.']);
    });

    it('lets a later answer be longer only where the model has room for it', async () => {
      const cut = [says('half'), calls('1', 'list_directory', {}), done('max_tokens')];
      for (const [window, second] of [
        [undefined, 32_768],
        [131_072, 32_768],
        [131_071, 16_384],
      ] as const) {
        const limits: number[] = [];
        const inner = scriptedProvider([cut, [says('ok'), done()]]);
        const streamCompletion: ScriptedProvider['streamCompletion'] = (request, signal) => {
          limits.push(request.maxTokens);
          return inner.streamCompletion(request, signal);
        };
        await folder.run({ ...inner, streamCompletion }, denyAll, undefined, undefined, undefined, {
          window,
        });
        assert.deepEqual(limits, [16_384, second], String(window));
      }
    });
  });
});
