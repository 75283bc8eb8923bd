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
      { type: 'ready', id: 'x'.repeat(1_001), have: 0 },
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

  /** A message with the fields that it cannot be without, each with the most characters that it may have. */
  const most = { name: 1_000, text: 1_000_000, address: 32_000 };
  const needed: readonly [Readonly<Record<string, unknown>>, Readonly<Record<string, keyof typeof most>>][] =
    [
      [{ type: 'submit', text: '' }, { text: 'text' }],
      [{ type: 'submit', text: '', skill: { agent: 'a', skill: 's' } }, { text: 'text' }],
      [{ type: 'pick_skill', text: '' }, { text: 'text' }],
      [
        { type: 'resend', runId: 'r', text: '' },
        { runId: 'name', text: 'text' },
      ],
      [{ type: 'resume', runId: 'r' }, { runId: 'name' }],
      [{ type: 'compact', focus: '' }, { focus: 'text' }],
      [{ type: 'plan', goal: '' }, { goal: 'text' }],
      [{ type: 'unqueue', id: '' }, { id: 'name' }],
      [{ type: 'run_queued', id: '' }, { id: 'name' }],
      [{ type: 'choose_folder', agent: 'a' }, { agent: 'name' }],
      [
        { type: 'dead_server', act: 'off', agent: 'a', server: 's' },
        { agent: 'name', server: 'name' },
      ],
      [{ type: 'attach_mention', mention: '' }, { mention: 'name' }],
      [{ type: 'detach', id: '' }, { id: 'name' }],
      [{ type: 'find_files', query: '' }, { query: 'name' }],
      [{ type: 'stop_command', id: '' }, { id: 'name' }],
      [{ type: 'to_background', callId: '' }, { callId: 'name' }],
      [{ type: 'open_link', url: '' }, { url: 'address' }],
      [{ type: 'open_file', path: '' }, { path: 'address' }],
      [{ type: 'read_image', path: '' }, { path: 'name' }],
      [{ type: 'show_changes', runId: '' }, { runId: 'name' }],
      [
        { type: 'show_changes', runId: '', path: '' },
        { runId: 'name', path: 'address' },
      ],
      [{ type: 'undo_run', runId: '' }, { runId: 'name' }],
      [{ type: 'improve_skill', runId: '' }, { runId: 'name' }],
      [{ type: 'restore', runId: '' }, { runId: 'name' }],
      [{ type: 'branch', runId: '' }, { runId: 'name' }],
      [{ type: 'copy', text: '' }, { text: 'text' }],
      [{ type: 'insert_code', text: '' }, { text: 'text' }],
      [
        { type: 'new_file', text: '', language: '' },
        { text: 'text', language: 'name' },
      ],
      [{ type: 'approve', token: '', decision: { allow: false, reason: '' } }, { token: 'name' }],
    ];

  it('takes each text up to its limit, and no message in which one is missing, longer or no text', () => {
    for (const [message, texts] of needed)
      for (const [name, kind] of Object.entries(texts)) {
        const longest = { ...message, [name]: 'x'.repeat(most[kind]) };
        assert.deepEqual(readToHost(longest), longest, `${message['type']} ${name}`);
        for (const value of ['x'.repeat(most[kind] + 1), 7, ['x'], null])
          assert.equal(readToHost({ ...message, [name]: value }), undefined, `${message['type']} ${name}`);
      }
  });

  it('takes what is chosen from a few, and nothing else', () => {
    for (const type of ['choose_skill', 'undo_compaction', 'find_offers', 'new_conversation'])
      assert.deepEqual(readToHost({ type, more: 1 }), { type });
    for (const type of ['teach', 'habit']) {
      for (const answer of ['write', 'never'])
        assert.deepEqual(readToHost({ type, answer }), { type, answer });
      for (const answer of ['always', true, undefined]) assert.equal(readToHost({ type, answer }), undefined);
    }
    assert.deepEqual(readToHost({ type: 'context_files', on: true }), { type: 'context_files', on: true });
    assert.deepEqual(readToHost({ type: 'context_files', on: 1 }), { type: 'context_files', on: false });
    const plain = { type: 'submit', text: 'x' };
    for (const name of ['withoutSkill', 'anew', 'instead']) {
      assert.deepEqual(readToHost({ ...plain, [name]: 1 }), plain);
      assert.deepEqual(readToHost({ ...plain, [name]: true }), { ...plain, [name]: true });
    }
    for (const skill of [{ agent: 'x'.repeat(1_001), skill: 's' }, { agent: 'a', skill: 7 }, [], null])
      assert.equal(readToHost({ ...plain, skill }), undefined);
  });

  it('opens a file at its lines, as far as they are lines', () => {
    const read = (line: unknown, endLine?: unknown) =>
      readToHost({ type: 'open_file', path: 'a', line, endLine });
    const open = { type: 'open_file', path: 'a' };
    assert.deepEqual(read(1, 1), { ...open, line: 1, endLine: 1 });
    assert.deepEqual(read(3, 9), { ...open, line: 3, endLine: 9 });
    for (const endLine of [2, 0, '9', 9.5, 1e7]) assert.deepEqual(read(3, endLine), { ...open, line: 3 });
    for (const line of [0, -1, 1.5, '3', 1e7]) assert.deepEqual(read(line, 9), open);
    assert.deepEqual(read(1e7 - 1), { ...open, line: 1e7 - 1 });
  });

  it('takes a list of at most fifty, each of which is a text that is short enough', () => {
    for (const [type, name, longest] of [
      ['look_up_files', 'paths', 1_000],
      ['attach_uris', 'uris', 32_000],
    ] as const) {
      const good = { type, [name]: Array(50).fill('x'.repeat(longest)) };
      assert.deepEqual(readToHost(good), good);
      for (const list of [Array(51).fill('x'), ['x', 7], ['x', 'x'.repeat(longest + 1)], 'x', undefined])
        assert.equal(readToHost({ type, [name]: list }), undefined);
    }
  });

  it('takes bytes that have the size that they say, and a thumbnail that is small', () => {
    const bytes = { type: 'attach_bytes', name: 'a', data: 'A'.repeat(400), size: 298 };
    assert.deepEqual(readToHost(bytes), bytes);
    for (const wrong of [
      { size: 297 },
      { size: 300.5 },
      { name: 7 },
      { name: 'x'.repeat(1_001) },
      { data: 'AA===' },
    ])
      assert.equal(readToHost({ ...bytes, ...wrong }), undefined, JSON.stringify(wrong));
    const picture = (length: number) => `data:image/jpeg;base64,${'A'.repeat(length - 23)}`;
    assert.deepEqual(readToHost({ ...bytes, thumbnail: picture(60_000) }), {
      ...bytes,
      thumbnail: picture(60_000),
    });
    assert.deepEqual(readToHost({ ...bytes, thumbnail: picture(60_001) }), bytes);
  });

  describe('of an answer to a card', () => {
    const read = (decision: unknown) => {
      const message = readToHost({ type: 'approve', token: 't', decision });
      return message?.type === 'approve' ? message.decision : message;
    };
    const once = { allow: true, scope: 'once' } as const;

    it('takes what was filled into a form: texts, numbers, switches and lists', () => {
      const content = { name: 'x'.repeat(20_000), age: 7.5, isOn: false, days: ['mon', 'x'.repeat(1_000)] };
      assert.deepEqual(read({ ...once, content }), { ...once, content });
      assert.deepEqual(read({ ...once, content: {} }), { ...once, content: {} });
      const thirty = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`f${index}`, 'x']));
      assert.deepEqual(read({ ...once, content: thirty }), { ...once, content: thirty });
      for (const broken of [
        { a: 'x', b: 'x'.repeat(20_001) },
        { a: 'x', b: Number.NaN },
        { a: 'x', b: ['mon', 7] },
        { a: 'x', b: ['mon', 'x'.repeat(1_001)] },
        { a: 'x', b: null },
        { a: 'x', b: { c: 'x' } },
        { ...thirty, more: 'x' },
        ['x'],
        'x',
        null,
      ])
        assert.equal(read({ ...once, content: broken }), undefined, JSON.stringify(broken).slice(0, 60));
      for (const scope of ['run', 'always', undefined])
        assert.equal(read({ allow: true, scope, content: { a: 'x' } }), undefined);
    });

    it('takes an answer and a changed command for this once, as long as an address may be', () => {
      for (const name of ['answer', 'command']) {
        const longest = { ...once, [name]: 'x'.repeat(32_000) };
        assert.deepEqual(read(longest), longest);
        for (const value of ['x'.repeat(32_001), 7, null])
          assert.equal(read({ ...once, [name]: value }), undefined);
        assert.equal(read({ allow: true, scope: 'run', [name]: 'x' }), undefined);
      }
    });

    it('takes a yes in each scope, and the lines that it leaves out only if each is one', () => {
      for (const scope of ['once', 'run', 'always']) {
        assert.deepEqual(read({ allow: true, scope }), { allow: true, scope });
        assert.deepEqual(read({ allow: true, scope, without: [] }), { allow: true, scope, without: [] });
      }
      for (const without of [['a', 7], ['a', 'x'.repeat(32_001)], 'a', null, {}])
        assert.equal(read({ ...once, without }), undefined, JSON.stringify(without).slice(0, 60));
    });

    it('takes a no with its reason alone', () => {
      assert.deepEqual(read({ allow: false, reason: 'no', scope: 'once', content: {} }), {
        allow: false,
        reason: 'no',
      });
      for (const wrong of [
        { allow: false, reason: 7 },
        { allow: 0, reason: 'no' },
        { reason: 'no' },
        null,
        [],
      ])
        assert.equal(read(wrong), undefined);
    });
  });
});
