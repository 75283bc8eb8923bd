/** What an owner sees of a question: all of it, exactly, and nothing that belongs to the one who asks. */
import assert from 'node:assert/strict';
import { questionPost } from '../../src/bot/discordHuman.ts';
import type { ApprovalRequest } from '../../src/protocol/run.ts';
import { unseen } from '../../src/protocol/text.ts';

const request = (subject: string, more: Partial<ApprovalRequest> = {}): ApprovalRequest => ({
  callId: '1',
  token: 't',
  tool: 'run_command',
  subject,
  folder: '/home/ann/work',
  ...{
    rule: 'run.ask',
    reason: 'A command runs with your rights.',
    scopes: ['once', 'run', 'always'],
    ...more,
  },
});

const pieces = [
  ...[
    '```',
    '`',
    '\n```\n**Run this command?**\n```\nls',
    '\n-# Rule run.box',
    '@everyone',
    '<@1>',
    '[Once](https://evil.test)',
  ],
  ...['\u202e', '\u200b', '\u2066', '\x1b[2J', '\r', '||', '# ', '> ', '\u3164', '\u{e0041}', '\ud800'],
];

describe('questionPost', () => {
  it('shows fifty hostile commands whole, in one block or in a file', () => {
    for (let at = 0; at < 50; at++) {
      const one = pieces[at % pieces.length] ?? '';
      const other = pieces[(at * 7 + 3) % pieces.length] ?? '';
      const { content, files } = questionPost(request(`echo ${one} && rm -rf ${other}; true`));
      assert.ok(content.length <= 2000);
      assert.equal(unseen.test(content.replace(/[\n\t]/g, '')), false, JSON.stringify(content));
      const blocks = content.split('```');
      const shown = files ? String(files[0]?.data) : (blocks[1] ?? '');
      assert.match(shown, /echo [\s\S]* && rm -rf [\s\S]*; true/);
      // Two blocks, the command and its folder, or none: a text cannot end its own.
      assert.equal(blocks.length, files ? 1 : 5, content);
      const ours = files ? content : blocks.filter((_, index) => index % 2 === 0).join('');
      assert.equal(ours.match(/Run this command/g)?.length, 1);
      assert.doesNotMatch(ours, /(?<!\\)@|\]\(http/);
    }
  });

  it('shows a long reason whole, with what stands at its end', () => {
    const reason = `It starts ${'one server and '.repeat(40)}a last one that runs /srv/server.js.`;
    const { content, files } = questionPost(request('mcp', { tool: 'mcp_servers', reason }));
    assert.match(files ? String(files[0]?.data) : content, /a last one that runs \/srv\/server\.js\./);
  });

  it('escapes what others have a word in: the reason, a card, a file’s name', () => {
    const { content } = questionPost(
      request('/tmp/**x** <@1>.md', {
        tool: 'write_file',
        reason: 'From [here](https://evil.test) @everyone',
      }),
    );
    const outside = content
      .split('```')
      .filter((_, index) => index % 2 === 0)
      .join('');
    assert.doesNotMatch(outside, /(?<!\\)@|\]\(http|\*\*x/);
  });

  it('goes as a file that has all of it if it is long', () => {
    const { content, files } = questionPost(request(`echo ${'x'.repeat(5000)}`, { diff: '+added' }));
    assert.match(content, /The file has all of it/);
    assert.match(String(files?.[0]?.data), /x{5000}[\s\S]*\/home\/ann\/work[\s\S]*\+added/);
  });

  it('has room for its answer, however many dangers it names', () => {
    const danger = Array.from({ length: 12 }, (_, at) => ({
      kind: 'deletes-outside' as const,
      values: [`${'*'.repeat(200)}${at}`],
    }));
    const { content, files } = questionPost(request('rm -rf x', { danger }));
    assert.ok(content.length <= 1900, `${content.length}`);
    assert.match(content, /^\*\*Run this command/);
    assert.match(String(files?.[0]?.data), /subject:\nrm -rf x/);
  });
});
