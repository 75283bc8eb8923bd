import assert from 'node:assert/strict';
import { readToHost } from '../../../src/extension/chat/chatMessages.ts';
import { viewCommands } from '../../../src/protocol/webview.ts';

describe('readToHost', () => {
  it('reads every message of the protocol', () => {
    const messages = [
      { type: 'ready', id: null, have: 0 },
      { type: 'ready', id: 'c1', have: 12 },
      { type: 'submit', text: 'run daily kickoff' },
      { type: 'submit', text: '', skill: { agent: 'kairos', skill: 'kickoff' } },
      { type: 'submit', text: 'look around', withoutSkill: true },
      { type: 'submit', text: 'go', skill: { agent: 'kairos', skill: 'kickoff' }, instead: true },
      { type: 'submit', text: 'go', anew: true },
      { type: 'resend', runId: 'r1', text: 'go again' },
      { type: 'resume', runId: 'r1' },
      { type: 'unqueue', id: 'q1' },
      { type: 'run_queued', id: 'q1' },
      { type: 'choose_skill' },
      { type: 'insert_code', text: 'const a = 1;' },
      { type: 'new_file', text: 'a = 1', language: 'python' },
      { type: 'pick_skill', text: 'sum up my week' },
      { type: 'stop' },
      { type: 'attach' },
      { type: 'attach_bytes', name: 'a.txt', data: 'YWJj', size: 3 },
      {
        type: 'attach_bytes',
        name: 'a.png',
        data: 'YWI=',
        size: 90,
        thumbnail: 'data:image/png;base64,AA==',
      },
      { type: 'attach_uris', uris: ['file:///a/b'] },
      { type: 'attach_mention', mention: 'selection' },
      { type: 'detach', id: 'a1' },
      { type: 'find_files', query: 'src/ma' },
      { type: 'find_offers' },
      { type: 'new_conversation' },
      { type: 'approve', token: 'call_1', decision: { allow: true, scope: 'once' } },
      {
        type: 'approve',
        token: 'call_1',
        decision: { allow: true, scope: 'always', without: ['AGENTS.md', `scripts/${'x'.repeat(2000)}.py`] },
      },
      { type: 'approve', token: 'call_1', decision: { allow: false, reason: 'no' } },
      { type: 'open_link', url: 'https://example.com' },
      { type: 'open_file', path: '/a/b.md' },
      { type: 'copy', text: 'x' },
      { type: 'show_changes', runId: 'r1' },
      { type: 'show_changes', runId: 'r1', path: '/a' },
      { type: 'undo_run', runId: 'r1' },
      ...viewCommands.map(command => ({ type: 'command', command })),
    ];
    for (const message of messages) assert.deepEqual(readToHost(message), message);
  });

  it('ignores whatever else arrives', () => {
    const wrong: unknown[] = [
      undefined,
      null,
      'stop',
      ['stop'],
      {},
      { type: 'toString' },
      { type: 'ready', id: 3, have: 0 },
      { type: 'resend', text: 'go' },
      { type: 'resume' },
      { type: 'unqueue', id: 1 },
      { type: 'run_queued' },
      { type: 'insert_code', text: ['x'] },
      { type: 'new_file', text: 'x' },
      { type: 'ready', id: null, have: -1 },
      { type: 'ready', id: null, have: 0.5 },
      { type: 'ready', id: null },
      { type: 'submit' },
      { type: 'attach_bytes', name: 'a', data: 'not base64!', size: 3 },
      { type: 'attach_bytes', name: 'a', data: 'YWJj', size: 0 },
      { type: 'attach_bytes', name: 'a', data: 'A'.repeat(11_000_000), size: 9_000_000 },
      { type: 'attach_uris', uris: ['file:///a', 1] },
      { type: 'attach_uris', uris: Array(51).fill('file:///a') },
      { type: 'attach_mention' },
      { type: 'detach' },
      { type: 'find_files', query: 'x'.repeat(1_001) },
      { type: 'submit', text: 7 },
      { type: 'pick_skill' },
      { type: 'submit', text: 'x', skill: 'kickoff' },
      { type: 'submit', text: 'x', skill: { agent: 'kairos' } },
      { type: 'submit', text: 'x'.repeat(1_000_001) },
      { type: 'approve', token: 'c', decision: { allow: true, scope: 'forever' } },
      { type: 'approve', token: 'c', decision: { allow: true } },
      { type: 'approve', token: 'c', decision: { allow: 'yes', scope: 'once' } },
      { type: 'approve', token: 'c', decision: { allow: false } },
      { type: 'approve', decision: { allow: true, scope: 'once' } },
      { type: 'open_link', url: { href: 'https://example.com' } },
      { type: 'open_file' },
      { type: 'copy', text: null },
      { type: 'show_changes', runId: 1 },
      { type: 'show_changes', runId: 'r1', path: 1 },
      { type: 'undo_run' },
      { type: 'command', command: 'workbench.action.terminal.new' },
      { type: 'command', command: 'telos.runTreeSkill' },
    ];
    for (const message of wrong)
      assert.equal(readToHost(message), undefined, JSON.stringify(message)?.slice(0, 90));
  });

  it('shows no picture that is not one in the message itself', () => {
    const bytes = { type: 'attach_bytes', name: 'a', data: 'YWJj', size: 3 };
    for (const thumbnail of [
      'https://a.b/c.png',
      'data:text/html;base64,AA==',
      'data:image/png;base64,<b>',
    ]) {
      assert.deepEqual(readToHost({ ...bytes, thumbnail }), bytes);
    }
  });

  it('passes on known fields alone', () => {
    const message = {
      type: 'submit',
      text: 'x',
      recordTo: '/etc/passwd',
      skill: { agent: 'a', skill: 's', dir: '/' },
    };
    assert.deepEqual(readToHost(message), { type: 'submit', text: 'x', skill: { agent: 'a', skill: 's' } });
  });
});
