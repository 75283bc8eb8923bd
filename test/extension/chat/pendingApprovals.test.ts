import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { join } from 'node:path';
import { runPolicy } from '../../../src/engine/policy/decision.ts';
import { grantedVariables } from '../../../src/engine/policy/grants.ts';
import { approveCall } from '../../../src/engine/run/approval.ts';
import { builtinTools } from '../../../src/engine/tools/builtin.ts';
import { readToHost } from '../../../src/extension/chat/chatMessages.ts';
import { PendingApprovals } from '../../../src/extension/chat/chatRuns.ts';
import type { ApprovalRequest } from '../../../src/protocol/run.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const request = (callId: string): ApprovalRequest => ({
  callId,
  token: `token of ${callId}`,
  tool: 'run_command',
  subject: 'ls',
  rule: 'command',
  reason: 'Commands ask.',
  scopes: ['once', 'run'],
});

describe('PendingApprovals', () => {
  it('answers the card that the view names, whichever came first', async () => {
    const asked: string[] = [];
    const approvals = new PendingApprovals(({ callId }) => asked.push(callId));
    const { signal } = new AbortController();
    const first = approvals.approve(request('a'), signal);
    const second = approvals.approve(request('b'), signal);
    assert.deepEqual(asked, ['a', 'b']);
    assert.equal(approvals.answer('token of b', { allow: false, reason: 'no' }), true);
    assert.equal(approvals.answer('token of a', { allow: true, scope: 'run' }), true);
    assert.deepEqual(await first, { allow: true, scope: 'run' });
    assert.deepEqual(await second, { allow: false, reason: 'no' });
  });

  it('takes an answer that comes from within the question', async () => {
    const approvals: PendingApprovals = new PendingApprovals(({ token }) => {
      approvals.answer(token, { allow: true, scope: 'once' });
    });
    const decision = await approvals.approve(request('a'), new AbortController().signal);
    assert.deepEqual(decision, { allow: true, scope: 'once' });
  });

  it('takes a changed command only for this once, and only where that was offered', async () => {
    const approvals = new PendingApprovals(() => {});
    const { signal } = new AbortController();
    const plain = approvals.approve(request('a'), signal);
    const open = approvals.approve({ ...request('b'), isEditable: true }, signal);
    const decision = { allow: true, scope: 'once', command: 'ls -l' } as const;
    assert.equal(approvals.answer('token of a', decision), false);
    assert.equal(approvals.answer('token of b', decision), true);
    assert.deepEqual(await open, decision);
    const read = (given: object): unknown => readToHost({ type: 'approve', token: 't', decision: given });
    assert.deepEqual(read(decision), { type: 'approve', token: 't', decision });
    assert.equal(read({ ...decision, scope: 'run' }), undefined);
    assert.equal(read({ ...decision, command: 1 }), undefined);
    approvals.answer('token of a', { allow: false, reason: 'no' });
    await plain;
  });

  it('denies on abort, before and during the question', async () => {
    const approvals = new PendingApprovals(() => {});
    const controller = new AbortController();
    const waiting = approvals.approve(request('a'), controller.signal);
    controller.abort();
    assert.equal((await waiting).allow, false);
    assert.equal((await approvals.approve(request('b'), controller.signal)).allow, false);
    assert.equal(approvals.answer('token of a', { allow: true, scope: 'once' }), false);
  });

  it('takes its listener off the signal with every answer', async () => {
    const approvals = new PendingApprovals(() => {});
    const { signal } = new AbortController();
    for (const callId of ['a', 'b', 'c']) {
      const waiting = approvals.approve(request(callId), signal);
      approvals.answer(`token of ${callId}`, { allow: true, scope: 'once' });
      await waiting;
    }
    assert.equal(getEventListeners(signal, 'abort').length, 0);
  });

  it('refuses a scope that the card did not offer, and a second answer', async () => {
    const approvals = new PendingApprovals(() => {});
    const waiting = approvals.approve(request('a'), new AbortController().signal);
    assert.equal(approvals.answer('token of a', { allow: true, scope: 'always' }), false);
    assert.equal(approvals.answer('token of a', { allow: true, scope: 'once' }), true);
    assert.equal(approvals.answer('token of a', { allow: true, scope: 'once' }), false);
    assert.deepEqual(await waiting, { allow: true, scope: 'once' });
  });

  it('takes an answer of one’s own only where the card asked a question, and a form only as it is', async () => {
    const approvals = new PendingApprovals(() => {});
    const { signal } = new AbortController();
    const field = { kind: 'text', name: 'day', title: 'Day', isRequired: true } as const;
    const plain = approvals.approve(request('plain'), signal);
    const asks = approvals.approve({ ...request('asks'), choices: ['a', 'b'] }, signal);
    const form = approvals.approve({ ...request('form'), form: [field] }, signal);
    const once = { allow: true, scope: 'once' } as const;
    const filled = { ...once, content: { day: 'Monday' } };
    assert.equal(approvals.answer('token of plain', { ...once, answer: 'c' }), false);
    assert.equal(approvals.answer('token of plain', filled), false, 'nothing was to be filled in');
    assert.equal(approvals.answer('token of asks', { ...once, answer: 'c' }), true);
    assert.equal(approvals.answer('token of form', once), false, 'a form that was not filled in');
    assert.equal(approvals.answer('token of form', { ...once, content: {} }), false);
    assert.equal(approvals.answer('token of form', filled), true);
    assert.deepEqual([await asks, await form], [{ ...once, answer: 'c' }, filled]);
    const again = approvals.approve({ ...request('form'), form: [field] }, signal);
    assert.equal(
      approvals.answer('token of form', { allow: false, reason: 'no' }),
      true,
      'a no needs no form',
    );
    assert.equal(approvals.answer('token of plain', { allow: false, reason: 'no' }), true);
    assert.deepEqual(
      [await plain, await again].map(({ allow }) => allow),
      [false, false],
    );
  });

  it('counts the cards that wait, and says when their number has changed', async () => {
    const counts: number[] = [];
    const approvals: PendingApprovals = new PendingApprovals(
      () => counts.push(approvals.count * 10),
      () => counts.push(approvals.count),
    );
    const controller = new AbortController();
    const first = approvals.approve(request('a'), controller.signal);
    const second = approvals.approve(request('b'), controller.signal);
    approvals.answer('token of a', { allow: true, scope: 'once' });
    controller.abort();
    await Promise.all([first, second]);
    assert.deepEqual(counts, [10, 1, 20, 2, 1, 0]);
    await approvals.approve(request('c'), controller.signal);
    assert.equal(counts.length, 6, 'a run that was stopped shows no card');
    assert.deepEqual(await approvals.ask(['?', '??']), ['', '']);
  });

  it('answers an older question with no when its id comes again', async () => {
    const approvals = new PendingApprovals(() => {});
    const { signal } = new AbortController();
    const older = approvals.approve(request('a'), signal);
    const newer = approvals.approve(request('a'), signal);
    assert.equal((await older).allow, false);
    approvals.answer('token of a', { allow: true, scope: 'once' });
    assert.equal((await newer).allow, true);
  });
});

