import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { record } from '../../../src/engine/records/record.ts';
import { type RunAttachments, readAttachments } from '../../../src/engine/records/runAttachments.ts';
import { RunHistory } from '../../../src/engine/records/runHistory.ts';
import { redactor } from '../../../src/engine/redact.ts';
import { type Attachment, maxDocumentBytes, maxImageBytes } from '../../../src/protocol/attachment.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const image = (name: string, data = 'AAAA'): Attachment => ({
  kind: 'image',
  name,
  mediaType: 'image/png',
  data,
});
const text = (name: string, content: string, path?: string): Attachment => ({
  kind: 'text',
  name,
  language: 'markdown',
  text: content,
  ...(path !== undefined && { path }),
});

describe('what went along with a request', () => {
  let folder: TempFolder;
  const file = (): string => join(folder.path, 'runs', 'r1.attached');
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  /** A run that fails before any model is asked, as one without a key does. */
  async function keep(along: RunAttachments): Promise<RunEvent[]> {
    async function* run(): AsyncGenerator<RunEvent> {
      yield { type: 'run_start', runId: 'r1', text: 'go', startedAt: '2026-01-02T03:04:05.000Z' };
      const counts = { rounds: 0, toolCalls: 0, durationMs: 1 };
      yield { type: 'run_end', outcome: 'failed', ...counts, messages: [] };
    }
    const redact = redactor(['sesame-1234']);
    const recorded = { request: { origin: 'chat', ...along }, messages: [], earlier: 0, redact } as const;
    const events: RunEvent[] = [];
    for await (const event of record(run(), recorded, folder.path)) events.push(event);
    return events;
  }

  const read = ({ attachments }: RunAttachments) =>
    readAttachments(
      folder.path,
      'r1',
      attachments.map(({ kind, name }) => ({ kind, name })),
    );

  it('is there again as it was, for its owner alone, and goes with its run', async () => {
    const along: RunAttachments = {
      attachments: [image('bed.png'), text('plan.md', 'sow\n', '/w/plan.md')],
      selection: { file: '/w/a.ts', text: 'const a = 1;', line: 3, language: 'typescript' },
    };
    await keep(along);
    assert.deepEqual(await read(along), { ...along, missing: [], hidden: [] });
    assert.equal(statSync(file()).mode & 0o777, 0o600);
    const history = new RunHistory(folder.path);
    assert.equal((await history.list()).length, 1);
    await history.delete('r1');
    assert.equal(existsSync(file()), false);
    assert.deepEqual((await read(along)).missing.length, 2);
  });

  it('is kept without secrets: a text with holes that are told, a picture not at all', async () => {
    const along: RunAttachments = {
      attachments: [
        text('sesame-1234.md', 'the word is sesame-1234', '/w/sesame-1234.md'),
        image('key.png', 'sesame-1234'),
      ],
      selection: { file: '/w/.env', text: 'KEY=sesame-1234', line: 1, language: '' },
    };
    await keep(along);
    assert.doesNotMatch(readFileSync(file(), 'utf8'), /sesame-1234/);
    const { attachments, selection, missing, hidden } = await read(along);
    assert.deepEqual(attachments, [text('[redacted].md', 'the word is [redacted]')]);
    assert.equal(selection?.text, 'KEY=[redacted]');
    assert.deepEqual(missing, [{ kind: 'image', name: 'key.png' }]);
    assert.deepEqual(hidden, ['[redacted].md', '/w/.env']);
  });

  it('is kept by name alone where it is too much', async () => {
    const large = 'A'.repeat(5_000_000);
    const attachments = ['a', 'b', 'c', 'd'].map(name => image(name, large));
    await keep({ attachments: [...attachments, text('plan.md', 'sow')] });
    const again = await read({ attachments: [...attachments, text('plan.md', 'sow')] });
    assert.deepEqual(
      again.attachments.map(({ name }) => name),
      ['a', 'b', 'c', 'plan.md'],
    );
    assert.deepEqual(again.missing, [{ kind: 'image', name: 'd' }]);
  }).timeout(60_000);

  it('leaves nothing where nothing went along, and takes nothing that was broken by hand', async () => {
    await keep({ attachments: [] });
    assert.equal(existsSync(file()), false);
    const lines = [
      { type: 'attachment', attachment: { ...image('a.png'), mediaType: 'image/svg+xml' } },
      { type: 'attachment', attachment: { kind: 'text', name: 'b.md', language: '', text: 1 } },
      { type: 'attachment', attachment: text('c.md', 'sow') },
    ];
    folder.add({ 'runs/r1.attached': `${lines.map(line => JSON.stringify(line)).join('\n')}\n{"type":` });
    const { attachments, missing } = await read({
      attachments: [image('a.png'), text('b.md', ''), text('c.md', '')],
    });
    assert.deepEqual(attachments, [text('c.md', 'sow')]);
    assert.deepEqual(
      missing.map(({ name }) => name),
      ['a.png', 'b.md'],
    );
  });

  it('that cannot be kept is said, and the run goes on', async () => {
    folder.add({ 'runs/r1.attached/in-the-way': '' });
    const events = await keep({ attachments: [text('plan.md', 'sow')] });
    const notice = events.find(event => event.type === 'notice');
    assert.match(
      notice?.message ?? '',
      /^The attachments of this request could not be stored .*Attach them again if you resend it/,
    );
    assert.equal(events.at(-1)?.type, 'run_end');
  });

  it('takes a file by its kind and its size, as a model would', async () => {
    const pdf = (name: string, mediaType: string, data = 'AAAA') => ({
      kind: 'document',
      name,
      mediaType,
      data,
    });
    const most = Math.ceil(maxImageBytes / 3) * 4;
    const good = [
      image('a.png', 'AAA='),
      { ...image('a.webp'), mediaType: 'image/webp' },
      image('most.png', 'A'.repeat(most)),
      pdf('a.pdf', 'application/pdf', 'A'.repeat(most + 4)),
      text('a.md', 'sow'),
      text('b.md', 'sow', '/w/b.md'),
    ];
    const broken = [
      image('more.png', 'A'.repeat(most + 4)),
      pdf('b.pdf', 'image/png'),
      pdf('large.pdf', 'application/pdf', 'A'.repeat(Math.ceil(maxDocumentBytes / 3) * 4 + 4)),
      { ...image('c.png'), mediaType: 'application/pdf' },
      image('d.png', 'A*A='),
      image('e.png', ''),
      { ...image('f.png'), name: 7 },
      { ...text('g.md', ''), path: 7 },
      { ...text('h.md', ''), language: null },
    ];
    const all = [...good, ...broken];
    const lines = all.map(attachment => JSON.stringify({ type: 'attachment', attachment }));
    folder.add({ 'runs/r1.attached': lines.join('\n') });
    const names = all.map((_, index) => ({ kind: 'image', name: `${index}` }) as const);
    const { attachments, missing, selection } = await readAttachments(folder.path, 'r1', names);
    assert.deepEqual(
      attachments.map(({ name }) => name),
      good.map(({ name }) => name),
    );
    assert.deepEqual(missing, names.slice(good.length));
    assert.equal(selection, undefined);
  }).timeout(60_000);

  it('takes a selection with its file, text, language and line, and else none', async () => {
    const whole = { file: '/w/a.ts', text: 'x', line: 3, language: '' };
    for (const name of Object.keys(whole)) {
      const selection = { ...whole, [name]: null };
      folder.add({ 'runs/r1.attached': JSON.stringify({ type: 'selection', selection }) });
      assert.deepEqual(await readAttachments(folder.path, 'r1', []), {
        attachments: [],
        missing: [],
        hidden: [],
      });
    }
    folder.add({ 'runs/r1.attached': JSON.stringify({ type: 'selection', selection: whole }) });
    assert.deepEqual((await readAttachments(folder.path, 'r1', [])).selection, whole);
  });

  it('is a selection alone, too', async () => {
    const selection = { file: '/w/a.ts', text: 'x', line: 3, language: '' };
    await keep({ attachments: [], selection });
    assert.deepEqual(await read({ attachments: [] }), {
      attachments: [],
      selection,
      missing: [],
      hidden: [],
    });
  });
});
