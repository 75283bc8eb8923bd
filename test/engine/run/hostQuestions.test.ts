/** Questions about the hosts that a boxed command wants, while it runs. */
import assert from 'node:assert/strict';
import { denyAll, type Human } from '../../../src/engine/human.ts';
import { runPolicy } from '../../../src/engine/policy/decision.ts';
import { hostQuestions } from '../../../src/engine/run/approval.ts';
import type { AskHost } from '../../../src/engine/tools/tool.ts';
import type { ApprovalDecision, ApprovalRequest, RunEvent } from '../../../src/protocol/run.ts';
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
  function asking(human: Human): AskHost {
    const { workingDir, packDir, skillDir, commandDir } = run.context;
    const config = { configDir: run.root, dataDir: run.root, home: run.home, env: {} };
    const policy = runPolicy(config, undefined, { workingDir, packDir, skillDir, commandDir });
    const show = async <Result>(shown: AsyncGenerator<RunEvent, Result>): Promise<Result> => {
      for (;;) {
        const step = await shown.next();
        if (step.done) return step.value;
        events.push(step.value);
      }
    };
    const call = { id: 'c1', name: 'run_command', input: { command: 'npm install' } };
    return hostQuestions(call, { human, policy }, show, running.signal);
  }
  const wanted = (host: string) => ({ host, port: 443, program: 'npm' });

  it('are put one at a time, and a yes for the run is asked for once', async () => {
    const ask = asking(person);
    const answers = [ask(wanted('one.test'), command.signal), ask(wanted('two.test'), command.signal)];
    await eventually(() => assert.equal(open.length, 1));
    assert.equal(open[0]!.request.reason, 'npm wants to reach one.test:443.');
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
});