describe('a card that is accepted in the chat', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({
      'pack/SKILL.md':
        '---\ndescription: d\n---\nCheck `WORK_ROOT`. Write `AGENTS.md` and `.claude/notes/<x>.md`.\n',
      'home/work/a.md': 'a',
    });
  });
  afterEach(() => folder.remove());

  it('grants what its lines say, but for those that were switched off', async () => {
    const at = (path: string): string => join(folder.path, path);
    const [packDir, workingDir] = [at('pack'), at('home/work')];
    const skills = [{ dir: packDir, file: at('pack/SKILL.md') }];
    const places = {
      configDir: at('config'),
      dataDir: at('data'),
      home: at('home'),
      env: { WORK_ROOT: '/w' },
    };
    const policy = runPolicy(
      places,
      { name: 'a', packDir, workingDir, source: 'user', skills },
      { workingDir, packDir, skillDir: packDir, commandDir: workingDir },
    );
    const accepted = { allow: true, scope: 'always', without: ['WORK_ROOT', 'AGENTS.md'] };
    const human: PendingApprovals = new PendingApprovals(({ token, card }) => {
      const decision = card ? accepted : { allow: false, reason: 'no' };
      const message = readToHost({ type: 'approve', token, decision });
      assert.ok(message?.type === 'approve');
      human.answer(message.token, message.decision);
    });
    const writing = async (path: string): Promise<string> => {
      const call = { id: '1', name: 'write_file', input: { path, content: 'x' } };
      const deciding = approveCall(
        call,
        { tools: builtinTools, human, policy },
        new AbortController().signal,
      );
      let step = await deciding.next();
      while (!step.done) step = await deciding.next();
      return step.value.policy?.rule ?? '';
    };
    assert.equal(await writing('.claude/notes/a.md'), 'card.new');
    assert.equal(await writing('.claude/notes/b.md'), 'card.file');
    assert.equal(await writing('AGENTS.md'), 'write.executed');
    assert.deepEqual(await grantedVariables(policy), {});
  });
});
