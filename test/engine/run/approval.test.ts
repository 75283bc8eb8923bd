/** The question before a call: what is shown, what an answer means, and that nothing is swapped in between. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Human } from '../../../src/engine/core/ports.ts';
import { allowAll, denyAll } from '../../../src/engine/human.ts';
import { type PolicyContext, RunMemory } from '../../../src/engine/policy/decision.ts';
import { approveCall, signInAt } from '../../../src/engine/run/approval.ts';
import { builtinTools } from '../../../src/engine/tools/builtin.ts';
import { createCommandTool } from '../../../src/engine/tools/command.ts';
import type { Tool, WantedSignIn } from '../../../src/engine/tools/tool.ts';
import { describeWhy } from '../../../src/protocol/describe.ts';
import type {
  ApprovalDecision,
  ApprovalRequest,
  JsonObject,
  RunEvent,
  ToolCall,
} from '../../../src/protocol/run.ts';
import { spoken, withValues } from '../../../src/protocol/text.ts';
import { calls, done, says, scriptedProvider } from '../../fakes/scriptedProvider.ts';
import { type TemporaryRun, temporaryRun } from '../tools/temporaryRun.ts';
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
        assert.equal(outcome.policy.boxed, true);
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

  it('names of the near ones the same name first, and none that is far, hidden or a secret', async () => {
    folder.add({
      'work/a/b/guide.md': 'x',
      'work/guide.txt': 'x',
      'work/guides.md': 'x',
      'work/GUIDE.md': 'x',
      'work/other.md': 'x',
      'work/.git/guide.md': 'x',
      'work/node_modules/guide.md': 'x',
      'work/one/two/three/four/plan.md': 'x',
      'work/one/two/three/plans.md': 'x',
      'work/ab.md': 'x',
      'work/key.pem': 'x',
    });
    const wanted = ['guide.md', 'plan.md', 'a.md', 'key.pub', 'nothing.md'];
    const turn = wanted.map((name, index) =>
      calls(`${index}`, 'read_file', { path: join(folder.path, 'shared', name) }),
    );
    const { end } = await folder.run(
      scriptedProvider([
        [...turn, done('tool_use')],
        [says('ok'), done()],
      ]),
    );
    const named = resultsOf(end).map(({ content }) =>
      (/nearest names are (.*)\.$/.exec(String(content))?.[1] ?? '')
        .replaceAll(join(folder.path, 'work/'), '')
        .split(', ')
        .sort(),
    );
    assert.deepEqual(named, [
      ['GUIDE.md', 'a/b/guide.md', 'guide.txt'],
      ['one/two/three/plans.md'],
      ['a'],
      [''],
      [''],
    ]);
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

  describe('decides on one call', () => {
    let run: TemporaryRun;
    beforeEach(() => {
      run = temporaryRun();
    });
    afterEach(() => run.remove());
    const yes: ApprovalDecision = { allow: true, scope: 'once' };

    /** Returns the outcome, the questions and the notices of a call that is answered like this. */
    async function decided(
      call: Partial<ToolCall>,
      more: Partial<PolicyContext> = {},
      answer: ApprovalDecision = yes,
      tools: readonly Tool[] = builtinTools,
    ) {
      const asked: ApprovalRequest[] = [];
      const human: Human = {
        ask: async () => [],
        approve: async request => {
          asked.push(request);
          return answer;
        },
      };
      const policy = { ...run.context, home: run.home, protectedDirs: [], memory: new RunMemory(), ...more };
      const whole = { id: '1', name: 'run_command', input: {}, ...call };
      const deciding = approveCall(whole, { tools, human, policy }, run.context.signal);
      for (;;) {
        const step = await deciding.next();
        if (step.done) return { outcome: step.value, asked, policy };
      }
    }
    const command = (input: JsonObject): Partial<ToolCall> => ({ input: { command: 'touch x', ...input } });

    it('and refuses in words what is none, what no tool does, and what the tool does not take', async () => {
      const rows = [
        [{ problem: 'The arguments are cut.', name: 'glob' }, {}, /^The arguments are cut\.$/],
        [{ name: 'drop_table' }, {}, /^Unknown tool: drop_table\. The tools are read_file, .*run_command/],
        [{ name: 'write_file', input: { path: 'a' } }, {}, /^write_file was not run: "content" is missing/],
        [{ name: 'drop_table' }, { mode: 'plan' }, /^Unknown tool: drop_table/],
        [{ name: 'read_file', input: { path: '/proc/1/mem' } }, {}, /^Not allowed \(floor\.special-file\): /],
        [command({ command: 'rm -rf /' }), {}, /^Not allowed \(floor\.destroys\): /],
      ] as const;
      for (const [call, more, why] of rows) {
        const { outcome, asked } = await decided(call, more);
        assert.ok(!outcome.granted, String(why));
        assert.match(outcome.refusal, why);
        assert.deepEqual(asked, []);
      }
      const without = builtinTools.filter(({ definition }) => definition.name !== 'write_file');
      const planned = await decided({ name: 'write_file' }, { mode: 'plan' }, yes, without);
      assert.ok(!planned.outcome.granted);
      assert.deepEqual(planned.outcome.policy, { action: 'deny', rule: 'mode.plan' });
      const unplanned = await decided({ name: 'write_file' }, {}, yes, without);
      assert.match(unplanned.outcome.granted ? '' : unplanned.outcome.refusal, /^Unknown tool: write_file/);
    });

    it('and shows how long a command may take, if more than usual, and that nobody waits for it', async () => {
      const rows = [
        [{}, undefined, undefined],
        [{ timeout_s: 60 }, undefined, undefined],
        [{ timeout_s: 61 }, 61, undefined],
        [{ timeout_s: 100_000, background: true }, 1800, true],
        [{ background: false }, undefined, undefined],
      ] as const;
      for (const [input, limit, background] of rows) {
        const { asked } = await decided(command(input));
        assert.deepEqual(
          [asked[0]?.timeLimit, asked[0]?.inBackground, asked[0]?.isEditable],
          [limit, background, true],
          JSON.stringify(input),
        );
      }
      const write = {
        name: 'write_file',
        input: { path: '/x.md', content: 'C', timeout_s: 99, background: true },
      };
      const [shown] = (await decided(write)).asked;
      assert.deepEqual(
        [shown?.timeLimit, shown?.inBackground, shown?.isEditable],
        [undefined, undefined, undefined],
      );
      assert.match(JSON.stringify(shown?.diff), /C/);
    });

    it('and says of a command that leaves the box why, in a place of its own, and of no other', async () => {
      const leaving = { command: 'touch x', outside_box: true };
      const { asked, outcome } = await decided(command(leaving), { hasBox: true });
      assert.deepEqual([outcome.granted, outcome.policy?.boxed], [true, undefined]);
      const [shown] = asked;
      const said = spoken(shown?.box ?? []);
      assert.match(said, /box/);
      assert.ok(shown?.reason.endsWith(said));
      const url = { name: 'fetch_url', input: { url: 'https://garden.example/' } };
      assert.deepEqual((await decided(url, { hasBox: true })).asked[0]?.box, undefined);
    });

    it('and lets nobody change a command of which a secret is hidden', async () => {
      const more = { holdsSecret: (text: string) => text.includes('sesame') };
      const hidden = await decided(command({ command: 'open sesame' }), more, { ...yes, command: 'touch y' });
      assert.equal(hidden.asked[0]?.isEditable, undefined);
      assert.ok(hidden.outcome.granted);
      assert.equal(hidden.outcome.approvedSubject, 'open sesame');
      const open = await decided(command({}), more, { ...yes, command: 'touch y' });
      assert.equal(open.asked[0]?.isEditable, true);
      assert.equal(open.outcome.granted && open.outcome.approvedSubject, 'touch y');
      const same = await decided(command({}), more, { ...yes, command: 'touch x' });
      assert.equal(same.outcome.granted && same.outcome.call.input['command'], 'touch x');
      assert.equal(same.asked.length, 1);
    });

    it('and asks again about a change that has as many dangers as are shown', async () => {
      const clean = 'rm -rf sub/a sub/b sub/c';
      const { asked } = await decided(command({ command: clean }), {}, { ...yes, command: `${clean} sub/d` });
      assert.deepEqual(
        asked.slice(0, 2).map(({ subject }) => subject),
        [clean, `${clean} sub/d`],
      );
      const few = await decided(command({ command: 'rm -rf sub' }), {}, { ...yes, command: 'rm -rf  sub' });
      assert.equal(few.asked.length, 1, 'the same danger was agreed to');
      assert.ok(few.outcome.granted);
    });

    it('and tells a question that was left open from a no', async () => {
      const no = await decided(command({}), {}, { allow: false, reason: 'not now' });
      assert.equal(no.outcome.granted ? '' : no.outcome.refusal, 'Denied: not now');
      assert.deepEqual(no.outcome.policy, { action: 'ask', rule: 'run.command' });
    });

    it('and remembers for the run what was agreed to for the run, and nothing else', async () => {
      const once = await decided(command({}));
      assert.equal((await decided(command({}), once.policy)).asked.length, 1);
      const lasting = await decided(command({}), {}, { allow: true, scope: 'run' });
      assert.equal((await decided(command({}), lasting.policy)).asked.length, 0);
      assert.equal((await decided(command({ command: 'touch y' }), lasting.policy)).asked.length, 1);
    });

    it('and runs by itself, word by word, what only looks, and says why if it cannot', async () => {
      run.put('work/a.md', 'one\ntwo\n');
      const { outcome } = await decided(command({ command: `cat ${run.work}/a.md` }));
      assert.ok(outcome.granted);
      assert.deepEqual([outcome.tool.access, outcome.policy.rule], ['read', 'run.read-only']);
      const context = { ...run.context, approvedSubject: outcome.approvedSubject };
      const shown = await outcome.tool.execute(outcome.call.input, context);
      assert.deepEqual([shown.isError, shown.content.trim()], [false, 'one\ntwo']);
      rmSync(join(run.work, 'a.md'));
      const gone = await outcome.tool.execute(outcome.call.input, context);
      assert.match(gone.content, /a\.md/);
    });
  });

  describe('before a sign-in', () => {
    const person = (answer: ApprovalDecision, asked: ApprovalRequest[]): Human => ({
      ask: async () => [],
      approve: async request => {
        asked.push(request);
        return answer;
      },
    });
    const places = { workingDir: '/w', packDir: '/p', skillDir: '/p', commandDir: '/p' };
    async function signIn(
      wanted: Partial<WantedSignIn>,
      answer: ApprovalDecision = { allow: true, scope: 'once' },
    ) {
      const asked: ApprovalRequest[] = [];
      const events: RunEvent[] = [];
      let isSignedIn = false;
      const whole: WantedSignIn = {
        server: 'beds',
        place: 'https://beds.test/mcp',
        origins: async () => ['https://login.test'],
        signIn: async () => {
          isSignedIn = true;
        },
        ...wanted,
      };
      const policy = { ...places, home: '/h', protectedDirs: [] };
      const asking = signInAt(whole, { human: person(answer, asked), policy }, new AbortController().signal);
      for (;;) {
        const step = await asking.next();
        if (step.done) return { asked, events, isSignedIn, refusal: step.value };
        events.push(step.value);
      }
    }

    it('names the server, where it leads, and whether it is for more rights', async () => {
      const first = await signIn({});
      assert.match(
        first.asked[0]?.reason ?? '',
        /^The MCP server 'beds' of agent telos, at https:\/\/beds\.test\/mcp, wants you to sign in at https:\/\/login\.test, which/,
      );
      assert.doesNotMatch(first.asked[0]?.reason ?? '', /also speaks|once more/);
      assert.deepEqual([first.isSignedIn, first.refusal], [true, undefined]);
      const origins = async () => ['https://login.test', 'https://token.test', 'https://more.test'];
      const more = await signIn({ more: 'beds:write', origins });
      assert.match(
        more.asked[0]?.reason ?? '',
        /once more, for more rights \(beds:write\), at https:\/\/login/,
      );
      assert.match(
        more.asked[0]?.reason ?? '',
        /also speaks with https:\/\/token\.test, https:\/\/more\.test for it/,
      );
      const two = await signIn({ origins: async () => ['https://login.test', 'https://token.test'] });
      assert.match(two.asked[0]?.reason ?? '', /also speaks with https:\/\/token\.test for it/);
      assert.match((await signIn({ more: '' })).asked[0]?.reason ?? '', /once more, for more rights, at/);
    });

    it('asks nobody where it must not be made, and goes on without it after a no', async () => {
      const none = await signIn({ origins: async () => undefined });
      assert.deepEqual(none, { asked: [], events: [], isSignedIn: false, refusal: undefined });
      const no = await signIn({}, { allow: false, reason: 'not today' });
      assert.deepEqual([no.isSignedIn, no.refusal], [false, 'Denied: not today']);
      const told = (events: readonly RunEvent[]): string =>
        events.flatMap(event => (event.type === 'notice' ? [event.message] : [])).join();
      assert.match(
        told(no.events),
        /^The run continues without the MCP server 'beds', .* Denied: not today$/,
      );
      const more = await signIn({ more: '' }, { allow: false, reason: 'not today' });
      assert.match(told(more.events), /^The run continues without more rights at the MCP server 'beds'/);
    });
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
