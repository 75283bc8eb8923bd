import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { PendingApprovals } from '../../../src/extension/chat/chatRuns.ts';
import type { ApprovalRequest } from '../../../src/protocol/run.ts';

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
