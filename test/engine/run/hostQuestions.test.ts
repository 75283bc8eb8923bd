/** Questions while a call runs: about the hosts that a boxed command wants, and what a server asks. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { Human } from '../../../src/engine/core/ports.ts';
import { denyAll } from '../../../src/engine/human.ts';
import { type PolicyContext, runPolicy } from '../../../src/engine/policy/decision.ts';
import { grantedHosts, hostQuestions } from '../../../src/engine/run/approval.ts';
import { serverQuestions } from '../../../src/engine/run/serverAsks.ts';
import type { AskHost } from '../../../src/engine/tools/tool.ts';
import { describeQuestion } from '../../../src/protocol/describe.ts';
import {
  type ApprovalDecision,
  type ApprovalRequest,
  type RunEvent,
  skipped,
} from '../../../src/protocol/run.ts';
import { eventually } from '../../eventually.ts';
import { type TemporaryRun, temporaryRun } from '../tools/temporaryRun.ts';

describe('questions about hosts', () => {
  let run: TemporaryRun;
  let events: RunEvent[];
  /** Questions that are open, with the function that answers each. */
  let open: { request: ApprovalRequest; answer: (decision: ApprovalDecision) => void }[];
  const running = new AbortController();
  const command = new AbortController();
  beforeEach(() => {
    run = temporaryRun();
    events = [];
    open = [];
  });
  afterEach(() => run.remove());

  const person: Human = {
    approve: (request, signal) =>
      new Promise(settle => {
        const one = { request, answer: settle };
        open.push(one);
        signal.addEventListener('abort', () => settle({ allow: false, reason: 'it ended' }));
      }),
    ask: async () => [],
  };
  async function showEvents<Result>(shown: AsyncGenerator<RunEvent, Result>): Promise<Result> {
    for (;;) {
      const step = await shown.next();
      if (step.done) return step.value;
      events.push(step.value);
    }
  }
  function asking(human: Human, more: Partial<PolicyContext> = {}): AskHost {
    const { workingDir, packDir, skillDir, commandDir } = run.context;
    const config = { configDir: run.root, dataDir: run.root, home: run.home, env: {} };
    const policy = runPolicy(config, undefined, { workingDir, packDir, skillDir, commandDir });
    const call = { id: 'c1', name: 'run_command', input: { command: 'npm install' } };
    return hostQuestions(call, { human, policy: { ...policy, ...more } }, showEvents, running.signal);
  }
  const wanted = (host: string) => ({ host, port: 443, program: 'npm' });

  it('are put one at a time, and a yes for the run is asked for once', async () => {
    const ask = asking(person);
    const answers = [ask(wanted('one.test'), command.signal), ask(wanted('two.test'), command.signal)];
    await eventually(() => assert.equal(open.length, 1));
    assert.equal(open[0]!.request.reason, 'npm wants to reach one.test:443.');
    assert.equal(describeQuestion(open[0]!.request), 'Let npm connect to one.test?');
    assert.equal(open[0]!.request.subject, 'one.test:443');
    open[0]!.answer({ allow: true, scope: 'run' });
    await eventually(() => assert.equal(open.length, 2));
    open[1]!.answer({ allow: false, reason: 'not that one' });
    assert.deepEqual(await Promise.all(answers), [undefined, 'Denied: not that one']);
    assert.deepEqual(
      events.map(({ type }) => type),
      ['approval_request', 'approval_response', 'approval_request', 'approval_response'],
    );
    assert.equal(await ask(wanted('one.test'), command.signal), undefined);
    assert.equal(open.length, 2);
  });

  it('are withdrawn with the command, also those that wait for their turn', async () => {
    const ask = asking(person);
    const ended = new AbortController();
    const answers = [ask(wanted('one.test'), ended.signal), ask(wanted('two.test'), ended.signal)];
    await eventually(() => assert.equal(open.length, 1));
    ended.abort();
    assert.deepEqual(await Promise.all(answers), [
      'Denied: it ended',
      'The command ended before anyone was asked.',
    ]);
    assert.equal(open.length, 1);
  });

  it('are answered with the rule that asks where nobody is there', async () => {
    const answer = await asking(denyAll)(wanted('one.test'), command.signal);
    assert.equal(
      answer,
      'Denied: No one can be asked here (rule run.host: npm wants to reach one.test:443.).',
    );
    const never = await asking(denyAll)({ ...wanted('169.254.169.254'), port: 80 }, command.signal);
    assert.match(never ?? '', /^Not allowed \(floor\.fetch-address\)/);
    assert.deepEqual(open, []);
  });

  it('offer to leave the box unless each command has to stay in it', async () => {
    for (const boxRequired of [false, true]) {
      open = [];
      const answer = asking(person, { boxRequired })(wanted('one.test'), command.signal);
      await eventually(() => assert.equal(open.length, 1));
      assert.deepEqual(
        [open[0]!.request.mayLeave, open[0]!.request.forConversation],
        [boxRequired ? undefined : true, true],
      );
      open[0]!.answer({ allow: true, scope: 'once' });
      assert.equal(await answer, undefined);
    }
  });

  it('name the port, and an answer holds for that port alone', async () => {
    const ask = asking(person);
    const first = ask({ ...wanted('one.test'), port: 80 }, command.signal);
    await eventually(() => assert.equal(open.length, 1));
    assert.equal(open[0]!.request.reason, 'npm wants to reach one.test:80.');
    assert.equal(describeQuestion(open[0]!.request), 'Let npm connect to one.test:80?');
    open[0]!.answer({ allow: true, scope: 'run' });
    assert.equal(await first, undefined);
    const other = ask({ ...wanted('one.test'), port: 8080 }, command.signal);
    await eventually(() => assert.equal(open.length, 2));
    assert.equal(open[1]!.request.subject, 'one.test:8080');
    open[1]!.answer({ allow: false, reason: 'no' });
    assert.equal(await other, 'Denied: no');
  });

  it('are asked of nobody for a server, which reaches only what a rule names', async () => {
    run.put('c/policy.toml', '[[allow]]\nagent = "*"\ntool = "run_command"\nhost = "own.test"\n');
    const { workingDir, packDir, skillDir, commandDir } = run.context;
    const config = { configDir: join(run.root, 'c'), dataDir: run.root, home: run.home, env: {} };
    const ask = grantedHosts(runPolicy(config, undefined, { workingDir, packDir, skillDir, commandDir }));
    assert.equal(await ask(wanted('own.test'), command.signal), undefined);
    assert.equal(await ask({ ...wanted('own.test'), port: 80 }, command.signal), undefined);
    assert.match(
      (await ask(wanted('one.test'), command.signal)) ?? '',
      /neither the permissions nor a rule name one\.test:443/,
    );
    assert.match((await ask({ ...wanted('own.test'), port: 22 }, command.signal)) ?? '', /own\.test:22/);
  });

  describe('of a server in the middle of a call', () => {
    const form = {
      message: 'Where?',
      requestedSchema: { type: 'object', properties: { bed: { type: 'string' } }, required: ['bed'] },
    };
    const wish = (kind: 'form' | 'url', params: unknown) =>
      ({ kind, params, server: 'beds', opens: true }) as const;
    /** Returns the answers to wishes that come one after the other. */
    async function answered(
      wishes: readonly ReturnType<typeof wish>[],
      answer: (request: ApprovalRequest) => ApprovalDecision,
      signal = running.signal,
    ) {
      const asked: ApprovalRequest[] = [];
      const human: Human = {
        ask: async () => [],
        approve: async request => {
          asked.push(request);
          return answer(request);
        },
      };
      const { workingDir, packDir, skillDir, commandDir } = run.context;
      const config = { configDir: run.root, dataDir: run.root, home: run.home, env: {} };
      const policy = runPolicy(config, undefined, { workingDir, packDir, skillDir, commandDir });
      const call = { id: 'c1', name: 'plan', input: {} };
      const answerOne = serverQuestions(call, { human, policy }, showEvents);
      const answers = await Promise.all(wishes.map(each => answerOne(each, signal)));
      const told = events.flatMap(event => (event.type === 'notice' ? [event.message] : []));
      return { answers, asked, told };
    }
    const yes = { allow: true, scope: 'once' } as const;
    const no = { allow: false, reason: 'no' } as const;
    const actions = (answers: readonly { action: string }[]): string =>
      answers.map(({ action }) => action).join(' ');

    it('are answered ten times at most, and no more after two refusals, which is told once', async () => {
      const page = wish('url', { url: 'https://beds.test/' });
      const many = await answered(Array<typeof page>(13).fill(page), () => yes);
      assert.equal(actions(many.answers), `${'accept '.repeat(10)}decline decline decline`);
      assert.equal(many.asked.length, 10);
      assert.equal(new Set(many.asked.map(({ callId }) => callId)).size, 10);
      assert.deepEqual(many.told.length, 1);
      assert.match(many.told[0] ?? '', /'beds' asks too much during one call/);
      events = [];
      const refused = await answered(Array<typeof page>(4).fill(page), () => no);
      assert.deepEqual(
        [actions(refused.answers), refused.asked.length],
        ['decline decline decline decline', 2],
      );
    });

    it('are cancelled by who leaves them open and by the end of the run, and declined where they are refused', async () => {
      const asks = wish('form', form);
      assert.equal(actions((await answered([asks], () => skipped)).answers), 'cancel');
      assert.equal(actions((await answered([asks], () => no)).answers), 'decline');
      const over = await answered([asks], () => yes, AbortSignal.abort());
      assert.deepEqual([actions(over.answers), over.asked.length], ['cancel', 0]);
      const ending = new AbortController();
      const late = await answered(
        [asks],
        () => {
          ending.abort();
          return { ...yes, content: { bed: 'a' } };
        },
        ending.signal,
      );
      assert.equal(actions(late.answers), 'cancel');
      const filled = await answered([asks], () => ({ ...yes, content: { bed: 'a' } }));
      assert.deepEqual(filled.answers, [{ action: 'accept', content: { bed: 'a' } }]);
      for (const content of [undefined, {}, { bed: 7 }]) {
        events = [];
        const wrong = await answered(
          [asks],
          () => ({ ...yes, ...(content && { content }) }) as ApprovalDecision,
        );
        assert.equal(actions(wrong.answers), 'decline');
        assert.match(wrong.told[0] ?? '', /was declined, since it was not filled in/);
      }
    });

    it('name an address only if it is safe to open', async () => {
      const long = `https://beds.test/${'x'.repeat(1982)}`;
      assert.equal(long.length, 2000);
      const safe = ['https://beds.test/a', 'http://localhost:8080/', 'http://127.0.0.1/', long];
      for (const url of safe) {
        const { answers, asked } = await answered([wish('url', { url })], () => yes);
        assert.deepEqual([actions(answers), asked[0]?.subject], ['accept', url]);
      }
      const unsafe = [
        ...[
          'http://beds.test/',
          'ftp://beds.test/',
          'file:///etc/passwd',
          'javascript:1',
          'beds',
          '',
          `${long}x`,
        ],
        ...['https://me@beds.test/', 'https://:key@beds.test/', 'https://169.254.169.254/', 7, undefined],
      ];
      for (const url of unsafe) {
        const { answers, asked } = await answered([wish('url', { url })], () => yes);
        assert.deepEqual([actions(answers), asked.length], ['decline', 0], String(url));
      }
      assert.equal(actions((await answered([wish('url', null)], () => yes)).answers), 'decline');
      const url = 'https://beds.test/a';
      const said = await answered([wish('url', { url, message: 'Look there.' })], () => yes);
      assert.match(said.asked[0]?.reason ?? '', /leads to beds\.test\. The server says: Look there\.$/);
      for (const message of [undefined, '', 7])
        assert.doesNotMatch(
          (await answered([wish('url', { url, message })], () => yes)).asked[0]?.reason ?? '',
          /says/,
        );
    });
  });
});
