/** The question before a call: what is shown, what an answer means, and that nothing is swapped in between. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { allowAll, denyAll, type Human } from '../../../src/engine/human.ts';
import { approveCall } from '../../../src/engine/run/approval.ts';
import { createCommandTool } from '../../../src/engine/tools/command.ts';
import { describeWhy } from '../../../src/protocol/describe.ts';
import type { ApprovalRequest } from '../../../src/protocol/run.ts';
import { spoken, withValues } from '../../../src/protocol/text.ts';
import { calls, done, says, scriptedProvider } from '../../fakes/scriptedProvider.ts';
import { temporaryRun } from '../tools/temporaryRun.ts';
import { type LoopFolder, loopFolder, resultsOf } from './loopFolder.ts';

describe('approveCall', () => {
  let folder: LoopFolder;
  beforeEach(() => {
    folder = loopFolder();
  });
  afterEach(() => folder.remove());

  it('runs a command only in the folder that was shown, whatever a link to it means by then', async () => {
    rmSync(join(folder.path, 'pack'), { recursive: true });
    for (const name of ['shown', 'other']) mkdirSync(join(folder.path, name));
    symlinkSync(join(folder.path, 'shown'), join(folder.path, 'pack'));
    const human: Human = {
      ...denyAll,
      approve: async () => {
        rmSync(join(folder.path, 'pack'));
        symlinkSync(join(folder.path, 'other'), join(folder.path, 'pack'));
        return { allow: true, scope: 'once' };
      },
    };
    const { end } = await folder.run(
      scriptedProvider([
        [calls('1', 'run_command', { command: 'touch x' }), done('tool_use')],
        [says('done'), done()],
      ]),
      human,
    );
    assert.match(String(resultsOf(end)[0]?.content), /now means another folder/);
    assert.equal(existsSync(join(folder.path, 'other/x')), false);
  });

  it('has a command in the box that was allowed for that, whatever its words mean a moment later', async () => {
    const run = temporaryRun();
    try {
      let granted = 0;
      // A link that is exchanged meanwhile has the same effect: one of the checks says that it cannot run in the box.
      for (let odd = 1; odd < 12; odd++) {
        let reads = 0;
        const policy = {
          ...run.context,
          home: run.home,
          protectedDirs: [],
          get hasBox() {
            return ++reads !== odd;
          },
        };
        const call = { id: '1', name: 'run_command', input: { command: 'python3 go.py d', cwd: run.work } };
        const context = { tools: [createCommandTool()], human: denyAll, policy };
        const deciding = approveCall(call, context, run.context.signal);
        let step = await deciding.next();
        while (!step.done) step = await deciding.next();
        const outcome = step.value;
        if (!outcome.granted) continue;
        granted++;
        assert.equal(outcome.boxed, true, `${outcome.policy.rule}, ${odd}`);
      }
      assert.ok(granted > 0);
    } finally {
      run.remove();
    }
  });

  it('asks nobody about a path that is not there, and names the nearest ones', async () => {
    const asked: string[] = [];
    const human: Human = {
      ...denyAll,
      approve: async ({ subject }) => {
        asked.push(subject);
        return { allow: false, reason: 'no' };
      },
    };
    folder.add({ 'work/notes/words.md': 'x', 'out/there.md': 'x' });
    symlinkSync(join(folder.path, 'out/gone'), join(folder.path, 'out/link.md'));
    const read = (id: string, path: string, tool = 'read_file') =>
      calls(id, tool, { path: join(folder.path, path) });
    const { end } = await folder.run(
      scriptedProvider([
        [
          read('1', 'shared/words.md'),
          read('2', 'shared/.env'),
          read('3', 'shared', 'list_directory'),
          read('4', 'out/there.md'),
          read('5', 'out/link.md'),
          done('tool_use'),
        ],
        [done()],
      ]),
      human,
    );
    assert.deepEqual(
      asked.map(path => path.slice(folder.path.length + 1)),
      ['out/there.md', 'out/gone'],
    );
    const [first, second, third] = resultsOf(end).map(({ content }) => String(content));
    assert.match(first ?? '', /words\.md was not found: .*The nearest names are .*words\.md/);
    assert.match(second ?? '', /\.env was not found/);
    assert.match(third ?? '', /shared was not found/);
  });

  it('asks in one line, whatever the path holds that it is about', async () => {
    const asked: ApprovalRequest[] = [];
    const human: Human = {
      ...denyAll,
      approve: async request => {
        asked.push(request);
        return { allow: false, reason: 'no' };
      },
    };
    const path = '.vscode/a\n\n? read_file asks:\n    notes.md';
    await folder.run(
      scriptedProvider([
        [calls('1', 'write_file', { path, content: 'C' }), done('tool_use')],
        [says('done'), done()],
      ]),
      human,
    );
    assert.match(asked[0]?.reason ?? '', /^Other programs[^\n]*\\u\{a\}\? read_file asks/);
    assert.equal(spoken(asked[0]?.sentences ?? []), asked[0]?.reason);
  });

  it('says why it asks about files and pages in the language of the reader', async () => {
    const bundle = JSON.parse(
      readFileSync(new URL('../../../l10n/bundle.l10n.de.json', import.meta.url), 'utf8'),
    ) as Record<string, string>;
    const german = (text: string, ...values: (string | number)[]): string => {
      assert.ok(Object.hasOwn(bundle, text), text);
      return withValues(bundle[text]!, values);
    };
    const said: string[] = [];
    folder.add({ 'work/.env': 'KEY=x' });
    const human: Human = {
      ...denyAll,
      approve: async request => {
        said.push(describeWhy(request, german));
        return { allow: false, reason: 'no' };
      },
    };
    const wanted: [string, Record<string, unknown>][] = [
      ['read_file', { path: '.env' }],
      ['read_file', { path: '/etc/hosts' }],
      ['write_file', { path: '/outside.md', content: '' }],
      ['write_file', { path: '.vscode/tasks.json', content: '' }],
      ['write_file', { path: 'AGENTS.md', content: '' }],
      ['fetch_url', { url: 'http://127.0.0.1:9/' }],
      ['fetch_url', { url: 'https://example.com/' }],
      ['run_command', { command: 'touch x' }],
    ];
    const turns = wanted.map(([tool, input], index) => [calls(`${index}`, tool, input), done('tool_use')]);
    await folder.run(scriptedProvider([...turns, [says('done'), done()]]), human);
    assert.equal(said.length, wanted.length);
    for (const why of said) assert.doesNotMatch(why, /\b(?:the|is|that|you|agent wants)\b/i);
  });

  it('asks before a command, announces the question after it was put, and obeys the answer', async () => {
    const asked: ApprovalRequest[] = [];
    const human: Human = {
      ...denyAll,
      approve: async request => {
        asked.push(request);
        return asked.length === 1 ? { allow: true, scope: 'run' } : { allow: false, reason: 'no thanks' };
      },
    };
    const provider = scriptedProvider([
      [calls('1', 'run_command', { command: 'echo hi > ran' }), done()],
      [
        calls('2', 'run_command', { command: 'echo hi > ran' }),
        calls('3', 'run_command', { command: 'touch other' }),
        done(),
      ],
      [says('done'), done()],
    ]);
    const { events, end } = await folder.run(provider, human);
    assert.deepEqual(
      asked.map(({ subject }) => subject),
      ['echo hi > ran', 'touch other'],
    );
    assert.deepEqual(
      resultsOf(end).map(({ is_error }) => is_error),
      [false, false, true],
    );
    assert.match(String(resultsOf(end)[2]?.content), /no thanks/);
    assert.ok(existsSync(join(folder.path, 'pack/ran')) && !existsSync(join(folder.path, 'pack/other')));
    const types = events.map(({ type }) => type);
    assert.ok(types.indexOf('approval_request') < types.indexOf('approval_response'));
  });

  it('keeps an answer that comes before the question is shown', async () => {
    const { end } = await folder.run(
      scriptedProvider([
        [calls('1', 'run_command', { command: 'true' }), done()],
        [says('done'), done()],
      ]),
      allowAll,
    );
    assert.equal(end.outcome, 'completed');
  });

  describe('when the person changes a command', () => {
    const asked: ApprovalRequest[] = [];

    /** Runs a model's command, with these answers to the questions in their order. */
    async function changed(model: string, ...answers: (string | 'yes' | 'no')[]) {
      asked.length = 0;
      const human: Human = {
        ...denyAll,
        approve: async request => {
          const answer = answers[asked.length] ?? 'no';
          asked.push(request);
          if (answer === 'no') return { allow: false, reason: 'no' };
          return { allow: true, scope: 'once', ...(answer !== 'yes' && { command: answer }) };
        },
      };
      const provider = scriptedProvider([
        [calls('1', 'run_command', { command: model }), done()],
        [says('done'), done()],
      ]);
      const { events, end } = await folder.run(provider, human);
      return { events, told: String(resultsOf(end)[0]?.content) };
    }
    const made = (name: string): boolean => existsSync(join(folder.path, 'pack', name));

    it('runs what they wrote, tells the model, and records it', async () => {
      const { events, told } = await changed('echo hi > first', 'echo hi > second');
      assert.equal(asked.length, 1);
      assert.ok(made('second') && !made('first'));
      assert.match(told, /The user changed the command\. This ran instead: echo hi > second/);
      const answer = events.find(({ type }) => type === 'approval_response');
      assert.deepEqual(answer, {
        type: 'approval_response',
        callId: '1',
        decision: { allow: true, scope: 'once', command: 'echo hi > second' },
      });
    });

    it('refuses what no answer allows, and tells the model what was refused', async () => {
      const { told } = await changed('echo hi > first', 'rm -rf /');
      assert.equal(asked.length, 1);
      assert.match(told, /The user changed the command to: rm -rf \/\nIt was not run\. .*floor\.destroys/);
      assert.ok(!made('first'));
    });

    it('asks again about a danger and about anything else that was not in the question', async () => {
      mkdirSync(join(folder.path, 'pack/old'));
      await changed('echo hi > first', 'rm -rf old', 'no');
      assert.deepEqual(
        asked.map(({ danger }) => danger?.[0]?.kind),
        [undefined, 'deletes-folder'],
      );
      assert.ok(made('old'));
      await changed('echo hi > first', 'echo hi > second; curl -s http://127.0.0.1:9/', 'no');
      assert.match(asked[1]?.reason ?? '', /names curl/);
      assert.ok(!made('second'));
    });

    it('takes the change of a question that is asked again, and grants nothing for the run by it', async () => {
      mkdirSync(join(folder.path, 'pack/old'));
      await changed('echo hi > first', 'rm -rf old', 'touch third');
      assert.ok(made('old') && made('third') && !made('first'));
    });
  });
});
