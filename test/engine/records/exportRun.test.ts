import assert from 'node:assert/strict';
import { type KeptConversation, RunHistory } from '../../../src/engine/records/runHistory.ts';
import { exportedConversation, exportName } from '../../../src/engine/records/runText.ts';
import { safeMarkdown } from '../../../src/engine/records/safeMarkdown.ts';
import { redactor } from '../../../src/engine/redact.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';
import { writeRun } from './storedRuns.ts';

const hostile = [
  'Before <script>alert(1)</script> and <img src=x onerror=alert(2)>',
  '[click](javascript:alert(3)) [too](  &#106;avascript:alert(4)) [good](https://example.org/a)',
  '[ref]: javascript:alert(5)',
  '![pixel](https://example.org/leak?x=1)',
  '- item\n  ```\n  code\n<script>alert(6)</script>',
  '```html\n<b>in code</b>\n```',
  'right\u202eto left, secret sesame-12345678',
].join('\n\n');

const same = (text: string): string => text;

describe('exports of runs', () => {
  let folder: TempFolder;
  let conversation: KeptConversation;
  const secret = redactor(['sesame-12345678']).text;

  before(async () => {
    folder = tempFolder();
    writeRun(folder.path, {
      runId: 'a',
      request: 'Do </div><script>x</script> & sesame-12345678',
      answer: hostile,
      skill: '<b>bold</b>',
      events: [
        {
          type: 'tool_start',
          call: { id: '1', name: 'write_file', input: { path: 'a`b.md', content: '```\n<script>' } },
        },
        { type: 'approval_response', callId: '1', decision: { allow: true, scope: 'once' } },
        {
          type: 'tool_end',
          callId: '1',
          name: 'write_file',
          result: { content: '````\n<iframe src=x>\n````', isError: true },
        },
        { type: 'notice', level: 'warning', message: '</p><script>y</script>' },
      ],
    });
    conversation = await new RunHistory(folder.path).conversation('a');
  });
  after(() => folder.remove());

  /** What is left of Markdown when the code that every reader agrees on is taken away. */
  const outsideFences = (text: string): string => text.replace(/^(`{3,})[^`\n]*\n[\s\S]*?^\1`*$/gm, '');

  it('as Markdown hold no element, no image, and no link but to the web', async () => {
    const prose = outsideFences(await exportedConversation(conversation, 'md', same));
    assert.doesNotMatch(prose, /(?<!\\)<[a-z/!?]/i);
    assert.doesNotMatch(prose, /\](\(|:)\s*(javascript|&)/i);
    assert.doesNotMatch(prose, /(?<!\\)!\[/);
    assert.match(prose, /\[good\]\(https:\/\/example\.org\/a\)/);
    assert.match(prose, /- Cost: \$0\.0100/);
    assert.match(prose, /write\\_file\*\* `` a`b\.md `` \(failed\), you allowed it \(once\)/);
  });

  it('as Markdown keep the code between fences as it was', async () => {
    const text = await exportedConversation(conversation, 'md', same);
    assert.ok(text.includes('```html\n<b>in code</b>\n```'));
    assert.ok(text.includes('`````\n````\n<iframe src=x>\n````\n`````'), text);
    assert.equal(safeMarkdown('Promise<string> a < b, 1 <2'), 'Promise<string> a < b, 1 <2');
  });

  it('hold no secret, in any format, also one that was kept before it was known', async () => {
    for (const format of ['md', 'jsonl'] as const) {
      const text = await exportedConversation(conversation, format, secret);
      assert.ok(!text.includes('sesame-12345678'), format);
      assert.ok(text.includes('[redacted]'), format);
    }
  });

  it('as lines of JSON hold every event and what was said, and no path of this machine', async () => {
    const lines = (await exportedConversation(conversation, 'jsonl', same))
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line));
    assert.deepEqual(
      lines.map(({ type }) => type),
      [
        'run',
        'run_start',
        'routed',
        'tool_start',
        'approval_response',
        'tool_end',
        'notice',
        'text',
        'usage',
        'run_end',
      ],
    );
    assert.equal(lines[0].runId, 'a');
    assert.equal(lines[0].usage.cost, 0.01);
    assert.equal(lines.at(-1).messages.length, 2);
    assert.ok(!JSON.stringify(lines).includes(folder.path));
  });

  it('have a name that every file system takes', () => {
    assert.equal(
      exportName('../Über: plan\n"x"', '2026-01-02T03:04:05.000Z', 'md'),
      '2026-01-02-über-plan-x.md',
    );
    assert.equal(exportName('???', '../..', 'jsonl'), 'run.jsonl');
  });
});
